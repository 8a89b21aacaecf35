"""An If in a body that ONNX Runtime takes the branch of as it loads the model."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from tensorsplit.core.dimensions import are_known
from tensorsplit.model.features.called_in_onnx import operator_of
from tensorsplit.model.features.from_constants import is_evaluated
from tensorsplit.model.features.sequences import SEQUENCE_OPERATORS
from tensorsplit.model.graph.held_tensors import fixed_tensor_of, tensor_of
from tensorsplit.model.graph.nodes import bodies
from tensorsplit.model.graph.producers import first_input, passed_from, passed_on
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.reached import each_once


def branch_taken(node: ir.Node, facts: Facts) -> ir.Graph | None:
    """Return the branch of an If that the engine puts in its place, if it does."""
    if (node.domain, node.op_type) != ("", "If"):
        return None
    condition = first_input(node)
    known = facts.tensor(condition).constant
    if not known or not _is_folded(condition, facts):
        return None
    branch = dict(bodies(node)).get("then_branch" if known[0] else "else_branch")
    has_ends = branch is not None and len(branch.outputs) == len(node.outputs)
    return branch if has_ends else None


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
    """Yield the nodes that read a value; not an Identity, but those that read what it gives."""
    for held in each_once([made], passed_on):
        yield from (use.node for use in held.uses() if operator_of(use.node) != "Identity")


def _leads_to_shape(reader: ir.Node, facts: Facts) -> bool:
    """Return whether a known shape is all that is used of what a node gives, or it gives that."""

    def only_reader(node: ir.Node) -> list[ir.Node]:
        uses = [use.node for made in node.outputs for use in made.uses()]
        return uses if len(uses) == 1 else []

    return any(_is_known_shape(each, facts) for each in each_once([reader], only_reader))


def _is_known_shape(node: ir.Node, facts: Facts) -> bool:
    if operator_of(node) != "Shape":
        return False
    shape = facts.tensor(first_input(node)).shape
    return shape is not None and are_known(shape)


def _is_folded(condition: ir.Value | None, facts: Facts) -> bool:
    """Return whether a condition is calculated from constants and known shapes, not sequences."""

    def operands(held: ir.Value) -> list[ir.Value]:
        made = None if tensor_of(held) is not None else held.producer()
        if made is None or _is_known_shape(made, facts):
            return []
        return [each for each in made.inputs if each is not None]

    source = passed_from(condition)
    return source is not None and all(
        fixed_tensor_of(held) is not None or _is_plain(held.producer())
        for held in each_once([source], operands)
    )


def _is_plain(node: ir.Node | None) -> bool:
    return node is not None and is_evaluated(node) and node.op_type not in SEQUENCE_OPERATORS
