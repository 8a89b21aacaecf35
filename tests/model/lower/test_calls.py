"""What calls of a function give, and what the function's nodes make of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.parser import parse_model

from tensorsplit.engines import run
from tensorsplit.engines.compare import Reference
from tensorsplit.model.check.checker import check
from tensorsplit.model.lower import lower

MEASURED = ("onnxruntime@1.31.1", "onnxruntime@1.32.0")
"""Versions that drop the axis of chunks of a given length of 1, and fail for a longer one."""

TARGETS = (*MEASURED, "openvino", "portable")

OF_CALL = "takes keepdims from calls of its function, and gives split (D8)"


def called(operands: str, given: int) -> onnx.ModelProto:
    """Return a model that takes the first tensor of a function, for which a call gives keepdims."""
    dims = "" if operands == "x" and not given else "P,"
    return parse_model(
        '<ir_version: 8, opset_import: ["": 18, "own": 1]>'
        f" g (float[A,3] x) => (float[{dims}3] y) <int64 c = {{2}}, int64[2] l = {{2, 3}},"
        f" int64 i = {{0}}> {{ s = own.cut<k = {given}>(x, c, l)  y = SequenceAt(s, i) }}"
        ' <domain: "own", opset_import: ["": 18]> cut <k> (x, c, l) => (s)'
        f" {{ s = SplitToSequence<axis = 0, keepdims: int = @k>({operands}) }}"
    )


def of_keepdims(model: onnx.ModelProto, target: Any) -> list[str]:
    return [each.message for each in check(model, target=target) if "keepdims" in each.message]


def data() -> Any:
    return np.random.default_rng(3).random((5, 3), np.float32)


@pytest.mark.parametrize("given", [0, 1])
@pytest.mark.parametrize("operands", ["x, c", "x, l"])
@pytest.mark.parametrize("target", TARGETS)
def test_keepdims_that_a_call_gives_is_ignored_where_split_is_given(
    operands: str, given: int, target: Any
) -> None:
    model, x = called(operands, given), data()
    told = of_keepdims(model, target)
    assert any(OF_CALL in text for text in told) is (target in MEASURED)
    made = lower(model, target=target)
    wrong = {node.attribute[1].i for node in made.graph.node if list(node.input) == ["x", "c"]}
    assert not made.functions
    assert 0 not in wrong
    assert np.array_equal(run(made, {"x": x})["y"], x[:2])


@pytest.mark.parametrize("given", [0, 1])
@pytest.mark.parametrize("target", TARGETS)
def test_keepdims_that_a_call_gives_is_followed_where_split_is_not_given(
    given: int, target: Any
) -> None:
    model, x = called("x", given), data()
    assert of_keepdims(model, target) == []
    made = lower(model, target=target)
    assert [each.name for each in made.functions] == (["cut"] if target in MEASURED else [])
    assert np.array_equal(run(made, {"x": x})["y"], x[:1] if given else x[0])


@pytest.mark.engine("onnxruntime")
@pytest.mark.parametrize("given", [0, 1])
@pytest.mark.parametrize("operands", ["x, c", "x, l"])
def test_onnxruntime_keeps_the_axis_whatever_a_call_gives(operands: str, given: int) -> None:
    x = data()
    made = lower(called(operands, given), target="onnxruntime")
    assert Reference("it", {"y": x[:2]}).differences(made, {"x": x}, "onnxruntime") == []


@pytest.mark.engine("onnxruntime")
@pytest.mark.parametrize(("opset", "is_inlined"), [(9, False), (13, True), (18, True)])
def test_a_function_with_a_node_that_onnx_infers_no_types_of_is_inlined(
    opset: int, is_inlined: bool
) -> None:
    """`One and only one of the attributes`: onnxruntime does not load it."""
    model = parse_model(f"""<ir_version: 8, opset_import: ["": {opset}, "own": 1]>
        g (float[2,3,2,2] x) => (float[2,3,2,2] y) {{ y = own.F(x) }}
        <domain: "own", opset_import: ["": {opset}]> F (x) => (y)
        {{ v = MeanVarianceNormalization(x) y = Neg(v) }}""")
    said = [each.severity for each in check(model, "onnxruntime") if "load" in each.message]
    assert said == ["error"] * is_inlined
    made = lower(model, target="onnxruntime")
    assert bool(made.functions) is not is_inlined
    x = np.random.default_rng(4).random((2, 3, 2, 2), np.float32)
    y = (x.mean((0, 2, 3), keepdims=True) - x) / x.std((0, 2, 3), keepdims=True)
    (got,) = run(made, {"x": x}, engine="onnxruntime").values()
    np.testing.assert_allclose(got, y, rtol=1e-4, atol=1e-5)


@pytest.mark.engine("onnxruntime")
def test_what_a_body_in_a_function_gives_out_has_a_type() -> None:
    model = parse_model("""<ir_version: 8, opset_import: ["": 13, "own": 1]>
        g (float[2,3] x) => (float[2,2,3] y) { y = own.F(x) }
        <domain: "own", opset_import: ["": 13]> F (x) => (y) { v = Scan<num_scan_inputs = 1,
        body = b (float[3] row) => (float[2,3] o) { o = MeanVarianceNormalization<axes = [0]>(x) }
        >(x) y = Neg(v) }""")
    assert not [each for each in check(model, "onnxruntime") if each.severity == "error"]
    x = np.random.default_rng(4).random((2, 3), np.float32)
    (got,) = run(model, {"x": x}, engine="onnxruntime").values()
    np.testing.assert_allclose(got, [(x.mean(0) - x) / x.std(0)] * 2, rtol=1e-4, atol=1e-4)


OVERLOADS = {
    "the graph": ("F:o(x)", {}),
    "a function": ("G(x)", {"G": "F:o(a)"}),
    "an overload": ("G:n(x)", {"G:n": "F:o(a)"}),
    "a function of a function": ("H(x)", {"H": "G(a)", "G": "F:o(a)"}),
}
"""Where an overload is called: by the graph, and by functions of the model."""


def with_overload(where: str, *, is_hidden: bool) -> onnx.ModelProto:
    """Return a model that negates by an overload; a function of its name alone may double."""
    text, others = OVERLOADS[where]

    def call(text: str, to: str) -> onnx.NodeProto:
        (name, _, overload), operand = text[:-3].partition(":"), text[-2]
        return helper.make_node(name, [operand], [to], domain="own", overload=overload)

    bodies = {name: call(inner, "b") for name, inner in others.items()}
    bodies["F:o"] = helper.make_node("Neg", ["a"], ["b"])
    if is_hidden:
        bodies["F"] = helper.make_node("Add", ["a", "a"], ["b"])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    functions = []
    for key, body in bodies.items():
        name, _, overload = key.partition(":")
        made = helper.make_function("own", name, ["a"], ["b"], [body], opsets, overload=overload)
        functions.append(made)
    ends = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [3]) for name in "xy")
    data, result = ends
    graph = helper.make_graph([call(text, "y")], "g", [data], [result])
    return helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=10)


@pytest.mark.parametrize("is_hidden", [False, True])
@pytest.mark.parametrize("where", OVERLOADS)
def test_onnxruntime_calls_overloads_from_the_graph_only(where: str, is_hidden: bool) -> None:
    """In other functions it looks for one of that name without an overload: these are inlined."""
    target: Any = "onnxruntime@1.32.0"
    model, x = with_overload(where, is_hidden=is_hidden), np.array([1, 2, 3], np.float32)
    told = [each for each in check(model, target=target) if each.code == "TS841"]
    inner = OVERLOADS[where][1]
    assert [each.severity for each in told] == (["error"] if inner else [])
    made = lower(model, target=target)
    left = {each.name for each in made.functions}
    assert left == ({"F"} if inner else {each.name for each in model.functions})
    assert "error" not in {each.severity for each in check(made, target=target)}
    assert np.array_equal(run(made, {"x": x})["y"], -x)


@pytest.mark.engine("onnxruntime")
@pytest.mark.parametrize("is_hidden", [False, True])
@pytest.mark.parametrize("where", OVERLOADS)
def test_onnxruntime_runs_overloads_after_lowering(where: str, is_hidden: bool) -> None:
    x = np.array([1, 2, 3], np.float32)
    made = lower(with_overload(where, is_hidden=is_hidden), target="onnxruntime")
    assert Reference("it", {"y": -x}).differences(made, {"x": x}, "onnxruntime") == []
