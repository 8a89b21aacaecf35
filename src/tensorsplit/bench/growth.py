"""How the cost grows: workloads that differ in one thing, and the plot of their times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tensorsplit.bench import words
from tensorsplit.bench.draw import (
    PAD,
    WIDTH,
    LogScale,
    around,
    colour,
    curve,
    document,
    marker,
)
from tensorsplit.bench.figures import Figures, Measured
from tensorsplit.bench.peers import PEERS
from tensorsplit.bench.workloads import Kind, Workload
from tensorsplit.pages.svg import _label as label
from tensorsplit.pages.svg import _line as line

_LEFT, _TOP, _BOTTOM = 76, 84, 384
_COLUMN = 172
_DASHES = {"out": "", "pooled": "dash", "fresh": "dot", "view": ""}


@dataclass(frozen=True, slots=True)
class Study:
    """Workloads that differ in one thing.

    Attributes:
        name: Starts the name of each workload, ``name:value``.
        title: What is shown.
        unit: What the value counts.
        workloads: The workloads, in the order of their values.
    """

    name: str
    title: str
    unit: str
    workloads: tuple[Workload, ...]


def _study(
    name: str,
    title: str,
    unit: str,
    values: Sequence[int],
    *,
    cut: Callable[[int], tuple[tuple[int, ...], int, tuple[int, ...]]],
    kind: Kind = "copy",
) -> Study:
    """A study from what makes the shape, the axis and the sizes for each value."""
    workloads = tuple(
        Workload(f"{name}:{value}", title, shape, "float32", axis, sizes, kind=kind)
        for value, (shape, axis, sizes) in ((value, cut(value)) for value in values)
    )
    return Study(name, title, unit, workloads)


def _halves(rank: int) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
    """2^22 elements in dimensions as alike as can be, the one in the middle cut in halves."""
    axis = rank // 2
    powers = [22 // rank + (number < 22 % rank) for number in range(rank)]
    shape = tuple(1 << power for power in powers)
    return shape, axis, (shape[axis] // 2,) * 2


_BLOCK_BYTES, _ELEMENT_BYTES = 3 * 256 * 4, 3 * 4

STUDIES = (
    _study(
        "blocks",
        "Time against bytes: rows of three parts of 256 floats",
        "bytes",
        [_BLOCK_BYTES << power for power in range(0, 17, 2)],
        cut=lambda value: ((value // _BLOCK_BYTES, 768), 1, (256,) * 3),
    ),
    _study(
        "elements",
        "Time against bytes: rows of three parts of one float",
        "bytes",
        [_ELEMENT_BYTES << power for power in range(8, 25, 2)],
        cut=lambda value: ((value // _ELEMENT_BYTES, 3), 1, (1,) * 3),
    ),
    _study(
        "parts",
        "Time against the number of parts: 16 MB, rows of 4096 floats",
        "parts",
        [1 << power for power in range(0, 13, 2)],
        cut=lambda value: ((1024, 4096), 1, (4096 // value,) * value),
    ),
    _study(
        "rank",
        "Time against the rank: 16 MB, the middle dimension in halves",
        "dimensions",
        range(1, 9),
        cut=_halves,
    ),
    _study(
        "calls",
        "Time of an eager call that returns views, against the number of parts",
        "parts",
        [1 << power for power in range(0, 11, 2)],
        cut=lambda value: ((value, 4), 0, (1,) * value),
        kind="views",
    ),
)
"""Every study."""


def value_of(workload: Workload) -> int:
    """The value in which a workload differs from the others of its study."""
    return int(workload.name.rpartition(":")[2])


def of_study(figures: Figures, study: Study) -> list[Measured]:
    """The figures of one study, in the order of its values."""
    found = [
        measured
        for measured in figures.measured
        if measured.workload.name.partition(":")[0] == study.name
    ]
    return sorted(found, key=lambda measured: value_of(measured.workload))


def plot(figures: Figures, study: Study) -> str:
    """The times of a study as an SVG document, both scales logarithmic.

    Args:
        figures: What was measured, of this study and perhaps of others.
        study: The study.

    Returns:
        The document: text in UTF-8 without an XML declaration.
    """
    measured = of_study(figures, study)
    curves = _curves(measured)
    times = [seconds for points in curves.values() for _, seconds in points]
    values = [value_of(entry.workload) for entry in measured]
    across = around(values, _LEFT, WIDTH - PAD, base=2)
    up = around(times, _BOTTOM, _TOP)
    body = [label(PAD, 28, study.title, "head"), *_grid(across, up, study.unit)]
    for number, (name, points) in enumerate(curves.items()):
        peer, _, mode = name.partition(" ")
        css = colour(PEERS.index(peer)) if mode else colour(-1)
        line_css = f"{css} {_DASHES.get(mode, '')}".rstrip()
        places = [(across(value), up(seconds)) for value, seconds in points]
        body.append(curve(places, line_css))
        body += [marker(*place, mode or "out", css, name) for place in places]
        x, y = PAD + _COLUMN * (number % 4), 50 + 18 * (number // 4)
        body.append(curve([(x, y - 4.5), (x + 28, y - 4.5)], line_css))
        body.append(label(x + 34, y, name))
    return document(study.name, study.title, _told(curves, study), _BOTTOM + 48, body)


def _curves(measured: Sequence[Measured]) -> dict[str, list[tuple[int, float]]]:
    """The value and the seconds of every point, by what was timed."""
    found: dict[str, list[tuple[int, float]]] = {}
    for entry in measured:
        value = value_of(entry.workload)
        found.setdefault(entry.workload.baseline, []).append((value, entry.baseline.median))
        for timed in entry.entries:
            if timed.seconds is not None:
                points = found.setdefault(f"{timed.peer} {timed.mode}", [])
                points.append((value, timed.seconds.median))
    return found


def _grid(across: LogScale, up: LogScale, unit: str) -> Iterator[str]:
    in_words = words.octets if unit == "bytes" else "{:g}".format
    for value in across.ticks:
        x = across(value)
        yield line((x, _TOP), (x, _BOTTOM), "grid")
        yield label(x, _BOTTOM + 18, in_words(value), "quiet middle")
    for seconds in up.ticks:
        y = up(seconds)
        yield line((_LEFT, y), (WIDTH - PAD, y), "grid")
        yield label(_LEFT - 8, y + 4, words.seconds(seconds), "quiet end")
    yield label((_LEFT + WIDTH - PAD) / 2, _BOTTOM + 36, unit, "quiet middle")


def _told(curves: dict[str, list[tuple[int, float]]], study: Study) -> Iterator[str]:
    for name, points in curves.items():
        told = ", ".join(f"{words.seconds(seconds)} at {value}" for value, seconds in points)
        yield f"{name}, {study.unit}: {told}."
