"""What a body or a function gives out as it is, without a node of its own that makes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import onnx_ir as ir

from tensorsplit.model.graph.loops import is_loop, scanned_by, states_of
from tensorsplit.model.graph.message import ADDED
from tensorsplit.model.graph.nodes import bodies, is_used

AROUND = "a value from around it"
TWICE = "one value twice"
ROW = "a row"
STATE = "what it carries"
MOVED = "what it carries elsewhere"
ROUND = "the number of the round"
CONDITION = "the condition of a Loop"


class GivenValue(NamedTuple):
    """What a body gives out as it is: what that is, and its place among the outputs."""

    what: str
    body: ir.Graph
    place: int


def given_as_is(node: ir.Node) -> Iterator[GivenValue]:
    """Yield what the bodies of a node give out as it is, but for initializers of their own.

    Values from around a body are among them though nothing reads what becomes of these. Of a Loop,
    what it carries is not, where that stays in its place or is given as rows.
    """
    for _, body in bodies(node):
        for place, held in enumerate(body.outputs):
            if _is_added(held.producer()):
                yield GivenValue(AROUND, body, place)
            elif (what := _own_given(node, body, place)) and _is_read(node, place):
                yield GivenValue(what, body, place)


def _is_added(node: ir.Node | None) -> bool:
    return node is not None and ADDED in node.meta


def keep_added(held: ir.Value) -> None:
    """Have the node that was added to pass on a value from around a body be one as others."""
    made = held.producer()
    if made is not None:
        made.meta.pop(ADDED, None)


def _is_read(node: ir.Node, place: int) -> bool:
    """Return whether anything reads what a body gives at a place, in the next round or later."""
    is_repeated = is_loop(node) or bool(scanned_by(node))
    if not is_repeated and node.op_type != "If":
        return True
    place -= is_loop(node)  # its condition
    inside = states_of(node) if is_repeated else []
    each = slice(place, place + 1)  # a node that is malformed has fewer
    return any(map(is_used, (*node.outputs[each], *inside[each])))


def _own_given(node: ir.Node, body: ir.Graph, place: int) -> str:
    """Return what of its own values a body gives at a place; nothing if each engine takes that."""
    held = body.outputs[place]
    if held in scanned_by(node):
        return ROW
    if scanned_by(node) and held in body.inputs:
        return STATE
    if not is_loop(node):
        return TWICE if held in body.outputs[place + 1 :] else ""
    if held not in body.inputs or place == 0:
        return ""
    if held in body.inputs[:2]:
        return ROUND if held is body.inputs[0] else CONDITION
    states = states_of(node)
    return MOVED if place <= len(states) and states[place - 1] is not held else ""


def given_by_function(function: ir.Function) -> list[int]:
    """Return the places at which a function gives out an input of its own, or a value again."""
    met, found = set(function.inputs), list[int]()
    for place, held in enumerate(function.outputs):
        if held in met:
            found.append(place)
        met.add(held)
    return found
