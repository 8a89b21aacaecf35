"""All pieces of one tensor joined again."""

from __future__ import annotations

import onnx_ir as ir

from tensorsplit.model.lower.arithmetic import Arithmetic, Make
from tensorsplit.model.lower.context import Context
from tensorsplit.model.lower.cuts import Cut


def concat_cut(
    context: Context, cut: Cut, axis: int, new_axis: bool
) -> tuple[Make | None, str] | None:
    """Join all pieces of a cut without making them.

    Args:
        context: The lowering.
        cut: The pieces.
        axis: The axis to join them along, in the result if it is a new one.
        new_axis: Whether the axis is a new one.

    Returns:
        What makes the result, None for the data itself, and what to call it; None if there is no
        such way.
    """
    shape, here = context.tensor(cut.data).shape, cut.form.axis
    if shape is None:
        same = new_axis == cut.form.dropped and axis == here >= 0
        return (None, _ITSELF) if same else None
    rank = len(shape)
    if not cut.form.dropped:
        return (None, _ITSELF) if not new_axis and axis % rank == here else None
    if new_axis and axis % rank == here:
        return None, _ITSELF
    if new_axis:
        return (lambda make: _moved(make, cut.data, rank, here, axis % rank)), "Transpose"
    if rank < 2:
        return None
    there = axis % (rank - 1)
    return (lambda make: _merged(make, cut.data, rank, here, there)), "Transpose and Reshape"


_ITSELF = "the data itself"


def _moved(make: Arithmetic, data: ir.Value, rank: int, start: int, end: int) -> ir.Value:
    """The data with one axis moved."""
    order = [axis for axis in range(rank) if axis != start]
    order.insert(end, start)
    if order == list(range(rank)):
        return data
    return make.op("Transpose", [data], {"perm": order})


def _merged(make: Arithmetic, data: ir.Value, rank: int, start: int, end: int) -> ir.Value:
    """The data with one axis moved in front of another one and merged with it."""
    moved = _moved(make, data, rank, start, end)
    shape = make.op("Shape", [moved])
    both = make.multiply(make.pick(shape, end), make.pick(shape, end + 1))
    before = [make.slice(shape, 0, end, 0)] if end else []
    after = [make.slice(shape, end + 2, rank, 0)] if end + 2 < rank else []
    new = make.concat([*before, make.tensor(both), *after], 0)
    attributes = {"allowzero": 1} if make.opset >= 14 else {}
    return make.op("Reshape", [moved, new], attributes)
