"""How the cost grows with bytes, parts and rank: ``growth.json`` and a plot of each study.

Usage: ``python benchmarks/growth.py -o FOLDER [--quick]``
"""

import argparse
from pathlib import Path

import click

from tensorsplit.bench.figures import Figures, as_json
from tensorsplit.bench.growth import STUDIES, plot
from tensorsplit.bench.machine import describe
from tensorsplit.bench.peers import choose
from tensorsplit.bench.runner import measure
from tensorsplit.bench.timing import Effort
from tensorsplit.cli.files import Writer, write_files

SECONDS = 1.0
"""For each point; there are about forty."""


def take(quick: bool = False) -> Figures:
    """Measure every point of every study, beside NumPy."""
    effort = Effort(rounds=1) if quick else Effort(seconds=SECONDS)
    entries = choose(("numpy",))
    measured = []
    for study in STUDIES:
        click.echo(study.title)
        measured += [measure(workload, entries, effort) for workload in study.workloads]
    return Figures(describe(effort), tuple(measured))


def files(figures: Figures, folder: Path) -> dict[Path, str]:
    """The figures and the plots, by where they go."""
    plots = {folder / f"{study.name}.svg": plot(figures, study) for study in STUDIES}
    return {folder / "growth.json": as_json(figures), **plots}


def writer(text: str) -> Writer:
    """What writes a text into a file."""
    return lambda file: file.write(text.encode())


def main() -> None:
    """Measure, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True, help="the folder")
    parser.add_argument("--quick", action="store_true", help="one round")
    arguments = parser.parse_args()
    figures = take(arguments.quick)
    texts = files(figures, arguments.output)
    write_files({path: writer(text) for path, text in texts.items()})
    raise SystemExit("\n".join(figures.wrong) or 0)


if __name__ == "__main__":
    main()
