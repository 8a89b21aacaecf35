"""The length rules, with lengths worked out by hand."""

from __future__ import annotations

from itertools import product
from typing import Any

import onnx_ir
import pytest

from tensorsplit.core import rules
from tensorsplit.core.arithmetic import position
from tensorsplit.core.errors import SplitError
from tensorsplit.core.rules import MAX_PARTS, LengthRule, Uncounted, apply
from tests.refusals import refused

Sizes = tuple[Any, ...]


@pytest.mark.parametrize(
    ("dim", "lengths"), [(6, (2, 4)), (6, (6,)), (6, (0, 6, 0)), (0, (0,)), (0, (0, 0)), (1, (1,))]
)
def test_explicit_lengths_are_used_as_given(dim: int, lengths: Sizes) -> None:
    assert apply(rules.explicit, dim, lengths) == lengths


@pytest.mark.parametrize(
    ("dim", "lengths", "total"),
    [(6, (2, 3), 5), (6, (2, 5), 7), (6, (), 0), (0, (1,), 1), (6, ((1 << 32) + 2, 4), 4294967302)],
)
def test_lengths_must_sum_to_the_dimension(dim: int, lengths: Sizes, total: int) -> None:
    with refused("TS302", total, f"dimension is {dim}"):
        apply(rules.explicit, dim, lengths)


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (12, "[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1] sums to 12,"),
        (13, "[1, 1, 1, 1, 1, 1, 1, 1, ... 13 lengths] sums to 13,"),
    ],
)
def test_of_many_lengths_the_first_are_shown(count: int, shown: str) -> None:
    with refused("TS302", shown):
        apply(rules.explicit, 6, (1,) * count)


@pytest.mark.parametrize("dim", [6, None])
@pytest.mark.parametrize(
    "lengths", [(-1, 7), (7, -1), (-6,), (12, -6), (-(1 << 64), (1 << 64) + 6)]
)
def test_explicit_lengths_are_not_negative(dim: int | None, lengths: Sizes) -> None:
    with refused("TS301", ">= 0"):
        apply(rules.explicit, dim, lengths)


@pytest.mark.parametrize(
    ("dim", "lengths", "sizes"),
    [
        (6, (-1, 2), (4, 2)),
        (6, (2, -1), (2, 4)),
        (6, (1, -1, 3), (1, 2, 3)),
        (6, (6, -1), (6, 0)),
        (6, (-1,), (6,)),
        (0, (-1, 0), (0, 0)),
        (6, (2, 4), (2, 4)),
    ],
)
def test_one_minus_one_is_the_remainder(dim: int, lengths: Sizes, sizes: Sizes) -> None:
    assert apply(rules.remainder, dim, lengths) == sizes


@pytest.mark.parametrize("lengths", [(-1, 7), (7, -1), (4, -1, 3)])
def test_the_remainder_must_not_be_negative(lengths: Sizes) -> None:
    with refused("TS306", "7", "6"):
        apply(rules.remainder, 6, lengths)


@pytest.mark.parametrize("dim", [6, None])
def test_no_dimension_holds_lengths_beyond_64_bits(dim: int | None) -> None:
    with refused("TS302", 1 << 63):
        apply(rules.explicit, dim, (1 << 63,))
    with refused("TS306", 1 << 63):
        apply(rules.remainder, dim, (-1, 1 << 62, 1 << 62))


@pytest.mark.parametrize("dim", [6, None])
def test_only_one_length_may_be_the_remainder(dim: int | None) -> None:
    with refused("TS306", "more than once"):
        apply(rules.remainder, dim, (-1, 2, -1))


@pytest.mark.parametrize("dim", [6, None])
@pytest.mark.parametrize("lengths", [(-2, 8), (-1, -2, 9)])
def test_no_other_negative_length_is_a_remainder(dim: int | None, lengths: Sizes) -> None:
    with refused("TS301"):
        apply(rules.remainder, dim, lengths)


@pytest.mark.parametrize(
    ("dim", "count", "sizes"),
    [(6, 1, (6,)), (6, 2, (3, 3)), (6, 3, (2, 2, 2)), (6, 6, (1,) * 6), (0, 3, (0, 0, 0))],
)
def test_equal_parts(dim: int, count: int, sizes: Sizes) -> None:
    assert apply(rules.equal, dim, (count,)) == sizes


