"""What If and Loop need when their sequences become tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import onnx_ir as ir

from tensorsplit.model.graph.facts import Sequence, Tensor
from tensorsplit.model.graph.nodes import NodeRef
from tensorsplit.model.lower.clusters import Clusters
from tensorsplit.model.lower.context import Context, Home, refusal
from tensorsplit.model.lower.cuts import Cut, Form
from tensorsplit.model.lower.reps import Rep, as_cut, of_cut, tensor_fact, value_of
from tensorsplit.model.lower.step import Reps

Walk: TypeAlias = Callable[[ir.Graph, str], None]
"""Lowers a body, whose path is given."""


@dataclass(frozen=True)
class Control:
    """A node with bodies, and what lowering it needs.

    Attributes:
        place: The node.
        context: The lowering.
        clusters: Which sequences go.
        reps: What stands for each of them.
        walk: What lowers a body.
    """

    place: NodeRef
    context: Context
    clusters: Clusters
    reps: Reps
    walk: Walk

    @property
    def graph(self) -> ir.Graph:
        """The graph that the node stands in."""
        graph = self.place.node.graph
        assert isinstance(graph, ir.Graph)  # noqa: S101 - functions were inlined
        return graph

    def rep(self, value: ir.Value) -> Rep:
        """What stands for a sequence.

        Raises:
            SplitError: TS513 if nothing does.
        """
        if value not in self.reps:
            raise refusal("a sequence comes from an operator that can't be lowered", self.place)
        return self.reps[value]

    def fact(self, value: ir.Value) -> Sequence:
        """What is known of a sequence."""
        fact = self.context.facts.of(value)
        return fact if isinstance(fact, Sequence) else Sequence()

    def given_out(self, rep: Rep, form: Form | None, body: ir.Graph) -> list[ir.Value]:
        """What a body gives out for a sequence: values that are made in it.

        Args:
            rep: The sequence.
            form: How it is laid out in one tensor; None for each tensor by itself.
            body: The body.
        """
        home = Home(body, None)
        if form is None:
            values = [value_of(part) for part in rep.parts or ()]
        else:
            values = tensors(as_cut(rep, form, self.context, home, self.place))
        return [self._inside(value, body, home) for value in values]

    def _inside(self, value: ir.Value, body: ir.Graph, home: Home) -> ir.Value:
        if value.producer() is not None and value.graph is body and not value.is_graph_output():
            return value
        return self.context.build(home, "body", lambda make: make.op("Identity", [value]))

    def taken_back(
        self, values: list[ir.Value], form: Form | None, fact: Sequence, home: Home
    ) -> Rep:
        """What stands for a sequence whose tensors came through the node.

        Args:
            values: The tensors on this side.
            form: How they hold the sequence; None if each is one of its tensors.
            fact: What is known of the sequence.
            home: Where nodes can be put that use them.
        """
        if form is None:
            return Rep(tuple(values), None, fact)
        stem = self.place.node.name or self.place.node.op_type
        chunk = 1 if form.dropped else None
        lengths = None if form.dropped else values[1]
        cut = Cut(self.context, home, values[0], form, chunk, lengths, None, stem)
        return of_cut(cut, Sequence(fact.element_type, fact.part))

    def new_values(
        self, old: ir.Value, fact: Sequence, form: Form | None, count: int
    ) -> list[ir.Value]:
        """Values for the tensors that stand for a sequence on one side of the node."""
        return [self._new_value(old, fact, form, position) for position in range(count)]

    def _new_value(
        self, old: ir.Value, fact: Sequence, form: Form | None, position: int
    ) -> ir.Value:
        value = ir.Value(name=self.context.names.fresh(f"{old.name or 'sequence'}_tensor"))
        if form is None:
            known = Tensor(fact.element_type)
        elif position == 1:
            known = Tensor(ir.DataType.INT64, (None,))
        else:
            known = tensor_fact(fact, form)
        if known.element_type is not None:
            value.type = ir.TensorType(known.element_type)
        if known.shape is not None:
            value.shape = ir.Shape(known.shape)
        return self.context.know(value, known)

    def copy(self, old: ir.Value) -> ir.Value:
        """A value for an output that stays what it was."""
        name = self.context.names.fresh(f"{old.name or 'output'}_new")
        return ir.Value(name=name, type=old.type, shape=old.shape)

    def replace(self, inputs: list[ir.Value | None], outputs: list[ir.Value]) -> Home:
        """Put a node with other inputs and outputs behind the old one; gives the place behind."""
        old = self.place.node
        new = ir.Node(
            old.domain,
            old.op_type,
            inputs,
            list(old.attributes.values()),
            outputs=outputs,
            name=old.name,
            doc_string=old.doc_string,
            metadata_props=dict(old.metadata_props),
        )
        self.graph.insert_after(old, new)
        self.context.edits.retire(old)
        return Home(self.graph, new, behind=True)


def tensors(cut: Cut) -> list[ir.Value]:
    """The tensors that hold a sequence: the data, and the lengths unless all are 1."""
    return [cut.data] if cut.form.dropped else [cut.data, cut.lengths_value()]
