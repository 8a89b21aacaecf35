"""Lengths that the running model calculates are the rule's, or refused: for all 64-bit values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import z3

from tensorsplit.core import rules
from tensorsplit.core.arithmetic import (
    Number,
    Numbers,
    bounds,
    dimension,
    fed,
    fitting,
    fitting_zero,
    position,
    value,
)
from tests.core.proofs import standard
from tests.core.proofs.engine import HIGHEST, Listed, Machine, Rounding
from tests.core.proofs.numbers import MOST, Term
from tests.core.proofs.standard import Lengths

DIM = z3.Int("dim")
IS_DIMENSION = z3.And(DIM >= 0, DIM <= HIGHEST)


def in_64_bits(*numbers: Term) -> Term:
    return in_range_of(Machine, *numbers)


def in_range_of(engine: type[Machine], *numbers: Term) -> Term:
    return z3.And(*(z3.And(engine.lowest <= each, each <= engine.highest) for each in numbers))


class Case(NamedTuple):
    """A rule on a dimension and lengths that only the running model knows."""

    rule: rules.LengthRule
    statement: standard.Statement
    parts: int

    @property
    def given(self) -> list[Term]:
        """What it is given: a count, or lengths that are fed."""
        if self.rule in (rules.equal, rules.ceil):
            return [z3.IntVal(self.parts)]
        return [z3.Int(f"length {place}") for place in range(self.parts)]

    @property
    def lengths(self) -> Lengths:
        """Those of the standard."""
        return self.statement(DIM, self.given)

    @property
    def complete(self) -> int:
        """The longest dimension of which it is promised that nothing legal is refused."""
        return HIGHEST // (self.parts + 1) - 1

    @property
    def machines(self) -> list[Machine]:
        """One for dimensions up to that, and one for longer ones."""
        given = in_64_bits(*self.given)
        ranges = [(0, self.complete), (self.complete + 1, HIGHEST)]
        return [Machine(low <= DIM, high >= DIM, given) for low, high in ranges]

    def sizes(self, dim: Number) -> Numbers:
        """As `convert` and `lower` have the rule make them."""
        if self.rule in (rules.equal, rules.ceil):
            sizes: rules.Sizes = self.rule(dim, (self.parts,))
        else:
            sizes = self.rule(dim, fed(Listed.of(*self.given), dim, self.parts))
        assert not isinstance(sizes, rules.Chunks)
        return sizes

    def prove(self, machine: Machine, found: Any, right: Term) -> None:
        """Prove that the model stops, or all is right, and that nothing legal stops it."""
        told, runs = self.shown(machine, found), z3.Not(machine.stopped)
        machine.prove(z3.Implies(runs, z3.And(self.lengths.exist, right)), told)
        legal = z3.And(self.lengths.exist, self.complete >= DIM)
        machine.prove(z3.Implies(legal, runs), told)
        machine.prove(z3.Not(z3.Or(machine.crashes)), told)

    def shown(self, machine: Machine, found: Any) -> Callable[[Callable[[Any], Any]], str]:
        """What comes of some values, such as "ceil: dim=5, [4]: lengths [2, 2, 2, -1]"."""

        def told(value: Callable[[Any], Any]) -> str:
            stopped = z3.is_true(value_of(value, machine.stopped))
            came = "stopped" if stopped else f"lengths {value(found)}"
            right = "are right" if z3.is_true(value_of(value, self.lengths.exist)) else "are wrong"
            given = value(self.given)
            return f"{self.rule.__name__}: dim={value(DIM)}, {given} ({right}): {came}"

        return told


def value_of(value: Callable[[Any], Any], condition: Term) -> Term:
    return z3.BoolVal(bool(value(z3.If(condition, z3.IntVal(1), z3.IntVal(0)))))


RULES = {
    rules.explicit: standard.as_given,
    rules.remainder: standard.one_the_rest,
    rules.equal: standard.equal,
    rules.ceil: standard.last_smaller,
}
CASES = [
    Case(rule, statement, count)
    for rule, statement in RULES.items()
    for count in range(1, MOST + 1)
]


def cases(most: int, most_remaining: int) -> pytest.MarkDecorator:
    """Every rule with so many parts; where one of them is what is left, z3 manages fewer."""
    hard = (rules.remainder, rules.ceil)
    chosen = [
        case for case in CASES if case.parts <= (most_remaining if case.rule in hard else most)
    ]
    return pytest.mark.parametrize(
        "case", chosen, ids=lambda case: f"{case.rule.__name__} {case.parts}"
    )


@pytest.mark.thorough
@cases(8, 8)
def test_a_guard_stops_the_model_where_lengths_are_wrong(case: Case) -> None:
    for machine in case.machines:
        dim = dimension([DIM], 0)
        made = machine.make(fitting(dim, case.sizes(dim), case.parts, checks_sum=False)).elements
        case.prove(machine, made, case.lengths.are(made))


@pytest.mark.thorough
@cases(3, 2)
def test_a_guard_is_exact_where_integers_are_rounded(case: Case) -> None:
    """D14: an engine that calculates with 32 bits, and with float32 in most nodes."""
    longest = Rounding.highest - 1 - case.parts  # d + n - 1 is in 32 bits
    machine = Rounding(DIM >= 0, longest >= DIM, in_range_of(Rounding, *case.given))
    dim = dimension([DIM], 0)
    made = machine.make(fitting(dim, case.sizes(dim), case.parts, checks_sum=False)).elements
    case.prove(machine, made, case.lengths.are(made))


@cases(6, 2)
def test_a_node_that_checks_sums_never_gets_a_negative_length(case: Case) -> None:
    for machine in case.machines:
        dim = dimension([DIM], 0)
        made = machine.make(fitting(dim, case.sizes(dim), case.parts, checks_sum=True)).elements
        told = case.shown(machine, made)
        machine.prove(z3.And(*(length >= 0 for length in made)), told)
        machine.stops.append(z3.Sum(made) != DIM)  # the node's own check
        case.prove(machine, made, case.lengths.are(made))


@pytest.mark.thorough
@cases(6, 2)
def test_slices_start_and_end_where_the_parts_do(case: Case) -> None:
    for machine in case.machines:
        dim = dimension([DIM], 0)
        limits = bounds(dim, case.sizes(dim), case.parts)
        starts, ends = zip(*(map(machine.number, limit) for limit in limits), strict=True)
        parts = [end - start for start, end in zip(starts, ends, strict=True)]
        in_a_row = [start == end for start, end in zip(starts, (z3.IntVal(0), *ends), strict=False)]
        case.prove(machine, parts, z3.And(case.lengths.are(parts), *in_a_row))


@cases(6, 2)
def test_a_guarded_zero_stops_the_model_where_lengths_are_wrong(case: Case) -> None:
    for machine in case.machines:
        dim = dimension([DIM], 0)
        zero = machine.number(fitting_zero(dim, case.sizes(dim)))
        case.prove(machine, [zero], zero == 0)


@pytest.mark.parametrize("there", range(MOST))
def test_another_number_of_lengths_stops_the_model(there: int) -> None:
    for count in {max(1, there - 1), there + 1} - {there}:
        machine = Machine(IS_DIMENSION)
        held = Listed.of(*(z3.Int(f"length {place}") for place in range(there)))
        machine.make(fed(held, dimension([DIM], 0), count))
        machine.prove(machine.stopped, lambda _: f"{there} lengths are taken for {count}")  # noqa: B023


def test_chunks_are_as_many_as_fit() -> None:
    size, count = z3.Int("size"), z3.Int("count")
    longest = HIGHEST // 2
    for low, high in ((0, longest - 1), (longest, HIGHEST)):
        machine = Machine(low <= DIM, high >= DIM, in_64_bits(size))
        dim = dimension([DIM], 0)
        chunks = rules.chunk(dim, (fed(Listed.of(size), dim, 1),))
        made, length = machine.number(chunks.count), machine.number(chunks.size)

        def told(value: Any) -> str:
            return f"chunk: dim={value(DIM)}, size {value(size)}: {value(made)} of {value(length)}"  # noqa: B023

        runs = z3.Not(machine.stopped)
        machine.prove(z3.Implies(runs, size >= 1), told)
        machine.prove(z3.Implies(z3.And(size >= 1, longest > DIM), runs), told)
        alike = z3.Or(length == size, z3.And(made <= 1, length >= DIM, size >= DIM))
        machine.prove(z3.Implies(runs, alike), told)
        right = z3.And(count * length >= DIM, (count - 1) * length < DIM, made != count)
        machine.prove(z3.Not(z3.And(runs, right)), told)
        machine.prove(z3.Not(z3.Or(machine.crashes)), told)


@pytest.mark.parametrize("engine", [Machine, Rounding])
@pytest.mark.parametrize("behind", [0, 1])
def test_a_position_out_of_range_stops_the_model(behind: int, engine: type[Machine]) -> None:
    index, count = z3.Ints("index count")
    machine = engine(in_range_of(engine, index), count >= 0, count < engine.highest)
    at, there = value(Listed.of(index)), value(Listed.of(count))
    found = machine.number(position(at, there, there - 1 + behind))

    def told(value: Any) -> str:
        return f"position {value(index)} of {value(count)}: {value(found)}"

    inside = z3.And(index >= -count, index < count + behind)
    machine.prove(machine.stopped == z3.Not(inside), told)
    right = z3.If(index < 0, index + count, index)
    machine.prove(z3.Or(machine.stopped, found == right), told)


@pytest.mark.parametrize("longest", [6, HIGHEST])
def test_lengths_of_a_known_dimension_are_right_or_stop_the_model(longest: int) -> None:
    """They may leave 64 bits as constants do."""
    case = Case(rules.explicit, standard.as_given, 2)
    machine = Machine(longest == DIM, in_64_bits(*case.given))
    made = machine.make(fitting(longest, case.sizes(longest), 2, checks_sum=False)).elements
    case.prove(machine, made, case.lengths.are(made))
