"""This package's own engine: its rules for the split operators, onnx's evaluator for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorsplit.model.graph.reading import OnnxModel
from tensorsplit.model.openvino_ir.ir import OpenVinoModel, run_ir
from tensorsplit.model.run.evaluate import run_onnx


def run(model: OnnxModel | OpenVinoModel, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Run a model in this process.

    Args:
        model: The model.
        inputs: What is fed, by name.

    Returns:
        The outputs by name, in the graph's order.

    Raises:
        SplitError: TS1xx to TS5xx.
    """
    if isinstance(model, OpenVinoModel):
        return run_ir(model, inputs)
    return run_onnx(model, inputs)
