"""Functions that are called with data of several types: made once for each, where it is needed."""

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
from tensorsplit.model.graph.nodes import NodeRef, walk
from tensorsplit.model.infer.analysis import Facts, analyse
from tensorsplit.model.validity.node_errors import type_name


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
    refs, before = list(walk(model)), len(model.functions)
    concerned = called_with_need(refs, functions_of(model), needs)
    times = Counter(called_by(ref.node) for ref in refs)
    if all(times[key] < 2 for key in concerned):
        return
    while _separate(model, concerned):
        check_specialised(len(model.functions) - before, before, "graph")


def _separate(model: ir.Model, concerned: set[Key]) -> bool:
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