@pytest.mark.parametrize(
    ("dim", "count", "example"),
    [(7, 3, "[3, 2, 2]"), (5, 4, "[2, 1, 1, 1]"), (1, 2, "[1, 0]"), (14, 13, "[2] * 1 + [1] * 12")],
)
def test_equal_parts_need_a_multiple(dim: int, count: int, example: str) -> None:
    with refused("TS303", dim, count, example):
        apply(rules.equal, dim, (count,))


def test_num_outputs_of_split_18_is_named_only_where_it_would_do() -> None:
    with refused("TS303", "or use num_outputs of onnx.Split-18"):
        apply(rules.equal, 7, (3,))
    with pytest.raises(ValueError, match="TS303") as caught:
        apply(rules.equal, 5, (4,))
    assert "num_outputs" not in str(caught.value)


@pytest.mark.parametrize(
    ("dim", "count", "sizes"),
    [
        (7, 1, (7,)),
        (7, 2, (4, 3)),
        (7, 3, (3, 3, 1)),
        (7, 4, (2, 2, 2, 1)),
        (6, 3, (2, 2, 2)),
        (6, 4, (2, 2, 2, 0)),
        (7, 7, (1,) * 7),
        (1, 2, (1, 0)),
        (0, 3, (0, 0, 0)),
    ],
)
def test_parts_of_the_length_rounded_up_and_a_smaller_last_one(
    dim: int, count: int, sizes: Sizes
) -> None:
    assert apply(rules.ceil, dim, (count,)) == sizes


@pytest.mark.parametrize(
    ("dim", "count", "last", "example"),
    [
        (5, 4, -1, "[2, 1, 1, 1]"),
        (3, 7, -3, "[1, 1, 1, 0, 0, 0, 0]"),
        (1, 3, -1, "[1, 0, 0]"),
        (3, 20, -16, "[1] * 3 + [0] * 17"),
    ],
)
def test_a_last_part_below_zero_is_refused(dim: int, count: int, last: int, example: str) -> None:
    with refused("TS304", dim, count, last, example):
        apply(rules.ceil, dim, (count,))


@pytest.mark.parametrize("rule", [rules.equal, rules.ceil])
@pytest.mark.parametrize("count", [0, -1, -(10**30)])
@pytest.mark.parametrize("dim", [0, 6, None])
def test_a_count_of_parts_is_at_least_one(rule: LengthRule, count: int, dim: int | None) -> None:
    with refused("TS107", ">= 1"):
        apply(rule, dim, (count,))


@pytest.mark.parametrize(
    ("dim", "length", "sizes"),
    [
        (7, 3, (3, 3, 1)),
        (6, 3, (3, 3)),
        (6, 6, (6,)),
        (6, 9, (6,)),
        (6, 1, (1,) * 6),
        (6, 10**30, (6,)),
        (0, 2, ()),
    ],
)
def test_chunks_and_a_smaller_last_one(dim: int, length: int, sizes: Sizes) -> None:
    assert apply(rules.chunk, dim, (length,)) == sizes


@pytest.mark.parametrize("length", [0, -1, -(10**30)])
@pytest.mark.parametrize("dim", [6, None])
def test_a_chunk_length_is_positive(length: int, dim: int | None) -> None:
    with refused("TS307", "> 0"):
        apply(rules.chunk, dim, (length,))


@pytest.mark.parametrize(("dim", "sizes"), [(0, ()), (1, (1,)), (3, (1, 1, 1))])
def test_ones(dim: int, sizes: Sizes) -> None:
    assert apply(rules.ones, dim, ()) == sizes


def test_chunks_of_an_unknown_dimension_have_no_known_number() -> None:
    unknown: Any = None
    assert apply(rules.chunk, unknown, (3,)) == Uncounted(unknown, 3)
    assert apply(rules.ones, unknown, ()) == Uncounted(unknown, 1)


@pytest.mark.parametrize(
    ("rule", "given", "sizes"),
    [
        (rules.explicit, (2, 4), (2, 4)),
        (rules.remainder, (2, -1), (2, None)),
        (rules.equal, (3,), (None, None, None)),
        (rules.ceil, (3,), (None, None, None)),
    ],
)
def test_an_unknown_dimension_leaves_unknown_what_depends_on_it(
    rule: LengthRule, given: Sizes, sizes: Sizes
) -> None:
    assert apply(rule, None, given) == sizes


