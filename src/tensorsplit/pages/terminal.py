"""A plan as blocks of text: readable without colour, and at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tensorsplit.core.errors import printable
from tensorsplit.pages.layout import (
    Plan,
    Stretch,
    dim_text,
    extents,
    heading,
    is_across,
    other_axis,
    remarks,
    shape_text,
    stretches,
    table_rows,
    to_scale,
)

Span: TypeAlias = tuple[str, str]
"""Text, and its rich style."""

Line: TypeAlias = list[Span]

_COLOURS = ("#6fb3e0", "#e6c04b", "#7cc576", "#e88fa0", "#b49be0", "#ef9f5c")
PART_STYLES = tuple(f"#000000 on {colour}" for colour in _COLOURS)
"""The styles of the parts, in turn; a terminal with fewer colours shows the nearest it has."""

_QUIET = "dim"
_STRONG = "bold"
_MOST_ACROSS = 12
_MOST_DOWN = 8
_MOST_ROWS = 12
_ROOM_DOWN = 14
_LEAST_WIDTH = 40
_MOST_WIDTH = 100
_LONGEST_LABEL = 20


class _Box(NamedTuple):
    """The characters of the drawing: corners and joints as left, middle, right."""

    line: str
    side: str
    top: str
    middle: str
    bottom: str
    right: str
    down: str
    gap: str


_UNICODE = _Box("─", "│", "┌┬┐", "├┼┤", "└┴┘", "→", "↓", "…")
_ASCII = _Box("-", "|", "+++", "+++", "+++", "->", "v", "...")


@dataclass(frozen=True, slots=True)
class Picture:
    """A plan as a rich renderable; the colours, the width and the characters are the console's."""

    plan: Plan

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in lines(self.plan, options.max_width, ascii_only=options.ascii_only):
            yield Text.assemble(*line, no_wrap=True, overflow="ellipsis", end="\n")


def lines(plan: Plan, width: int = 80, *, ascii_only: bool = False) -> list[Line]:
    """A plan as lines of styled text: a heading, the picture, remarks, and the table of parts."""
    width = min(max(width, _LEAST_WIDTH), _MOST_WIDTH)
    box = _ASCII if ascii_only else _UNICODE
    drawn: list[Line] = [[(heading(plan), _STRONG)], []]
    run = stretches(plan, _MOST_ACROSS if is_across(plan) else _MOST_DOWN)
    if run:
        drawn += _across(plan, width, box) if is_across(plan) else _down(plan, run, width, box)
        drawn.append([])
    notes: list[Line] = [[(remark, _QUIET)] for remark in remarks(plan)]
    drawn += [*notes, []] if notes else []
    if run:
        drawn += _table(stretches(plan, _MOST_ROWS), box)
    return [_truncated(line, width, box) for line in drawn]


def _across(plan: Plan, width: int, box: _Box) -> Iterator[Line]:
    """The split axis from left to right: the parts side by side, their offsets below."""
    other = other_axis(plan)
    gutter = ["part", "size"]
    gutter += [] if other is None else [_axis_label(plan, other, box.down, box)]
    indent = max(map(cell_len, gutter)) + 1
    room = width - indent - 1
    run, least = _fitting(plan, room, box)
    room -= len(run)
    widths = extents(run, room - room % len(run), least)  # so that equal parts are drawn equal
    yield [(" " * indent, ""), (_axis_label(plan, plan.axis, box.right, box), _QUIET)]
    yield [(" " * indent + _rule(widths, box.line, box.top), "")]
    for name, labels in zip(gutter, _cells(run, len(gutter), box), strict=True):
        line: Line = [(name.rjust(indent - 1) + " ", _QUIET), (box.side, "")]
        for stretch, label, cell in zip(run, labels, widths, strict=True):
            line += [(_fit(label, cell, box), _style(stretch)), (box.side, "")]
        yield line
    yield [(" " * indent + _rule(widths, box.line, box.bottom), "")]
    ticks = _ticks(run, widths, dim_text(plan.input_shape[plan.axis]), width - indent)
    yield [(" " * indent + ticks, "")]
    if not to_scale(run, widths):
        yield [(" " * indent + "(not to scale)", _QUIET)]


def _fitting(plan: Plan, room: int, box: _Box) -> tuple[Sequence[Stretch], list[int]]:
    """As many stretches as have room for what is written in them."""
    for most in range(_MOST_ACROSS, 2, -1):
        run = stretches(plan, most)
        rows = _cells(run, 2, box)
        least = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
        if sum(least) + len(run) <= room:
            return run, least
    share = (room - len(run)) // len(run)
    return run, [min(length, share) for length in least]


