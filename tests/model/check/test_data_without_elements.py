"""Data without elements, such as a part of length 0, in nodes that engines do wrong with them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

import tensorsplit as ts
from tensorsplit import SplitError
from tests.marks import also_run_by
from tests.model.check.untyped_outputs import check
from tests.model.ir_files import IrFile

RECURRENT = "w = Expand(one, ws) r = Expand(one, rs) y, h = {}<hidden_size = 3>(p, w, r)"
BATCH, STEPS = "p, q = Split<axis = 1>(x, l) ", "p, q = Split<axis = 0>(x, l) "
LSTM, GRU, RNN = (
    f"int64[3] ws = {{1, {rows}, 2}}, int64[3] rs = {{1, {rows}, 3}}" for rows in (12, 9, 3)
)
SAID = (
    *("data without elements", "to a dimension of 0", "of 0 elements", "slices without elements"),
    *("along an axis without elements", "weights without elements along"),
)
ENGINES = ("onnxruntime", "openvino")
OLD = {"Softmax": ((9, ENGINES[1:]), (11, ())), "LogSoftmax": ((11, ENGINES[1:]), (13, ()))}
TURNED = "p, q = Split<axis = 1>(x, l) k = Transpose<perm = [0, 2, 1]>(p) "
FLAT = STEPS + "v = Reshape(p, s) k = Transpose(v) w = Reshape(x, t) "
NONE = FLAT + "e = Slice(w, i, i, o) "
WIDE = "int64[2] s = {0, 8}, int64[2] t = {8, 4}, float[1, 8] c = {1, 2, 3, 4, 5, 6, 7, 8}"

CASES = {
    "LSTM without a batch": (BATCH + RECURRENT.format("LSTM"), LSTM, ENGINES),
    "GRU without a batch": (BATCH + RECURRENT.format("GRU"), GRU, ENGINES),
    "GRU without steps": (STEPS + RECURRENT.format("GRU"), GRU, ENGINES),
    "RNN without a batch": (BATCH + RECURRENT.format("RNN"), RNN, ENGINES[1:]),
    "Einsum of two": (TURNED + 'y = Einsum<equation = "abc,acb->a">(p, k)', "", ENGINES),
    "Einsum of one": (BATCH + 'y = Einsum<equation = "abc->ca">(p)', "", ()),
    "Expand": ("a = Abs(x) b = Slice(a, i, o) c = Expand(b, i) y = Neg(c)", "", ENGINES),
    "Expand to the shape of a part": (
        "p, q = Split(x, l) s = Shape(p) a = Slice(x, i, o) b = Expand(a, s) y = Neg(b)",
        "",
        ENGINES,
    ),
    "Expand of no elements": ("p, q = Split(x, l) s = Shape(p) y = Expand(p, s)", "", ENGINES[1:]),
    "TopK of 0": ("y, w = TopK(x, i)", "", ENGINES[1:]),
    "TopK of 1": ("y, w = TopK(x, o)", "", ()),
    "MatMul of two": (TURNED + "y = MatMul(p, k)", "", ENGINES[1:]),
    "MatMul along no elements": (TURNED + "y = MatMul(k, p)", "", ENGINES[1:]),
    "MatMul by a Transpose of two axes": (FLAT + "y = MatMul(v, k)", WIDE, ENGINES[1:]),
    "MatMul of a Transpose of two axes": (FLAT + "y = MatMul(k, v)", WIDE, ENGINES[1:]),
    "MatMul of a constant": (FLAT + "y = MatMul(c, k)", WIDE, ENGINES[1:]),
    "MatMul by a Transpose of elements": (
        FLAT + "u = Transpose(w) j = Identity(u) y = MatMul(v, j)",
        WIDE.replace("8, 4}", "4, 8}"),
        ENGINES[1:],
    ),
    "MatMul of none transposed": (FLAT + "y = MatMul(v, w)", WIDE, ()),
    "MatMul of one transposed twice": (FLAT + "j = Transpose(k) y = MatMul(j, w)", WIDE, ()),
    "MatMul of one transposed otherwise": (
        BATCH + "r = Reshape(x, t) u = Transpose<perm = [1, 0, 2]>(p) y = MatMul(u, r)",
        "int64[3] t = {1, 2, 16}",
        (),
    ),
    "Gemm of none transposed": (FLAT + "y = Gemm(v, w)", WIDE, ()),
    "Gemm of one transposed twice": (FLAT + "y = Gemm<transA = 1>(k, w)", WIDE, ()),
    "Gemm of one transposed": (FLAT + "y = Gemm<transA = 1>(v, v)", WIDE, ENGINES[1:]),
    "Gemm by one transposed": (FLAT + "y = Gemm<transB = 1>(v, v)", WIDE, ENGINES[1:]),
    "MatMulInteger": (
        FLAT
        + "a = Cast<to = 2>(v) b = Cast<to = 2>(w) d = MatMulInteger(a, b) y = Cast<to = 1>(d)",
        WIDE,
        ENGINES[1:],
    ),
    "MatMul of int32": (
        FLAT + "a = Cast<to = 6>(v) b = Cast<to = 6>(w) d = MatMul(a, b) y = Cast<to = 1>(d)",
        WIDE,
        ENGINES[1:],
    ),
    "MatMul of int64": (
        FLAT + "a = Cast<to = 7>(v) b = Cast<to = 7>(w) d = MatMul(a, b) y = Cast<to = 1>(d)",
        WIDE,
        ENGINES[1:],
    ),
    "MatMul of no sums, read by a node": (NONE + "d = MatMul(e, v) y = Abs(d)", WIDE, ENGINES[1:]),
    "MatMul of no sums": (NONE + "y = MatMul(e, v)", WIDE, ()),
    "Gemm of no sums, added to": (NONE + "y = Gemm(e, v, c)", WIDE, ENGINES[1:]),
    "Gemm of no sums": (NONE + "y = Gemm(e, v)", WIDE, ()),
    "MatMul by a constant": (BATCH + "y = MatMul(p, m)", "float[2, 3] m = {1, 2, 3, 4, 5, 6}", ()),
    "MatMul of elements": ("k = Transpose<perm = [0, 2, 1]>(x) y = MatMul(x, k)", "", ()),
    "MaxPool without a batch": (STEPS + "y = MaxPool<kernel_shape = [2]>(p)", "", ENGINES[1:]),
    "Unique": (STEPS + "y = Unique(p)", "", ENGINES[1:]),
    "ReduceMax of nothing": (BATCH + "y = ReduceMax<axes = [1]>(p)", "", ENGINES[1:]),
    "ReduceMax of no int32": (
        BATCH + "c = Cast<to = 6>(p) d = ReduceMax<axes = [1]>(c) y = Cast<to = 1>(d)",
        "",
        (),
    ),
    "ReduceMin of no int64": (
        BATCH + "c = Cast<to = 7>(p) d = ReduceMin<axes = [1]>(c) y = Cast<to = 1>(d)",
        "",
        ENGINES[1:],
    ),
    "ReduceMin of nothing": (BATCH + "y = ReduceMin<axes = [1]>(p)", "", ENGINES[1:]),
    "ReduceMax along others": (BATCH + "y = ReduceMax<axes = [2]>(p)", "", ()),
    "a Transpose of axes of length 1": (
        BATCH + "u = Unsqueeze(p, o) y = Transpose<perm = [0, 2, 1, 3]>(u)",
        "",
        ENGINES[1:],
    ),
    "a Transpose of others": (
        BATCH + "u = Unsqueeze(p, o) y = Transpose<perm = [0, 1, 3, 2]>(u)",
        "",
        (),
    ),
    "MatMulInteger along no elements": (
        BATCH + "k = Transpose<perm = [0, 2, 1]>(p) a = Cast<to = 2>(k) b = Cast<to = 2>(p)"
        " d = MatMulInteger(a, b) y = Cast<to = 1>(d)",
        "",
        ENGINES,
    ),
    "Unique along an axis": (BATCH + "y = Unique<axis = 0>(p)", "", ENGINES),
    "Conv of planes without elements": (
        TURNED + "y = Conv(k, w)",
        "float[1, 2, 1] w = {1, 2}",
        ENGINES,
    ),
    "Conv without a batch": (
        "u = Transpose<perm = [0, 2, 1]>(x) p, q = Split<axis = 0>(u, l) y = Conv(p, w)",
        "float[1, 2, 1] w = {1, 2}",
        (),
    ),
    "a pool of norms, of no channels": (BATCH + "y = GlobalLpPool(p)", "", ENGINES),
    "a pool of norms, without a batch": (STEPS + "y = GlobalLpPool(p)", "", ()),
    "Hardmax": (TURNED + "y = Hardmax<axis = 1>(k)", "", ENGINES[1:]),
    "LogSoftmax": (BATCH + "y = LogSoftmax<axis = 1>(p)", "", ()),
    "Einsum of one that moves an axis of length 1": (
        'p, q = Split<axis = 0>(x, l) r = ReduceSum(p, o) y = Einsum<equation = "abc->bac">(r)',
        "",
        ENGINES[1:],
    ),
    "Compress along another axis": (
        TURNED + "y = Compress<axis = 1>(k, t)",
        "bool[2] t = {1, 0}",
        ENGINES[1:],
    ),
    "Expand to more": ("a = Slice(x, i, o) y = Expand(a, t)", "int64[3] t = {4, 1, 1}", ()),
}

BY_CHANCE = ("MatMulInteger along no elements", "onnxruntime")
"""It gives what is in memory, which is 0 by chance."""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CASES)
def test_engines_that_do_wrong_without_elements_are_warned_of(name: str, engine: Any) -> None:
    pytest.importorskip(engine)
    nodes, more, wrong_in = CASES[name]
    made = parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[4, 4, 2] x) => (float y)
        <int64[2] l = {{0, 4}}, int64[1] i = {{0}}, int64[1] o = {{1}}, float one = {{1.0}}
        {"," if more else ""} {more}> {{ {nodes} }}"""
    )
    made.graph.output[0].type.tensor_type.ClearField("shape")
    found = [
        each.severity for each in check(made, engine) if any(map(each.message.__contains__, SAID))
    ]
    assert found == ["warning"] * (engine in wrong_in)
    feeds = {"x": np.arange(32, dtype=np.float32).reshape(4, 4, 2)}
    if (name, engine) != BY_CHANCE:
        assert is_right(made, feeds, engine) == (engine not in wrong_in)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("sides", "severities"), [("2,0", ["warning"]), ("2,1", [])])
