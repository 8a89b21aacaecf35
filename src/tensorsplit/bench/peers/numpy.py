"""NumPy: slices copied one by one."""

from __future__ import annotations

import numpy as np

from tensorsplit.bench.task import Array, Prepared, Task


def into_buffers(task: Task) -> Prepared:
    """Each slice copied into its buffer."""
    source, indices, buffers = task.source, task.workload.indices, list(task.buffers)

    def call() -> list[Array]:
        for buffer, index in zip(buffers, indices, strict=True):
            np.copyto(buffer, source[index])
        return buffers

    return Prepared(call, list, buffers)


def fresh(task: Task) -> Prepared:
    """`numpy.split`, and each part made contiguous; a part that is already is copied too."""
    source, axis = task.source, task.workload.axis
    cuts = [index[-1].start for index in task.workload.indices[1:]]
    return Prepared(lambda: [part.copy(order="C") for part in np.split(source, cuts, axis)])
