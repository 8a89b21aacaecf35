"""A rule does to a formula what it does to integers, and its guard refuses the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pytest

from tensorsplit.core import rules
from tensorsplit.core.arithmetic import (
    Formula,
    Maker,
    Symbol,
    bounds,
    dimension,
    fed,
    fitting,
    fitting_zero,
    in_order,
    position,
    value,
)
from tensorsplit.core.dimensions import are_known
from tensorsplit.core.errors import SplitError
from tensorsplit.core.rules import Rule, apply

Listed: TypeAlias = "np.ndarray[Any, Any]"


class StoppedError(Exception):
    """The running model stopped."""


NODES: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": lambda left, right: np.fix(left / right).astype(np.int64),  # as engines do
    "minimum": np.minimum,
    "maximum": np.maximum,
    "less": np.less,
    "equal": np.equal,
    "both": np.logical_and,
    "choose": np.where,
    "total": lambda numbers: numbers.sum(keepdims=True),
    "sums": np.cumsum,
    "joined": lambda *lists: np.concatenate(lists),
    "pick": lambda numbers, index: numbers[index],
    "head": lambda numbers, count: numbers[: count[0]],
    "tail": lambda numbers, start: numbers[start[0] :],
    "size_of": lambda numbers: np.array(numbers.shape),
    "dimension": lambda data, axis: np.array(data.shape)[axis],
}


class Calculator(Maker[Listed]):
    """An engine that has nothing but the numbers."""

    def constant_list(self, values: Sequence[int]) -> Listed:
        return np.array(values, np.int64)

    def apply(self, operation: str, operands: list[Listed]) -> Listed:
        if operation == "shaped":
            numbers, count = operands
            if len(numbers) != count:
                raise StoppedError
            return numbers
        found: Listed = NODES[operation](*operands)
        return found


def integers(rule: Rule, dim: int, given: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        sizes = apply(rule, dim, given)
    except SplitError:
        return None
    assert isinstance(sizes, tuple)
    assert are_known(sizes)
    return sizes


def made(number: Any) -> list[int] | None:
    """What comes of a number; None if the model stops."""
    try:
        return list(Calculator().make(number).tolist())
    except StoppedError:
        return None


def axis_of(dim: int) -> Formula:
    return dimension(np.empty(dim), 0)


def cases() -> Iterator[tuple[Rule, tuple[int, ...]]]:
    for count in range(1, 6):
        yield rules.ceil, (count,)
        yield rules.equal, (count,)
    for count in (1, 2, 3):
        for lengths in product(range(-3, 8), repeat=count):
            yield rules.explicit, lengths
            yield rules.remainder, lengths


@pytest.mark.thorough
@pytest.mark.parametrize("dim", range(7))
def test_a_guard_refuses_what_the_rule_refuses(dim: int) -> None:
    length = axis_of(dim)
    for rule, given in cases():
        wanted = integers(rule, dim, given)
        if rule in (rules.ceil, rules.equal):
            sizes: rules.Sizes = rule(length, given)
        else:
            sizes = rule(length, fed(np.array(given), length, len(given)))
        assert not isinstance(sizes, rules.Chunks)
        count = given[0] if rule in (rules.ceil, rules.equal) else len(given)
        found = made(fitting(length, sizes, count, checks_sum=False))
        assert found == (None if wanted is None else list(wanted)), (rule, dim, given)
        # A node that checks the sum gets lengths that are right, or no sum that fits
        sums = made(fitting(length, sizes, count, checks_sum=True))
        assert sums is not None
        assert min(sums) >= 0
        assert (sum(sums) == dim) == (wanted is not None), (rule, dim, given, sums)
        assert (made(fitting_zero(length, sizes)) == [0]) == (wanted is not None)
        limits = bounds(length, sizes, count)
        ends = [made(end) for _, end in limits[:1]]
        assert (ends[0] is None) == (wanted is None), (rule, dim, given)
        if wanted is not None:
            assert [made(end) for _, end in limits] == [
                [sum(wanted[: n + 1])] for n in range(len(wanted))
            ]


@pytest.mark.parametrize(
    "lengths", [(1 << 62, 1 << 62, 1 << 62), (-(1 << 63), 6), ((1 << 63) - 1, 6)]
)
def test_lengths_that_are_fed_become_small(lengths: tuple[int, ...]) -> None:
    found = made(fed(np.array(lengths), axis_of(6)))
    assert found is not None
    assert all(-2 <= number <= 7 for number in found)


@pytest.mark.parametrize("dim", range(7))
@pytest.mark.parametrize("length", range(-2, 8))
def test_a_chunk_length_is_required_to_be_positive(dim: int, length: int) -> None:
    data = axis_of(dim)
    chunks = rules.chunk(data, (fed(np.array([length]), data),))
    wanted = integers(rules.chunk, dim, (length,))
    assert made(chunks.count) == (None if wanted is None else [len(wanted)])


@pytest.mark.parametrize("count", range(4))
@pytest.mark.parametrize("index", range(-5, 6))
def test_a_position_out_of_range_stops_the_model(count: int, index: int) -> None:
    """D19."""
    found = made(position(*(value(np.array([n])) for n in (index, count, count - 1))))
    inside = -count <= index < count
    assert found == ([index % count] if inside else None)


def test_a_symbol_that_fails_for_every_value_is_refused() -> None:
    n = Symbol("N")
    with pytest.raises(SplitError, match="TS302"):
        rules.explicit(n, (n, 1))
    assert rules.explicit(n, (n,)) == (n,)


def test_what_is_not_asked_for_makes_no_node() -> None:
    calls: list[str] = []

    class Counting(Calculator):
        def apply(self, operation: str, operands: list[Listed]) -> Listed:
            calls.append(operation)
            return super().apply(operation, operands)

    length = axis_of(6)
    sizes = rules.equal(length, (2,))
    assert Counting().make(fitting(length, sizes, 2, checks_sum=True)).tolist() == [3, 3]
    assert calls == ["dimension", "divide", "joined"]
    assert isinstance(in_order(sizes)[0], Formula)
