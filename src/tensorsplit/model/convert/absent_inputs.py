"""Functions that some calls give fewer inputs: made once for each set of those that are omitted."""

from __future__ import annotations

import onnx_ir as ir

from tensorsplit.model.graph.calls import (
    Key,
    add_copy,
    called_by,
    check_specialised,
    functions_of,
)
from tensorsplit.model.graph.nodes import change_inputs, walk


def separate_absent(model: ir.Model) -> None:
    """Make functions once for each set of inputs that calls omit; a node then sees what it lacks.

    The first keeps the function's name. What a function passes on to others follows.

    Raises:
        SplitError: TS502 for functions that are called in too many ways.
    """
    before = len(model.functions)
    while model.functions and _separate(model):
        check_specialised(len(model.functions) - before, before, "graph")


def _separate(model: ir.Model) -> bool:
    """Make the functions for the calls that there are now; return whether any reads less."""
    functions, found = functions_of(model), False
    calls: dict[Key, dict[tuple[int, ...], list[ir.Node]]] = {}
    for ref in walk(model):
        function = functions.get(called_by(ref.node))
        if function is not None:
            absent = _read_but_absent(function, ref.node)
            calls.setdefault(called_by(ref.node), {}).setdefault(absent, []).append(ref.node)
    for key, by_absent in calls.items():
        first = next(iter(by_absent))
        for absent, nodes in reversed(by_absent.items()):
            function = functions[key] if absent == first else add_copy(model, functions[key])
            for node in nodes:
                node.op_type = function.name
            for place in absent:
                for reader, position in tuple(function.inputs[place].uses()):
                    change_inputs(reader, {position: None})
            found = found or bool(absent)
    return found


def _read_but_absent(function: ir.Function, call: ir.Node) -> tuple[int, ...]:
    """Return the places of the inputs that nodes of a function read and a call omits."""
    given = (*call.inputs, *[None] * len(function.inputs))
    return tuple(
        place for place, held in enumerate(function.inputs) if given[place] is None and held.uses()
    )
