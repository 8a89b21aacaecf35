"""What a target engine was measured not to run, or to run wrongly, of what a model asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import onnx_ir as ir

from tensorsplit.model.check.finding import Finding, of_check
from tensorsplit.model.check.table import TARGET_DEPENDS, TARGET_REFUSES, TARGET_WRONG, Check
from tensorsplit.model.features import features_of, layer_features, model_features
from tensorsplit.model.graph.nodes import NodeRef
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.profiles import Entry, Profile

_ORDINARY = ("all", "some")
"""The extents of what ordinary inputs run into."""


def of_node(
    profile: Profile, place: NodeRef, facts: Facts, *, is_layer: bool = False
) -> Iterator[Finding]:
    """What the engine does not do right of a node.

    Args:
        profile: What was measured of the engine.
        place: The node.
        facts: What is known of the values of the model.
        is_layer: Whether the node is a layer of an OpenVINO IR, which can't be lowered.
    """
    if is_layer:
        if profile.engine == "openvino":
            yield from of_features(profile, layer_features(place, facts), place.path)
        return
    yield from of_features(profile, features_of(place, facts), place.path, _LOWER)


def of_model(profile: Profile, model: ir.Model) -> Iterator[Finding]:
    """What the engine does not do right of the model as a whole."""
    yield from of_features(profile, model_features(model), "graph", _LOWER)


def of_features(
    profile: Profile, features: Mapping[str, Any], node: str, fix: str = ""
) -> Iterator[Finding]:
    """What the engine does not do right of something with these features.

    Args:
        profile: What was measured of the engine.
        features: The features.
        node: The place that has them.
        fix: What to do, with ``{engine}`` for the engine's name.
    """
    for entry in profile.about(features):
        yield of_check(
            _check_of(entry),
            node,
            f"{profile.name}: {entry.note} ({_seen(entry, features)})",
            fix.format(engine=profile.engine),
            operator=features.get("version"),
        )


def of_ir(profile: Profile) -> Iterator[Finding]:
    """What there is to say of an OpenVINO IR as a file."""
    if profile.engine != "openvino":
        yield of_check(
            TARGET_REFUSES,
            "model",
            f"{profile.name}: the model is an OpenVINO IR, which only OpenVINO reads",
            "start from the ONNX model",
        )


def _check_of(entry: Entry) -> Check:
    if entry.extent not in _ORDINARY:
        return TARGET_DEPENDS
    return TARGET_WRONG if entry.verdict in ("wrong", "crash") else TARGET_REFUSES


def _seen(entry: Entry, features: Mapping[str, Any]) -> str:
    """The feature that it is about, for a message."""
    value = features[entry.feature]
    name = entry.feature.replace("_", " ")
    seen = name if value is True else f"{name} {value}"
    return seen if entry.extent == "all" else f"{seen}; not in every case"


_LOWER = "rewrite it with: tensorsplit lower MODEL --for {engine}"
