"""What a target was measured not to run: the profiles decide, here it is only looked up."""

from __future__ import annotations

import contextlib
import warnings
from itertools import chain
from typing import Any
from unittest.mock import MagicMock

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper
from onnx.defs import onnx_opset_version
from onnx.parser import parse_model
from onnx.reference import ReferenceEvaluator

import tensorsplit as ts
from tensorsplit import SplitError
from tensorsplit.model import profiles
from tensorsplit.model.check.advice import advice, advice_on_layer, before_lowering
from tensorsplit.model.check.engine_kernels import kernel_of, takes
from tensorsplit.model.check.target_checks import of_features
from tensorsplit.model.graph.nodes import walk
from tensorsplit.model.infer.analysis import analyse
from tensorsplit.model.profiles import Extent, Limitation, Profile, Verdict
from tests.marks import also_run_by
from tests.model.build import (
    BOOL,
    FLOAT,
    INT64,
    function,
    graph,
    model,
    node,
    sequence,
    tensor,
    value,
)
from tests.model.check.untyped_outputs import check, examine
from tests.refusals import refused

X = value("x", FLOAT, ["N", 6])


def codes(made: onnx.ModelProto, target: Any) -> list[str]:
    return [finding.code for finding in check(made, target)]


@pytest.mark.parametrize(
    ("verdict", "extent", "code", "severity"),
    [
        ("refused", "all", "TS841", "error"),
        ("refused", "some", "TS843", "warning"),
        ("unsupported", "all", "TS841", "error"),
        ("wrong", "some", "TS843", "warning"),
        ("crash", "all", "TS842", "error"),
        ("refused", "edge", "TS843", "warning"),
        ("wrong", "values", "TS843", "warning"),
    ],
)
def test_the_severity_follows_from_what_was_measured(
    verdict: Verdict, extent: Extent, code: str, severity: str
) -> None:
    entry = Limitation("count", verdict, extent, "it was seen")
    profile = Profile("engine", "1.0", {}, (entry, Limitation("other", "wrong", "all", "not here")))
    (finding,) = of_features(profile, {"count": True}, "graph/s").values()
    assert (finding.code, finding.severity, finding.node) == (code, severity, "graph/s")
    assert "engine 1.0: it was seen" in finding.message


def test_openvino_does_not_take_a_count_on_a_dynamic_axis() -> None:
    made = model(graph([node("Split", "x", "a b", num_outputs=2)], [X], ["a", "b"]))
    assert codes(made, None) == []
    assert codes(made, "openvino") == ["TS843"]


def test_one_part_of_any_length_is_taken_by_openvino() -> None:
    made = model(graph([node("Split", "x", "a", num_outputs=1)], [X], ["a"]))
    assert "TS843" not in codes(made, "openvino")


@pytest.mark.parametrize(
    ("lengths", "outputs", "found"),
    [
        ([2, 5], ["a", "b"], []),
        ([2, 5], ["b"], []),
        ([2, 5], ["y"], ["TS843"]),  # nothing that is given out is calculated from a part
    ],
)
def test_openvino_leaves_out_a_split_that_nothing_uses(
    lengths: list[int], outputs: list[str], found: list[str]
) -> None:
    parts = node("Split", "x l", "a b")
    others = [node("Neg", "a", "c"), node("Abs", "x", "y")]
    made = model(graph([parts, *others], [X], outputs, [tensor("l", lengths)]))
    told = [each for each in check(made, "openvino") if each.code.startswith("TS84")]
    assert [each.code for each in told] == found
    assert all("left out" in each.message for each in told)


@pytest.mark.parametrize("target", ["onnxruntime", "openvino"])
def test_a_list_of_no_lengths_is_refused(target: str) -> None:
    nodes = [node("SplitToSequence", "x l", "s"), node("SequenceLength", "s", "n")]
    made = model(graph(nodes, [value("x", FLOAT, [0, 2])], ["n"], [tensor("l", [])]))
    assert "TS841" in codes(made, target)


@pytest.mark.parametrize(
    ("counts", "axis", "found"),
    [
        ((2, 3), 1, ["TS843", "TS843"]),
        ((3, 2, 3), 1, ["TS843"] * 3),
        ((2, 2), 1, []),
        ((2, 3), 0, []),  # the second one is on another axis
    ],
)
def test_onnxruntime_takes_equal_parts_of_one_tensor_for_the_same(
    counts: tuple[int, ...], axis: int, found: list[str]
) -> None:
    outputs = [[f"{k}p{index}" for index in range(count)] for k, count in enumerate(counts)]
    axes = [axis, *[1] * (len(counts) - 1)]
    pairs = zip(outputs, axes, strict=True)
    nodes = [node("Split", "x", " ".join(names), axis=at) for names, at in pairs]
    made = model(graph(nodes, [value("x", FLOAT, [6, 6])], [*chain(*outputs)]), 13)
    findings = check(made, "onnxruntime")
    assert [finding.code for finding in findings] == found
    # ordinary inputs fail where other nodes read the parts, and none where they are outputs
    assert all("(in some uses)" in finding.message for finding in findings)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (
            (
                "(seq(float[2]) s, float[M] z) => (float[A] y, {}) {{"
                " y = ConcatFromSequence<axis = 0>(s) {} }}"
            ),
            "have the model take tensors, and make the sequence in it",
        ),
        (
            "(float[2] x, float[M] z) => (seq(float[A]) s, {}) {{ s = SplitToSequence(x) {} }}",
            "have the model give out tensors, for example with ConcatFromSequence",
        ),
    ],
)
def test_a_model_with_sequences_at_its_ends_has_to_be_written_in_another_way_first(
    text: str, first: str
) -> None:
    split = "a, b, c = Split<num_outputs = 3>(z)"
    text = text.format("float[P] a, float[Q] b, float[R] c", split)
    made = parse_model(f'<ir_version: 8, opset_import: ["": 18]> g {text}')
    found = [(finding.node, finding.fix) for finding in ts.check(made, target="openvino")]
    assert ("graph", first) in found
    of_split = [fix for node, fix in found if node == "graph/Split[1]"]
    assert any(fix.startswith(f"{first}, then rewrite it with: ") for fix in of_split)


def test_openvino_has_no_sequence_outputs() -> None:
    split = node("SplitToSequence", "x l", "s", axis=1)
    made = model(graph([split], [X], [sequence("s")], [tensor("l", [2, 4])]))
    assert ("graph", "TS841") in {(f.node, f.code) for f in check(made, "openvino")}


def test_a_body_that_takes_a_sequence_from_around_it_is_found_and_no_other_node() -> None:
    made = parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[4,6] x, bool c) => (float[1,6] y)'
        " <int64 zero = {0}, int64 one = {1}> { s = SplitToSequence(x) first = SequenceAt(s, zero)"
        " y = If(c) <then_branch = t () => (float[1,6] r) { r = SequenceAt(s, one) },"
        " else_branch = e () => (float[1,6] u) { p = SequenceConstruct(first) u = SequenceAt(p,"
        " zero) }> }"
    )
    found = [each.node for each in check(made, "openvino") if "outside of the body" in each.message]
    assert found == ["graph/If[2].then_branch/SequenceAt[0]"]


def test_openvino_may_change_large_integers() -> None:
    split = node("Split", "x l", "a b", axis=1)
    made = model(graph([split], [value("x", INT64, [4, 6])], ["a", "b"], [tensor("l", [2, 4])]))
    assert codes(made, "openvino") == ["TS843"]
    assert codes(made, "onnxruntime") == []


@pytest.mark.parametrize("size", [0, 1])
def test_openvino_may_refuse_a_loop_that_carries_nothing(size: int) -> None:
    """What a sequence was becomes such a tensor."""
    ends = [value("i", INT64, []), value("go", BOOL, []), value("s", FLOAT, [2, size])]
    outs = [value("on", BOOL, []), value("t", FLOAT, [2, size])]
    body = graph([node("Identity", "go", "on"), node("Identity", "s", "t")], ends, outs)
    loop = node("Loop", "n _ x", "y", body=body)
    whole = graph([loop], [value("x", FLOAT, [2, size])], "y", [tensor("n", 3)])
    found = [each for each in ts.check(model(whole), target=OPENVINO) if each.code == "TS843"]
    assert ["Can not create StaticMemory" in each.message for each in found] == [True] * (not size)
    assert all("another engine" in each.fix for each in found)


OPENVINO: Any = "openvino@2026.4.1"


def test_onnx_runtime_has_not_every_kernel() -> None:
    split = node("SplitToSequence", "x", "s")
    data = value("x", onnx.TensorProto.UINT8, [4])
    made = model(graph([split], [data], [sequence("s", onnx.TensorProto.UINT8)]))
    assert codes(made, "onnxruntime") == ["TS841"]


def on_engines(rows: list[Any]) -> list[Any]:
    """The same rows, each for the engine that it begins with."""
    return [pytest.param(*row, marks=pytest.mark.engine(row[0])) for row in rows]


def of_one_node(opset: int, text: str) -> onnx.ModelProto:
    """A model of a node, such as ``int16 x => Max(x, x)``, and of what it gives."""
    inputs, call = text.split(" => ")
    start = f'<ir_version: 10, opset_import: ["": {opset}]>'
    made = parse_model(f"{start} g ({inputs}) => (float y) {{ y = {call} }}")
    made.graph.output[0].ClearField("type")
    return made


