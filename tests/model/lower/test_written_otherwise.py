"""Nodes that a target takes wrong are written otherwise, and mean the same in our own engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import checker, parser

import tensorsplit as ts
from tensorsplit.model.lower import lower_graph
from tensorsplit.model.reading import open_model
from tests.model.lower.running import Runner

WRITTEN = [
    (13, "(float[N,5] x) => (float[A,B] y) { y = ReduceLogSumExp<axes = [1]>(x) }"),
    (13, "(float[N,5] x) => (float[A] y) { y = ReduceLogSumExp<axes = [1], keepdims = 0>(x) }"),
    (13, "(float[N,5] x) => (float[A,B] y) { y = ReduceL1<axes = [0]>(x) }"),
    (13, "(float[N,5] x) => (float[A] y) { p = Abs(x) y = ReduceLogSum<axes=[-1],keepdims=0>(p) }"),
    (11, "(float[N,3,5] x) => (float[A,B,C] y) { y = Softmax<axis = 1>(x) }"),
    (11, "(float[N,3,5] x) => (float[A,B,C] y) { y = Softmax<axis = -2>(x) }"),
    (17, "(float[N,5,1] x) => (float[A,B,C] y) { y = DFT<axis = 1, onesided = 1>(x) }"),
    (17, "(float[5,N,1] x) => (float[A,B,C] y) { y = DFT<axis = -2, onesided = 1>(x) }"),
    (17, "(float[N,5,1] x) => (float[A,B,C] y) { y = DFT<axis = 0, onesided = 1>(x) }"),
    (20, "(float[N,6,1] x) => (float[A,B,C] y) { y = DFT<onesided = 1>(x) }"),
    (
        20,
        """(float[5,N,1] x) => (float[A,B,C] y) <int64 k = {0}>
        { y = DFT<onesided = 1>(x, , k) }""",
    ),
    *(
        (
            18,
            f"""(int64 n, int64 m) => (int64[A] y)
            <int64 up = {{2}}, int64 down = {{-2}}> {{ y = Range({ends}) }}""",
        )
        for ends in ("n, m, up", "m, n, up", "n, m, down", "m, n, down")
    ),
    *(
        (
            21,
            f"""(float[N,5] x) => (float[A,B] y, float[C,D] z)
            <float s = {{0.25}}, {kind} o = {{7}}>
            {{ q = QuantizeLinear(x, s, o) y = DequantizeLinear(q, s, o)
            z = DequantizeLinear(q, s, o) }}""",
        )
        for kind in ("uint16", "int16")
    ),
    (18, "(float[N,5] x, bool[K] c) => (float[A] y) { y = Compress(x, c) }"),
    (18, "(int8[5] x, int8[M,5,N] w) => (int32[A,B] y) { y = MatMulInteger(x, w) }"),
    (18, "(float[N,5] x) => (int64[A] y) { s = Shape(x) h = Sub(s, s) t = Sub(h, s) y = Abs(t) }"),
    (
        13,
        """(float[N,6] x, bool[1,1] c) => (float[A,B] y) { y = If(c)
        <then_branch = t () => (float[C,D] a) { a = Neg(x) },
        else_branch = e () => (float[E,F] b) { b = Abs(x) }> }""",
    ),
    (
        13,
        """(float[N,5] x) => (float[A,B] y) <float k = {200}>
        { m = Sub(x, k) y = ReduceLogSumExp<axes = [-1]>(m) }""",
    ),
]
"""Models by their opset; each is changed by lowering for OpenVINO."""


def feeds(made: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Return random inputs; N is 4, M 3 and K as many as there are elements."""
    random, sizes = np.random.default_rng(5), {"N": 4, "M": 3, "K": 20}
    found = {}
    for given in made.graph.input:
        tensor = given.type.tensor_type
        shape = [each.dim_value or sizes[each.dim_param] for each in tensor.shape.dim]
        kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        whole = {"n": 9, "m": 2}.get(given.name)
        drawn = np.full(shape, whole) if whole is not None else random.normal(0, 3, shape)
        found[given.name] = (drawn > 0 if kind.kind == "b" else drawn).astype(kind)
    return found


@pytest.mark.parametrize(("opset", "text"), WRITTEN)
def test_what_is_written_in_the_place_of_a_node_gives_the_same(opset: int, text: str) -> None:
    made = parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]> g {text}')
    lowered = ts.lower(made, target="openvino")
    assert [node.op_type for node in lowered.graph.node] != [n.op_type for n in made.graph.node]
    checker.check_model(lowered, full_check=True)
    assert ts.lower(lowered, target="openvino") == lowered
    given = feeds(made)
    expected, found = ts.run(made, given), ts.run(lowered, given)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-5)
        assert (found[name].dtype, found[name].shape) == (value.dtype, value.shape)


