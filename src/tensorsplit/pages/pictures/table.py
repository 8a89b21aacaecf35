"""The table of parts under an SVG drawing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from tensorsplit.pages.pictures.elements import PAD, WIDTH, fill, label, rect, short
from tensorsplit.pages.pictures.layout import Stretch, dim_text, shape_text

ROW = 20
"""The height of a row."""

_GAP = 18
_ROOM = WIDTH - 2 * PAD - 4 * _GAP
_LONGEST = 40
_DIGIT = 8.4
_LETTER = 6.6


def table(run: Sequence[Stretch], y: int) -> Iterator[str]:
    """The parts as rows: number, offset, size and shape.

    Args:
        run: The stretches to list, at least one.
        y: The base line of the header; each row is `ROW` below the one before.
    """
    rows = [("part", "offset", "size", "shape"), *map(_cells, run)]
    columns = _columns(rows)
    for number, row in enumerate(rows):
        stretch = run[number - 1] if number else None
        quiet = stretch is None or stretch.part is None
        if stretch is not None and not quiet:
            yield rect((PAD, y - 10), (11, 11), fill(stretch))
        for (x, most), cell in zip(columns, row, strict=True):
            if cell:
                yield label(x, y, short(cell, most), "quiet" if quiet else "")
        y += ROW


def _cells(stretch: Stretch) -> tuple[str, str, str, str]:
    if stretch.part is None:
        return ("\N{HORIZONTAL ELLIPSIS}", stretch.label, "", "")
    offset, size = dim_text(stretch.offset), dim_text(stretch.size)
    return (stretch.label, offset, size, shape_text(stretch.shape))


def _columns(rows: Sequence[tuple[str, ...]]) -> list[tuple[float, int]]:
    """Where each column starts, and how many characters it holds; the widest give way."""
    columns = list(zip(*rows, strict=True))
    most = [min(max(map(len, column)), _LONGEST) for column in columns]
    widths = [_width(column, chars) for column, chars in zip(columns, most, strict=True)]
    while sum(widths) > _ROOM:
        widest = widths.index(max(widths))
        most[widest] -= 1
        widths[widest] = _width(columns[widest], most[widest])
    starts = accumulate((width + _GAP for width in widths), initial=PAD + _GAP)
    return list(zip(starts, most, strict=False))


def _width(column: Sequence[str], chars: int) -> float:
    """About how wide a column is in the widest of the usual fonts."""
    return max(
        sum(_DIGIT if char.isdigit() or char.isupper() else _LETTER for char in short(cell, chars))
        for cell in column
    )
