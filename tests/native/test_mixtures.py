"""Columns of every width from 1 to 64 bytes in any mixture, between pages that can't be touched."""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.native.conftest import WAYS, set_to
from tests.native.splits import Case, Guarded
from tests.oracle import Array, assert_same

MIXTURES = [
    (4, 6),
    (48, 48, 64),
    (7, 9),
    (1, 63),
    (8,) * 33,
    (12,) * 11,
    tuple(range(4, 52, 4)),
    (3, 1, 8, 2),
    tuple(range(1, 65)),
    (2, 200, 5, 1024, 17),
]
PAGE = mmap.PAGESIZE
ROOM = 64 * PAGE
PROT_NONE = 0


@pytest.fixture(scope="module")
def between_pages() -> Iterator[Array]:
    """Bytes before and after which nothing can be read or written."""
    if sys.platform != "linux":
        pytest.skip("pages are protected by the C library's mprotect")
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    pages = mmap.mmap(-1, ROOM + 2 * PAGE)
    whole = np.frombuffer(pages, np.uint8)
    for page in (0, ROOM + PAGE):
        assert protect(whole.ctypes.data + page, PAGE, PROT_NONE) == 0
    yield whole[PAGE:-PAGE]
    for page in (0, ROOM + PAGE):
        assert protect(whole.ctypes.data + page, PAGE, mmap.PROT_READ | mmap.PROT_WRITE) == 0


def placed(room: Array, shape: tuple[int, int], at_end: bool) -> Array:
    """Random bytes at the beginning of the room, or at its end."""
    size = shape[0] * shape[1]
    inside = room[room.size - size :] if at_end else room[:size]
    inside[:] = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    return inside.reshape(shape)


def check(kernel: Any, array: Array, widths: tuple[int, ...], shift: int) -> None:
    case = Case(array, 1, widths, keepdims=True)
    guarded = [Guarded.like(part, shift + number) for number, part in enumerate(case.parts)]
    assert kernel.copy_into(*case.arguments, [each.buffer for each in guarded])
    assert_same([each.buffer for each in guarded], case.parts, (array.shape, widths))
    assert all(each.is_intact() for each in guarded)


@pytest.mark.parametrize("at_end", [False, True], ids=["at the beginning", "at the end"])
@pytest.mark.parametrize("step", [1, -1, 2, -3])
@pytest.mark.parametrize("widths", MIXTURES, ids=lambda widths: f"{len(widths)} of {sum(widths)}")
def test_nothing_outside_the_source_is_read(
    kernel: Any, between_pages: Array, widths: tuple[int, ...], step: int, at_end: bool
) -> None:
    for rows in (1, 15, 16, 33, 64, 100, 1021):
        count = min(rows, ROOM // sum(widths))
        array = placed(between_pages, (count, sum(widths)), at_end)
        check(kernel, array[::step], widths, 3)


@pytest.mark.parametrize("widths", MIXTURES, ids=lambda widths: f"{len(widths)} of {sum(widths)}")
def test_nothing_outside_a_part_is_written(
    kernel: Any, between_pages: Array, widths: tuple[int, ...]
) -> None:
    rows = ROOM // sum(widths)
    array = np.random.default_rng(0).integers(0, 256, (rows, sum(widths)), dtype=np.uint8)
    for number, width in enumerate(widths):
        for begin in (0, ROOM - rows * width):
            out = [np.empty((rows, each), np.uint8) for each in widths]
            out[number] = between_pages[begin : begin + rows * width].reshape(rows, width)
            assert kernel.copy_into(array, 1, widths, True, out)
            assert_same(out, Case(array, 1, widths, True).parts, number)


@settings(max_examples=300, suppress_health_check=list(HealthCheck))
@given(
    widths=st.lists(st.one_of(st.integers(1, 20), st.integers(1, 70)), min_size=1, max_size=90),
    rows=st.integers(1, 700),
    gap=st.integers(0, 40),
    step=st.sampled_from([1, 1, 2, -1]),
    shift=st.integers(0, 63),
)
def test_any_mixture(widths: list[int], rows: int, gap: int, step: int, shift: int) -> None:
    rng = np.random.default_rng(rows)
    whole = rng.integers(0, 256, (rows, sum(widths) + gap), dtype=np.uint8)
    for way in WAYS:
        with set_to(way) as kernel:
            check(kernel, whole[::step, : sum(widths)], tuple(widths), shift)
