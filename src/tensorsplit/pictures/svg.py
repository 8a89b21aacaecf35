"""A plan as an SVG picture: self-contained, light and dark, readable by a screen reader.

The tensor is drawn on one side and its parts, apart from each other, on the other; below them is a
table. The drawing is calculated along the split axis (*main*) and at a right angle to it (*cross*)
and only then turned into x and y: the last axis runs from left to right, any other downwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from itertools import accumulate
from typing import TypeAlias

from tensorsplit.core.dimensions import show_dim, show_shape
from tensorsplit.core.errors import printable
from tensorsplit.pictures.layout import (
    ELLIPSIS,
    Plan,
    Stretch,
    extents,
    fitting,
    heading,
    is_across,
    other_axis,
    remarks,
    shortened,
    stretches,
    table_rows,
    to_scale,
)
from tensorsplit.pictures.marks import LONGEST_LINE, PAD, PART_CLASSES, WIDTH, label, rect
from tensorsplit.pictures.refused import (
    RefusedSplit,
    describe_refused,
    refused_figure,
    refused_heading,
)

Drawn: TypeAlias = "Plan | RefusedSplit"

_MOST_DRAWN = 10
_MOST_ROWS = 12
_MOST_DESCRIBED = 20
_LONGEST_CAPTION = 40
_LONGEST_DIM = 10
_LONGEST_OFFSET = 12

_GAP = 6
_CHAR = 7
_LINE = 13
_LEAST_BLOCK = 20
_LEAST_BAND = 4
_MOST_GRID = 24

_ROW = 20
_COLUMN_GAP = 18
_LONGEST_CELL = 40


def svg(plan: Drawn, *, name: str = "split", styled: bool = True) -> str:
    """Draw one split as an SVG document; see `sheet`."""
    return sheet([(plan.operator, plan)], name=name, styled=styled)


def sheet(figures: Sequence[tuple[str, Drawn]], *, name: str = "split", styled: bool = True) -> str:
    """Draw splits with captions, below each other, as one SVG document without XML declaration.

    It may be part of an HTML page: `name` starts its identifiers, one for each picture of a page,
    and `styled` is False where the page has `style` already.
    """
    elements: list[str] = []
    height = 0
    figures = [(printable(caption), plan) for caption, plan in figures]
    titles = [f"{caption}: {_heading(plan)}" for caption, plan in figures]
    title = titles[0] if len(titles) == 1 else f"{len(titles)} splits"
    for caption, plan in figures:
        figure, depth = _figure(caption, plan)
        elements += [f'<g transform="translate(0 {height})">', *figure, "</g>"]
        height += depth
    name = re.sub(r"[^\w-]", "-", name, flags=re.ASCII)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="ts-split" role="img" width="{WIDTH}"'
        f' height="{height}" viewBox="0 0 {WIDTH} {height}"'
        f' aria-labelledby="{name}-title {name}-desc">'
    )
    lines = (
        head,
        f'<title id="{name}-title">{escape(title)}</title>',
        f'<desc id="{name}-desc">{escape(" ".join(_description(figures)))}</desc>',
        *([f"<style>{style()}</style>"] if styled else []),
        f'<rect class="paper" width="{WIDTH}" height="{height}"/>',
        *elements,
        "</svg>",
    )
    return "\n".join(lines) + "\n"


@cache
def style() -> str:
    """Return the style sheet; each rule is limited to the class of the pictures."""
    text = (files(__package__) / "picture.css").read_text(encoding="utf-8")
    return re.sub(r"\s*([{};:,])\s*", r"\1", text)


def _heading(drawn: Drawn) -> str:
    return refused_heading(drawn) if isinstance(drawn, RefusedSplit) else heading(drawn)


def _description(figures: Sequence[tuple[str, Drawn]]) -> Iterator[str]:
    """Describe the pictures for screen readers; of a single one, the title already does."""
    for caption, plan in figures[:_MOST_DESCRIBED]:
        if len(figures) > 1:
            yield f"{caption}: {_heading(plan)}."
        if isinstance(plan, RefusedSplit):
            yield from describe_refused(plan)
            continue
        for stretch in stretches(plan, _MOST_ROWS):
            if stretch.part is None:
                yield f"{stretch.label}."
            else:
                yield (
                    f"Part {stretch.label}: offset {show_dim(stretch.offset)},"
                    f" size {show_dim(stretch.size)}, shape {show_shape(stretch.shape)}."
                )
        yield from (f"{remark}." for remark in remarks(plan))


def _figure(caption: str, plan: Drawn) -> tuple[list[str], int]:
    """Draw one picture; return it and its height."""
    line = _heading(plan)
    if caption != plan.operator:
        line = f"{plan.operator}: {line}"
    if len(caption) > _LONGEST_CAPTION:  # the end of a path matters more than its start
        caption = ELLIPSIS + caption[1 - _LONGEST_CAPTION :]
    elements = [label(PAD, 28, caption, "head"), label(PAD, 48, shortened(line, LONGEST_LINE))]
    y = 62
    if isinstance(plan, RefusedSplit):
        bars, y = refused_figure(plan, y - 14)
        return elements + bars, y + 10
    drawn = stretches(plan, _MOST_DRAWN)
    if drawn:
        frame = _Drawing(plan, drawn, y)
        for number in range(len(drawn)):
            elements += _part(frame, number)
        elements += [*_grid(frame), *_axes(frame, y + 12), *_offsets(frame)]
        y = frame.parts[1] + 24 if frame.across else frame.blocks[-1][1] + 22
    for remark in remarks(plan):
        elements.append(label(PAD, y + 14, shortened(remark, LONGEST_LINE), "quiet"))
        y += 18
    if drawn:
        rows = stretches(plan, _MOST_ROWS)
        elements += _table(rows, y + 22)
        y += 22 + _ROW * len(rows) + 6
    return elements, y + 10


# The tensor and its parts


def _fill(stretch: Stretch) -> str:
    """Return the class that gives a stretch its colour."""
    if stretch.part is None:
        return "gap"
    colour = PART_CLASSES[stretch.part % len(PART_CLASSES)]
    return f"{colour} empty" if stretch.empty else colour


class _Drawing:
    """Where everything is, on the split axis and at a right angle to it (*cross*)."""

    def __init__(self, plan: Plan, run: Sequence[Stretch], top: int) -> None:
        self.plan, self.run = plan, run
        self.across = is_across(plan)  # whether the split axis runs from left to right
        gaps = _GAP * (len(run) - 1)
        if self.across:
            start, room = PAD, WIDTH - 2 * PAD - gaps
            depth = 28 if other_axis(plan) is None else 52
            self.tensor = (top + 36, top + 36 + depth)  # where it starts and ends, cross
            self.parts = (top + 62 + depth, top + 62 + 2 * depth)  # and the parts taken out of it
        else:
            start, room = top + 24, max(150, 26 * len(run))
            self.tensor, self.parts = (112, 212), (252, 332)
        bands = extents(run, room, [0 if stretch.empty else _LEAST_BAND for stretch in run])
        blocks = extents(run, room, [_LEAST_BLOCK] * len(run))
        starts = accumulate((length + _GAP for length in blocks), initial=start)
        # The borders between the parts in the tensor, and where each part taken out of it lies
        self.bands = list(accumulate(bands, initial=start + gaps // 2))
        self.blocks = [(at, at + length) for at, length in zip(starts, blocks, strict=False)]
        self.exact = to_scale(run, bands)

    def point(self, main: float, cross: float) -> tuple[float, float]:
        """Return the x and y of a position on the two axes."""
        return (main, cross) if self.across else (cross, main)

    def line(self, start: tuple[float, float], end: tuple[float, float], css: str) -> str:
        """Return a line between two positions on the two axes."""
        (x1, y1), (x2, y2) = self.point(*start), self.point(*end)
        return f'<path class="{css}" d="M{x1:g} {y1:g}L{x2:g} {y2:g}"/>'

    def border(self, main: float, css: str) -> str:
        """Return a line through the tensor at a right angle to the split axis."""
        return self.line((main, self.tensor[0]), (main, self.tensor[1]), css)

    def rect(self, main: Sequence[int], cross: Sequence[int], css: str) -> str:
        """Return a rectangle between two positions on each axis."""
        size = self.point(main[1] - main[0], cross[1] - cross[0])
        return rect(self.point(main[0], cross[0]), size, css)


def _part(frame: _Drawing, number: int) -> Iterator[str]:
    """Yield a part: in the tensor, taken out of it, and the link between the two."""
    stretch, band, block = frame.run[number], frame.bands[number : number + 2], frame.blocks[number]
    near, far = frame.tensor[1], frame.parts[0]
    corners = ((band[0], near), (band[1], near), (block[1], far), (block[0], far))
    points = " ".join("{:g},{:g}".format(*frame.point(*corner)) for corner in corners)
    yield f'<polygon class="{_fill(stretch)} link" points="{points}"/>'
    if band[0] == band[1]:
        yield frame.border(band[0], "edge")
    else:
        yield frame.rect(band, frame.tensor, _fill(stretch))
    yield frame.rect(block, frame.parts, _fill(stretch))
    x, y = frame.point(sum(block) / 2, sum(frame.parts) / 2)
    left_out = stretch.part is None
    yield label(x, y + 4.5, ELLIPSIS if left_out else stretch.label, "label")
    size = stretch.label if left_out else show_dim(stretch.size)
    if not frame.across:
        yield label(frame.parts[1] + 8, y + 4.5, shortened(size, _LONGEST_DIM))
    elif len(size) * _CHAR <= block[1] - block[0] + _GAP:
        yield label(x, frame.parts[1] + 15, size, "middle")


def _grid(frame: _Drawing) -> Iterator[str]:
    """Yield the elements of the tensor, if they are few enough to be seen."""
    start, end = frame.bands[0], frame.bands[-1]
    dim = frame.plan.input_shape[frame.plan.axis]
    if frame.exact and isinstance(dim, int) and dim <= _MOST_GRID:
        for number in range(1, dim):
            yield frame.border(start + (end - start) * number / dim, "grid")
    other = other_axis(frame.plan)
    beside = None if other is None else frame.plan.input_shape[other]
    if isinstance(beside, int) and beside <= _MOST_GRID:
        first, last = frame.tensor
        for number in range(1, beside):
            at = first + (last - first) * number / beside
            yield frame.line((start, at), (end, at), "grid")


def _axes(frame: _Drawing, y: int) -> Iterator[str]:
    """Yield the names of the two axes, each beside its direction."""
    main, other = _axis(frame.plan, frame.plan.axis), other_axis(frame.plan)
    cross = "" if other is None else _axis(frame.plan, other)
    if frame.across:
        names = f"{main} \N{RIGHTWARDS ARROW}"
        yield label(PAD, y, f"{names}   {cross} \N{DOWNWARDS ARROW}" if cross else names, "quiet")
    else:
        yield label(frame.tensor[0] - 8, y, f"{main} \N{DOWNWARDS ARROW}", "quiet end")
        yield label(frame.tensor[0], y, f"{cross} \N{RIGHTWARDS ARROW}", "quiet")
    if not frame.exact:
        yield label(WIDTH - PAD, y, "not to scale", "quiet end")


def _axis(plan: Plan, axis: int) -> str:
    return f"axis {axis} ({shortened(show_dim(plan.input_shape[axis]), _LONGEST_DIM)})"


def _offsets(frame: _Drawing) -> Iterator[str]:
    """Yield the offsets at the borders of the parts, as far as there is room between them."""

    def room(offset: str) -> int:
        return (len(offset) + 1) * _CHAR if frame.across else _LINE

    shown = [shortened(show_dim(stretch.offset), _LONGEST_OFFSET) for stretch in frame.run]
    dim = shortened(show_dim(frame.plan.input_shape[frame.plan.axis]), _LONGEST_OFFSET)
    end = frame.bands[-1]
    last = end - room(dim) if frame.across else end
    for place, offset in [*fitting(zip(frame.bands, shown, strict=False), last, room), (end, dim)]:
        x, y = frame.point(place, frame.tensor[0] - 6)
        if frame.across:
            yield label(x, y, offset, "tick end" if place == end else "tick")
        else:
            yield label(x, y + 4, offset, "tick end")


# The table


def _table(run: Sequence[Stretch], y: int) -> Iterator[str]:
    """Draw the parts as rows: number, offset, size and shape; `y` is the header's base line."""
    rows = table_rows(run)
    columns = list(_columns(rows))
    for number, row in enumerate(rows):
        stretch = run[number - 1] if number else None
        quiet = stretch is None or stretch.part is None
        if stretch is not None and not quiet:
            yield rect((PAD, y - 10), (11, 11), _fill(stretch))
        for (x, most), cell in zip(columns, row, strict=True):
            if cell:
                yield label(x, y, shortened(cell, most), "quiet" if quiet else "")
        y += _ROW


def _columns(rows: Sequence[tuple[str, ...]]) -> Iterator[tuple[float, int]]:
    """Return where each column starts, and how many characters it holds; wide ones are cut."""
    columns = list(zip(*rows, strict=True))
    most = [_LONGEST_CELL] * len(columns)
    room = WIDTH - 2 * PAD - len(columns) * _COLUMN_GAP
    while True:
        widths = [
            max(_width(shortened(cell, chars)) for cell in column)
            for column, chars in zip(columns, most, strict=True)
        ]
        if sum(widths) <= room:
            break
        most[widths.index(max(widths))] -= 1
    starts = accumulate((width + _COLUMN_GAP for width in widths), initial=PAD + _COLUMN_GAP)
    return zip(starts, most, strict=False)


def _width(text: str) -> float:
    """About how wide a text is in the widest of the usual fonts."""
    return sum(8.4 if char.isdigit() or char.isupper() else 6.6 for char in text)
