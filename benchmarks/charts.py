"""Charts of published figures, drawn by matplotlib (``pip install '.[bench]'``).

Usage: ``python benchmarks/charts.py bench.json bench.svg``, where the JSON is what
``tensorsplit bench --format json -o bench.json`` wrote.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import msgspec
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from studies import STUDIES, Study

from tensorsplit.bench.figures import Figures, in_bytes, in_seconds
from tensorsplit.bench.peers import OURS_ON, PEERS
from tensorsplit.bench.timing import Measured, Spread, Timed

TITLES = {
    "copy": "Copies: 1 is memcpy of the same bytes by two threads",
    "join": "Joins: 1 is memcpy of the same bytes by two threads",
    "views": "Views: 1 is numpy.split",
    "plan": "Views by a prepared plan: 1 is plain slicing",
}
MODES = {
    "out": ("o", "full", "-", "into buffers"),
    "pooled": ("D", "full", "--", "from a pool"),
    "fresh": ("o", "none", ":", "new memory"),
    "view": ("s", "full", "-", "views"),
}
STYLE: dict[Any, Any] = {
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 9,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "tensorsplit",  # the same figures give the same file
}
ROW = 0.11  # inches for each mark
BASELINE = "0.35"  # grey
_PEERS = (*PEERS, *OURS_ON)


def read(path: Path) -> Figures:
    """The figures that were written as JSON."""
    return msgspec.json.decode(path.read_bytes(), type=Figures)


def value_of(measured: Measured) -> int:
    """The value in which a workload differs from the others of its study."""
    return int(measured.workload.name.partition(":")[2])


def of_study(figures: Figures, study: Study) -> list[Measured]:
    """The figures of one study, in the order of its values."""
    found = [each for each in figures.measured if each.workload.name.startswith(f"{study.name}:")]
    return sorted(found, key=value_of)


def draw_bench(figures: Figures, path: Path) -> None:
    """A row for each workload, a mark for each peer in each mode, on a logarithmic scale."""
    kinds = {
        kind: [each for each in figures.measured if each.workload.kind == kind] for kind in TITLES
    }
    kinds = {kind: chosen for kind, chosen in kinds.items() if chosen}
    heights = [
        0.8 + ROW * sum(2 + len(shown(each)) for each in chosen) for chosen in kinds.values()
    ]
    with mpl.rc_context(STYLE):
        figure = Figure((8.5, sum(heights) + 0.9), layout="constrained")
        figure.suptitle("Time of each split: median, and from the 10th to the 90th percentile")
        panels = figure.subplots(len(kinds), 1, squeeze=False, sharex=True, height_ratios=heights)[
            :, 0
        ]
        for (kind, chosen), axes in zip(kinds.items(), panels, strict=True):
            axes.set_title(TITLES[kind], loc="left", fontsize="medium", fontweight="bold")
            _draw_rows(axes, chosen)
        _add_legend(figure, [entry for each in figures.measured for entry, _ in shown(each)])
        _save(figure, path, "The time of each split, as a multiple of its baseline")


def shown(measured: Measured) -> list[tuple[Timed, Spread]]:
    """What can be drawn of a workload: what was measured and is right, with its ratio."""
    return [(each, each.ratio) for each in measured.entries if each.ratio and not each.wrong]


def _draw_rows(axes: Axes, chosen: Sequence[Measured]) -> None:
    y, ticks = 0, []
    for measured in chosen:
        marks = shown(measured)
        ticks.append(y + (len(marks) - 1) / 2)
        for entry, ratio in marks:
            reach = [[ratio.median - ratio.low], [ratio.high - ratio.median]]
            marker, fill, *_ = MODES[entry.mode]
            axes.errorbar(
                ratio.median,
                y,
                xerr=reach,
                fmt=marker,
                fillstyle=fill,
                color=_colour(entry.peer),
                markersize=4,
            )
            y += 1
        y += 2
    axes.set_xscale("log")
    axes.tick_params(labelbottom=True)
    axes.axvline(1, color=BASELINE)
    axes.grid(axis="x", which="both", alpha=0.3)
    axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.set_yticks(ticks, [each.workload.name for each in chosen])
    axes.set_ylim(y - 1.5, -1)


def _add_legend(figure: Figure, entries: Sequence[Timed]) -> None:
    peers = [peer for peer in _PEERS if any(entry.peer == peer for entry in entries)]
    marks = [Line2D([], [], marker="o", linestyle="", color=_colour(peer)) for peer in peers]
    names = list(peers)
    for mode, (marker, fill, _, name) in MODES.items():
        if any(entry.mode == mode for entry in entries):
            style: dict[str, Any] = {
                "marker": marker,
                "fillstyle": fill,
                "linestyle": "",
                "color": BASELINE,
            }
            marks.append(Line2D([], [], **style))
            names.append(name)
    figure.legend(marks, names, loc="outside lower center", ncols=5)


def draw_studies(figures: Figures, folder: Path) -> None:
    """A chart for each study: the times against the values, both on logarithmic scales."""
    for study in STUDIES:
        draw_study(of_study(figures, study), study, folder / f"{study.name}.svg")


def draw_study(chosen: Sequence[Measured], study: Study, path: Path) -> None:
    """The times of a study against its values, both on logarithmic scales."""
    values = [value_of(each) for each in chosen]
    with mpl.rc_context(STYLE):
        figure = Figure((8, 4.5), layout="constrained")
        axes = figure.subplots()
        times = [each.baseline.median for each in chosen]
        axes.plot(values, times, ".-", color=BASELINE, label=study.workloads[0].baseline)
        ways = dict.fromkeys((entry.peer, entry.mode) for each in chosen for entry in each.entries)
        for peer, mode in ways:
            points = [
                (value, entry.seconds.median)
                for value, measured in zip(values, chosen, strict=True)
                for entry, _ in shown(measured)
                if entry.seconds and (entry.peer, entry.mode) == (peer, mode)
            ]
            marker, fill, line, _ = MODES[mode]
            axes.plot(
                *zip(*points, strict=True),
                linestyle=line,
                marker=marker,
                fillstyle=fill,
                color=_colour(peer),
                markersize=4,
                label=f"{peer} {mode}",
            )
        axes.set_title(study.title)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel(study.unit)
        axes.set_xticks(values, [_value(value, study) for value in values])
        axes.yaxis.set_major_formatter(lambda seconds, _: in_seconds(seconds))
        axes.grid(alpha=0.3)
        figure.legend(loc="outside lower center", ncols=4)
        _save(figure, path, study.title)


def _value(value: int, study: Study) -> str:
    return in_bytes(value) if study.unit == "bytes" else f"{value}"


def _colour(peer: str) -> str:
    return f"C{_PEERS.index(peer)}"


def _save(figure: Figure, path: Path, title: str) -> None:
    figure.savefig(path, format="svg", metadata={"Title": title, "Date": None})


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    draw_bench(read(source), target)
