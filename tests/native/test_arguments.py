"""What the kernel is called with is checked, whoever calls it."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

DATA = np.arange(24, dtype=np.int32).reshape(6, 4)
HUGE = sys.maxsize

REFUSED: dict[str, tuple[Any, ...]] = {
    "no array": ([1, 2], 0, (2,), True),
    "no axis": (DATA, 2, (6,), True),
    "an axis from the end": (DATA, -1, (6,), True),
    "an axis that is no integer": (DATA, 0.0, (6,), True),
    "an axis beyond all integers": (DATA, 1 << 80, (6,), True),
    "a scalar": (np.zeros(()), 0, (1,), True),
    "sizes in a list": (DATA, 0, [6], True),
    "too short": (DATA, 0, (5,), True),
    "too long": (DATA, 0, (7,), True),
    "a negative size": (DATA, 0, (-1, 7), True),
    "sizes whose sum overflows": (DATA, 0, (HUGE, HUGE, 8), True),
    "sizes that wrap around to the axis": (DATA, 0, (HUGE, HUGE, 2, 6), True),
    "a size beyond all integers": (DATA, 0, (1 << 64, 6), True),
    "a size that is no integer": (DATA, 0, (2.0, 4), True),
    "a dropped axis of more than one": (DATA, 0, (6,), False),
    "too few arguments": (DATA, 0, (6,)),
}


@pytest.mark.parametrize("arguments", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("function", ["copies", "views", "copy_into"])
def test_refused(kernel: Any, function: str, arguments: tuple[Any, ...]) -> None:
    out = ([np.zeros((6, 4), np.int32)],) if function == "copy_into" else ()
    with pytest.raises((TypeError, ValueError, OverflowError)):
        getattr(kernel, function)(*arguments, *out)


def test_views_are_made_of_arrays_only(kernel: Any) -> None:
    with pytest.raises(TypeError):
        kernel.views(np.ma.array(DATA), 0, (6,), True)


@pytest.mark.parametrize("count", [0, -1, 1.5, "2", None, 1 << 70])
def test_threads_are_counted_from_one(kernel: Any, count: Any) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError)):
        kernel.use_threads(count)


@pytest.mark.parametrize("name", ["sse9", "avx2 ", "BASELINE"])
def test_kernels_that_do_not_exist(kernel: Any, name: str) -> None:
    with pytest.raises(ValueError, match="no such"):
        kernel.use(name)


def test_no_memory_for_the_parts_is_an_error_and_no_crash(kernel: Any) -> None:
    array = np.broadcast_to(np.uint8(1), (1 << 20, 1 << 30))
    with pytest.raises(MemoryError):
        kernel.copies(array, 0, (1 << 20,), True)
