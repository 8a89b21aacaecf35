"""A plan as blocks of text: readable without colour, and at 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from rich.box import SQUARE
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tensorsplit.core.dimensions import show_dim, show_shape
from tensorsplit.core.errors import ENGLISH, Words
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
    stretches,
    table_rows,
    to_scale,
)

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

_ASCII = str.maketrans(
    dict.fromkeys("┌┬┐├┼┤└┴┘", "+") | {"─": "-", "│": "|", "→": "->", "↓": "v", ELLIPSIS: "~"}
)
"""The characters of the drawing, where a terminal has only those of ASCII."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A plan as a rich renderable; the colours, the width and the characters are the console's."""

    plan: Plan
    words: Words = ENGLISH

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        drawn = lines(self.plan, options.max_width, self.words, ascii_only=options.ascii_only)
        yield Text("\n", no_wrap=True, overflow="ellipsis").join(drawn)


def lines(
    plan: Plan, width: int = 80, words: Words = ENGLISH, *, ascii_only: bool = False
) -> list[Text]:
    """Return a plan as lines of text: a heading, the picture, remarks, and the table of parts."""
    width = min(max(width, _LEAST_WIDTH), _MOST_WIDTH)
    drawn = [Text(heading(plan, words), _STRONG)]
    notes = [Text(remark, _QUIET) for remark in remarks(plan, words)]
    draw = _across if is_across(plan) else _down
    blocks: list[Iterable[Text]] = [notes]
    if stretches(plan, _MOST_ROWS):
        blocks = [draw(plan, width, words), notes, _table(plan, width, words)]
    for block in filter(None, map(list, blocks)):
        drawn += [Text(), *block]
    for line in drawn:
        line.truncate(width, overflow="ellipsis")
        if ascii_only:
            line.plain = line.plain.translate(_ASCII)
            line.truncate(width)  # an arrow is longer in ASCII
    return drawn


def _across(plan: Plan, width: int, words: Words) -> Iterator[Text]:
    """Yield the split axis from left to right: the parts side by side, their offsets below."""
    other = other_axis(plan)
    gutter = [words.text("part"), words.text("size")]
    gutter += [] if other is None else [_axis(plan, other, "↓", words)]
    indent = max(map(cell_len, gutter)) + 1
    run, least = _run_across(plan, width - indent - 1)
    room = width - indent - 1 - len(run)
    widths = extents(run, room - room % len(run), least)  # so that equal parts are drawn equal
    margin = " " * indent
    yield Text.assemble(margin, (_axis(plan, plan.axis, "→", words), _QUIET))
    yield Text(margin + SQUARE.get_top(widths))
    rows = [*zip(*(_cells(stretch) for stretch in run), strict=True), ("",) * len(run)]
    for name, row in zip(gutter, rows, strict=False):
        blanks = " " * (indent - 1 - cell_len(name))
        line = Text.assemble((f"{blanks}{name} ", _QUIET), SQUARE.mid_left)
        for stretch, cell, columns in zip(run, row, widths, strict=True):
            line.append(_fit(cell, columns), _style(stretch)).append(SQUARE.mid_left)
        yield line
    yield Text(margin + SQUARE.get_bottom(widths))
    end = show_dim(plan.input_shape[plan.axis])
    end_at = min(sum(widths) + len(widths), width - indent - cell_len(end))
    borders = accumulate((columns + 1 for columns in widths), initial=0)
    offsets = [(at, show_dim(stretch.offset)) for at, stretch in zip(borders, run, strict=False)]
    ticks = ""
    for place, offset in fitting(offsets, end_at, lambda offset: cell_len(offset) + 1):
        ticks = ticks.ljust(place) + offset
    yield Text(margin + ticks.ljust(end_at) + end)
    if not to_scale(run, widths):
        yield Text(margin + words.text("(not to scale)"), _QUIET)


def _run_across(plan: Plan, room: int) -> tuple[Sequence[Stretch], list[int]]:
    """Return as many stretches as have room for their text, and how much each needs."""
    for most in range(_MOST_ACROSS, 2, -1):
        run = stretches(plan, most)
        least = [max(map(cell_len, _cells(stretch))) for stretch in run]
        if sum(least) + len(run) <= room:
            return run, least
    share = (room - len(run)) // len(run)
    return run, [min(length, share) for length in least]


