"""A model as ONNX Runtime has it: calls are inlined, and Ifs replaced by the branches taken."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, partial
from graphlib import CycleError
from itertools import chain, takewhile
from typing import NamedTuple

import onnx_ir as ir

from tensorsplit.core.errors import SplitError
from tensorsplit.model.features.from_constants import is_evaluated
from tensorsplit.model.features.sequences import SEQUENCE_OPERATORS
from tensorsplit.model.features.split_features import splits_open_axis
from tensorsplit.model.features.values import has_known_shape
from tensorsplit.model.graph.building import Edits, take_out
from tensorsplit.model.graph.called_in_onnx import operator_of
from tensorsplit.model.graph.calls import inline
from tensorsplit.model.graph.held_tensors import fixed_tensor_of, tensor_of
from tensorsplit.model.graph.loops import is_loop
from tensorsplit.model.graph.nodes import (
    NodeRef,
    Scope,
    bodies,
    branch_label,
    is_operator,
    nodes_within,
    scopes,
    walk,
)
from tensorsplit.model.graph.producers import first_input, passed_from, passed_on, producer_of
from tensorsplit.model.infer.analysis import Facts, analyse
from tensorsplit.model.profiles import Profile
from tensorsplit.model.reached import each_once

_ORIGIN = "tensorsplit.origin"
"""Under this key a copy of a node notes the node itself."""


OF_COPIES = frozenset(
    {
        *("data_in_bytes", "factor_around_body"),
        *("joined_by_channels", "lost_operand", "lost_result", "moved_into_body", "moved_signed"),
        *("moved_without_zero_point", "rounded_once", "shortened_loop", "turned_by_channels"),
    }
)
"""The features that nodes have where the engine has put them."""


class _Copies(NamedTuple):
    """A changed copy of a model.

    Attributes:
        nodes: The nodes of the copy that each node of the model became.
        facts: What is known of the copy.
        taken: What holds of Ifs of the model whose branch the engine puts in their place.
    """

    nodes: Mapping[ir.Node, list[NodeRef]]
    facts: Facts
    taken: Mapping[ir.Node, set[str]]


class Inlined:
    """Where the nodes of a model are once ONNX Runtime has loaded it.

    Args:
        model: The model, which is not changed.
        facts: What is known of it.
        profile: The profile of an engine; one that lacks nothing of `OF_COPIES` needs no copy.
    """

    def __init__(self, model: ir.Model, facts: Facts, profile: Profile) -> None:
        self._model, self._facts = model, facts
        self._is_needed = any(entry.feature in OF_COPIES for entry in profile.entries)

    def of(self, ref: NodeRef) -> tuple[list[NodeRef], Facts]:
        """Return the copies of a node, none if nothing leads to it, and what is known of them."""
        made = self._copies
        return ([ref], self._facts) if made is None else (made.nodes.get(ref.node, []), made.facts)

    def of_taken(self, node: ir.Node) -> set[str]:
        """Return the features of an If that the engine replaces by a branch, in any copy."""
        return set() if self._copies is None else self._copies.taken.get(node, set())

    @cached_property
    def _copies(self) -> _Copies | None:
        """The changed copy; None if nothing changes, or the model can't be copied or inlined."""
        inside = _nodes(self._model) if self._is_needed else []
        if {"DequantizeLinear", "If"}.isdisjoint(node.op_type for node in inside):
            return None
        if not (self._model.functions or any(branch_taken(node, self._facts) for node in inside)):
            return None
        try:
            copy = self._model.clone()
        except (RuntimeError, ValueError):  # onnx-ir's, of a model that is not well-formed
            return None
        try:
            return _changed(copy, inside)
        except (SplitError, CycleError):  # functions of other opsets, or that call themselves
            return None


def _nodes(model: ir.Model) -> list[ir.Node]:
    return [node for scope in scopes(model) for node in scope]


def _changed(copy: ir.Model, nodes_before: list[ir.Node]) -> _Copies:
    """Change a copy of a model, which has these nodes, as the engine does."""
    for node, own in zip(_nodes(copy), nodes_before, strict=True):
        node.meta[_ORIGIN] = own
    inline(copy)
    facts, edits, taken = analyse(copy), Edits(), defaultdict[ir.Node, set[str]](set)
    for ref in walk(copy):
        if found := [*_of_taken(ref, facts)]:
            taken[ref.node.meta[_ORIGIN]].update(found)
    _take_branches(copy.graph, facts, edits)
    edits.finish()
    nodes = defaultdict[ir.Node, list[NodeRef]](list)
    for ref in walk(copy):
        if _ORIGIN in ref.node.meta:
            nodes[ref.node.meta[_ORIGIN]].append(ref)
    return _Copies(nodes, facts, taken)


