"""The state that all steps of lowering share: model, facts, target and report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import TypeAlias

import onnx_ir as ir

from tensorsplit.core.arithmetic import Number, Numbers, dimension
from tensorsplit.core.dimensions import is_known
from tensorsplit.core.errors import CANNOT_EXPRESS, CANNOT_LOWER, SplitError
from tensorsplit.model.features import features_of
from tensorsplit.model.features.inlined import Inlined
from tensorsplit.model.features.values import is_sequence, may_be_long
from tensorsplit.model.graph.building import Edits, Names, inherit
from tensorsplit.model.graph.calculation import Calculation
from tensorsplit.model.graph.facts import SequenceFact
from tensorsplit.model.graph.loops import carried_by
from tensorsplit.model.graph.nodes import NodeRef, Scope, bodies, scopes, walk
from tensorsplit.model.graph.opsets import domain_opsets, model_opsets
from tensorsplit.model.graph.split_records import is_onnx_split
from tensorsplit.model.infer.analysis import Facts, analyse
from tensorsplit.model.infer.filling import fill_value
from tensorsplit.model.infer.seen import seen
from tensorsplit.model.profiles import Limitation, Profile, must_go
from tensorsplit.model.reached import each_once

_OPSET, _IR_VERSION = 18, 8
"""The opset of ONNX's own domain in a graph that has none; the IR version has functions, too."""

_FIRST_WITH_INDICES = 6
"""From here on engines read the Cast that makes integers before opset 9, where constants are."""

NodeChange: TypeAlias = Callable[["Lowering", NodeRef, Limitation], None]
"""What writes a node another way, for an entry of the profile."""

ChangeAfterSplits: TypeAlias = tuple[tuple[str, ...], NodeChange]
"""The operators whose nodes are written another way once splits are, and what writes them."""


@dataclass(frozen=True, slots=True)
class LoweredNode:
    """One node that was replaced.

    Attributes:
        node: Its path, such as ``graph/loop_1.body/split_0``.
        operator: What it was.
        became: What replaced it.
        reason: Why the target needs it.
    """

    node: str
    operator: str
    became: str
    reason: str


