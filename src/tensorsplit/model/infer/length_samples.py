"""Values for what lengths are calculated from: dimensions, numbers, and lists of lengths."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from random import Random
from typing import Any, TypeAlias

import numpy as np

from tensorsplit.model.graph.tensors import Array
from tensorsplit.model.infer.length_operators import UnknownResultError
from tensorsplit.model.infer.length_program import Program

Sample: TypeAlias = list[Any]
"""A value for each variable of a program: a number, or a list of them."""

_LARGE = (97, 1000, (1 << 16) + 1, (1 << 31) - 1, 1 << 31, (1 << 32) + 1, (1 << 40) + 3)

_LONGEST = 1 << 20
"""Lists of any length are not sampled for a dimension that is longer."""

_MANY_PARTS = 24

_MOST_CONSTANTS = 64

_ROUNDS = 6


def samples_of(program: Program, count: int) -> Iterator[Sample]:
    """Yield values of the variables: dimensions, and lists that fit them and that do not.

    Raises:
        UnknownResultError: If the lists that matter are too long.
    """
    constants = _constants(program)
    dims = [program.dim] if program.dim is not None else _dimensions(constants, count)
    if len(program.variables) == 1:
        yield from ([dim] for dim in dims)
        return
    random = Random(0)  # noqa: S311 - the same numbers each time
    others = program.variables[1:]
    is_long = None in others and program.dim is not None and program.dim >= _LONGEST
    if is_long or any(isinstance(kind, int) and kind > _LONGEST for kind in others):
        raise UnknownResultError
    are_few = all(kind == "dimension" for kind in others)  # lists take many values for each one
    if not are_few and program.dim is None:
        near = [number for number in constants[:8] if number >= 0]
        dims = list(dict.fromkeys([*dims[:8], *near, *dims[-4:]]))
    for dim in dims if program.dim is None else dims * 4:
        kinds = [list(_of_variable(kind, dim, count, constants)) for kind in others]
        for at in range(2 if are_few else _ROUNDS + max(map(len, kinds))):
            in_turn = len(kinds) == 1 and not are_few
            values = (k[at] if at < len(k) and in_turn else random.choice(k) for k in kinds)
            yield [dim, *values]


def at_dimension(dim: int, program: Program, count: int) -> Iterator[Sample]:
    """Yield values of the variables at one dimension: each value of each of them, in turn."""
    if program.dim not in (None, dim):
        return
    random, constants = Random(0), _constants(program)  # noqa: S311 - as above
    kinds = [list(_of_variable(kind, dim, count, constants)) for kind in program.variables[1:]]
    sampled = [random.choice(kind) for kind in kinds]
    yield [dim, *sampled]
    for place, kind in enumerate(kinds):
        for value in kind:
            yield [dim, *sampled[:place], value, *sampled[place + 1 :]]


def _constants(program: Program) -> list[int]:
    """Return the numbers that occur in the constants of a program, and their sums."""
    found: dict[int, None] = {}
    for step in program.steps:
        if step.operator == "constant":
            numbers = list(map(int, step.held[1]))
            found |= dict.fromkeys([*numbers[:_MOST_CONSTANTS], sum(numbers)])
    return [number for number in found if abs(number) < 1 << 40][: 4 * _MOST_CONSTANTS]


def _dimensions(constants: list[int], count: int) -> list[int]:
    """Return dimensions: small ones, those around the constants, and some large ones."""
    found = dict.fromkeys(range(2 * min(count, _MANY_PARTS) + 3))
    for number in chain(constants, (count, 2 * count, 5 * count)):
        found |= dict.fromkeys((number - 1, number, number + 1))
    found |= dict.fromkeys(_LARGE)
    found |= dict.fromkeys(number // count * count for number in _LARGE)
    return [dim for dim in found if dim >= 0]


def _of_variable(kind: Any, dim: int, count: int, constants: list[int]) -> Iterator[Any]:
    """Yield values for a variable beside a dimension."""
    numbers = [0, 1, 2, 3, 7, dim, dim - 1, dim + 1, dim // 2, *constants[:8], *_LARGE[-3:]]
    if kind == "dimension":
        yield from (number for number in numbers if number >= 0)
    elif kind == ():
        yield from (*numbers, -1, -2, -dim, -(1 << 63), (1 << 63) - 1)
    else:
        sizes = (count, max(0, count - 1), count + 1, 0, 1) if kind is None else (kind,)
        for size in dict.fromkeys(sizes):
            yield from _lists(dim, size)
        if kind is None and dim < _LONGEST:
            yield from _long_lists(dim, constants)


def _long_lists(dim: int, constants: list[int]) -> Iterator[Array]:
    """Yield lists that are longer than a dimension: of what is counted there may be more.

    What is counted may also be divided by a constant.
    """
    divisor = max(map(abs, constants), default=0) + 2
    for size in (dim + 1, min((dim + 1) * divisor, _LONGEST)):
        for entry in (1, 0, -1, dim + 1, 1 << 40):
            yield np.full(size, entry)


def _lists(dim: int, count: int) -> Iterator[list[int]]:
    """Yield lists of lengths: some that fit a dimension, with a wrong sum, below 0, too large."""
    if count == 0:
        yield []
        return
    random = Random(dim * 31 + count)  # noqa: S311 - as above
    for _ in range(3):
        cuts = sorted(random.randint(0, dim) for _ in range(count - 1))
        fitting = [b - a for a, b in zip([0, *cuts], [*cuts, dim], strict=True)]
        yield fitting
        for place in {0, count - 1, random.randrange(count)}:
            for more in (1, -1, -dim - 1, 1 << 32, (1 << 63) - 1 - fitting[place]):
                yield [*fitting[:place], fitting[place] + more, *fitting[place + 1 :]]
        if count > 1:
            place = random.randrange(count - 1)
            for much in (dim + 1, 1 << 32, 1 << 62):  # the sum fits, one of the lengths does not
                one, other = fitting[place] - much, fitting[place + 1] + much
                yield [*fitting[:place], one, other, *fitting[place + 2 :]]
    yield [-1] * count
    yield [0] * count
    if count > 2:
        for below in (1, dim):  # the others are within the dimension, as far as they can be
            most, more = divmod(dim + below, count - 1)
            yield [-below, *[most + 1] * more, *[most] * (count - 1 - more)]
        yield [(1 << 63) - 1] * 2 + [dim + 2] + [0] * (count - 3)  # the sum fits in 64 bits
    if count > 4:
        yield [1 << 62] * 4 + [dim] + [0] * (count - 5)
