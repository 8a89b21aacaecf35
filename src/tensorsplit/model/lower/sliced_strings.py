"""Slices of strings, for targets that take strings by their indices only."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from tensorsplit.core.arithmetic import Number, pick, value
from tensorsplit.core.dimensions import is_known
from tensorsplit.model.graph.calculation import FIRST_WITH_BOUNDS_AS_INPUTS
from tensorsplit.model.graph.held_tensors import constant
from tensorsplit.model.graph.nodes import NodeRef, attribute_of
from tensorsplit.model.lower.state import InsertionPoint, Lowering, refusal

_OPERANDS = ("starts", "ends", "axes", "steps")


def take_slice(lowering: Lowering, ref: NodeRef) -> None:
    """Replace a Slice by a Gather: its indices are sliced instead of the data."""
    node, data = ref.node, ref.input(0)
    assert data is not None  # noqa: S101 - it has an element type
    point = InsertionPoint.instead_of(lowering, ref)
    starts, ends, axes, steps = (_operand(lowering, point, ref, place) for place in range(1, 5))
    held = data
    for index, axis in enumerate(axes or range(len(starts))):
        if not isinstance(axis, int):
            raise refusal("which axes of strings are sliced is known only at run time")
        length = lowering.length(data, axis)
        bounds = (starts[index], ends[index], steps[index] if steps else 1)
        numbers = [each for each in bounds if isinstance(each, int)]
        if isinstance(length, int) and len(numbers) == len(bounds):
            indices = point.make(tuple(range(length)[slice(*numbers)]))
        else:
            start, end, step = bounds
            indices = point.slice(point.range(0, length), start, end, 0, step)
        held = point.op("Gather", [held, indices], {"axis": axis})
    point.replace(node.outputs[0], held)


def _operand(
    lowering: Lowering, point: InsertionPoint, ref: NodeRef, place: int
) -> Sequence[Number]:
    """Return the operand of a Slice for each axis; nothing for those that it omits."""
    if ref.opset < FIRST_WITH_BOUNDS_AS_INPUTS:
        return attribute_of(ref.node, _OPERANDS[place - 1], ir.AttributeType.INTS) or ()
    held = ref.input(place)
    if held is None:
        return ()
    known = constant(held)
    if known is not None:
        return [int(number) for number in known.ravel()]
    fact = lowering.facts.tensor(held)
    count = None if fact.shape is None else fact.shape[0]
    if not is_known(count):
        raise refusal("how many axes of strings are sliced is known only at run time")
    numbers = value(point.int64(held, fact.element_type))
    return [pick(numbers, index) for index in range(count)]
