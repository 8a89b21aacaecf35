"""`check`: everything that can be said of the splits of a model without running it."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from onnx import ModelProto

from tensorsplit.core.errors import (
    EXTERNAL_DATA,
    MALFORMED_MODEL,
    UNKNOWN_OPERATOR,
    SplitError,
)
from tensorsplit.model import profiles
from tensorsplit.model.check.checks import NOT_CALLED, TARGET_DEPENDS, TARGET_REFUSES, TARGET_WRONG
from tensorsplit.model.check.findings import CheckReport, Finding, gathered, of_check, of_error
from tensorsplit.model.check.node_checks import findings_of
from tensorsplit.model.features import data_features, features_of, layer_features, model_features
from tensorsplit.model.graph.building import collector_paused
from tensorsplit.model.graph.calls import functions_of, key_of, uncalled
from tensorsplit.model.graph.facts import UNKNOWN
from tensorsplit.model.graph.message import lone_nodes
from tensorsplit.model.graph.nodes import NodeRef, function_label, is_split, walk
from tensorsplit.model.graph.reading import OnnxModel, read_model
from tensorsplit.model.infer.analysis import Facts, analyse
from tensorsplit.model.infer.splits import split_of
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
    refused = defaultdict[str | None, list[Finding]](list)
    for error in facts.errors:  # of the analysis, which knows every call of a function
        refused[error.node].append(of_error(error))
    count = 0
    left = uncalled(model)
    for ref in walk(model, "checking"):
        count += is_split(ref.node)
        found = refused.pop(ref.path, [])
        if ref.function is not None and key_of(ref.function) in left:
            continue
        found += findings_of(ref, facts, is_refused=bool(found))
        if facts.never_runs(ref.path):
            found = [finding.as_warning(_NEVER_RUNS) for finding in found]
        findings += found
        if profile is not None:
            findings += _of_node(profile, ref, facts, is_layer=is_layer)
    findings += chain.from_iterable(refused.values())
    for key, function in functions_of(model).items():
        if key in left:
            message = "no node that can run calls the function"
            findings.append(of_check(NOT_CALLED, function_label(function), message, "remove it"))
    if profile is not None:
        findings += _of_model(profile, model, is_layer=is_layer)
        told = {finding.message for finding in findings}
        data = of_features(profile, data_features(model, facts), "graph")
        findings += [finding for finding in data if finding.message not in told]
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
                alone = split_of(ref.node, ref.opset, [UNKNOWN] * len(ref.node.inputs))
                findings += [of_error(error.located(node=ref.path)) for error in alone.errors]
    except SplitError as error:
        findings.append(of_error(error))
    return gathered(findings, count)


_ORDINARY = ("all", "some")
"""The extents that affect ordinary inputs."""

_LOWER = "rewrite it with: tensorsplit lower MODEL --for {engine}"
_OTHER_ENGINE = "run it in another engine, if these values matter"


def _of_node(profile: Profile, ref: NodeRef, facts: Facts, *, is_layer: bool) -> Iterator[Finding]:
    """What the engine does not do right of a node; layers of an IR can't be lowered."""
    if not is_layer:
        yield from of_features(profile, features_of(ref, facts), ref.path, _LOWER)
    elif profile.engine == "openvino":
        yield from of_features(profile, layer_features(ref, facts), ref.path)


def _of_model(profile: Profile, model: onnx_ir.Model, *, is_layer: bool) -> Iterator[Finding]:
    """What the engine does not do right of the model as a whole."""
    if not is_layer:
        yield from of_features(profile, model_features(model), "graph", _LOWER)
    elif profile.engine != "openvino":
        message = f"{profile.name}: the model is an OpenVINO IR, which only OpenVINO reads"
        yield of_check(TARGET_REFUSES, "model", message, "start from the ONNX model")


def of_features(
    profile: Profile, features: Mapping[str, Any], node: str, fix: str = ""
) -> Iterator[Finding]:
    """What the engine does not do right of a node or model; ``{engine}`` in the fix is its name."""
    for entry in profile.about(features):
        check = TARGET_WRONG if entry.verdict in ("wrong", "crash") else TARGET_REFUSES
        if entry.extent not in _ORDINARY:
            check = TARGET_DEPENDS
        value, seen = features[entry.feature], entry.feature.replace("_", " ")
        if value is not True:
            seen = f"{seen} {value}"
        if entry.extent == "values":
            fix = _OTHER_ENGINE
        elif entry.extent != "all":
            seen = f"{seen}; not in every case"
        message = f"{profile.name}: {entry.note} ({seen})"
        operator = features.get("version")
        yield of_check(check, node, message, fix.format(engine=profile.engine), operator=operator)