def _take_branches(scope: Scope, facts: Facts, edits: Edits) -> None:
    """Insert branches that are always taken before their Ifs."""
    waiting = deque(scope)
    while waiting:
        node = waiting.popleft()
        branch = branch_taken(node, facts)
        if branch is None:
            for _, body in bodies(node):
                _take_branches(body, facts, edits)
            continue
        waiting.extendleft(reversed(list(branch)))
        ends = take_out(node, branch, partial(_add_constant, facts=facts, before=node))
        edits.replace(zip(node.outputs, ends, strict=True))
        edits.retire(node)


def _add_constant(held: ir.Value, before: ir.Node, facts: Facts) -> ir.Value:
    node = ir.node("Constant", [], {"value": held.const_value})
    (made,) = node.outputs
    assert before.graph is not None  # noqa: S101 - it is in the copy
    before.graph.insert_before(before, node)
    facts.set(made, facts.of(held))
    return made


def branch_taken(node: ir.Node, facts: Facts) -> ir.Graph | None:
    """Return the branch by which the engine replaces an If, if it does."""
    if not is_operator(node, "If"):
        return None
    condition = first_input(node)
    known = facts.tensor(condition).constant
    if not known or not _is_folded(condition, facts):
        return None
    branch = dict(bodies(node)).get(branch_label(known[0]))
    has_ends = branch is not None and len(branch.outputs) == len(node.outputs)
    return branch if has_ends else None


def _of_taken(ref: NodeRef, facts: Facts) -> Iterator[str]:
    """Yield the features of an If that the engine replaces wrongly by a branch.

    It leaves out the condition of a Loop that has none, which comes last if nothing is carried.
    """
    branch = branch_taken(ref.node, facts)
    if branch is None:
        return
    if ref.around and is_lost(ref.node, facts):
        yield "lost_result"
    if any(is_loop(node) and not any(node.inputs[1:]) for node in branch):
        yield "shortened_loop"
    if _loses_operand(ref.node, branch, facts):
        yield "lost_operand"


def _nodes_taken(branch: ir.Graph, facts: Facts) -> Iterator[ir.Node]:
    """Yield the nodes of a branch, and of those that are taken in it."""
    for node in branch:
        yield node
        inner = branch_taken(node, facts)
        if inner is not None:
            yield from _nodes_taken(inner, facts)


def _loses_operand(taken: ir.Node, branch: ir.Graph, facts: Facts) -> bool:
    """Return whether the engine loses what a branch reads: before the If, only Shapes read it.

    It leaves out each Shape that is known, with what only that reads, before it sees the branch;
    not so where the condition follows from the Shape.
    """
    nodes = (node for node in _nodes_taken(branch, facts) if not _leads_to_shape(node, facts))
    read = {*chain.from_iterable(node.inputs for node in nodes)} - {None}
    inside = {*nodes_within(taken)}
    readers = [
        {*_readers(held)} - inside
        for held in read
        if held is not None
        and held.producer() is not None
        and held.graph is taken.graph
        and not held.is_graph_output()
        and not _is_folded(held, facts)
    ]
    deciding = _deciding(taken)
    lost = [
        each
        for each in readers
        if all(_leads_to_shape(reader, facts) for reader in each)
        and not each <= deciding
        and not _are_folded_in_time(each, deciding)
    ]
    before = {*takewhile(lambda node: node is not taken, _order(taken.graph))} if lost else set()
    return any(each <= before for each in lost)


def _order(scope: Scope | None) -> Iterator[ir.Node]:
    """Yield nodes as the engine goes through them: what each leads to that nothing reads, in turn.

    What a node reads comes before it, that which is written first at first. An Identity that gives
    out what nothing else reads is left out before.
    """
    places = {node: place for place, node in enumerate(scope or ())}

    def read_by(node: ir.Node) -> list[ir.Node]:
        held = chain.from_iterable(each.inputs for each in nodes_within(node))
        made = {each.producer() for each in held if each is not None}
        return sorted((each for each in made if each in places), key=places.__getitem__)

    unread = [node for node in places if not any(made.uses() for made in node.outputs)]
    waiting = sorted(map(_given_out, unread), key=places.__getitem__, reverse=True)
    met, done = set[ir.Node](), set[ir.Node]()
    while waiting:
        node = waiting[-1]
        if node not in met:
            met.add(node)
            waiting.extend(each for each in reversed(read_by(node)) if each not in met)
            continue
        waiting.pop()
        if node not in done:
            done.add(node)
            yield node


