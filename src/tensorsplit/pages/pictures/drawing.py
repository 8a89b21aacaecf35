"""The drawing of a plan: the tensor on one side, its parts apart from each other on the other.

It is drawn along the cut axis (*main*) and at a right angle to it (*cross*), and only turned into
x and y at the end: the last axis runs from left to right, any other from top to bottom.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from tensorsplit.pages.pictures.elements import PAD, WIDTH, fill, label, line, polygon, rect, short
from tensorsplit.pages.pictures.layout import (
    Plan,
    Stretch,
    dim_text,
    extents,
    is_across,
    other_axis,
    to_scale,
)

_GAP = 6
_CHAR = 7
_LINE = 13
_LEAST_BLOCK = 20
_LEAST_BAND = 4
_MOST_GRID = 24
_LONGEST = 12


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where everything stands.

    Attributes:
        plan: What is drawn.
        run: The stretches of the axis that are drawn.
        across: Whether the cut axis runs from left to right.
        bands: The borders between the parts in the tensor, on the cut axis.
        blocks: Where each part starts and ends that is taken out, on the cut axis.
        tensor: Where the tensor starts and ends on the other axis.
        parts: Where the parts start and end on the other axis.
        exact: Whether the tensor is drawn to scale.
    """

    plan: Plan
    run: Sequence[Stretch]
    across: bool
    bands: tuple[int, ...]
    blocks: tuple[tuple[int, int], ...]
    tensor: tuple[int, int]
    parts: tuple[int, int]
    exact: bool

    def point(self, main: float, cross: float) -> tuple[float, float]:
        """The x and y of a place."""
        return (main, cross) if self.across else (cross, main)

    def line(self, main: float, css: str) -> str:
        """A line through the tensor at a right angle to the cut axis."""
        start, end = (self.point(main, cross) for cross in self.tensor)
        return line(start, end, css)

    def rect(self, main: Sequence[int], cross: Sequence[int], css: str) -> str:
        """A rectangle from and to these places."""
        size = self.point(main[1] - main[0], cross[1] - cross[0])
        return rect(self.point(main[0], cross[0]), size, css)


def drawing(plan: Plan, run: Sequence[Stretch], top: int) -> tuple[list[str], int]:
    """Draw the tensor, its parts and what stands beside them.

    Args:
        plan: The plan.
        run: The stretches of its axis that are drawn, at least one.
        top: Where the drawing may start.

    Returns:
        The elements, and where the drawing ends.
    """
    frame = _frame(plan, run, top)
    elements = [element for number in range(len(run)) for element in _part(frame, number)]
    elements += [*_grid(frame), *_axes(frame, top), *_offsets(frame)]
    return elements, (frame.parts[1] + 24 if frame.across else frame.blocks[-1][1] + 22)


