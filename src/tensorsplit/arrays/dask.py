"""Splitting arrays of Dask, of which nothing is computed."""

from __future__ import annotations

import math

from dask.array import Array as DaskArray
from dask.array import concatenate, stack

from tensorsplit.arrays import numpy as numpy_arrays
from tensorsplit.arrays.typed import Array
from tensorsplit.core.dimensions import Shape
from tensorsplit.core.errors import OPERAND_TYPE, SplitError
from tensorsplit.core.plan import SplitPlan

element_type = numpy_arrays.element_type
unknown = "call its `compute_chunk_sizes()` first"
kind = numpy_arrays.kind


def is_array(value: object) -> bool:
    """Return whether the value is an array."""
    return isinstance(value, DaskArray)


def check(array: Array) -> None:
    """Accept every array of Dask."""


def shape(array: Array) -> Shape:
    """Return the shape, with None where the sizes of the chunks are not known."""
    return tuple(None if math.isnan(size) else int(size) for size in array.shape)


def operand_parts(value: Array, name: str) -> tuple[tuple[float, ...], int, str]:
    """Refuse lazy operands (TS105)."""
    problem = f"it is lazy, of shape {value.shape}, and nothing is computed here"
    raise SplitError(OPERAND_TYPE, problem, "pass its `compute()`", parameter=name)


def views(array: Array, plan: SplitPlan) -> list[Array]:
    """Return the parts, lazily; chunks that a part covers stay as they are."""
    return [array[index] for index in plan.indices]


def copies(array: Array, plan: SplitPlan) -> list[Array]:
    """Return the parts, lazily, whose chunks will share no memory with those of the array."""
    return [part.map_blocks(_copy, dtype=part.dtype) for part in views(array, plan)]


def _copy(block: Array) -> object:
    return block.copy()


def joined_view(parts: list[Array], plan: SplitPlan) -> Array:
    """Return the parts as one lazy array; their chunks stay as they are."""
    join = concatenate if plan.keepdims else stack
    return join(parts, axis=plan.axis, allow_unknown_chunksizes=True)


def joined(parts: list[Array], plan: SplitPlan) -> Array:
    """Return the parts as one lazy array, whose chunks will share no memory with theirs."""
    return joined_view(parts, plan).map_blocks(_copy, dtype=parts[0].dtype)
