"""Measure everything on an idle machine and publish it in ``docs/performance.md``.

Usage: ``python benchmarks/publish.py [--only-page]``

The figures go to ``docs/performance/*.json``; the tables of the page and the pictures are made
from them. ``--only-page`` measures nothing and makes both from the figures that are there.
"""

import argparse
from pathlib import Path

import click
import growth

from tensorsplit.bench.figures import Figures, as_json, from_json
from tensorsplit.bench.machine import describe
from tensorsplit.bench.page import fill, tables
from tensorsplit.bench.peers import choose
from tensorsplit.bench.picture import picture
from tensorsplit.bench.runner import measure
from tensorsplit.bench.timing import Effort
from tensorsplit.bench.workloads import WORKLOADS
from tensorsplit.cli.files import write_files

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "performance.md"
FOLDER = DOCS / "performance"


def take() -> Figures:
    """Measure every workload beside every peer that is installed."""
    effort, entries, measured = Effort(), choose(()), []
    for workload in WORKLOADS.values():
        click.echo(workload.name)
        measured.append(measure(workload, entries, effort))
    return Figures(describe(effort), tuple(measured))


def read(name: str) -> Figures:
    """The figures that were published last."""
    return from_json((FOLDER / name).read_text(encoding="utf-8"))


def main() -> None:
    """Measure if asked to, and write the page, the pictures and the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only-page", action="store_true", help="measure nothing")
    if parser.parse_args().only_page:
        bench, grown = read("bench.json"), read("growth.json")
    else:  # what is drawn is what is written: numbers of four digits
        bench, grown = (from_json(as_json(figures)) for figures in (take(), growth.take()))
    wrong = [*bench.wrong, *grown.wrong]
    if wrong:
        raise SystemExit("nothing was published:\n" + "\n".join(wrong))
    page = fill(PAGE.read_text(encoding="utf-8"), tables(bench, grown))
    texts = {
        FOLDER / "bench.json": as_json(bench),
        FOLDER / "bench.svg": picture(bench),
        PAGE: page,
        **growth.files(grown, FOLDER),
    }
    write_files({path: growth.writer(text) for path, text in texts.items()})


if __name__ == "__main__":
    main()
