"""Makes nodes of the formulas that `arithmetic` states, and states them for engines that round.

Some engines calculate with integers as float32, but add, subtract, multiply, sum up one by one and
take the smaller or larger one exactly. For those a number is compared with another one by their
difference, chosen by a product, and a quotient is put right (ADR 38).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Generic, TypeVar, cast

from tensorsplit.core.arithmetic import Formula, Number, Operand, joined, pick, same, sums, total
from tensorsplit.core.dimensions import is_known

_T = TypeVar("_T")

MOST_EXACT = 1 << 24
"""Whole numbers up to this one are exact as float32."""


class Maker(ABC, Generic[_T]):
    """Makes nodes of formulas, the same one once.

    Numbers are int64 of shape [1], lists int64 of shape [n], conditions booleans of either. Whether
    the engine calculates with integers as float32 is `rounds_integers`.
    """

    rounds_integers = False

    def __init__(self) -> None:
        self._made: dict[Formula, _T] = {}
        self._results: dict[tuple[object, ...], _T] = {}
        self._constants: dict[tuple[int, ...], _T] = {}

    def make(self, number: Operand) -> _T:
        """Return a number or list as a value; nodes are added for what is not there yet."""
        if not isinstance(number, Formula):
            key = number if isinstance(number, tuple) else (_constant(number),)
            if key not in self._constants:
                self._constants[key] = self.constant_list(key)
            return self._constants[key]
        if number not in self._made:
            self._made[number] = self._calculated(number)
        return self._made[number]

    def _calculated(self, formula: Formula) -> _T:
        formula = written(formula, rounds_integers=self.rounds_integers)
        operation, operands = formula.operation, formula.operands
        if operation == "value":
            return cast("_T", formula.held)  # the maker's caller put it there
        if operation == "numbers":
            return self.make(operands[0])
        if operation == "dimension":
            made = [cast("_T", formula.held), *map(self.make, operands)]
        else:
            made = [self.make(operand) for operand in operands]
        key = (operation, *map(id, made))
        if key not in self._results:
            self._results[key] = self.apply(operation, made)
        return self._results[key]

    @abstractmethod
    def constant_list(self, values: Sequence[int]) -> _T:
        """Make int64 integers of rank 1."""

    @abstractmethod
    def apply(self, operation: str, operands: list[_T]) -> _T:
        """Return the node of an operation.

        They are: add, subtract, multiply, divide, minimum, maximum, less, equal, both
        (of two conditions), choose (by a condition), one_if (a condition holds, else 0), total,
        sums (cumulative), joined, pick (an element), head (the first so many elements), tail (those
        from a position on), shaped (as so many elements), size_of (how many there are), dimension
        (of a tensor, at an axis). Where integers are rounded, near_quotient and near_total are what
        divide and total give.
        """


def _constant(number: Operand) -> int:
    if isinstance(number, int):
        return number
    raise TypeError(f"{number} is not known, and not calculated by the running model")


def _less(left: Number, right: Number) -> Formula | None:
    return None if _is_small(left) or _is_small(right) else Formula("less", left - right, 0)


def _equal(left: Number, right: Number) -> Formula | None:
    return None if _is_small(left) or _is_small(right) else Formula("equal", left - right, 0)


def _chosen(condition: Formula, yes: Number, no: Number) -> Number | None:
    if _is_small(yes) and _is_small(no):
        return None
    return no + Formula("one_if", condition) * (yes - no)


def _divided(dividend: Number, divisor: Number) -> Number:
    """Divide the remainder of a rounded quotient once more; then it is right, or too large by 1."""
    near: Number = Formula("near_quotient", dividend, divisor)
    near = near + Formula("near_quotient", dividend - near * divisor, divisor)
    return near - Formula("one_if", Formula("less", dividend - near * divisor, 0))


def _total_of(numbers: Formula) -> Number:
    """Return a sum; of few small numbers as a rounded one, which engines fold as they load it."""
    most, count = _largest(numbers), _count_of(numbers)
    if most is not None and count is not None and most * count <= MOST_EXACT:
        return Formula("near_total", numbers)
    return pick(sums(joined((0,), numbers)), -1)


def _sums_to(numbers: Formula, number: Number) -> Formula:
    """Return whether numbers >= 0 have a sum; one that leaves the range is below 0 on the way.

    A rounded sum will do for a smaller one than what is exact: it never gets smaller again.
    """
    if is_known(number) and number < MOST_EXACT:
        return Formula("equal", Formula("near_total", numbers), number)
    ends = sums(joined((0,), numbers))
    left_range = Formula("near_total", Formula("one_if", Formula("less", ends, 0)))
    return Formula("both", same(pick(ends, -1), number), same(left_range, 0))


def _is_small(number: Operand) -> bool:
    """Return whether it is sure that numbers are exact as float32."""
    most = _largest(number)
    return most is not None and most <= MOST_EXACT


def _largest(number: Operand) -> int | None:
    """Return a bound for the size of a number; None if it is not known."""
    match number:
        case int():
            return abs(number)
        case Formula(
            operation="maximum", operands=(Formula(operation="minimum", operands=(_, most)), least)
        ):
            return _larger(_largest(most), _largest(least))
        case Formula(operation="choose", operands=(_, yes, no)):
            return _larger(_largest(yes), _largest(no))
        case Formula(operation="head" | "shaped", operands=(held, _)):
            return _largest(held)
    return None


def _larger(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else max(left, right)


def _count_of(number: Operand) -> int | None:
    """Return how many numbers there are; None if that is not known."""
    match number:
        case int():
            return 1
        case Formula(operation="maximum" | "minimum", operands=(left, right)):
            return _larger(_count_of(left), _count_of(right))
        case Formula(operation="choose", operands=(_, yes, no)):
            return _larger(_count_of(yes), _count_of(no))
        case Formula(operation="shaped", operands=(_, int(count))):
            return count
    return None


_WRITTEN: Mapping[bool, Mapping[str, Callable[..., Number | None]]] = MappingProxyType(
    {
        False: {"sums_to": lambda numbers, number: same(total(numbers), number)},
        True: {
            "less": _less,
            "equal": _equal,
            "choose": _chosen,
            "divide": _divided,
            "total": _total_of,
            "sums_to": _sums_to,
        },
    }
)
"""What an operation is written as: for engines with exact integers, and for those without."""


def written(formula: Formula, *, rounds_integers: bool) -> Formula:
    """Return the formula that nodes are made of, which stands for another one."""
    while (rule := _WRITTEN[rounds_integers].get(formula.operation)) is not None:
        found = rule(*formula.operands)
        if found is None:
            break
        formula = cast("Formula", found)
    return formula
