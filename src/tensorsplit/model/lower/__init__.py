"""Lowering: an equal model that a target engine runs."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, overload

import onnx
import onnx_ir as ir

from tensorsplit.core.errors import SplitWarning
from tensorsplit.model.graph.building import full_collections_deferred
from tensorsplit.model.lower.split_layers import LoweredIr, lower_ir
from tensorsplit.model.lower.state import LoweredNode, LoweringReport
from tensorsplit.model.lower.steps import lower_graph
from tensorsplit.model.profiles import Target
from tensorsplit.model.reading import OnnxModel, open_model, read_model

__all__ = [
    "LoweredIr",
    "LoweredModel",
    "LoweredNode",
    "LoweringReport",
    "lower",
    "lower_graph",
    "lower_ir",
    "lowered",
]


@dataclass(frozen=True, slots=True)
class LoweredModel:
    """A model that was lowered, ONNX or an OpenVINO IR.

    Attributes:
        source: What was read; of ONNX its graph is lowered in place.
        made: What it has become.
        report: What was done.
    """

    source: OnnxModel
    made: onnx.ModelProto | LoweredIr
    report: LoweringReport

    @contextmanager
    def read(self) -> Iterator[OnnxModel]:
        """Read the lowered model; that of an IR from files that are removed afterwards."""
        if isinstance(self.made, LoweredIr):
            with self.made.reread() as model:
                yield model
        else:
            yield replace(self.source, original=self.made, path=None)


def lowered(source: OnnxModel, target: str | os.PathLike[str]) -> LoweredModel:
    """Lower a model that was read, and warn of nothing; SplitError as of `lower`."""
    if source.openvino is not None:
        return LoweredModel(source, *lower_ir(source, target))
    opened = open_model(source)
    report = lower_graph(opened, target)
    return LoweredModel(opened, opened.proto(bool(report.changes)), report)


@overload  # first: to a checker without stubs of protobuf a message is of any class
def lower(model: onnx.ModelProto, target: Target) -> onnx.ModelProto: ...
@overload  # an IR gives another type, which a checker can't see of a path: Any allows for both
def lower(model: str | os.PathLike[str], target: Target) -> onnx.ModelProto | Any: ...
@overload
def lower(model: ir.Model, target: Target) -> ir.Model: ...
@full_collections_deferred()
def lower(
    model: str | os.PathLike[str] | onnx.ModelProto | ir.Model, target: Target
) -> onnx.ModelProto | ir.Model | LoweredIr:
    """Make an equal model that an engine runs: its splits and moves are exact.

    Only what the target was measured not to run, or to run wrongly, is changed; see
    `model.profiles`. Where the parts of a sequence are chosen at run time, an index out of range
    makes the engine fail, as it must.

    What is noted of a node (``metadata_props``, ``doc_string``, annotations of its outputs) goes to
    the nodes in its place. Of one that leaves none, as in a branch that is never taken, it is lost.

    Of an OpenVINO IR, split layers that OpenVINO runs wrongly are changed, and all others stay as
    they are, byte for byte: lengths that only the running model knows are checked, and strings are
    taken one by one. A Transpose before a recurrent layer is changed where something else reads the
    same turned data.

    Args:
        model: A path, an ``onnx.ModelProto`` or an ``onnx_ir.Model``; it is left as it is. For
            ``openvino`` also the path of an IR (``.xml``).
        target: ``onnxruntime``, ``openvino``, or ``portable``: no sequence operators, explicit
            lengths, axes counted from the front, no functions.

    Returns:
        The model, of the kind that came in (a ``ModelProto`` for a path); one that the target
        runs as it is comes back unchanged. For an IR a `LoweredIr`, of which ``save(path)`` writes
        the ``.xml`` and the ``.bin``.

    Raises:
        SplitError: TS501 to TS504 for the model; TS601 for the target; TS1xx to TS3xx for a split
            node that is wrong; TS513 if it can't be lowered, with the reason and the node; TS512
            for a node of a function that is not expressible at the model's opset.

    Warns:
        SplitWarning: If the target silently changes some values of the data, such as those of
            double that float32 does not hold, on OpenVINO.

    Example:
        >>> lowered = ts.lower("uneven.onnx", target="portable")
        >>> ts.check(lowered, target="portable")
        []
    """
    read = read_model(model, without_weights=True)
    made: onnx.ModelProto | ir.Model | LoweredIr
    if read.openvino is not None:
        made, report = lower_ir(read, target)
    else:
        opened = open_model(read)
        report = lower_graph(opened, target)
        made = opened.back(bool(report.changes))
    for text in report.warnings:
        warnings.warn(text, SplitWarning, stacklevel=3)  # `full_collections_deferred` is in between
    return made
