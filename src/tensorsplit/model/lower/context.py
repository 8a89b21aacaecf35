"""What every step of lowering shares: the model, what is known of it, the target, the report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import onnx_ir as ir

from tensorsplit.core.arithmetic import Number, dimension, value
from tensorsplit.core.errors import CANNOT_LOWER, SplitError
from tensorsplit.model.graph.building import Edits, Names
from tensorsplit.model.graph.calculation import Calculation
from tensorsplit.model.graph.facts import Sequence, Tensor
from tensorsplit.model.graph.nodes import NodeRef, domain_opsets
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.profiles import Limitation, Profile

_T = TypeVar("_T")


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


class InsertionPoint:
    """Where nodes can be added to a graph as they are needed, each behind the last.

    Args:
        graph: The graph.
        node: The node that the point is next to, and that stays there meanwhile; None for the end
            of the graph.
        behind: Whether the point is behind the node, and not before it.
    """

    def __init__(self, graph: ir.Graph, node: ir.Node | None, *, behind: bool = False) -> None:
        self.graph, self._node, self._behind = graph, node, behind

    def insert(self, nodes: list[ir.Node]) -> None:
        """Add nodes behind those that were added before."""
        if not nodes:
            return
        if self._node is None:
            self.graph.extend(nodes)
        elif self._behind:
            self.graph.insert_after(self._node, nodes)
            self._node = nodes[-1]
        else:
            self.graph.insert_before(self._node, nodes)


class Context:
    """One lowering of one model.

    Attributes:
        model: The model, which is changed.
        facts: What is known of its values.
        profile: What the target can't do.
        report: What was done.
        names: New names.
        edits: What is replaced and removed.
        opset: The opset of ONNX's own domain.
        checks_sum: Whether the target's Split refuses calculated lengths with a wrong sum.
        takes_negative_axis: Whether an axis may count from the back.
    """

    def __init__(
        self, model: ir.Model, facts: Facts, profile: Profile, report: LoweringReport
    ) -> None:
        self.model, self.facts, self.profile, self.report = model, facts, profile, report
        self.names = Names(model)
        self.opset = domain_opsets(model.opset_imports).get("", 0)
        self.edits = Edits()
        self._fresh: set[ir.Value] = set()
        entries = {entry.feature for entry in profile.entries}
        self.checks_sum = "computed_lengths" not in entries
        self.takes_negative_axis = "negative_axis" not in entries

    def build(self, point: InsertionPoint, stem: str, make: Callable[[Calculation], _T]) -> _T:
        """Make nodes and insert them."""
        calculation = Calculation(self.names, self.opset, stem)
        made = make(calculation)
        point.insert(calculation.nodes)
        if calculation.has_guards:
            for entry in self.profile.about({"runtime_checks": True}):
                self.report.note(f"{self.profile.name}: {entry.note}")
        self._fresh.update(output for node in calculation.nodes for output in node.outputs)
        return made

    def calculate(self, point: InsertionPoint, stem: str, number: Number) -> Number:
        """Have a number calculated once, for all that use it."""
        if isinstance(number, (int, tuple)):
            return number
        return value(self.build(point, stem, lambda make: make.make(number)))

    def replace(self, old: ir.Value, new: ir.Value, point: InsertionPoint) -> None:
        """Have a value used in the place of another one, which is no longer made.

        Args:
            old: The value, an output of a node that will be removed.
            new: What takes its place; takes over its name if it was made here and is not yet
                known by another name.
            point: Where to insert a node if the old value is an output of its graph, and the new
                one can't be it.
        """
        if new in self._fresh and new.graph is old.graph:
            self.stand_in(old, new)
        elif old.is_graph_output():
            stem = old.name or "output"
            self.stand_in(old, self.build(point, stem, lambda make: self._same(make, new)))
        else:
            ir.convenience.replace_all_uses_with(old, new)

    def _same(self, make: Calculation, held: ir.Value) -> ir.Value:
        """A value once more; taken element by element where the target can't pass it on."""
        if not self.takes_by_index(held):
            return make.op("Identity", [held])
        return make.slice(held, 0, dimension(held, 0), 0, by_index=True)

    def stand_in(self, old: ir.Value, new: ir.Value) -> None:
        """Have a value that was newly made take the name, type and place of another one."""
        self._fresh.discard(new)
        new.type, new.shape, new.doc_string = old.type, old.shape, old.doc_string
        new.metadata_props.update(old.metadata_props)
        self.facts.set(new, self.facts.of(old))
        if old.name:
            new.name, old.name = old.name, self.names.fresh(f"{old.name}_before")
        self.edits.replace(old, new)

    def changed(self, place: NodeRef, became: str, reason: str) -> None:
        """Note a change."""
        operator = place.node.op_type
        self.report.changes.append(LoweredNode(place.path, operator, became, reason))

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

    def know(self, held: ir.Value, fact: Tensor) -> ir.Value:
        """Note what is known of a new value; returns it."""
        self.facts.set(held, fact)
        return held


def must_go(entry: Limitation) -> bool:
    """Whether a node is changed for an entry.

    It is not where an engine refuses rare inputs only, nor for what large values do.
    """
    return entry.extent in ("all", "some") or (
        entry.extent == "edge" and entry.verdict in ("wrong", "crash")
    )


def graph_of(node: ir.Node) -> ir.Graph:
    """The graph that a node stands in; functions that are lowered were inlined."""
    graph = node.graph
    assert isinstance(graph, ir.Graph)  # noqa: S101 - see above
    return graph


def refusal(problem: str, place: NodeRef | None, fix: str = "") -> SplitError:
    """A refusal to lower, with the node."""
    return SplitError(
        CANNOT_LOWER,
        problem,
        fix,
        operator=None if place is None else place.node.op_type,
        node="graph" if place is None else place.path,
    )
