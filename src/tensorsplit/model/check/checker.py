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
from tensorsplit.model.check.findings import CheckReport, Finding, gathered, of_error
from tensorsplit.model.check.sequence_checks import sequence_findings
from tensorsplit.model.check.split_checks import split_findings
from tensorsplit.model.check.target_checks import of_model, of_node
from tensorsplit.model.graph.binding import UNKNOWN, bind
from tensorsplit.model.graph.building import collector_paused
from tensorsplit.model.graph.message import lone_nodes
from tensorsplit.model.graph.nodes import NodeRef, is_split, walk
from tensorsplit.model.graph.reading import OnnxModel, read_model
from tensorsplit.model.infer.analysis import analyse
from tensorsplit.model.profiles import Profile
from tensorsplit.model.run.program import compile_model

if TYPE_CHECKING:
    import onnx_ir

_BROKEN = (MALFORMED_MODEL, EXTERNAL_DATA, UNKNOWN_OPERATOR)
"""Refusals of a model that can be read, and whose fault is a finding."""

_NEVER_RUNS = "but the code around it never runs"


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
) -> CheckReport:
    """As `check`, with how many split nodes were looked at."""
    profile = None if target is None else profiles.load(target)
    read: OnnxModel | None = None
    try:
        read = read_model(model)
        return _examine(read, profile)
    except SplitError as error:
        if error.kind not in _BROKEN:
            raise
        return _examine_message(None if read is None else read.original, error)


def _examine(read: OnnxModel, profile: Profile | None) -> CheckReport:
    """Look at the nodes of a model that can be put together to a graph."""
    model, is_layer = read.model, read.openvino is not None
    facts = analyse(model)
    findings = [of_error(error) for error in _structure(read)]
    refused: dict[str | None, list[Finding]] = {}
    for error in facts.errors:  # of the analysis, which knows every call of a function
        refused.setdefault(error.node, []).append(of_error(error))
    count = 0
    for ref in walk(model, "checking"):
        found = refused.pop(ref.path, [])
        if is_split(ref.node):
            count += 1
            found += split_findings(ref, facts, is_refused=bool(found))
        else:
            found += sequence_findings(ref, facts)
        if facts.never_runs(ref.path):
            found = [finding.as_warning(_NEVER_RUNS) for finding in found]
        findings += found
        if profile is not None:
            findings += of_node(profile, ref, facts, is_layer=is_layer)
    for rest in refused.values():
        findings += rest
    if profile is not None:
        findings += of_model(profile, model, is_layer=is_layer)
    return gathered(findings, count)


def _structure(read: OnnxModel) -> Iterator[SplitError]:
    """What makes the model not well-formed as a whole, if anything."""
    try:
        compile_model(read)
    except SplitError as error:
        if error.kind is MALFORMED_MODEL:
            yield error


def _examine_message(proto: ModelProto | None, refusal: SplitError) -> CheckReport:
    """What can be said where the nodes can't be put together to a graph: each node by itself."""
    findings = [of_error(refusal)]
    count = 0
    try:
        for ref in lone_nodes(proto) if proto is not None else ():
            if is_split(ref.node):
                count += 1
                findings += _node_alone(ref)
    except SplitError as error:
        findings.append(of_error(error))
    return gathered(findings, count)


def _node_alone(ref: NodeRef) -> Iterator[Finding]:
    known = [None if value is None else UNKNOWN for value in ref.node.inputs]
    try:
        part_sizes(bind(ref.node, ref.opset, known), None)
    except SplitError as error:
        if error.kind is not UNKNOWN_COUNT:
            yield of_error(error.located(node=ref.path))
