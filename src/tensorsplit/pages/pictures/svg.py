"""A plan as an SVG picture: self-contained, light and dark, readable by a screen reader."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

from tensorsplit.pages.pictures.drawing import drawing
from tensorsplit.pages.pictures.elements import PAD, WIDTH, label, short
from tensorsplit.pages.pictures.layout import (
    Plan,
    dim_text,
    heading,
    printable,
    remarks,
    shape_text,
    stretches,
)
from tensorsplit.pages.pictures.table import ROW, table
from tensorsplit.pages.pictures.theme import STYLE

_MOST_DRAWN = 10
_MOST_ROWS = 12
_MOST_TOLD = 20
_LONGEST_CAPTION = 40
_LONGEST_LINE = 54


def svg(plan: Plan, *, name: str = "cut") -> str:
    """A plan as an SVG document, which may also stand inside an HTML page.

    Args:
        plan: The plan.
        name: Starts the identifiers in the document; give each picture of one page its own.

    Returns:
        The document: text in UTF-8 without an XML declaration.
    """
    return sheet([(plan.operator, plan)], name=name)


def sheet(figures: Sequence[tuple[str, Plan]], *, name: str = "cut") -> str:
    """Several plans below each other as one SVG document.

    Args:
        figures: The caption and the plan of each; the operator version, or where it stands.
        name: Starts the identifiers in the document; give each picture of one page its own.

    Returns:
        The document: text in UTF-8 without an XML declaration.
    """
    elements: list[str] = []
    height = 0
    for caption, plan in figures:
        figure, depth = _figure(printable(caption), plan)
        elements += [f'<g transform="translate(0 {height})">', *figure, "</g>"]
        height += depth
    name = re.sub(r"[^\w-]", "-", name, flags=re.ASCII)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="ts-cut" role="img" width="100%"'
        f' viewBox="0 0 {WIDTH} {height}" aria-labelledby="{name}-title {name}-desc">'
    )
    lines = (
        head,
        f'<title id="{name}-title">{escape(_title(figures))}</title>',
        f'<desc id="{name}-desc">{escape(" ".join(_told(figures)))}</desc>',
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{height}"/>',
        *elements,
        "</svg>",
    )
    return "\n".join(lines) + "\n"


def _title(figures: Sequence[tuple[str, Plan]]) -> str:
    if len(figures) > 1:
        return f"{len(figures)} cuts"
    return "".join(f"{printable(caption)}: {heading(plan)}" for caption, plan in figures)


def _told(figures: Sequence[tuple[str, Plan]]) -> Iterator[str]:
    """The pictures in words."""
    for caption, plan in figures[:_MOST_TOLD]:
        if len(figures) > 1:
            yield f"{printable(caption)}: {heading(plan)}."
        for stretch in stretches(plan, _MOST_ROWS):
            if stretch.part is None:
                yield f"{stretch.label}."
            else:
                yield (
                    f"Part {stretch.label}: offset {dim_text(stretch.offset)},"
                    f" size {dim_text(stretch.size)}, shape {shape_text(stretch.shape)}."
                )
        yield from (f"{remark}." for remark in remarks(plan))


def _figure(caption: str, plan: Plan) -> tuple[list[str], int]:
    """One picture and its height."""
    cut = heading(plan) if caption == plan.operator else f"{plan.operator}: {heading(plan)}"
    elements = [
        label(PAD, 28, _end(caption, _LONGEST_CAPTION), "head"),
        label(PAD, 48, short(cut, _LONGEST_LINE)),
    ]
    y = 62
    run = stretches(plan, _MOST_DRAWN)
    if run:
        drawn, y = drawing(plan, run, y)
        elements += drawn
    for remark in remarks(plan):
        elements.append(label(PAD, y + 14, short(remark, _LONGEST_LINE), "quiet"))
        y += 18
    if run:
        rows = stretches(plan, _MOST_ROWS)
        elements += table(rows, y + 22)
        y += 22 + ROW * len(rows) + 6
    return elements, y + 10


def _end(text: str, most: int) -> str:
    """The end of a path says more than its start."""
    return text if len(text) <= most else f"\N{HORIZONTAL ELLIPSIS}{text[1 - most :]}"
