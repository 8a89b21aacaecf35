"""Splits whose parts are all joined again in order; some engines take the two out, unchecked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import onnx_ir as ir

from tensorsplit.model.graph.called_in_onnx import gives_shape, operator_of
from tensorsplit.model.graph.held_tensors import constant
from tensorsplit.model.graph.nodes import attribute_of
from tensorsplit.model.graph.producers import KEEPING_ELEMENTS, first_input, producer_of
from tensorsplit.model.graph.split_records import is_split, is_vendor_split
from tensorsplit.model.graph.uses import MOST_LEVELS, NO_OWNERS, Owners, Uses

_PASSING = KEEPING_ELEMENTS | {"Cast", "CastLike", "Expand", "Gather", "Pad", "Slice", "Tile"}
"""Operators that an engine takes out where they change nothing, or two together do."""

_REDUCING = frozenset({"ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"})
"""Operators that it takes out so in ONNX, not in an IR."""

_PASSES_ONLY_INPUT = frozenset({"Concat", "Max", "Mean", "Min", "Sum"})
"""Operators that give their input if it is the only one."""

_NEUTRAL = {"Add": 0, "Sub": 0, "Mul": 1, "Div": 1}
"""Operators that give their first input if the second is so, and some of them the other way."""

_EITHER_WAY = frozenset({"Add", "Mul"})

_Place: TypeAlias = tuple[ir.Node, int]


def is_rejoined(split: ir.Node, owners: Owners = NO_OWNERS) -> bool:
    """Return whether the parts of a Split, or of a split layer, are only joined, all in order.

    What nothing uses in the end does not count, with the bodies in it, and what the bodies that the
    Split is in give out; see `Uses`.
    """
    return bool(_wholes(split, MOST_LEVELS, Uses(split, owners)))


def rejoined_by(join: ir.Node) -> ir.Value | None:
    """Return the value whose parts a Concat joins again, all in order; None for other nodes."""
    split = producer_of(first_input(join)) if operator_of(join) == "Concat" else None
    if split is None or not is_split(split) or [*join.inputs] != [*split.outputs]:
        return None
    return first_input(split) if _may_be_along(split, join) else None


def may_pass(node: ir.Node, place: int) -> bool:
    """Return whether a node may give what it is given at a place, so that an engine takes it out.

    It may do so only together with others, as two Transposes do.
    """
    operator = operator_of(node)
    if not node.outputs:
        return False
    if operator in _PASSING or (node.domain == "" and operator in _REDUCING):
        return place == 0
    if operator in _PASSES_ONLY_INPUT:
        return len(node.inputs) == 1
    if is_split(node):
        return place == 0 and len(node.outputs) == 1
    if operator == "Where":
        return place > 0 and constant(node.inputs[0]) is not None
    return _follows_its_like(node) if operator == "Neg" else _has_neutral(node, place)


def passed_by(node: ir.Node) -> list[ir.Value | None]:
    """Return the inputs of a node that it may give as they are."""
    return [each for place, each in enumerate(node.inputs) if may_pass(node, place)]


def first_passed(node: ir.Node) -> ir.Value | None:
    """Return the first input that a node may give as it is; None if there is none."""
    return next(iter(passed_by(node)), None)


def _follows_its_like(node: ir.Node) -> bool:
    """Return whether a node reads, or is read by, another one of its operator."""
    around = (*map(producer_of, node.inputs), *node.outputs[0].consumers())
    return any(other is not None and other.op_type == node.op_type for other in around)


def _has_neutral(node: ir.Node, place: int) -> bool:
    """Return whether a sum or product has a constant beside an input that leaves it as it is."""
    operator = operator_of(node)
    neutral = _NEUTRAL.get(operator)
    is_right = place == 0 or (place == 1 and operator in _EITHER_WAY)
    if neutral is None or len(node.inputs) != 2 or not is_right:
        return False
    other = constant(node.inputs[1 - place])
    return other is not None and bool((other == neutral).all())


def _wholes(split: ir.Node, levels: int, uses: Uses) -> list[ir.Value]:
    """Return what joins all parts of a Split again; nothing if anything else uses a part."""
    if len(split.outputs) < 2 or not levels:
        return []
    joins: list[ir.Node] | None = None
    for place, part in enumerate(split.outputs):
        found = list(_places(part, levels, uses))
        nodes = [each[0] for each in found if each is not None and each[1] == place]
        if len(nodes) < len(found) or set(nodes) != set(nodes if joins is None else joins):
            return []
        joins = nodes
    made = [node for node in joins or () if len(node.inputs) == len(split.outputs)]
    is_along = all(_may_be_along(split, node) for node in made)
    return [node.outputs[0] for node in made] if len(made) == len(joins or ()) and is_along else []


def _places(part: ir.Value, levels: int, uses: Uses) -> Iterator[_Place | None]:
    """Yield each Concat that a value gets to, with its place there; None for any other use."""
    waiting = [part]
    while waiting:
        held = waiting.pop()
        if uses.give_out(held, levels):
            yield None
        for use in held.uses():
            node = use.node
            if gives_shape(node) or uses.are_dead(node, levels):
                continue  # an engine may know shapes before the model runs
            if node.graph is not part.graph:
                yield None
            elif may_pass(node, use.idx):
                waiting.append(node.outputs[0])
            elif operator_of(node) == "Concat":
                yield node, use.idx
            elif is_split(node) and use.idx == 0:
                wholes = _wholes(node, levels - 1, uses)
                waiting += wholes
                yield from () if wholes else (None,)
            else:
                yield None


def _may_be_along(split: ir.Node, join: ir.Node) -> bool:
    """Return whether parts may be joined along the axis that was split; one may be negative."""
    other = attribute_of(join, "axis", ir.AttributeType.INT)
    one = attribute_of(split, "axis", ir.AttributeType.INT) or 0
    if is_vendor_split(split):
        axis = constant(split.inputs[1])
        one = None if axis is None or axis.size != 1 else axis.item()
    if one is None:
        return True
    return one == other or other is None or (one < 0) != (other < 0)