def _frame(plan: Plan, run: Sequence[Stretch], top: int) -> _Frame:
    gaps = _GAP * (len(run) - 1)
    across = is_across(plan)
    if across:
        start, room = PAD, WIDTH - 2 * PAD - gaps
        depth = 28 if other_axis(plan) is None else 52
        tensor = (top + 36, top + 36 + depth)
        parts = (tensor[1] + 26, tensor[1] + 26 + depth)
    else:
        start, room = top + 24, max(150, 26 * len(run))
        tensor, parts = (112, 212), (252, 332)
    bands = extents(run, room, [0 if stretch.empty else _LEAST_BAND for stretch in run])
    blocks = extents(run, room, [_LEAST_BLOCK] * len(run))
    starts = list(accumulate((length + _GAP for length in blocks), initial=start))
    return _Frame(
        plan,
        run,
        across,
        tuple(accumulate(bands, initial=start + gaps // 2)),
        tuple((at, at + length) for at, length in zip(starts, blocks, strict=False)),
        tensor,
        parts,
        to_scale(run, bands),
    )


def _part(frame: _Frame, number: int) -> Iterator[str]:
    """A part: where it lies in the tensor, where it comes out, and the way between."""
    stretch, band, block = frame.run[number], frame.bands[number : number + 2], frame.blocks[number]
    near, far = frame.tensor[1], frame.parts[0]
    way = ((band[0], near), (band[1], near), (block[1], far), (block[0], far))
    yield polygon([frame.point(*corner) for corner in way], f"{fill(stretch)} way")
    if band[0] == band[1]:
        yield frame.line(band[0], "edge")
    else:
        yield frame.rect(band, frame.tensor, fill(stretch))
    yield frame.rect(block, frame.parts, fill(stretch))
    x, y = frame.point(sum(block) / 2, sum(frame.parts) / 2)
    left_out = stretch.part is None
    yield label(x, y + 4.5, "\N{HORIZONTAL ELLIPSIS}" if left_out else stretch.label, "label")
    size = stretch.label if left_out else dim_text(stretch.size)
    if not frame.across:
        yield label(frame.parts[1] + 8, y + 4.5, short(size, 10))
    elif len(size) * _CHAR <= block[1] - block[0] + _GAP:
        yield label(x, frame.parts[1] + 15, size, "middle")


def _grid(frame: _Frame) -> Iterator[str]:
    """The elements of the tensor, where they are few enough to be seen."""
    start, end = frame.bands[0], frame.bands[-1]
    dim = frame.plan.input_shape[frame.plan.axis]
    if frame.exact and dim <= _MOST_GRID:
        for number in range(1, dim):
            yield frame.line(start + (end - start) * number / dim, "grid")
    other = other_axis(frame.plan)
    beside = None if other is None else frame.plan.input_shape[other]
    if isinstance(beside, int) and beside <= _MOST_GRID:
        first, last = frame.tensor
        for number in range(1, beside):
            at = first + (last - first) * number / beside
            yield line(frame.point(start, at), frame.point(end, at), "grid")


def _axes(frame: _Frame, top: int) -> Iterator[str]:
    """The names of the two axes, each beside its direction."""
    y = top + 12
    cut, other = _axis(frame.plan, frame.plan.axis), other_axis(frame.plan)
    beside = "" if other is None else _axis(frame.plan, other)
    if frame.across:
        names = f"{cut} \N{RIGHTWARDS ARROW}"
        yield label(PAD, y, f"{names}   {beside} \N{DOWNWARDS ARROW}" if beside else names, "quiet")
    else:
        yield label(frame.tensor[0] - 8, y, f"{cut} \N{DOWNWARDS ARROW}", "quiet end")
        yield label(frame.tensor[0], y, f"{beside} \N{RIGHTWARDS ARROW}", "quiet")
    if not frame.exact:
        yield label(WIDTH - PAD, y, "not to scale", "quiet end")


def _axis(plan: Plan, axis: int) -> str:
    return f"axis {axis} ({short(dim_text(plan.input_shape[axis]), 10)})"


def _offsets(frame: _Frame) -> Iterator[str]:
    """The offsets at the borders of the parts, as far as there is room between them."""
    end = (frame.bands[-1], short(dim_text(frame.plan.input_shape[frame.plan.axis]), _LONGEST))
    kept: list[tuple[int, str]] = []
    for place, stretch in zip(frame.bands, frame.run, strict=False):
        if not kept or place - kept[-1][0] >= _room(frame, kept[-1][1]):
            kept.append((place, short(dim_text(stretch.offset), _LONGEST)))
    needed = _room(frame, end[1]) if frame.across else 0
    while kept and end[0] - kept[-1][0] < _room(frame, kept[-1][1]) + needed:
        kept.pop()
    for place, offset in [*kept, end]:
        x, y = frame.point(place, frame.tensor[0] - 6)
        if frame.across:
            yield label(x, y, offset, "tick end" if place == end[0] else "tick")
        else:
            yield label(x, y + 4, offset, "tick end")


def _room(frame: _Frame, offset: str) -> int:
    """What an offset takes of the cut axis."""
    return (len(offset) + 1) * _CHAR if frame.across else _LINE
