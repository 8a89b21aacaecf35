"""A rule does to a formula what it does to integers, and its guard refuses the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pytest

from tensorsplit.core import rules
from tensorsplit.core.arithmetic import (
    Formula,
    Symbol,
    bounds,
    dimension,
    fed,
    fitting,
    fitting_zero,
    in_order,
    maximum,
    minimum,
    position,
    total,
    value,
)
from tensorsplit.core.dimensions import are_known
from tensorsplit.core.errors import SplitError
from tensorsplit.core.maker import Maker, written
from tensorsplit.core.rules import LengthRule, apply

Listed: TypeAlias = "np.ndarray[Any, Any]"


class StoppedError(Exception):
    """The running model stopped."""


def quotient(left: Listed, right: Listed) -> Listed:
    """As engines do, of which some end at a division by 0."""
    assert np.all(right)
    found: Listed = np.fix(left / right)
    return found


NODES: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": lambda left, right: quotient(left, right).astype(np.int64),
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


def rounded(function: Callable[..., Any]) -> Callable[..., Any]:
    """As an engine does that calculates with integers as float32."""
    return lambda *numbers: function(*(np.asarray(each, np.float32) for each in numbers))


ROUNDED_NODES = {name: node for name, node in NODES.items() if name not in ("divide", "total")} | {
    "near_quotient": rounded(lambda left, right: quotient(left, right).astype(np.int32)),
    "less": rounded(np.less),
    "equal": rounded(np.equal),
    "choose": lambda condition, yes, no: rounded(partial(np.where, condition))(yes, no),
    "near_total": rounded(lambda numbers: numbers.sum(keepdims=True)),
    "sums": lambda numbers: np.cumsum(numbers, dtype=np.int32),
    "one_if": lambda condition: condition.astype(np.int32),
}


class Rounding(Calculator):
    """An engine with integers of 32 bits, which most of its nodes round to float32 (D14)."""

    rounds_integers = True

    def constant_list(self, values: Sequence[int]) -> Listed:
        made: Listed = np.clip(np.array(values), -(1 << 31), (1 << 31) - 1).astype(np.int32)
        return made

    def apply(self, operation: str, operands: list[Listed]) -> Listed:
        if operation == "shaped":
            return super().apply(operation, operands)
        with np.errstate(over="ignore"):
            found: Listed = ROUNDED_NODES[operation](*operands)
        made: Listed = np.clip(found, -(1 << 31), (1 << 31) - 1).astype(np.int32)
        return made


def integers(rule: LengthRule, dim: int, given: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        sizes = apply(rule, dim, given)
    except SplitError:
        return None
    assert isinstance(sizes, tuple)
    assert are_known(sizes)
    return sizes


def made(number: Any, engine: type[Calculator] = Calculator) -> list[int] | None:
    """What comes of a number; None if the model stops."""
    try:
        return list(engine().make(number).tolist())
    except StoppedError:
        return None


def axis_of(dim: int) -> Formula:
    return dimension(np.empty(dim), 0)


def cases() -> Iterator[tuple[LengthRule, tuple[int, ...]]]:
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


LONG = np.random.default_rng(14).integers(1 << 24, 1 << 30, 60).tolist()


def long_cases(dim: int) -> Iterator[tuple[LengthRule, tuple[int, ...]]]:
    random = np.random.default_rng(dim)
    for count in random.integers(1, 9, 3).tolist():
        yield rules.ceil, (count,)
        yield rules.equal, (count,)
        cuts = np.sort(random.integers(0, dim, count - 1))
        fitting = np.diff([0, *cuts, dim])
        place, other = random.integers(0, count, 2)
        wrong, moved, rest = fitting.copy(), fitting.copy(), fitting.copy()
        wrong[place] += random.choice([1, -1, 2])
        moved[[place, other]] += (-dim - 1, dim + 1)
        rest[place] = -1
        for lengths in (fitting, wrong, moved):
            yield rules.explicit, tuple(lengths.tolist())
        for lengths in (fitting, wrong, moved, rest):
            yield rules.remainder, tuple(lengths.tolist())


@pytest.mark.parametrize("dim", [*LONG, (1 << 24) + 1, 60_000_003])
def test_a_guard_is_exact_where_integers_are_rounded(dim: int) -> None:
    """D14."""
    length = Formula("value", held=np.array([dim], np.int32), is_natural=True)
    for rule, given in long_cases(dim):
        wanted = integers(rule, dim, given)
        if rule in (rules.ceil, rules.equal):
            sizes: rules.Sizes = rule(length, given)
            count = given[0]
        else:
            held = np.array(given, np.int64).astype(np.int32)
            sizes, count = rule(length, fed(held, length, len(given))), len(given)
        assert not isinstance(sizes, rules.Chunks)
        found = made(fitting(length, sizes, count, checks_sum=False), Rounding)
        assert found == (None if wanted is None else list(wanted)), (rule, dim, given)
        if rule is rules.explicit:
            known = made(fitting(dim, fed(held, dim), count, checks_sum=False), Rounding)
            assert known == found


def test_the_sum_of_no_numbers_is_0_where_integers_are_rounded() -> None:
    assert made(total(value(np.zeros(0, np.int32))), Rounding) == [0]


@pytest.mark.parametrize("count", [5, 9, 13])
def test_a_sum_that_comes_round_to_the_dimension_is_refused(count: int) -> None:
    """D14: 2^30 taken five times is 2^30 again in 32 bits."""
    dim = 1 << 30
    length = Formula("value", held=np.array([dim], np.int32), is_natural=True)
    lengths = fed(np.full(count, dim, np.int32), length, count)
    sizes = rules.explicit(length, lengths)
    assert made(fitting(length, sizes, count, checks_sum=False), Rounding) is None


@pytest.mark.parametrize("dim", [*LONG, (1 << 24) + 1, 60_000_003])
def test_chunks_are_exact_where_integers_are_rounded(dim: int) -> None:
    """D14."""
    length = Formula("value", held=np.array([dim], np.int32), is_natural=True)
    random = np.random.default_rng(dim)
    sizes = [*random.integers(1, dim, 4), *random.integers(1, 9, 2), dim - 1, dim, dim + 1]
    for size in map(int, sizes):
        chunks = rules.chunk(length, (fed(np.array([size], np.int32), length),))
        assert made(chunks.count, Rounding) == [-(-dim // size)], (dim, size)


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


def test_an_engine_that_passes_a_guard_does_not_divide_by_0() -> None:
    """Division by 0 ends the process of some engines (D10)."""

    class Careless(Calculator):
        def apply(self, operation: str, operands: list[Listed]) -> Listed:
            if operation == "shaped":
                return np.resize([*operands[0], 0], operands[1])
            return super().apply(operation, operands)

    data = axis_of(6)
    assert Careless().make(rules.chunk(data, (fed(np.array([0]), data),)).count).size == 1


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


def test_what_changes_nothing_makes_no_node() -> None:
    length = axis_of(6)
    assert all(each is length for each in (length + 0, length - 0, length * 1, length // 1))
    assert length * 0 == 0
    changed = (length + 1, length - 1, length * 2, length // 2, length + length, length * length)
    assert all(isinstance(each, Formula) and each is not length for each in changed)


def test_a_formula_is_natural_if_all_that_it_is_made_of_is_0_or_more() -> None:
    """Nothing guards those numbers against being below 0."""
    dim, any_number = dimension("x", 0), value("y")
    for natural in (dim, dim + 0, dim + 1, dim * 2, dim // 2, minimum(dim, 3), total((dim, 1))):
        assert isinstance(natural, Formula)
        assert natural.is_natural
    larger = (maximum(any_number, 0), maximum(any_number, dim), maximum(dim, any_number))
    assert all(each.is_natural for each in larger)
    assert not maximum(any_number, -1).is_natural
    assert not maximum(any_number, value("z")).is_natural
    for other in (any_number, dim + -1, dim * -1, dim - 1, minimum(dim, -1), dim + any_number):
        assert isinstance(other, Formula)
        assert not other.is_natural


def test_lengths_that_are_numbers_and_fit_need_no_guard() -> None:
    assert fitting_zero(6, (2, 4)) == 0


@pytest.mark.parametrize(
    ("most", "count", "is_exact"),
    [
        *((5, 3, True), (1 << 23, 2, True), ((1 << 23) + 1, 2, False)),
        *((1 << 24, 1, True), (1 << 24, 2, False), ((1 << 24) + 1, 1, False)),
    ],
)
def test_numbers_whose_sum_a_float_holds_are_summed_up_as_floats(
    most: int, count: int, is_exact: bool
) -> None:
    """float32 has 24 bits for the digits of a number."""
    assert is_exact == (np.float32(most * count) == most * count and most * count <= 1 << 24)
    numbers = Formula("shaped", maximum(minimum(value("y"), most), 0), count)
    made = written(Formula("total", numbers), rounds_integers=True)
    assert made.operation == ("near_total" if is_exact else "pick")
    assert written(Formula("total", numbers), rounds_integers=False).operation == "total"
