"""Measure everything on an idle machine and publish it in ``docs/performance.md``.

Usage: ``python benchmarks/publish.py [--only-page]``

The figures go to ``docs/performance/*.json``; the tables of the page and the charts are made
from them. ``--only-page`` measures nothing and makes both from the figures that are there.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace as Record

import charts
import click
import growth
from studies import STUDIES, Study

from tensorsplit.bench.figures import (
    Figures,
    as_json,
    describe,
    in_bytes,
    in_digits,
    in_range,
    in_seconds,
)
from tensorsplit.bench.peers import choose_entries
from tensorsplit.bench.stations import apart, measure
from tensorsplit.bench.timing import Effort
from tensorsplit.bench.workloads import WORKLOADS
from tensorsplit.pages.layout import shortened

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "performance.md"
FOLDER = DOCS / "performance"

_BLOCK = re.compile(r"(<!-- begin ([\w-]+)[^>]*-->\n).*?(<!-- end \2 -->)", re.DOTALL)


def take() -> Figures:
    """Measure every workload beside every peer that is installed."""
    effort, measured = Effort(), []
    with apart(choose_entries(())) as stations:
        for workload in WORKLOADS.values():
            click.echo(workload.name)
            measured.append(measure(workload, stations, effort))
    return Figures(describe(effort), tuple(measured))


def tables(bench: Record, grown: Record) -> dict[str, str]:
    """Every generated block of the page, by its name.

    Args:
        bench: The figures of the workloads.
        grown: The figures of the studies.
    """
    return {
        "machine": "\n".join(_machine(bench.about)),
        **{kind: "\n".join(_workloads(bench, kind)) for kind in charts.TITLES},
        "cannot": "\n".join(_cannot(bench)),
        **{study.name: "\n".join(_study(grown, study)) for study in STUDIES},
    }


def fill(page: str, blocks: Mapping[str, str]) -> str:
    """The page with what stands between each ``<!-- begin NAME -->`` and its end made anew.

    Raises:
        KeyError: For a name that is not among the blocks.
    """
    return _BLOCK.sub(lambda found: f"{found[1]}{blocks[found[2]]}\n{found[3]}", page)


def _machine(about: Record) -> Iterator[str]:
    machine = about.machine
    caches = ", ".join(f"{name} {size}" for name, size in vars(machine.caches).items())
    versions = ", ".join(f"{name} {version}" for name, version in vars(about.versions).items())
    rows = (
        ("date", about.date),
        ("processor", f"{machine.cpu}, {machine.cores} cores; {caches}"),
        ("system", machine.system),
        ("versions", versions),
        ("our copies by", about.native),
    )
    yield from _table(("", ""), rows)


def _workloads(figures: Record, kind: str) -> Iterator[str]:
    chosen = [measured for measured in figures.measured if measured.workload.kind == kind]
    rows = ((f"**{each.workload.name}**: {WORKLOADS[each.workload.name]}", each) for each in chosen)
    yield from _ratios(("workload", "1 ="), rows, chosen)


def _study(figures: Record, study: Study) -> Iterator[str]:
    chosen = charts.of_study(figures, study)
    show = in_bytes if study.unit == "bytes" else str
    rows = ((show(charts.value_of(each)), each) for each in chosen)
    yield from _ratios((study.unit, study.workloads[0].baseline), rows, chosen)


def _ratios(
    header: Sequence[str], rows: Iterable[tuple[str, Record]], chosen: Sequence[Record]
) -> Iterator[str]:
    """A table of workloads, the time of the baseline and the ratio of each peer in each mode."""
    ways = list(
        dict.fromkeys((entry.peer, entry.mode) for each in chosen for entry in each.entries)
    )
    cells = ((name, in_seconds(each.baseline.median), *_cells(each, ways)) for name, each in rows)
    yield from _table((*header, *(f"{peer} {mode}" for peer, mode in ways)), cells)


def _cells(measured: Record, ways: Sequence[tuple[str, str]]) -> Iterator[str]:
    entries = {(entry.peer, entry.mode): entry for entry in measured.entries}
    for way in ways:
        ratio = entries[way].ratio if way in entries else None
        yield f"{in_digits(ratio.median)} ({in_range(ratio)})" if ratio else "\N{EN DASH}"


def _cannot(figures: Record) -> Iterator[str]:
    """Why there is a dash, once for each peer and reason."""
    reasons: dict[tuple[str, str], dict[str, None]] = {}
    for measured in figures.measured:
        for entry in measured.entries:
            if hasattr(entry, "cannot"):
                reasons.setdefault((entry.peer, entry.cannot), {})[measured.workload.name] = None
    for (peer, reason), names in sorted(reasons.items()):
        yield f"- {peer}, {', '.join(names)}: {shortened(reason, 100)}"


def _table(header: Sequence[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """A table of Markdown."""
    yield f"| {' | '.join(header)} |"
    yield f"| {' | '.join(['---'] * len(header))} |"
    for row in rows:
        escaped = (cell.replace("|", "\\|") for cell in row)
        yield f"| {' | '.join(escaped)} |"


def main() -> None:
    """Measure if asked to, and write the page, the charts and the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only-page", action="store_true", help="measure nothing")
    if not parser.parse_args().only_page:
        taken = {"bench.json": take(), "growth.json": growth.take()}
        wrong = [fault for figures in taken.values() for fault in figures.wrong]
        if wrong:
            raise SystemExit("nothing was published:\n" + "\n".join(wrong))
        for name, figures in taken.items():
            (FOLDER / name).write_text(as_json(figures), encoding="utf-8")
    bench, grown = (
        charts.read((FOLDER / name).read_text(encoding="utf-8"))
        for name in ("bench.json", "growth.json")
    )
    charts.draw_bench(bench, FOLDER / "bench.svg")
    charts.draw_studies(grown, FOLDER)
    page = fill(PAGE.read_text(encoding="utf-8"), tables(bench, grown))
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
