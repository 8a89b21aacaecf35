"""``tensorsplit split``: tensors in files."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import click

from tensorsplit.cli.file_jobs import (
    checked_target,
    job_options,
    parse_size,
    rules_option,
    run_job,
    target_option,
)
from tensorsplit.cli.files import NotedPath, WritingCommand
from tensorsplit.cli.parsing import parse_lengths
from tensorsplit.cli.screen import examples
from tensorsplit.cli.sentences import joined, tr
from tensorsplit.cli.words import OPERATOR
from tensorsplit.core.errors import SplitError, called
from tensorsplit.core.records import operator_named
from tensorsplit.files.divisions import SplitOperands
from tensorsplit.files.jobs import plan_split
from tensorsplit.files.rule_files import chosen_rules

_LENGTHS = re.compile(r"\bsplit = \[([\d, ]+)\]")
_MANY_LENGTHS = re.compile(r", such as split = \[\d+\] \*[^,]*")


@contextlib.contextmanager
def _named_as_options(chunk: int | None) -> Iterator[None]:
    """Name the options of the command in refusals that name operands."""
    lengths = "--split" if chunk is None else "--chunk"
    try:
        with called(split=lengths, num_outputs="--num-outputs", axis="--axis"):
            yield
    except SplitError as error:
        error.fix = _MANY_LENGTHS.sub(" with --split", error.fix)
        error.fix = _LENGTHS.sub(lambda found: f"--split {found[1].replace(' ', '')}", error.fix)
        if "variadic_split" in error.fix:
            error.fix = tr(
                "give lengths >= 0; --operator openvino.VariadicSplit-1 takes one -1, for what the"
                " others leave"
            )
        raise


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
@target_option
@click.option(
    "--axis", type=int, help="The axis to split; by default that of the operator version."
)
@click.option("--split", "lengths", metavar="L,L", help="The length of each part.")
@click.option("--num-outputs", type=int, metavar="N", help="The number of parts.")
@click.option("--chunk", type=int, metavar="L", help="The length of each part but the last.")
@click.option(
    "--operator",
    type=OPERATOR,
    help="The operator version to follow.",
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
@rules_option
@click.option("--ranks", type=int, metavar="N", help="Divide tensors among N ranks, by rules.")
@job_options
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
    rules: str | None,
    ranks: int | None,
    max_shard_size: str | None,
    dry_run: bool,
    **running: Any,
) -> None:
    """Split tensors in files that are larger than memory; none is loaded as a whole.

    SOURCE is an .npy or .npz: each part becomes an .npy in the folder OUT; a .safetensors, or a
    folder of these with their index: OUT is a new one; or a zarr array or group, at a path or URL:
    each part becomes a store in the folder OUT, or, if OUT ends in .zarr, an array in that group,
    beside the arrays that are not split. OUT is outside of SOURCE, and written whole or not at all:
    it is built beside its place and then renamed.
    """
    given = {"--split": lengths, "--num-outputs": num_outputs, "--chunk": chunk}
    several = [name for name, value in given.items() if value is not None]
    if len(several) > 1:
        raise click.UsageError(tr("{names} are given; give one of them", names=joined(several)))
    if not several and rules is None and operator is None and opset is None:
        raise click.UsageError(tr("no lengths are given: give --split, --num-outputs or --chunk"))
    version = None if operator is None else operator_named(operator, opset).id
    operands = SplitOperands(
        axis=axis,
        split=None if lengths is None else parse_lengths(lengths),
        num_outputs=num_outputs,
        chunk=chunk,
        operator=version,
        opset=None if version else opset,
    )
    with _named_as_options(chunk):
        job = plan_split(
            source,
            checked_target(target, dry_run),
            chosen_rules(rules, operands, names and names.split(","), source, ranks),
            arrays=arrays,
            max_shard_size=parse_size(max_shard_size),
        )
    run_job(job, "splitting", dry_run=dry_run, **running)
