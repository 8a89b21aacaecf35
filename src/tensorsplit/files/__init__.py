"""Tensors in files, larger than memory: split, merged and resharded where they are stored."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, SupportsIndex

from tensorsplit.arrays import as_switch
from tensorsplit.arrays.joining import as_integer
from tensorsplit.arrays.naming import strings_of
from tensorsplit.core.dimensions import as_index
from tensorsplit.core.errors import USAGE, SplitError, SplitWarning, called, wrong_type
from tensorsplit.core.given import as_list, as_path, as_string, is_a
from tensorsplit.files.divisions import SplitOperands
from tensorsplit.files.jobs import plan_merge, plan_reshard, plan_split
from tensorsplit.files.rule_files import chosen_rules
from tensorsplit.storage.outputs import Outputs

if TYPE_CHECKING:
    from tensorsplit.arrays.typed import Lengths
    from tensorsplit.core.records.names import OperatorName
    from tensorsplit.files.jobs import Job

__all__ = ["merge", "reshard", "split"]

MEMORY = 256 << 20
"""The bytes of memory that a split takes at most, by default."""


def split(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    split: Lengths | None = None,
    *,
    axis: SupportsIndex | None = None,
    num_outputs: SupportsIndex | None = None,
    chunk: SupportsIndex | None = None,
    operator: OperatorName | None = None,
    opset: SupportsIndex | None = None,
    names: Sequence[str] | None = None,
    array: str | Sequence[str] | None = None,
    rules: str | os.PathLike[str] | Mapping[str, object] | None = None,
    ranks: int | None = None,
    max_shard_size: int | None = None,
    memory: int = MEMORY,
    workers: int | None = None,
    scheduler: str | None = None,
    verify: bool = False,
    overwrite: bool = False,
) -> None:
    """Split tensors in files, without loading any of them as a whole.

    Args:
        source: An ``.npy``; a ``.safetensors``, or a folder of these with their index; a zarr array
            or group, at a path or URL.
        target: The folder, ``.npz``, ``.safetensors`` or ``.zarr`` that is written, whole or not at
            all.
        split: The length of each part.
        axis: The axis, in [-rank, rank-1]; by default that of the operator version.
        num_outputs: How many parts.
        chunk: The length of each part, of which the last may be smaller.
        operator: The operator version that is followed, such as ``openvino.VariadicSplit-1``; by
            default ONNX's newest Split, or SplitToSequence where `chunk` is given.
        opset: The opset that selects the version, where `operator` is not given.
        names: The names of the parts, in which ``*`` stands for that of the tensor; by default it
            is ``*.0``, ``*.1`` and so on, in one width.
        array: Which tensors of the source are split; by default all.
        rules: A TOML file of rules, the content of such a file, or the name of built-in rules,
            such as ``llama``, in place of all of the above.
        ranks: The number of ranks, in place of the number that the rules give.
        max_shard_size: The most bytes of tensors in a file, of formats that hold several.
        memory: The bytes of memory that each process takes at most.
        workers: How many processes of this machine split, as a Dask cluster; by default threads of
            this one do. Each process imports the script. So call this function below
            ``if __name__ == "__main__":``.
        scheduler: The address of a Dask scheduler whose workers split, such as
            ``tcp://10.0.0.1:8786``.
        verify: Read everything back, and compare it with the source.
        overwrite: Whether `target` may exist, and is replaced.

    Warns:
        SplitWarning: If a pattern of the rules matches no tensor.

    Raises:
        SplitError: TS101 to TS309 for invalid splits; TS702 if the target can't be written,
            TS703 for arguments of other types, and TS705 to TS710; nothing is left of the target
            then.

    Example:
        >>> ts.files.split("qkv.npy", "parts", axis=1, num_outputs=3, names=["q", "k", "v"])
    """
    operands = SplitOperands(axis, split, num_outputs, chunk, operator, opset)
    fix = "give the name of a tensor, or a list of names"
    chosen = () if array is None else [array] if is_a(array, str) else array
    read = _path(source, "source")
    with called(split="split" if chunk is None else "chunk"):
        job = plan_split(
            read,
            _path(target, "target"),
            chosen_rules(rules, operands, names, read, _count(ranks, "ranks")),
            arrays=strings_of(chosen, USAGE, fix, parameter="array"),
            max_shard_size=_count(max_shard_size, "max_shard_size"),
        )
    _run(job, memory, workers, scheduler, overwrite=overwrite, verify=verify)


def merge(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    axis: SupportsIndex | None = None,
    names: Sequence[str] | None = None,
    rules: str | os.PathLike[str] | Mapping[str, object] | None = None,
    ranks: int | None = None,
    max_shard_size: int | None = None,
    memory: int = MEMORY,
    workers: int | None = None,
    scheduler: str | None = None,
    verify: bool = False,
    overwrite: bool = False,
) -> None:
    """Merge the parts that `split` wrote: its exact inverse, in bounded memory.

    Tensors that no rule names are copied. Tensors that ranks share are compared, bit for bit.

    Args:
        source: A folder of ``.npy``, an ``.npz``, a checkpoint as `split` takes it or the folder of
            its ranks, a zarr group, or a folder of zarr arrays.
        out: The file or folder that is written, whole or not at all. A single array may be called
            ``.npy`` or ``.zarr``, arrays of NumPy together ``.npz``, and a checkpoint of ranks
            ``.safetensors``.
        axis: The axis on which the parts are joined, without rules; by default 0.
        names: The names of the parts in their order, in which ``*`` stands for that of the tensor;
            by default they are numbered.
        rules: The rules by which the tensors were split, in place of `axis` and `names`.
        ranks: The number of ranks; by default as in the rules, or all ranks that are found.
        max_shard_size: As in `split`, and so are `memory`, `workers`, `scheduler`, `verify` and
            `overwrite`.
        memory: See `split`.
        workers: See `split`.
        scheduler: See `split`.
        verify: See `split`.
        overwrite: See `split`.

    Warns:
        SplitWarning: If a pattern of the rules matches no tensor, or files of ranks hold metadata
            that one file can't.

    Raises:
        SplitError: TS105 for an axis that is not an integer, TS712 if ranks hold different bits of
            a tensor that they share, TS713 if parts of a tensor are missing or do not fit, and the
            errors of `split`; then nothing is written.

    Example:
        >>> ts.files.merge("ranks", "model.safetensors", rules="rules.toml")
    """
    read = _path(source, "source")
    operands = SplitOperands(None if axis is None else as_integer("axis", axis))
    job = plan_merge(
        read,
        _path(out, "out"),
        chosen_rules(rules, operands, names, read, _count(ranks, "ranks")),
        max_shard_size=_count(max_shard_size, "max_shard_size"),
    )
    _run(job, memory, workers, scheduler, overwrite=overwrite, verify=verify)


def reshard(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    ranks: tuple[int | None, int | None] = (None, None),
    rules: str | os.PathLike[str] | Mapping[str, object],
    to_rules: str | os.PathLike[str] | Mapping[str, object] | None = None,
    max_shard_size: int | None = None,
    memory: int = MEMORY,
    workers: int | None = None,
    scheduler: str | None = None,
    verify: bool = False,
    overwrite: bool = False,
) -> None:
    """Write the files of some ranks from those of others, in one pass.

    No whole tensor is in memory or on the disk in between. With `to_rules`, the result is that of
    `merge` by `rules` and then `split` by `to_rules`. So you can fuse query, key and value when you
    write the files of ranks, or separate them when you read these files.

    Args:
        source: The folder of the files of ranks, as `split` wrote it. If `to_rules` are for ranks,
            also any other checkpoint that `merge` takes.
        out: The folder that is written, whole or not at all; without ranks also a
            ``.safetensors``.
        ranks: The numbers of ranks of `source` and of `out`; None if the rules give the number, or
            if there are no ranks.
        rules: The rules by which tensors are divided among ranks; the numbers of ranks that they
            say don't matter if `ranks` are given.
        to_rules: The rules by which the result is divided; None for the same.
        max_shard_size: As in `split`, and so are `memory`, `workers`, `scheduler`, `verify` and
            `overwrite`.
        memory: See `split`.
        workers: See `split`.
        scheduler: See `split`.
        verify: See `split`.
        overwrite: See `split`.

    Warns:
        SplitWarning: As `merge`.

    Raises:
        SplitError: As `merge` and `split`; TS703 for a tensor that is joined on one axis and
            divided on another one.

    Example:
        >>> ts.files.reshard("ranks8", "ranks2", ranks=(8, 2), rules="rules.toml")
        >>> ts.files.reshard("separate.safetensors", "ranks4", ranks=(None, 4),
        ...                  rules="fuse.toml", to_rules="shard.toml")
    """
    read = _path(source, "source")
    with called(rules="to_rules"):
        other = None if to_rules is None else chosen_rules(to_rules, SplitOperands(), None, read)
    job = plan_reshard(
        read,
        _path(out, "out"),
        chosen_rules(rules, SplitOperands(), None, read),
        _counts_of_ranks(ranks),
        to_rules=other,
        max_shard_size=_count(max_shard_size, "max_shard_size"),
    )
    _run(job, memory, workers, scheduler, overwrite=overwrite, verify=verify)


def _run(
    job: Job,
    memory: int,
    workers: int | None,
    scheduler: str | None,
    *,
    overwrite: bool,
    verify: bool,
) -> None:
    for note in job.notes:
        warnings.warn(note, SplitWarning, stacklevel=3)
    bound = _count(memory, "memory")
    if bound is None:
        raise _unusable(memory, "leave it out, or give a number of bytes", "memory")
    address = as_string(scheduler)
    if address is None and scheduler is not None:
        raise _unusable(scheduler, "give the address of a Dask scheduler", "scheduler")
    count = _count(workers, "workers")
    outputs = Outputs(overwrite=as_switch(overwrite, "overwrite"))
    is_verified = as_switch(verify, "verify")
    with job.executor(bound, workers=count, scheduler=address) as executor:
        job.run(executor, outputs, verify=is_verified)


def _path(given: object, parameter: str) -> str:
    """Return a path or a URL as a string (TS703)."""
    path = as_path(given)
    if path is not None:
        return path
    raise _unusable(given, "give a path or a URL", parameter)


def _count(given: object, parameter: str) -> int | None:
    """Return a number, or None as it is (TS703)."""
    number = as_index(given)
    if number is None and given is not None:
        raise _unusable(given, "give an integer", parameter)
    return number


def _counts_of_ranks(given: object) -> tuple[int | None, int | None]:
    """Return for how many ranks the source is, and for how many the result (TS703)."""
    counts = as_list(given) or ()
    if len(counts) == 2:
        return _count(counts[0], "ranks"), _count(counts[1], "ranks")
    fix = "give two numbers: for how many ranks the source is, and for how many the result"
    raise _unusable(given, fix, "ranks")


def _unusable(given: object, fix: str, parameter: str) -> SplitError:
    return SplitError(USAGE, wrong_type(given), fix, parameter=parameter)


def __dir__() -> list[str]:
    return [*__all__]
