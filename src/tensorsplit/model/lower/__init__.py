"""Lowering: an equal model that a target engine runs."""

from __future__ import annotations

import os
import warnings
from typing import overload

import onnx
import onnx_ir as ir

from tensorsplit.core.errors import SplitWarning
from tensorsplit.model.graph.building import full_collections_deferred
from tensorsplit.model.lower.state import LoweredNode, LoweringReport
from tensorsplit.model.lower.steps import lower_graph
from tensorsplit.model.profiles import Target
from tensorsplit.model.reading import open_model

__all__ = ["LoweredNode", "LoweringReport", "lower", "lower_graph"]


@overload  # first: to a checker without stubs of protobuf a message is of any class
def lower(model: str | os.PathLike[str] | onnx.ModelProto, target: Target) -> onnx.ModelProto: ...
@overload
def lower(model: ir.Model, target: Target) -> ir.Model: ...
@full_collections_deferred()
def lower(
    model: str | os.PathLike[str] | onnx.ModelProto | ir.Model, target: Target
) -> onnx.ModelProto | ir.Model:
    """Make an equal model that an engine runs: its splits and moves are exact.

    Only what the target was measured not to run, or to run wrongly, is changed; see
    `model.profiles`. Where the parts of a sequence are chosen at run time, an index out of range
    makes the engine fail, as it must.

    Args:
        model: A path, an ``onnx.ModelProto`` or an ``onnx_ir.Model``; it is left as it is.
        target: ``onnxruntime``, ``openvino``, or ``portable``: no sequence operators, explicit
            lengths, axes counted from the front, no functions.

    Returns:
        The model, of the kind that came in (a ``ModelProto`` for a path); one that the target
        runs as it is comes back unchanged.

    Raises:
        SplitError: TS501 to TS504 for the model; TS601 for the target; TS1xx to TS3xx for a split
            node that is wrong; TS513 for what can't be lowered, with the reason and the node; TS512
            for a node of a function that is not expressible at the model's opset.

    Warns:
        SplitWarning: If the target silently changes some values of the data, such as those of
            double that float32 does not hold, on OpenVINO.

    Example:
        >>> lowered = ts.lower("uneven.onnx", target="portable")
        >>> ts.check(lowered, target="portable")
        []
    """
    opened = open_model(model)
    report = lower_graph(opened, target)
    for text in report.warnings:
        warnings.warn(text, SplitWarning, stacklevel=3)  # `full_collections_deferred` is in between
    return opened.back(bool(report.changes))
