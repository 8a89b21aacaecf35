"""`check`: everything that can be said of the splits of a model without running it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from onnx import ModelProto

from tensorsplit.core.errors import (
    EXTERNAL_DATA,
    MALFORMED_MODEL,
    UNKNOWN_COUNT,
    UNKNOWN_OPERATOR,
    SplitError,
)
from tensorsplit.core.resolve import part_sizes
from tensorsplit.model import profiles
from tensorsplit.model.check.finding import Finding, Report, gathered, of_error
from tensorsplit.model.graph.binding import UNKNOWN, bind
from tensorsplit.model.graph.building import collector_paused
from tensorsplit.model.graph.message import lone_nodes
from tensorsplit.model.graph.nodes import NodeRef, is_split, is_vendor_split
from tensorsplit.model.graph.reading import read_model

if TYPE_CHECKING:
    import onnx_ir

_BROKEN = (MALFORMED_MODEL, EXTERNAL_DATA, UNKNOWN_OPERATOR)
"""Refusals of a model that can be read, and whose fault is a finding."""


def check(
    model: str | os.PathLike[str] | ModelProto | onnx_ir.Model, target: str | None = None
) -> list[Finding]:
    """Find what is wrong or odd with the splits of a model, in bodies and functions too.

    Nothing is run, no weights are read, and the model is left as it is.

    Args:
        model: A path (``.onnx``, or an OpenVINO IR ``.xml``), an ``onnx.ModelProto`` or an
            ``onnx_ir.Model``.
        target: ``onnxruntime``, ``openvino`` or ``portable``: report as well what this engine was
            measured not to run, or to run wrongly. None for what holds everywhere.

    Returns:
        The findings, in the order of the nodes. Those of severity ``error`` have the code of the
        `SplitError` that running or rewriting the model would raise, or a code of their own;
        ``docs/check.md`` explains each. Empty if there is nothing to say.

    Raises:
        SplitError: TS501, TS503 for what can't be read as a model at all; TS601 for an unknown
            target. A model that can be read but is broken gives findings.
    """
    return list(examine(model, target).findings)


@collector_paused()
def examine(
    model: str | os.PathLike[str] | ModelProto | onnx_ir.Model, target: str | None = None
) -> Report:
    """As `check`, with how many split nodes were looked at.

    Raises:
        SplitError: As `check`.
    """
    profile = None if target is None else profiles.load(target)
    try:
        read = read_model(model)
    except SplitError as error:
        if error.kind not in _BROKEN:
            raise
        return gathered([of_error(error)], 0)
    from tensorsplit.model.check.nodes import examine_nodes

    try:
        return examine_nodes(read, profile)
    except SplitError as error:
        if error.kind not in _BROKEN:
            raise
        return _examine_message(read.original, error)


def _examine_message(proto: ModelProto, refusal: SplitError) -> Report:
    """What can be said where the nodes can't be put together to a graph: each node by itself."""
    findings = [of_error(refusal)]
    count = 0
    try:
        for place in lone_nodes(proto):
            if is_split(place.node) or is_vendor_split(place.node):
                count += 1
                findings += _node_alone(place)
    except SplitError as error:
        findings.append(of_error(error))
    return gathered(findings, count)


def _node_alone(place: NodeRef) -> Iterator[Finding]:
    known = [None if value is None else UNKNOWN for value in place.node.inputs]
    try:
        part_sizes(bind(place.node, place.opset, known), None)
    except SplitError as error:
        if error.kind is not UNKNOWN_COUNT:
            yield of_error(error.located(node=place.path))