@dataclass
class LoweringReport:
    """Everything that lowering did.

    Attributes:
        target: The profile that was lowered for, such as ``onnxruntime 1.31.1``.
        changes: In the order of the model.
        notes: What the target may still refuse or do wrongly for some inputs, each once.
        warnings: What the target does to some values of the data silently, each once.
    """

    target: str
    changes: list[LoweredNode] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Add a note that is not there yet."""
        _add_new(self.notes, text)

    def note_limitation(self, entry: Limitation) -> None:
        """Note a limitation that the lowered model still meets; warn where it changes values."""
        texts = self.warnings if entry.extent == "values" else self.notes
        _add_new(texts, f"{self.target}: {entry.note}")


def _add_new(texts: list[str], text: str) -> None:
    if text not in texts:
        texts.append(text)


_MOST_LOOKS = 1000
"""More than any model needs: each look finds only what the changes before it brought to light."""


class Lowering:
    """One lowering of one model.

    Attributes:
        facts: What is known of every value.
        imported: What the target knows of every value when it imports the model.
        refs: Every node that the model had at the last `look`.
        limitations: What the target can't do of single nodes.
        reasons: The sequences that can't stay, each with the reason.
        fresh: Values that were made here and are not yet known by another name.
    """

    def __init__(self, model: ir.Model, profile: Profile, report: LoweringReport) -> None:
        self.model, self.profile, self.report = model, profile, report
        self.opset = _own_opset(model)
        self.fresh: set[ir.Value] = set()
        self._looks = 0
        self.look()

    def look(self) -> None:
        """Analyse the model as it is now, and find what the target can't run of it.

        Raises:
            RuntimeError: If it was done so often that it seems to go on without end.
        """
        self._looks += 1
        if self._looks > _MOST_LOOKS:
            raise RuntimeError("what was written is found again and again")
        self._seen_changes = len(self.report.changes)
        self.facts = analyse(self.model, strict=True)
        view = self.profile.view
        self.imported = self.facts if view is None else seen(self.model, view)
        self.names, self.edits = Names(self.model), Edits()
        self.refs = {ref.node: ref for ref in walk(self.model)}
        inlined = Inlined(self.model, self.facts, self.profile)
        self.limitations = {
            node: tuple(self.profile.about(features))
            for node, ref in self.refs.items()
            if (features := features_of(ref, self.facts, self.imported, inlined))
        }
        if view is not None and any(each.is_initializer() for each in self.model.graph.inputs):
            self._add_unseen(seen(self.model, view, has_defaults=False))
        self.reasons = self._sequences_to_lower()

    def _add_unseen(self, without_defaults: Facts) -> None:
        """Note the limitations for splits that hold once defaults of inputs are taken away (D20).

        Sessions do so with those that are fed.
        """
        for node, ref in self.refs.items():
            if is_onnx_split(node):
                features = features_of(ref, self.facts, without_defaults)
                entries = (*self.limitations.get(node, ()), *self.profile.about(features))
                self.limitations[node] = tuple(dict.fromkeys(entries))

    def _sequences_to_lower(self) -> dict[ir.Value, Limitation]:
        """Return the sequences to lower; those that meet in a node or at a body go together."""
        together: defaultdict[ir.Value, list[ir.Value]] = defaultdict(list)
        wanted: list[tuple[ir.Value, Limitation]] = []
        for node in self.refs:
            ends = (*node.inputs, *node.outputs)
            values = [end for end in ends if end is not None and is_sequence(end, self.facts)]
            for one, other in chain(pairwise(values), through_bodies(node) if values else ()):
                if one is not None and other is not None:
                    together[one].append(other)
                    together[other].append(one)
            reason = self.reason(node)
            if values and reason is not None:
                wanted.append((values[0], reason))
        reasons: dict[ir.Value, Limitation] = {}
        for start, reason in wanted:
            if start not in reasons:
                reasons |= dict.fromkeys(each_once([start], together.__getitem__), reason)
        return reasons

    def limitation(self, feature: str) -> Limitation | None:
        """Return the limitation of the target for a feature; None if it has none."""
        return next((entry for entry in self.profile.entries if entry.feature == feature), None)

    def limited(self, feature: str) -> list[tuple[NodeRef, Limitation]]:
        """Return the nodes with a feature that the target can't do, and what it can't."""
        return [
            (self.refs[node], entry)
            for node, entries in self.limitations.items()
            for entry in entries
            if entry.feature == feature
        ]

    def reason(self, node: ir.Node, but: str = "") -> Limitation | None:
        """Return why a node must be changed, but for one feature; None if it may stay."""
        entries = filter(must_go, self.limitations.get(node, ()))
        return next((entry for entry in entries if entry.feature != but), None)

    def look_for(self, feature: str, may_have: Callable[[ir.Node], object]) -> bool:
        """Analyse the model again, if the target lacks a feature that a node may have.

        Returns whether that is so. What was not changed since the last `look` is known.
        """
        nodes = (node for scope in scopes(self.model) for node in scope)
        if self.limitation(feature) is None or not any(map(may_have, nodes)):
            return False
        if len(self.report.changes) != self._seen_changes:
            self.look()
        return True

    def change_each(
        self,
        feature: str,
        may_have: Callable[[ir.Node], object],
        change: NodeChange,
    ) -> bool:
        """Change each node with a feature that the target can't take; the outer ones come first.

        Nothing is looked at where the target can take it, or no node may have it. Returns whether
        anything was changed.
        """
        return self.look_for(feature, may_have) and self.change_limited(feature, change)

    def change_limited(self, feature: str, change: NodeChange) -> bool:
        """Change each node that had such a feature at the last `look`; the outer ones come first.

        Returns whether anything was changed.
        """
        before = len(self.report.changes)
        for ref, entry in self.limited(feature):
            with at(ref):
                change(self, ref, entry)
        self.edits.finish()
        return len(self.report.changes) > before

    def stand_in(self, *pairs: tuple[ir.Value, ir.Value]) -> None:
        """Replace values by newly made ones, which take their names, types and places: old, new.

        What is known of them is declared: it can't be inferred from everything that is written.
        """
        for old, new in pairs:
            self.fresh.discard(new)
            self.describe(new, old)
        self.edits.stand_in(pairs)
        for _, new in pairs:
            fill_value(new, self.facts)

    def describe(self, new: ir.Value, old: ir.Value) -> None:
        """Copy the facts about an old value, here and at import, to a new one."""
        for facts in (self.facts, self.imported):
            facts.set(new, facts.of(old))

    def note(self, entry: Limitation) -> None:
        """Note a limitation that the lowered model still meets; warn where it changes values."""
        self.report.note_limitation(entry)

    def changed(
        self, ref: NodeRef, became: str, *entries: Limitation | None, reason: str = ""
    ) -> None:
        """Note a change, and the entries of the profile that are the reason, or another reason."""
        causes = (self.profile.sentence(entry) for entry in entries if entry is not None)
        reason = reason or "; ".join(dict.fromkeys(causes))
        self.report.changes.append(LoweredNode(ref.path, ref.op_type, became, reason))

    def takes_by_index(self, held: ir.Value) -> bool:
        """Return whether the target was measured not to split the value's element type.

        One of which it changes some values only is split as others are.
        """
        element_type = self.facts.tensor(held).element_type
        if element_type is None:
            return False
        features = {"operator": "Split", "element_type": element_type.name.lower()}
        entries = (entry for entry in self.profile.entries if entry.feature == "element_type")
        return any(entry.holds(features) and must_go(entry) for entry in entries)

    def length(self, held: ir.Value, axis: int) -> Number:
        """Return the length of an axis: an integer if it is known, else calculated."""
        shape = self.facts.tensor(held).shape
        known = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
        return known if is_known(known) else dimension(held, axis)

    def sequence(self, held: ir.Value) -> SequenceFact:
        """Return the fact about a sequence."""
        fact = self.facts.of(held)
        return fact if isinstance(fact, SequenceFact) else SequenceFact()


def _own_opset(model: ir.Model) -> int:
    """Return the opset of ONNX's own domain in the main graph, which imports it if it did not.

    It has no node of that domain then, but gets those of its functions, or new ones.
    """
    opset = model_opsets(model).get("")
    if opset is None:
        used = [domain_opsets(each.opset_imports).get("", 0) for each in model.functions.values()]
        opset = model.opset_imports[""] = max(used, default=0) or _OPSET
        model.ir_version = max(model.ir_version, _IR_VERSION)
    return opset


def through_bodies(node: ir.Node) -> Iterator[tuple[ir.Value | None, ir.Value | None]]:
    """Yield pairs of values that are the same, inside a body and outside of it."""
    for _, body in bodies(node) if node.op_type == "If" else ():
        yield from zip(node.outputs, body.outputs, strict=False)
    for start, inside, end, result in carried_by(node):
        yield from ((start, inside), (result, end), (result, start))


class InsertionPoint(Calculation):
    """Makes nodes and inserts them at once, before or after a node that stays meanwhile, or last.

    They are made for an origin, if there is one.
    """

    def __init__(
        self,
        lowering: Lowering,
        stem: str,
        scope: Scope,
        before: ir.Node | None = None,
        origin: ir.Node | None = None,
        *,
        after: ir.Node | None = None,
    ) -> None:
        rounds = lowering.limitation("calculated_integers") is not None
        super().__init__(lowering.names, lowering.opset, stem, rounds_integers=rounds)
        self.lowering, self.origin, self._scope, self._before = lowering, origin, scope, before
        self._after = after

    @classmethod
    def before(cls, lowering: Lowering, ref: NodeRef) -> InsertionPoint:
        """Return the point before a node."""
        return cls(lowering, ref.stem, ref.scope, ref.node)

    @classmethod
    def instead_of(cls, lowering: Lowering, ref: NodeRef) -> InsertionPoint:
        """Return the point before a node, for nodes that keep what is noted of it."""
        return cls(lowering, ref.stem, ref.scope, ref.node, ref.node)

    @classmethod
    def after(cls, lowering: Lowering, ref: NodeRef) -> InsertionPoint:
        """Return the point after a node."""
        return cls(lowering, ref.stem, ref.scope, after=ref.node)

    @classmethod
    def after_made(cls, lowering: Lowering, held: ir.Value, stem: str) -> InsertionPoint:
        """Return the point after the node that gives a value, or before all nodes of its graph."""
        made, scope = held.producer(), held.graph
        assert scope is not None  # noqa: S101 - it is read in a body
        if made is None:
            return cls(lowering, stem, scope, next(iter(scope), None))
        return cls(lowering, stem, scope, after=made)

    def add(self, node: ir.Node) -> None:
        """Insert a node that was made; it keeps what is noted of the node that it is made for."""
        self.nodes.append(node)
        if self.origin is not None:
            inherit([node], self.origin)
        if self._after is not None:
            self._scope.insert_after(self._after, node)
            self._after = node
        elif self._before is None:
            self._scope.append(node)
        else:
            self._scope.insert_before(self._before, node)
        self.lowering.fresh.update(node.outputs)
        if self.has_guards:
            for entry in self.lowering.profile.about({"runtime_checks": True}):
                self.lowering.note(entry)

    def split(
        self, data: ir.Value, axis: int, dim: Number, lengths: Numbers, count: int
    ) -> list[ir.Value]:
        """Do as `parts`, in the way that the target was measured to do right."""
        by_index = self.lowering.takes_by_index(data)
        if by_index and self.opset < _FIRST_WITH_INDICES:
            problem = f"elements can't be taken by calculated positions at opset {self.opset}"
            raise refusal(problem, "convert to opset 9 or newer")
        checks_sum = self.lowering.limitation("computed_lengths") is None
        return self.parts(data, axis, dim, lengths, count, checks_sum=checks_sum, by_index=by_index)

    def slice(
        self,
        data: ir.Value,
        start: Number,
        end: Number,
        axis: Number,
        step: Number = 1,
        *,
        by_index: bool = False,
    ) -> ir.Value:
        """Do as `Calculation.slice`, and note what the target may do wrongly then."""
        if not by_index and may_be_long(data, self.lowering.facts):
            for entry in self.lowering.profile.about({"operator": "Slice", "long_slice": True}):
                self.lowering.note(entry)
        return super().slice(data, start, end, axis, step, by_index=by_index)

    def passed_on(self, held: ir.Value) -> ir.Value:
        """Return the same as a new value, for an output; some targets can't pass strings on."""
        if not self.lowering.takes_by_index(held):
            return self.op("Identity", [held])
        if self.lowering.facts.tensor(held).shape == ():
            return self.take(self.unsqueeze(held, [0]), 0, 0)
        return self.slice(held, 0, self.lowering.length(held, 0), 0, by_index=True)

    def in_place_of(self, old: ir.Value) -> ir.Value:
        """Return a new value that takes the name and place of one, which stays under another name.

        A node that reads the old one is to give it.
        """
        new = self.new("new")
        self.lowering.stand_in((old, new))
        old.name = self.names.fresh(f"{self.stem}_output")
        return new

    def replace(self, old: ir.Value, new: ir.Value) -> None:
        """Replace an output of a node by a value, which takes over its name if that can be."""
        lowering = self.lowering
        if new not in lowering.fresh or new.graph is not old.graph:
            if not old.is_graph_output():
                lowering.edits.replace([(old, new)])
                return
            new = self.passed_on(new)
        lowering.stand_in((old, new))

    def put_instead(self, ref: NodeRef, new: ir.Value, became: str, entry: Limitation) -> None:
        """Replace the only output of a node by a value, and note what it became."""
        self.replace(ref.node.outputs[0], new)
        self.lowering.edits.retire(ref.node)
        self.lowering.changed(ref, became, entry)

    def calculated(self, held: ir.Value) -> ir.Value:
        """Return a number doubled and subtracted once: the same, in nodes and memory of its own."""
        return self.op("Sub", [self.op("Add", [held, held]), held])


def check_loop(entries: Iterable[Limitation]) -> None:
    """Refuse a loop that carries what the target can't."""
    for entry in entries:
        if entry.feature == "strings_in_loop":
            raise refusal(f"a loop carries strings ({entry.note})")


def refusal(problem: str, fix: str = "") -> SplitError:
    """Return a refusal to lower; `at` adds the node."""
    return SplitError(CANNOT_LOWER, problem, fix)


@contextmanager
def at(ref: NodeRef) -> Iterator[None]:
    """Name the node in errors about it, unless they name one in it.

    What the opset of the model can't express is what can't be lowered there.
    """
    try:
        yield
    except SplitError as error:
        if error.kind is CANNOT_EXPRESS:
            error = refusal(error.problem, error.fix)
        raise error.located(operator=ref.op_type, node=ref.path) from None
