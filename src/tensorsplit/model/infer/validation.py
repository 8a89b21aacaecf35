"""Validation before a run: errors, what is not known yet, and the nodes that decide it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TypeAlias

import onnx_ir as ir

from tensorsplit.core.dimensions import are_known, is_known
from tensorsplit.core.errors import SplitError
from tensorsplit.model.graph.calls import called_by, functions_of
from tensorsplit.model.graph.facts import Fact, SequenceFact, Tensor, as_tensor, declared
from tensorsplit.model.graph.nodes import nodes_within
from tensorsplit.model.graph.opsets import model_opsets
from tensorsplit.model.graph.producers import producer_of, read_by
from tensorsplit.model.graph.split_records import is_split
from tensorsplit.model.infer.analysis import Facts, analyse, fact_of_fed
from tensorsplit.model.infer.sequence_operators import POSITIONS
from tensorsplit.model.reached import each_once

_REMEMBERED = 32
"""So many combinations of shapes that were fed last are remembered for a model."""

_Given: TypeAlias = "tuple[tuple[str, Fact], ...]"
"""What is known of what is given, by name."""


class Validator:
    """Checks the values fed to one model, call after call, and what the calls share once.

    What the types and shapes alone decide is remembered by them. Of what they leave open, only the
    nodes that the elements of what is fed can change are looked at again.
    """

    def __init__(self, model: ir.Model) -> None:
        self._model, self._nodes = model, _concerned(model)
        self._opset = model_opsets(model).get("", 0)
        made = (value for node in self._nodes for value in node.outputs)
        self._values = {value.name: value for value in (*made, *model.graph.inputs)}
        self._shaped = lru_cache(maxsize=_REMEMBERED)(self._of_shapes)
        self._decided = lru_cache(maxsize=_REMEMBERED)(self._of_elements)

    def check(
        self, feeds: Mapping[str, object], computed: Mapping[str, object] | None = None
    ) -> Facts:
        """Do as `validate`.

        Args:
            feeds: What will be fed, as `check_feeds` returns it.
            computed: What is known of other values of the main graph.
        """
        if not self._nodes:
            return Facts()
        shapes = self._facts(feeds, None)
        known = self._shaped(shapes)
        if not known.refusals and not known.undecided:
            return known
        return self._decided(shapes, self._facts({**feeds, **(computed or {})}, self._opset))

    def check_alone(self) -> Facts:
        """Refuse nodes that are sure to run and are wrong whatever is fed."""
        facts = analyse(self._model, None, declarations=False, nodes=self._nodes)
        for error, runs, _ in facts.refusals:
            if runs:
                raise error
        return facts

    def _facts(self, given: Mapping[str, object], opset: int | None) -> _Given:
        pairs = ((name, self._values.get(name)) for name in given)
        return tuple(
            (name, fact_of_fed(value, given[name], opset))
            for name, value in pairs
            if value is not None
        )

    def _of_shapes(self, shapes: _Given) -> Facts:
        return analyse(self._model, dict(shapes), declarations=False, nodes=self._nodes)

    def _of_elements(self, shapes: _Given, given: _Given) -> Facts:
        known, fed = self._shaped(shapes), dict(given)
        if not known.refusals:
            news = {name for name, _ in set(given).difference(shapes)}
            if not news:
                return known
            nodes = self._touched(known, {self._values[name] for name in news})
            facts = analyse(self._model, fed, declarations=False, nodes=nodes, base=known)
            if not facts.refusals:
                return facts
        return validate(self._model, fed, self._nodes)  # which knows what may be refused

    def _touched(self, known: Facts, changed: set[ir.Value]) -> set[ir.Node]:
        """Return the nodes that lead to undecided ones, and can be changed by some values."""
        leading = {node for nodes in known.undecided.values() for node in nodes}
        needed, touched = _needed(self._model, leading), set(leading)
        for node in self._model.graph:
            if node in touched or (
                node in needed and not changed.isdisjoint((*read_by(node), *node.outputs))
            ):
                touched.add(node)
                changed.update(node.outputs)
        return touched


def validate(
    model: ir.Model,
    feeds: Mapping[str, object] | None = None,
    nodes: set[ir.Node] | None = None,
) -> Facts:
    """Check the split nodes of a model, and the positions in its sequences, without running it.

    What a model declares of the outputs of its nodes is not believed. In a body that may not run,
    a node is refused only for what holds whatever is fed, in whatever shape.

    Args:
        model: The model.
        feeds: What will be fed, and what else is known, as for `analyse`; None if nothing is.
        nodes: The nodes of the main graph to look at; None for those that have to do with it.

    Returns:
        What is known of the values that the split nodes and the sequences need.

    Raises:
        SplitError: TS101 to TS309, TS511 for a node that is wrong.
    """
    nodes = _concerned(model) if nodes is None else nodes
    if not nodes:
        return Facts()
    facts = analyse(model, feeds, declarations=False, nodes=nodes)
    always: dict[str | None, SplitError] | None = None
    for error, runs, _ in facts.refusals:
        if runs:
            raise error
        if always is None:
            lasting = facts if feeds is None else _lasting(model, feeds, nodes)
            always = {
                entry.error.node: entry.error
                for entry in lasting.refusals
                if entry.runs is not False
            }
        if error.node in always:
            raise always[error.node]
    return facts


def _lasting(model: ir.Model, feeds: Mapping[str, object], nodes: set[ir.Node]) -> Facts:
    """Return the facts that hold whatever is fed to the fed inputs, in whatever shape."""
    types: dict[str, Fact] = {}
    for value in model.graph.inputs:
        if value.name and value.name in feeds:
            fact = declared(value)
            types[value.name] = Tensor(fact.element_type) if isinstance(fact, Tensor) else fact
    return analyse(model, types, declarations=False, nodes=nodes)


def values_needed(facts: Facts, *, whole: bool = False) -> list[ir.Value]:
    """Return the values of the main graph to compute before the undecided nodes can be checked.

    Args:
        facts: What `validate` returned.
        whole: Whether to run the undecided nodes of the main graph themselves, because their
            operands and the shape of their data did not decide them.

    Returns:
        Operands, data of unknown shape, and all outputs of a node that has an undecided node in a
        body or function; nothing if every node is decided.
    """
    undecided = {node: None for nodes in facts.undecided.values() for node in nodes}
    found: dict[ir.Value, None] = {}
    for node in undecided:
        if not is_checked(node):
            found.update(dict.fromkeys(() if whole else node.outputs))
        elif whole:
            found.update(dict.fromkeys(node.outputs))
        else:
            for index, value in enumerate(node.inputs):
                if value is not None and not _is_enough(node, index, facts.of(value)):
                    found[value] = None
    return [value for value in found if value.name and value.producer() is not None]


def _concerned(model: ir.Model) -> set[ir.Node]:
    """Return the nodes of the main graph that concern splits or sequences, with what they need."""
    called = functions_of(model)
    checked = (
        node
        for node in model.graph
        if any(is_checked(inner) or called_by(inner) in called for inner in nodes_within(node))
    )
    return _needed(model, checked)


def _needed(model: ir.Model, nodes: Iterable[ir.Node]) -> set[ir.Node]:
    """Return nodes of the main graph, with those that they need."""

    def needed(node: ir.Node) -> Iterator[ir.Node]:
        makers = map(producer_of, read_by(node))
        return (made for made in makers if made is not None and made.graph is model.graph)

    return set(each_once(nodes, needed))


def is_checked(node: ir.Node) -> bool:
    """Return whether a node itself is checked: a split, or one that takes a position."""
    if is_split(node):
        return True
    return node.op_type in POSITIONS and node.domain == ""


def _is_enough(node: ir.Node, index: int, fact: Fact) -> bool:
    """Return whether what is known of an input of a checked node is all that the check needs."""
    if node.op_type in POSITIONS:
        if index == 0:
            return isinstance(fact, SequenceFact) and is_known(fact.count)
        return index != POSITIONS[node.op_type] or _has_elements(fact)
    if index > 0:
        return _has_elements(fact)
    data = as_tensor(fact)
    return data.element_type is not None and data.shape is not None and are_known(data.shape)


def _has_elements(fact: Fact) -> bool:
    values = as_tensor(fact).values
    return values is not None and all(isinstance(value, (int, float)) for value in values)