def fed(made: onnx.ModelProto) -> dict[str, Any]:
    """Random data for a model; 1 or "a" where it takes no floats."""
    kinds = {TensorProto.STRING: object, TensorProto.BFLOAT16: ml_dtypes.bfloat16}
    feeds, rng = {}, np.random.default_rng(29)
    for entry in made.graph.input:
        kind = entry.type.tensor_type
        shape = [dim.dim_value if dim.HasField("dim_value") else 1 for dim in kind.shape.dim]
        dtype = kinds.get(kind.elem_type) or helper.tensor_dtype_to_np_dtype(kind.elem_type)
        if dtype == np.float32:
            feeds[entry.name] = np.asarray(rng.random(shape), np.float32)
        else:
            feeds[entry.name] = np.full(shape, "a" if dtype is object else 1, dtype)
    return feeds


@pytest.mark.parametrize("target", ["portable", "openvino"])
def test_an_identity_of_a_tensor_of_any_rank_is_none_of_a_sequence(target: Any) -> None:
    made = parse_model(
        """<ir_version: 8, opset_import: ["": 13]> g (float[N] x) => (float[N] y)
        { y = Identity(x) }"""
    )
    for end in (*made.graph.input, *made.graph.output):
        end.type.tensor_type.ClearField("shape")
    assert not [each for each in check(made, target) if "sequence" in each.message]


@pytest.mark.engine("openvino")
@pytest.mark.parametrize("is_declared", [False, True])
def test_openvino_counts_the_one_length_of_what_a_loop_carries(*, is_declared: bool) -> None:
    """Without a declared rank, too: it knows that of what the loop is given."""
    made = parse_model(
        """<ir_version: 8, opset_import: ["": 15]> g (float[6,4] x, int64 n) => (float[A,B] y) {
        y = Loop(n, "", x) <body = b (int64 i, bool c, float[M,N] s) => (bool o, float[P,Q] t) {
        o = Identity(c) k = Shape<start = 0, end = 1>(s) q = Split(s, k) t = Neg(q) }> }"""
    )
    body = made.graph.node[0].attribute[0].g
    for end in (body.input[2], body.output[1]) if not is_declared else ():
        end.type.tensor_type.ClearField("shape")
    assert not [each for each in check(made, "openvino") if each.severity == "error"]
    data = np.random.default_rng(6).random((6, 4), np.float32)
    (found,) = ts.run(made, {"x": data, "n": np.array(3)}, engine="openvino").values()
    np.testing.assert_array_equal(found, -data)


TURNED = {
    "ij,kj->ik": ((3, 0), (2, 0)),
    "bqhd,bkhd->bhqk": ((0, 3, 2, 4), (0, 5, 2, 4)),
    "abc,dc->abd": ((2, 3, 0), (4, 0)),
    "ij,jk,lk->il": ((2, 3), (3, 0), (4, 0)),
    "ij,ji->ij": ((0, 3), (3, 0)),
    "...i,i...": ((0, 2), (2, 0)),
    "i...,i": ((3, 0), (3,)),
    "d...->...": ((3, 0),),
}
IN_ORDER = {
    "abd,cba": ((3, 0, 2), (4, 0, 3)),
    "abc->cba": ((3, 0, 2),),
    "ij,jk->ik": ((3, 0), (0, 2)),
    "bhqd,bhdk->bhqk": ((0, 2, 3, 4), (0, 2, 4, 5)),
    "ji,jk->ik": ((0, 3), (0, 2)),
    "...ij,...jk": ((0, 2, 3), (0, 3, 4)),
    "ab,ac->abc": ((0, 2), (0, 3)),
    "ij,jk,kl->il": ((2, 3), (3, 0), (0, 4)),
}


@pytest.mark.parametrize("equation", [*TURNED, *IN_ORDER])
def test_onnx_runtime_dies_of_a_factor_without_elements_that_it_turns(equation: str) -> None:
    pytest.importorskip("onnxruntime")
    shapes = (TURNED | IN_ORDER)[equation]
    feeds = {f"x{place}": np.ones(shape, np.float32) for place, shape in enumerate(shapes)}
    found = []
    for is_open in (True, False):
        inputs = ", ".join(
            f"float[{','.join('?' if is_open else str(dim or 1) for dim in value.shape)}] {name}"
            for name, value in feeds.items()
        )
        made = of_one_node(
            13, f"{inputs} => Einsum<equation = '{equation}'>({', '.join(feeds)})".replace("'", '"')
        )
        found.append([each.code for each in check(made, "onnxruntime") if "Einsum" in each.message])
        if is_open and equation in TURNED:
            with refused("TS604", "signal 8"):
                ts.run(made, feeds, engine="onnxruntime")
        elif is_open:
            ts.run(made, feeds, engine="onnxruntime")
    assert found == [["TS843"] * (equation in TURNED), []]


@pytest.mark.engine("openvino")
@pytest.mark.parametrize(
    ("use", "wanted"),
    [("int64[A] y) { v, y", [1, 5, 2, 3, 4, 7]), ("float[A] y) { y, i", [3, 3, 2, 2, 2, 2])],
)
def test_openvino_gives_the_places_of_equal_elements_in_any_order(
    use: str, wanted: list[int]
) -> None:
    made = parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g (float[N] x, int64[1] k)
        => ({use} = TopK(x, k) }}"""
    )
    found = [each for each in check(made, "openvino") if "equal elements" in each.message]
    assert [each.severity for each in found] == ["warning"] * (" v" in use)
    data = np.array([1, 3, 2, 2, 2, 3, 1, 2], np.float32)
    (got,) = ts.run(made, {"x": data, "k": np.array([6])}, engine="openvino").values()
    assert sorted(got.tolist()) == sorted(wanted)
    assert (got.tolist() == wanted) is not (" v" in use)


ENDS = [
    ("onnxruntime", 17, "float[2,3] x, float[3] s", 'LayerNormalization(x, s, "")'),
    ("onnxruntime", 13, "float[1,3] x", 'Squeeze(x, "")'),
    ("openvino", 13, "float[1,3] x", 'Squeeze(x, "")'),
    ("openvino", 13, "float[2,3] x, float[3,2] w", 'Gemm(x, w, "")'),
    ("openvino", 13, "float[2,3] x", 'ReduceSum(x, "")'),
    ("openvino", 10, "uint8[2,3] x, uint8[3,2] w", 'MatMulInteger(x, w, "", "")'),
    ("openvino", 13, "float[1,1,3] x, float[1,1,2] w", 'ConvTranspose(x, w, "")'),
    ("openvino", 10, "uint8[1,1,3] x, uint8[1,1,2] w", 'ConvInteger(x, w, "", "")'),
]


@pytest.mark.parametrize(
    ("target", "opset", "inputs", "call"),
    on_engines(ENDS),
)
def test_lower_leaves_out_an_end_of_empty_names(
    target: Any, opset: int, inputs: str, call: str
) -> None:
    """The engine refuses the node, or its process ends."""
    made = of_one_node(opset, f"{inputs} => {call}")
    errors = [each for each in check(made, target) if each.severity == "error"]
    assert len(errors) == 1
    assert "by an empty name" in errors[0].message
    lowered = ts.lower(made, target)
    assert not [each for each in check(lowered, target) if each.severity == "error"]
    assert lowered.graph.node[0].input[-1]
    feeds = fed(made)
    wanted = ts.run(made, feeds)["y"]
    np.testing.assert_allclose(ts.run(lowered, feeds, engine=target)["y"], wanted, rtol=1e-4)
    with pytest.raises(SplitError, match="TS60"):
        ts.run(made, feeds, engine=target)


@pytest.mark.engine("onnxruntime")
@pytest.mark.parametrize(
    ("dims", "target", "is_refused"),
    [
        ("0, 4", "Concat<axis = 0>(zero, c)", True),
        ("4, 0", "Concat<axis = 0>(c, zero)", True),
        ("4, 0", "Concat<axis = 0>(c, one, zero)", False),
        ("0, 4", "Concat<axis = 0>(one, c, zero)", False),
        ("0, 4", "Concat<axis = 0>(zero, c, d)", False),
        ("0, 4", "Identity(s)", False),
    ],
)
def test_a_length_beside_a_copied_0_is_calculated_for_nothing(
    dims: str, target: str, *, is_refused: bool
) -> None:
    """ONNX Runtime writes -1 in its place."""
    made = parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g (float[{dims}] x, float[C, D] z) => (float y)
        <int64[1] zero = {{0}}, int64[1] one = {{1}}> {{ s = Shape(z) c = Gather(s, zero)
        d = Gather(s, one) t = {target} y = Reshape(x, t) }}"""
    )
    made.graph.output[0].ClearField("type")
    found = [each for each in check(made, "onnxruntime") if "product of 0" in each.message]
    assert [each.severity for each in found] == ["warning"] * is_refused
    feeds = {"x": np.zeros([int(d) for d in dims.split(",")], np.float32)}
    feeds["z"] = np.zeros((0 if "one" in target or "(s)" in target else 5, 3), np.float32)
    if is_refused:
        assert 0 in ts.run(made, feeds)["y"].shape
        with refused("TS603", "product of 0"):
            ts.run(made, feeds, engine="onnxruntime")
    elif "one" not in target:
        ts.run(made, feeds, engine="onnxruntime")


