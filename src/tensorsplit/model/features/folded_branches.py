"""An If in a body that ONNX Runtime takes the branch of as it loads the model."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from tensorsplit.core.dimensions import are_known
from tensorsplit.model.features.called_in_onnx import operator_of
from tensorsplit.model.features.from_constants import is_evaluated
from tensorsplit.model.features.sequences import SEQUENCE_OPERATORS
from tensorsplit.model.graph.held_tensors import tensor_of
from tensorsplit.model.graph.nodes import NodeRef, bodies
from tensorsplit.model.graph.producers import first_input, passed_from, passed_on
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.reached import each_once


def is_lost(ref: NodeRef, facts: Facts) -> bool:
    """Return whether the engine loses what an If in a body gives: others read it, beside a Shape.

    The body may also call a function that it is in. The engine puts the branch in the place of the
    If, and knows of one reader only. Where that gives a shape, which is known of both branches, it
    leaves out the reader and what gives it.
    """
    node, condition = ref.node, first_input(ref.node)
    if ref.op_type != "If" or facts.tensor(condition).constant is None:
        return False
    if not ref.around and ref.function not in facts.in_bodies:
        return False
    ends = zip(*(body.outputs for _, body in bodies(node)), strict=False)
    beside_shapes = (
        _is_read_beside_shape(made, facts)
        for made, given in zip(node.outputs, ends, strict=False)
        if len({facts.tensor(each).shape for each in given}) == 1
    )
    return any(beside_shapes) and _is_folded(condition)


def _is_read_beside_shape(made: ir.Value, facts: Facts) -> bool:
    readers = list(_readers(made))
    return len(readers) > 1 and any(_leads_to_shape(each, facts) for each in readers)


def _readers(made: ir.Value) -> Iterator[ir.Node]:
    """Yield the nodes that read a value; not an Identity, but those that read what it gives."""
    for held in each_once([made], passed_on):
        yield from (use.node for use in held.uses() if operator_of(use.node) != "Identity")


def _leads_to_shape(reader: ir.Node, facts: Facts) -> bool:
    """Return whether a known shape is all that is used of what a node gives, or it gives that."""

    def only_reader(node: ir.Node) -> list[ir.Node]:
        uses = [use.node for made in node.outputs for use in made.uses()]
        return uses if len(uses) == 1 else []

    shapes = (each for each in each_once([reader], only_reader) if operator_of(each) == "Shape")
    measured = (facts.tensor(first_input(each)).shape for each in shapes)
    return any(shape is not None and are_known(shape) for shape in measured)


def _is_folded(condition: ir.Value | None) -> bool:
    """Return whether a condition is calculated from constants, without sequences between."""

    def operands(held: ir.Value) -> list[ir.Value]:
        made = None if tensor_of(held) is not None else held.producer()
        return [] if made is None else [each for each in made.inputs if each is not None]

    source = passed_from(condition)
    return source is not None and all(
        tensor_of(held) is not None or _is_plain(held.producer())
        for held in each_once([source], operands)
    )


def _is_plain(node: ir.Node | None) -> bool:
    return node is not None and is_evaluated(node) and node.op_type not in SEQUENCE_OPERATORS
