"""Every output of a split is one of its parts, also one that has no name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import tensorsplit as ts
from tests.model.build import FLOAT, graph, model, node, value

X = np.random.default_rng(4).standard_normal((6, 2)).astype(np.float32)


@pytest.fixture
def made() -> onnx.ModelProto:
    split = node("Split", "x", "a _ _", num_outputs=3)
    return model(graph([split], [value("x", FLOAT, [6, 2])], ["a"]), opset=18)


@pytest.mark.parametrize(
    "tool",
    [
        lambda made: ts.convert(made, opset=13),
        lambda made: ts.convert(made, opset=21),
        ts.infer_shapes,
        lambda made: ts.lower(made, target="onnxruntime"),
        lambda made: ts.lower(made, target="portable"),
    ],
    ids=["convert down", "convert up", "infer", "lower for onnxruntime", "lower for portable"],
)
@pytest.mark.parametrize("kind", ["message", "onnx-ir"])
def test_the_tools_keep_outputs_without_a_name(
    made: onnx.ModelProto, tool: Callable[[Any], Any], kind: str
) -> None:
    result = tool(made if kind == "message" else ir.serde.deserialize_model(made))
    np.testing.assert_array_equal(ts.run(result, {"x": X})["a"], X[:2])
    assert not [finding for finding in ts.check(result) if finding.severity == "error"]


def test_a_body_keeps_them_too() -> None:
    body = graph([node("Split", "x", "a _", num_outputs=2)], [], ["a"])
    choice = node("If", "c", "y", then_branch=body, else_branch=body)
    inputs = [value("x", FLOAT, [6, 2]), value("c", onnx.TensorProto.BOOL, [])]
    result = ts.convert(model(graph([choice], inputs, ["y"]), opset=18), opset=13)
    np.testing.assert_array_equal(ts.run(result, {"x": X, "c": np.array(True)})["y"], X[:3])
