"""onnx's reference evaluator, alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorsplit.conformance.subjects import unsupported

KIND = "engine"
PACKAGES = ("onnx",)
MODULES = ("onnx.reference",)
FORMATS = ("onnx",)

IMPORTS = """\
import onnx
from onnx.reference import ReferenceEvaluator"""
SCRIPT = """\
evaluator = ReferenceEvaluator(onnx.load_from_string(MODEL))
results = dict(zip(OUTPUTS, evaluator.run(list(OUTPUTS), INPUTS)))"""


def run(
    model: bytes, weights: bytes, inputs: dict[str, Any], outputs: Sequence[str]
) -> dict[str, Any]:
    """Run a model; see `tensorsplit.conformance.subjects`."""
    import onnx
    from onnx.reference import ReferenceEvaluator

    del weights
    with unsupported(model, NotImplementedError, says="^No implementation for operator"):
        evaluator = ReferenceEvaluator(onnx.load_from_string(model))
        return dict(zip(outputs, evaluator.run(list(outputs), inputs), strict=True))