MISREAD = [
    ("openvino", "float[6,4] x, int64[2,3] i => GatherElements<axis = 0>(x, i)", "TS841"),
    ("openvino", "float[6,4] x, int64[2,4] i => GatherElements<axis = 0>(x, i)", ""),
    ("openvino", "float[6,4] x, int64[6,3] i => GatherElements<axis = -1>(x, i)", ""),
    ("openvino", "float[6,4] x, int64[5,3] i => GatherElements<axis = -1>(x, i)", "TS841"),
    ("openvino", "float[6,4] x, int64[3,0] i => GatherND(x, i)", "TS842"),
    ("openvino", "float[6,4] x, int64[3,1] i => GatherND(x, i)", ""),
    ("openvino", "float[6,4] x, int64[0,0] i => GatherND(x, i)", ""),
    ("openvino", "float[0,4] x, int64[3,0] i => GatherND(x, i)", ""),
    ("openvino", "float[6,4] x, int64[0,0] i, float[0,6,4] u => ScatterND(x, i, u)", ""),
    ("openvino", "float[6,4] x, int64[0] i, float[6,4] u => ScatterND(x, i, u)", "TS842"),
    ("openvino", "float[6,4] x, int64[1] i, float[4] u => ScatterND(x, i, u)", ""),
    ("onnxruntime", "int64 x, int64 d, float[2] v => OneHot(x, d, v)", "TS841"),
    ("onnxruntime", "int64 x, int64 d, float[2] v => OneHot<axis = 0>(x, d, v)", "TS841"),
    ("onnxruntime", "int64[3] x, int64 d, float[2] v => OneHot(x, d, v)", ""),
]
"""A target, a node, and the code of what the engine makes of it."""


@pytest.mark.parametrize(("target", "text", "code"), MISREAD)
def test_indices_that_an_engine_misreads_are_found(target: Any, text: str, code: str) -> None:
    """`lower` leaves those that stand for all of the data."""
    made = of_one_node(13, text)
    errors = [each.code for each in check(made, target) if each.severity == "error"]
    assert errors == [code] * bool(code)
    with warnings.catch_warnings(action="ignore"):
        lowered = ts.lower(made, target)
    assert (lowered == made) is (code != "TS841")
    left = [each for each in check(lowered, target) if each.severity == "error"]
    assert len(left) == (code == "TS842")


@pytest.mark.parametrize(
    ("target", "text", "code"),
    on_engines(MISREAD),
)
def test_the_engine_misreads_the_indices(target: Any, text: str, code: str) -> None:
    made = of_one_node(13, text)
    feeds = fed(made)
    wanted = ts.run(made, feeds)["y"]
    try:
        is_right = bool((ts.run(made, feeds, engine=target)["y"] == wanted).all())
    except SplitError:
        is_right = False
    assert is_right is not bool(code)
    if code == "TS841":
        lowered = ts.lower(made, target)
        np.testing.assert_array_equal(ts.run(lowered, feeds, engine=target)["y"], wanted)
        np.testing.assert_array_equal(ts.run(lowered, feeds)["y"], wanted)


RUN = [
    ("onnxruntime", 13, "int16 x => Max(x, x)", "Max-13 with T = int16"),
    ("onnxruntime", 13, "int32 x => Max(x, x)", ""),
    ("onnxruntime", 14, "bfloat16 x => Add(x, x)", "Add-14 with T = bfloat16"),
    ("onnxruntime", 14, "float16 x => Add(x, x)", ""),
    ("onnxruntime", 6, "float x => Add(x, x)", "Add-6"),
    ("onnxruntime", 8, "float x => Add(x, x)", ""),
    ("onnxruntime", 27, "float x, float s => QuantizeLinear(x, s)", ""),
    ("onnxruntime", 28, "float x, float s => QuantizeLinear(x, s)", "QuantizeLinear-28"),
    ("onnxruntime", 20, "uint8[?] x => ImageDecoder(x)", "ImageDecoder-20"),
    ("onnxruntime", 18, "double x => HardSwish(x)", ""),  # by its function body, too
    ("onnxruntime", 18, "float x => HardSwish(x)", ""),  # by its function body
    ("onnxruntime", 17, "double x => HardSwish(x)", "HardSwish-14 with T = double"),
    ("onnxruntime", 18, "double[3] x, double[3] s => PRelu(x, s)", ""),
    ("onnxruntime", 19, "double[3] x, double[3] s => PRelu(x, s)", "PRelu-16 with T = double"),
    ("onnxruntime", 24, "float x => Swish(x)", ""),
    ("onnxruntime", 25, "float x => Swish(x)", "Swish-24"),
    ("openvino", 11, "float[2,2] x => Det(x)", "Det-11"),
    ("openvino", 13, "string[3] x, int64[2,1] i => GatherND(x, i)", "GatherND-13 with T = string"),
    ("openvino", 13, "float[3] x, int64[2,1] i => GatherND(x, i)", ""),
    ("openvino", 13, "string[3] x, int64[2] i => Gather(x, i)", ""),
    ("openvino", 13, "string[3] x => Cast<to = 1>(x)", "Cast-13 with T1 = string"),
    ("openvino", 16, "bool[3] c, string[3] x => Where(c, x, x)", "Where-16 with T = string"),
]
"""A target, an opset, a node, and what of it the engine does not run."""


@pytest.mark.parametrize(("target", "opset", "text", "said"), RUN)
def test_what_an_engine_does_not_run_at_all_is_a_warning(
    target: Any, opset: int, text: str, said: str
) -> None:
    if opset > onnx_opset_version():
        pytest.skip("the installed onnx does not know this opset")
    found = [
        each for each in check(of_one_node(opset, text), target) if " does not run " in each.message
    ]
    assert [each.severity for each in found] == ["warning"] * bool(said)
    assert not found or said in found[0].message


OTHER_DOMAINS = on_engines(
    [
        ("openvino", "ai.onnx.ml", "Binarizer", True),
        ("openvino", "ai.onnx.ml", "Normalizer", False),
        ("openvino", "ai.onnx.preview.training", "Momentum", True),
        ("onnxruntime", "ai.onnx.ml", "Binarizer", False),
        ("onnxruntime", "ai.onnx.preview.training", "Momentum", True),
    ]
)


@pytest.mark.parametrize(("target", "domain", "operator", "said"), OTHER_DOMAINS)
def test_operators_of_other_domains_that_an_engine_does_not_run(
    target: Any, domain: str, operator: str, said: bool
) -> None:
    attributes: dict[str, Any] = {}
    inputs = "x"
    if operator == "Momentum":
        attributes = {"alpha": 0.9, "beta": 1.0, "mode": "standard", "norm_coefficient": 0.0}
        inputs = "r t x x x"
    made = node(operator, inputs, "y z" if operator == "Momentum" else "y", **attributes)
    made.domain = domain
    given = [value("x", FLOAT, [2, 3])]
    if operator == "Momentum":
        given += [value("r", FLOAT, []), value("t", TensorProto.INT64, [])]
    whole = model(graph([made], given, "y"), 13)
    whole.opset_import.append(helper.make_opsetid(domain, 1))
    found = [each for each in check(whole, target) if " does not run " in each.message]
    assert [each.severity for each in found] == ["warning"] * said
    assert all(f"{domain}.{operator}-1" in each.message for each in found)
    feed = {"x": np.random.default_rng(5).random((2, 3), np.float32)}
    if operator == "Momentum":
        feed |= {"r": np.array(0.1, np.float32), "t": np.array(3)}
    if said:
        with pytest.raises(SplitError, match="TS60"):
            ts.run(whole, feed, engine=target)
    else:
        assert ts.run(whole, feed, engine=target)["y"].shape == (2, 3)


@pytest.mark.parametrize(
    ("opset", "text", "fix"),
    [
        (13, "int16 x => Max(x, x)", "cast its data"),
        (6, "float x => Add(x, x)", "convert the model to another opset"),
        (20, "uint8[?] x => ImageDecoder(x)", "use another engine"),
    ],
)
def test_the_fix_is_of_what_an_engine_lacks(opset: int, text: str, fix: str) -> None:
    (found,) = [
        each
        for each in check(of_one_node(opset, text), "onnxruntime")
        if " does not run " in each.message
    ]
    assert found.fix.startswith(fix)


@pytest.mark.parametrize(
    ("target", "opset", "text", "said"),
    on_engines(RUN),
)
def test_the_engine_does_not_run_it(target: Any, opset: int, text: str, said: str) -> None:
    made = of_one_node(opset, text)
    if said:
        with pytest.raises(SplitError, match="TS60"):
            ts.run(made, fed(made), engine=target)
    else:
        ts.run(made, fed(made), engine=target)


def test_what_calls_of_several_types_run_with_is_not_said() -> None:
    """No one kernel is for the types of all of them together."""
    made = parse_model(
        """<ir_version: 10, opset_import: ["": 13, "d": 1]> g (int64[3] x, int32[3] a, float[2] v)
        => (float[3, 4] y, float[3, 4] z) <int64 k = {4}, int32 l = {4}>
        { y = d.f(x, k, v) z = d.f(a, l, v) }
        <domain: "d", opset_import: ["": 13]> f (x, k, v) => (y) { y = OneHot(x, k, v) }"""
    )
    assert not [each for each in check(made, "onnxruntime") if " does not run " in each.message]


def test_an_axis_that_a_call_gives_is_not_taken_for_the_first() -> None:
    made = parse_model(
        """<ir_version: 10, opset_import: ["": 13, "d": 1]> g (float[6, 4] x, int64[6, 3] i)
        => (float[6, 3] y) { y = d.f<ax = 1>(x, i) }
        <domain: "d", opset_import: ["": 13]> f <ax> (x, i) => (y)
        { y = GatherElements<axis: int = @ax>(x, i) }"""
    )
    assert not [each for each in check(made, "openvino") if "fewer" in each.message]


@pytest.mark.engine("onnxruntime")
@pytest.mark.parametrize(
    ("opset", "is_used", "said"),
    [(7, True, True), (11, True, True), (11, False, False), (12, True, False)],
)
def test_a_mask_of_a_dropout_is_not_filled(opset: int, is_used: bool, said: bool) -> None:
    kind = "bool" if opset >= 10 else "float"
    ends = f"float[3] y, {kind}[3] m" if is_used else "float[3] y"
    made = parse_model(
        f"""<ir_version: 7, opset_import: ["": {opset}]> g (float[3] x) => ({ends})
        {{ y, m = Dropout(x) }}"""
    )
    found = [each for each in check(made, "onnxruntime") if each.code == "TS843"]
    assert [each.severity for each in found] == ["warning"] * said
    assert all("mask" in each.message and "opset 13" in each.fix for each in found)
    given = ts.run(made, fed(made), engine="onnxruntime")
    if is_used:
        assert not given["m"].any() if said else given["m"].all()


