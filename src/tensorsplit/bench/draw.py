"""What the two pictures share: a logarithmic scale, colours for light and dark, the document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

from tensorsplit.pages.svg import _label as label
from tensorsplit.pages.svg import _line as line

WIDTH = 760
"""The width of a picture in its own units; a browser scales it to the room it has."""

PAD = 16
"""The margin on every side."""

_LIGHT = ("#0b62b0", "#9a5b00", "#b3261e", "#1b7a3d", "#6a3fb5", "#5c6670")
_DARK = ("#6cb4f5", "#f0b450", "#ff8f85", "#6fd08c", "#bf9dff", "#b4bdc7")

_PLAIN = (
    ".ts-bench{max-width:900px;height:auto;display:block;margin:0 auto;"
    "font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;"
    "font-size:13px}"
    ".ts-bench:root{background:#ffffff}"
    ".ts-bench text{fill:#1b1f24}"
    ".ts-bench .head{font-size:16px;font-weight:600}"
    ".ts-bench .name{font-weight:600}"
    ".ts-bench .middle{text-anchor:middle}"
    ".ts-bench .end{text-anchor:end}"
    ".ts-bench .quiet{font-size:11px;fill:#4d5660}"
    ".ts-bench .paper{fill:#ffffff}"
    ".ts-bench .grid{stroke:#1b1f24;stroke-opacity:.16;stroke-width:1}"
    ".ts-bench .one{stroke:#1b1f24;stroke-opacity:.7;stroke-width:1.5}"
    ".ts-bench .mark,.ts-bench .curve{stroke-width:1.8;stroke-linejoin:round}"
    ".ts-bench .curve{fill:none}"
    ".ts-bench .dash{stroke-dasharray:6 4}"
    ".ts-bench .dot{stroke-dasharray:1.5 4;stroke-linecap:round}"
)
_PLAIN_DARK = (
    ".ts-bench:root{background:#12161b}"
    ".ts-bench text{fill:#f0f3f6}"
    ".ts-bench .quiet{fill:#b4bdc7}"
    ".ts-bench .paper{fill:#12161b}"
    ".ts-bench .grid,.ts-bench .one{stroke:#f0f3f6}"
)


def colour(number: int) -> str:
    """The class that gives the entry of that number its colour."""
    return f"c{number % len(_LIGHT)}"


def _colours(values: Sequence[str], paper: str) -> str:
    return "".join(
        f".ts-bench .c{number}{{stroke:{value};fill:{value}}}"
        f".ts-bench .curve.c{number}{{fill:none}}.ts-bench .c{number}.hollow{{fill:{paper}}}"
        for number, value in enumerate(values)
    )


_STYLE = (
    f"{_PLAIN}{_colours(_LIGHT, '#ffffff')}"
    f"@media (prefers-color-scheme:dark){{{_PLAIN_DARK}{_colours(_DARK, '#12161b')}}}"
)


@dataclass(frozen=True, slots=True)
class LogScale:
    """A logarithmic scale from values to places.

    Attributes:
        low: The least value.
        high: The greatest value.
        start: Where the least value lies.
        end: Where the greatest value lies.
        base: 10 for ticks at 1, 2 and 5; 2 for ticks at powers of two.
    """

    low: float
    high: float
    start: float
    end: float
    base: int = 10

    def __call__(self, value: float) -> float:
        """The place of a value; what lies outside is put at the end."""
        value = min(max(value, self.low), self.high)
        share = (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        return round(self.start + share * (self.end - self.start), 1)

    @property
    def ticks(self) -> list[float]:
        """Round values, as many as there is room for."""
        first, last = floor(log10(self.low)), ceil(log10(self.high))
        if self.base == 2:
            powers = [2.0**power for power in range(-40, 60)]
            inside = [value for value in powers if self.low <= value <= self.high]
            return inside[:: ceil(len(inside) / 8)]
        digits = (1, 2, 5) if last - first <= 4 else (1,)
        values = [digit * 10.0**power for power in range(first, last + 1) for digit in digits]
        return [value for value in values if self.low <= value <= self.high]


def around(values: Iterable[float], start: float, end: float, base: int = 10) -> LogScale:
    """A scale that holds all the values, with a little room on both sides."""
    known = sorted(values)
    return LogScale(known[0] / 1.15, known[-1] * 1.15, start, end, base)


def marker(x: float, y: float, mode: str, css: str, told: str) -> str:
    """A mark whose form says the mode, with a text that a browser shows beside the pointer."""
    shapes: Mapping[str, str] = {
        "out": f'<circle class="mark {css}" cx="{x:g}" cy="{y:g}" r="3.6"/>',
        "pooled": f'<path class="mark {css}" d="M{x - 4.6:g} {y:g}l4.6-4.6 4.6 4.6-4.6 4.6z"/>',
        "fresh": f'<circle class="mark {css} hollow" cx="{x:g}" cy="{y:g}" r="3.4"/>',
        "view": f'<path class="mark {css}" d="M{x - 3.4:g} {y - 3.4:g}h6.8v6.8h-6.8z"/>',
    }
    return f"<g><title>{escape(told)}</title>{shapes[mode]}</g>"


def whisker(start: float, end: float, y: float, css: str) -> str:
    """A line from the 10th to the 90th percentile."""
    return line((start, y), (end, y), f"mark {css}")


def curve(points: Sequence[tuple[float, float]], css: str) -> str:
    """A line through all the points."""
    path = "L".join(f"{x:g} {y:g}" for x, y in points)
    return f'<path class="curve {css}" d="M{path}"/>'


def legend(entries: Sequence[tuple[str, str]], x: float, y: float) -> Iterator[str]:
    """Marks and their names, in one line.

    Args:
        entries: Each mark, drawn at (0, 0), and its name.
        x: Where the line begins.
        y: Its base line.
    """
    for mark, name in entries:
        yield f'<g transform="translate({x:g} {y - 4.5:g})">{mark}</g>'
        yield label(x + 10, y, name)
        x += 34 + 7.4 * len(name)


def document(name: str, title: str, told: Iterable[str], height: float, body: Iterable[str]) -> str:
    """The picture as a document of its own, which may also stand inside an HTML page.

    Args:
        name: Starts the identifiers; give each picture of one page its own.
        title: What it shows.
        told: The same in sentences, for those who can't see it.
        height: Its height.
        body: Its elements.
    """
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="ts-bench" role="img" width="100%"'
        f' viewBox="0 0 {WIDTH} {height:g}" aria-labelledby="{name}-title {name}-desc">'
    )
    lines = (
        head,
        f'<title id="{name}-title">{escape(title)}</title>',
        f'<desc id="{name}-desc">{escape(" ".join(told))}</desc>',
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{height:g}"/>',
        *body,
        "</svg>",
    )
    return "\n".join(lines) + "\n"
