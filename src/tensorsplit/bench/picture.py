"""The figures as a picture: a row for each workload, a mark for each peer, on a log scale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensorsplit.bench import words
from tensorsplit.bench.draw import (
    PAD,
    WIDTH,
    LogScale,
    around,
    colour,
    document,
    legend,
    marker,
    whisker,
)
from tensorsplit.bench.figures import Figures, Measured, Timed
from tensorsplit.bench.peers import PEERS
from tensorsplit.bench.workloads import Kind
from tensorsplit.pages.svg import _label as label
from tensorsplit.pages.svg import _line as line

_LEFT = 196
_ROW = 10
_LEAST_BLOCK = 38
_TITLES: dict[Kind, str] = {
    "copy": "Copies: 1 is memcpy of the same bytes by two threads",
    "views": "Views: 1 is numpy.split",
    "plan": "Views by a prepared plan: 1 is plain slicing",
}
_MODES = {
    "out": "into buffers",
    "pooled": "from a pool",
    "fresh": "new memory",
    "view": "views",
}


def picture(figures: Figures, *, name: str = "bench") -> str:
    """The figures as an SVG document.

    Args:
        figures: What was measured.
        name: Starts the identifiers in the document; give each picture of one page its own.

    Returns:
        The document: text in UTF-8 without an XML declaration.
    """
    shown = [entry for measured in figures.measured for entry in _shown(measured)]
    ends = [end for entry in shown if entry.ratio for end in (entry.ratio.low, entry.ratio.high)]
    scale = around([1.0, 2.0, *ends], _LEFT, WIDTH - PAD)
    body = [*_head(shown)]
    y = 92.0
    for kind, title in _TITLES.items():
        chosen = [measured for measured in figures.measured if measured.workload.kind == kind]
        if chosen:
            rows, y = _section(title, chosen, scale, y)
            body += rows
    title = "Time of each cut, as a multiple of the fastest way to copy its bytes"
    return document(name, title, _told(figures), y + PAD, body)


def _shown(measured: Measured) -> list[Timed]:
    """What can be drawn of a workload."""
    return [entry for entry in measured.entries if entry.ratio and not entry.wrong]


def _colour(entry: Timed) -> str:
    return colour(PEERS.index(entry.peer))


def _head(shown: Sequence[Timed]) -> Iterator[str]:
    yield label(PAD, 28, "How long cuts take, and how much longer than the least", "head")
    peers = dict.fromkeys(entry.peer for entry in shown)
    marks = [(marker(0, 0, "out", colour(PEERS.index(peer)), peer), peer) for peer in peers]
    yield from legend(marks, PAD + 5, 50)
    modes = [mode for mode in _MODES if any(entry.mode == mode for entry in shown)]
    marks = [(marker(0, 0, mode, colour(-1), mode), _MODES[mode]) for mode in modes]
    yield from legend(marks, PAD + 5, 70)
    told = "median, and from the 10th to the 90th percentile"
    yield label(WIDTH - PAD, 70, told, "quiet end")


def _section(
    title: str, chosen: Sequence[Measured], scale: LogScale, y: float
) -> tuple[list[str], float]:
    """The workloads of one kind, and where they end."""
    heights = [max(_LEAST_BLOCK, _ROW * len(_shown(measured)) + 12) for measured in chosen]
    top, end = y + 30, y + 34 + sum(heights)
    rows = [label(PAD, y + 8, title, "name")]
    for tick in scale.ticks:
        x = scale(tick)
        rows.append(label(x, top - 4, f"{tick:g}", "quiet middle"))
        rows.append(line((x, top), (x, end), "one" if tick == 1 else "grid"))
    at = top + 4
    for measured, height in zip(chosen, heights, strict=True):
        rows += _row(measured, scale, at)
        at += height
    return rows, end + 10


def _row(measured: Measured, scale: LogScale, y: float) -> Iterator[str]:
    workload = measured.workload
    element = "strings" if workload.dtype == "object" else workload.dtype
    yield label(PAD, y + 14, workload.name, "name")
    shape = " \N{MULTIPLICATION SIGN} ".join(map(str, workload.shape))
    yield label(PAD, y + 28, f"{element} {shape}, {len(workload.sizes)} parts", "quiet")
    for number, entry in enumerate(_shown(measured)):
        if entry.ratio is None:
            continue
        at, css = y + 8 + _ROW * number, _colour(entry)
        yield whisker(scale(entry.ratio.low), scale(entry.ratio.high), at, css)
        yield marker(scale(entry.ratio.median), at, entry.mode, css, _words(entry))


def _words(entry: Timed) -> str:
    if entry.ratio is None:
        return ""
    middle = words.ratio(entry.ratio.median)
    return f"{entry.peer} {entry.mode}: {middle} ({words.span(entry.ratio)})"


def _told(figures: Figures) -> Iterator[str]:
    yield from words.about(figures.about)
    for measured in figures.measured:
        told = "; ".join(map(_words, _shown(measured)))
        yield f"{measured.workload.name}: {told}."