def test_a_line_of_a_profile_names_versions_and_types() -> None:
    kernel = kernel_of("7-12 T: float int64; U: !string")
    assert [each for each in range(15) if kernel.is_of(each, 30)] == [7, 8, 9, 10, 11, 12]
    assert takes(kernel, {"T": {"int64"}, "U": {"bool"}, "V": {"string"}})
    assert takes(kernel, {})
    assert not takes(kernel, {"T": {"int64", "int32"}})
    assert not takes(kernel, {"U": {"bool", "string"}})
    kernel = kernel_of("13- T: float")
    assert [each for each in range(30) if kernel.is_of(each, 30)] == [13]


@pytest.mark.parametrize(
    ("line", "opsets"),
    [("6-6 @18-19 T: double", [18, 19]), ("6-6 @28-", [28, 29]), ("6-6 T: double", range(6, 30))],
)
def test_a_line_of_a_profile_may_name_opsets(line: str, opsets: Any) -> None:
    kernel = kernel_of(line)
    assert [each for each in range(6, 30) if kernel.is_of(6, each)] == list(opsets)
    assert takes(kernel, {"T": {"double"}})
    assert takes(kernel, {"T": {"float"}}) == ("T" not in line)


def test_the_portable_target_has_no_sequences() -> None:
    nodes = [node("SplitToSequence", "x l", "s", axis=1), node("SequenceAt", "s i", "y")]
    made = model(graph(nodes, [X], ["y"], [tensor("l", [2, 4]), tensor("i", 0)]))
    assert codes(made, "portable") == ["TS841", "TS841"]


@pytest.mark.parametrize("target", ["onnxruntime", "openvino", "portable"])
def test_explicit_lengths_run_everywhere(target: Any) -> None:
    split = node("Split", "x l", "a b", axis=1)
    made = model(graph([split], [X], ["a", "b"], [tensor("l", [2, 4])]))
    assert codes(made, target) == []


def test_a_wrong_count_on_a_negative_axis_is_a_finding_for_a_target_too() -> None:
    made = graph(
        [node("Split", "x", "a b c d", axis=-1, num_outputs=4)], [value("x", FLOAT, [5])], "abcd"
    )
    found = check(model(made), target="openvino")
    assert found[0].code == "TS304"


def test_splits_of_openvino_count_wherever_they_stand() -> None:
    """In the graph, a branch and a function; none is examined where a name occurs twice."""
    domain = "org.openvinotoolkit"
    constants = [tensor("k", 1), tensor("l", [2, 4])]

    def split(outputs: str) -> onnx.NodeProto:
        return node("VariadicSplit", "x k l", outputs, domain=domain)

    branch = graph([split("p q")], [], ["p"])
    inner = function("F", "x k l", "u v", [split("u v")])
    inner.opset_import.add(domain=domain, version=1)
    nodes = [
        split("a b"),
        node("If", "c", "d", then_branch=branch, else_branch=branch),
        node("F", "x k l", "e f", domain="custom"),
    ]
    inputs = [X, value("c", onnx.TensorProto.BOOL, [])]
    made = model(graph(nodes, inputs, list("abdef"), constants), functions=[inner], custom=1)
    made.opset_import.add(domain=domain, version=1)
    assert examine(made).split_nodes == 4
    made.graph.node.append(node("Relu", "x", "a"))
    assert examine(made).split_nodes == 0


def test_a_finding_tells_what_is_required_from_what_is_seen() -> None:
    made = model(graph([node("Split", "x", "a b", axis=-1, num_outputs=2)], [X], ["a", "b"]))
    messages = [finding.message for finding in check(made, "portable")]
    assert messages == [
        "portable requires explicit lengths; this node uses num_outputs",
        (
            "portable requires an axis that counts from the front; this node counts the axis from"
            " the back"
        ),
    ]


def test_lower_is_advised_only_where_it_helps() -> None:
    """Not for lengths that are cut to 32 bits before any node sees them, nor for wide data."""
    split = node("Split", "x l", "a b")
    inputs = [value("x", INT64, [6]), value("l", INT64, [2])]
    found = check(model(graph([split], inputs, ["a", "b"])), "openvino")
    advised = {finding.message: "tensorsplit check MODEL" in finding.fix for finding in found}
    assert {text: yes for text, yes in advised.items() if "32" in text} == dict.fromkeys(
        (text for text in advised if "32" in text), False
    )
    assert sum("32" in text for text in advised) == 2
    assert any(yes for text, yes in advised.items() if "D7" in text)


@pytest.mark.parametrize(
    ("opset", "dim", "is_first"), [(8, "N", True), (9, "N", True), (10, "N", False), (9, 4, False)]
)
def test_before_opset_10_no_lengths_are_computed(opset: int, dim: Any, is_first: bool) -> None:
    """From then on the bounds of Slice are inputs."""
    made = model(graph([node("Split", "x", "a b")], [value("x", FLOAT, [dim])], ["a", "b"]), opset)
    found = {each.code: each.fix for each in check(made, "portable")}
    found.pop("TS825", None)
    if is_first:
        convert = "convert it to opset 13 (tensorsplit convert MODEL --opset 13 -o MODEL)"
        assert found == {"TS843": convert}
        assert check(ts.lower(made, "portable"), "portable") == check(made, "portable")
    else:
        rewrite = "rewrite it with: tensorsplit check MODEL --for portable --fix"
        assert found == {"TS841": rewrite}


@pytest.mark.parametrize(
    ("element", "operator", "wanted"),
    [
        (TensorProto.INT8, "SplitToSequence", "rewrite it with: "),  # as a Split, which takes them
        (TensorProto.COMPLEX64, "SplitToSequence", "use another element type, or another engine"),
        (TensorProto.COMPLEX64, "Split", "use another element type, or another engine"),
    ],
)
def test_a_type_that_no_tensor_of_an_engine_has_stays_where_one_of_an_operator_goes(
    element: int, operator: str, wanted: str
) -> None:
    nodes = [node(operator, "x l", "s" if operator == "SplitToSequence" else "s y")]
    nodes += [node("SequenceAt", "s one", "y")] if operator == "SplitToSequence" else []
    held = [tensor("l", [2, 4]), tensor("one", 1)]
    made = model(graph(nodes, [value("x", element, [6])], ["y"], held))
    fixes = [each.fix for each in check(made, "onnxruntime") if "type" in each.message]
    assert fixes
    assert all(fix.startswith(wanted) for fix in fixes)


_SCAN = """y, z = Scan <num_scan_inputs = 2, body = s (float[2] r, float[2] q) =>
    (float[2] a, float[2] b) { a = Neg(r) b = Neg(q) }> (x, w)"""
_LOOP = """y = Loop (, c, x) <body = s (int64 i, bool d, float[2] v) => (bool e, float[2] a)
    { e = Identity(d) a = Neg(v) }>"""


@pytest.mark.parametrize(
    ("text", "opset", "dim", "wanted"),
    [
        ("y = Neg(x)", 8, "N", ""),
        ("y = Neg(x)", 9, "N", ""),
        (_LOOP, 8, "N", "integers can't be compared before opset 9"),
        (_LOOP, 9, "N", ""),
        (_SCAN.replace("(x", "(, x"), 8, "4", "a Scan of opset 9 or newer"),
        (_SCAN, 9, "4", ""),
        (_SCAN, 9, "N", "lengths can't be computed before opset 10"),
        (_SCAN, 9, "3", "lengths can't be computed before opset 10"),  # and of w there are 4
        (_SCAN, 10, "N", ""),
        ("y, z = Split(x)", 8, "4", ""),
        ("y, z = Split(x)", 9, "N", "lengths can't be computed before opset 10"),
        ("y, z = Split(x)", 10, "N", ""),
    ],
)
def test_what_is_done_before_a_node_can_be_lowered(
    text: str, opset: int, dim: str, wanted: str
) -> None:
    """Integers are compared from opset 9 on; bounds of Slice are inputs from opset 10 on."""
    head = f'<ir_version: 4, opset_import: ["": {opset}]> g (float[{dim},2] x, float[4,2] w, '
    made = ir.from_proto(parse_model(f"{head}bool c) => (y) {{ {text} }}"))
    told = before_lowering(next(iter(walk(made))), analyse(made))
    assert told == wanted or (wanted and wanted in told)


@pytest.mark.parametrize(
    ("shape", "first"), [([2, 3, 4], ""), (None, "give its tensors a known rank, then ")]
)
def test_a_softmax_of_rows_is_lowered_where_its_rank_is_known(
    shape: list[int] | None, first: str
) -> None:
    ends = [value(name, FLOAT, shape) for name in "xy"]
    made = model(graph([node("Softmax", "x", "y")], ends[:1], ends[1:]), 11)
    (found, *_) = check(made, "openvino")
    assert "along its axis alone" in found.message
    assert found.fix == f"{first}rewrite it with: tensorsplit check MODEL --for openvino --fix"


CONVERTED = (
    "convert it to opset 13, as lengths can't be computed before opset 10 (tensorsplit convert"
    " MODEL --opset 13 -o MODEL), then rewrite it with: tensorsplit check MODEL --for {} --fix"
)


