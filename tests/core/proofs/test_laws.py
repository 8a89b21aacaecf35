"""Laws between the rules, and the parts of a plan: in a row they are the axis again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
import z3

from tensorsplit.core.arithmetic import in_order
from tensorsplit.core.errors import SplitError
from tensorsplit.core.plan import SplitPlan
from tensorsplit.core.resolve import plan
from tensorsplit.core.rules import Chunks, LengthRule, ceil, chunk, equal, explicit, ones, remainder
from tests.core.proofs.numbers import MOST, BeyondError, Term, Whole, outcomes, term_of, terms_of
from tests.core.proofs.operators import DIM, FORMS, IS_DIMENSION, Form, counts_of

Parts: TypeAlias = "tuple[Any, ...]"

EACH_COUNT = pytest.mark.parametrize("count", range(1, MOST + 1))

pytestmark = pytest.mark.usefixtures("whole_numbers")


def lengths(rule: LengthRule, *given: Any) -> Parts:
    """List the lengths that a rule gives for any dimension."""
    sizes = rule(Whole(DIM), given)
    if not isinstance(sizes, Chunks):
        return in_order(sizes)
    count: Any = sizes.count
    return sizes.parts(int(count))


def fed(count: int) -> Parts:
    return tuple(Whole(z3.Int(f"length {place}")) for place in range(count))


def prove_alike(
    first: Callable[[], Parts], second: Callable[[Parts], Parts], *assumed: Term
) -> set[str]:
    """Prove that where there are first lengths, the second, made of them, are the same.

    Returns:
        The codes with which the first were refused; ``""`` where they were not.
    """
    codes = set()

    def both() -> tuple[Parts, Parts | SplitError]:
        parts = first()
        try:
            return parts, second(parts)
        except SplitError as refusal:
            return parts, refusal

    for outcome in outcomes(both, IS_DIMENSION, *assumed):
        codes.add(outcome.refusal.code if outcome.refusal else "")
        if outcome.refusal is not None:
            continue
        one, other = outcome.result

        def told(value: Callable[[Any], Any], one: Any = one, other: Any = other) -> str:
            made = other.code if isinstance(other, SplitError) else value(other)
            return f"dim={value(DIM)}: {value(one)} and {made}"

        outcome.prove(z3.BoolVal(isinstance(other, tuple) and len(one) == len(other)), told)
        pairs = zip(terms_of(one), terms_of(other), strict=True)
        outcome.prove(z3.And(*(left == right for left, right in pairs)), told)
    return codes


@EACH_COUNT
def test_equal_parts_are_those_of_a_number_of_outputs(count: int) -> None:
    """What is refused as equal parts is not divisible, and nothing else."""
    codes = prove_alike(lambda: lengths(equal, count), lambda _: lengths(ceil, count))
    assert codes - {"TS303"} == {""}


@EACH_COUNT
def test_a_number_of_outputs_gives_chunks_of_the_first_length(count: int) -> None:
    """But where the last part is empty: there are no empty chunks."""

    def without_an_empty_part() -> Parts:
        parts = lengths(ceil, count)
        if parts[-1] > 0:
            return parts
        raise BeyondError

    assert "" in prove_alike(without_an_empty_part, lambda parts: lengths(chunk, parts[0]))


def test_parts_without_lengths_are_chunks_of_one() -> None:
    assert prove_alike(lambda: lengths(ones), lambda _: lengths(chunk, 1)) == {""}


@EACH_COUNT
def test_lengths_of_which_none_is_open_are_taken_as_given(count: int) -> None:
    given = fed(count)
    none_open = z3.And(*(length >= 0 for length in terms_of(given)))
    for one, other in ((explicit, remainder), (remainder, explicit)):
        codes = prove_alike(
            lambda: lengths(one, *given),  # noqa: B023 - it is called in this round
            lambda _: lengths(other, *given),  # noqa: B023
            none_open,
        )
        assert codes == {"", "TS302"}


@pytest.mark.thorough
@EACH_COUNT
@pytest.mark.parametrize(
    ("rule", "given"),
    [
        pytest.param(equal, lambda count: (count,), id="equal"),
        pytest.param(ceil, lambda count: (count,), id="ceil"),
        pytest.param(remainder, fed, id="remainder"),
        pytest.param(chunk, lambda _: fed(1), id="chunk"),
        pytest.param(ones, lambda _: (), id="ones"),
    ],
)
def test_lengths_that_a_rule_gives_may_be_given(
    rule: LengthRule, given: Callable[[int], Parts], count: int
) -> None:
    """As `split` of the versions that take lengths, with the same parts."""

    def first() -> Parts:
        parts = lengths(rule, *given(count))
        if len(parts) == count:
            return parts
        raise BeyondError

    assert "" in prove_alike(first, lambda parts: lengths(explicit, *parts))


@pytest.mark.thorough
@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.operator.id} {form.name}")
def test_the_parts_of_a_plan_lie_in_a_row_from_end_to_end(form: Form) -> None:
    """So putting them together in that order is the way back."""
    seen = set()
    for count in counts_of(form):
        intent = form.ask(form.numbers(count or 0), None if form.operator.is_sequence else count)

        def stretches() -> list[tuple[Any, Any]]:
            made = plan(intent, (Whole(DIM), 3))  # noqa: B023 - it is called in this round
            assert isinstance(made, SplitPlan)
            slices = [index[0] for index in made.indices]
            return [(part.start, part.stop) for part in slices if isinstance(part, slice)]

        for outcome in outcomes(stretches, IS_DIMENSION):
            if outcome.refusal is not None:
                continue
            ends = [0, *(stop for _, stop in outcome.result)]
            starts = [*(start for start, _ in outcome.result), Whole(DIM)]
            seen.add(len(outcome.result))
            outcome.prove(
                z3.And(*(term_of(a) == term_of(b) for a, b in zip(starts, ends, strict=True))),
                lambda value: f"dim={value(DIM)}: {value(outcome.result)}",  # noqa: B023
            )
    assert seen >= {count or 1 for count in counts_of(form)}
