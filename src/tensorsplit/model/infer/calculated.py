"""The lengths that a model calculates, identified by calculating them for many dimensions.

Guarded lengths are recognized by what their nodes compute, not by how the nodes look, so that other
tools may fold and merge them (ADR 26).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import lru_cache, partial
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import onnx_ir as ir

from tensorsplit.core.dimensions import is_known
from tensorsplit.core.errors import SplitError
from tensorsplit.core.rules import LengthRule, apply, equal, explicit
from tensorsplit.model.graph.held_tensors import constant
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.infer.length_operators import (
    MOST_ELEMENTS,
    MOST_PARTS,
    OPERATORS,
    MayStopError,
    StopsError,
    UnknownResultError,
)
from tensorsplit.model.infer.length_program import DIMENSION, Program, program_of
from tensorsplit.model.infer.length_samples import Sample, at_dimension, samples_of

_MOST_IN_ALL = 1 << 24
"""The elements of all lists that are calculated for one dimension: it is done again for many."""


class _AnythingError(Exception):
    """The result of one step is not known; the others can be calculated for whatever it may be."""

    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place


class Trial(NamedTuple):
    """The results of a program for some values of its variables.

    Attributes:
        dim: The dimension that is split.
        results: Lists of numbers; if the running model stops, they are what it would give if it
            went on, or None.
        stops: The steps at which it stops.
        may_stop: Whether some engines stop at another step.
    """

    dim: int
    results: list[list[int]] | None
    stops: frozenset[int]
    may_stop: bool


_Samples: TypeAlias = Callable[[Program, int], Iterator[Sample]]
"""Yields values of the variables of a program for so many parts."""


def _calculated(program: Program, variables: Sample, sampled: Collection[int]) -> Trial:
    """Return the outcome for values of the variables, on which some steps depend."""
    known: list[Any] = []
    stops: set[int] = set()
    may_stop, elements = False, 0
    for place, (operator, held, inputs) in enumerate(program.steps):
        if operator == "constant":
            made: Any = np.array(held[1], None if held[1] else np.int64).reshape(held[0])
        elif operator == "shape":
            made = np.array([e if is_known(e) else variables[e[0]] for e in held], np.int64)
        elif operator == "sampled":
            made = np.array(variables[held[0]], np.int64)
        elif operator == "unknown":
            raise _AnythingError(place)
        else:
            read = [None if at is None else known[at] for at in inputs]
            try:
                made = OPERATORS[operator](read, dict(held))
            except MayStopError as error:
                may_stop, made = True, error.instead
            except StopsError as error:
                stops.add(place)
                made = error.instead
            except Exception:  # noqa: BLE001 - NumPy raises of many kinds for what does not fit
                if not stops:
                    raise _AnythingError(place) from None
                return Trial(variables[DIMENSION], None, frozenset(stops), may_stop)
            may_be = (None, (), "open", np.size(made))
            if not stops and place in sampled and program.kinds[place] not in may_be:
                raise _AnythingError(place)  # only a declaration tells how many elements it has
            elements += np.size(made)
            if np.size(made) > MOST_ELEMENTS or elements > _MOST_IN_ALL:
                raise UnknownResultError
        known.append(made)
    results = [np.ravel(known[at]).tolist() for at in program.results]
    return Trial(variables[DIMENSION], results, frozenset(stops), may_stop)


def outcomes(program: Program, count: int, samples: _Samples | None = None) -> list[Trial]:
    """Return the results for many values of the variables.

    A step whose result is not known for some of them is a variable too: what follows has to do with
    whatever it gives.

    Raises:
        UnknownResultError: If the results of the program are not known.
    """
    with np.errstate(all="ignore"):
        try:
            given = (samples or samples_of)(program, count)
            sampled = program.sampled
            return [_calculated(program, values, sampled) for values in given]
        except _AnythingError as error:
            return outcomes(program.with_anything_at(error.place), count, samples)
        except OverflowError:
            raise UnknownResultError from None


def _fits(dim: int, lengths: list[int], count: int) -> bool:
    return len(lengths) == count and min(lengths, default=0) >= 0 and sum(lengths) == dim


def always_fit(lengths: ir.Value, data: ir.Value, axis: int, count: int, facts: Facts) -> bool:
    """Return whether the running model stops before a Split wherever its lengths do not fit."""
    program = program_of((lengths,), data, axis, facts) if count <= MOST_PARTS else None
    return program is not None and _always_fit(program, count)


@lru_cache(maxsize=1024)
def _always_fit(program: Program, count: int) -> bool:
    """Return whether the last guard stops the model exactly where lengths do not fit.

    Where they fit whatever they are calculated from, that needs no guard.
    """
    try:
        found = outcomes(program, count)
    except UnknownResultError:
        return False
    guard = {max(chain.from_iterable(each.stops for each in found), default=-1)}
    fitting = [
        each.results is not None and _fits(each.dim, each.results[0], count) for each in found
    ]
    return all(fitting) or not any(
        (not each.stops and not fits) or (each.stops == guard and fits)
        for each, fits in zip(found, fitting, strict=True)
    )


def rule_of_lengths(
    lengths: ir.Value, data: ir.Value, axis: int, count: int, facts: Facts
) -> tuple[LengthRule, tuple[int, ...]] | None:
    """Return the rule by which lengths that are not constant are calculated; see `rule_of`."""
    if constant(lengths) is not None:
        return None
    program = program_of((lengths,), data, axis, facts)
    return None if program is None else rule_of(program, count)


@lru_cache(maxsize=1024)
def rule_of(program: Program, count: int) -> tuple[LengthRule, tuple[int, ...]] | None:
    """Return the rule, and what it is given, by which a program gives the lengths of so many parts.

    The program gives the lengths as one list, and the node that gets them refuses those that do not
    fit; or it gives the start and the end of each part, and stops where parts do not follow each
    other. Only rules are found that need no lengths at run time: constant and equal lengths.
    """
    try:
        found = _lengths(program, count, samples_of)
        fitting = [lengths for _, lengths in found if lengths is not None]
        candidates: list[tuple[LengthRule, tuple[int, ...]]] = [(equal, (count,))]
        candidates += [(explicit, lengths) for lengths in fitting[-1:]]
        for rule, wanted in candidates:
            if fitting and all(_by_rule(rule, dim, wanted) == lengths for dim, lengths in found):
                # of the dimension that constants fit there are few samples among so many
                again = partial(at_dimension, sum(wanted)) if rule is explicit else None
                if again and any(got != wanted for _, got in _lengths(program, count, again)):
                    return None
                return rule, wanted
    except UnknownResultError:
        pass
    return None


def _lengths(
    program: Program, count: int, samples: _Samples
) -> list[tuple[int, tuple[int, ...] | None]]:
    """Return dimensions with the lengths that a program gives of them.

    None where they do not fit, or where engines stop before they have them.

    Raises:
        UnknownResultError: If its results are not known, or are bounds of parts that do not fit and
            it does not stop.
    """
    found: list[tuple[int, tuple[int, ...] | None]] = []
    for dim, results, stops, may_stop in outcomes(program, count, samples):
        if results is None or stops or may_stop:
            found.append((dim, None))
            continue
        given = results[0] if len(results) == 1 else _between(results)
        fits = _fits(dim, given, count)
        if not fits and len(results) > 1:
            raise UnknownResultError
        found.append((dim, tuple(given) if fits else None))
    return found


def _between(bounds: list[list[int]]) -> list[int]:
    """Return the lengths of parts with these starts and ends; none unless one follows the other."""
    numbers = list(chain.from_iterable(bounds))
    starts, ends = numbers[::2], numbers[1::2]
    if len(numbers) != len(bounds) or starts != [0, *ends[:-1]]:
        return []
    return [end - start for start, end in zip(starts, ends, strict=True)]


@lru_cache(maxsize=1024)
def are_in_order(program: Program) -> bool:
    """Return whether a start is never after its end, and both are within the dimension."""
    try:
        return all(
            stops or (results is not None and _is_range(dim, *map(tuple, results)))
            for dim, results, stops, _ in outcomes(program, 1)
        )
    except UnknownResultError:
        return False


def _is_range(dim: int, start: tuple[int, ...], end: tuple[int, ...]) -> bool:
    return len(start) == len(end) == 1 and 0 <= start[0] <= end[0] <= dim


def _by_rule(rule: LengthRule, dim: int, given: tuple[int, ...]) -> object:
    try:
        return apply(rule, dim, given)
    except SplitError:
        return None
