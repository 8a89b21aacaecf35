"""Memory for the parts of a split that is used again, so that copies need no fresh pages."""

from __future__ import annotations

import mmap
import sys
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import count, islice
from operator import index
from typing import NoReturn, TypeAlias
from weakref import WeakMethod

import numpy as np

from tensorsplit import native
from tensorsplit.core.dimensions import as_index
from tensorsplit.core.errors import OPERAND_TYPE, OPERAND_VALUE, SplitError, show, wrong_type
from tensorsplit.core.given import is_a

Array: TypeAlias = "np.ndarray"
Block: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.uint8]]"

_ALIGNMENT = 64
_HUGE_FROM = 4 << 20
_HUGE_PAGE = 2 << 20
_MOST_DIMS = 64
"""NumPy has no arrays of more."""


class BufferPool:
    """Memory for the parts of a split, which is used again when the parts are gone.

    Give it as ``out=`` wherever buffers can be given. Each part is then a C-contiguous array of its
    own, aligned to 64 bytes; when the last reference to it, or to a view of it, has gone, its
    memory goes back to the pool, and a later part of about its size takes it. A part that is kept
    pins its own memory and no other's, even beyond the pool's life.

    Threads may share a pool; after a fork, parent and child each have their own.

    Args:
        max_bytes: How much memory the pool keeps at most while no array uses it. Memory beyond that
            is given back to the system, the longest unused first. Arrays in use do not count.

    Raises:
        SplitError: TS105, TS107 for a `max_bytes` that is not an integer of 0 or more.

    Example:
        >>> pool = ts.BufferPool(max_bytes=64 << 20)
        >>> [part.tolist() for part in ts.split(np.arange(4), [2, 2], out=pool)]
        [[0, 1], [2, 3]]
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

    def empty(self, shape: Iterable[int], dtype: np.dtype | type | str) -> Array:
        """Return an array whose elements are not set, like `numpy.empty`.

        Args:
            shape: The shape.
            dtype: The element type. Arrays without elements, and of element types that hold
                references (object, StringDType), are ordinary ones and not of the pool.

        Returns:
            A writable C-contiguous array.

        Raises:
            MemoryError, TypeError, ValueError: As `numpy.empty` does.
        """
        if is_a(shape, memoryview):  # Python 3.11 has a SystemError for those that are released
            shape = shape[: _MOST_DIMS + 1]
        shape, dtype = tuple(map(index, islice(iter(shape), _MOST_DIMS + 1))), np.dtype(dtype)
        made = self.blocks.empty(shape, dtype)
        return np.empty(shape, dtype) if made is None else made

    def __repr__(self) -> str:
        idle, bound, used = map(_show_bytes, (self.idle_bytes, self.max_bytes, self.in_use_bytes))
        return f"<BufferPool: {used} in use, {idle} idle of at most {bound}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a BufferPool can't be copied or pickled; make one in each process")


if native.kernel is not None:
    native.kernel.use_pool(BufferPool)


def _checked_size(max_bytes: object) -> int:
    size = as_index(max_bytes)
    if size is None:
        problem = wrong_type(max_bytes)
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


class Blocks:
    """Blocks that wait for their next use, where there is no kernel with a type of this name."""

    # Parts may die in any thread, and in the garbage collector in the middle of any method here.
    # So there is no lock: each step below is one atomic operation of a dict or a deque.

    def __init__(self, most_idle: int) -> None:
        self._most_idle = most_idle
        self._idle: dict[int, deque[tuple[int, Block]]] = {}
        self._lent: dict[int, int] = {}
        self._clock = count()
        self._take_back = WeakMethod(self._reclaim)

    @property
    def idle_bytes(self) -> int:
        """How much memory waits for its next use."""
        return sum(size * len(self._idle[size]) for size in list(self._idle))

    @property
    def in_use_bytes(self) -> int:
        """How much memory is in arrays."""
        return sum(list(self._lent.values()))

    def clear(self) -> None:
        """Give back all that is idle."""
        for blocks in list(self._idle.values()):
            blocks.clear()

    def fill(self, byte: int) -> None:
        """Overwrite all that is idle; for tests."""
        for blocks in list(self._idle.values()):
            for _, block in list(blocks):
                block[:] = byte

    def copies(self, *_: object) -> list[Array] | None:
        """Return None: NumPy has to copy the parts."""
        return None

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> Array | None:
        """Return an array; None if it needs no memory, or holds more than bytes."""
        size = dtype.itemsize
        for length in shape:
            size *= length
        if size <= 0 or dtype.hasobject:
            return None
        block = self._take(_size_class(size))
        owner = _Owner(block, self._take_back)
        self._lent[id(owner)] = block.size
        return np.ndarray(shape, dtype, owner.as_array())

    def _take(self, size: int) -> Block:
        blocks = self._idle.get(size) or self._idle.setdefault(size, deque())
        with suppress(IndexError):
            return blocks.pop()[1]
        try:
            return _allocate(size)
        except MemoryError:
            self.clear()
            return _allocate(size)

    def _reclaim(self, owner: int, block: Block) -> None:
        """Take back the block of an array that is gone."""
        self._lent.pop(owner, None)
        self._idle[block.size].append((next(self._clock), block))
        while self.idle_bytes > self._most_idle:
            with suppress(IndexError, ValueError):  # another thread was faster
                min((each for each in list(self._idle.values()) if each), key=_age).popleft()


class _Owner:
    """The base of one array: lives as long as the array or any view of it."""

    __slots__ = ("__array_interface__", "_block", "_take_back")

    def __init__(
        self, block: Block, take_back: Callable[[], Callable[[int, Block], None] | None]
    ) -> None:
        self._block = block
        self._take_back = take_back

    def as_array(self) -> Block:
        """Return the block as an array whose base is this; it is made once and never outlived."""
        self.__array_interface__ = self._block.__array_interface__
        array = np.asarray(self)
        del self.__array_interface__
        return array

    def __del__(self) -> None:
        reclaim = self._take_back()
        if reclaim is not None:
            reclaim(id(self), self._block)


def _age(blocks: deque[tuple[int, Block]]) -> int:
    return blocks[0][0]


def _size_class(size: int) -> int:
    """Return the block size for a part: an eighth of a power of two more at most, so aligned."""
    step = max(_ALIGNMENT, 1 << max(0, (size - 1).bit_length() - 4))
    return -(-size // step) * step


def _allocate(size: int) -> Block:
    """Allocate a block; a large one is a mapping of its own, which is returned when it dies."""
    if size >= _HUGE_FROM and hasattr(mmap, "MAP_ANONYMOUS"):
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS  # private: a forked child gets its own
        try:
            mapping = mmap.mmap(-1, size + _HUGE_PAGE, flags=flags)
        except (OSError, OverflowError) as error:
            raise MemoryError(f"{size} bytes can't be allocated") from error
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):  # a kernel without them
                mapping.madvise(mmap.MADV_HUGEPAGE)
        return _aligned(np.frombuffer(mapping, np.uint8), _HUGE_PAGE, size)
    return _aligned(np.empty(size + _ALIGNMENT, np.uint8), _ALIGNMENT, size)


def _aligned(memory: Block, alignment: int, size: int) -> Block:
    start = -memory.ctypes.data % alignment
    return memory[start : start + size]
