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
    feed = {"n": np.array([4]), "b": np.array(True)}
    wanted = [4.0] * 4 if place == "ConstantOfShape" else [1.0, 2.0, 3.0, 4.0]
    ((got,),) = process.call(["openvino", lowered.SerializeToString(), [feed], 1])
    assert got.tolist() == wanted