def _cells(stretch: Stretch) -> tuple[str, str]:
    """Return the text in a stretch: the part, and its length."""
    if stretch.part is None:
        return f" {ELLIPSIS} ", f" {stretch.label} "
    return f" {stretch.label} ", f" {show_dim(stretch.size)} "


def _down(plan: Plan, width: int, words: Words) -> Iterator[Text]:
    """Draw the axis from top to bottom: parts below each other, their offsets on the right."""
    run = stretches(plan, _MOST_DOWN)
    gutter, other = _axis(plan, plan.axis, "↓", words), other_axis(plan)
    indent = cell_len(gutter) + 1
    margin = " " * indent
    known = [stretch.size for stretch in run if isinstance(stretch.size, int)]
    heights = extents(run, min(max(len(run), sum(known)), _ROOM_DOWN), [1] * len(run))
    cells = [_block_label(stretch, words) for stretch in run]
    inner = min(max(24, *(cell_len(cell) + 2 for cell in cells)), width - indent - 14)
    if other is not None:
        yield Text.assemble(margin, (_axis(plan, other, "→", words), _QUIET))
    border = SQUARE.get_top([inner])
    for stretch, cell, height in zip(run, cells, heights, strict=True):
        yield Text(f"{margin}{border} {show_dim(stretch.offset)}")
        for text in (f" {cell}", *[""] * (height - 1)):
            yield Text.assemble(
                (set_cell_size(gutter, indent), _QUIET),
                SQUARE.mid_left,
                (_fit(text, inner), _style(stretch)),
                SQUARE.mid_left,
            )
            gutter = ""
        border = SQUARE.get_row([inner], "row")
    note = "" if to_scale(run, heights) else f"  {words.text('(not to scale)')}"
    end = show_dim(plan.input_shape[plan.axis])
    yield Text.assemble(f"{margin}{SQUARE.get_bottom([inner])} {end}", (note, _QUIET))


def _block_label(stretch: Stretch, words: Words) -> str:
    if stretch.part is None:
        return f"{ELLIPSIS} {stretch.label}"
    is_last = stretch.label == "last"
    name = words.text("last") if is_last else words.text("part {n}", n=stretch.label)
    empty = f"  {words.text('empty')}" if stretch.empty else ""
    return f"{name}  {show_shape(stretch.shape)}{empty}"


def _table(plan: Plan, width: int, words: Words) -> Iterator[Text]:
    """Draw a row for each part; columns without room beside the others go on lines below."""
    run = stretches(plan, _MOST_ROWS)
    heads, *rows = table_rows(run, words)
    widths = [max(map(cell_len, column)) for column in zip(heads, *rows, strict=True)]
    ends = list(accumulate(width + 2 for width in widths))
    beside = max(1, sum(end - 2 <= width for end in ends))
    styles = ((_style(stretch), "") for stretch in run)
    for row, (first, rest) in zip((heads, *rows), ((_STRONG, _STRONG), *styles), strict=True):
        part, *cells = map(set_cell_size, row[:beside], widths)
        yield Text.assemble((part, first), *(("  " + cell, rest) for cell in cells))
        if row is not heads:
            below = zip(heads[beside:], row[beside:], strict=True)
            yield from (Text(f"  {head} {cell}") for head, cell in below if cell)


def _style(stretch: Stretch) -> str:
    if stretch.part is None or stretch.empty:
        return _QUIET
    return PART_STYLES[stretch.part % len(PART_STYLES)]


def _axis(plan: Plan, axis: int, arrow: str, words: Words) -> str:
    """Return the name of an axis, and its direction."""
    dim = _short(show_dim(plan.input_shape[axis]), _LONGEST_LABEL)
    return f"{words.text('axis {axis} ({dimension})', axis=axis, dimension=dim)} {arrow}"


def _fit(label: str, width: int) -> str:
    """Return the label in exactly that many columns; where it is longer, its blanks go first."""
    return set_cell_size(label if cell_len(label) <= width else _short(label.strip(), width), width)


def _short(label: str, width: int) -> str:
    """Return the label in at most that many columns."""
    return label if cell_len(label) <= width else set_cell_size(label, width - 1) + ELLIPSIS
