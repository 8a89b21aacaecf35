"""What ``tensorsplit conformance`` writes: the run, files beside it, and what is not as known."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tensorsplit.cli.files import Writer, write_files
from tensorsplit.cli.screen import complain, progress_bar, show, write

if TYPE_CHECKING:
    from tensorsplit.conformance.document import Document
    from tensorsplit.conformance.known import Comparison, Deviation

_MOST_LISTED = 20
_WIDTH = 100


def emit(text: str, out: str | None, files: dict[Path, str] | None = None) -> None:
    """Write files, all of them whole or none, and to standard output what has no file.

    A file whose name ends in ``.gz`` is compressed.

    Args:
        text: The main text.
        out: Its file.
        files: More files, by path.
    """
    contents = dict(files or {}) | ({Path(out): text} if out is not None else {})
    write_files({path: _writer(content, path) for path, content in contents.items()})
    if out is None:
        write(text)


def _writer(text: str, path: Path) -> Writer:
    def writer(file: IO[bytes]) -> None:
        from tensorsplit.conformance.files import octets_of

        file.write(octets_of(text, path))

    return writer


def show_run(  # noqa: PLR0917 - what is written, for whom, and where
    document: Document,
    style: str,
    engines: Sequence[str],
    deviations: Sequence[Deviation],
    out: str | None,
    files: dict[Path, str],
) -> None:
    """Write a run.

    Args:
        document: The run.
        style: ``text``, ``json`` or ``html``.
        engines: The subjects as they were given, of which some may be paths.
        deviations: The known deviations, for their words and their links.
        out: The file to write to; standard output if None.
        files: What else is to be written, by path.
    """
    if style == "json":
        emit(json.dumps(document.to_json(), ensure_ascii=False) + "\n", out, files)
    elif style == "html":
        from tensorsplit.conformance.report.page import html

        emit(html(document, _scripts(document, engines), deviations), out, files)
    elif out is not None:
        emit(_plain(document), out, files)
    else:
        from tensorsplit.conformance.report.terminal import matrix

        emit("", None, files)
        show(matrix(document))


def _plain(document: Document) -> str:
    """The matrix as text for a file."""
    from rich.console import Console

    from tensorsplit.conformance.report.terminal import matrix

    text = StringIO()
    Console(file=text, width=_WIDTH, highlight=False, markup=False).print(matrix(document))
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


def _scripts(document: Document, engines: Sequence[str]) -> Callable[[str, str], str | None]:
    """Makes the reproduction of a case with a subject, where both are known here."""
    from tensorsplit.conformance.cases import all_cases
    from tensorsplit.conformance.repro import script
    from tensorsplit.conformance.subjects import SUBJECTS, title

    cases = {case.id: case for case in all_cases()}
    sources = {name: name for name in SUBJECTS} | {title(name): name for name in engines}
    seed = int(document.suite.get("seed", 0))

    def make(case: str, subject: str) -> str | None:
        if case not in cases or subject not in sources:
            return None
        return script(cases[case], sources[subject], seed)

    return make


def side_files(
    document: Document,
    deviations: Sequence[Deviation],
    profiles: str | None,
    update_known: str | None,
) -> dict[Path, str]:
    """What is written besides the run itself, by path.

    Args:
        document: The run.
        deviations: What was known before.
        profiles: The folder for profiles of the engines.
        update_known: The file for known deviations that fit the run.
    """
    files: dict[Path, str] = {}
    if profiles is not None:
        from tensorsplit.conformance.profile import profile_files

        files |= {Path(profiles) / name: text for name, text in profile_files(document)}
    if update_known is not None:
        from tensorsplit.conformance.known import dumps, updated

        files[Path(update_known)] = dumps(updated(document, deviations))
    return files


def tell(comparison: Comparison) -> bool:
    """List what is not as the file of known deviations says; whether all is."""
    lines = [
        f"new: {result.subject}: {result.verdict}: {result.case}: {result.detail}"
        for result in comparison.new
    ]
    stale = [f"stale: {entry}" for entry in comparison.stale]
    for found in (lines, stale):
        for line in found[:_MOST_LISTED]:
            complain(line)
        if len(found) > _MOST_LISTED:
            complain(f"and {len(found) - _MOST_LISTED} more that are {found[0].split(':')[0]}")
    return comparison.is_fine


@contextlib.contextmanager
def counting(total: int) -> Iterator[Callable[[int], None]]:
    """Show how many of the cases are done; what is given is told of each step."""
    with progress_bar("conformance", total) as bar:
        if bar is None:
            yield lambda _: None
            return
        progress, task = bar
        yield lambda count: progress.advance(task, count)
