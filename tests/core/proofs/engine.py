"""Engines of z3: they calculate formulas as engines do, in two's complement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import z3

from tensorsplit.core.maker import Maker
from tests.core.proofs.numbers import Term, plain

LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1
_MOST_EXACT = 1 << 24
_SECONDS = 10


@dataclass(frozen=True)
class Listed:
    """A tensor of rank 1: elements, of which the first so many are there; booleans too."""

    elements: tuple[Term, ...]
    count: Term

    @classmethod
    def of(cls, *elements: Term) -> Listed:
        """All of them."""
        return cls(elements, z3.IntVal(len(elements)))


class Machine(Maker[Listed]):
    """Calculates formulas for all values that satisfy what is assumed.

    Integers of z3 stand for the 64 bits: what leaves their range comes back at the other end.

    Attributes:
        lowest, highest: The range of its integers.
        stops: The conditions on which the running model stops.
        crashes: Those on which an engine may die, or a node has no meaning: a division by 0, or an
            element that is not there.
    """

    lowest, highest = LOWEST, HIGHEST

    def __init__(self, *assumed: Term) -> None:
        super().__init__()
        self._assumed = list(assumed)
        self._names = z3.z3util.get_vars(z3.And(*assumed))
        self.stops: list[Term] = []
        self.crashes: list[Term] = []

    @property
    def stopped(self) -> Term:
        """Whether the running model stops, as far as it is made."""
        return z3.Or(self.stops)

    def constant_list(self, values: Sequence[int]) -> Listed:
        return Listed.of(*map(z3.IntVal, values))

    def apply(self, operation: str, operands: list[Listed]) -> Listed:
        if operation in _ELEMENTWISE:
            return self._elementwise(_ELEMENTWISE[operation], operands)
        made: Listed = getattr(self, f"_{operation}")(*operands)
        return made

    def number(self, number: Any) -> Term:
        """What a single number is calculated to."""
        (element,) = self.make(number).elements
        return element

    def prove(self, condition: Term, told: Callable[[Callable[[Any], Any]], str]) -> None:
        """Prove a condition, or fail with a counterexample; ``told`` is given values of terms."""
        for most in (9, None, 99, 1 << 16, 1 << 62, HIGHEST + 1):
            few = (
                []
                if most is None
                else [z3.And(-most <= name, name <= most) for name in self._names]
            )
            model = self._model(z3.And(*few, z3.Not(condition)))
            if model is None and most is None:
                return
            if model is not None and most is not None:
                raise AssertionError(told(lambda number: plain(model, number)))  # noqa: B023

    def _may_be(self, condition: Term) -> bool:
        """Whether a condition holds for any values."""
        return self._model(condition) is not None

    def _model(self, condition: Term) -> Any:
        """Values for which a condition holds; None if there are none."""
        solver = z3.Solver()  # a new one: it is the faster the less it has to keep
        solver.set("timeout", _SECONDS * 1000)
        solver.add(*self._assumed, condition)
        found = solver.check()
        assert found != z3.unknown, f"z3 finds no answer: {solver.reason_unknown()}"
        return solver.model() if found == z3.sat else None

    def _elementwise(self, function: Callable[..., Term], operands: list[Listed]) -> Listed:
        """On each element; a list of one fits every list."""
        size = max(len(operand.elements) for operand in operands)
        assert {len(operand.elements) for operand in operands} <= {1, size}
        assert all(z3.is_int_value(operand.count) for operand in operands)  # none is cut
        elements = [operand.elements * (size // len(operand.elements)) for operand in operands]
        rows = zip(*elements, strict=True)
        return Listed.of(*(self._in_range(self._known(function(self, *row))) for row in rows))

    def _known(self, term: Term) -> Term:
        """A condition as true or false where it always, or never, holds."""
        term = z3.simplify(term)
        if z3.is_bool(term) and not z3.is_true(term) and not z3.is_false(term):
            for found in (True, False):
                if not self._may_be(z3.Not(term) if found else term):
                    return z3.BoolVal(found)
        return term

    def _in_range(self, number: Term) -> Term:
        """What is left of a number in two's complement."""
        if z3.is_bool(number):
            return number
        number, numbers = z3.simplify(number), self.highest - self.lowest + 1
        for way in (-1, 1):
            while self._may_be(out := number > self.highest if way < 0 else number < self.lowest):
                number = z3.If(out, number + way * numbers, number)
        return number

    def divide(self, left: Term, right: Term) -> Term:
        """The quotient, rounded towards 0."""
        self.crashes += [right == 0, z3.And(left == self.lowest, right == -1)]
        if z3.is_int_value(right):
            size = abs(right.as_long())
            quotient = z3.If(left >= 0, left / size, -(-left / size))
            return quotient if right.as_long() > 0 else -quotient
        place = len(self.crashes)
        quotient, rest = z3.Int(f"quotient {place}"), z3.Int(f"rest {place}")
        away = z3.If(right > 0, rest < right, rest < -right)
        same_sign = z3.If(
            left >= 0,
            z3.And(rest >= 0, away),
            z3.And(rest <= 0, -rest < z3.If(right > 0, right, -right)),
        )
        self._assumed.append(
            z3.Implies(right != 0, z3.And(left == quotient * right + rest, same_sign))
        )
        return quotient

    def _total(self, numbers: Listed) -> Listed:
        assert z3.is_int_value(numbers.count)
        return Listed.of(self._in_range(z3.Sum([z3.IntVal(0), *numbers.elements])))

    def _sums(self, numbers: Listed) -> Listed:
        ends = [z3.IntVal(0)]
        for number in numbers.elements:
            ends.append(self._in_range(ends[-1] + number))
        return Listed.of(*ends[1:])

    def _joined(self, *lists: Listed) -> Listed:
        return Listed.of(*(element for each in lists for element in each.elements))

    def _size_of(self, numbers: Listed) -> Listed:
        return Listed.of(numbers.count)

    def _pick(self, numbers: Listed, index: Listed) -> Listed:
        (place,) = index.elements
        self.crashes.append(z3.Or(place < -numbers.count, place >= numbers.count))
        found = numbers.elements[0]
        for at, element in enumerate(numbers.elements):
            found = z3.If(z3.Or(place == at, place == at - len(numbers.elements)), element, found)
        return Listed.of(z3.simplify(found))

    def _head(self, numbers: Listed, count: Listed) -> Listed:
        (wanted,) = count.elements
        size = len(numbers.elements)
        there = z3.If(wanted < 0, wanted + size, wanted)  # a negative end counts from the back
        there = z3.If(there < 0, 0, z3.If(there > size, size, there))
        return Listed(numbers.elements, z3.simplify(there))

    def _shaped(self, numbers: Listed, count: Listed) -> Listed:
        (wanted,) = count.elements
        assert wanted.as_long() > 0, "0 and -1 mean something else to Reshape"
        self.stops.append(numbers.count != wanted)
        elements = (*numbers.elements, *[z3.IntVal(0)] * wanted.as_long())[: wanted.as_long()]
        return Listed.of(*elements)  # if it is not stopped, they are all there

    def _dimension(self, data: Sequence[Term], axis: Listed) -> Listed:
        (place,) = axis.elements
        return Listed.of(data[place.as_long()])


