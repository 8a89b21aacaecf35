"""How the cost grows with bytes, parts and rank: ``growth.json`` and a chart of each study.

Usage: ``python benchmarks/growth.py -o FOLDER [--quick]``
"""

from __future__ import annotations

import argparse
from pathlib import Path

import charts
import click
from studies import STUDIES

from tensorsplit.bench.figures import Figures, as_json, describe
from tensorsplit.bench.peers import choose_entries
from tensorsplit.bench.stations import apart, measure
from tensorsplit.bench.timing import Effort

SECONDS = 1.0
"""For each point; there are about forty."""


def take(*, quick: bool = False) -> Figures:
    """Measure every point of every study, beside NumPy."""
    effort = Effort(rounds=1) if quick else Effort(seconds=SECONDS)
    measured = []
    with apart(choose_entries(("numpy",))) as stations:
        for study in STUDIES:
            click.echo(study.title)
            measured += [measure(workload, stations, effort) for workload in study.workloads]
    return Figures(describe(effort), tuple(measured))


def main() -> None:
    """Measure, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True, help="the folder")
    parser.add_argument("--quick", action="store_true", help="one round")
    arguments = parser.parse_args()
    figures = take(quick=arguments.quick)
    arguments.output.mkdir(parents=True, exist_ok=True)
    text = as_json(figures)
    (arguments.output / "growth.json").write_text(text, encoding="utf-8")
    charts.draw_studies(charts.read(text), arguments.output)
    raise SystemExit("\n".join(figures.wrong) or 0)


if __name__ == "__main__":
    main()
