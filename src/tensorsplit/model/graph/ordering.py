"""The order of nodes: in ONNX each reads only what comes before it; some engines sort them.

ADR 39 explains why and where they are sorted here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from functools import cache
from itertools import chain

import onnx_ir as ir

from tensorsplit.model.graph.node_paths import note_places
from tensorsplit.model.graph.nodes import Scope, bodies, scopes_in
from tensorsplit.model.graph.producers import producer_of


def is_in_order(model: ir.Model) -> bool:
    """Return whether no node reads what a later one gives, in bodies and functions too."""
    return not any(True for scope in _outermost(model) for _ in _read_early(scope, done=set()))


def put_in_order(model: ir.Model) -> bool:
    """Sort the nodes of a model that is not in order, and of its bodies and functions.

    Nodes keep their order where they can, and are called by the places that they had.

    Returns:
        Whether there is an order. There is none if a value is made of itself, or if it is not clear
        which value a node reads; then the model may be half changed.
    """
    for scope in _outermost(model):
        early = list(_read_early(scope, done=set()))
        names = cache(value_names)
        if any(is_ambiguous(value.name, map(names, around)) for value, around in early):
            return False
        if early:
            for each in scopes_in(scope):
                note_places(each)
            try:
                scope.sort()
            except (ValueError, TypeError):  # of a cycle; of a body that only a call gives
                return False
    return True


def is_ambiguous(name: str | None, around: Iterable[Set[str | None]]) -> bool:
    """Return whether more than one graph around a node has a value of a name."""
    return sum(name in names for names in around) > 1


def value_names(scope: Scope) -> set[str | None]:
    """Collect the names of the values that a graph or function has itself, not those in bodies."""
    held = scope.initializers.values() if isinstance(scope, ir.Graph) else ()
    made = (node.outputs for node in scope)
    return {value.name for value in chain(scope.inputs, held, *made)}


def _outermost(model: ir.Model) -> tuple[Scope, ...]:
    return model.graph, *model.functions.values()


def _read_early(*around: Scope, done: set[ir.Node]) -> Iterator[tuple[ir.Value, tuple[Scope, ...]]]:
    """Yield the values that nodes read before a node gives them, each with the graphs around."""
    for node in around[-1]:
        for value in node.inputs:
            made = producer_of(value)
            if value is not None and made is not None and made not in done:
                yield value, around
        for _, body in bodies(node):
            yield from _read_early(*around, body, done=done)
        done.add(node)
