"""The elements of a picture in SVG, and the measures that all pictures share."""

from __future__ import annotations

from html import escape

PART_CLASSES = ("p0", "p1", "p2", "p3", "p4", "p5")
"""The classes of the parts, in turn; text on their colours has a contrast of 7:1 or more."""

WIDTH = 420
"""The width of a picture in its own units; a browser scales it to the room it has."""

PAD = 16
LONGEST_LINE = 54


def rect(corner: tuple[float, float], size: tuple[float, float], css: str) -> str:
    """Return a rectangle."""
    (x, y), (width, height) = corner, size
    return f'<rect class="{css}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"/>'


def label(x: float, y: float, text: str, css: str = "") -> str:
    """Return a line of text, escaped; `y` is its base line."""
    css = f' class="{css}"' if css else ""
    return f'<text x="{x:g}" y="{y:g}"{css}>{escape(text)}</text>'
