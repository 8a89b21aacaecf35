"""The memory of a pool, where there is no kernel to keep it."""

from __future__ import annotations

import mmap
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any, TypeAlias
from weakref import WeakMethod

import numpy as np

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Block: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.uint8]]"

_ALIGNMENT = 64
_HUGE_FROM = 4 << 20
_HUGE_PAGE = 2 << 20


class Blocks:
    """What the kernel's type of this name is: blocks that wait for their next use.

    Args:
        most_idle: How many bytes are kept at most while no array uses them. What comes back beyond
            that is given back to the system, the longest unused first.
    """

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
        """None: NumPy has to copy the parts."""
        return None

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array | None:
        """An array; None if it needs no memory, or holds more than bytes."""
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
        """The block as an array whose base is this; made once, so that nothing outlives it."""
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
    """The size of the block for a part: an eighth of a power of two more at most, so aligned."""
    step = max(_ALIGNMENT, 1 << max(0, (size - 1).bit_length() - 4))
    return -(-size // step) * step


def _allocate(size: int) -> Block:
    """A fresh block; a large one is a mapping of its own, so that it goes back when it dies."""
    if size >= _HUGE_FROM and hasattr(mmap, "MAP_ANONYMOUS"):
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS  # private: a forked child gets its own
        try:
            mapping = mmap.mmap(-1, size + _HUGE_PAGE, flags=flags)
        except (OSError, OverflowError) as error:
            raise MemoryError(f"{size} bytes can't be had") from error
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):  # a kernel without them
                mapping.madvise(mmap.MADV_HUGEPAGE)
        return _aligned(np.frombuffer(mapping, np.uint8), _HUGE_PAGE, size)
    return _aligned(np.empty(size + _ALIGNMENT, np.uint8), _ALIGNMENT, size)


def _aligned(memory: Block, alignment: int, size: int) -> Block:
    start = -memory.ctypes.data % alignment
    return memory[start : start + size]
