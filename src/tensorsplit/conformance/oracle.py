"""The expected results of a split, by plain slicing.

The lengths are stated by the case. This file knows neither operators nor how lengths follow from
anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = "np.ndarray"


def parts(array: Array, axis: int, sizes: Sequence[int], keepdims: bool = True) -> list[Array]:
    """Return the parts of an array, as new arrays; without `keepdims` they lose the axis.

    Raises:
        ValueError: If the lengths do not cover the axis exactly: then the case is wrong.
    """
    if sum(sizes) != array.shape[axis] or min(sizes, default=0) < 0:
        raise ValueError(f"the stated lengths {sizes} do not cover {array.shape[axis]}")
    found, start = [], 0
    for size in sizes:
        index: list[Any] = [slice(None)] * array.ndim
        index[axis] = slice(start, start + size)
        part = array[tuple(index)].copy()
        found.append(part if keepdims else part.reshape(without(array.shape, axis)))
        start += size
    return found


def without(shape: Sequence[object], axis: int) -> tuple[Any, ...]:
    """Return a shape that has lost an axis."""
    axis %= len(shape)
    return (*shape[:axis], *shape[axis + 1 :])


def resized(shape: Sequence[object], axis: int, size: object) -> tuple[Any, ...]:
    """Return a shape with another length on an axis."""
    axis %= len(shape)
    return (*shape[:axis], size, *shape[axis + 1 :])
