"""Tensors in files, larger than memory: split where they are stored."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["split"]

MEMORY = 256 << 20
"""The bytes of memory that a split takes at most, if nothing else is said."""


def split(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    split: Sequence[int] | None = None,
    *,
    axis: int | None = None,
    num_outputs: int | None = None,
    chunk: int | None = None,
    operator: str | None = None,
    opset: int | None = None,
    names: Sequence[str] | None = None,
    array: str | Sequence[str] | None = None,
    rules: str | os.PathLike[str] | Mapping[str, Any] | None = None,
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
        target: The folder, ``.safetensors`` or ``.zarr`` that is written, whole or not at all.
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
        rules: A TOML file of rules, or what such a file holds, in the place of all of the above.
        max_shard_size: The most bytes of tensors in a file, of formats that hold several.
        memory: The bytes of memory that each process takes at most.
        workers: How many processes of this machine split, as a Dask cluster; by default threads of
            this one do.
        scheduler: The address of a Dask scheduler whose workers split, such as
            ``tcp://10.0.0.1:8786``.
        verify: Read everything back, and compare it with the source.
        overwrite: Whether `target` may be there already, and is replaced.

    Warns:
        SplitWarning: If a pattern of the rules matches no tensor.

    Raises:
        SplitError: TS101 to TS309 for what is no split; TS702 if the target can't be written, and
            TS705 to TS710; nothing is left behind then.

    Example:
        >>> ts.files.split("qkv.npy", "parts", axis=1, num_outputs=3, names=["q", "k", "v"])
    """
    from tensorsplit.core.errors import SplitWarning, show
    from tensorsplit.files.divisions import SplitOperands
    from tensorsplit.files.rule_files import chosen_rules
    from tensorsplit.files.split_job import plan_job
    from tensorsplit.storage.outputs import Outputs

    operands = SplitOperands(axis, split, num_outputs, chunk, operator, opset)
    job = plan_job(
        os.fspath(source),
        os.fspath(target),
        chosen_rules(rules, operands, names),
        arrays=[array] if isinstance(array, str) else array or (),
        max_shard_size=max_shard_size,
    )
    for pattern in job.unmatched:
        warnings.warn(f"{show(pattern)} matches no tensor", SplitWarning, stacklevel=2)
    with job.executor(memory, workers=workers, scheduler=scheduler) as executor:
        job.run(executor, Outputs(), overwrite=overwrite, verify=verify)
