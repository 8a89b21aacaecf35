"""Shapes of named dimensions, by counting what an operator gives for many small dimensions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import chain, product
from typing import Any

import pytest

from tensorsplit.model.graph.facts import Tensor
from tests.model.infer.test_elements import DIMENSIONS, FLOAT, OPEN, listed, made_of, numbers


def named(*dims: Any) -> Tensor:
    """A tensor of floats of a shape."""
    return Tensor(FLOAT, listed(dims).values)


def at(dim: Any, names: dict[str, int]) -> Any:
    """A dimension for one choice of the names."""
    return numbers(dim)[DIMENSIONS.index(names)][0]


def places(kernel: int, gap: int, start: int) -> list[int]:
    """Where the elements of a window lie that starts at a place."""
    return [start + gap * k for k in range(kernel)]


@pytest.mark.parametrize("op_type", ["Conv", "ConvTranspose", "MaxPool"])
def test_windows(op_type: str) -> None:
    """A window counts if it lies in the data and their padding; turned around, the furthest."""
    for kernel, stride, gap, before, after, more in product(
        (1, 2, 3), (1, 2, 3), (1, 2), (0, 1), (0, 2), (0, 1)
    ):
        given: dict[str, Any] = {"strides": [stride], "dilations": [gap]}
        given |= {"pads": [before, after]} if before or after else {}
        inputs = [named(3, 4, "N")]
        if op_type == "MaxPool":
            given["kernel_shape"] = [kernel]
        else:
            channels = (5, 4) if op_type == "Conv" else (4, 5)
            inputs.append(named(*channels, kernel))
        if more and op_type != "ConvTranspose":
            continue
        given |= {"output_padding": [more]} if more else {}
        made = made_of(op_type, inputs, **given)
        assert made.shape is not None
        assert made.shape[:2] == (3, 4 if op_type == "MaxPool" else 5)
        for names in DIMENSIONS:
            side = names["N"]
            if op_type == "ConvTranspose":
                written = [
                    place
                    for start in range(0, side * stride, stride)
                    for place in places(kernel, gap, start)
                ]
                count = max(written) + 1 + more - before - after if written else 0
            else:
                starts = range(-before, side + after, stride)
                count = sum(places(kernel, gap, start)[-1] < side + after for start in starts)
            if count > 0:
                assert at(made.shape[2], names) == count, (given, names)


BOUNDS = (0, 1, 3, -1, -2, "N", "M", "N + 2", "2*M", -(1 << 62), 1 << 62, None)


@pytest.mark.parametrize("step", [1, 2, -1])
def test_slices(step: int) -> None:
    """As Python slices; forwards all are told whose bounds are, and 0 where there is nothing."""
    for start, end in product(BOUNDS, repeat=2):
        bounds = [listed([each]) for each in (start, end, 0, step)]
        (dim,) = made_of("Slice", [named("N"), *bounds]).shape or (None,)
        assert step < 0 or (dim is None) == (None in (start, end))
        assert start is None or start != end or dim == (0 if step > 0 else None)
        for names in DIMENSIONS if dim is not None else ():
            first, last = (int(at(each, names)) for each in (start, end))
            assert at(dim, names) == len(range(names["N"])[first:last:step]), (start, end)


def reshaped(data: Sequence[int], target: Sequence[int], *, keeps: bool) -> list[int] | None:
    """The shape by the text of Reshape; None where it is refused, as a -1 beside no element is.

    A 0 is the dimension that the data have there, but with ``allowzero``.
    """
    made = list(target)
    for place, dim in enumerate(target):
        if dim == 0 and not keeps:
            if place >= len(data):
                return None
            made[place] = data[place]
    if made.count(-1) == 1 and min(made) == -1:
        rest = math.prod(dim for dim in made if dim != -1)
        made[made.index(-1)] = math.prod(data) // rest if rest else -1
    fits = min(made, default=0) >= 0 and math.prod(made) == math.prod(data)
    return made if fits else None


FEW = [{"N": n, "M": m} for n, m in product((0, 1, 2, 3, 6), repeat=2)]
TARGETS = (0, -1, 2, 6, "N", "M", "2*N", OPEN)


@cache
def number(dim: str, place: int) -> int:
    """A dimension for some of the names, by their place."""
    of_names = {name: Fraction(length) for name, length in FEW[place].items()}
    return int(eval(dim, {"floor": math.floor}, of_names))


def choices(entries: Sequence[Any], place: int, unknown: Sequence[int]) -> Iterator[Any]:
    """All lists of numbers that entries may stand for where the names are so many."""
    return product(*(unknown if each is OPEN else [number(str(each), place)] for each in entries))


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("data", [(2, 3), ("N", 6), ("N", "M"), (OPEN, 4), (2, "N"), ("N", 0), ()])
def test_reshapes(data: tuple[Any, ...], keeps: bool) -> None:
    """What is told holds wherever the node is not refused; numbers above 0 are, and what is kept.

    Names are told with ``allowzero``, and a -1 beside numbers.
    """
    every = chain.from_iterable(product(TARGETS, repeat=rank) for rank in (1, 2))
    for target in (*every, (0, 0, -1), (2, -1, 3)):
        made = made_of("Reshape", [named(*data), listed(target)], allowzero=int(keeps))
        results = [
            (place, result)
            for place in range(len(FEW))
            for dims in choices(data, place, (0, 1, 2, 3, 6))
            for wanted in choices(target, place, (-1, 0, 1, 2, 3, 6, 12))
            if (result := reshaped(dims, wanted, keeps=keeps)) is not None
        ]
        if not results:
            continue
        assert made.shape is not None
        for at, (dim, wanted) in enumerate(zip(made.shape, target, strict=True)):
            if dim is not OPEN:
                assert all(number(str(dim), place) == result[at] for place, result in results), (
                    target
                )
            others = [each for each in target if each != wanted]
            if wanted == 0:
                is_told = keeps or data[at] is not OPEN
            elif wanted == -1:
                is_told = OPEN not in data and {*others} <= {0, 2, 3, 6}
            else:
                is_told = wanted is not OPEN and (keeps or wanted in (2, 3, 6))
            assert not is_told or dim is not OPEN, target


@pytest.mark.parametrize("keeps", [False, True])
def test_reshapes_of_data_of_which_nothing_is_known(keeps: bool) -> None:
    """A number is told, and a name that is never 0; with ``allowzero`` 0 and any name are."""
    for target in product((0, -1, 2, "N", "N + 1", "N - 1", OPEN), repeat=2):
        made = made_of("Reshape", [Tensor(FLOAT), listed(target)], allowzero=int(keeps))
        if keeps and {0, -1} == {*target}:
            continue  # which is refused
        wanted = [each for each in target if each in (2, "N + 1") or (keeps and each in (0, "N"))]
        shape = [OPEN] * 2 if made.shape is None else made.shape
        assert [str(dim) for dim in shape if dim is not OPEN] == list(map(str, wanted)), target
