"""Lengths of which an engine knows the most as it loads a model, and slices along such axes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import TypeAlias

import onnx_ir as ir

from tensorsplit.core.dimensions import Dim, are_known, is_known
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.model.features.from_constants import (
    MOST_STEPS,
    is_calculated,
    is_constant,
    is_fixed,
)
from tensorsplit.model.features.values import LARGEST, has_known_shape
from tensorsplit.model.graph.axes import order_of
from tensorsplit.model.graph.called_in_onnx import gives_shape, operator_of
from tensorsplit.model.graph.nodes import attribute_of, given_in_branches
from tensorsplit.model.graph.producers import first_input, producer_of
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.openvino_ir import LAYER_LIMITS

_COUNTING = frozenset({"Compress", "NonMaxSuppression", "NonZero", "TopK", "Unique"})
"""Operators that give so many elements, and no more than they are given."""

_SHAPE_OPERAND = {"ConstantOfShape": 0, "Expand": 1, "Range": 1, "Reshape": 1}
"""Operators whose lengths an input gives, and its place."""

_INPUTS_WITH_BOUNDS = 3
"""A Slice has so many inputs at least where its bounds are none of its attributes."""

_Limits: TypeAlias = tuple[Dim, Dim, Dim]
"""The start, end and step of a Slice."""


def of_slices(node: ir.Node, seen: Facts) -> Iterator[str]:
    """Yield whether a node slices where the most is known, and the engine may not see how much.

    Or only the axes are known at run time, and how many there are before.
    """
    if limited_axes(node, seen):
        yield "limited_slice"
    if node.op_type == "Slice" and _has_unseen_axes(node, seen):
        yield "unseen_axes"


def _has_unseen_axes(node: ir.Node, seen: Facts) -> bool:
    start, end, axes, step = _operands(node)
    shape = seen.tensor(first_input(node)).shape
    if axes is None or shape is None or not are_known(shape) or 0 in shape:
        return False
    return (
        has_known_shape(axes, seen)
        and not is_constant(axes, seen)
        and not is_calculated(axes, seen, of_shapes=False, in_bodies=True)
        and all(is_fixed(each, seen) for each in (start, end, step) if each is not None)
    )


def limited_axes(node: ir.Node, seen: Facts) -> list[int]:
    """Return the axes, from the front, on which a Slice has such bounds, and data of such a length.

    They are known only at run time, or count from the back and on to the front, as [-3:3]. A length
    that is known does not count, and neither does what is all read by a Reshape to a known shape.
    """
    if node.op_type != "Slice" or len(node.inputs) < _INPUTS_WITH_BOUNDS or _is_settled(node, seen):
        return []
    data, lengths = node.inputs[0], _Lengths(seen)
    shape = seen.tensor(data).shape or ()
    return [
        axis
        for axis, limits in _bounds(node, seen).items()
        if (_goes_past(limits) or not are_known(limits)) and not is_known(shape[axis])
        if lengths.is_limited(data, axis)
    ]


def _is_settled(node: ir.Node, seen: Facts) -> bool:
    """Return whether the length that a node gives matters to nothing, as its elements are known."""
    readers = [use.node for made in node.outputs for use in made.uses()]
    return not any(made.is_graph_output() for made in node.outputs) and all(
        operator_of(reader) == "Reshape"
        and all(has_known_shape(made, seen) for made in reader.outputs[:1])
        for reader in readers
    )


def _goes_past(limits: _Limits) -> bool:
    """Return whether bounds go from one that counts from the back to one from the front, or back.

    A step below 0 goes the other way.
    """
    start, end, step = limits
    if not (is_known(start) and is_known(end) and is_known(step)) or end in LARGEST:
        return False
    return start < 0 <= end if step > 0 else end < 0 <= start


def _bounds(node: ir.Node, seen: Facts) -> dict[int, _Limits]:
    """Return the bounds of a Slice on each axis; nothing if the axes are not known."""
    rank = len(seen.tensor(node.inputs[0]).shape or ())
    given: Iterable[tuple[Dim, ...] | None]
    if len(node.inputs) < _INPUTS_WITH_BOUNDS:
        names = ("starts", "ends", "axes", "steps")
        given = (attribute_of(node, each, ir.AttributeType.INTS) for each in names)
    else:
        given = (None if each is None else _numbers(each, rank, seen) for each in _operands(node))
    starts, ends, axes, steps = given
    if not rank or starts is None or ends is None:
        return {}
    along: Iterable[Dim] = range(rank) if axes is None else axes
    by: Iterable[Dim] = repeat(1) if steps is None else steps
    places = zip(along, starts, ends, by, strict=False)
    return {axis % rank: (start, end, step) for axis, start, end, step in places if is_known(axis)}


def _operands(node: ir.Node) -> tuple[ir.Value | None, ...]:
    """Return the start, end, axes and step of a Slice; layers have their step before the axes."""
    start, end, *others = (*node.inputs, *[None] * 5)[1:5]
    axes, step = others[::-1] if node.domain == DOMAIN else others
    return start, end, axes, step


def _numbers(held: ir.Value, most: int, seen: Facts) -> tuple[Dim, ...] | None:
    """Return the numbers of a list of a length that is known, ``most`` of those not known."""
    fact = seen.tensor(held)
    (count,) = fact.shape if fact.shape is not None and len(fact.shape) == 1 else (None,)
    return fact.integers or ((None,) * min(count, most) if is_known(count) else None)


def _is_near(limits: _Limits) -> bool:
    """Return whether bounds leave a Slice a largest length, whatever its data is."""
    start, end, _ = limits
    if not is_known(start) or not is_known(end):
        return False
    return start != 0 if end in LARGEST else start < 0 or end >= 0


class _Lengths:
    """Facts about lengths, by their sources; the search is limited so that no model takes long."""

    def __init__(self, seen: Facts) -> None:
        self._seen = seen
        self._known: dict[tuple[ir.Value, int], bool] = {}

    def is_limited(self, held: ir.Value | None, axis: int) -> bool:
        """Return whether the most that an open length may be is known, or may be known."""
        made = producer_of(held)
        if held is not None and made is None:
            return str(axis) in str(held.metadata_props.get(LAYER_LIMITS, "")).split(",")
        if held is None or made is None or not made.inputs or operator_of(made) == "":
            return False
        if axis >= self._rank(held):  # which is not known, or nodes contradict each other
            return False
        key = (held, axis)
        if key not in self._known and len(self._known) < MOST_STEPS:
            self._known[key] = False  # for nodes in a ring
            self._known[key] = self._comes_from_limited(made, held, axis)
        return self._known.get(key, False)

    def _comes_from_limited(self, made: ir.Node, held: ir.Value, axis: int) -> bool:
        data, operator = made.inputs[0], operator_of(made)
        if made.op_type == "Slice":  # a StridedSlice has masks of its bounds
            is_near = _is_near(_bounds(made, self._seen).get(axis, (None, None, None)))
            return is_near or self._is_known_or_limited(data, axis)
        if operator in ("Concat", "If"):
            given = made.inputs if operator == "Concat" else given_in_branches(made, held)
            return all(self._is_known_or_limited(each, axis) for each in given)
        if operator in _COUNTING:
            return all(has_known_shape(each, self._seen) for each in made.inputs if each)
        place = _SHAPE_OPERAND.get(operator)
        operand = made.inputs[place] if place is not None and place < len(made.inputs) else None
        if operand is not None and self._seen.tensor(operand).constant is None:
            return any(map(self._has_limited, _measured(operand)))
        if operator == "Transpose" and self._rank(data):
            order = order_of(made, self._rank(data))
            return axis < len(order) and self.is_limited(data, order[axis])
        rank = self._rank(held)
        alike = [each for each in made.inputs if self._rank(each) == rank]
        others = [each for each in made.inputs if self._rank(each) != rank]
        return any(self.is_limited(each, axis) for each in alike) or any(
            map(self._has_limited, others)
        )

    def _is_known_or_limited(self, held: ir.Value | None, axis: int) -> bool:
        shape = self._seen.tensor(held).shape or ()
        is_seen = axis < len(shape) and is_known(shape[axis])
        return is_seen or self.is_limited(held, axis)

    def _has_limited(self, held: ir.Value | None) -> bool:
        """Return whether any length of a tensor is limited."""
        shape = self._seen.tensor(held).shape or ()
        return any(
            self.is_limited(held, axis) for axis, dim in enumerate(shape) if not is_known(dim)
        )

    def _rank(self, held: ir.Value | None) -> int:
        return len(self._seen.tensor(held).shape or ())


def _measured(held: ir.Value | None) -> list[ir.Value | None]:
    """Return the tensors from whose shapes numbers are calculated; none if a CumSum is between.

    Of what that gives an engine does not know the most.
    """
    waiting, met, found = [held], {held}, list[ir.Value | None]()
    while waiting and len(met) < MOST_STEPS:
        made = producer_of(waiting.pop())
        if operator_of(made) == "CumSum":
            return []
        if made is not None and gives_shape(made):
            found += made.inputs
        elif made is not None:
            waiting += [value for value in made.inputs if value not in met]
            met.update(made.inputs)
    return found
