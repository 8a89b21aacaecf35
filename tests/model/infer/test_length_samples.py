"""What lengths are calculated from, tried: each way in which lengths do not fit is among it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorsplit.model.infer.length_program import Operation, Program
from tensorsplit.model.infer.length_samples import at_dimension, samples_of

LEAST, MOST = -(1 << 63), (1 << 63) - 1


def sampled(kind: Any, count: int, dim: int | None = None, constants: Any = ()) -> list[list[Any]]:
    """The dimensions and values of a variable beside them, where a program has some constants."""
    held = Operation("constant", ((len(constants),), tuple(constants)))
    steps = (held, Operation("sampled", (1,)))
    program = Program(steps, (1,), ("dimension", kind), dim, ((len(constants),), kind))
    return list(samples_of(program, count))


def in_64_bits(number: int) -> int:
    return (number - LEAST) % (1 << 64) + LEAST


WAYS: dict[str, tuple[int, Callable[[int, list[int]], bool]]] = {
    "they fit": (1, lambda dim, each: min(each) >= 0 and sum(each) == dim),
    "one too many": (1, lambda dim, each: min(each) >= 0 and sum(each) == dim + 1),
    "one too few": (1, lambda dim, each: min(each) >= 0 and sum(each) == dim - 1),
    "all are -1": (1, lambda _, each: {*each} == {-1}),
    "all are 0": (1, lambda _, each: {*each} == {0}),
    "they fit in 32 bits alone": (1, lambda dim, each: sum(each) % (1 << 32) == dim != sum(each)),
    "below 0, the sum fits": (2, lambda dim, each: min(each) < 0 and sum(each) == dim),
    "below 0, no other is too large": (
        *(3, lambda dim, each: min(each) < 0 and max(each) <= dim and sum(each) == dim),
    ),
    "they fit in 64 bits alone": (
        *(3, lambda dim, each: min(each) >= 0 and in_64_bits(sum(each)) == dim != sum(each)),
    ),
    "so do lengths up to 2^62": (
        *(5, lambda dim, each: min(each) >= 0 and max(each) <= 1 << 62 and fits_wrapped(dim, each)),
    ),
}
"""Ways for lengths to fit or not, with the fewest parts that can be so."""


def fits_wrapped(dim: int, lengths: list[int]) -> bool:
    return in_64_bits(sum(lengths)) == dim != sum(lengths)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 8])
@pytest.mark.parametrize("way", WAYS)
def test_lists_of_lengths(way: str, count: int) -> None:
    """Each way is tried at a dimension that is known, and at several where none is."""
    fewest, is_so = WAYS[way]
    for dim in (None, 1, 7, 4096):
        tried = [(at, lengths) for at, lengths in sampled(count, count, dim) if at > 0]
        assert all(len(lengths) == count for _, lengths in tried)
        assert dim is None or {at for at, _ in tried} == {dim}
        dims = {at for at, lengths in tried if is_so(at, list(map(int, lengths)))}
        assert count < fewest or len(dims) >= (3 if dim is None else 1), (dim, dims)


def test_dimensions() -> None:
    """Those around constants, and with any rest of a division by the count, are tried."""
    for constants in ((), (50,), (12, 340)):
        tried = {dim for dim, _ in sampled("dimension", 3, constants=constants)}
        around = {each + more for each in constants for more in (-1, 0, 1)}
        assert tried >= {0, 1, 2, 3, 4, 5, 6, 7, 8, *around}
        assert {dim % 3 for dim in tried if dim > 1 << 31} == {0, 1, 2}
        assert max(tried) > 1 << 40
        assert min(tried) == 0


def test_numbers() -> None:
    """Those below 0 and beside the dimension are tried, but for another dimension."""
    tried = {int(number) for _, number in sampled((), 3, 40, (90,))}
    assert tried >= {0, 1, 2, 3, 7, 39, 40, 41, 20, 90, -1, -2, -40, LEAST, MOST}
    others = [(dim, int(number)) for dim, number in sampled("dimension", 3)]
    assert min(number for _, number in others) == 0
    assert len({dim for dim, number in others if number == dim}) > 2
    assert len({dim for dim, number in others if number > dim}) > 2


def test_lists_of_any_length() -> None:
    """They have as many lengths as there are parts, one fewer or more, and more than elements."""
    tried = [np.atleast_1d(np.array(lengths)) for _, lengths in sampled(None, 3, 5, (2,))]
    sizes = {each.size for each in tried}
    assert sizes >= {0, 1, 2, 3, 4, 6}
    assert max(sizes) >= 6 * 3  # what is counted may be divided by a constant
    entries = {int(each[0]) for each in tried if each.size == 6}
    assert entries >= {-1, 0, 1, 6}


def test_each_value_is_tried_at_one_dimension() -> None:
    steps = (Operation("sampled", (1,)), Operation("sampled", (2,)))
    program = Program(steps, (0,), ("dimension", (), 2), None, ((), 2))
    tried = list(at_dimension(9, program, 2))
    assert {dim for dim, *_ in tried} == {9}
    assert {number for _, number, _ in tried} >= {0, 1, 8, 9, 10, -1, LEAST, MOST}
    assert sum(sum(lengths) == 9 and min(lengths) >= 0 for *_, lengths in tried) == 3
    assert list(at_dimension(9, program._replace(dim=8), 2)) == []
    assert list(at_dimension(9, program._replace(dim=9), 2)) == tried
