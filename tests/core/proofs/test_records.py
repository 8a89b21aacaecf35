"""Each version's lengths are those of its standard, for every dimension and all that is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import z3

from tensorsplit.core.records import operators
from tensorsplit.core.resolve import part_sizes
from tensorsplit.core.rules import MAX_PARTS, LengthRule, ceil, equal
from tests.core.proofs.numbers import MOST, Outcome, Whole, outcomes, term_of, terms_of
from tests.core.proofs.operators import DIM, FORMS, IS_DIMENSION, Form, counts_of
from tests.core.proofs.standard import MOST_PARTS, STANDARD

EACH = pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.operator.id} {form.name}")

pytestmark = pytest.mark.usefixtures("whole_numbers")


def shown(form: Form, given: Any, outcome: Outcome) -> Callable[[Callable[[Any], Any]], str]:
    """What an outcome is for some values, such as "dim=5, [4]: lengths [2, 2, 2, -1]"."""

    def told(value: Callable[[Any], Any]) -> str:
        begin = f"{form.operator.id} by {form.name}: dim={value(DIM)}, {value(given)}: "
        if outcome.refusal is not None:
            return f"{begin}refused ({outcome.refusal.code}), but the standard takes it"
        return f"{begin}lengths {value(outcome.result)}, which the standard does not say"

    return told


def test_every_version_is_in_the_table() -> None:
    assert {form.operator.id for form in FORMS} == set(STANDARD) == set(operators)
    for name, table in STANDARD.items():
        assert {form.name for form in FORMS if form.operator.id == name} == set(table)


@EACH
def test_the_lengths_are_those_of_the_standard(form: Form) -> None:
    for count in counts_of(form):
        given = form.numbers(count or 0)
        lengths = form.statement(DIM, terms_of(given))
        intent = form.ask(given, None if form.operator.is_sequence else count)
        seen = set()
        for outcome in outcomes(lambda: part_sizes(intent, Whole(DIM)), IS_DIMENSION):  # noqa: B023
            told = shown(form, given, outcome)
            seen.add(outcome.refusal is None)
            if outcome.refusal is not None:
                outcome.prove(z3.Not(lengths.exist), told)
                continue
            parts = terms_of(outcome.result)
            outcome.prove(z3.And(lengths.exist, lengths.are(parts)), told)
            outcome.prove(z3.And(*(part >= 0 for part in parts)), told)
            outcome.prove(z3.Sum([z3.IntVal(0), *parts]) == DIM, told)
        assert True in seen, "it is never accepted"


@EACH
def test_only_more_parts_than_were_proved_are_left_out(form: Form) -> None:
    """Where the dimension decides how many there are."""
    if form.is_list or form.counts:
        return
    size = term_of((*form.numbers(0), 1)[0])
    intent = form.ask(form.numbers(0), None)
    more = z3.And(IS_DIMENSION, size >= 1, (MOST + 1) * size < DIM)
    for outcome in outcomes(lambda: part_sizes(intent, Whole(DIM)), more):
        assert outcome.refusal is not None
        assert outcome.refusal.code == "TS308"
        outcome.prove(size * MOST_PARTS < DIM, shown(form, form.numbers(0), outcome))


@pytest.mark.parametrize("rule", [equal, ceil])
def test_every_other_count_is_refused(rule: LengthRule) -> None:
    count = z3.Int("count")
    assert MAX_PARTS == MOST_PARTS
    wrong = z3.And(IS_DIMENSION, z3.Or(count < 1, count > MOST_PARTS))
    codes = set()
    for outcome in outcomes(lambda: rule(Whole(DIM), (Whole(count),)), wrong):
        assert outcome.refusal is not None
        codes.add(outcome.refusal.code)
    assert codes == {"TS107", "TS308"}
