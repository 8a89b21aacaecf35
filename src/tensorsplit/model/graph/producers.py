"""Where values come from: the node that makes one, and the nodes that pass it on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

import onnx_ir as ir

from tensorsplit.model.graph.nodes import is_operator, scopes_inside

RESHAPING = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})
"""Operators that give their data in another shape, with its elements in the same order."""

KEEPING_ORDER = RESHAPING | {"Dropout", "Identity"}
"""Operators that may keep the elements of their data in the same order, in whatever shape."""

KEEPING_AXES = frozenset({"Dropout", "Identity", "Transpose"})
"""Operators that may keep the axes of their data, in whatever order."""

KEEPING_ELEMENTS = KEEPING_ORDER | KEEPING_AXES
"""Operators that may keep the elements of their data, in whatever order and shape."""


def producer_of(value: ir.Value | None) -> ir.Node | None:
    """Return the node that makes a value; None if there is no value, or no node makes it."""
    return None if value is None else value.producer()


def read_by(node: ir.Node) -> Iterator[ir.Value]:
    """Yield the values that a node reads, that its bodies give out and the nodes in them read."""
    inside = list(scopes_inside(node))
    given_out = (graph.outputs for graph in inside)
    read = (each.inputs for graph in inside for each in graph)
    return (held for held in chain(node.inputs, *given_out, *read) if held is not None)


def origins(
    value: ir.Value | None, before: Callable[[ir.Node], ir.Value | None]
) -> Iterator[ir.Value]:
    """Yield a value, and what it comes from through nodes that pass it on.

    Each is yielded once, also those of a ring, which is refused elsewhere.

    Args:
        value: The value.
        before: Returns the input that a node passes on; None if it passes on none.
    """
    known = set[ir.Value]()
    while value is not None and value not in known:
        yield value
        known.add(value)
        made = value.producer()
        value = None if made is None else before(made)


def passed_from(value: ir.Value | None) -> ir.Value | None:
    """Return the value that Identity nodes pass on; one of them, where they read each other."""
    return [value, *origins(value, _given_on)][-1]


def _given_on(node: ir.Node) -> ir.Value | None:
    return first_input(node) if is_identity(node) else None


def passed_on(value: ir.Value) -> list[ir.Value]:
    """Return the outputs of the Identity nodes that read a value."""
    readers = (use.node for use in value.uses())
    return [made for node in readers if is_identity(node) for made in node.outputs]


def is_identity(node: ir.Node) -> bool:
    """Return whether a node is ONNX's Identity."""
    return is_operator(node, "Identity")


def first_input(node: ir.Node) -> ir.Value | None:
    """Return the first input of a node; None if there is none."""
    return next(iter(node.inputs), None)
