"""The common parts of the commands on tensors in files: options, progress, and the plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from tensorsplit.cli.files import NotedPath, outputs, refuse_empty, refuse_pipe
from tensorsplit.cli.parsing import parse_bytes
from tensorsplit.cli.screen import Table, listed, note, progress_of, say, show
from tensorsplit.cli.sentences import amount, localized, tr
from tensorsplit.core.errors import printable, show_bytes

if TYPE_CHECKING:
    from tensorsplit.files.formats import Recast
    from tensorsplit.files.jobs import Job

_Function = TypeVar("_Function", bound=Callable[..., object])

_MOST_PARTS = 8

_OPTIONS = (
    click.option(
        "--max-shard-size",
        metavar="SIZE",
        help="The most bytes of tensors in one file of OUT, such as 5GB.",
    ),
    click.option("--dry-run", is_flag=True, help="Print the plan, and write nothing."),
    click.option(
        "--memory",
        metavar="SIZE",
        default="256MiB",
        show_default=True,
        help="The most memory that one process may take, such as 1GiB.",
    ),
    click.option(
        "--workers",
        type=int,
        metavar="N",
        help="Run on a Dask cluster of N processes, on this machine.",
    ),
    click.option(
        "--scheduler", metavar="ADDRESS", help="Run on the Dask cluster of this scheduler."
    ),
    click.option(
        "--verify", is_flag=True, help="Read everything back, and compare it with SOURCE."
    ),
)

target_option = click.option(
    "-o", "--output", "target", metavar="OUT", help="Where to write the result: see above."
)

rules_option = click.option(
    "--rules",
    type=NotedPath("file", "reads"),
    help="A TOML file, or a name such as llama: which tensors of a checkpoint become what.",
)


def job_options(function: _Function) -> _Function:
    """Add the options that `run_job` takes, and that for the size of files."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def parse_size(word: str | None) -> int | None:
    """Read a size that may not be given."""
    return None if word is None else parse_bytes(word)


def checked_target(target: str | None, dry_run: bool) -> str:
    """Return where the result goes; TS703 for none, unless it is a dry run; TS702 for - and ''."""
    if target is not None:
        refuse_empty(target, "--output")
        refuse_pipe(target, "--output")
    if target is None and not dry_run:
        raise click.UsageError(tr("there is no -o OUT; say where the result goes, or --dry-run"))
    return target or ""


def run_job(
    job: Job,
    doing: str,
    *,
    dry_run: bool,
    memory: str,
    workers: int | None,
    scheduler: str | None,
    verify: bool,
) -> None:
    """Run a job, or print its plan."""
    note(*map(localized, job.notes))
    if dry_run:
        _show_plan(job)
        return
    total = job.nbytes * (2 if verify else 1)
    with (
        job.executor(parse_bytes(memory), workers=workers, scheduler=scheduler) as executor,
        progress_of(doing, total, in_bytes=True) as progress,
    ):
        checksum = job.run(executor, outputs(), verify=verify, progress=progress)
    names = [output.name for each in job.changes for output in each.after.outputs]
    what = f"{amount(len(names), 'tensor')}, {show_bytes(job.nbytes)}"
    say(f"{job.target}: {what}: {listed(list(dict.fromkeys(names)))}")
    if verify:
        say(
            tr(
                "verified: {what}, were read back and equal the source's; sum of CRC-32 {checksum}",
                what=what,
                checksum=f"{checksum:08x}",
            )
        )


def _show_plan(job: Job) -> None:
    """Print the plan as a table: the changes, and in one line the tensors carried over."""
    rows = []
    kept = [each for each in job.changes if not each.is_change]
    for each in job.changes:
        if each.is_change:
            whole = each.before.tensor
            rows.append(
                (_stored(each), _shape(whole.shape), _parts(each), show_bytes(whole.nbytes))
            )
    if kept:
        size = sum(each.after.tensor.nbytes for each in kept)
        more = tr("{n} more", n=len(kept))
        rows.append((more, "", tr("carried over"), show_bytes(size)))
    show(Table(rows, (tr("tensor"), tr("shape"), tr("parts"), tr("size"))))


def _stored(change: Recast) -> str:
    """Return the stored tensors: the whole, or of its parts the names."""
    if change.before.plan is None:
        return printable(change.before.tensor.name)
    return _cells([f"{each.name} {_shape(each.shape)}" for each in change.before.outputs])


def _parts(change: Recast) -> str:
    """Return the new tensors with their shapes; of many, the first and the last."""
    outputs = change.after.outputs
    last = outputs[-1]
    if last.rank is not None:
        ranks = amount(last.rank + 1, "rank")
        return printable(f"{last.name} {_shape(last.shape)}, {ranks}")
    return _cells([f"{each.name} {_shape(each.shape)}" for each in outputs])


def _cells(names: Sequence[str]) -> str:
    cells = list(map(printable, names))
    if len(cells) > _MOST_PARTS:
        cells[_MOST_PARTS - 1 : -1] = [tr("({n} more)", n=len(cells) - _MOST_PARTS)]
    return "\n".join(cells)


def _shape(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or tr("scalar")
