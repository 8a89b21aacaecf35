"""What every step of lowering shares: the model, what is known of it, the target, the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Sequence as Values
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from tensorsplit.core.arithmetic import Number, Numbers, dimension
from tensorsplit.core.errors import CANNOT_LOWER, SplitError
from tensorsplit.model.features import features_of
from tensorsplit.model.graph.building import Edits, Names
from tensorsplit.model.graph.calculation import Calculation
from tensorsplit.model.graph.facts import Sequence, Tensor
from tensorsplit.model.graph.nodes import NodeRef, Scope, model_opsets, walk
from tensorsplit.model.infer.analysis import analyse
from tensorsplit.model.profiles import Limitation, Profile


@dataclass(frozen=True, slots=True)
class LoweredNode:
    """One node that was replaced.

    Attributes:
        node: Its path, such as ``graph/loop_1.body/split_0``.
        operator: What it was.
        became: What stands there now.
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
    """

    target: str
    changes: list[LoweredNode] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Add a note that is not there yet."""
        if text not in self.notes:
            self.notes.append(text)


class Lowering:
    """One lowering of one model.

    Attributes:
        profile: What the target can't do.
        facts: What is known of the model's values.
        refs: Every node that the model had at the last `look`.
        reasons: The sequences that can't stay, each with the reason.
        edits: What is replaced and removed.
        fresh: Values that were made here and are not yet known by another name.
        opset: The opset of ONNX's own domain.
        checks_sum: Whether the target's Split refuses calculated lengths with a wrong sum.
        takes_negative_axis: Whether an axis may count from the back.
    """

    def __init__(self, model: ir.Model, profile: Profile, report: LoweringReport) -> None:
        self.model, self.profile, self.report = model, profile, report
        self.opset = model_opsets(model).get("", 0)
        features = {entry.feature for entry in profile.entries}
        self.checks_sum = "computed_lengths" not in features
        self.takes_negative_axis = "negative_axis" not in features
        self.reasons: dict[ir.Value, Limitation] = {}
        self.fresh: set[ir.Value] = set()
        self.look()

    def look(self) -> None:
        """Find out what is known of the model as it is now, and what the target can't take of it.

        Raises:
            SplitError: TS1xx to TS3xx for a split node that is wrong.
        """
        self.facts = analyse(self.model, strict=True)
        self.names, self.edits = Names(self.model), Edits()
        self.refs = {ref.node: ref for ref in walk(self.model)}
        self._limitations: dict[ir.Node, tuple[Limitation, ...]] = {}
        for node, ref in self.refs.items():
            features = features_of(ref, self.facts)
            if features:
                self._limitations[node] = tuple(self.profile.about(features))

    def limitations(self, node: ir.Node) -> tuple[Limitation, ...]:
        """What the target can't do of a node."""
        return self._limitations.get(node, ())

    def reason(self, node: ir.Node) -> Limitation | None:
        """Why a node must be changed; None if it may stay."""
        return next(filter(must_go, self.limitations(node)), None)

    def stand_in(self, old: ir.Value, new: ir.Value) -> None:
        """Have a value that was newly made take the name, type and place of another one."""
        self.fresh.discard(new)
        new.type, new.shape, new.doc_string = old.type, old.shape, old.doc_string
        new.metadata_props.update(old.metadata_props)
        self.facts.set(new, self.facts.of(old))
        if old.name:
            new.name, old.name = old.name, self.names.fresh(f"{old.name}_before")
        self.edits.replace(old, new)

    def note(self, entry: Limitation) -> None:
        """Note what the target may do wrongly of something that stays."""
        self.report.note(f"{self.profile.name}: {entry.note}")

    def changed(self, ref: NodeRef, became: str, reason: str) -> None:
        """Note a change."""
        self.report.changes.append(LoweredNode(ref.path, ref.op_type, became, reason))

    def takes_by_index(self, held: ir.Value) -> bool:
        """Whether the target was measured not to split tensors of the value's element type."""
        element_type = self.tensor(held).element_type
        if element_type is None:
            return False
        features = {"operator": "Split", "element_type": element_type.name.lower()}
        return any(entry.feature == "element_type" for entry in self.profile.about(features))

    def tensor(self, held: ir.Value | None) -> Tensor:
        """What is known of a tensor."""
        fact = self.facts.of(held)
        return fact if isinstance(fact, Tensor) else Tensor()

    def sequence(self, held: ir.Value) -> Sequence:
        """What is known of a sequence."""
        fact = self.facts.of(held)
        return fact if isinstance(fact, Sequence) else Sequence()


class InsertionPoint(Calculation):
    """Makes nodes and inserts them at once, each behind the last.

    Args:
        lowering: The lowering.
        stem: What the names of new nodes start with.
        scope: Where they are inserted.
        before: The node that they come before, which stays there meanwhile; None for the end.
    """

    def __init__(
        self, lowering: Lowering, stem: str, scope: Scope, before: ir.Node | None = None
    ) -> None:
        super().__init__(lowering.names, lowering.opset, stem)
        self.lowering, self._scope, self._before = lowering, scope, before

    def op(
        self,
        op_type: str,
        inputs: Iterable[ir.Value | None],
        attributes: Mapping[str, Any] | None = None,
        outputs: Values[ir.Value] | None = None,
    ) -> ir.Value:
        """Insert a node; returns its first output."""
        made = super().op(op_type, inputs, attributes, outputs)
        node = self.nodes.pop()
        if self._before is None:
            self._scope.append(node)
        else:
            self._scope.insert_before(self._before, node)
        self.lowering.fresh.update(node.outputs)
        if self.has_guards:
            self.has_guards = False
            for entry in self.lowering.profile.about({"runtime_checks": True}):
                self.lowering.note(entry)
        return made

    def split(
        self, data: ir.Value, axis: int, dim: Number, lengths: Numbers, count: int
    ) -> list[ir.Value]:
        """As `parts`, in the way that the target was measured to do right."""
        by_index, checks_sum = self.lowering.takes_by_index(data), self.lowering.checks_sum
        return self.parts(data, axis, dim, lengths, count, checks_sum=checks_sum, by_index=by_index)

    def replace(self, old: ir.Value, new: ir.Value) -> None:
        """Have a value used in the place of an output of a node that will be removed.

        The new one takes over its name if it is new and of the same graph.
        """
        lowering = self.lowering
        if new not in lowering.fresh or new.graph is not old.graph:
            if not old.is_graph_output():
                ir.convenience.replace_all_uses_with(old, new)
                return
            if lowering.takes_by_index(new):  # the target can't pass it on
                new = self.slice(new, 0, dimension(new, 0), 0, by_index=True)
            else:
                new = self.op("Identity", [new])
        lowering.stand_in(old, new)


def must_go(entry: Limitation) -> bool:
    """Whether a node is changed for an entry.

    It is not where an engine refuses rare inputs only, nor for what large values do.
    """
    return entry.extent in ("all", "some") or (
        entry.extent == "edge" and entry.verdict in ("wrong", "crash")
    )


def refusal(problem: str, ref: NodeRef | None, fix: str = "") -> SplitError:
    """A refusal to lower, with the node."""
    path, operator = ("graph", None) if ref is None else (ref.path, ref.op_type)
    return SplitError(CANNOT_LOWER, problem, fix, operator=operator, node=path)
