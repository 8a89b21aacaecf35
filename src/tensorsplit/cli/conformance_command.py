"""``tensorsplit conformance``: what engines and tools really do with a split, case by case."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tensorsplit.cli.files import (
    FILE_TO_READ,
    FILE_TO_WRITE,
    FOLDER,
    WritingCommand,
    outputs,
    write_files,
)
from tensorsplit.cli.screen import (
    FINDINGS,
    Table,
    complain,
    examples,
    format_option,
    note,
    progress_of,
    rendered,
    show,
    write,
)
from tensorsplit.cli.sentences import WORDS, amount, tr
from tensorsplit.cli.words import JOBS_OPTION, SECONDS, Count, subject_word
from tensorsplit.conformance import SECONDS_OF_A_CASE
from tensorsplit.core.errors import USAGE, SplitError
from tensorsplit.core.errors import show as quoted
from tensorsplit.engines.engine_names import ENGINES

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tensorsplit.conformance.case import Case
    from tensorsplit.conformance.document import Document
    from tensorsplit.conformance.known import Comparison, Deviation
    from tensorsplit.conformance.runner import Subject

ALL = "all"
_MOST_LISTED = 20
_WIDTH = 100


@click.command(
    cls=WritingCommand,
    epilog=examples(
        "conformance --engine onnxruntime",
        "conformance --engine all --format html -o report.html",
        "conformance --engine my_adapter.py --case 'onnx.Split-18/*'",
        "conformance --repro CASE --engine onnxruntime > repro.py",
        "conformance --engine onnxruntime --profiles profiles/",
    ),
)
@click.option(
    *("--engine", "-e", "engines"),
    type=subject_word("name", ALL),
    multiple=True,
    help="What to measure: a built-in engine or tool, the path of an adapter (.py), a module, or"
    " `all` for all that are installed. The default is tensorsplit, onnx-reference, onnxruntime and"
    " openvino, as far as they are installed.",
)
@click.option(
    *("--case", "-c", "patterns"),
    metavar="PATTERN",
    multiple=True,
    help="Run only the cases whose id matches, such as 'onnx.Split-18/*/runtime/*'.",
)
@click.option("--list", "lists", is_flag=True, help="List the cases and run nothing.")
@click.option(
    "--list-engines",
    is_flag=True,
    help="List the built-in engines and tools, with the versions that are installed.",
)
@format_option(
    *("text", "json", "html"),
    text="A matrix for the terminal, the whole run as JSON, or a page that needs no network.",
)
@click.option(
    *("--output", "-o", "out"),
    type=FILE_TO_WRITE,
    help="Write to a file, whole or not at all; compressed if its name ends in .gz.",
)
@click.option(
    *("--from", "sources"),
    type=FILE_TO_READ,
    help="Show a run from its JSON (.json or .json.gz), or several as one: of different engines,"
    " or of two versions of one with the changes between them. Nothing is run.",
    multiple=True,
)
@click.option("--repro", metavar="CASE", help="Print a script that reproduces one case.")
@click.option(
    "--export", type=FOLDER, help="Write the cases as ONNX backend tests, for other runners."
)
@click.option("--profiles", type=FOLDER, help="Write what each engine was measured to support.")
@click.option("--known", type=FILE_TO_READ, help="Known deviations, instead of the package's own.")
@click.option(
    "--update-known",
    type=FILE_TO_WRITE,
    help="Write known deviations that fit this run, to review.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Also exit with 1 if a newer version no longer shows known deviations.",
)
@click.option(
    "--seed",
    metavar="N",
    type=Count(0),
    default=0,
    show_default=True,
    help="The seed of the random data.",
)
@JOBS_OPTION
@click.option(
    "--timeout",
    "seconds",
    metavar="SECONDS",
    type=SECONDS,
    default=SECONDS_OF_A_CASE,
    show_default=True,
    help="How long each engine or tool may take for one case; after 5 cases that hang a quarter"
    " of it, after 50 a twentieth.",
)
def conformance(
    *,
    engines: Sequence[str],
    patterns: Sequence[str],
    lists: bool,
    list_engines: bool,
    style: str,
    out: Path | None,
    sources: Sequence[Path],
    repro: str | None,
    export: Path | None,
    profiles: Path | None,
    known: Path | None,
    update_known: Path | None,
    strict: bool,
    seed: int,
    jobs: int | None,
    seconds: float,
) -> int:
    """Measure what each engine or tool does with every kind of split.

    Each runs in processes of its own, so that a crash or a hang is a result. Exit status: 0 if
    all deviations are known, and all known ones occur or are fixed in a newer version; 1 if not, or
    if there is no result at all; 2 wrong usage.
    """
    from tensorsplit.conformance.cases import cases_by_id
    from tensorsplit.conformance.document import SKIPPED, merged, read
    from tensorsplit.conformance.known import compare, dumps, load, updated
    from tensorsplit.conformance.profile import profile_files

    if repro is not None:
        _write(_reproduction(repro, engines, seed), out)
        return 0
    if list_engines:
        show(Table(list(_built_in())))
        return 0
    if lists or export is not None:
        cases = _cases(patterns)
        if export is not None:
            _export(cases, export, seed)
        if lists:
            _write(_listing(cases, style), out)
        return 0
    deviations = load(known)
    if sources:
        document = merged([read(source) for source in sources])
    else:
        document = _measured(_chosen(engines), _cases(patterns), seed, seconds, jobs)
    if next(document.successions(), None) and (profiles is not None or update_known is not None):
        raise SplitError(
            USAGE,
            tr("it is asked for of one version, and there are several of one engine"),
            tr("give the run of one version"),
            parameter="update-known" if profiles is None else "profiles",
        )
    comparison = compare(document, deviations, [*cases_by_id()])
    document = comparison.document
    files: dict[Path, str] = {}
    if profiles is not None:
        files.update((profiles / name, text) for name, text in profile_files(document))
    if update_known is not None:
        files[update_known] = dumps(updated(document, deviations))
    _write(_shown(document, style, engines, deviations), out, files)
    _list_unexpected(comparison)
    if all(result.verdict == SKIPPED for result in document.results):
        complain(tr("there is no result: no engine or tool reads the format of a case"))
        return FINDINGS
    return 0 if comparison.is_fine and not (strict and comparison.fixed) else FINDINGS


def _export(cases: Sequence[Case], folder: Path, seed: int) -> None:
    """Write cases as files into a folder, which is made."""
    from tensorsplit.conformance.export import export

    with progress_of("conformance", len(cases)) as advance:
        export(cases, folder, outputs(), seed, progress=advance)


def _measured(
    subjects: Sequence[Subject], cases: Sequence[Case], seed: int, seconds: float, jobs: int | None
) -> Document:
    """Run cases in engines and tools."""
    from tensorsplit.conformance.runner import run

    with progress_of("conformance", len(cases) * len(subjects)) as advance:
        return run(
            subjects, cases, seed=seed, seconds=seconds, jobs=jobs, progress=advance, note=note
        )


def _cases(patterns: Sequence[str]) -> tuple[Case, ...]:
    from tensorsplit.conformance.cases import find

    found = find(patterns)
    if not found:
        raise SplitError(
            USAGE,
            tr("no case matches {names}", names=tr(" or ").join(map(quoted, patterns))),
            tr("tensorsplit conformance --list shows the cases"),
            parameter="case",
        )
    return found


def _chosen(engines: Sequence[str]) -> list[Subject]:
    """Return the subjects that are meant, each of them once and installed."""
    from tensorsplit.conformance.runner import Subject
    from tensorsplit.conformance.subjects import SUBJECTS

    names = [] if engines else [name for name in ENGINES if SUBJECTS[name].is_installed]
    for name in engines:
        everything = [other for other, adapter in SUBJECTS.items() if adapter.is_installed]
        names += everything if name == ALL else [name]
    return [Subject.installed(name) for name in dict.fromkeys(names)]


def _reproduction(name: str, engines: Sequence[str], seed: int) -> str:
    from tensorsplit.conformance.cases import find
    from tensorsplit.conformance.repro import script

    cases = find([name])
    if len(cases) != 1 or len(engines) != 1:
        raise SplitError(
            USAGE,
            tr(
                "--repro takes one case and one --engine; {name} is the id of {cases}, and there"
                " are {engines}",
                name=quoted(name),
                cases=amount(len(cases), "case"),
                engines=amount(len(engines), "engine"),
            ),
            tr("tensorsplit conformance --list shows the cases"),
            parameter="repro",
        )
    return script(cases[0], engines[0], seed)


def _built_in() -> Iterator[tuple[str, str]]:
    """Yield the name of each built-in engine or tool, and the versions of its packages."""
    from tensorsplit.conformance.subjects import SUBJECTS

    for name, subject in SUBJECTS.items():
        found = tr("(not installed)")
        if subject.is_installed:
            found = ", ".join(" ".join(each) for each in subject.versions().items())
        yield name, found


def _listing(cases: Sequence[Case], style: str) -> str:
    if style == "json":
        infos = [asdict(case.info) for case in cases]
        return json.dumps(infos, indent=1, ensure_ascii=False) + "\n"
    return "".join(f"{case.id}\n" for case in cases)


def _write(
    shown: RenderableType, out: Path | None, files: Mapping[Path, str] | None = None
) -> None:
    """Write to `out` or standard output, and other files with it, all of them whole or none.

    A file whose name ends in ``.gz`` is compressed.
    """
    from tensorsplit.conformance.document import octets_of

    texts = dict(files or {})
    if out is not None:
        if not isinstance(shown, str):
            shown = rendered(shown, file=StringIO(), width=_WIDTH, force_terminal=False)
        texts[out] = shown
    write_files({path: octets_of(text, path) for path, text in texts.items()})
    if out is None:
        write(shown) if isinstance(shown, str) else show(shown)


def _shown(
    document: Document, style: str, engines: Sequence[str], deviations: Sequence[Deviation]
) -> RenderableType:
    """Return a run as JSON, as a page or as a matrix."""
    from tensorsplit.conformance.report import Matrix, Summary, html

    if style == "json":
        content = document.to_json()
        if found := Summary(document).successions:
            content["changes"] = [succession.to_json() for succession in found]
        return json.dumps(content, ensure_ascii=False) + "\n"
    if style == "html":
        return html(document, _scripts(document, engines), deviations, _contents(document))
    return Matrix(document, WORDS)


def _scripts(document: Document, engines: Sequence[str]) -> Callable[[str, str], str | None]:
    """Return the reproduction of a case with a subject, where both are known here.

    The engines are named as they were given, as some may be paths of adapters.
    """
    from tensorsplit.conformance.cases import cases_by_id
    from tensorsplit.conformance.repro import script
    from tensorsplit.conformance.subjects import SUBJECTS, title

    cases = cases_by_id()
    sources = {name: name for name in SUBJECTS} | {title(name): name for name in engines}
    seed = document.seed

    def make(case: str, subject: str) -> str | None:
        known = case in cases and subject in sources
        return script(cases[case], sources[subject], seed) if known else None

    return make


def _contents(document: Document) -> Callable[[str], dict[str, str]]:
    """Return the contents of a case, where they are known here."""
    from tensorsplit.conformance.cases import cases_by_id
    from tensorsplit.conformance.repro import contents

    cases = cases_by_id()
    return lambda case: contents(cases[case], document.seed) if case in cases else {}


def _list_unexpected(comparison: Comparison) -> None:
    """List results that no known deviation covers, and known deviations that no longer occur."""
    new = [f"new: {r.subject}: {r.verdict}: {r.case}: {r.detail}" for r in comparison.new]
    over = [len(found) - _MOST_LISTED for found in (new, comparison.stale, comparison.fixed)]
    lists = (
        (tr("and {n} more that are new", n=over[0]), complain, new),
        (tr("and {n} more that are stale", n=over[1]), complain, comparison.stale),
        (tr("and {n} more that are fixed", n=over[2]), note, comparison.fixed),
    )
    for more, tell, found in lists:
        for entry in found[:_MOST_LISTED]:
            tell(str(entry))
        if len(found) > _MOST_LISTED:
            tell(more)
