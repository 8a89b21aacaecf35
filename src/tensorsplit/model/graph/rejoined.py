"""Splits whose parts are all joined again in order; some engines take the two out, unchecked."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import TypeAlias

import onnx_ir as ir

from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.model.graph.nodes import (
    attribute_of,
    bodies,
    constant,
    domain_name,
    is_split,
    is_vendor_split,
    scopes_in,
)

_PASSING = {
    "": frozenset({"Cast", "Identity", "Reshape"}),
    DOMAIN: frozenset({"Convert", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}),
}
"""Operators of a domain that an engine takes out where they change nothing."""

_FEW_LEVELS = 4
_OF_SHAPES = ("Shape", "Size", "ShapeOf")
_MOST_LEVELS = 16
"""Splits of parts of splits, and nodes that nothing uses, are followed so deep."""

_Place: TypeAlias = tuple[ir.Node, int]


def is_rejoined(split: ir.Node) -> bool:
    """Return whether the parts of a Split, or of a split layer, are only joined, all in order.

    What nothing uses in the end does not count, with the bodies in it.
    """
    readers: list[ir.Node] = []
    is_joined = bool(_wholes(split, _MOST_LEVELS, readers))
    if not is_joined or not readers:
        return is_joined
    inside = {reader.graph for reader in readers}
    around = (
        node
        for node in split.graph or ()
        if any(scope in inside for _, body in bodies(node) for scope in scopes_in(body))
    )
    return all(_is_dead(node, _MOST_LEVELS) for node in around)


def is_unused(node: ir.Node) -> bool:
    """Return whether nothing that the graph gives out is calculated from what a node gives."""
    return _is_dead(node, _MOST_LEVELS)


def gives_only_shapes(node: ir.Node) -> bool:
    """Return whether all that is used of what a node gives is the shapes, if anything."""
    return _is_dead(node, _FEW_LEVELS, but=_OF_SHAPES)


def _wholes(split: ir.Node, levels: int, inside: list[ir.Node]) -> list[ir.Value]:
    """Return what joins all parts of a Split; nothing where anything else uses a part.

    The nodes in bodies that use a part are not decided on, but collected.
    """
    if len(split.outputs) < 2 or not levels:
        return []
    joins: list[ir.Node] | None = None
    for place, part in enumerate(split.outputs):
        found = list(_places(part, levels, inside))
        nodes = [each[0] for each in found if each is not None and each[1] == place]
        if len(nodes) < len(found) or set(nodes) != set(nodes if joins is None else joins):
            return []
        joins = nodes
    made = [node for node in joins or () if len(node.inputs) == len(split.outputs)]
    is_along = all(_may_be_along(split, node) for node in made)
    return [node.outputs[0] for node in made] if len(made) == len(joins or ()) and is_along else []


def _places(part: ir.Value, levels: int, inside: list[ir.Node]) -> Iterator[_Place | None]:
    """Yield each Concat that a value gets to, with its place there; None for any other use."""
    waiting = [part]
    while waiting:
        held = waiting.pop()
        if held.is_graph_output():
            yield None
        for use in held.uses():
            node, domain = use.node, domain_name(use.node.domain)
            if _is_dead(node, levels):
                continue
            if node.graph is not part.graph:
                inside.append(node)
            elif domain in _PASSING and node.op_type == "Concat":
                yield node, use.idx
            elif node.op_type in _PASSING.get(domain, ()) and use.idx == 0:
                waiting.append(node.outputs[0])
            elif is_split(node) and use.idx == 0:
                wholes = _wholes(node, levels - 1, inside)
                waiting += wholes
                yield from () if wholes else (None,)
            else:
                yield None


def _is_dead(node: ir.Node, levels: int, but: Container[str] = ()) -> bool:
    """Return whether nothing uses what a node gives, so that an engine leaves it out before.

    Nodes of some types may use it.
    """
    return levels > 0 and not any(
        value.is_graph_output()
        or not all(
            use.node.op_type in but or _is_dead(use.node, levels - 1, but) for use in value.uses()
        )
        for value in node.outputs
    )


def _may_be_along(split: ir.Node, join: ir.Node) -> bool:
    """Return whether parts may be joined along the axis that was split; one may be negative."""
    other = attribute_of(join, "axis", ir.AttributeType.INT)
    one = attribute_of(split, "axis", ir.AttributeType.INT) or 0
    if is_vendor_split(split):
        axis = constant(split.inputs[1])
        one = None if axis is None or axis.size != 1 else int(axis.reshape(-1)[0])
    if one is None:
        return True
    return one == other or other is None or (one < 0) != (other < 0)