@pytest.mark.parametrize("op_type", ["Conv", "ConvInteger"])
def test_windows_without_elements_are_warned_of(
    op_type: str, sides: str, severities: list[str], engine: Any
) -> None:
    """By such weights a Conv never ends in onnxruntime 1.32.0, so that nothing is run here."""
    pytest.importorskip(engine)
    kind, result = ("float", "float") if op_type == "Conv" else ("uint8", "int32")
    made = parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g ({kind}[1,3,5,4] x, {kind}[2,3,{sides}] w)
        => ({result}[1,2,C,D] y) {{ y = {op_type}(x, w) }}"""
    )
    found = [each.severity for each in check(made, engine) if SAID[-1] in each.message]
    assert found == severities


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("side", "severities"), [(0, ["warning"]), (1, [])])
def test_regions_of_planes_without_elements_are_warned_of(
    side: int, severities: list[str], engine: Any
) -> None:
    """Both engines read memory that is not the data's; onnxruntime 1.32.0 died of it once."""
    made = parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[1,2,3,{side}] x, float[N,4] r,
        int64[N] b) => (float[N,2,C,D] y) {{ y = RoiAlign(x, r, b) }}"""
    )
    found = [each.severity for each in check(made, engine) if "without elements" in each.message]
    assert found == severities


def is_right(made: onnx.ModelProto, feeds: dict[str, Any], engine: Any) -> bool:
    """Return whether the engine gives the right result; its process may die."""
    try:
        got = ts.run(made, feeds, engine=engine)["y"]
    except SplitError as error:
        return error.code not in ("TS603", "TS604")
    expected = ts.run(made, feeds)["y"]
    return got.shape == expected.shape and bool(np.allclose(got, expected, rtol=1e-5))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dims", ["2,3,0", "0,2"])
@pytest.mark.parametrize("op_type", OLD)
def test_old_softmaxes_of_nothing_are_warned_of(op_type: str, dims: str, engine: Any) -> None:
    pytest.importorskip(engine)
    for opset, wrong_in in OLD[op_type]:
        made = parse_model(
            f"""<ir_version: 8, opset_import: ["": {opset}]> g (float[{dims}] x)
            => (float y) {{ y = {op_type}<axis = 0>(x) }}"""
        )
        made.graph.output[0].type.tensor_type.ClearField("shape")
        found = [each for each in check(made, engine) if "without elements" in each.message]
        assert bool(found) == (engine in wrong_in)
        assert is_right(
            made, {"x": np.zeros([*map(int, dims.split(","))], np.float32)}, engine
        ) == (not found)


FED = {
    "a GRU": ("y = GRU<hidden_size = 1>(x, w, r)", "float[1,3,2] w, float[1,3,1] r", ENGINES),
    "an LSTM": ("y = LSTM<hidden_size = 1>(x, w, r)", "float[1,4,2] w, float[1,4,1] r", ENGINES),
    "an RNN": ("y = RNN<hidden_size = 1>(x, w, r)", "float[1,1,2] w, float[1,1,1] r", ENGINES[1:]),
    "an RNN of known batch": (
        "p, q = Split<axis = 1>(x, l) y = RNN<hidden_size = 1>(q, w, r)",
        "float[1,1,2] w, float[1,1,1] r",
        (),
    ),
    "a TopK": (
        "s = Shape(x) k = Gather(s, o) y, i = TopK<axis = 0>(a, k)",
        "float[3,2] a",
        ENGINES[1:],
    ),
    "a TopK of more": (
        "s = Shape(x) j = Gather(s, o) k = Add(j, o) y, i = TopK<axis = 0>(a, k)",
        "float[3,2] a",
        (),
    ),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", FED)
def test_engines_that_do_wrong_where_no_elements_are_fed_are_warned_of(
    name: str, engine: Any
) -> None:
    pytest.importorskip(engine)
    nodes, inputs, wrong_in = FED[name]
    made = parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[T,N,2] x, {inputs}) => (float y)
        <int64[2] l = {{0, 2}}, int64[1] o = {{1}}> {{ {nodes} }}"""
    )
    made.graph.output[0].type.tensor_type.ClearField("shape")
    found = [
        each.severity
        for each in check(made, engine)
        if "batch may be 0" in each.message or "a TopK whose" in each.message
    ]
    assert found == ["warning"] * (engine in wrong_in)
    rng = np.random.default_rng(5)
    batch = 2 if "known batch" in name else 0
    feeds = {
        entry.name: rng.normal(
            size=[
                {"T": 3, "N": batch}.get(d.dim_param, d.dim_value)
                for d in entry.type.tensor_type.shape.dim
            ]
        ).astype(np.float32)
        for entry in made.graph.input
    }
    assert is_right(made, feeds, engine) == (engine not in wrong_in)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("steps", [0, 3])
