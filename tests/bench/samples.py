"""Small workloads, and peers that do them rightly or wrongly."""

from __future__ import annotations

from collections.abc import Callable

from tensorsplit.bench.peers import Entry
from tensorsplit.bench.workloads import Array, Prepared, Task, Workload

SMALL = Workload("small-split", "a test", (5, 6), "float32", 1, (2, 4))
STRINGS = Workload("text", "a test", (4, 3), "object", 1, (1, 2))
JOIN = Workload("small-join", "a test", (5, 6), "float32", 1, (2, 4), kind="join")
VIEWS = Workload("small-views", "a test", (5, 6), "float32", 1, (2, 4), kind="views")
PLAN = Workload("small-plan", "a test", (5, 6), "float32", 1, (2, 4), kind="plan")


def writes(change: Callable[[list[Array]], None] = lambda _: None) -> Callable[[Task], Prepared]:
    """A peer that fills the buffers, and then does something to them."""

    def prepare(task: Task) -> Prepared:
        def call() -> list[Array]:
            for buffer, index in zip(task.buffers, task.workload.indices, strict=True):
                buffer[...] = task.source[index]
            change(list(task.buffers))
            return list(task.buffers)

        return Prepared(call, list, task.buffers)

    return prepare


def entry(prepare: Callable[[Task], Prepared], peer: str = "planted") -> Entry:
    """A peer as the table of peers has it."""
    return Entry(peer, "out", "copy", prepare)
