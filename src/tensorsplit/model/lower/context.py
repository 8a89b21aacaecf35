"""What every step of lowering shares: the model, what is known of it, the target, the report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import onnx_ir as ir

from tensorsplit.core.errors import CANNOT_LOWER, SplitError
from tensorsplit.model.graph.building import Edits, Names
from tensorsplit.model.graph.facts import Tensor
from tensorsplit.model.graph.nodes import NodeRef
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.lower.arithmetic import Arithmetic
from tensorsplit.model.lower.report import Change, Report
from tensorsplit.model.profiles import Profile

_T = TypeVar("_T")


class Home:
    """A place in a graph where nodes can be added as they are needed, each behind the last.

    Args:
        graph: The graph.
        node: The node that the place is next to, and that stays there meanwhile; None for the
            end of the graph.
        behind: Whether the place is behind the node, and not before it.
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
    """

    def __init__(self, model: ir.Model, facts: Facts, profile: Profile, report: Report) -> None:
        self.model, self.facts, self.profile, self.report = model, facts, profile, report
        self.names = Names(model)
        self.opset = max(model.opset_imports.get(domain, 0) for domain in ("", "ai.onnx"))
        self.edits = Edits()
        self._fresh: set[int] = set()

    def build(self, home: Home, stem: str, make: Callable[[Arithmetic], _T]) -> _T:
        """Make nodes and put them at a place."""
        arithmetic = Arithmetic(self.names, self.opset, stem)
        made = make(arithmetic)
        home.insert(arithmetic.nodes)
        self._fresh.update(id(value) for node in arithmetic.nodes for value in node.outputs)
        return made

    def replace(self, old: ir.Value, new: ir.Value, home: Home) -> None:
        """Have a value used in the place of another one, which is no longer made.

        Args:
            old: The value, an output of a node that will be removed.
            new: What takes its place; takes over its name if it was made here and is not yet
                known by another name.
            home: Where to put a node if the old value is an output of its graph, and the new one
                can't be it.
        """
        if id(new) in self._fresh and new.graph is old.graph:
            self.stand_in(old, new)
        elif old.is_graph_output():
            stem = old.name or "output"
            self.stand_in(old, self.build(home, stem, lambda make: self._same(make, new)))
        else:
            ir.convenience.replace_all_uses_with(old, new)

    def _same(self, make: Arithmetic, value: ir.Value) -> ir.Value:
        """A value once more; taken element by element where the target can't pass it on."""
        if not self.takes_by_index(value):
            return make.op("Identity", [value])
        return make.slice(value, 0, make.dimension(value, 0), 0, by_index=True)

    def stand_in(self, old: ir.Value, new: ir.Value) -> None:
        """Have a value that was newly made take the name, type and place of another one."""
        self._fresh.discard(id(new))
        new.type, new.shape, new.doc_string = old.type, old.shape, old.doc_string
        new.metadata_props.update(old.metadata_props)
        self.facts.set(new, self.facts.of(old))
        if old.name:
            new.name, old.name = old.name, self.names.fresh(f"{old.name}_before")
        self.edits.replace(old, new)

    def changed(self, place: NodeRef, became: str, reason: str) -> None:
        """Note a change."""
        operator = place.node.op_type
        self.report.changes.append(Change(place.path, operator, became, reason))

    def takes_by_index(self, value: ir.Value) -> bool:
        """Whether the target was measured not to cut tensors of the value's element type."""
        fact = self.facts.of(value)
        if not isinstance(fact, Tensor) or fact.element_type is None:
            return False
        features = {"operator": "Split", "element_type": fact.element_type.name.lower()}
        return any(entry.feature == "element_type" for entry in self.profile.about(features))

    def tensor(self, value: ir.Value) -> Tensor:
        """What is known of a tensor."""
        fact = self.facts.of(value)
        return fact if isinstance(fact, Tensor) else Tensor()

    def know(self, value: ir.Value, fact: Tensor) -> ir.Value:
        """Note what is known of a new value; returns it."""
        self.facts.set(value, fact)
        return value


def refusal(problem: str, place: NodeRef | None, fix: str = "") -> SplitError:
    """A refusal to lower, with the node."""
    return SplitError(
        CANNOT_LOWER,
        problem,
        fix,
        operator=None if place is None else place.node.op_type,
        node="graph" if place is None else place.path,
    )
