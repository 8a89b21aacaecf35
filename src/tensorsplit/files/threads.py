"""Running tasks on threads of this machine."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from math import ceil, floor
from pathlib import Path
from typing import Self

from tensorsplit import native
from tensorsplit.core.errors import TOO_LARGE, SplitError, show_bytes
from tensorsplit.files.formats import WriteTask

BASE = 64 << 20
"""About what Python and the libraries take by themselves."""

_MOST_THREADS = 4


class LocalThreads:
    """Runs tasks here, in bounded memory."""

    def __init__(self, memory: int, least: int) -> None:
        if memory - BASE < least:
            raise SplitError(
                TOO_LARGE,
                f"a task needs {show_bytes(least, ceil)} beside {show_bytes(BASE)} for the program,"
                f" but the limit is {show_bytes(memory, floor)}",
                f"give at least {show_bytes(BASE + least, ceil)}",
                parameter="memory",
            )
        self._threads = min(native.threads, _MOST_THREADS, (memory - BASE) // max(least, 1))
        self.memory = (memory - BASE) // self._threads
        self._pool = ThreadPoolExecutor(self._threads)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def check(self, _token: str, _reads: Sequence[Path]) -> None:
        """Accept everything: all threads see the same files."""

    def run(
        self,
        tasks: Iterator[WriteTask],
        progress: Callable[[int], object],
        *,
        verify: bool = False,
    ) -> int:
        """Run the tasks, a few at a time."""
        waiting: deque[tuple[WriteTask, Future[int]]] = deque()
        total = 0

        def begin(task: WriteTask) -> None:
            done = task.verify if verify else task.write
            waiting.append((task, self._pool.submit(done, self.memory)))

        try:
            for task in islice(tasks, 2 * self._threads):
                begin(task)
            while waiting:
                task, future = waiting[0]
                result = future.result()
                total += result if verify else 0
                progress(task.nbytes)
                waiting.popleft()
                for task in islice(tasks, 1):
                    begin(task)
        except BaseException:
            # Tasks would write into a draft that is gone; one may not be in `waiting` yet
            self._pool.shutdown(cancel_futures=True)
            raise
        return total
