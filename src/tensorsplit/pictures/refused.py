"""A split that is refused, as a picture: what does not fit the dimension is red.

The dimension is drawn as a bar, and below it each length that was requested, where it would start.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from textwrap import wrap

from tensorsplit.core.dimensions import Shape, show_shape
from tensorsplit.core.errors import SplitError
from tensorsplit.pictures.marks import LONGEST_LINE, PAD, PART_CLASSES, WIDTH, label, rect

_LEFT, _RIGHT = PAD + 66, 60  # the room for the names of the bars, and for their lengths
_BAR, _ROW = 22, 28
_MOST_ROWS = 10


@dataclass(frozen=True, slots=True)
class RefusedSplit:
    """A split that is refused, and as much as is known of what was requested.

    Attributes:
        operator: The operator version.
        input_shape: The shape of the data.
        axis: The axis, counted from the front.
        dim: The dimension of the axis.
        sizes: The lengths that were requested, which may be negative; none if they are not known.
        refusal: Why it is refused.
    """

    operator: str
    input_shape: Shape
    axis: int
    dim: int
    sizes: tuple[int, ...]
    refusal: SplitError


def refused_heading(split: RefusedSplit) -> str:
    """Return the split in one line."""
    return f"axis {split.axis} ({split.dim}) of {show_shape(split.input_shape)}: refused"


def describe_refused(split: RefusedSplit) -> Iterator[str]:
    """Describe the picture for a screen reader."""
    if split.sizes:
        yield f"Requested lengths: {', '.join(map(str, split.sizes))}."
    yield f"{split.refusal.code}: {split.refusal.problem}. {split.refusal.fix}".strip()


def refused_figure(split: RefusedSplit, top: int) -> tuple[list[str], int]:
    """Draw the bars and the reason from a height on; return them and where they end."""
    elements = list(_bars(split, top))
    rows = min(len(split.sizes), _MOST_ROWS) + (len(split.sizes) > _MOST_ROWS) + _falls_short(split)
    y = top + 34 + _ROW * (1 + rows)
    reason = f"{split.refusal.code}: {split.refusal.problem}"
    for css, text in (("bad", reason), ("quiet", split.refusal.fix)):
        for line in wrap(text, LONGEST_LINE):
            elements.append(label(PAD, y + 8, line, css))
            y += 18
    return elements, y


def _falls_short(split: RefusedSplit) -> bool:
    return bool(split.sizes) and 0 <= sum(split.sizes) < split.dim


def _bars(split: RefusedSplit, top: int) -> Iterator[str]:
    ends = [0, *accumulate(split.sizes)]
    low, high = min(ends), max(*ends, split.dim, 1)
    room = WIDTH - _LEFT - _RIGHT

    def at(place: int) -> float:
        return round(_LEFT + room * (place - low) / (high - low), 1)

    def bar(row: int, start: int, end: int, css: str) -> str:
        y = top + 24 + _ROW * row
        return rect((at(start), y), (max(at(end) - at(start), 3), _BAR), css)

    def name(row: int, text: str, css: str = "") -> str:
        return label(PAD, top + 40 + _ROW * row, text, css)

    def length(row: int, text: str, css: str = "") -> str:
        return label(WIDTH - _RIGHT + 10, top + 40 + _ROW * row, text, css)

    yield from (name(0, "data"), bar(0, 0, split.dim, "gap"), length(0, str(split.dim)))
    for number, (start, end) in enumerate(list(pairwise(ends))[:_MOST_ROWS]):
        row, size = number + 1, end - start
        inside = (min(max(start, 0), split.dim), min(max(end, 0), split.dim))
        fits = size >= 0 and start >= 0 and end <= split.dim
        yield name(row, f"part {number}")
        if not fits:
            yield bar(row, min(start, end), max(start, end), "bad")
        if fits or inside[1] > inside[0]:
            css = PART_CLASSES[number % len(PART_CLASSES)]
            yield bar(row, *inside, css if size else f"{css} empty")
        yield length(row, str(size), "" if fits else "bad")
    row = min(len(split.sizes), _MOST_ROWS) + 1
    if len(split.sizes) > _MOST_ROWS:
        yield name(row, f"and {len(split.sizes) - _MOST_ROWS} more", "quiet")
        row += 1
    if _falls_short(split):
        yield from (name(row, "left over", "bad"), bar(row, ends[-1], split.dim, "bad"))
        yield length(row, str(split.dim - ends[-1]), "bad")
