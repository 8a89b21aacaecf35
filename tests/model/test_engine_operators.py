"""Operators that engines have in ONNX's own domain at opsets at which ONNX has none.

The optimiser of ONNX Runtime writes them, whatever the opset of the model.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import tensorsplit as ts
from tests.model.build import graph, model, node, value
from tests.refusals import refused

EPSILON = 0.25


def optimised(op_type: str, opset: int, outputs: str = "n") -> onnx.ModelProto:
    """A normalisation that is split along its last axis, as the optimiser writes it."""
    operands = "x s b" if op_type == "LayerNormalization" else "x s"
    parts = {"num_outputs": 2} if opset >= 18 else {}
    nodes = [
        node(op_type, operands, outputs, axis=-1, epsilon=EPSILON, name="norm"),
        node("Split", "n", "p q", axis=-1, **parts),
    ]
    inputs = [value("x", shape=["N", 4]), value("s", shape=[4]), value("b", shape=[4])]
    ends = [value(name, shape=["N", 2]) for name in "pq"]
    return model(graph(nodes, inputs[: len(operands.split())], ends), opset)


def feeds_of(made: onnx.ModelProto, rng: np.random.Generator, dtype: Any = np.float32) -> Any:
    shapes = {"x": (3, 4), "s": (4,), "b": (4,)}
    names = [entry.name for entry in made.graph.input]
    return {name: rng.normal(size=shapes[name]).astype(dtype) for name in names}


def expected(op_type: str, x: Any, s: Any, b: Any = 0) -> Any:
    """Normalise by the mean of squares, after the mean was taken away or not."""
    if op_type == "LayerNormalization":
        x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + EPSILON) * s + b


CASES = pytest.mark.parametrize(
    ("op_type", "opset"),
    [
        ("LayerNormalization", 11),
        ("LayerNormalization", 16),
        ("SimplifiedLayerNormalization", 11),
        ("SimplifiedLayerNormalization", 18),
    ],
)


@CASES
def test_they_are_run_and_inferred_as_what_onnx_has(
    op_type: str, opset: int, rng: np.random.Generator
) -> None:
    made = optimised(op_type, opset)
    feeds = feeds_of(made, rng)
    normal = expected(op_type, **feeds)
    got = ts.run(made, feeds)
    np.testing.assert_allclose(got["p"], normal[:, :2], rtol=1e-5)
    np.testing.assert_allclose(got["q"], normal[:, 2:], rtol=1e-5)
    (inferred,) = (each for each in ts.infer_shapes(made).graph.value_info if each.name == "n")
    dims = inferred.type.tensor_type.shape.dim
    assert [dim.dim_value or dim.dim_param for dim in dims] == ["N", 4]


@CASES
@pytest.mark.parametrize("target", [None, "onnxruntime", "openvino"])
def test_check_warns_that_onnx_has_none(op_type: str, opset: int, target: Any) -> None:
    """It is no error: engines run them."""
    (found,) = ts.check(optimised(op_type, opset), target=target)
    assert (found.code, found.severity, found.node) == ("TS509", "warning", "graph/norm")
    assert f"no operator '{op_type}' at opset {opset}" in found.message


@CASES
def test_their_signature_is_that_of_what_onnx_has(op_type: str, opset: int) -> None:
    def errors(made: onnx.ModelProto) -> list[str]:
        return [each.message for each in ts.check(made) if each.code == "TS502"]

    made = optimised(op_type, opset, "n d")
    assert errors(made) == []
    made.graph.node[0].output.extend(["e", "f"])
    assert len(errors(made)) == 1
    made = optimised(op_type, opset)
    made.graph.node[0].attribute.append(helper.make_attribute("epsilons", 1.0))
    assert len(errors(made)) == 1
    made = optimised(op_type, opset)
    del made.graph.node[0].input[:]
    with refused("TS502", "graph/norm", "0 inputs"):
        ts.run(made, {})


def test_a_function_of_the_model_is_no_operator_of_engines() -> None:
    made = optimised("LayerNormalization", 11)
    body = [node("Add", "x s", "t"), node("Add", "t b", "n")]
    opsets = [helper.make_opsetid("", 11)]
    made.functions.append(
        helper.make_function(
            *("", "LayerNormalization", ["x", "s", "b"], ["n"], body, opsets, ["axis", "epsilon"])
        )
    )
    made.ir_version = 8
    assert ts.check(made) == []


@CASES
@pytest.mark.parametrize("target", [7, 10, 13, 17, 21, 23])
def test_convert_writes_what_onnx_has(
    op_type: str, opset: int, target: int, rng: np.random.Generator
) -> None:
    made = optimised(op_type, opset)
    feeds = feeds_of(made, rng)
    converted = ts.convert(made, opset=target)
    onnx.checker.check_model(converted, full_check=True)
    assert ts.check(converted) == []
    normal = expected(op_type, **feeds)
    np.testing.assert_allclose(ts.run(converted, feeds)["q"], normal[:, 2:], rtol=1e-5)


def with_both() -> onnx.ModelProto:
    """A normalisation of which both outputs are used."""
    made = optimised("SimplifiedLayerNormalization", 13, "n d")
    made.graph.output.append(value("d", shape=["N", 1]))
    return made


def test_a_second_output_is_not_converted_where_onnx_has_none() -> None:
    with refused("TS512", "graph/norm", "RMSNormalization", "one output"):
        ts.convert(with_both(), opset=23)


@pytest.mark.parametrize("second", ["d", ""])
def test_a_second_output_that_nothing_reads_is_left_out(
    second: str, rng: np.random.Generator
) -> None:
    made = optimised("SimplifiedLayerNormalization", 13, "n d")
    made.graph.node[0].output[1] = second
    feeds = feeds_of(made, rng)
    converted = ts.convert(made, opset=23)
    onnx.checker.check_model(converted, full_check=True)
    assert list(converted.graph.node[0].output) == ["n"]
    for each in (made, converted):
        normal = expected("SimplifiedLayerNormalization", **feeds)
        np.testing.assert_allclose(ts.run(each, feeds)["q"], normal[:, 2:], rtol=1e-5)


def test_a_second_output_is_not_run() -> None:
    made = with_both()
    feeds = feeds_of(made, np.random.default_rng(0))
    with refused("TS509", "graph/norm", "RMSNormalization", "one output"):
        ts.run(made, feeds)


def test_the_first_of_two_outputs_is_inferred() -> None:
    inferred = {each.name: each.type for each in ts.infer_shapes(with_both()).graph.value_info}
    dims = inferred["n"].tensor_type.shape.dim
    assert [dim.dim_value or dim.dim_param for dim in dims] == ["N", 4]


@CASES
def test_lower_knows_the_rank_of_what_they_give(op_type: str, opset: int) -> None:
    lowered = ts.lower(optimised(op_type, opset), target="portable")
    assert [each for each in ts.check(lowered, "portable") if each.severity == "error"] == []


@pytest.mark.engine
@CASES
@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_engines_run_them(op_type: str, opset: int, engine: Any, rng: np.random.Generator) -> None:
    pytest.importorskip(engine)
    made = optimised(op_type, opset)
    feeds = feeds_of(made, rng)
    got = ts.run(made, feeds, engine=engine)
    np.testing.assert_allclose(got["q"], expected(op_type, **feeds)[:, 2:], rtol=1e-4)


EXPERIMENTAL: dict[str, dict[str, Any]] = {
    "Affine": {"alpha": 2.0, "beta": 1.0},
    "Crop": {"border": [0, 0, 0, 0]},
    "ImageScaler": {"scale": 2.0, "bias": [1.0, 1.0]},
    "MeanVarianceNormalization": {"across_channels": 0},
    "ParametricSoftplus": {"alpha": 2.0, "beta": 1.0},
    "Scale": {"scale": 2.0},
    "ScaledTanh": {"alpha": 1.0, "beta": 1.0},
}


def tried(op_type: str, opset: int = 7) -> onnx.ModelProto:
    """A split of what an operator gives that was experimental in ONNX before opset 10."""
    nodes = [node(op_type, "x", "t", **EXPERIMENTAL[op_type]), node("Split", "t", "p q", axis=1)]
    ends = [value(name, shape=["N", 1, 4, 4]) for name in "pq"]
    made = model(graph(nodes, [value("x", shape=["N", 2, 4, 4])], ends), opset)
    made.ir_version = 6
    return made


@pytest.mark.parametrize("op_type", EXPERIMENTAL)
def test_check_warns_of_operators_that_onnx_had_for_trial(op_type: str) -> None:
    (found,) = (each for each in ts.check(tried(op_type)) if each.code == "TS509")
    assert (found.severity, found.node) == ("warning", f"graph/{op_type}[0]")
    assert found.fix == "write it with operators of ONNX"


def test_they_are_an_error_where_no_engine_has_them() -> None:
    (found,) = (each for each in ts.check(tried("Crop", 10)) if each.code == "TS509")
    assert found.severity == "error"


@pytest.mark.parametrize("op_type", sorted(EXPERIMENTAL.keys() - {"MeanVarianceNormalization"}))
def test_what_onnx_had_for_trial_is_not_converted(op_type: str) -> None:
    with refused("TS512", f"graph/{op_type}[0]", f"no operator {op_type} at opset 7"):
        ts.convert(tried(op_type), opset=13)


@pytest.mark.engine
@pytest.mark.parametrize("op_type", EXPERIMENTAL)
def test_onnxruntime_has_what_onnx_had_for_trial(op_type: str, rng: np.random.Generator) -> None:
    pytest.importorskip("onnxruntime")
    x = rng.normal(size=(3, 2, 4, 4)).astype(np.float32)
    got = ts.run(tried(op_type), {"x": x}, engine="onnxruntime")
    assert got["q"].shape == (3, 1, 4, 4)


@pytest.mark.parametrize("opset", [7, 10, 13])
def test_a_rectifier_with_a_threshold_is_run_and_converted(
    opset: int, rng: np.random.Generator
) -> None:
    x = rng.normal(size=(3, 4)).astype(np.float32)
    nodes = [node("ThresholdedRelu", "x", "t", alpha=0.5), node("Split", "t", "p q", axis=1)]
    ends = [value(name, shape=["N", 2]) for name in "pq"]
    made = model(graph(nodes, [value("x", shape=["N", 4])], ends), 7)
    for each in (made, ts.convert(made, opset=opset)):
        np.testing.assert_array_equal(ts.run(each, {"x": x})["q"], np.where(x > 0.5, x, 0)[:, 2:])
