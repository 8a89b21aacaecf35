"""The anatomy of a Loop and a Scan: what they capture and carry, and which rows they take."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import onnx_ir as ir

from tensorsplit.model.graph.held_tensors import constant, fixed_tensor_of
from tensorsplit.model.graph.nodes import attribute_of, bodies, is_operator, scopes_inside
from tensorsplit.model.graph.producers import passed_from

FIRST_SCAN_WITHOUT_BATCHES = 9

ENDLESS = 1 << 32
"""So many rounds take days: no model means them."""


def captured_in_scan(node: ir.Node) -> list[ir.Value]:
    """Return the values from around it that the body of a Scan uses, except constants, in order.

    An input with a default is among them: another value may be fed (D20).
    """
    return captured_by(node) if is_operator(node, "Scan") else []


def captured_by(node: ir.Node) -> list[ir.Value]:
    """Return the values from around them that a node's bodies use, except constants, in order."""
    inside = list(scopes_inside(node))
    own, used = set(inside), dict[ir.Value, None]()
    for value in chain(*(inner.inputs for inner in chain(*inside))):  # which make all outputs
        if value is not None and value.graph not in own:
            used[value] = None
    return [value for value in used if fixed_tensor_of(passed_from(value) or value) is None]


def count_and_condition(node: ir.Node) -> tuple[ir.Value | None, ir.Value | None]:
    """Return a Loop's inputs for the most rounds, and for whether the first one takes place.

    A condition that is constant and holds is left out.
    """
    count, going = (*node.inputs, None, None)[:2]
    known = constant(passed_from(going))
    return count, None if known is not None and known.size == 1 and known.all() else going


def obeys_condition(inputs: Sequence[ir.Value | None]) -> bool:
    """Return whether a Loop of these inputs ends where the condition of its body does not hold.

    By the standard only if it is given one as well. Without that, and without a number of rounds or
    with one that takes days, it would never end, which no model means: all engines obey then.
    """
    count, going = (*inputs, None, None)[:2]
    most = constant(passed_from(count))
    is_endless = most is not None and most.dtype.kind in "iu" and bool((most >= ENDLESS).all())
    return going is not None or count is None or is_endless


def is_loop(node: ir.Node) -> bool:
    """Return whether a node is a Loop with a body."""
    return is_operator(node, "Loop") and "body" in dict(bodies(node))


def body_of(node: ir.Node) -> ir.Graph:
    """Return the body of a Loop or a Scan that has one."""
    return dict(bodies(node))["body"]


def loop_body(node: ir.Node) -> ir.Graph | None:
    """Return the body of a Loop or a Scan; None for other nodes, and for one that lacks it."""
    is_one = is_operator(node, "Loop", "Scan")
    return dict(bodies(node)).get("body") if is_one else None


def states_of(node: ir.Node) -> list[ir.Value]:
    """Return the states that the body of a Loop or a Scan is given, if the node has one."""
    first = 2 if node.op_type == "Loop" else 0  # after the number of the round and the condition
    inputs = body_of(node).inputs
    return list(inputs[first : len(inputs) - len(scanned_by(node))])


def scanned_by(node: ir.Node) -> list[ir.Value]:
    """Return the rows that a Scan gives its body; nothing for other nodes."""
    if not is_operator(node, "Scan") or "body" not in dict(bodies(node)):
        return []
    count = attribute_of(node, "num_scan_inputs", ir.AttributeType.INT) or 0
    inputs = body_of(node).inputs
    return list(inputs[len(inputs) - count :])


SCANNED_AXES = ("scan_input_axes", "scan_output_axes")
"""The attributes of a Scan for the axes along which rows are taken, and put together."""


SCANNED_DIRECTIONS = ("scan_input_directions", "scan_output_directions")
"""The attributes of a Scan for the rows that are taken, and put together, from the last."""


def axes_of_scan(node: ir.Node) -> tuple[list[int], list[int]]:
    """Return the axes of the rows that a Scan takes, and of those that it gives."""
    scanned = len(scanned_by(node))
    counts = (scanned, len(node.outputs) - len(states_of(node)))
    given, made = (
        list(attribute_of(node, name, ir.AttributeType.INTS) or [0] * count)
        for name, count in zip(SCANNED_AXES, counts, strict=True)
    )
    return given, made


class Carried(NamedTuple):
    """A state of a Loop: its start, what each round is given and gives, and the result."""

    start: ir.Value | None
    inside: ir.Value
    end: ir.Value
    result: ir.Value


def carried_by(node: ir.Node) -> list[Carried]:
    """Return the states of a Loop, in order; none for other nodes."""
    if not is_operator(node, "Loop"):
        return []
    return [
        Carried(*ends)
        for _, body in bodies(node)
        for ends in zip(
            node.inputs[2:], body.inputs[2:], body.outputs[1:], node.outputs, strict=False
        )
    ]
