"""Functions that some calls give fewer inputs: made once for each set of those that are omitted."""

from __future__ import annotations

import onnx_ir as ir

from tensorsplit.model.graph.calls import check_specialised, separate
from tensorsplit.model.graph.nodes import change_inputs


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
    made = separate(model, _read_but_absent)
    for function, absent in made:
        for place in absent:
            for reader, position in tuple(function.inputs[place].uses()):
                change_inputs(reader, {position: None})
    return any(absent for _, absent in made)


def _read_but_absent(function: ir.Function, call: ir.Node) -> tuple[int, ...]:
    """Return the places of the inputs that nodes of a function read and a call omits."""
    given = (*call.inputs, *[None] * len(function.inputs))
    return tuple(
        place for place, held in enumerate(function.inputs) if given[place] is None and held.uses()
    )
