"""Splits for the kernel: arrays of every layout, and sizes of every kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.oracle import Array, slices

DTYPES = ["u1", "u2", "f4", "f8", "c16", "V3", "V5", "V7", "V12", "V24", "V33"]
EXTENTS = [0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 64, 67, 130]
STEPS = [1, 1, 1, 2, 3, 5, -1, -2]
MOST_BYTES = 1 << 18
LINE = 64
GUARD = 64
"""Bytes before and after every buffer, which must stay as they are."""


@dataclass(frozen=True)
class Case:
    """What is given to the kernel, and what must come out."""

    array: Array
    axis: int
    sizes: tuple[int, ...]
    keepdims: bool

    @property
    def arguments(self) -> tuple[Any, ...]:
        return self.array, self.axis, self.sizes, self.keepdims

    @property
    def parts(self) -> list[Array]:
        return slices(self.array, self.axis, self.sizes, self.keepdims)


def strided(
    dtype: str, shape: tuple[int, ...], steps: tuple[int, ...], order: tuple[int, ...], shift: int
) -> Array:
    """Random elements, `steps` apart, with the dimensions in memory in a given order."""
    memory = tuple(max(shape[i], 1) * abs(steps[i]) for i in order)
    size = prod(memory) * np.dtype(dtype).itemsize
    raw = np.random.default_rng(size + shift).integers(1, 256, shift + size, dtype=np.uint8)
    whole = raw[shift:].view(dtype).reshape(memory).transpose(np.argsort(order))
    stepped = whole[tuple(slice(None, None, step) for step in steps)]
    return stepped[tuple(slice(extent) for extent in shape)]


@cache
def _plans(kernel: Any) -> Any:
    def ask(self: Any, data: Any, *, copy: Any = False, out: Any = None) -> Any:
        return "asked"

    return kernel.called_at_once(type("Plan", (kernel.Prepared,), {"__call__": ask}))


def prepared(kernel: Any, array: Array, *division: Any) -> Callable[..., Any]:
    """What splits arrays like this one as a plan does, and says "asked" to all others."""
    plan = _plans(kernel)()
    plan._accept(array, array.shape, *division)
    made: Callable[..., Any] = plan
    return made


@st.composite
def arrays(draw: st.DrawFn) -> Array:
    dtype = draw(st.sampled_from(DTYPES))
    rank = draw(st.integers(1, 5))
    steps = [draw(st.sampled_from(STEPS)) for _ in range(rank)]
    left = MOST_BYTES // np.dtype(dtype).itemsize
    shape: list[int] = []
    for step in steps:
        extent = draw(st.sampled_from([each for each in EXTENTS if each * abs(step) <= left]))
        left //= max(extent * abs(step), 1)
        steps[len(shape)] = step if left else 1
        left = max(left, 1)
        shape.append(extent)
    order = draw(st.permutations(range(rank)))
    return strided(dtype, tuple(shape), tuple(steps), tuple(order), draw(st.integers(0, 17)))


def sizes_of(extent: int) -> st.SearchStrategy[tuple[int, ...]]:
    """Lengths that add up: all alike, or any, with zeros among them."""
    ones = st.just((1,) * extent)
    alike = st.integers(1, 9).map(lambda size: _chunks(extent, size))
    ends = st.lists(st.integers(0, extent), max_size=12).map(sorted)
    ragged = ends.map(lambda inner: tuple(np.diff([0, *inner, extent]).tolist()))
    return st.one_of(ones, alike, ragged)


def _chunks(extent: int, size: int) -> tuple[int, ...]:
    whole, rest = divmod(extent, size)
    return (size,) * whole + ((rest,) if rest else ())


@st.composite
def cases(draw: st.DrawFn) -> Case:
    array = draw(arrays())
    axis = draw(st.integers(0, array.ndim - 1))
    sizes = draw(sizes_of(array.shape[axis]))
    keepdims = not all(size == 1 for size in sizes) or draw(st.booleans())
    return Case(array, axis, sizes, keepdims)


@dataclass(frozen=True)
class Guarded:
    """A buffer of a part at any address, between bytes that tell if they were written."""

    raw: Array
    buffer: Array

    @classmethod
    def like(cls, part: Array, shift: int, room: Array | None = None) -> Guarded:
        size = part.nbytes + 2 * GUARD + shift
        raw = np.empty(size, np.uint8) if room is None else room[:size]
        raw.fill(0xA5)
        inside = raw[GUARD + shift : GUARD + shift + part.nbytes]
        return cls(raw, inside.view(part.dtype).reshape(part.shape))

    @classmethod
    def at_line(cls, part: Array, place: int) -> Guarded:
        """So many bytes behind the beginning of a cache line."""
        room = np.empty(part.nbytes + 2 * GUARD + 2 * LINE, np.uint8)
        return cls.like(part, (place - room.ctypes.data - GUARD) % LINE, room)

    def is_intact(self) -> bool:
        shift = self.raw.size - self.buffer.nbytes - 2 * GUARD
        guards = np.concatenate([self.raw[: GUARD + shift], self.raw[self.raw.size - GUARD :]])
        return bool((guards == 0xA5).all())
