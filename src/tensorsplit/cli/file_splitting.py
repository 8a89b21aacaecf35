"""``tensorsplit split``: tensors in files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tensorsplit.cli.files import FILE_TO_READ, NotedPath, WritingCommand, outputs
from tensorsplit.cli.parsing import parse_bytes, parse_lengths
from tensorsplit.cli.screen import Table, examples, note, progress_of, say, show
from tensorsplit.cli.words import OPERATOR
from tensorsplit.core.errors import printable
from tensorsplit.core.errors import show as shown
from tensorsplit.core.records import operator_named

if TYPE_CHECKING:
    from tensorsplit.files.formats import Division
    from tensorsplit.files.split_job import SplitJob

_MOST_PARTS = 8


@click.command(
    cls=WritingCommand,
    epilog=examples(
        "split qkv.npy -o parts --axis 1 --num-outputs 3 --names q,k,v",
        "split qkv.npy -o parts --split 4096,1024,1024",
        "split cube.npy -o years --chunk 365 --verify",
        "split model/ -o out/ --rules rules.toml --dry-run",
    ),
)
@click.argument("source", type=NotedPath("source", "reads"))
@click.option("-o", "--output", "target", metavar="OUT", help="What is written: see above.")
@click.option("--axis", type=int, help="The axis; by default that of the operator version.")
@click.option("--split", "lengths", metavar="L,L", help="The length of each part.")
@click.option("--num-outputs", type=int, metavar="N", help="How many parts.")
@click.option("--chunk", type=int, metavar="L", help="The length of each part but the last.")
@click.option(
    "--operator",
    type=OPERATOR,
    help="The operator version that is followed.",
)
@click.option("--opset", type=int, help="The opset that selects the version.")
@click.option(
    "--names",
    metavar="NAME,NAME",
    help="The names of the parts; * stands for that of the tensor. By default *.0, *.1, ...",
)
@click.option(
    "--array",
    "arrays",
    metavar="NAME",
    multiple=True,
    help="Split this tensor of the source; may be repeated. By default all.",
)
@click.option(
    "--rules",
    type=FILE_TO_READ,
    help="A TOML file that says which tensors of a checkpoint become what.",
)
@click.option(
    "--max-shard-size",
    metavar="SIZE",
    help="Divide files of which the tensors take more, such as 5GB.",
)
@click.option("--dry-run", is_flag=True, help="Print the plan, and write nothing.")
@click.option(
    "--memory",
    metavar="SIZE",
    default="256MiB",
    show_default=True,
    help="The most memory that a process takes, such as 1GiB.",
)
@click.option("--workers", type=int, metavar="N", help="Split in N processes, as a Dask cluster.")
@click.option("--scheduler", metavar="ADDRESS", help="Split on a Dask cluster, by its scheduler.")
@click.option("--verify", is_flag=True, help="Read everything back, and compare it.")
@click.option("--overwrite", is_flag=True, help="Replace OUT if it is there.")
def split(
    *,
    source: str,
    target: str | None,
    axis: int | None,
    lengths: str | None,
    num_outputs: int | None,
    chunk: int | None,
    operator: str | None,
    opset: int | None,
    names: str | None,
    arrays: Sequence[str],
    rules: Path | None,
    max_shard_size: str | None,
    dry_run: bool,
    memory: str,
    workers: int | None,
    scheduler: str | None,
    verify: bool,
    overwrite: bool,
) -> None:
    """Split tensors in files, without loading any of them as a whole.

    SOURCE is an .npy or .npz, of which each part becomes an .npy in the folder OUT; a .safetensors,
    or a folder of these with their index, of which OUT is a new one; or a zarr array or group, at a
    path or URL, of which each part becomes a store in the folder OUT, or, if OUT ends in .zarr, an
    array in that group beside what is not split. OUT is whole or not there: it is built beside its
    place and renamed.
    """
    from tensorsplit.files.divisions import SplitOperands
    from tensorsplit.files.rule_files import chosen_rules
    from tensorsplit.files.split_job import plan_job

    version = None if operator is None else operator_named(operator, opset).id
    operands = SplitOperands(
        axis=axis,
        split=None if lengths is None else parse_lengths(lengths),
        num_outputs=num_outputs,
        chunk=chunk,
        operator=version,
        opset=None if version else opset,
    )
    job = plan_job(
        source,
        target or "",
        chosen_rules(rules, operands, None if names is None else names.split(",")),
        arrays=arrays,
        max_shard_size=None if max_shard_size is None else parse_bytes(max_shard_size),
    )
    note(*(f"{shown(pattern)} matches no tensor" for pattern in job.unmatched))
    if dry_run:
        _show_plan(job)
        return
    if target is None:
        raise click.UsageError("there is no -o OUT; say where the result goes, or --dry-run")
    total = job.nbytes * (2 if verify else 1)
    with (
        job.executor(parse_bytes(memory), workers=workers, scheduler=scheduler) as executor,
        progress_of("splitting", total, in_bytes=True) as progress,
    ):
        checksum = job.run(
            executor, outputs(), overwrite=overwrite, verify=verify, progress=progress
        )
    if verify:
        made = sum(len(each.outputs) for each in job.divisions)
        say(
            f"verified: {job.nbytes:,} bytes of {made:,} tensors were read back and equal the"
            f" source's; sum of CRC-32 {checksum:08x}"
        )


def _show_plan(job: SplitJob) -> None:
    """Print the plan as a table: what is split, and in one line what is carried over."""
    rows = []
    kept = [each for each in job.divisions if not each.is_change]
    for each in job.divisions:
        if each.is_change:
            tensor = each.tensor
            name = printable(tensor.name)
            rows.append((name, _shape(tensor.shape), _parts(each), f"{tensor.nbytes:,}"))
    if kept:
        size = sum(each.tensor.nbytes for each in kept)
        rows.append((f"{len(kept)} more", "", "carried over", f"{size:,}"))
    show(Table(rows, ("tensor", "shape", "parts", "bytes")))


def _parts(division: Division) -> str:
    """Return the new tensors with their shapes; of many, the first and the last."""
    last = division.outputs[-1]
    if last.rank is not None:
        return printable(f"{last.name} {_shape(last.shape)}, {last.rank + 1} ranks")
    cells = [printable(f"{each.name} {_shape(each.shape)}") for each in division.outputs]
    if len(cells) > _MOST_PARTS:
        cells[_MOST_PARTS - 1 : -1] = [f"({len(cells) - _MOST_PARTS} more)"]
    return "\n".join(cells)


def _shape(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "scalar"
