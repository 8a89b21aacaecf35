"""The layout that all pictures of a plan share: the parts, their lengths as drawn, the texts.

`tensorsplit.pages.terminal` and `tensorsplit.pictures.svg` draw it; neither knows any operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from typing import TypeAlias

from tensorsplit.core.dimensions import (
    Dim,
    Shape,
    add,
    are_known,
    is_known,
    show_dim,
    show_shape,
    sum_of,
    times,
)
from tensorsplit.core.errors import ENGLISH, Words
from tensorsplit.core.plan import SplitPlan, UncountedPlan

Plan: TypeAlias = SplitPlan | UncountedPlan

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of the split axis as it is drawn: one part, or several that are left out."""

    part: int | None  # its number; None for parts that are left out
    label: str  # the number as text, or how many are left out
    size: Dim
    offset: Dim
    shape: Shape = ()  # of the part; empty for parts that are left out

    @property
    def length(self) -> int | None:
        """The size, if it is a part of known size."""
        return self.size if self.part is not None and is_known(self.size) else None

    @property
    def exact(self) -> bool:
        """Whether it is a part of known size."""
        return self.length is not None

    @property
    def empty(self) -> bool:
        """Whether it is a part without elements on the axis."""
        return self.length == 0


def stretches(plan: Plan, most: int) -> tuple[Stretch, ...]:
    """Return at most so many stretches (3 or more): every part, or the first and the last ones."""
    if isinstance(plan, UncountedPlan):
        shape = plan.part_shape
        return (
            Stretch(0, "0", plan.size, 0, shape),
            Stretch(None, "more", None, plan.size),
            Stretch(1, "last", plan.size, None, shape),
        )
    count, tail = len(plan.sizes), 2 if most > 4 else 1
    starts = range(count) if count <= most else (*range(most - tail), *range(count - tail, count))
    before, after = plan.input_shape[: plan.axis], plan.input_shape[plan.axis + 1 :]
    found, offset = list[Stretch](), sum_of(())
    for start, end in pairwise((*starts, count)):
        if end - start == 1:
            size = plan.sizes[start]
            shape = (*before, size, *after) if plan.keepdims else before + after
            found.append(Stretch(start, str(start), size, offset, shape))
        else:
            size = _total(plan.sizes[start:end])
            found.append(Stretch(None, f"{end - start} more", size, offset))
        offset = add(offset, size)
    return tuple(found)


def _total(sizes: Sequence[Dim]) -> Dim:
    """Sum sizes. Equal ones are multiplied: adding a million symbols takes minutes."""
    if are_known(sizes):
        return sum(sizes)
    return sum_of(times(size, len(list(run))) for size, run in groupby(sizes))


def extents(run: Sequence[Stretch], room: int, least: Sequence[int]) -> list[int]:
    """Divide the room on the axis in proportion to the sizes, so that every part stays visible.

    A symbol, or parts left out, count as the longest known part. The lengths, in characters or
    pixels, add up to `room`, or to the sum of `least` if that is more.
    """
    known = [stretch.length for stretch in run]
    longest = max([length for length in known if length is not None], default=0) or 1
    weights = [longest if length is None else length for length in known]
    free = list(range(len(run)))
    while True:
        left = room - sum(least) + sum(least[index] for index in free)
        weight = sum(weights[index] for index in free)
        small = [i for i in free if not weight or left * weights[i] < least[i] * weight]
        if not small:
            break
        free = [index for index in free if index not in small]
    lengths, shares = list(least), accumulate(weights[index] for index in free)
    ends = [0, *(round(left * share / weight) for share in shares)]
    for index, (start, end) in zip(free, pairwise(ends), strict=True):
        lengths[index] = end - start
    return lengths


def to_scale(run: Sequence[Stretch], lengths: Sequence[int]) -> bool:
    """Return whether the lengths drawn are those of the parts, to within a unit of the drawing."""
    sizes = tuple(stretch.length for stretch in run)
    if not are_known(sizes):
        return False
    elements, units = sum(sizes), sum(lengths)
    return all(
        abs(length * elements - size * units) <= elements
        for size, length in zip(sizes, lengths, strict=True)
    )


def fitting(
    labels: Iterable[tuple[int, str]], end: int, room: Callable[[str], int]
) -> list[tuple[int, str]]:
    """Return the labels, with their places, that have room before the next and before `end`."""
    kept: list[tuple[int, str]] = []
    free = 0
    for place, label in labels:
        if free <= place <= end - room(label):
            kept.append((place, label))
            free = place + room(label)
    return kept


def is_across(plan: Plan) -> bool:
    """Return whether the split axis is drawn from left to right: it is the last one."""
    return plan.axis == len(plan.input_shape) - 1


def other_axis(plan: Plan) -> int | None:
    """Return the axis drawn at a right angle to the split axis; None for data of rank 1."""
    rank = len(plan.input_shape)
    if rank == 1:
        return None
    return rank - 2 if is_across(plan) else rank - 1


def heading(plan: Plan, words: Words = ENGLISH) -> str:
    """Return the split in one line."""
    count = plan.count if isinstance(plan, UncountedPlan) else len(plan.sizes)
    if count is None:
        parts = words.text("number of parts not known")
    elif count == 0:
        parts = words.text("no parts")
    elif isinstance(count, int):
        parts = words.amount(count, "part")
    else:
        parts = words.text("{n} parts", n=show_dim(count))
    return words.text(
        "axis {axis} ({dimension}) of {shape}: {parts}",
        axis=plan.axis,
        dimension=show_dim(plan.input_shape[plan.axis]),
        shape=show_shape(plan.input_shape),
        parts=parts,
    )


def remarks(plan: Plan, words: Words = ENGLISH) -> list[str]:
    """Return remarks on what the picture doesn't show: the other axes, and a dropped axis."""
    found = []
    shown = [f"{number} ({show_dim(dim)})" for number, dim in enumerate(plan.input_shape)]
    del shown[plan.axis]
    if shown:
        axes = ", ".join(shown if len(shown) <= 6 else [*shown[:6], "..."])
        found.append(
            words.text("Whole in every part: axis {axes}", axes=axes)
            if len(shown) == 1
            else words.text("Whole in every part: axes {axes}", axes=axes)
        )
    if not plan.keepdims:
        found.append(
            words.text("Axis {axis} is dropped: the parts have no such axis", axis=plan.axis)
        )
    return found


def table_rows(run: Sequence[Stretch], words: Words = ENGLISH) -> list[tuple[str, str, str, str]]:
    """Return the table of the parts: a header, and a row for each."""
    heads = words.text("part"), words.text("offset"), words.text("size"), words.text("shape")
    rows = [heads]
    for stretch in run:
        if stretch.part is None:
            rows.append((ELLIPSIS, stretch.label, "", ""))
        else:
            offset, size = show_dim(stretch.offset), show_dim(stretch.size)
            rows.append((stretch.label, offset, size, show_shape(stretch.shape)))
    return rows


def shortened(text: str, most: int) -> str:
    """Return the text in at most that many characters."""
    return text if len(text) <= most else text[: most - 1] + ELLIPSIS