@pytest.mark.parametrize("target", ["onnxruntime", "portable", "openvino"])
def test_floats_of_run_time_are_first_made_the_attribute(target: Any) -> None:
    """Nothing else that is advised takes them: they may turn out not to be whole."""
    text = '<ir_version: 3, opset_import: ["": 1]> g (float[N] x{}) => (float[A] a, float[B] b) {}'
    fed = parse_model(text.format(", float[2] l", "{ a, b = Split<axis=0>(x, l) }"))
    fixes = {each.fix for each in check(fed, target) if "tensorsplit" in each.fix}
    first = "give the lengths as the attribute, then "
    assert fixes
    assert all(fix.startswith(first) for fix in fixes)
    with refused("TS310", "floats"):
        ts.convert(fed, 13)
    given = parse_model(text.format("", "{ a, b = Split<axis=0, split=[2,3]>(x) }"))
    known = {each.fix for each in check(given, target) if "tensorsplit" in each.fix}
    assert {fix.removeprefix(first) for fix in fixes} <= known | {CONVERTED.format(target)}
    lowered = ts.lower(ts.convert(given, 13), target)
    assert [each for each in check(lowered, target) if each.severity == "error"] == []


def test_what_nothing_depends_on_is_a_warning() -> None:
    split = node("Split", "x", "a b", num_outputs=2)
    ends = [node("Neg", "a", "c"), node("Neg", "b", "d")]
    (finding, *_) = check(model(graph([split, *ends], [X], ["x"])), "portable")
    assert (finding.code, finding.severity) == ("TS841", "warning")
    assert "(nothing that the model gives out depends on it)" in finding.message
    (finding, *_) = check(model(graph([split, *ends], [X], ["c"])), "portable")
    assert (finding.code, finding.severity) == ("TS841", "error")
    assert "depends on it" not in finding.message


MAP = """p = SequenceConstruct(x, x) s = SequenceMap(p) <body = b (uint8[3] e) => (uint8[3] f)
    { f = Max(e, e) }>"""
ENDED = """c = Cast<to = 1>(x) n = LayerNormalization<axis = 0>(c, c, "")"""
UNUSED = [
    pytest.param("onnxruntime", "s = SplitToSequence(x)", "error", "SplitToSequence"),
    pytest.param("onnxruntime", ENDED, "error", "SIGSEGV"),
    pytest.param("onnxruntime", "n = NonZero(k)", "warning", ""),
    pytest.param("openvino", MAP, "warning", ""),
]


@pytest.mark.engine("onnxruntime", "openvino")
@pytest.mark.parametrize(("target", "unused", "severity", "said"), UNUSED)
def test_a_node_that_nothing_depends_on_is_refused_by_an_engine_that_runs_it_too(
    target: Any, unused: str, severity: str, said: str
) -> None:
    """ONNX Runtime loads and runs each node; OpenVINO leaves out what nothing uses."""
    made = parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (uint8[3] x) => (uint8[3] y)
        <int64 k = {{2}}> {{ y = Max(x, x) {unused} }}"""
    )
    found = [each for each in check(made, target) if f"{target} " in each.message]
    assert [each.severity for each in found] == [severity]
    given = {"x": np.random.default_rng(8).integers(1, 200, 3, np.uint8)}
    if severity == "error":
        with refused("TS604" if said == "SIGSEGV" else "TS603", said):
            ts.run(made, given, engine=target)
    else:
        assert ts.run(made, given, engine=target)["y"].tolist() == given["x"].tolist()


MODES = {
    "none": ("", "n = Neg(x) d = Dropout(n, r)", False),
    "off": (", bool m = {0}", "n = Neg(x) d = Dropout(n, r, m)", False),
    "on": (", bool m = {1}", "n = Neg(x) d = Dropout(n, r, m)", True),
    "calculated": (", bool k = {1}", "n = Neg(x) m = Not(k) d = Dropout(n, r, m)", True),
}


@also_run_by("openvino")
@pytest.mark.parametrize(("given", "nodes", "is_refused"), MODES.values(), ids=MODES)
def test_openvino_takes_no_dropout_in_training_mode(
    given: str, nodes: str, is_refused: bool, runs: bool
) -> None:
    made = parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[5] x) => (float[3] y)
        <float r = {{0.5}}{given}, int64[2] l = {{2, 3}}>
        {{ {nodes} z, y = Split<axis = 0>(d, l) }}"""
    )
    found = [each.node for each in check(made, "openvino") if "training mode" in each.message]
    assert found == [f"graph/Dropout[{len(made.graph.node) - 2}]"] * is_refused
    if not runs:
        return
    x = np.random.default_rng(3).random(5, np.float32)
    if is_refused:
        with refused("TS603", "Dropout"):
            ts.run(made, {"x": x}, engine="openvino")
    else:
        assert ts.run(made, {"x": x}, engine="openvino")["y"].tolist() == (-x[2:]).tolist()


SEQUENCES_OF_KNOWN_LENGTH = {
    "parts": "v = Slice(x, zero, zero, c) s = ReduceSum<axes = [0]>(v)"
    " p = SplitToSequence<keepdims = 1>(s) y = SequenceLength(p)",
    "tensors": "p = SequenceConstruct(c, x) y = SequenceLength(p)",
    "a shape": "y = Shape(c)",
}


@also_run_by("openvino")
@pytest.mark.parametrize("nodes", SEQUENCES_OF_KNOWN_LENGTH.values(), ids=SEQUENCES_OF_KNOWN_LENGTH)
def test_openvino_reads_nothing_of_a_sequence_whose_length_it_knows(nodes: str, runs: bool) -> None:
    """What a shape is of, it reads before."""
    made = parse_model(
        f"""<ir_version: 7, opset_import: ["": 12]> g (int64[N] x) => (int64 y)
        <int64[1] zero = {{0}}> {{ c = Constant<value_ints = [0]>() {nodes} }}"""
    )
    made.graph.output[0].type.tensor_type.ClearField("shape")
    found = {each.severity for each in check(made, "openvino") if "value_ints" in each.message}
    is_read = "SequenceLength" not in nodes
    assert found == {"error" if is_read else "warning"}
    if not runs:
        return
    x = {"x": np.arange(3)}
    if is_read:
        with refused("TS603", "Constant"):
            ts.run(made, x, engine="openvino")
    else:
        assert ts.run(made, x, engine="openvino")["y"] == ts.run(made, x)["y"]


STRINGS_IN_LOOPS = {
    "rows that nothing uses": ("string[1] t", "t = Gather(s, z)", "y = Abs(v)", False),
    "rows of a known shape, and no more": ("string[1] t", "t = Gather(s, z)", "y = Size(r)", False),
    "strings of which a shape is used": ("int64[1] t", "t = Shape(s)", "y = Neg(r)", True),
    "strings for nothing": ("float[3] t", "u = Gather(s, z) t = Neg(w)", "y = Neg(r)", False),
    "rows": ("string[1] t", "t = Gather(s, z)", "y = Slice(r, z, o)", True),
}


@also_run_by("openvino")
@pytest.mark.parametrize(
    ("row", "inside", "after", "is_refused"), STRINGS_IN_LOOPS.values(), ids=STRINGS_IN_LOOPS
)
def test_openvino_loads_a_loop_whose_strings_it_can_leave_out(
    row: str, inside: str, after: str, is_refused: bool, runs: bool
) -> None:
    made = parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[3] x, string[2] s) => (float y)
        <int64 n = {{3}}, bool c = {{1}}, int64[1] z = {{0}}, int64[1] o = {{1}}> {{
        v, r = Loop(n, c, x) <body = b (int64 i, bool d, float[3] w) => (bool k, float[3] q, {row})
        {{ k = Identity(d) q = Neg(w) {inside} }}> {after} }}"""
    )
    made.graph.output.pop()
    made.graph.output.add(name="y")
    made = ts.infer_shapes(made)
    feeds = {"x": np.arange(3, dtype=np.float32), "s": np.array(["a", "b"], object)}
    found = [each for each in check(made, "openvino") if "no strings enter" in each.message]
    assert [each.severity for each in found] == ["error"] * is_refused
    if is_refused:
        with refused("TS513", "a loop carries strings"):
            ts.lower(made, "openvino")
    if runs and is_refused:
        with refused("TS603", "StringMemory"):
            ts.run(made, feeds, engine="openvino")
    elif not is_refused:
        engine: Any = "openvino" if runs else "tensorsplit"
        expected = ts.run(made, feeds)["y"].tolist()
        for each in (made, ts.lower(made, "openvino")):
            assert ts.run(each, feeds, engine=engine)["y"].tolist() == expected


@pytest.mark.parametrize("is_declared", [False, True])
def test_onnxruntime_has_to_know_the_rank_of_what_the_body_of_a_scan_gives(
    is_declared: bool,
) -> None:
    pytest.importorskip("onnxruntime")
    made = parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[6] x, int64[K] s) => (float[A, B] y) {
        t = Reshape(x, s) p, q = Split(t) y = Scan<body = b (float[C] r) => (float[C] m)
        { m = Neg(r) }, num_scan_inputs = 1>(q) }"""
    )
    body = made.graph.node[2].attribute[0].g
    for end in (*body.input, *body.output) if not is_declared else ():
        end.type.tensor_type.ClearField("shape")
    found = [each.severity for each in check(made, "onnxruntime") if "Subgraph" in each.message]
    assert found == ["warning"] * (not is_declared)
    feeds = {"x": np.arange(6, dtype=np.float32), "s": np.array([2, 3])}
    if is_declared:
        assert ts.run(made, feeds, engine="onnxruntime")["y"].tolist() == [[-3, -4, -5]]
    else:
        with refused("TS603", "Subgraph"):
            ts.run(made, feeds, engine="onnxruntime")


