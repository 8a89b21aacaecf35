"""PyTorch: ``split_with_sizes_copy``, and ``split`` for views."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tensorsplit.bench.floor import THREADS
from tensorsplit.bench.task import Array, Prepared, Task, UnableError


def into_buffers(task: Task) -> Prepared:
    """``split_with_sizes_copy`` with ``out=`` tensors that share our buffers."""
    import torch

    buffers = list(task.buffers)
    out = [_tensor(buffer) for buffer in buffers]
    call = partial(torch.split_with_sizes_copy, *_operands(task), out=out)
    return Prepared(call, lambda _: buffers, buffers)


def fresh(task: Task) -> Prepared:
    """``split_with_sizes_copy`` into new tensors."""
    import torch

    return Prepared(partial(torch.split_with_sizes_copy, *_operands(task)), _arrays)


def views(task: Task) -> Prepared:
    """``torch.split``."""
    import torch

    return Prepared(partial(torch.split, *_operands(task)), _arrays)


def _operands(task: Task) -> tuple[Any, list[int], int]:
    return _tensor(task.source), list(task.workload.sizes), task.workload.axis


def _tensor(array: Array) -> Any:
    """The array as a tensor in the same memory."""
    import torch

    torch.set_num_threads(THREADS)
    try:
        return torch.from_numpy(array)
    except (TypeError, ValueError) as error:
        raise UnableError("it takes no such array", error) from None


def _arrays(tensors: Sequence[Any]) -> list[Array]:
    return [tensor.numpy() for tensor in tensors]
