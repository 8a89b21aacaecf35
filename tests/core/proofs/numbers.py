"""One more kind of number: any integer. A comparison of such numbers splits a proof into paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import z3

from tensorsplit.core.errors import SplitError

Term: TypeAlias = Any
"""A term or condition of z3."""

_SECONDS = 30


class Claim:
    """A condition on numbers; whether it holds is assumed both ways, one path after the other."""

    def __init__(self, condition: Term) -> None:
        self.condition = condition

    def __bool__(self) -> bool:
        return Path.current.decide(self.condition)


class Whole:
    """Any integer, as a term of z3; it calculates and compares as ``int`` does."""

    __hash__ = None  # type: ignore[assignment]  # it is no one value

    def __init__(self, term: Term) -> None:
        self.term = term

    def __add__(self, other: Any) -> Whole:
        return Whole(self.term + term_of(other))

    def __sub__(self, other: Any) -> Whole:
        return Whole(self.term - term_of(other))

    def __rsub__(self, other: Any) -> Whole:
        return Whole(term_of(other) - self.term)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, tuple):
            return other * self.__index__()
        return Whole(self.term * term_of(other))

    def __neg__(self) -> Whole:
        return Whole(-self.term)

    def __floordiv__(self, other: Any) -> Whole:
        return self._divided(other)[0]

    def __rfloordiv__(self, other: Any) -> Whole:
        return Whole(term_of(other)) // self

    def __mod__(self, other: Any) -> Whole:
        return self._divided(other)[1]

    def __ge__(self, other: Any) -> Claim:
        return Claim(self.term >= term_of(other))

    def __gt__(self, other: Any) -> Claim:
        return Claim(self.term > term_of(other))

    def __le__(self, other: Any) -> Claim:
        return Claim(self.term <= term_of(other))

    def __lt__(self, other: Any) -> Claim:
        return Claim(self.term < term_of(other))

    def __eq__(self, other: object) -> Claim:  # type: ignore[override]
        return Claim(self.term == term_of(other))

    def __bool__(self) -> bool:
        return Path.current.decide(self.term != 0)

    def __index__(self) -> int:
        """Each value in turn, a path for each; `BeyondError` where it is larger than `MOST`."""
        for value in range(MOST + 1):
            if Path.current.decide(self.term == value):
                return value
        raise BeyondError

    __radd__, __rmul__ = __add__, __mul__

    def _divided(self, other: Any) -> tuple[Whole, Whole]:
        """Quotient and remainder, defined by what they are; the divisor is positive."""
        divisor = term_of(other)
        assert Path.current.implies(divisor > 0), "a divisor may be 0 or negative"
        quotient, rest = Path.current.fresh("quotient"), Path.current.fresh("rest")
        Path.current.know(self.term == quotient * divisor + rest, rest >= 0, rest < divisor)
        return Whole(quotient), Whole(rest)


MOST = 8
"""The parts, or lengths, up to which it is proved."""


class BeyondError(Exception):
    """There are more than `MOST`."""


def term_of(number: Any) -> Term:
    """A number as a term."""
    return number.term if isinstance(number, Whole) else z3.IntVal(number)


def terms_of(numbers: Sequence[Any]) -> list[Term]:
    return [term_of(number) for number in numbers]


class Path:
    """What is assumed on the way to one outcome."""

    current: Path

    def __init__(self, assumed: Sequence[Term], taken: tuple[bool, ...]) -> None:
        self.solver = z3.Solver()
        self.solver.set("timeout", _SECONDS * 1000)
        self.solver.add(*assumed)
        self.taken, self._decided = taken, 0
        self.others: list[tuple[bool, ...]] = []
        self._fresh = 0

    def fresh(self, name: str) -> Term:
        """A new integer."""
        self._fresh += 1
        return z3.Int(f"{name} {self._fresh}")

    def know(self, *conditions: Term) -> None:
        """Assume what defines a new integer."""
        self.solver.add(*conditions)

    def decide(self, condition: Term) -> bool:
        """Whether a condition holds on this path; where both may be, the other path comes later."""
        condition = z3.simplify(condition)
        if z3.is_true(condition) or z3.is_false(condition):
            return bool(z3.is_true(condition))
        if self._decided == len(self.taken):
            may_hold = self._is_possible(condition)
            if may_hold and self._is_possible(z3.Not(condition)):
                self.others.append((*self.taken, False))
            self.taken += (may_hold,)
        choice = self.taken[self._decided]
        self._decided += 1
        self.solver.add(condition if choice else z3.Not(condition))
        return choice

    def implies(self, condition: Term) -> bool:
        """Whether a condition holds wherever the path is taken."""
        return not self._is_possible(z3.Not(condition))

    def _is_possible(self, condition: Term) -> bool:
        found = self.solver.check(condition)
        assert found != z3.unknown, f"z3 finds no answer: {self.solver.reason_unknown()}"
        return bool(found == z3.sat)

    def example(self, number: Any) -> Any:
        """A number, or several, as it may be on this path; small where it can be."""
        return plain(self._model(z3.BoolVal(True)), number)

    def prove(self, condition: Term, told: Callable[[Callable[[Any], Any]], str]) -> None:
        """Prove a condition, or fail with a counterexample.

        ``told`` makes the message; it is given what turns numbers into their values.
        """
        if self.implies(condition):
            return
        model = self._model(z3.Not(condition))
        raise AssertionError(told(lambda number: plain(model, number)))

    def _model(self, condition: Term) -> Any:
        """Values for which a condition holds, small ones if there are."""
        for most in (9, 99, 1 << 16, None):
            small = [] if most is None else [self._all_within(most)]
            if self.solver.check(condition, *small) == z3.sat:
                return self.solver.model()
        raise AssertionError("z3 finds no example")

    def _all_within(self, most: int) -> Term:
        names = {name for each in self.solver.assertions() for name in _names(each)}
        return z3.And(*(z3.And(z3.Int(name) <= most, z3.Int(name) >= -most) for name in names))


def _names(term: Term) -> Iterator[str]:
    if z3.is_const(term) and z3.is_int(term) and term.decl().kind() == z3.Z3_OP_UNINTERPRETED:
        yield term.decl().name()
    for part in term.children():
        yield from _names(part)


def plain(model: Any, number: Any) -> Any:
    """A number, or several, with the values of a model."""
    if isinstance(number, (list, tuple)):
        return [plain(model, each) for each in number]
    if isinstance(number, Whole):
        number = number.term
    return model.eval(number, True).as_long() if z3.is_expr(number) else number


@dataclass(frozen=True)
class Outcome:
    """What a function gives on one path: a result, or a refusal."""

    path: Path
    result: Any
    refusal: SplitError | None

    def prove(self, condition: Term, told: Callable[[Callable[[Any], Any]], str]) -> None:
        """As `Path.prove`."""
        Path.current = self.path
        self.path.prove(condition, told)


def outcomes(function: Callable[[], Any], *assumed: Term) -> Iterator[Outcome]:
    """What a function gives on each path; numbers of more than `MOST` parts are left out."""
    waiting: list[tuple[bool, ...]] = [()]
    while waiting:
        path = Path.current = Path(assumed, waiting.pop())
        try:
            yield Outcome(path, function(), None)
        except SplitError as error:
            yield Outcome(path, None, error)
        except BeyondError:
            pass
        waiting += path.others
