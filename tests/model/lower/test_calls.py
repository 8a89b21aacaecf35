"""What calls of a function give, and what the function's nodes make of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

from tensorsplit.engines import run
from tensorsplit.engines.compare import compare
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
    assert compare(made, {"x": x}, ["onnxruntime"], reference={"y": x[:2]}) == []