@pytest.mark.parametrize(
    ("rule", "dim", "given"),
    [
        (rules.equal, 0, (MAX_PARTS + 1,)),
        (rules.ceil, 0, (1 << 62,)),
        (rules.chunk, 1 << 62, (1,)),
        (rules.ones, 1 << 62, ()),
        (rules.explicit, 0, (0,) * (MAX_PARTS + 1)),
    ],
    ids=["equal", "ceil", "chunk", "ones", "explicit"],
)
def test_more_parts_than_can_be_listed_are_refused(
    rule: LengthRule, dim: int, given: Sizes
) -> None:
    with refused("TS308", MAX_PARTS):
        apply(rule, dim, given)


@pytest.mark.parametrize(
    ("dim", "length", "found"),
    [(12, 4, (4, 4, 4)), (13, 4, Uncounted(4, 4)), (MAX_PARTS, 1, Uncounted(MAX_PARTS, 1))],
)
def test_more_chunks_than_asked_for_are_counted_and_not_listed(
    dim: int, length: int, found: object
) -> None:
    assert apply(rules.chunk, dim, (length,), most=3) == found


def test_more_chunks_than_are_possible_are_refused_even_if_they_are_not_listed() -> None:
    with refused("TS308", MAX_PARTS):
        apply(rules.chunk, MAX_PARTS + 1, (1,), most=3)


def test_numbers_too_long_to_print_are_still_refused_in_words() -> None:
    with refused("TS302", "2^20000"):
        apply(rules.explicit, 6, (1 << 20000,))


OF_LISTS = (
    *(rules.explicit, rules.remainder, rules.shares, rules.not_empty),
    *(rules.starts, rules.ends, rules.slices),
)


def outcome(rule: LengthRule, dim: Any, given: Sizes) -> Sizes | None:
    """The lengths; None where they are refused."""
    try:
        found = apply(rule, dim, given)
    except SplitError:
        return None
    assert isinstance(found, tuple)
    return found


def value_of(length: Any, values: dict[str, int]) -> int | None:
    """The number that a length is where its names have values; None where it is not known."""
    if isinstance(length, str):
        return values[length]
    found = length.evaluate(values) if isinstance(length, onnx_ir.SymbolicDim) else length
    assert found is None or isinstance(found, int)
    return found


@pytest.mark.parametrize("named", list(product((False, True), repeat=3))[1:], ids=str)
@pytest.mark.parametrize("rule", OF_LISTS)
def test_what_a_rule_makes_of_names_is_what_it_makes_of_their_values(
    rule: LengthRule, named: tuple[bool, ...]
) -> None:
    """And it refuses what it refuses for every value only."""
    for numbers in product((0, 3, 5), (-1, 0, 2, 3), (-1, 0, 2, 3)):
        dim, *given = (
            name if is_named else number
            for name, number, is_named in zip("mab", numbers, named, strict=True)
        )
        if any(is_named and number < 0 for number, is_named in zip(numbers, named, strict=True)):
            continue  # no dimension has that name
        known = outcome(rule, numbers[0], numbers[1:])
        found = outcome(rule, dim, tuple(given))
        if known is None:
            continue
        assert found is not None, numbers
        values = [value_of(each, dict(zip("mab", numbers, strict=True))) for each in found]
        pairs = list(zip(values, known, strict=True))
        assert all(left in (None, right) for left, right in pairs), (numbers, found)


@pytest.mark.parametrize("beyond", [0, 1])
@pytest.mark.parametrize("count", range(5))
def test_positions_are_those_of_a_list_of_python(count: int, beyond: int) -> None:
    """What is added may be after the last one; else each is one of those that are there."""
    held = list(range(count + beyond))
    for index in range(-8, 9):
        last = count - 1 + beyond
        fits = -count <= index <= last
        if fits:
            expected = held[index - beyond if index < 0 else index]
            assert position(index, count, last) == expected
            continue
        with pytest.raises(SplitError, match="TS511") as caught:
            position(index, count, last)
        wants = caught.value.wants or {}
        assert [*wants.get("position", ())] == list(range(-count, last + 1))
        least = min(c for c in range(10) if -c <= index <= c - 1 + beyond)
        assert wants["count"][0] == least
