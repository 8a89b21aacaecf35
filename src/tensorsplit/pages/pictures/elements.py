"""SVG elements as text, and the measures that the drawing and the table share."""

from __future__ import annotations

from html import escape

from tensorsplit.pages.pictures.layout import Stretch
from tensorsplit.pages.pictures.theme import PART_CLASSES

WIDTH = 420
"""The width of a picture in its own units; a browser scales it to the room it has."""

PAD = 16
"""The margin on every side."""


def line(start: tuple[float, float], end: tuple[float, float], css: str) -> str:
    """A straight line."""
    return f'<path class="{css}" d="M{start[0]:g} {start[1]:g}L{end[0]:g} {end[1]:g}"/>'


def rect(corner: tuple[float, float], size: tuple[float, float], css: str) -> str:
    """A rectangle from its upper left corner."""
    (x, y), (width, height) = corner, size
    return f'<rect class="{css}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"/>'


def polygon(corners: list[tuple[float, float]], css: str) -> str:
    """A filled polygon."""
    points = " ".join(f"{x:g},{y:g}" for x, y in corners)
    return f'<polygon class="{css}" points="{points}"/>'


def label(x: float, y: float, text: str, css: str = "") -> str:
    """A line of text, escaped; `y` is its base line."""
    style = f' class="{css}"' if css else ""
    return f'<text x="{x:g}" y="{y:g}"{style}>{escape(text)}</text>'


def short(text: str, most: int) -> str:
    """The text in at most that many characters."""
    return text if len(text) <= most else f"{text[: most - 1]}\N{HORIZONTAL ELLIPSIS}"


def fill(stretch: Stretch) -> str:
    """The class that gives a stretch its colour."""
    if stretch.part is None:
        return "gap"
    colour = PART_CLASSES[stretch.part % len(PART_CLASSES)]
    return f"{colour} empty" if stretch.empty else colour