@pytest.mark.parametrize(
    ("opset", "text", "noted"),
    [
        (18, "(int8[5] x, int8[] w) => (int32[] y) { y = MatMulInteger(x, w) }", "1 more"),
        (17, "(float[] x) => (float[] y) { y = DFT<axis = -2>(x) }", "from the back"),
        (17, "(float[] x) => (float[] y) { y = DFT<onesided = 1>(x) }", "a slice"),
        (13, "(int32[N,5] x) => (int32[A,B] y) { y = ReduceLogSum<axes = [1]>(x) }", "axes"),
        (11, "(float[] x) => (float[] y) { y = Softmax(x) }", "alone"),
    ],
)
def test_a_node_that_can_not_be_written_otherwise_stays_and_is_noted(
    opset: int, text: str, noted: str
) -> None:
    made = parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]> g {text}')
    report = lower_graph(open_model(made), "openvino")
    assert report.changes == []
    assert [noted in note for note in report.notes].count(True) == 1


WORDS = {
    "uint32": (onnx.TensorProto.UINT32, "uint64_data"),
    "bfloat16": (onnx.TensorProto.BFLOAT16, "int32_data"),
    "float8e4m3fn": (onnx.TensorProto.FLOAT8E4M3FN, "int32_data"),
    "float8e5m2": (onnx.TensorProto.FLOAT8E5M2, "int32_data"),
}


def held_in_words(kind: str, place: str) -> onnx.ModelProto:
    """Return a model that casts 1, 2, 3, 4 to float: a constant as `helper.make_tensor` has it."""
    elements = 1 if place == "ConstantOfShape" else 4
    tensor = onnx.helper.make_tensor("c", WORDS[kind][0], [elements], [1, 2, 3, 4][-elements:])
    assert len(getattr(tensor, WORDS[kind][1])) == elements
    tensor.doc_string = "said of it"
    model = parser.parse_model("""<ir_version: 10, opset_import: ["": 21]> g (int64[1] n, bool b) =>
        (float[N] y) { y = Cast<to = 1>(c) }""")
    inner = model.graph
    if place == "a branch":
        model = parser.parse_model("""<ir_version: 10, opset_import: ["": 21]> g (int64[1] n,
            bool b) => (float[N] y) { y = If(b) <then_branch = t () => (float[N] p)
            { p = Cast<to = 1>(c) },
            else_branch = e () => (float[N] q) { q = Cast<to = 1>(n) }> }""")
        inner = model.graph.node[0].attribute[0].g
    if place == "an initializer":
        inner.initializer.append(tensor)
    else:
        made = "Constant" if place != "ConstantOfShape" else place
        given = ["n"] if place == "ConstantOfShape" else []
        inner.node.insert(0, onnx.helper.make_node(made, given, ["c"], value=tensor))
    return model


@pytest.mark.parametrize("target", ["openvino", "portable"])
@pytest.mark.parametrize("place", ["an initializer", "a node", "a branch", "ConstantOfShape"])
@pytest.mark.parametrize("kind", WORDS)
def test_constants_that_are_written_in_words_become_bytes(
    kind: str, place: str, target: Any, process: Runner
) -> None:
    """OpenVINO reads the words as bytes: 3 of bfloat16 is 16448, and uint32 has a 0 between two."""
    model = held_in_words(kind, place)
    said = [each.severity for each in ts.check(model, target) if "bytes" in each.message]
    if target == "openvino":
        assert said == ["warning"]
    lowered = ts.lower(model, target)
    assert not [each for each in ts.check(lowered, target) if "bytes" in each.message]
    assert ts.lower(lowered, target) == lowered
    assert b"said of it" in lowered.SerializeToString()
    feed = {"n": np.array([4]), "b": np.array(True)}
    wanted = [4.0] * 4 if place == "ConstantOfShape" else [1.0, 2.0, 3.0, 4.0]
    ((got,),) = process.call(["openvino", lowered.SerializeToString(), [feed], 1])
    assert got.tolist() == wanted


