"""Which sequences must go: those that share a node with one that the target can't run."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from tensorsplit.model.features import features_of, is_sequence
from tensorsplit.model.graph.nodes import bodies, walk
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.profiles import Entry, Profile


class Clusters:
    """The sequences of a model, in groups that can only be lowered together.

    Args:
        model: The model.
        facts: What is known of its values.
        profile: What the target can't do.

    Attributes:
        reasons: Why each group must go, by its representative.
    """

    def __init__(self, model: ir.Model, facts: Facts, profile: Profile) -> None:
        self._facts = facts
        self._parent: dict[ir.Value, ir.Value] = {}
        self.reasons: dict[ir.Value, Entry] = {}
        found: list[tuple[ir.Value, Entry]] = []
        for place in walk(model):
            values = self._values(place.node)
            self._join(values)
            if values:
                self._join_bodies(place.node)
                entries = profile.about(features_of(place, facts))
                needed = next((entry for entry in entries if must_go(entry)), None)
                if needed is not None:
                    found.append((values[0], needed))
        for value, entry in found:
            self.reasons.setdefault(self._root(value), entry)

    def reason(self, node: ir.Node) -> Entry | None:
        """Why the sequences of a node must go; None if they may stay."""
        for value in self._values(node):
            entry = self.reasons.get(self._root(value))
            if entry is not None:
                return entry
        return None

    def goes(self, value: ir.Value | None) -> bool:
        """Whether a value is a sequence that must go."""
        return value is not None and value in self._parent and self._root(value) in self.reasons

    def _values(self, node: ir.Node) -> list[ir.Value]:
        values = (*node.inputs, *node.outputs)
        return [value for value in values if value is not None and is_sequence(value, self._facts)]

    def _join_bodies(self, node: ir.Node) -> None:
        """What a body takes in and gives out is the same sequence as outside of it."""
        for _, body in bodies(node):
            carried = len(node.inputs) - 2
            pairs: list[tuple[ir.Value | None, ir.Value | None]] = []
            if node.op_type == "If":
                pairs += zip(node.outputs, body.outputs, strict=False)
            elif node.op_type == "Loop":
                pairs += zip(node.inputs[2:], body.inputs[2:], strict=False)
                pairs += zip(node.outputs[:carried], body.outputs[1:], strict=False)
                pairs += zip(node.outputs[:carried], node.inputs[2:], strict=False)
            for left, right in pairs:
                if left is not None and right is not None and is_sequence(left, self._facts):
                    self._join([left, right])

    def _join(self, values: Iterable[ir.Value]) -> None:
        roots = [self._root(value) for value in values]
        for root in roots[1:]:
            self._parent[self._root(root)] = self._root(roots[0])

    def _root(self, value: ir.Value) -> ir.Value:
        self._parent.setdefault(value, value)
        while self._parent[value] is not value:
            self._parent[value] = self._parent[self._parent[value]]
            value = self._parent[value]
        return value


def must_go(entry: Entry) -> bool:
    """Whether a node is changed for an entry: not for what only rare inputs or large values do."""
    return entry.extent in ("all", "some")
