"""Axes and positions as nodes give them, counted from the front or from the back."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from tensorsplit.core.dimensions import Shape
from tensorsplit.model.graph.held_tensors import constant
from tensorsplit.model.graph.nodes import attribute_of
from tensorsplit.model.graph.tensors import Array


def axes_from_front(op_type: str, axes: Sequence[int], rank: int | None) -> list[int] | None:
    """Return axes of a node in order, counted from the front.

    None for axes that count from the back of a tensor whose rank is not known, or beyond its front.
    """
    whole = (rank or 0) + (len(axes) if op_type in ("OneHot", "Unsqueeze") else 0)
    if min(axes, default=0) < (0 if rank is None else -whole):
        return None
    return sorted(axis + whole if axis < 0 else axis for axis in axes)


def given_axes(node: ir.Node) -> list[int] | None:
    """Return the axes that a node has as an attribute or as a constant second input."""
    given = attribute_of(node, "axes", ir.AttributeType.INTS)
    if given is not None or len(node.inputs) < len(("data", "axes")):
        return None if given is None else [*given]
    held = constant(node.inputs[1])
    return held.reshape(-1).tolist() if held is not None and held.dtype.kind in "iu" else None


def order_of(transpose: ir.Node, rank: int) -> tuple[int, ...]:
    """Return the order of axes of a Transpose of data of a rank, in ONNX or an IR.

    It is what the model gives, right or wrong; backwards if it gives none, or only at run time.
    """
    if transpose.domain == "":
        given = attribute_of(transpose, "perm", ir.AttributeType.INTS)
    else:
        order = constant(transpose.inputs[1]) if len(transpose.inputs) > 1 else None
        given = None if order is None else order.reshape(-1).tolist()
    return tuple(given or range(rank)[::-1])


def moves_only_ones(order: Sequence[int], shape: Shape) -> bool:
    """Return whether an order of axes leaves those of other lengths than 1 in their order."""
    others = [axis for axis in order if shape[axis] != 1]
    return others == sorted(others)


def in_range(indices: Array, length: int) -> bool:
    """Return whether all positions are those of an axis, from its front or from its back."""
    return bool(((indices >= -length) & (indices < length)).all())


def clamped(start: int, end: int, step: int, length: int) -> slice:
    """Return the elements that Slice takes of an axis, as a Python slice with clamped bounds."""
    start, end = (bound + length if bound < 0 else bound for bound in (start, end))
    if step > 0:
        return slice(min(max(start, 0), length), min(max(end, 0), length), step)
    first, last = min(max(start, 0), length - 1), min(max(end, -1), length - 1)
    return slice(first, None if last < 0 else last, step)
