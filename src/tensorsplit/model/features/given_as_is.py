"""Values that a body or a function gives out as they are, without a node of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

import onnx_ir as ir

from tensorsplit.model.graph.loops import is_loop, loop_body, scanned_by, states_of
from tensorsplit.model.graph.message import ADDED
from tensorsplit.model.graph.nodes import bodies, is_used

AROUND = "a value from around it"
TWICE = "one value twice"
ROW = "a row"
STATE = "what it carries"
ROUND = "the number of the round"


class GivenValue(NamedTuple):
    """A value that a body gives out as it is: its origin, and its place among the outputs."""

    what: str
    body: ir.Graph
    place: int


def given_as_is(node: ir.Node) -> Iterator[GivenValue]:
    """Yield the values that a node's bodies give out as they are, except initializers of their own.

    Values from around a body are among them though nothing reads what becomes of these. Of what the
    body of a Loop is given, the number of the round alone is.
    """
    for _, body in bodies(node):
        own = _given_by_loop(body) if is_loop(node) else _own_given(node, body)
        given = zip(body.outputs, own, _are_read(node, body), strict=False)
        for place, (held, what, is_read) in enumerate(given):
            made = held.producer()
            if made is not None and ADDED in made.meta:
                yield GivenValue(AROUND, body, place)
            elif what and is_read:
                yield GivenValue(what, body, place)


def keep_added(held: ir.Value) -> None:
    """Treat the node that was added to pass on a value from around a body as any other."""
    made = held.producer()
    if made is not None:
        made.meta.pop(ADDED, None)


def _are_read(node: ir.Node, body: ir.Graph) -> list[bool]:
    """Return whether anything reads what a body gives at each place, in the next round or later."""
    used = list(map(is_used, node.outputs))
    if not is_loop(node) and not scanned_by(node):
        return used if node.op_type == "If" else [True] * len(used)
    states, first = states_of(node), int(is_loop(node))  # after the condition
    pairs = list(zip_longest(body.outputs[first:], states))
    elsewhere = {end for end, state in pairs if end is not state}
    inside = [
        state is not None and (bool(state.uses()) or state in elsewhere) for _, state in pairs
    ]
    later = zip_longest(used, inside, fillvalue=False)
    return [False] * first + [one or other for one, other in later]


def _own_given(node: ir.Node, body: ir.Graph) -> list[str]:
    """Return which own value a body gives at each place; nothing if each engine takes it."""
    rows = scanned_by(node)
    kinds = (dict.fromkeys(body.inputs, STATE) | dict.fromkeys(rows, ROW)) if rows else {}
    last = {held: place for place, held in enumerate(body.outputs)}
    return [
        kinds.get(held) or ("" if last[held] == place else TWICE)
        for place, held in enumerate(body.outputs)
    ]


def _given_by_loop(body: ir.Graph) -> list[str]:
    """Do as `_own_given` of a Loop, which may give what it carries anywhere."""
    number = body.inputs[:1]
    return ["", *(ROUND if held in number else "" for held in body.outputs[1:])]


def given_inputs(node: ir.Node) -> list[int]:
    """Return the places at which the body of a Loop or a Scan gives an input of its own as it is.

    Among them are those of which nothing reads what becomes of it.
    """
    body = loop_body(node)
    if body is None:
        return []
    own = set(body.inputs)
    return [place for place, held in enumerate(body.outputs) if held in own]


def given_by_function(function: ir.Function) -> list[int]:
    """Return the places at which a function gives out an input of its own, or a value again."""
    met, found = set(function.inputs), list[int]()
    for place, held in enumerate(function.outputs):
        if held in met:
            found.append(place)
        met.add(held)
    return found
