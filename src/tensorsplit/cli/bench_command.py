"""``tensorsplit bench``: how long splits take here, beside other libraries."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tensorsplit.bench.peers import PEERS, choose_entries, installed
from tensorsplit.bench.timing import PAUSE, Effort
from tensorsplit.bench.workloads import choose_workloads
from tensorsplit.cli.files import FILE_TO_WRITE, WritingCommand, write_files
from tensorsplit.cli.screen import FINDINGS, examples, format_option, is_terminal, say, show, write
from tensorsplit.cli.sentences import WORDS, known, localized, tr
from tensorsplit.cli.words import Count, Word

if TYPE_CHECKING:
    from tensorsplit.bench.workloads import Workload


@click.command(
    cls=WritingCommand,
    epilog=examples(
        "bench",
        "bench attention 'rgb*' --library torch",
        "bench --format json -o bench.json",
        "bench --quick",
    ),
)
@click.argument("workload", nargs=-1, type=Word("workload", "bench.workloads:WORKLOADS"))
@click.option(
    "--list", "listed", is_flag=True, help="List the workloads and the libraries, and exit."
)
@click.option(
    *("--library", "--peer", "peers"),
    type=Word("library", "bench.peers:PEERS"),
    multiple=True,
    help="Compare with this library only; may be repeated. By default all that are installed.",
)
@click.option(
    "--repeat",
    type=Count(1, 100_000),
    metavar="N",
    help="Time N rounds of each workload; by default, until the medians settle.",
)
@click.option("--quick", is_flag=True, help="One round: check every result, and time roughly.")
@format_option("text", "json", text="How to write the figures.")
@click.option(
    *("-o", "--output"),
    type=FILE_TO_WRITE,
    help="Write the figures to this file, not standard output.",
)
def bench(
    *,
    workload: tuple[str, ...],
    listed: bool,
    peers: tuple[str, ...],
    repeat: int | None,
    quick: bool,
    style: str,
    output: Path | None,
) -> int:
    """Time splits beside the libraries that are installed, and check every result.

    WORKLOAD is a name or a pattern such as 'rgb*'; by default all are run, in some minutes. Each
    time is given as a multiple of the time in which two threads copy the same bytes, measured in
    turns: the median, and the 10th to the 90th percentile. Each library has a process of its own,
    which is stopped while another one is timed. The exit status is 1 if a result is wrong.
    """
    from tensorsplit.bench.figures import Figures, as_json, as_text, describe, lines
    from tensorsplit.bench.workers import measure, separate_workers

    if quick and repeat is not None:
        raise click.UsageError(tr("--quick is --repeat 1; give one of them"))
    chosen = choose_workloads(workload)
    if listed:
        say(*_listing(chosen))
        return 0
    effort = Effort(rounds=1) if quick else Effort(rounds=repeat, pause=PAUSE)
    with separate_workers(choose_entries(peers)) as workers:
        measured = tuple(measure(entry, workers, effort) for entry in _announced(chosen))
    figures = Figures(describe(effort), measured)
    if output is not None:
        write_files({output: as_json(figures) if style == "json" else as_text(figures, WORDS)})
    elif style == "json":
        write(as_json(figures))
    else:
        show(*lines(figures, WORDS), folds=False)
    return FINDINGS if figures.wrong else 0


def _announced(chosen: Sequence[Workload]) -> Iterator[Workload]:
    """Yield each workload, named on a terminal before it is measured.

    Nothing is drawn meanwhile: a moving bar would take time from what is timed.
    """
    stream = sys.stderr if is_terminal(sys.stderr) else None
    for number, workload in enumerate(chosen, 1):
        if stream is not None:
            stream.write(f"\r\x1b[K[{number}/{len(chosen)}] {workload.name}")
            stream.flush()
        yield workload
    if stream is not None:
        stream.write("\r\x1b[K")


def _listing(chosen: Sequence[Workload]) -> Iterable[str]:
    width = max(len(workload.name) for workload in chosen)
    for workload in chosen:
        yield f"{workload.name:{width}}  {known(workload.stands_for)}"
        beside = tr("beside {name}", name=workload.baseline)
        yield f"{'':{width}}  {localized(str(workload))}; {beside}"
    here = installed()
    peers = (f"{peer} {here.get(peer, tr('(not installed)'))}" for peer in PEERS)
    yield tr("libraries: {names}", names=", ".join(peers))