_ELEMENTWISE: dict[str, Callable[..., Term]] = {
    "add": lambda _, left, right: left + right,
    "subtract": lambda _, left, right: left - right,
    "multiply": lambda _, left, right: left * right,
    "divide": Machine.divide,
    "minimum": lambda _, left, right: z3.If(left < right, left, right),
    "maximum": lambda _, left, right: z3.If(left > right, left, right),
    "less": lambda _, left, right: left < right,
    "equal": lambda _, left, right: left == right,
    "both": lambda _, left, right: z3.And(left, right),
    "choose": lambda _, condition, yes, no: z3.If(condition, yes, no),
}


class Rounding(Machine):
    """An engine with 32 bits that calculates with integers as float32 in most nodes.

    What such a node gives of larger numbers may be anything, but quotients are near.
    """

    rounds_integers = True
    lowest, highest = -(1 << 31), (1 << 31) - 1

    def constant_list(self, values: Sequence[int]) -> Listed:
        return super().constant_list([min(max(v, self.lowest), self.highest) for v in values])

    def apply(self, operation: str, operands: list[Listed]) -> Listed:
        if operation in _ROUNDED:
            return self._elementwise(_ROUNDED[operation], operands)
        return super().apply(operation, operands)

    def _rounded(self, exact: Term, *operands: Term) -> Term:
        """A result that is right only where the operands are small; those given are enough."""
        anything = z3.FreshConst(exact.sort())
        if not z3.is_bool(exact):
            self._assumed.append(z3.And(self.lowest <= anything, anything <= self.highest))
        return z3.If(z3.And(*map(_is_small, operands)), exact, anything)

    def less(self, left: Term, right: Term) -> Term:
        return self._rounded(left < right, _smaller(left, right))

    def equal(self, left: Term, right: Term) -> Term:
        return self._rounded(left == right, _smaller(left, right))

    def choose(self, condition: Term, yes: Term, no: Term) -> Term:
        return self._rounded(z3.If(condition, yes, no), yes, no)

    def near_quotient(self, left: Term, right: Term) -> Term:
        exact = self.divide(left, right)
        near = z3.FreshInt()
        most = 1 + z3.If(exact < 0, -exact, exact) / (1 << 21)
        self._assumed.append(z3.And(exact - most <= near, near <= exact + most))
        return z3.If(z3.And(_is_small(left), _is_small(right)), exact, near)

    def _near_total(self, numbers: Listed) -> Listed:
        (exact,) = self._total(numbers).elements
        sizes = z3.Sum([z3.If(number < 0, -number, number) for number in numbers.elements])
        return Listed.of(self._rounded(exact, sizes))


def _is_small(number: Term) -> Term:
    return z3.And(number >= -_MOST_EXACT, number <= _MOST_EXACT)


def _smaller(left: Term, right: Term) -> Term:
    """The operand of a comparison with a smaller size: it is exact if that is."""
    return z3.If(z3.If(left < 0, -left, left) < z3.If(right < 0, -right, right), left, right)


_ROUNDED: dict[str, Callable[..., Term]] = {
    "less": Rounding.less,
    "equal": Rounding.equal,
    "choose": Rounding.choose,
    "near_quotient": Rounding.near_quotient,
    "one_if": lambda _, condition: z3.If(condition, z3.IntVal(1), z3.IntVal(0)),
}
