"""The features that an engine was measured not to run, or to run wrongly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import onnx_ir

from tensorsplit.model.check.advice import (
    advice,
    advice_on_layer,
    advice_with_lengths,
    before_any,
    before_lowering,
)
from tensorsplit.model.check.checks import TARGET_DEPENDS, TARGET_REFUSES, TARGET_WRONG
from tensorsplit.model.check.engine_kernels import of_kernels
from tensorsplit.model.check.findings import Finding, of_check
from tensorsplit.model.check.node_checks import has_fed_floats
from tensorsplit.model.features import data_features, features_of, layer_features, model_features
from tensorsplit.model.features.from_constants import is_constant
from tensorsplit.model.features.inlined import Inlined
from tensorsplit.model.features.vocabulary import seen_feature
from tensorsplit.model.graph.nodes import NodeRef
from tensorsplit.model.graph.uses import is_unused, used_nodes
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.infer.seen import seen
from tensorsplit.model.profiles import Limitation, Profile

NEVER_RUNS = "the code around it never runs"
_NOBODY = "nothing that the model gives out depends on it"


class TargetChecks:
    """The findings that a profile has for a model.

    Args:
        profile: The profile of the target.
        model: The model.
        facts: What is known of it.
        is_layers: Whether it was read from an IR, of which nodes are layers.
    """

    def __init__(
        self, profile: Profile, model: onnx_ir.Model, facts: Facts, *, is_layers: bool
    ) -> None:
        self.profile, self.model, self.facts = profile, model, facts
        self.is_layers = is_layers
        view = None if is_layers else profile.view
        self._seen = facts if view is None else seen(model, view)
        is_known = partial(is_constant, facts=self._seen) if view else lambda _: False
        self._used = used_nodes(model, is_known)
        self._inlined = Inlined(model, facts, profile)
        self._limits = set[Limitation]()
        self._first = ""

    def of_model(self) -> Iterator[Finding]:
        """Yield the findings on the model, as warnings on what no output depends on."""
        if self.is_layers:
            return
        model, uncalled = self.model, self.facts.uncalled
        features = needed = model_features(model, uncalled)
        called = {node.op_identifier() for node in self._used}
        unused = [each for each in model.functions.values() if each.identifier() not in called]
        if set(unused) != set(uncalled):
            needed = model_features(model, unused)
        self._first = before_any(self.profile, features)
        fix = partial(advice, first=self._first)
        for entry, found in of_features(self.profile, features, "graph", fix).items():
            is_needed = needed.get(entry.feature) == features[entry.feature]
            is_needed = is_needed or self.profile.refuses_unused(entry)
            yield found if is_needed else found.as_warning(_NOBODY)

    def of_node(self, ref: NodeRef) -> list[Finding]:
        """Return the findings on a node, as warnings where it never runs or nothing needs it."""
        if self.is_layers:
            features = layer_features(ref, self.facts)
            found = of_features(self.profile, features, ref.path, advice_on_layer)
            self._limits |= found.keys()
            return list(found.values())
        features = features_of(ref, self.facts, self._seen, self._inlined)
        first = self._first or before_lowering(ref, self.facts)
        fix = partial(advice, first=first, at=(ref, self.facts))
        if has_fed_floats(ref, self.facts):
            fix = partial(advice_with_lengths, fix)
        found = of_features(self.profile, features, ref.path, fix)
        self._limits |= found.keys()
        if self.facts.never_runs(ref.path):
            is_read, refuses = not is_unused(ref.node, ref.owners), self.profile.refuses_unrun
            return _weighed(found, lambda entry: is_read and refuses(entry), NEVER_RUNS)
        is_used, refuses = ref.node in self._used, self.profile.refuses_unused
        of_entries = _weighed(found, lambda entry: is_used or refuses(entry), _NOBODY)
        return [*of_entries, *of_kernels(self.profile, ref, self.facts)]

    def of_data(self, refs: Iterable[NodeRef]) -> list[Finding]:
        """Return the findings on the data of nodes, but for what was found of one of them."""
        features = data_features(refs, self.facts, self.model.graph.inputs)
        found = of_features(self.profile, features, "graph", advice)
        return [each for entry, each in found.items() if entry not in self._limits]


def _weighed(
    found: Mapping[Limitation, Finding], matters: Callable[[Limitation], bool], excuse: str
) -> list[Finding]:
    """Return findings, as warnings with an excuse where the limitation does not matter."""
    return [each if matters(entry) else each.as_warning(excuse) for entry, each in found.items()]


_AFFECTED = {
    "all": "",
    "some": " (for some inputs)",
    "uses": " (in some uses)",
    "edge": " (for rare inputs only)",
    "illegal": " (for inputs that the standard refuses)",
    "values": " (for some values only)",
}
"""The words of a message for the inputs of which something holds."""


def of_features(
    profile: Profile,
    features: Mapping[str, Any],
    node: str,
    fix: Callable[[Profile, Limitation], str] = lambda *_: "",
) -> dict[Limitation, Finding]:
    """Return the engine's limitations on a node or model, each with its finding and advice."""
    found: dict[Limitation, Finding] = {}
    for entry in profile.about(features):
        check = TARGET_WRONG if entry.verdict in ("wrong", "crash") else TARGET_REFUSES
        if entry.extent != "all":
            check = TARGET_DEPENDS
        seen = seen_feature(entry.feature, features[entry.feature])
        this = f"this model {seen}" if node == "graph" else f"this node {seen}"
        message = f"{profile.sentence(entry)}; {this}{_AFFECTED[entry.extent]}"
        operator = features.get("version")
        found[entry] = of_check(check, node, message, fix(profile, entry), operator=operator)
    return found
