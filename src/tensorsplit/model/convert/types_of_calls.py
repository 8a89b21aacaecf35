"""Functions that are called in several ways: made once for each, where it is needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable

import onnx_ir as ir

from tensorsplit.model.graph.calls import (
    Key,
    called_by,
    called_with_need,
    check_specialised,
    functions_of,
    key_of,
    separate,
)
from tensorsplit.model.graph.facts import as_tensor
from tensorsplit.model.graph.nodes import NodeRef, change_inputs, walk
from tensorsplit.model.infer.analysis import Facts, analyse
from tensorsplit.model.validity.node_errors import type_name


def _repeat(separated: Callable[[], bool], model: ir.Model) -> None:
    """Make functions until there are no new ones: each may call others that have to follow."""
    before = len(model.functions)
    while model.functions and separated():
        check_specialised(len(model.functions) - before, before, "graph")


def separate_absent(model: ir.Model) -> None:
    """Make functions once for each set of inputs that calls omit; a node then sees what it lacks.

    The first keeps the function's name. What a function passes on to others follows.

    Raises:
        SplitError: TS502 for functions that are called in too many ways.
    """
    _repeat(lambda: _separate_absent(model), model)


def _separate_absent(model: ir.Model) -> bool:
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


def separate_types(model: ir.Model, needs: Callable[[NodeRef], bool]) -> None:
    """Make functions once for each combination of types and ranks that calls pass, where needed.

    The first keeps the function's name. Functions that others call follow when those are made: the
    types that they are called with are known from then on.

    Args:
        model: The model, which is changed.
        needs: Whether the types and ranks of the operands of a node have to be known.

    Raises:
        SplitError: TS502 for functions that are called in too many ways.
    """
    if not model.functions:
        return
    refs = list(walk(model))
    concerned = called_with_need(refs, functions_of(model), needs)
    times = Counter(called_by(ref.node) for ref in refs)
    if all(times[key] < 2 for key in concerned):
        return
    _repeat(lambda: _separate_types(model, concerned), model)


def _separate_types(model: ir.Model, concerned: set[Key]) -> bool:
    """Make copies of functions that are called in several ways; return whether there are any.

    A call of which the types are not known yet stays as it is.
    """
    facts = analyse(model)

    def kinds(_: ir.Function, call: ir.Node) -> tuple[Hashable, ...] | None:
        if called_by(call) not in concerned:
            return None
        found = tuple(_kind(value, facts) for value in call.inputs)
        return None if None in found else found

    new = {key_of(function) for function, _ in separate(model, kinds)} - concerned
    concerned |= new
    return bool(new)


def _kind(value: ir.Value | None, facts: Facts) -> Hashable:
    """Return the type and the rank of an operand; None if its type is not known."""
    if value is None:
        return ""
    kind, shape = type_name(facts.of(value)), as_tensor(facts.of(value)).shape
    return kind and (kind, None if shape is None else len(shape))
