"""A pool of memory for the parts of a cut, so that copies need no fresh pages each time."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from operator import index
from typing import Any, NoReturn, TypeAlias

import numpy as np

from tensorsplit import native
from tensorsplit.arrays.blocks import Blocks
from tensorsplit.core.dimensions import as_index
from tensorsplit.core.errors import OPERAND_TYPE, OPERAND_VALUE, SplitError, show

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


class BufferPool:
    """Memory for the parts of a cut that is used again when they are gone.

    Give it as ``out=`` wherever buffers can be given: ``ts.split(x, 4, out=pool)``. Each part is
    then a C-contiguous array of its own, aligned to 64 bytes; when the last reference to it, or to
    a view of it, has gone, its memory goes back to the pool, and a later part of about its size
    takes it. A part that is kept pins its own memory and no other's, even beyond the pool's life.

    Threads may share a pool; after a fork, parent and child each have their own.

    Args:
        max_bytes: How much memory the pool keeps at most while no array uses it. What comes back
            beyond that is given back to the system, the longest unused first. Arrays in use do not
            count: they are the caller's.

    Raises:
        SplitError: TS105, TS107 for a `max_bytes` that is no integer of 0 or more.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = _checked_size(max_bytes)
        make = Blocks if native.kernel is None else native.kernel.Blocks
        self.blocks: Blocks = make(min(self._max_bytes, sys.maxsize))

    @property
    def max_bytes(self) -> int:
        """How much idle memory is kept at most."""
        return self._max_bytes

    @property
    def idle_bytes(self) -> int:
        """How much memory is kept for parts to come."""
        return self.blocks.idle_bytes

    @property
    def in_use_bytes(self) -> int:
        """How much memory of the pool is in arrays that are still referenced."""
        return self.blocks.in_use_bytes

    def clear(self) -> None:
        """Give all idle memory back to the system; arrays in use are not touched."""
        self.blocks.clear()

    def empty(self, shape: Iterable[int], dtype: Any) -> Array:
        """An array whose elements are not set, like `numpy.empty`.

        Args:
            shape: The shape.
            dtype: The element type. Arrays without elements, and of element types that hold
                references (object, StringDType), are ordinary ones and not of the pool.

        Returns:
            A writable C-contiguous array.

        Raises:
            MemoryError, TypeError, ValueError: As `numpy.empty` does.
        """
        shape, dtype = tuple(map(index, shape)), np.dtype(dtype)
        made = self.blocks.empty(shape, dtype)
        return np.empty(shape, dtype) if made is None else made

    def __repr__(self) -> str:
        idle, bound, used = map(_show_bytes, (self.idle_bytes, self.max_bytes, self.in_use_bytes))
        return f"<BufferPool: {used} in use, {idle} idle of at most {bound}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a BufferPool can't be copied or pickled; make one in each process")


def _checked_size(max_bytes: object) -> int:
    size = as_index(max_bytes)
    if size is None:
        problem = f"it is {show(max_bytes)} of type {type(max_bytes).__name__}"
        raise SplitError(OPERAND_TYPE, problem, "give a number of bytes", parameter="max_bytes")
    if size < 0:
        raise SplitError(
            OPERAND_VALUE, f"it is {show(size)}", "give 0 or more", parameter="max_bytes"
        )
    return size


def _show_bytes(size: int) -> str:
    unit = min(max(size.bit_length() - 1, 0) // 10, 4)
    amount = size / (1 << 10 * unit)
    return f"{amount:.{0 if amount.is_integer() else 1}f} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[unit]}"
