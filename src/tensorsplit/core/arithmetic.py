"""Numbers that the length rules calculate with, and functions with which they state conditions.

A rule is written once, with ``+ - * //`` and the functions here. A number is an ``int``; a
`Symbol`, a dimension that is a name, an expression or unknown; or a `Formula`, which the running
model calculates. The number decides what a condition does: an integer that fails it raises, a
symbol does so if it fails for every value, and a formula is guarded where nodes are made of it.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import groupby
from typing import Protocol, TypeAlias, overload

from tensorsplit.core.dimensions import (
    MAX_DIM,
    Dim,
    are_known,
    combine,
    decide,
    is_known,
    is_traced,
    show_dim,
)
from tensorsplit.core.errors import SEQUENCE_INDEX, SplitError, count_of


class Calculated(Protocol):
    """A number that is not an ``int``: a `Symbol`, a `Formula`, or a kind of one's own.

    It has no comparisons: a rule states a condition with the functions here, and never branches.
    """

    def __add__(self, other: Number, /) -> Number: ...
    def __radd__(self, other: int, /) -> Number: ...
    def __sub__(self, other: Number, /) -> Number: ...
    def __rsub__(self, other: int, /) -> Number: ...
    def __mul__(self, other: Number, /) -> Number: ...
    def __rmul__(self, other: int, /) -> Number: ...
    def __floordiv__(self, other: Number, /) -> Number: ...
    def __rfloordiv__(self, other: int, /) -> Number: ...


Number: TypeAlias = "int | Calculated"
"""What the rules calculate with."""

Numbers: TypeAlias = "tuple[Number, ...] | Formula"
"""Numbers in order, or a `Formula` where the running model has them in one list."""

Listed: TypeAlias = "tuple[int, ...] | Formula"
"""Numbers that a node can hold, in one list."""

Operand: TypeAlias = "Number | tuple[int, ...] | bool | None"
"""What a `Formula` is calculated from: numbers, lists of them and conditions."""

Condition: TypeAlias = "bool | Formula | None"
"""Whether something holds; None if a symbol leaves it open."""

_MOST_SYMBOLS = 64
_LISTED_ONE_BY_ONE = 8
_MOST_LENGTHS = 1 << 24
"""A list that is fed may have so many, as the rules say (ADR 4)."""


class Symbol:
    """A dimension that is not a number: a name or expression, or None if nothing is known."""

    __slots__ = ("dim",)

    def __init__(self, dim: Dim) -> None:
        self.dim = dim

    def __add__(self, other: Number) -> Number:
        return _combined(operator.add, self, other)

    __radd__ = __add__

    def __sub__(self, other: Number) -> Number:
        return _combined(operator.sub, self, other)

    def __rsub__(self, other: Number) -> Number:
        return _combined(operator.sub, other, self)

    def __mul__(self, other: Number) -> Number:
        return _combined(operator.mul, self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Number) -> Number:
        can_divide = is_known(other) or is_traced(as_dim(other))
        return _combined(operator.floordiv, self, other) if can_divide else Symbol(None)

    def __rfloordiv__(self, other: Number) -> Number:
        return Symbol(None)

    def __str__(self) -> str:
        return show_dim(self.dim)


def as_number(dim: Dim) -> Number:
    """Return a dimension of any kind as a number."""
    return dim if type(dim) is int else Symbol(dim)


def as_dim(number: Number) -> Dim:
    """Return a number as a dimension; None if the running model calculates it."""
    if type(number) is Symbol:
        return number.dim
    return number if is_known(number) else None


def _combined(rule: Callable[[Dim, Dim], Dim], left: Number, right: Number) -> Number:
    return as_number(combine(rule, as_dim(left), as_dim(right)))


class Formula:
    """A number, or a list of numbers, that only the running model knows; int64 of rank 1.

    A formula is what it is calculated from, and a `Maker` makes nodes of it; what nobody asks for
    leaves no node. Arithmetic on a list and a number works on every element. A formula
    ``is_natural`` if no element can be below 0. What it reads of the model it has ``held``.
    """

    __slots__ = ("held", "is_natural", "operands", "operation")

    def __init__(
        self, operation: str, *operands: Operand, held: object = None, is_natural: bool = False
    ) -> None:
        self.operation, self.operands = operation, operands
        self.held, self.is_natural = held, is_natural

    def __add__(self, other: Number) -> Formula:
        return self if _is(other, 0) else _natural("add", self, other)

    __radd__ = __add__

    def __sub__(self, other: Number) -> Formula:
        return self if _is(other, 0) else Formula("subtract", self, other)

    def __rsub__(self, other: Number) -> Formula:
        return Formula("subtract", other, self)

    def __mul__(self, other: Number) -> Number:
        if _is(other, 0):
            return 0
        return self if _is(other, 1) else _natural("multiply", self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Number) -> Formula:
        """Return the quotient of what is >= 0 by what is > 0, for engines round towards 0."""
        return self if _is(other, 1) else _natural("divide", self, _divisor(other))

    def __rfloordiv__(self, other: Number) -> Formula:
        return _natural("divide", other, _divisor(self))


def rounded_up(dividend: Number, divisor: Number) -> Number:
    """Return the quotient of what is >= 0 by what is > 0, rounded up."""
    if any(type(number) is Symbol and not is_traced(number.dim) for number in (dividend, divisor)):
        return (dividend * -1 // divisor) * -1
    return (dividend + (divisor - 1)) // divisor  # where quotients are rounded towards 0, too


def _is(number: Number, value: int) -> bool:
    return type(number) is int and number == value


def _divisor(number: Number) -> Number:
    """Keep a divisor above 0: division by 0 ends some engines before a guard refuses it."""
    return number if type(number) is int else maximum(number, 1)


def _natural(operation: str, *operands: Number) -> Formula:
    return Formula(operation, *operands, is_natural=all(map(_not_negative, operands)))


def _not_negative(number: Number) -> bool:
    if isinstance(number, Formula):
        return number.is_natural
    return is_known(number) and number >= 0


def value(held: object) -> Formula:
    """Return a number or list of numbers that a value of the model holds: int64 of rank 1."""
    return Formula("value", held=held)


def dimension(data: object, axis: Number) -> Formula:
    """Return the length of an axis of a tensor."""
    return Formula("dimension", axis, held=data, is_natural=True)


def count_in(numbers: Numbers) -> int:
    """Return the only number of a list, the number of parts: it is known."""
    count = only(numbers)
    if is_known(count):
        return count
    raise TypeError(f"{count} parts: it is not known how many that are")


def only(numbers: Numbers) -> Number:
    """Return the only number of a list."""
    (number,) = in_order(numbers)
    return number


def in_order(numbers: Numbers) -> tuple[Number, ...]:
    """Return numbers of which it is known how many there are."""
    if isinstance(numbers, Formula):
        raise TypeError("it is not known how many numbers there are")
    return tuple(numbers)


def size_of(numbers: Numbers) -> Number:
    """Return how many numbers there are."""
    if isinstance(numbers, tuple):
        return len(numbers)
    return Formula("size_of", numbers, is_natural=True)


def pick(numbers: Numbers, index: Number) -> Number:
    """Return the element of a list at a position, which is in range."""
    if isinstance(numbers, tuple) and type(index) is int:
        return numbers[index]
    return Formula("pick", listed(numbers), index)


def sums(numbers: Numbers) -> Formula:
    """Return for each element of a list the sum of it and those before it."""
    return Formula("sums", listed(numbers))


def head(numbers: Numbers, count: Number) -> Formula:
    """Return the first elements of a list, or fewer where it has fewer."""
    return Formula("head", listed(numbers), count)


def tail(numbers: Numbers, start: Number) -> Formula:
    """Return the elements of a list from a position on."""
    return Formula("tail", listed(numbers), start)


@overload
def minimum(left: Formula, right: Number) -> Formula: ...
@overload
def minimum(left: Number, right: Number) -> Number: ...
def minimum(left: Number, right: Number) -> Number:
    """Return the smaller one of two numbers."""
    if is_known(left) and is_known(right):
        return min(left, right)
    return _natural("minimum", left, right)


@overload
def maximum(left: Formula, right: Number) -> Formula: ...
@overload
def maximum(left: Number, right: Number) -> Number: ...
def maximum(left: Number, right: Number) -> Number:
    """Return the larger one of two numbers."""
    if is_known(left) and is_known(right):
        return max(left, right)
    if is_known(right) and right <= 0 and _not_negative(left):
        return left
    natural = _not_negative(left) or _not_negative(right)
    return Formula("maximum", left, right, is_natural=natural)


def clamped(number: Number, least: Number, most: Number) -> Number:
    """Return the number of a range that is nearest; unknown where one of the three is a symbol."""
    if any(type(each) is Symbol for each in (number, least, most)):
        return Symbol(None)
    return maximum(minimum(number, most), least)


def listed(numbers: Numbers) -> Listed:
    """Return numbers as one list: a formula, or a tuple where all are integers."""
    if isinstance(numbers, Formula) or are_known(numbers):
        return numbers
    entries: list[Number] = []
    for number, run in groupby(numbers, key=lambda number: number):
        count = sum(1 for _ in run)
        if isinstance(number, Formula) and count > _LISTED_ONE_BY_ONE:
            entries.append(number + Formula("numbers", (0,) * count, is_natural=True))
        else:
            entries += [number] * count
    first, *others = entries
    return first if isinstance(first, Formula) and not others else _natural("joined", *entries)


def joined(*lists: Numbers) -> Formula:
    """Join lists one after the other."""
    return Formula("joined", *map(listed, lists))


def total(numbers: Numbers) -> Number:
    """Return the sum of numbers."""
    if isinstance(numbers, Formula):
        return Formula("total", numbers, is_natural=numbers.is_natural)
    if are_known(numbers):
        return sum(numbers)
    calculated = Counter(number for number in numbers if isinstance(number, Formula))
    if len(calculated) > _LISTED_ONE_BY_ONE:
        return total(listed(numbers))
    if calculated:
        known = sum(number for number in numbers if not isinstance(number, Formula))
        return sum((number * count for number, count in calculated.items()), start=known)
    return sum(numbers) if len(numbers) <= _MOST_SYMBOLS else Symbol(None)


def none_below(smallest: int, numbers: Numbers) -> Condition:
    """Return whether no number is below a smallest one; names and expressions may be any."""
    if isinstance(numbers, Formula):
        return at_least(smallest, numbers)
    if are_known(numbers):
        return all(map(partial(operator.le, smallest), numbers))
    return all(
        at_least(smallest, number) is not False
        for number in numbers
        if is_known(number) or is_traced(as_dim(number))
    )


def each(function: Callable[[Number], Number], numbers: Numbers) -> Numbers:
    """Return a function of every number."""
    if isinstance(numbers, tuple):
        return tuple(map(function, numbers))
    found = function(numbers)
    return found if isinstance(found, Formula) else (found,)


@overload
def at_least(smallest: Number, number: Formula) -> Formula: ...
@overload
def at_least(smallest: Number, number: Number) -> Condition: ...
def at_least(smallest: Number, number: Number) -> Condition:
    """Return whether a number is not below another one."""
    rest = number - smallest
    if is_known(rest):
        return bool(rest >= 0)
    if type(rest) is Symbol:
        return decide(rest.dim >= 0) if is_traced(rest.dim) else None
    return Formula("less", smallest - 1, number)


def same(left: Number, right: Number) -> Condition:
    """Return whether two numbers are the same."""
    rest = left - right
    if is_known(rest):
        return bool(rest == 0)
    if type(rest) is Symbol:
        return decide(rest.dim == 0) if is_traced(rest.dim) else None
    if is_known(right) and right < 0:  # OpenVINO says no where the other follows from shapes
        return Formula("equal", rest, 0)
    return Formula("equal", left, right)


@overload
def choose(condition: Formula, yes: Number, no: Number) -> Formula: ...
@overload
def choose(condition: Condition, yes: Number, no: Number) -> Number: ...
def choose(condition: Condition, yes: Number, no: Number) -> Number:
    """Choose one of two numbers; the second where it is open whether the condition holds."""
    if isinstance(condition, Formula):
        natural = all(map(_not_negative, (yes, no)))
        return Formula("choose", condition, yes, no, is_natural=natural)
    return yes if condition else no


def explain(condition: Condition, refusal: Callable[..., SplitError], *seen: object) -> None:
    """Explain why parts will not fit, if the condition fails.

    A formula needs nothing more: lengths that do not fit are refused by the guard of `fitting`.
    """
    if not isinstance(condition, bool) or condition:  # Dynamo does not see that one is ``False``
        return
    raise refusal(*seen)


def require(
    number: Number, condition: Condition, refusal: Callable[..., SplitError], *seen: object
) -> Number:
    """Return the number, for what does not follow from parts that fit.

    The running model stops where it needs the number and the condition fails.
    """
    explain(condition, refusal, *seen)
    return guarded(number, condition) if isinstance(condition, Formula) else number


def guarded(number: Number, condition: Condition) -> Number:
    """Return the number if a condition holds; if not, the running model stops.

    No element is left then, and no engine reshapes an empty tensor to one element. An index out of
    range would not do: OpenVINO takes it.
    """
    return _sure((number,), condition, 1, number)


def fed(held: object, dim: Number, count: int | None = None) -> Formula:
    """Return fed lengths with the same meaning, but small enough for any sum of them.

    The model stops if there are not ``count``; None where that needs no check. Where the dimension
    is so long that sums may leave 64 bits, each length is 0, and lengths of 0 never fit it.
    """
    lengths = value(held)
    if count is not None:
        lengths = _sure(lengths, same(size_of(lengths), count), count, 0)
    too_long = MAX_DIM // ((count or _MOST_LENGTHS) + 1)
    if is_known(dim):
        low, high = (-2, dim + 1) if dim < too_long else (0, 0)
        return maximum(minimum(lengths, high), low)
    small = maximum(minimum(lengths, dim + 1), -2)
    return choose(Formula("less", dim, too_long), small, 0)


def fitting(dim: Number, lengths: Numbers, count: int, *, checks_sum: bool) -> Listed:
    """Return lengths as one list for a node that makes parts, with a guard.

    The running model stops if one is negative or they do not sum to the dimension; at the latest in
    the node, if that checks the sum.

    A negative length becomes one that never fits, because some engines read it as a remainder and
    read outside of the data. Making it 0 would not do: the others may then sum to the dimension.
    """
    held = listed(lengths)
    if is_known(dim) and isinstance(held, tuple):
        return held  # the rule has refused what does not fit
    if checks_sum:
        if _all_natural(held):
            return held
        return maximum(_poisoned(dim, as_formula(held)), 0)  # 2^63 - 1 and 1 is below 0 in 64 bits
    return _sure(held, _fit(dim, lengths), count, as_formula(held))


def fitting_zero(dim: Number, lengths: Numbers) -> Number:
    """Return zero; the running model stops if the lengths do not fit the dimension."""
    held = listed(lengths)
    if is_known(dim) and isinstance(held, tuple):
        return 0
    return _sure((0,), _fit(dim, lengths), 1, 0)


def bounds(
    dim: Number, lengths: Numbers, count: int, *, are_checked: bool = False
) -> list[tuple[Number, Number]]:
    """Return where each part starts and ends; the running model stops if they do not fit.

    If they are checked, it stops already where the lengths are calculated.
    """
    zero = 0 if are_checked else fitting_zero(dim, lengths)
    ends: list[Number] = []
    for index in range(count):
        length = pick(lengths, index)
        ends.append(ends[-1] + length if ends else length + zero)
    if count > 1:
        ends[-1] = dim
    return list(zip([0, *ends], ends, strict=False))


def position(index: Number, count: Number, last: Number, *, operator: str | None = None) -> Number:
    """Count a position in a sequence from the front: a negative one is added to ``count`` (D19).

    One that is then negative or above ``last`` is refused (TS511), or the running model stops.
    """
    found = choose(at_least(0, index), index, index + count)
    if is_known(found) and is_known(count) and is_known(last):
        if not 0 <= found <= last:
            tensors, fix = count_of(count, "tensor"), f"give a position in [{-count}, {last}]"
            least = count - found if found < 0 else found + count - last
            wants = {"position": range(-count, last + 1), "count": range(least, MAX_DIM + 1)}
            raise SplitError(
                SEQUENCE_INDEX,
                f"the position is {index}, but the sequence has {tensors}",
                fix if last >= -count else "fill the sequence",
                operator=operator,
                parameter="position",
                wants={name: fit for name, fit in wants.items() if fit},
            )
        return found
    inside = at_least(found, last)
    if not _not_negative(found):
        inside = Formula("both", at_least(0, found), inside)
    return guarded(found, inside)


def _all_natural(lengths: Listed) -> bool:
    if isinstance(lengths, tuple):
        return all(number >= 0 for number in lengths)
    return lengths.is_natural


def _poisoned(dim: Number, lengths: Formula) -> Formula:
    return choose(at_least(0, lengths), lengths, dim + 1)


def _fit(dim: Number, lengths: Numbers) -> Condition:
    """Return whether lengths are >= 0 and sum to the dimension."""
    if isinstance(lengths, Formula):
        natural = lengths if lengths.is_natural else _poisoned(dim, lengths)
        return Formula("sums_to", natural, dim)
    formulas = {each for each in lengths if isinstance(each, Formula) and not each.is_natural}
    poisoned: dict[Number, Number] = {each: _poisoned(dim, each) for each in formulas}
    return same(total(tuple(poisoned.get(each, each) for each in lengths)), dim)


def _sure(numbers: Numbers, condition: Condition, count: int, otherwise: Number) -> Formula:
    """Return the numbers if a condition holds; else none, which no engine reshapes to their count.

    What it is otherwise is never used. The choice keeps OpenVINO from moving calculations with a
    constant that follow to before the reshape: after one refusal it would refuse everything.
    """
    kept = Formula("head", as_formula(listed(numbers)), choose(condition, count, 0))
    shaped = Formula("shaped", kept, count, is_natural=_all_natural(listed(numbers)))
    return choose(condition, shaped, otherwise) if isinstance(condition, Formula) else shaped


def as_formula(numbers: Listed) -> Formula:
    """Return numbers as a formula, where they may be a list of integers."""
    return Formula("numbers", numbers) if isinstance(numbers, tuple) else numbers