HIDING = {
    "part": ("p, q = Split(x, s)", True),
    "part by constants": ("p, q = Split(x, c)", False),
    "what follows from a part": ("u, q = Split(x, s) p = Neg(u)", True),
    "squeezed": ("u = Unsqueeze(x, one) p = Squeeze(u, a)", True),
    "squeezed by constants": ("u = Unsqueeze(x, one) p = Squeeze(u, one)", False),
    "sum": ("u = Unsqueeze(x, one) p = ReduceSum<keepdims = 0>(u, a)", True),
    "shaped as another": ("t = Shape(x) p = Reshape(x, t)", False),
    "slice": ("p = Slice(x, zero, a)", False),
}


@pytest.mark.parametrize("name", HIDING)
def test_onnxruntime_finds_no_rank_behind_lengths_or_axes_of_run_time(name: str) -> None:
    """A Scan whose body gives such a tensor of an undeclared rank ends each run."""
    pytest.importorskip("onnxruntime")
    nodes, is_hidden = HIDING[name]
    made = parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[5] x, int64[2] s, int64[1] a)
        => (float[A, B] y) <int64[2] c = {{2, 3}}, int64[1] one = {{1}}, int64[1] zero = {{0}}> {{
        rows = Unsqueeze(x, one) {nodes} y = Scan<body = b (float[C] r) => (float[D] m)
        {{ k = Neg(r) m = Abs(p) }}, num_scan_inputs = 1>(rows) }}"""
    )
    body = made.graph.node[-1].attribute[0].g
    body.output[0].type.tensor_type.ClearField("shape")
    found = [each.severity for each in check(made, "onnxruntime") if "Subgraph" in each.message]
    assert found == ["warning"] * is_hidden
    data = np.random.default_rng(5).random(5, np.float32)
    feeds = {"x": data, "s": np.array([2, 3]), "a": np.array([1])}
    lowered = ts.lower(made, "onnxruntime")
    wanted = ts.run(made, feeds)["y"]
    np.testing.assert_array_equal(ts.run(lowered, feeds, engine="onnxruntime")["y"], wanted)
    if is_hidden:
        with refused("TS603", "Subgraph"):
            ts.run(made, feeds, engine="onnxruntime")


UNCHECKED = {
    "lengths": (13, "a, b = Split(x, l)", [2, 3]),
    "lengths in an attribute": (12, "a, b = Split<split = [2, 3]>(x)", [2, 3]),
    "a sequence": (
        13,
        "s = SplitToSequence(x, l) a = SequenceAt(s, i) b = SequenceAt(s, o)",
        [2, 3],
    ),
    "equal parts": (13, "a, b = Split(x)", [4, 3]),
    "a known dimension": (13, "y = Slice(x, z, n) a, b = Split(y, l)", None),
    "chunks": (13, "s = SplitToSequence(x, o) a = SequenceAt(s, i) b = SequenceAt(s, o)", None),
}


@pytest.mark.parametrize(
    ("row", "more", "is_uneven"),
    [
        ("float[2,?] p", "", True),  # of a length that the round gives
        ("float[2,K] p", "", True),  # as exporters name it
        ("float[2,3] q", "", False),
        ("float[2,N] r", "", False),
        ("float[2,?] u", "", False),
        ("float[2,?] q", ", float[2,?] p", False),  # nobody uses what is uneven
    ],
)
def test_openvino_writes_rows_of_different_shapes_beyond_their_memory(
    row: str, more: str, is_uneven: bool
) -> None:
    """The parts of a list, collected one by one: the last may be shorter, which is not allowed."""
    made = parse_model(
        f"""<ir_version: 8, opset_import: ["": 15]> g (float[2,N] x, int64[T] w, float[2,3] h) =>
        (float[A,B,C] y) <bool c = {{1}}, int64[1] k = {{-1}}, int64[1] one = {{1}}> {{
        t = Size(w) y{", unused" if more else ""} = Loop(t, c) <body = b (int64 i, bool d) =>
        (bool e, {row}{more}) {{ e = Identity(d) j = Gather(w, i) n = Reshape(j, k) o = Sub(n, n)
        p = Slice(x, o, n, one) q = Neg(h) r = Neg(x) m = Shape<start = 1>(x)
        u = Slice(x, one, m, one) }}> }}"""
    )
    said = [each for each in check(made, "openvino") if "the size of the first" in each.message]
    assert [each.severity for each in said] == ["warning"] * is_uneven
    assert all("standard refuses" in each.message and "Pad" in each.fix for each in said)


@pytest.mark.parametrize("name", ["a/b:0", "部", "N + ", "(", "max(0, N - 1)"])
def test_a_dimension_of_rows_may_have_any_name(name: str) -> None:
    made = parse_model(
        """<ir_version: 8, opset_import: ["": 15]> g (float[2,N] x, int64 t) => (float[A,B,C] y)
        <bool c = {1}> {
        y = Loop(t, c) <body = b (int64 i, bool d) => (bool e, float[2,M] p) {
        e = Identity(d) p = Neg(x) }> }"""
    )
    made.graph.input[0].type.tensor_type.shape.dim[1].dim_param = name
    assert not [each for each in check(made, "openvino") if "the size of the first" in each.message]
    assert "Loop" in {node.op_type for node in ts.lower(made, target="openvino").graph.node}


@pytest.mark.parametrize("name", UNCHECKED)
def test_what_an_engine_takes_and_the_standard_refuses_is_a_warning_and_stays(name: str) -> None:
    """Onnx's reference drops an element of 7, or splits into parts that are not equal."""
    opset, nodes, sizes = UNCHECKED[name]
    dim = "5" if name == "a known dimension" else "N"
    made = parse_model(
        f"""<ir_version: 8, opset_import: ["": {opset}]> g
        (float[{dim}] x) => (float[A] a, float[B] b) <int64[2] l = {{2, 3}}, int64[1] z = {{0}},
        int64[1] n = {{5}}, int64 i = {{0}}, int64 o = {{1}}> {{ {nodes} }}"""
    )
    said = "(for inputs that the standard refuses)"
    found = [each for each in check(made, "onnx-reference") if said in each.message]
    assert [each.severity for each in found] == ["warning"] * (sizes is not None)
    assert all(each.fix.startswith("lower it for portable") for each in found)
    assert ts.lower(made, "onnx-reference") == made
    if sizes is not None:
        given = {"x": np.arange(7, dtype=np.float32)}
        parts: Any = ReferenceEvaluator(made).run(None, given)
        assert [len(part) for part in parts] == sizes
        with pytest.raises(SplitError):
            ts.run(made, given)


@pytest.mark.parametrize(
    ("place", "severities"), [(2, ["warning"]), (1, []), (-1, []), (None, []), ("fed", ["warning"])]
)
def test_the_reference_puts_a_tensor_first_that_is_put_after_the_last(
    place: Any, severities: list[str]
) -> None:
    position, given = "", {"x": np.arange(4, dtype=np.float32)}
    if place is not None:
        position, given = ", k", given | {"k": np.array(2 if place == "fed" else place)}
    made = parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g (float[4] x{", int64 k" if position else ""})
        => (float[A] y) <int64[2] l = {{1, 3}}> {{ s = SplitToSequence(x, l)
        n = Neg(x) t = SequenceInsert(s, n{position}) y = ConcatFromSequence<axis = 0>(t) }}"""
    )
    if isinstance(place, int):
        made.graph.input.pop()
        made.graph.initializer.append(onnx.numpy_helper.from_array(given.pop("k"), "k"))
    found = [each for each in check(made, "onnx-reference") if "comes first" in each.message]
    assert [each.severity for each in found] == severities
    expected = ts.run(made, given)["y"].tolist()
    (got,) = np.array(ReferenceEvaluator(made).run(None, given)).tolist()
    assert (got == expected) == (not severities)
    lowered = ReferenceEvaluator(ts.lower(made, "onnx-reference"))
    assert np.array(lowered.run(None, given)).tolist() == [expected]


@also_run_by("onnxruntime")
@pytest.mark.parametrize(
    ("condition", "severity"),
    [("c = Constant<value = bool {1}>()", "warning"), ("c = Identity(d)", "error")],
)
def test_what_is_in_a_branch_that_never_runs_is_a_warning(
    condition: str, severity: str, runs: bool
) -> None:
    """ONNX Runtime leaves the branch out, and looks for no kernel."""
    made = parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (uint16[3] x, bool d) => (int64 y) {{
        {condition} y = If(c) <then_branch = t () => (int64 p) {{ p = Size(x) }}, else_branch = e
        () => (int64 q) {{ s = SplitToSequence(x) q = SequenceLength(s) }}> }}"""
    )
    found = [each for each in check(made, "onnxruntime") if "kernel" in each.message]
    assert [each.severity for each in found] == [severity]
    assert ("never runs" in found[0].message) == (severity == "warning")
    given = {"x": np.zeros(3, np.uint16), "d": np.array(True)}
    if not runs:
        return
    if severity == "warning":
        assert ts.run(made, given, engine="onnxruntime")["y"] == 3
    else:
        with refused("TS603", "NOT_IMPLEMENTED"):
            ts.run(made, given, engine="onnxruntime")


CALLS_TO_NOTHING = {
    "dead": "{ z = my.F(x) y = Abs(x) }",
    "dead_in_a_branch": """{
        y = If(c) <then_branch = t () => (float[N] p) { r = my.F(x) p = Neg(x) },
        else_branch = e () => (float[N] q) { q = Abs(x) }> }""",
    "in_a_dead_branch": """{ z = If(c) <then_branch = t () => (float[N] p) { p = my.F(x) },
        else_branch = e () => (float[N] q) { q = Abs(x) }> y = Neg(x) }""",
}
CALLS = {
    "plain": "{ y = my.F(x) }",
    "by_its_shape": "{ z = my.F(x) s = Shape(z) y = Expand(x, s) }",
    "output_of_a_branch_that_nothing_uses": """{
        y, z = If(c) <then_branch = t () => (float[N] p, float[N] p2) { p = Neg(x) p2 = my.F(x) },
        else_branch = e () => (float[N] q, float[N] q2) { q = Abs(x) q2 = Neg(x) }> }""",
}