def _given_out(node: ir.Node) -> ir.Node:
    """Return the node that gives out a tensor once an Identity at the end is left out."""
    held = first_input(node) if operator_of(node) == "Identity" else None
    made = None if held is None else held.producer()
    is_left_out = held is not None and len(held.uses()) == 1 and not held.is_graph_output()
    return made if made is not None and is_left_out and made.graph is node.graph else node


def _are_folded_in_time(readers: set[ir.Node], deciding: set[ir.Node]) -> bool:
    """Return whether readers are Shapes that leave a tensor when an If is decided, by one."""
    return not readers.isdisjoint(deciding) and all(
        _is_shape(node) and not any(made.is_graph_output() for made in node.outputs)
        for node in readers - deciding
    )


def _deciding(node: ir.Node) -> set[ir.Node]:
    """Return the nodes that the condition of an If follows from."""

    def producers(values: Iterable[ir.Value | None]) -> list[ir.Node]:
        made = (held.producer() for held in values if held is not None)
        return [each for each in made if each is not None]

    first = producers([first_input(node)])
    return {*each_once(first, lambda made: producers(made.inputs))}


def is_lost(node: ir.Node, facts: Facts) -> bool:
    """Return whether the engine loses what an If in a body gives: others read it, after a Shape.

    The engine puts the branch in the place of the If, and knows of the first reader only. Where
    that gives a shape, which is known of both branches, it leaves out the reader and what gives it.
    """
    ends = zip(*(body.outputs for _, body in bodies(node)), strict=False)
    return any(
        _is_read_after_shape(made, facts)
        for made, given in zip(node.outputs, ends, strict=False)
        if len({facts.tensor(each).shape for each in given}) == 1
    )


def _is_read_after_shape(made: ir.Value, facts: Facts) -> bool:
    readers = set(_readers(made))
    first = next((node for node in made.graph or () if node in readers), None)
    return first is not None and len(readers) > 1 and _leads_to_shape(first, facts)


def _readers(made: ir.Value) -> Iterator[ir.Node]:
    """Yield the nodes that read a value; not an Identity inside, but those that read its result."""
    for held in each_once([made], passed_on):
        yield from (use.node for use in held.uses() if not _is_inner_identity(use.node))


def _is_inner_identity(node: ir.Node) -> bool:
    gives_out = any(made.is_graph_output() for made in node.outputs)
    return operator_of(node) == "Identity" and not gives_out


def _leads_to_shape(reader: ir.Node, facts: Facts) -> bool:
    """Return whether a known shape is all that is used of what a node gives, or it gives that."""

    def only_reader(node: ir.Node) -> list[ir.Node]:
        uses = [*chain.from_iterable(map(_readers, node.outputs))]
        return uses if len(uses) == 1 else []

    return any(_is_known_shape(each, facts) for each in each_once([reader], only_reader))


def _is_known_shape(node: ir.Node, facts: Facts) -> bool:
    data = first_input(node)
    if not _is_shape(node) or not has_known_shape(data, facts):
        return False
    return not splits_open_axis(producer_of(passed_from(data)), facts)


def _is_shape(node: ir.Node) -> bool:
    return operator_of(node) == "Shape"


def _is_folded(value: ir.Value | None, facts: Facts) -> bool:
    """Return whether a value is calculated from constants and known shapes, not sequences."""

    def operands(held: ir.Value) -> list[ir.Value]:
        made = None if tensor_of(held) is not None else held.producer()
        if made is None or _is_known_shape(made, facts):
            return []
        return [each for each in made.inputs if each is not None]

    source = passed_from(value)
    if source is None:
        return False
    held = each_once([source], operands)
    made = (each.producer() for each in held if fixed_tensor_of(each) is None)
    return all(
        node is not None and is_evaluated(node) and node.op_type not in SEQUENCE_OPERATORS
        for node in made
    )
