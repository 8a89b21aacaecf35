"""What the times are compared with: memcpy by two threads, or NumPy's own way to cut.

Nothing here uses the package's own kernel.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any

import numpy as np

from tensorsplit.bench.task import Array, Task

THREADS = 2
"""How many threads the floor, and every peer that has a choice, may use."""

_TRIALS = 15


def baseline(task: Task) -> Callable[[], Any]:
    """What the times of a workload are compared with.

    Args:
        task: The workload with its data.

    Returns:
        The call to time: for copies, the same bytes copied from one touched block of memory to
        another; for views, `numpy.split` or plain slicing.
    """
    workload, source = task.workload, task.source
    if workload.kind == "copy":
        return _memcpy(_octets(source), task.memory)
    if workload.kind == "views":
        cuts = [index[-1].start for index in workload.indices[1:]]
        return partial(np.split, source, cuts, workload.axis)
    return _slicing(source, workload.indices)


def _slicing(source: Array, indices: tuple[tuple[slice, ...], ...]) -> Callable[[], Any]:
    return lambda: [source[index] for index in indices]


def _octets(source: Array) -> Array:
    """The bytes of the source, in its own memory where they lie there without gaps."""
    if source.dtype.hasobject:  # references can't be seen as bytes
        return np.ones(source.nbytes, np.uint8)
    return source.ravel(order="K").view(np.uint8)


def _memcpy(source: Array, memory: Array) -> Callable[[], Any]:
    """The faster of one thread and two, which is found out first."""
    target = memory[: source.size]
    middle = source.size // 2
    alone = partial(np.copyto, target, source)
    halves = [
        partial(np.copyto, target[part], source[part])
        for part in (slice(middle), slice(middle, None))
    ]

    def together() -> None:
        other = _helper().submit(halves[1])
        halves[0]()
        other.result()

    ways: list[Callable[[], Any]] = [alone, together]
    return min(ways, key=_middle)


def _middle(call: Callable[[], Any]) -> float:
    """The middle of a few times."""
    times = []
    for _ in range(_TRIALS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return sorted(times)[_TRIALS // 2]


@cache
def _helper() -> ThreadPoolExecutor:
    """The second thread; it is started once and stays."""
    return ThreadPoolExecutor(THREADS - 1, "memcpy")