@pytest.mark.parametrize("shape", ["6", "N"])
@pytest.mark.parametrize("bits", ["n", "one"])
def test_bytes_that_are_shifted_to_the_right_are_not_rounded(
    bits: str, shape: str, process: Runner
) -> None:
    """OpenVINO divides: 3 shifted by 1 is 2."""
    more = f", uint8[{shape}] n" if bits == "n" else ""
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
        g (uint8[{shape}] x{more}) => (uint8[{shape}] y) <uint8[1] one = {{1}}>
        {{ y = BitShift<direction = "RIGHT">(x, {bits}) }}""")
    (found,) = [each for each in ts.check(model, "openvino") if "shifted" in each.message]
    assert (found.code, found.severity) == ("TS843", "warning")
    lowered = ts.lower(model, "openvino")
    assert not [each for each in ts.check(lowered, "openvino") if "shifted" in each.message]
    rng = np.random.default_rng(7)
    x, n = rng.integers(0, 256, 6, np.uint8), rng.integers(0, 8, 6, np.uint8)
    feed = {"x": x, "n": n} if bits == "n" else {"x": x}
    ((got,),) = process.call(["openvino", lowered.SerializeToString(), [feed], 1])
    by = 2 ** (n if bits == "n" else np.ones_like(n)).astype(int)
    assert got.tolist() == (x.astype(int) // by).tolist()


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
@pytest.mark.parametrize("number", [0, 3])
def test_one_number_has_no_places(number: int, engine: Any, process: Runner) -> None:
    """The page of NonZero: for scalar input the shape is (0, N), which is different from NumPy."""
    model = parser.parse_model("""<ir_version: 8, opset_import: ["": 13]> g (float[N] x) =>
        (int64[A,B] y) <int64 first = {0}> { p = Gather(x, first) y = NonZero(p) }""")
    (found,) = [each for each in ts.check(model, engine) if "one row" in each.message]
    assert (found.code, found.severity) == ("TS842", "error")
    lowered = ts.lower(model, engine)
    assert not [each for each in ts.check(lowered, engine) if "one row" in each.message]
    feed = {"x": np.array([number], np.float32)}
    ((got,),) = process.call([engine, lowered.SerializeToString(), [feed], 1])
    assert (got.shape, str(got.dtype)) == ((0, int(number != 0)), "int64")


@pytest.mark.engine("openvino")
@pytest.mark.parametrize(
    ("kind", "is_limited"), [("uint8", True), ("int8", True), ("int16", False)]
)
@pytest.mark.parametrize("operator", ["Add", "Mul", "Sub"])
def test_what_8_bits_do_not_hold_is_warned_of(operator: str, kind: str, is_limited: bool) -> None:
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]> g ({kind}[2] x,
        {kind}[2] w) => ({kind}[2] y) {{ y = {operator}(x, w) }}""")
    found = [each.severity for each in ts.check(model, "openvino") if "lowest 8" in each.message]
    assert found == ["warning"] * is_limited
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    x = np.array([low if operator == "Sub" else high, 7], kind)
    feed = {"x": x, "w": np.array([2, 3], kind)}
    (got,), (own,) = (ts.run(model, feed, engine=each).values() for each in ("openvino", "numpy"))
    beyond, right = {"Add": (high + 2, 10), "Mul": (high * 2, 21), "Sub": (low - 2, 4)}[operator]
    assert own.tolist() == [np.array(beyond).astype(kind), right]
    assert got.tolist() == [x[0] if is_limited else own[0], right]


@pytest.mark.engine("openvino")
@pytest.mark.parametrize(("dims", "is_open"), [("N,3,4", True), ("2,C,4", True), ("2,3,W", False)])
def test_openvino_loads_no_pool_of_unknown_planes(dims: str, is_open: bool) -> None:
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 13]> g (float[{dims}] x) =>
        (float[A,B,C] y) {{ y = GlobalLpPool<p = 1>(x) }}""")
    found = [
        each.severity for each in ts.check(model, "openvino") if "First dimension" in each.message
    ]
    assert found == ["error"] * is_open
    x = np.random.default_rng(8).uniform(1, 2, (2, 3, 4)).astype(np.float32)
    if is_open:
        with pytest.raises(ts.SplitError, match="is_static"):
            ts.run(model, {"x": x}, engine="openvino")
    else:
        (got,) = ts.run(model, {"x": x}, engine="openvino").values()
        np.testing.assert_allclose(got, x.sum(-1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize(
    ("shapes", "is_of_none"),
    [("A,B | 0,3", True), ("4,0 | K,3", True), ("4,B | K,3", False), ("4,B | 0,0", False)],
)
def test_a_product_of_integers_is_of_none_by_either_factor(shapes: str, is_of_none: bool) -> None:
    one, other = shapes.split(" | ")
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 13]> g (int8[{one}] x,
        int8[{other}] w) => (int32[C,D] y) {{ y = MatMulInteger(x, w) }}""")
    found = [each for each in ts.check(model, "onnxruntime") if "never written" in each.message]
    assert bool(found) is is_of_none


@pytest.mark.parametrize(
    ("shape", "axes", "count"),
    [
        ((1, 1, "N", 4), (), 4),
        ((1, 1, "N", 4), (2,), 1),
        (("A", "B"), (1, 0), 2),
        (None, (1,), 1),
        (None, (), None),
    ],
)
def test_a_resize_is_shown_how_many_sizes_it_has(shape: Any, axes: Any, count: int | None) -> None:
    """One for each axis that it names, or that there is; else that stays open."""
    named = f"axes = [{', '.join(map(str, axes))}]," if axes else ""
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 18]> g (float x, int64[K] l)
        => (y) {{ y = Resize<{named} mode = "nearest">(x, , , l) }}""")
    data = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)
    model.graph.input[0].CopyFrom(data)
    lowered = ts.lower(model, target="onnxruntime")
    made = {node.output[0]: node for node in lowered.graph.node}
    resize = made["y"]
    if count is None:
        assert resize.input[3] == "l"
        return
    reshape = made[resize.input[3]]
    (held,) = made[reshape.input[1]].attribute
    assert (reshape.op_type, reshape.input[0]) == ("Reshape", "l")
    assert onnx.numpy_helper.to_array(held.t).tolist() == [count]
