"""Axes and positions, as NumPy and Python take them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tensorsplit.model.graph.axes import axes_from_front, clamped, in_range


@pytest.mark.parametrize("length", range(4))
def test_positions_in_range_are_those_that_numpy_takes(length: int) -> None:
    for index in range(-5, 6):
        indices = np.array([index, 0 if length else index])
        try:
            np.arange(length).take(indices, mode="raise")
            is_taken = True
        except IndexError:
            is_taken = False
        assert in_range(indices, length) is is_taken
    assert in_range(np.array([], np.int64), length)


def by_the_standard(start: int, end: int, step: int, length: int) -> list[int]:
    """The positions that Slice takes: its text clamps a start before the front to the first."""
    start, end = (bound + length if bound < 0 else bound for bound in (start, end))
    lowest, highest = (0, length) if step > 0 else (-1, length - 1)
    at, end = max(min(start, highest), 0), max(min(end, highest), lowest)
    taken = []
    while 0 <= at < length and (at < end if step > 0 else at > end):
        taken.append(at)
        at += step
    return taken


@pytest.mark.parametrize("length", range(4))
@pytest.mark.parametrize("step", [1, 2, 3, -1, -2, -3])
def test_a_slice_takes_what_the_standard_says(step: int, length: int) -> None:
    elements = list(range(length))
    bounds = [*range(-6, 7), 1 << 62, -(1 << 62)]
    for start, end in product(bounds, bounds):
        taken = elements[clamped(start, end, step, length)]
        assert taken == by_the_standard(start, end, step, length), (start, end)
        if step > 0 or start >= -length:
            assert taken == elements[start:end:step], (start, end)


@pytest.mark.parametrize(
    ("op_type", "axes", "rank", "expected"),
    [
        ("Squeeze", [-1, 0], 3, [0, 2]),
        ("Squeeze", [-3], 3, [0]),
        ("Squeeze", [-4], 3, None),
        ("Squeeze", [2, 0], None, [0, 2]),
        ("Squeeze", [0, -1], None, None),
        ("Squeeze", [], None, []),
        ("Unsqueeze", [-1, 0], 2, [0, 3]),  # axes of what it gives
        ("Unsqueeze", [-4, 1], 2, [0, 1]),
        ("Unsqueeze", [-5, 1], 2, None),
        ("OneHot", [-1], 2, [2]),
        ("OneHot", [-3], 2, [0]),
        ("OneHot", [-4], 2, None),
    ],
)
def test_axes_are_counted_from_the_front(
    op_type: str, axes: list[int], rank: int | None, expected: list[int] | None
) -> None:
    assert axes_from_front(op_type, axes, rank) == expected