def _cells(run: Sequence[Stretch], rows: int, box: _Box) -> list[list[str]]:
    """What stands in the cells, row by row: the part, its length, and blank rows."""
    parts = [f" {box.gap if each.part is None else each.label} " for each in run]
    sizes = [f" {each.label if each.part is None else dim_text(each.size)} " for each in run]
    return [parts, sizes, *([[""] * len(run)] * (rows - 2))]


def _rule(widths: Sequence[int], line: str, joints: str) -> str:
    return joints[0] + joints[1].join(line * width for width in widths) + joints[2]


def _ticks(run: Sequence[Stretch], widths: Sequence[int], end: str, room: int) -> str:
    """The offsets under the borders, as far as there is room between them."""
    end_at = min(sum(widths) + len(widths), room - cell_len(end))
    found, position = "", 0
    for stretch, width in zip(run, widths, strict=True):
        offset = dim_text(stretch.offset)
        follows = not found or cell_len(found) < position
        if follows and position + cell_len(offset) < end_at:
            found = found.ljust(position) + offset
        position += width + 1
    return found.ljust(end_at) + end


def _down(plan: Plan, run: Sequence[Stretch], width: int, box: _Box) -> Iterator[Line]:
    """The split axis from top to bottom: the parts below each other, their offsets on the right."""
    label = _axis_label(plan, plan.axis, box.down, box)
    indent = cell_len(label) + 1
    known = [stretch.size for stretch in run if isinstance(stretch.size, int)]
    heights = extents(run, min(max(len(run), sum(known)), _ROOM_DOWN), [1] * len(run))
    cells = [_block_label(stretch, box) for stretch in run]
    inner = min(max(24, *(cell_len(cell) + 2 for cell in cells)), width - indent - 14)
    other = other_axis(plan)
    if other is not None:
        yield [(" " * indent, ""), (_axis_label(plan, other, box.right, box), _QUIET)]
    gutter = label
    for number, (stretch, cell, height) in enumerate(zip(run, cells, heights, strict=True)):
        rule = _rule([inner], box.line, box.middle if number else box.top)
        yield [(" " * indent + rule, ""), (f" {dim_text(stretch.offset)}", "")]
        for row in range(height):
            yield [
                (gutter.ljust(indent), _QUIET),
                (box.side, ""),
                (_fit(f" {cell}" if row == 0 else "", inner, box), _style(stretch)),
                (box.side, ""),
            ]
            gutter = ""
    note = "" if to_scale(run, heights) else "  (not to scale)"
    end = f" {dim_text(plan.input_shape[plan.axis])}"
    yield [(" " * indent + _rule([inner], box.line, box.bottom), ""), (end, ""), (note, _QUIET)]


def _block_label(stretch: Stretch, box: _Box) -> str:
    if stretch.part is None:
        return f"{box.gap} {stretch.label}"
    name = stretch.label if stretch.label == "last" else f"part {stretch.label}"
    return f"{name}  {shape_text(stretch.shape)}{'  empty' if stretch.empty else ''}"


def _table(run: Sequence[Stretch], box: _Box) -> Iterator[Line]:
    rows = table_rows(run, box.gap)
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        cells = [set_cell_size(cell, width) for cell, width in zip(row, widths, strict=True)]
        style = _style(run[number - 1]) if number else _STRONG
        yield [(cells[0], style), ("  " + "  ".join(cells[1:]), _STRONG if number == 0 else "")]


def _axis_label(plan: Plan, axis: int, arrow: str, box: _Box) -> str:
    dim = _short(dim_text(plan.input_shape[axis]), _LONGEST_LABEL, box)
    return f"axis {axis} ({dim}) {arrow}"


def _style(stretch: Stretch) -> str:
    if stretch.part is None or stretch.empty:
        return _QUIET
    return PART_STYLES[stretch.part % len(PART_STYLES)]


def _fit(label: str, width: int, box: _Box) -> str:
    """The label in exactly that many columns; where it is longer, its blanks go first."""
    shown = label if cell_len(label) <= width else _short(label.strip(), width, box)
    return set_cell_size(shown, width)


def _short(label: str, width: int, box: _Box) -> str:
    """The label in at most that many columns."""
    if cell_len(label) <= width:
        return label
    return set_cell_size(label, max(width - len(box.gap), 0)) + box.gap[:width]


def _truncated(line: Line, width: int, box: _Box) -> Line:
    """The line in at most that many columns."""
    left, kept = width, []
    for part, style in line:
        shown = _short(printable(part), left, box)
        kept.append((shown, style))
        left -= cell_len(shown)
    return kept
