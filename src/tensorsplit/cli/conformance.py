"""``tensorsplit conformance``: what engines and tools really do with a split, case by case."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tensorsplit.cli.conformance_output import counting, emit, show_run, side_files, tell
from tensorsplit.cli.screen import examples
from tensorsplit.core.errors import USAGE, SplitError, show

if TYPE_CHECKING:
    from tensorsplit.conformance.case import Case
    from tensorsplit.conformance.document import Document
    from tensorsplit.conformance.known import Comparison, Deviation

FORMATS = ("text", "json", "html")
DEVIATES = 1
ALL = "all"


@click.command(
    epilog=examples(
        "conformance --engine onnxruntime",
        "conformance --engine all --format html -o report.html",
        "conformance --engine my_adapter.py --case 'onnx.Split-18/*'",
        "conformance --repro CASE --engine onnxruntime > repro.py",
        "conformance --engine onnxruntime --profiles profiles/",
    )
)
@click.option(
    "--engine",
    "-e",
    "engines",
    metavar="NAME",
    multiple=True,
    help="What to measure: a built-in engine or tool, the path of an adapter (.py), a module, or"
    " `all` for all that are installed. The default is numpy, onnx-reference, onnxruntime and"
    " openvino, as far as they are installed.",
)
@click.option(
    "--case",
    "-c",
    "patterns",
    metavar="PATTERN",
    multiple=True,
    help="Only the cases whose id matches, such as 'onnx.Split-18/*/runtime/*'.",
)
@click.option("--list", "lists", is_flag=True, help="List the cases and run nothing.")
@click.option(
    "--format",
    "style",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="A matrix for the terminal, the whole run as JSON, or a page that needs no network.",
)
@click.option(
    "--output",
    "-o",
    "out",
    metavar="FILE",
    help="Write to a file, whole or not at all; compressed if its name ends in .gz.",
)
@click.option(
    "--from",
    "sources",
    metavar="FILE",
    multiple=True,
    help="Show a run from its JSON (.json or .json.gz), or several of different engines as one, of"
    " which the first has all cases; run nothing.",
)
@click.option("--repro", "repro", metavar="CASE", help="Print a script that shows the case alone.")
@click.option(
    "--export", metavar="DIR", help="Write the cases as ONNX backend tests, for other runners."
)
@click.option("--profiles", metavar="DIR", help="Write what each engine was measured to support.")
@click.option("--known", metavar="FILE", help="Known deviations, instead of the package's own.")
@click.option(
    "--update-known", metavar="FILE", help="Write known deviations that fit this run, to review."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the data.")
@click.option("--jobs", "-j", type=click.IntRange(1), help="Processes at a time.")
@click.pass_context
def conformance(  # noqa: PLR0917 - one for each option, which click gives by name
    ctx: click.Context,
    engines: Sequence[str],
    patterns: Sequence[str],
    lists: bool,
    style: str,
    out: str | None,
    sources: Sequence[str],
    repro: str | None,
    export: str | None,
    profiles: str | None,
    known: str | None,
    update_known: str | None,
    seed: int,
    jobs: int | None,
) -> None:
    """Run the conformance suite: what each engine or tool does with every kind of split.

    Each runs in processes of its own, so that a crash or a hang is a result. Exit status: 0 if
    all deviations are known, and all known ones occur; 1 if not; 2 wrong usage.
    """
    if repro is not None:
        emit(_reproduction(repro, engines, seed), out)
        return
    if lists or export is not None:
        cases = _cases(patterns)
        if export is not None:
            _export(cases, Path(export), seed)
        if lists:
            emit(_listing(cases, style), out)
        return
    from tensorsplit.conformance.known import load

    deviations = load(Path(known) if known else None)
    document = _read(sources) if sources else _measure(_cases(patterns), engines, seed, jobs)
    comparison = _compared(document, deviations)
    files = side_files(comparison.document, deviations, profiles, update_known)
    show_run(comparison.document, style, engines, deviations, out, files)
    if not tell(comparison):
        ctx.exit(DEVIATES)


def _cases(patterns: Sequence[str]) -> tuple[Case, ...]:
    from tensorsplit.conformance.cases import find

    found = find(patterns)
    if not found:
        raise SplitError(
            USAGE,
            f"no case matches {' or '.join(map(show, patterns))}",
            "tensorsplit conformance --list shows the cases",
            parameter="case",
        )
    return found


def _measure(
    cases: Sequence[Case], engines: Sequence[str], seed: int, jobs: int | None
) -> Document:
    from tensorsplit.conformance.runner import Subject, run

    chosen = [Subject.of(name) for name in _chosen(engines)]
    with counting(len(cases) * len(chosen)) as advance:
        return run(chosen, cases, seed=seed, jobs=jobs, progress=advance)


def _chosen(engines: Sequence[str]) -> list[str]:
    """The subjects that are meant, each of them once and installed."""
    from tensorsplit.conformance.subjects import SUBJECTS, installed, load
    from tensorsplit.core.errors import ENGINE_MISSING
    from tensorsplit.engines import ENGINES

    if not engines:
        return [name for name in ENGINES if installed(name)]
    names: list[str] = []
    for name in engines:
        names += filter(installed, SUBJECTS) if name == ALL else [name]
    for name in dict.fromkeys(names):
        if not installed(name):
            raise SplitError(
                ENGINE_MISSING,
                f"{name} is not installed",
                f"pip install {' '.join(load(name).PACKAGES)}",
                parameter="engine",
            )
    return list(dict.fromkeys(names))


def _reproduction(name: str, engines: Sequence[str], seed: int) -> str:
    from tensorsplit.conformance.cases import find
    from tensorsplit.conformance.repro import script

    cases = find([name])
    if len(cases) != 1 or len(engines) != 1:
        raise SplitError(
            USAGE,
            f"--repro takes one case and one --engine, but it is given {len(engines)} engines, and"
            f" {show(name)} is the id of {len(cases)} cases",
            "tensorsplit conformance --list shows the cases",
            parameter="repro",
        )
    return script(cases[0], engines[0], seed)


def _listing(cases: Sequence[Case], style: str) -> str:
    from tensorsplit.conformance.document import CaseInfo

    if style == "json":
        content = [asdict(CaseInfo.of(case)) for case in cases]
        return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    return "".join(f"{case.id}\n" for case in cases)


def _export(cases: Sequence[Case], folder: Path, seed: int) -> None:
    from tensorsplit.conformance.export import export

    with counting(len(cases)) as advance:
        export(cases, folder, seed, progress=advance)


def _read(sources: Sequence[str]) -> Document:
    from tensorsplit.conformance.files import read
    from tensorsplit.conformance.merging import merged

    return merged([read(Path(source)) for source in sources])


def _compared(document: Document, deviations: Sequence[Deviation]) -> Comparison:
    from tensorsplit.conformance.cases import all_cases
    from tensorsplit.conformance.known import compare

    return compare(document, deviations, [case.id for case in all_cases()])