@pytest.mark.parametrize(("op_type", "gates"), [("GRU", 3), ("LSTM", 4), ("RNN", 1)])
def test_recurrent_layers_that_may_have_no_steps_are_warned_of(
    op_type: str, gates: int, steps: int, engine: Any
) -> None:
    """The last state is the first one then, which neither engine gives back."""
    pytest.importorskip(engine)
    declared = "T" if steps == 0 else steps
    made = parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[{declared},2,3] x,
        float[1,{gates},3] w, float[1,{gates},1] r, float[1,2,1] h) => (float[1,2,1] y)
        {{ all, y = {op_type}<hidden_size = 1>(x, w, r, "", "", h) }}"""
    )
    found = {each.severity for each in check(made, engine) if "may have no steps" in each.message}
    assert found == ({"warning"} if steps == 0 else set())
    rng = np.random.default_rng(6)
    shapes = {"x": (steps, 2, 3), "w": (1, gates, 3), "r": (1, gates, 1), "h": (1, 2, 1)}
    feeds = {name: rng.uniform(0.5, 1, size).astype(np.float32) for name, size in shapes.items()}
    assert is_right(made, feeds, engine) == (steps > 0)


X = np.random.default_rng(2).standard_normal((4, 4, 2)).astype(np.float32)
BOTH = '<data mode="bidirectional"/>'
NUMPY, ALONG = '<data mode="numpy"/>', '<data keep_dims="true"/>'
LARGEST = '<data axis="1" mode="max" sort="value" index_element_type="i64"/>'
PRODUCT, SUMS = '<data transpose_a="true"/>', '<data equation="abc,adc->abd"/>'


class Layer(NamedTuple):
    """A layer of ``x``, or of a part of length 0 of it, and of constants; whether it is wrong."""

    kind: str
    operands: tuple[str | int | tuple[int, ...], ...]
    data: str
    is_wrong: bool
    expected: Any


LAYERS = {
    "Broadcast": Layer("Broadcast", ("part", (4, 0, 2)), NUMPY, True, np.zeros((4, 0, 2))),
    "Broadcast to nothing": Layer(
        "Broadcast", ("row", (4, 0, 2)), NUMPY, False, np.zeros((4, 0, 2))
    ),
    "Broadcast both ways": Layer("Broadcast", ("row", (4, 0, 2)), BOTH, True, np.zeros((4, 0, 2))),
    "Broadcast of elements": Layer(
        "Broadcast", ("x", (2, 4, 4, 2)), NUMPY, False, np.broadcast_to(X, (2, 4, 4, 2))
    ),
    "MatMul": Layer("MatMul", ("part", "part"), PRODUCT, True, np.zeros((4, 2, 2))),
    "MatMul by one transposed": Layer(
        "MatMul", ("part", "x"), '<data transpose_b="1"/>', True, np.zeros((4, 0, 4))
    ),
    "MatMul of a Transpose": Layer("MatMul", ("turned", "part"), "", True, np.zeros((4, 2, 2))),
    "MatMul of none transposed": Layer("MatMul", ("part", "tall"), "", False, np.zeros((4, 0, 4))),
    "MatMul of one transposed twice": Layer(
        "MatMul", ("turned", "tall"), PRODUCT, False, np.zeros((4, 0, 4))
    ),
    "ReduceMax": Layer("ReduceMax", ("part", (1,)), ALONG, True, np.full((4, 1, 2), -np.inf)),
    "ReduceMax along others": Layer("ReduceMax", ("part", (2,)), ALONG, False, np.zeros((4, 0, 1))),
    "TopK of 0": Layer("TopK", ("x", 0), LARGEST, True, np.zeros((4, 0, 2))),
    "TopK of 2": Layer("TopK", ("x", 2), LARGEST, False, np.sort(X, 1)[:, :1:-1]),
    "Einsum": Layer("Einsum", ("part", "part"), SUMS, True, np.zeros((4, 0, 0))),
    "Transpose": Layer("Transpose", ("thin", (1, 0, 2)), "", True, np.zeros((0, 1, 2))),
    "Transpose of others": Layer("Transpose", ("part", (1, 0, 2)), "", False, np.zeros((0, 4, 2))),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("layout", [2, 100, -10])
def test_a_layout_that_is_none_says_nothing_of_the_batch(layout: int, engine: Any) -> None:
    model = parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[s, b, 2] x, float[1, 9, 2] w, float[1, 9, 3] r) => (y)
        {{ y = GRU<hidden_size = 3, layout = {layout}>(x, w, r) }}"""
    )
    assert not [each for each in ts.check(model, target=engine) if "a batch of 0" in each.message]


