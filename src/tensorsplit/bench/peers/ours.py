"""The package itself."""

from __future__ import annotations

from functools import partial
from typing import Any

import tensorsplit as ts
from tensorsplit import native
from tensorsplit.bench.floor import THREADS
from tensorsplit.bench.task import Prepared, Task, UnableError

_OPERATOR = "onnx.Split-18"


def into_buffers(task: Task) -> Prepared:
    """An eager call with ``out=`` buffers."""
    buffers = list(task.buffers)
    return Prepared(
        partial(ts.split, *_operands(task), axis=task.workload.axis, out=buffers), list, buffers
    )


def fresh(task: Task) -> Prepared:
    """An eager call with ``copy=True``."""
    return Prepared(partial(ts.split, *_operands(task), axis=task.workload.axis, copy=True))


def pooled(task: Task) -> Prepared:
    """An eager call whose parts come from a `BufferPool` that can hold all of them."""
    if task.source.dtype.hasobject:
        raise UnableError("a pool holds no references to Python objects")
    pool = ts.BufferPool(2 * task.workload.nbytes + (1 << 20))
    return Prepared(partial(ts.split, *_operands(task), axis=task.workload.axis, out=pool))


def eager_views(task: Task) -> Prepared:
    """An eager call."""
    return Prepared(partial(ts.split, *_operands(task), axis=task.workload.axis))


def planned_views(task: Task) -> Prepared:
    """A call of a prepared plan."""
    source, sizes = _operands(task)
    plan = ts.plan(_OPERATOR, source.shape, sizes, axis=task.workload.axis)
    return Prepared(partial(plan, source))


def _operands(task: Task) -> tuple[Any, list[int]]:
    if native.kernel is not None:
        native.kernel.use_threads(THREADS)
    return task.source, list(task.workload.sizes)