@also_run_by("openvino")
@pytest.mark.parametrize(
    ("body", "severity"),
    [
        *(pytest.param(body, "warning", id=name) for name, body in CALLS_TO_NOTHING.items()),
        *(pytest.param(body, "error", id=name) for name, body in CALLS.items()),
    ],
)
def test_a_function_that_only_unused_nodes_call_is_a_warning(
    body: str, severity: str, runs: bool
) -> None:
    """OpenVINO imports what the outputs depend on, with all that bodies in it give."""
    text = f"""<ir_version: 10, opset_import: ["": 21, "my": 1]>
        g (float[N] x, bool c) => (float[N] y) {body}
        <domain: "my", opset_import: ["": 21]>
        F (a) => (b) {{ o = Optional(a) b = OptionalGetElement(o) }}"""
    made = parse_model(text)
    found = [each for each in check(made, "openvino") if each.code == "TS841"]
    assert [each.node for each in found][:2] == ["graph", "function my::F/Optional[0]"]
    assert {each.severity for each in found} == {severity}
    if not runs:
        return
    with contextlib.ExitStack() as stack:
        if severity == "error":
            stack.enter_context(refused("TS603", "openvino"))
        ts.run(made, {"x": np.ones(2, np.float32), "c": np.array(1, bool)}, engine="openvino")


@pytest.mark.parametrize(
    ("opset", "call", "split"),
    [
        (18, "given = 2", "Split<num_outputs: int = @given>(a)"),
        (11, "given = [1, 3]", "Split<split: ints = @given>(a)"),
    ],
)
def test_what_a_call_gives_a_split_is_not_known_only_at_run_time(
    opset: int, call: str, split: str
) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": {opset}, "of": 1]> g (float[N] x) =>
        (float[?] y, float[?] z) {{ y, z = of.Halves<{call}>(x) }}
        <domain: "of", opset_import: ["": {opset}]>
        Halves <given> (a) => (p, q) {{ p, q = {split} }}"""
    )
    assert ts.check(model, "onnxruntime") == []
    for target in ("openvino", "portable"):
        assert not [each for each in ts.check(model, target) if "run time" in each.message]
        found = ts.check(ts.lower(model, target), target)
        assert not [each for each in found if each.severity == "error"]


@also_run_by("openvino")
@pytest.mark.parametrize(("used", "severity"), [("t", None), ("w", "error")])
def test_who_reads_a_condition_for_nothing_does_not_count(
    used: str, severity: str | None, runs: bool
) -> None:
    """OpenVINO leaves that node out of the body, and loses no condition."""
    made = parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
    g (float[6] x, int64 n) => (float[3] y) {{
      a, b = Split <axis = 0> (x)
      y = Loop (n, , a) <body = f (int64 i, bool c, float[3] s) => (bool d, float[3] {used}) {{
        d = Identity (c)
        t = Add (s, b)
        w = Where (c, s, b)
      }}>
    }}""")
    found = [each for each in check(made, "openvino") if "condition" in each.message]
    assert [each.severity for each in found] == [severity] * bool(severity)
    if not runs:
        return
    with contextlib.ExitStack() as stack:
        if severity == "error":
            stack.enter_context(refused("TS603", "openvino"))
        fed = {"x": np.ones(6, np.float32), "n": np.array(2)}
        ts.run(made, fed, engine="openvino")


@also_run_by("openvino")
@pytest.mark.parametrize("is_default", [True, False])
def test_openvino_counts_lengths_that_follow_from_the_default_of_an_input(
    is_default: bool, runs: bool
) -> None:
    """Its import takes the default for a constant (D20)."""
    first, default = ("", "int64[1] first = {0}") if is_default else (", int64[1] first", "")
    made = parse_model(f"""<ir_version: 10, opset_import: ["": 18]>
        g (float[2, 3] x{first}) => (float[A, 3] a, float[B, 3] b)
        <{default}{", " * is_default}int64[1] last = {{1}}, int64[1] zero = {{0}}> {{
            n = Shape(x)
            rows = Slice(n, first, last, zero)
            l = ConstantOfShape<value = int64[1] {{1}}>(rows)
            a, b = Split<axis = 0>(x, l)
        }}""")
    if is_default:
        made.graph.input.append(value("first", INT64, [1]))
    errors = [each for each in check(made, "openvino") if each.severity == "error"]
    assert bool(errors) is not is_default
    lowered = ts.lower(made, "openvino")
    assert ts.lower(lowered, "openvino") == lowered
    for each in (made, lowered) if is_default else ():
        engine: Any = "openvino" if runs else "tensorsplit"
        found = ts.run(each, {"x": np.ones((2, 3), np.float32)}, engine=engine)
        assert [part.shape for part in found.values()] == [(1, 3), (1, 3)]


@also_run_by("openvino")
@pytest.mark.parametrize(
    ("shape", "axis", "lengths", "severity"),
    [
        ([4], 0, [2, 2], "error"),
        (["N"], 0, [2, 2], "error"),
        (["N"], 0, None, "warning"),
        (["N", 4], 1, [2, 2], "warning"),
        ([4, "N"], 1, None, "warning"),
    ],
)
def test_openvino_splits_strings_right_where_it_does_not_know_the_shape_of_a_part(
    shape: list[Any], axis: int, lengths: list[int] | None, severity: str, runs: bool
) -> None:
    """Its parts of a known shape are wrong, or the process ends (D17)."""
    data = value("x", onnx.TensorProto.STRING, shape)
    open_shape = [None] * len(shape)
    ends = [value("b", onnx.TensorProto.STRING, open_shape)]
    given = [tensor("l", lengths)] if lengths else []
    split = node("Split", "x l" if lengths else "x", "a b", axis=axis)
    made = model(graph([split], [data], ends, given), 13)
    said = "later parts repeat the first elements"
    found = {each.severity for each in check(made, "openvino") if said in each.message}
    assert found == {severity}
    strings = np.array([str(number) for number in range(4 ** len(shape))], object)
    strings = strings.reshape([4] * len(shape))
    engine: Any = "openvino" if runs else "tensorsplit"
    for each in [ts.lower(made, "openvino"), *([made] if severity == "warning" else [])]:
        part = ts.run(each, {"x": strings}, engine=engine)["b"]
        assert part.tolist() == np.split(strings, 2, axis)[1].tolist()


@pytest.mark.parametrize("called_with", ["x", "s", "x s", "s x"])
def test_a_function_may_split_strings_in_one_of_its_calls(called_with: str) -> None:
    calls = " ".join(f"{name}1, {name}2 = own.F({name})" for name in called_with.split())
    made = parse_model(
        f"""<ir_version: 8, opset_import: ["": 13, "own": 1]>
        g (float[4] x, string[4] s) => (float[A] x2, string[B] s2) {{ {calls}
        {" ".join(f"{name}2 = Identity({name})" for name in {"x", "s"} - set(called_with))} }}
        <opset_import: ["": 13], domain: "own"> F(d) => (a, b) {{ a, b = Split(d) }}"""
    )
    said = "later parts repeat the first elements"
    found = [each.severity for each in check(made, "openvino") if said in each.message]
    assert found == ["error"] * ("s" in called_with)


STRINGS = {
    "a later part": ("int64[2] l = {1, 3}", "a, y = Split(x, l)", "error"),
    "a part of no elements": ("int64[3] l = {4, 0, 0}", "a, y, b = Split(x, l)", "warning"),
    "a part behind no elements": ("int64[2] l = {0, 4}", "a, y = Split(x, l)", "warning"),
    "the shape of a part": ("int64[2] l = {1, 3}", "a, b = Split(x, l) y = Shape(b)", "warning"),
    "a shape that follows": (
        "int64[2] l = {1, 3}, int64[1] one = {1}",
        "a, b = Split(x, l) c = Gather(b, one) d = Unsqueeze(c, one) y = Shape(d)",
        "warning",
    ),
    "a part that nothing needs": (
        "int64[2] l = {1, 3}, int64[1] one = {1}",
        "y, b = Split(x, l) c = Gather(b, one)",
        "warning",
    ),
}


