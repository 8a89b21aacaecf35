"""The arguments of the kernel are checked, whatever calls it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorsplit import native
from tests.native.splits import prepared

DATA = np.arange(24, dtype=np.int32).reshape(6, 4)
HUGE = sys.maxsize

REFUSED: dict[str, tuple[Any, ...]] = {
    "no array": ([1, 2], 0, (2,), True),
    "no axis": (DATA, 2, (6,), True),
    "an axis from the end": (DATA, -1, (6,), True),
    "an axis that is not an integer": (DATA, 0.0, (6,), True),
    "an axis beyond all integers": (DATA, 1 << 80, (6,), True),
    "a scalar": (np.zeros(()), 0, (1,), True),
    "sizes in a list": (DATA, 0, [6], True),
    "too short": (DATA, 0, (5,), True),
    "too long": (DATA, 0, (7,), True),
    "a negative size": (DATA, 0, (-1, 7), True),
    "sizes whose sum overflows": (DATA, 0, (HUGE, HUGE, 8), True),
    "sizes that wrap around to the axis": (DATA, 0, (HUGE, HUGE, 2, 6), True),
    "a size beyond all integers": (DATA, 0, (1 << 64, 6), True),
    "a size that is not an integer": (DATA, 0, (2.0, 4), True),
    "a dropped axis of more than one": (DATA, 0, (6,), False),
    "a dropped axis of none": (np.zeros((1, 4), np.int32), 0, (0, 1), False),
    "a flag beyond all integers": (DATA, 0, (6,), 1 << 80),
    "too few arguments": (DATA, 0, (6,)),
}


@pytest.mark.parametrize("arguments", REFUSED.values(), ids=REFUSED)
def test_refused(kernel: Any, arguments: tuple[Any, ...]) -> None:
    array, *division = arguments
    shape = np.shape(array) if isinstance(array, np.ndarray) else array
    calls: list[Callable[[], Any]] = [
        lambda: kernel.copies(*arguments),
        lambda: kernel.copy_into(*arguments, [np.zeros((6, 4), np.int32)]),
        lambda: kernel.Blocks(0).copies(*arguments),
        lambda: kernel.Prepared()._accept(DATA, shape, *division),
    ]
    for call in calls:
        with pytest.raises((TypeError, ValueError, OverflowError)):
            call()


class Meddling:
    """What would change an array while it is read, if it were asked for a number."""

    def __index__(self) -> int:
        DATA.shape = (24,)
        return 1

    __bool__ = __index__


@pytest.mark.parametrize("place", [0, 1, 2])
def test_nobody_is_asked_for_a_number(kernel: Any, place: int) -> None:
    division: list[Any] = [1, (1, 3), True]
    division[place] = (Meddling(), 3) if place == 1 else Meddling()
    with pytest.raises(TypeError):
        kernel.copies(DATA, *division)
    assert DATA.shape == (6, 4)


@pytest.mark.parametrize("shape", [(2, 12), (12, 2), (24,), (24, 1)])
def test_buffers_that_change_the_array_when_they_are_looked_at(
    kernel: Any, shape: tuple[int, ...]
) -> None:
    array = np.ones((6, 4))

    class Buffers(list[Any]):
        def __iter__(self) -> Any:
            array.shape = shape
            return super().__iter__()

    with pytest.raises(ValueError, match="changed"):
        kernel.copy_into(array, 0, (2, 4), True, Buffers([np.zeros((2, 4)), np.zeros((4, 4))]))


def test_an_axis_that_the_array_has_no_more_is_not_read(kernel: Any) -> None:
    """After the only dimension NumPy keeps the stride, which is as large as the axis was."""
    array = np.ones((6, 8))

    class Buffers(list[Any]):
        def __iter__(self) -> Any:
            array.shape = (48,)
            return super().__iter__()

    with pytest.raises(ValueError, match="changed"):
        kernel.copy_into(array, 1, (3, 5), True, Buffers([np.zeros((6, 3)), np.zeros((6, 5))]))


@pytest.mark.parametrize("shape", [(2, 12), (24, 1)])
def test_a_finalizer_that_changes_the_array_is_noticed(kernel: Any, shape: tuple[int, ...]) -> None:
    """Making the list of the parts may start the garbage collector."""
    array = np.arange(24).reshape(6, 4)

    class Meddler:
        def __del__(self) -> None:
            array.shape = shape

    threshold = gc.get_threshold()
    gc.disable()
    kept: list[Any] = [[] for _ in range(200)]  # no list that is used again counts as a new one
    meddler = Meddler()
    meddler.itself = meddler  # type: ignore[attr-defined]
    del meddler
    gc.set_threshold(1)
    gc.enable()
    try:
        parts = kernel.copies(array, 0, (2, 4), True)
    except ValueError as error:
        assert "changed" in str(error)  # noqa: PT017 - Python 3.12 collects between two calls
    else:
        assert [part.ravel().tolist() for part in parts] == [[*range(8)], [*range(8, 24)]]
        assert len(kept) == 200
    finally:
        gc.set_threshold(*threshold)


@pytest.mark.parametrize(
    "other", [np.ma.array(DATA), DATA.T, DATA[:5], DATA[None], DATA[0], DATA.tolist(), None, 6]
)
def test_anything_else_is_asked_of_python(kernel: Any, other: Any) -> None:
    split = prepared(kernel, DATA, 0, (2, 4), True)
    assert split(other) == "asked"
    assert [part.shape for part in split(DATA)] == [(2, 4), (4, 4)]


@pytest.mark.parametrize("shape", [[6, 4], None, (6.0, 4), (6, None), (1 << 70,), 6])
def test_a_shape_is_a_tuple_of_integers(kernel: Any, shape: Any) -> None:
    with pytest.raises((TypeError, OverflowError)):
        kernel.Prepared()._accept(DATA, shape, 0, (6,), True)
    with pytest.raises((TypeError, OverflowError)):
        kernel.Blocks(0).empty(shape, np.dtype("f4"))


@pytest.mark.parametrize(
    "shape", [(-1,), (-2, -3), (0, -1), (1 << 61,), (1 << 62, 3), (1 << 32, 1 << 32)]
)
def test_an_array_that_can_not_be(kernel: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"negative|too big"):
        kernel.Blocks(0).empty(shape, np.dtype("f4"))


def test_blocks_are_counted_in_bytes(kernel: Any) -> None:
    for junk in (None, "1", 1.5, 1 << 70, -1):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            kernel.Blocks(junk)
    with pytest.raises(TypeError):
        kernel.Blocks(1).empty((2,), "f4")


def test_only_a_tuple_of_arguments_is_remembered(kernel: Any) -> None:
    for junk in (None, [1], DATA):
        with pytest.raises(TypeError):
            kernel.Plans().find(DATA, junk)
        with pytest.raises(TypeError):
            kernel.Plans().add(DATA, junk, 1)


def test_lists_of_up_to_65536_elements_are_remembered(kernel: Any) -> None:
    for make in (list, tuple, np.array):
        for count, is_kept in ((1 << 16, True), ((1 << 16) + 1, False)):
            plans, lengths = kernel.Plans(), make([1] * count)
            plans.add(DATA, (lengths,), "plan")
            assert (len(plans), plans.find(DATA, (lengths,)) == "plan") == (is_kept, is_kept)


PLANS = native.kernel.Plans() if native.kernel else None
NAMES = ("x", "lengths", "copy", "out")


@pytest.mark.parametrize(
    ("function", "names", "positional", "defaults", "plans"),
    [
        (len, NAMES, 1, (), PLANS),  # no method can be bound to it
        (None, NAMES, 1, (), PLANS),
        (prepared, NAMES, 1, (), {}),
        (prepared, NAMES, 1, (), None),
        (prepared, list(NAMES), 1, (), PLANS),
        (prepared, NAMES, 1, [], PLANS),
        (prepared, NAMES[:2], 1, (), PLANS),
        (prepared, NAMES * 4 + ("more",), 1, (), PLANS),
        (prepared, NAMES, 5, (), PLANS),
        (prepared, NAMES, 1, (None,) * 5, PLANS),
        (prepared, (*NAMES, "like"), 1, (), None),  # a function that joins has six parameters
        (prepared, (*NAMES, *NAMES), 1, (), None),
    ],
)
def test_what_is_no_function_that_splits(
    kernel: Any, function: Any, names: Any, positional: int, defaults: Any, plans: Any
) -> None:
    kernel.Call(prepared, NAMES * 4, 16, (None,) * 16, PLANS)
    kernel.Call(prepared, (*NAMES, "keepdims", "like"), 1, (), None)
    with pytest.raises((TypeError, ValueError)):
        kernel.Call(function, names, positional, defaults, plans)


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