def file_of(layer: Layer) -> IrFile:
    """Write a file with such a layer; ``row`` has one element along the second axis."""
    ir = IrFile()
    x, axis = ir.parameter("x", "f32", "4,4,2", "x"), ir.int64(1, scalar=True)
    part, row, _ = ir.layer("VariadicSplit", (x, axis, ir.int64(0, 1, 3)), 3)
    first = ir.int64(0, scalar=True)
    thin, _ = ir.layer("VariadicSplit", (part, first, ir.int64(1, 3)), 2)
    (turned,) = ir.layer("Transpose", (part, ir.int64(0, 2, 1)), 1)
    (tall,) = ir.layer("Reshape", (x, ir.int64(4, 2, 4)), 1, '<data special_zero="false"/>')
    known = {"x": x, "part": part, "row": row, "thin": thin, "turned": turned, "tall": tall}
    held = [
        known[each]
        if isinstance(each, str)
        else ir.int64(*each)
        if isinstance(each, tuple)
        else ir.int64(each, scalar=True)
        for each in layer.operands
    ]
    version = {"Broadcast": "opset3", "TopK": "opset3", "Einsum": "opset7"}.get(
        layer.kind, "opset1"
    )
    made = ir.layer(layer.kind, held, 1 + (layer.kind == "TopK"), layer.data, version=version)
    ir.result(made[0])
    return ir


@also_run_by("openvino")
@pytest.mark.parametrize("name", LAYERS)
def test_layers_that_do_wrong_without_elements_are_warned_of(
    name: str, tmp_path: Path, runs: bool
) -> None:
    ir, is_wrong = file_of(LAYERS[name]), LAYERS[name].is_wrong
    text = re.sub(r'<layer id="([0-9]+)" type', r'<layer id="\1" name="l\1" type', ir.text)
    path = ir.save(tmp_path, text)
    found = [each for each in check(path, "openvino") if any(map(each.message.__contains__, SAID))]
    assert [each.severity for each in found] == ["warning"] * is_wrong
    if runs:
        assert gives(path, LAYERS[name].expected) is not is_wrong


def gives(path: Path, expected: Any) -> bool:
    """Return whether OpenVINO gives what is expected of a file; its process may die."""
    try:
        (got, *_) = ts.run(path, {"x": X}, engine="openvino").values()
    except SplitError as error:
        return error.code not in ("TS603", "TS604")
    return bool(np.array_equal(got, expected))
