"""``tensorsplit merge`` and ``tensorsplit reshard``: the way back from a split in files."""

from __future__ import annotations

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
from tensorsplit.cli.screen import examples
from tensorsplit.cli.sentences import tr
from tensorsplit.core.errors import called
from tensorsplit.files.divisions import SplitOperands
from tensorsplit.files.jobs import plan_merge, plan_reshard
from tensorsplit.files.rule_files import chosen_rules


@click.command(
    cls=WritingCommand,
    epilog=examples(
        "merge parts -o qkv.npy --axis 1 --names q,k,v",
        "merge years -o cube.npy --verify",
        "merge ranks -o model.safetensors --rules rules.toml --verify",
    ),
)
@click.argument("source", type=NotedPath("source", "reads"))
@target_option
@click.option("--axis", type=int, help="The axis along which parts are joined; by default 0.")
@click.option(
    "--names",
    metavar="NAME,NAME",
    help="The names of the parts in their order; by default they are numbered.",
)
@rules_option
@click.option("--ranks", type=int, metavar="N", help="The number of ranks.")
@job_options
def merge(
    *,
    source: str,
    target: str | None,
    axis: int | None,
    names: str | None,
    rules: str | None,
    ranks: int | None,
    max_shard_size: str | None,
    dry_run: bool,
    **running: Any,
) -> None:
    """Join the parts of tensors that split wrote: its exact inverse, in bounded memory.

    SOURCE is what split wrote: a folder of .npy, an .npz, a .safetensors or a folder of these with
    an index or for ranks, a zarr group or a folder of zarr arrays. OUT is of the same kind and
    outside of SOURCE; one array may be an .npy or a .zarr, and the tensors of ranks a .safetensors.
    Tensors that no rule names are carried over; tensors that ranks share must be equal, bit for
    bit. OUT is written whole or not at all.
    """
    parts = None if names is None else names.split(",")
    job = plan_merge(
        source,
        checked_target(target, dry_run),
        chosen_rules(rules, SplitOperands(axis), parts, source, ranks),
        max_shard_size=parse_size(max_shard_size),
    )
    run_job(job, "merging", dry_run=dry_run, **running)


@click.command(
    cls=WritingCommand,
    epilog=examples(
        "reshard ranks8 -o ranks2 --from 8 --to 2 --rules rules.toml",
        "reshard model.safetensors -o ranks4 --to 4 --rules fuse.toml --to-rules rules.toml",
    ),
)
@click.argument("source", type=NotedPath("source", "reads"))
@target_option
@click.option("--from", "before", type=int, metavar="N", help="The number of ranks of SOURCE.")
@click.option("--to", "after", type=int, metavar="M", help="The number of ranks of OUT.")
@rules_option
@click.option(
    "--to-rules",
    type=NotedPath("file", "reads"),
    help="Other rules for OUT: the result is that of merge with --rules, then split with these.",
)
@job_options
def reshard(
    *,
    source: str,
    target: str | None,
    before: int | None,
    after: int | None,
    rules: str | None,
    to_rules: str | None,
    max_shard_size: str | None,
    dry_run: bool,
    **running: Any,
) -> None:
    """Turn the files of N ranks into those of M, in one pass.

    SOURCE is the folder of the ranks' files, as split wrote them, and OUT a new one outside of it.
    The rules are applied for N and for M ranks, whatever number they state. No tensor is put
    together on the way, in memory or on the disk. OUT is written whole or not at all.

    With --to-rules, tensors are fused on the way to ranks (without --from), or taken apart on the
    way from them (without --to).
    """
    if rules is None:
        raise click.UsageError(tr("there are no --rules; say which tensors are divided, and how"))
    with called(rules="to_rules"):
        other = None if to_rules is None else chosen_rules(to_rules, SplitOperands(), None, source)
    job = plan_reshard(
        source,
        checked_target(target, dry_run),
        chosen_rules(rules, SplitOperands(), None, source),
        (before, after),
        to_rules=other,
        max_shard_size=parse_size(max_shard_size),
    )
    run_job(job, "resharding", dry_run=dry_run, **running)
