"""Two versions that rewriting takes for equal are: the same lengths, and the same refusals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import pytest
import z3

from tensorsplit.core.emit import AtRunTime, Emission, emit
from tensorsplit.core.errors import CANNOT_EXPRESS
from tensorsplit.core.operands import Operand
from tensorsplit.core.records import operators
from tensorsplit.core.resolve import Intent, bind, part_sizes
from tensorsplit.core.schema import Operator
from tests.core.proofs.numbers import Outcome, Whole, outcomes, terms_of
from tests.core.proofs.operators import DIM, FORMS, IS_DIMENSION, Form

MOST_HERE = 3
"""The parts up to which pairs are proved; `test_records` proves each version for more."""

PAIRS = [
    pytest.param(form, target, id=f"{form.operator.id} {form.name} to {target.id}")
    for form in FORMS
    for target in operators.values()
    if not target.is_sequence and target is not form.operator
]

pytestmark = pytest.mark.usefixtures("whole_numbers")


def again(target: Operator, emission: Emission, outputs: int | None) -> Intent:
    """Bind what was emitted as a node of the target is bound."""
    operands = [(target.axis, Operand((0,), 0))]
    for name, held in emission.attributes.items():
        values = held if isinstance(held, tuple) else (held,)
        operands.append((name, Operand(values, int(isinstance(held, tuple)), kind="attribute")))
    for name, given in emission.inputs.items():
        assert isinstance(given, tuple)
        operands.append((name, Operand(given, 1, kind="input")))
    return bind(target, operands, outputs)


def at_run_time(
    emission: Emission, form: Form, given: Sequence[Any], outputs: int | None
) -> Emission:
    """Put in what a running model has where the emission leaves it open."""

    def held(source: Any) -> Any:
        if source is AtRunTime.GIVEN:
            return tuple(given)
        if source is AtRunTime.COMPUTED:
            sizes = part_sizes(form.ask(given, outputs), Whole(DIM))
            assert isinstance(sizes, tuple)
            return sizes
        return source

    return emission._replace(inputs={name: held(each) for name, each in emission.inputs.items()})


def cases(form: Form) -> list[tuple[int | None, bool]]:
    """The numbers of parts, each with what is given as a constant and not known: fed, or
    the attribute of a function."""
    counts = list(range(1, MOST_HERE + 1)) if form.is_list or form.counts else [None]
    may_be_open = form.lengths is not None
    return [(count, is_open) for count in counts for is_open in (False, True)[: 1 + may_be_open]]


def shown(form: Form, target: Operator, given: Any, outcome: Outcome) -> Callable[..., str]:
    def told(value: Callable[[Any], Any]) -> str:
        made = outcome.refusal.code if outcome.refusal is not None else value(outcome.result)
        asked = f"{form.operator.id} by {form.name}: dim={value(DIM)}, {value(given)}"
        return f"{asked}: {made} by {target.id}"

    return told


@pytest.mark.thorough
@pytest.mark.parametrize("dim", [None, Whole(DIM)], ids=["any dimension", "a known dimension"])
@pytest.mark.parametrize(("form", "target"), PAIRS)
def test_what_is_emitted_splits_alike(form: Form, target: Operator, dim: Any) -> None:
    for count, fed in cases(form):
        given = form.numbers(count or 0)
        lengths = form.statement(DIM, terms_of(given))
        outputs = None if form.operator.is_sequence else count
        intent = form.ask(None if fed else given, outputs)

        def rewritten() -> Any:
            emission = emit(intent, target, dim)  # noqa: B023 - it is called in this round
            emission = at_run_time(emission, form, given, outputs)  # noqa: B023
            return part_sizes(again(target, emission, outputs), Whole(DIM))  # noqa: B023

        # a sequence of no parts has no node with outputs
        for outcome in outcomes(rewritten, IS_DIMENSION, int(form.operator.is_sequence) <= DIM):
            told = shown(form, target, given, outcome)
            if outcome.refusal is None:
                parts = terms_of(outcome.result)
                outcome.prove(z3.And(lengths.exist, lengths.are(parts)), told)
            elif outcome.refusal.kind is not CANNOT_EXPRESS:
                outcome.prove(z3.Not(lengths.exist), told)


def test_every_version_expresses_the_others_but_lists_as_a_number_of_equal_parts() -> None:
    """For constants and a known dimension: where nothing is expressible nothing was proved."""
    refused = set()
    for form, target in product(FORMS, operators.values()):
        if form.operator.is_sequence or target.is_sequence:
            continue
        intent = form.ask(form.numbers(2), 2)
        emitted = outcomes(lambda: emit(intent, target, Whole(DIM)), IS_DIMENSION)  # noqa: B023
        if all(outcome.refusal is not None for outcome in emitted):
            refused.add((form.operator.id, form.name, target.id))
    lists = [form for form in FORMS if form.is_list and not form.operator.is_sequence]
    assert refused == {(form.operator.id, form.name, "openvino.Split-1") for form in lists}


def test_the_versions_of_a_sequence_have_the_same_lengths() -> None:
    first, second = (record for record in operators.values() if record.is_sequence)
    assert (first.lengths, first.absent) == (second.lengths, second.absent)
