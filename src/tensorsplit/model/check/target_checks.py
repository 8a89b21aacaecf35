"""What a target engine was measured not to run, or to run wrongly, of what a model asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import onnx_ir as ir

from tensorsplit.model.check.checks import TARGET_DEPENDS, TARGET_REFUSES, TARGET_WRONG, Check
from tensorsplit.model.check.findings import Finding, of_check
from tensorsplit.model.features import features_of, layer_features, model_features
from tensorsplit.model.graph.nodes import NodeRef
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.profiles import Limitation, Profile

_ORDINARY = ("all", "some")
"""The extents that affect ordinary inputs."""

_LOWER = "rewrite it with: tensorsplit lower MODEL --for {engine}"


def of_node(profile: Profile, ref: NodeRef, facts: Facts, *, is_layer: bool) -> Iterator[Finding]:
    """What the engine does not do right of a node; layers of an IR can't be lowered."""
    if not is_layer:
        yield from of_features(profile, features_of(ref, facts), ref.path, _LOWER)
    elif profile.engine == "openvino":
        yield from of_features(profile, layer_features(ref, facts), ref.path)


def of_model(profile: Profile, model: ir.Model, *, is_layer: bool) -> Iterator[Finding]:
    """What the engine does not do right of the model as a whole."""
    if not is_layer:
        yield from of_features(profile, model_features(model), "graph", _LOWER)
    elif profile.engine != "openvino":
        yield of_check(
            TARGET_REFUSES,
            "model",
            f"{profile.name}: the model is an OpenVINO IR, which only OpenVINO reads",
            "start from the ONNX model",
        )


def of_features(
    profile: Profile, features: Mapping[str, Any], node: str, fix: str = ""
) -> Iterator[Finding]:
    """What the engine does not do right of a node or model; ``{engine}`` in the fix is its name."""
    for entry in profile.about(features):
        yield of_check(
            _check_of(entry),
            node,
            f"{profile.name}: {entry.note} ({_seen(entry, features)})",
            fix.format(engine=profile.engine),
            operator=features.get("version"),
        )


def _check_of(entry: Limitation) -> Check:
    if entry.extent not in _ORDINARY:
        return TARGET_DEPENDS
    return TARGET_WRONG if entry.verdict in ("wrong", "crash") else TARGET_REFUSES


def _seen(entry: Limitation, features: Mapping[str, Any]) -> str:
    """The feature that the entry is about, for a message."""
    value = features[entry.feature]
    name = entry.feature.replace("_", " ")
    seen = name if value is True else f"{name} {value}"
    return seen if entry.extent == "all" else f"{seen}; not in every case"
