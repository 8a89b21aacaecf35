"""Running tasks on the workers of a Dask cluster.

Workers read and write the storage themselves, and return counts. Before anything is written, all of
them and the scheduler are asked which versions they have, and to read a token beside the draft; a
worker that joins later is asked by its first task. Dask runs the tasks of a worker that dies on
another one; they are written so that they may run again.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from functools import cache
from importlib import import_module, metadata
from itertools import islice
from math import ceil, floor
from multiprocessing import resource_tracker
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Condition
from typing import TYPE_CHECKING, Self, TypeAlias
from uuid import uuid4

from fsspec.core import url_to_fs

from tensorsplit.core.errors import (
    CLUSTER,
    TOO_LARGE,
    SplitError,
    fix_of,
    show,
    show_bytes,
    words_of,
)
from tensorsplit.core.extras import needs
from tensorsplit.files.formats import WriteTask
from tensorsplit.files.sources import check_descriptors
from tensorsplit.files.threads import BASE

if TYPE_CHECKING:
    from distributed import Client, Future, LocalCluster

WORKER_TIMEOUT = 60.0
"""The seconds without any worker after which a run ends."""

_LIBRARIES = ("numpy", "safetensors", "zarr", "numcodecs", "fsspec")
_CONNECTING = 30.0
_SETTLING = 60.0
_LOOK = 1.0
_AHEAD = 3
_DESCRIPTORS, _DESCRIPTORS_EACH = 16, 12  # of a cluster, and of each of its processes


Versions: TypeAlias = "tuple[tuple[str, str | None], ...]"


@dataclass(frozen=True, slots=True)
class _Gate:
    """The versions and files that a worker has to have and see before it runs a task.

    Attributes:
        token: The path or URL of a file beside the draft.
        text: What it holds.
        versions: The versions of this package and of the libraries that read and write files.
    """

    token: str
    text: str
    versions: Versions

    def check(self) -> None:
        """Refuse (TS710) a process that has other versions, or does not see the draft."""
        _check_versions(self.versions)
        try:
            fs, path = url_to_fs(self.token)
            text = fs.cat_file(path).decode()
        except (OSError, ValueError):
            text = ""
        if text != self.text:
            problem = f"it does not see what was written to {self.token}"
            raise _refusal(problem, "give a path that all workers share")


def _check_versions(versions: Versions) -> None:
    """Refuse (TS710) other versions than those here."""
    differing = [
        f"{name} {theirs or 'is missing'}, not {ours}"
        for (name, ours), (_, theirs) in zip(versions, _versions(), strict=True)
        if ours != theirs
    ]
    if differing:
        raise _refusal(f"it has {', '.join(differing)}", "install the same versions everywhere")


def _check_worker(gate: _Gate, reads: Sequence[Path]) -> None:
    """Refuse (TS710) a worker that has other versions, or does not see what is read or written."""
    gate.check()
    for path in reads:
        if not path.exists():
            raise _refusal(f"it does not see {path}", "give a path that all workers share")


@cache
def _versions() -> Versions:
    """Return the versions of this package and of the libraries that read and write files."""
    found: list[tuple[str, str | None]] = [
        ("tensorsplit", import_module("tensorsplit").__version__)
    ]
    for name in _LIBRARIES:
        try:
            found.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            found.append((name, None))
    return tuple(found)


class _TaskCount:
    """How many tasks run in this process."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = Condition()

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Count a task during the block."""
        self._add(1)
        try:
            yield
        finally:
            self._add(-1)

    def _add(self, count: int) -> None:
        with self._changed:
            self._count += count
            self._changed.notify_all()

    def wait(self) -> None:
        """Wait until none runs, but not for ever."""
        with self._changed:
            self._changed.wait_for(lambda: self._count == 0, _SETTLING)


_running = _TaskCount()


def _settle() -> None:
    _running.wait()


def _run(gate: _Gate, task: WriteTask, memory: int, verify: bool) -> int:
    """Run a task on a worker; without its token it is not run, as its draft may be gone."""
    with _running.counted():
        gate.check()
        return task.verify(memory) if verify else task.write(memory)


class DaskCluster:
    """Runs tasks on a Dask cluster: one that is there, or one of processes on this machine.

    Args:
        memory: The memory that each process of the cluster takes at most.
        least: What one task needs at least (TS707).
        address: Where the scheduler is, such as ``tcp://10.0.0.1:8786``; None to start processes.
        workers: How many processes are started; one for each processor by default.
        timeout: After so many seconds without a worker the run ends (TS710).
    """

    def __init__(
        self,
        memory: int,
        least: int,
        *,
        address: str | None = None,
        workers: int | None = None,
        timeout: float = WORKER_TIMEOUT,
    ) -> None:
        self._whole, self._least = memory - BASE, least
        self._address, self._workers = address, workers
        self._timeout = timeout
        self._closing = contextlib.ExitStack()
        self._count, self._looked, self._seen = 0, 0.0, time.monotonic()
        self.memory = 0

    def __enter__(self) -> Self:
        with needs("files"):
            from distributed import Client
            from distributed.comm import resolve_address
        with contextlib.ExitStack() as closing:
            closing.enter_context(_silence())
            where: object = self._address
            if where is None:
                where = closing.enter_context(_processes(self._workers))
            try:
                if self._address is not None:
                    resolve_address(self._address)  # a client that refuses one writes a traceback
                timeout = min(self._timeout, _CONNECTING)
                client = Client(where, timeout=timeout, set_as_default=False)
            except (OSError, ValueError) as error:
                raise _refusal(f"no scheduler answers: {show(error)}", "give its address") from None
            self._client: Client = closing.enter_context(client)
            while not self._threads():
                time.sleep(_LOOK / 10)
            threads = max(self._client.nthreads().values(), default=1)
            self.memory = self._whole // threads
            if self.memory < self._least:
                raise SplitError(
                    TOO_LARGE,
                    f"a task needs {show_bytes(self._least, ceil)}, and with {threads} threads in a"
                    f" worker each has {show_bytes(max(self.memory, 0), floor)}",
                    f"give at least {show_bytes(BASE + threads * self._least, ceil)}",
                    parameter="memory",
                )
            self._closing = closing.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def check(self, token: str, reads: Sequence[Path]) -> None:
        """Refuse (TS710) if a worker or the scheduler has other versions, or sees other storage."""
        self._gate = _Gate(token, uuid4().hex, _versions())
        fs, path = url_to_fs(token)
        fs.pipe_file(path, self._gate.text.encode())
        try:
            self._client.run_on_scheduler(_check_versions, self._gate.versions)
        except Exception as error:  # noqa: BLE001 - it may not even know this function
            raise _refused_by("the scheduler", error) from None
        answers = self._client.run(_check_worker, self._gate, reads, on_error="return")
        alive = self._client.nthreads()
        for worker, answer in sorted(answers.items()):
            if answer is not None and worker in alive:
                raise _refused_by(f"the worker at {worker}", answer)

    def run(
        self,
        tasks: Iterator[WriteTask],
        progress: Callable[[int], object],
        *,
        verify: bool = False,
    ) -> int:
        """Run the tasks, a few for each thread of the cluster at a time (TS710)."""
        done: SimpleQueue[Future[int]] = SimpleQueue()
        waiting: dict[Future[int], int] = {}  # with the bytes of each
        total = 0
        try:
            while True:
                most = max(_AHEAD * self._threads(), 1)  # so that none waits only at the end
                for task in islice(tasks, max(most - len(waiting), 0)):
                    future = self._client.submit(
                        _run, self._gate, task, self.memory, verify, pure=False
                    )
                    waiting[future] = task.nbytes
                    future.add_done_callback(done.put)
                if not waiting:
                    break
                with contextlib.suppress(Empty):
                    future = done.get(timeout=_LOOK)
                    result = _result(future)
                    total += result if verify else 0
                    progress(waiting.pop(future))
            self._settle()  # what a worker that was given up still writes into the draft
        finally:
            if waiting:  # whatever still writes into a draft that is about to be removed
                self._end(list(waiting))
        return total

    def _settle(self) -> None:
        """Wait until no worker runs a task."""
        with contextlib.suppress(Exception):
            self._client.run(_settle)

    def _end(self, tasks: list[Future[int]]) -> None:
        """End the running tasks, with the processes that are ours; others end those they began."""
        if self._address is None:
            self._closing.close()
            return
        self._client.cancel(tasks, force=True)
        with contextlib.suppress(Exception):
            fs, path = url_to_fs(self._gate.token)
            fs.rm(path)  # or another task would begin
        self._settle()

    def _threads(self) -> int:
        """Return how many threads the cluster has now; TS710 after a while without any."""
        now = time.monotonic()
        if now - self._looked >= _LOOK:
            try:
                self._count = sum(self._client.nthreads().values())
            except OSError as error:
                raise _refusal(f"the scheduler does not answer: {show(error)}") from None
            self._looked = time.monotonic()
            if self._count:
                self._seen = self._looked
            elif self._looked - self._seen > self._timeout:
                problem = f"no worker was available for {self._timeout:g} seconds"
                raise _refusal(problem, "start workers, and run it again")
        return self._count


def _processes(count: int | None) -> LocalCluster:
    """Start a cluster of so many processes of this machine (TS710)."""
    from distributed import LocalCluster

    try:
        with _without_interrupts():
            check_descriptors(_DESCRIPTORS + _DESCRIPTORS_EACH * (count or os.cpu_count() or 1))
            return LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                memory_limit=None,
                scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
                silence_logs=logging.CRITICAL,
            )
    except OSError as error:  # Dask would wait for ever, and write tracebacks
        problem, fix = f"no process starts: {words_of(error)}", fix_of(error, "give fewer")
        raise _refusal(problem, fix, "workers") from None
    except RuntimeError as error:
        # each of them imports the script, and none of those starts any
        fix = "in a script, call it below: if __name__ == '__main__':"
        raise _refusal(f"no process starts: {show(error)}", fix, "workers") from None


def _result(future: Future[int]) -> int:
    """Return the result of a task."""
    from distributed import KilledWorker

    try:
        return int(future.result())
    except KilledWorker:
        raise _refusal(
            "each worker that ran one of the tasks died", "give them more memory"
        ) from None
    except CancelledError:
        raise _refusal("the scheduler lost a task", "run it again") from None


def _refused_by(who: str, error: BaseException) -> SplitError:
    if isinstance(error, SplitError):
        return _refusal(f"{who}: {error.problem}", error.fix)
    problem = f"{who}: it can't run tensorsplit: {show(error)}"
    return _refusal(problem, "install it there, in the same version")


def _refusal(problem: str, fix: str = "", parameter: str = "scheduler") -> SplitError:
    return SplitError(CLUSTER, problem, fix, parameter=parameter)


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Keep Ctrl-C from the processes that start here, which would each write a traceback.

    A terminal sends it to all of them. Threads and processes begin with the mask of what starts
    them; in this thread the signal waits for the end of the block.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # what starts this process of Python's lets signals through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep the log of Dask off standard error, as each refusal is one line there."""
    with contextlib.ExitStack() as restoring:
        for handler in logging.getLogger("distributed").handlers:
            restoring.callback(handler.setLevel, handler.level)
            handler.setLevel(logging.CRITICAL + 1)
        yield
