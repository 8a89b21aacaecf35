"""``tensorsplit split``: tensors in files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from tensorsplit.cli.files import InputFile, WritingCommand, outputs
from tensorsplit.cli.parsing import operator_named, parse_bytes, parse_lengths
from tensorsplit.cli.screen import examples, progress_of


@click.command(
    cls=WritingCommand,
    epilog=examples(
        "split qkv.npy -o parts --axis 1 --num-outputs 3 --names q,k,v",
        "split qkv.npy -o parts --split 4096,1024,1024",
        "split cube.npy -o years --chunk 365 --verify",
    ),
)
@click.argument("source", type=InputFile())
@click.option("-o", "--output", "target", metavar="OUT", required=True, help="Where parts go.")
@click.option("--axis", type=int, help="The axis; by default that of the operator version.")
@click.option("--split", "lengths", metavar="L,L", help="The length of each part.")
@click.option("--num-outputs", type=int, metavar="N", help="How many parts.")
@click.option("--chunk", type=int, metavar="L", help="The length of each part but the last.")
@click.option("--operator", metavar="OPERATOR", help="The operator version that is followed.")
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
    "--memory",
    metavar="SIZE",
    default="256MiB",
    show_default=True,
    help="The most memory that is taken, such as 1GiB.",
)
@click.option("--verify", is_flag=True, help="Read everything back, and compare it.")
@click.option("--overwrite", is_flag=True, help="Replace OUT if it is there.")
def split(
    *,
    source: str,
    target: str,
    axis: int | None,
    lengths: str | None,
    num_outputs: int | None,
    chunk: int | None,
    operator: str | None,
    opset: int | None,
    names: str | None,
    arrays: Sequence[str],
    memory: str,
    verify: bool,
    overwrite: bool,
) -> None:
    """Split tensors in files, without loading any of them as a whole.

    SOURCE is an .npy. OUT is whole or not there: it is built beside its place and renamed.
    """
    from tensorsplit.files.divisions import SplitOperands
    from tensorsplit.files.split_job import plan_job
    from tensorsplit.files.threads import LocalThreads

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
        Path(target),
        operands,
        names=None if names is None else names.split(","),
        arrays=arrays,
    )
    total = job.nbytes * (2 if verify else 1)
    with (
        LocalThreads(parse_bytes(memory), job.writing.least_memory) as executor,
        progress_of("splitting", total, in_bytes=True) as progress,
    ):
        job.run(executor, outputs(), overwrite=overwrite, verify=verify, progress=progress)