@also_run_by("openvino")
@pytest.mark.parametrize(("given", "nodes", "severity"), STRINGS.values(), ids=STRINGS.keys())
def test_openvino_splits_strings_right_where_their_elements_are_not_used_or_come_first(
    given: str, nodes: str, severity: str, runs: bool
) -> None:
    kind = "int64" if "Shape" in nodes else "string"
    made = parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g (string[4] x) => ({kind}[N] y)
        <{given}> {{ {nodes} }}"""
    )
    said = "later parts repeat the first elements"
    found = {each.severity for each in check(made, "openvino") if said in each.message}
    assert found == {severity}
    x = np.array(["a", "b", "c", "d"], object)
    expected = ts.run(made, {"x": x})["y"].tolist()
    if runs:
        got = ts.run(made, {"x": x}, engine="openvino")["y"].tolist()
        assert (got == expected) == (severity == "warning")


def test_what_is_said_of_a_node_is_not_said_of_the_model_again() -> None:
    """OpenVINO computes double in float32, in whatever node."""
    data = value("x", onnx.TensorProto.DOUBLE, [4])
    for nodes, place, what in (
        ([node("Split", "x", "a b", num_outputs=2)], "graph/Split[0]", "; this node "),
        ([node("Neg", "x", "a")], "graph", "; this model "),
    ):
        made = model(graph(nodes, [data], ["a"]))
        told = [each for each in check(made, "openvino") if "computes double" in each.message]
        assert [each.node for each in told] == [place]
        assert what in told[0].message


def test_nothing_is_said_of_the_nodes_of_a_function_that_nobody_calls() -> None:
    split = node("Split", "v", "a b", num_outputs=2, axis=-1)
    called = function("F", "v", "a b", [split], ["axis"])
    made = model(graph([node("Neg", "x", "y")], [X], ["y"]), functions=[called])
    found = examine(made, "portable")
    assert [each.code for each in found.findings if each.node != "graph"] == ["TS813"]
    assert found.split_nodes == 0


@pytest.mark.parametrize("target", profiles.targets())
def test_every_limitation_is_written_in_full(target: Any) -> None:
    """What each feature looks like has its words, and a target that is none says its rules."""
    profile = profiles.load(target)
    for entry in profile.entries:
        value_seen = entry.values[0] if entry.values else True
        operator = entry.operators[0] if entry.operators else "Split"
        features: dict[str, Any] = dict.fromkeys(entry.also, True)
        features |= {"operator": operator, entry.feature: value_seen}
        texts = [f.message for f in of_features(profile, features, "graph/n").values()]
        assert any(text.startswith(profile.sentence(entry)) and "this" in text for text in texts)
        assert bool(entry.requires) == (entry.verdict == "unsupported")


@pytest.mark.parametrize(("kind", "is_found"), [("string", True), ("float", False)])
@pytest.mark.parametrize("operator", ["Expand", "Tile"])
def test_openvino_repeats_no_strings(operator: str, kind: str, is_found: bool) -> None:
    text = f"g ({kind}[1] x, int64[1] s) => ({kind}[N] y) {{y = {operator}(x, s)}}"
    made = parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}')
    messages = [finding.message for finding in check(made, "openvino")]
    assert any("Tile of strings" in message for message in messages) is is_found


@pytest.mark.parametrize("target", profiles.targets())
def test_another_element_type_is_advised_only_where_the_type_is_at_fault(target: Any) -> None:
    profile = profiles.load(target)
    advised = {
        entry.feature
        for entry in profile.entries
        if "element type" in advice(profile, entry) + advice_on_layer(profile, entry)
    }
    assert advised <= {"element_type"}


RUN_TIME_LENGTHS = [
    "g (float[N] x, int64[2] l) => (float[?] a, float[?] b) {a, b = Split<axis = 0>(x, l)}",
    "g (float[6] x, int64[K] l) => (float[?] a, float[?] b) {a, b = Split<axis = -1>(x, l)}",
    "g (float[N] x) => (float[?] a, float[?] b) {a, b = Split<num_outputs = 2>(x)}",
    "g (float[N] x) => (float[?] a) {l = Constant<value = int64[2] {2, 4}>() a, b = Split(x, l)}",
]


@pytest.mark.parametrize("target", ["openvino", "portable"])
@pytest.mark.parametrize("text", RUN_TIME_LENGTHS)
def test_what_is_lowered_needs_no_lowering(text: str, target: Any) -> None:
    original = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 18]> {text}')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.SplitWarning)
        lowered = ts.lower(original, target=target)
        assert ts.lower(lowered, target=target).graph == lowered.graph
    assert not [finding for finding in check(lowered, target) if "lower" in finding.fix]


@pytest.mark.parametrize(
    ("op_type", "place", "other"),
    [
        *(("Shape", 0, "l"), ("Gather", 1, "one"), ("Slice", 1, "one")),
        *(("Less", 0, "one"), ("ReduceSum", 0, "l"), ("Equal", 1, "one")),
    ],
)
def test_what_checks_something_else_is_no_check(op_type: str, place: int, other: str) -> None:
    original = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 18]> {RUN_TIME_LENGTHS[0]}'
    )
    lowered = ts.lower(original, target="portable")
    one = onnx.helper.make_tensor("one", onnx.TensorProto.INT64, [1], [1])
    lowered.graph.initializer.append(one)
    assert not check(lowered, "portable")[1:]
    # the first Less only bounds the dimension; the last one finds sums that leave 32 bits
    place_of = {"Less": 1}.get(op_type, -1)
    changed = [node for node in lowered.graph.node if node.op_type == op_type][place_of]
    changed.input[place] = other
    assert "TS841" in codes(lowered, "portable")


@pytest.mark.parametrize("target", ["jaxonnxruntime", "onnx2torch", "opencv", "tinygrad", "tract"])
@pytest.mark.parametrize("made", ["SequenceConstruct (b, a)", "SequenceInsert (e, a)"])
def test_engines_without_sequences_have_none_that_are_not_split(target: Any, made: str) -> None:
    """They refuse what makes a sequence, whether it is SplitToSequence or another operator."""
    joined = parse_model(f"""<ir_version: 8, opset_import: ["" : 13]>
    g (float[6] x) => (float[N] y) {{
      a, b = Split <axis = 0> (x)
      e = SequenceEmpty ()
      s = {made}
      y = ConcatFromSequence <axis = 0> (s)
    }}""")
    found = [each for each in check(joined, target) if each.severity == "error"]
    wanted = "SequenceConstruct" if "Construct" in made else "SequenceEmpty"
    assert any(wanted in each.message for each in found)


def test_an_engine_without_an_operator_is_quoted_about_that_operator() -> None:
    split = node("Split", "x", "a b", num_outputs=2)
    (found,) = check(model(graph([split], [X], ["a", "b"])), "onnx2torch")
    assert "operation_type='Split', version=18" in found.message


@pytest.mark.parametrize(("target", "copies"), [("onnxruntime", 1), ("openvino", 0)])
def test_functions_are_put_in_place_only_for_a_target_that_differs_there(
    target: Any, copies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = parse_model("""<ir_version: 8, opset_import: ["": 18, "own": 1]>
        g (float[N] x, bool c) => (float[N] y) { v = own.f(x) y = If(c) <
        then_branch = t () => (float[N] p) { p = Neg(v) },
        else_branch = e () => (float[N] q) { q = Abs(v) }> }
        <domain: "own", opset_import: ["": 18]> f (a) => (b) { b = Neg(a) }""")
    clone = MagicMock(side_effect=RuntimeError("as of a model that can't be copied"))
    monkeypatch.setattr(ir.Model, "clone", clone)
    check(made, target)
    assert clone.call_count == copies


@pytest.mark.parametrize(
    ("opset", "first", "second", "said"),
    [
        (10, "Identity(p)", "Identity(q)", "branches give different shapes"),
        (9, "Flatten(p)", "ReduceMax<axes = [0], keepdims = 0>(p)", "branches give different"),
        (10, "Identity(p)", "Neg(p)", ""),
        (10, "Identity(p)", "Identity(o)", ""),
        (9, "Identity(r)", "Identity(q)", ""),  # r is a part of an open axis
        (10, "Neg(r)", "Identity(q)", ""),
        (10, "Identity(r)", "Flatten<axis = 0>(r)", ""),
        (10, "Identity(r)", "ReduceMax<axes = [0], keepdims = 0>(r)", "branches give different"),
        (11, "Identity(p)", "Identity(q)", ""),
    ],
)
@pytest.mark.engine("onnxruntime")
def test_branches_of_different_shapes_are_refused_before_opset_11(
    opset: int, first: str, second: str, said: str
) -> None:
    """The standard asks for one shape there, and ONNX Runtime 1.32.0 does not load the model."""
    model = parse_model(f"""<ir_version: 4, opset_import: ["": {opset}]> g (bool c, float[3,2] x,
        float[N,2] o) => (float[] y) {{ p, q = Split<axis = 0, split = [1, 2]>(x)
        r, s = Split<axis = 0, split = [1, 1]>(o) y = If(c)
        <then_branch = t () => (float[] v) {{ v = {first} }}, else_branch = e () => (float[] w)
        {{ w = {second} }}> }}""")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    found = [each for each in ts.check(model, "onnxruntime") if each.severity == "error"]
    assert [each.node for each in found] == (["graph/If[2]"] if said else [])
    feed = {"c": np.array(True), "x": np.ones((3, 2), np.float32), "o": np.ones((2, 2), np.float32)}
    if said:
        assert said in found[0].message
        assert "--opset 13" in found[0].fix
        with refused("TS513", "opset 13"):
            ts.lower(model, "onnxruntime")
        with refused("TS603", "inferred"):
            ts.run(model, feed, engine="onnxruntime")
        model = ts.convert(model, opset=13)
    got = ts.run(model, feed, engine="onnxruntime")["y"]
    wanted = -np.ones((1, 2)) if first == "Neg(r)" else np.ones((1, 2))
    np.testing.assert_array_equal(got, np.float32(wanted), strict=True)


@pytest.mark.parametrize("target", ["onnxruntime", "openvino"])
@pytest.mark.parametrize("kind", ["complex64", "complex128", "double"])
@also_run_by("onnxruntime", "openvino")
def test_an_input_that_nothing_reads_has_to_be_of_a_type_that_the_engine_has(
    kind: str, target: Any, *, runs: bool
) -> None:
    model = parse_model(f"""<ir_version: 10, opset_import: ["": 18]> g (float[4] x, {kind}[2] u)
        => (float[A] y, float[B] z) {{ y, z = Split<axis = 0, num_outputs = 2>(x) }}""")
    feed = {"x": np.arange(1, 5, dtype=np.float32), "u": np.ones(2, kind)}
    is_refused = kind != "double"
    found = [each for each in ts.check(model, target) if "has no tensors" in each.message]
    assert [(each.severity, each.node) for each in found] == [("error", "graph")] * is_refused
    if is_refused:
        with refused("TS513", "can't hold data of complex64"):
            ts.lower(model, target)
    if runs and is_refused:
        with refused("TS603", "MLDataType" if target == "onnxruntime" else "Unsupported"):
            ts.run(model, feed, engine=target)
    elif runs:
        np.testing.assert_array_equal(ts.run(model, feed, engine=target)["z"], [3, 4])
