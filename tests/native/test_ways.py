"""Which way of copying is chosen, and that the parts are the same whichever it is."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from tensorsplit import native
from tests.native.splits import Case
from tests.oracle import assert_same

KIBIBYTE = 1024
ENOUGH = 60
"""Copies after which every way has been compared."""


@pytest.fixture
def measured() -> Iterator[Any]:
    """The extension module with two threads and nothing measured yet."""
    if native.kernel is None:
        pytest.skip("copies go through NumPy here")
    native.kernel.use_non_temporal_from(0)
    native.kernel.use_threads(2)
    yield native.kernel
    native.kernel.use_non_temporal_from(0)
    native.kernel.use_threads(native.threads)


def case_of(kibibytes: int, columns: int) -> Case:
    shape = (kibibytes * KIBIBYTE // columns // 4, columns)
    array = np.random.default_rng(columns).integers(0, 1 << 32, shape, dtype=np.uint32)
    return Case(array, 1, (1,) * (columns - 2) + (2,), keepdims=True)


def copy(kernel: Any, case: Case, times: int) -> set[str]:
    """Make so many copies; the stores that were used or tried."""
    out = [np.empty_like(part, order="C") for part in case.parts]
    stores = set()
    for _ in range(times):
        for part in out:
            part.fill(0xA5)
        assert kernel.copy_into(*case.arguments, out)
        assert_same(out, case.parts)
        stores |= {way.stores for choice in native.choices() for way in (choice.way, choice.other)}
    return stores


def test_small_copies_are_not_measured(measured: Any) -> None:
    copy(measured, case_of(100, 4), 3)
    assert native.choices() == []


def test_threads_are_compared_below_a_megabyte(measured: Any) -> None:
    copy(measured, case_of(300, 4), ENOUGH)
    (choice,) = native.choices()
    assert {choice.way.stores, choice.other.stores} == {"plain"}
    assert {choice.way.threads, choice.other.threads} == {1, 2}
    assert choice.way.time > 0
    assert choice.other.time > 0
    assert 300 * KIBIBYTE <= choice.bytes < 300 * KIBIBYTE * 3 / 2


@pytest.mark.parametrize("columns", [4, 41], ids=["few columns", "many columns"])
@pytest.mark.parametrize(
    ("kibibytes", "stores"),
    [(1100, {"plain", "prefetched"}), (3000, {"plain", "prefetched", "non-temporal"})],
)
def test_stores_are_compared_from_a_megabyte_on_and_past_the_cache_from_three(
    measured: Any, kibibytes: int, stores: set[str], columns: int
) -> None:
    measured.use_threads(1)
    assert copy(measured, case_of(kibibytes, columns), ENOUGH) == stores
    (choice,) = native.choices()
    assert choice.way.time > 0
    assert choice.other.time > 0


@pytest.mark.parametrize(
    ("from_bytes", "stores"), [(1, {"non-temporal"}), (1 << 60, {"plain", "prefetched"})]
)
def test_what_is_asked_for_is_not_compared(
    measured: Any, from_bytes: int, stores: set[str]
) -> None:
    measured.use_threads(1)
    measured.use_non_temporal_from(from_bytes)
    assert copy(measured, case_of(2000, 4), 30) == stores


def test_kinds_and_sizes_are_measured_apart(measured: Any) -> None:
    for kibibytes, columns in ((300, 4), (300, 300), (1100, 4), (1900, 4)):
        copy(measured, case_of(kibibytes, columns), 2)
    array = np.ones((700, 700))
    measured.copies(array.T, 1, (300, 400), True)
    measured.copies(array, 1, (350, 350), True)
    measured.copies(array, 1, (300, 400), True)
    assert len({(choice.kind, choice.bytes) for choice in native.choices()}) == 7
    assert any("apart" in choice.kind for choice in native.choices())


def test_other_threads_and_stores_forget_what_was_measured(measured: Any) -> None:
    for forget, number in ((measured.use_threads, 2), (measured.use_non_temporal_from, 0)):
        copy(measured, case_of(300, 4), 1)
        assert native.choices() != []
        forget(number)
        assert native.choices() == []


def test_threads_that_measure_at_the_same_time(measured: Any) -> None:
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(copy, measured, case_of(1100, n), 20) for n in (3, 3, 3, 7)]:
            assert native.choices() is not None
            done.result()
    assert native.choices()
