"""Workers: each library is timed in a process of its own, which stands still for the others.

A worker prepares the entries of a library, times them and checks their results. Between its turns
its process is stopped, so that a thread that spins there takes no time from another library.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from typing import Any

import msgspec

from tensorsplit.bench.peers import ENTRIES, Entry, baseline, is_ours
from tensorsplit.bench.timing import (
    Effort,
    Measured,
    Spread,
    Timed,
    in_turns,
    repeats_of,
    rest,
    sample,
    spread,
)
from tensorsplit.bench.workloads import Prepared, Task, UnableError, Workload, find_fault, make_task
from tensorsplit.engines.process import EngineProcess

BASELINE = -1
"""The number of the baseline at every worker; entries are counted from 0."""

_SECONDS = 300.0  # for one answer
_CAN_STOP = hasattr(signal, "SIGSTOP")


class LocalWorker:
    """A worker in this process: numbers are places in what `prepare` returned, or `BASELINE`."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = tuple(entries)
        self._task: Task | None = None
        self._ready: dict[int, Prepared] = {}
        self._repeats: dict[int, int] = {}

    def prepare(self, workload: Workload) -> list[Timed]:
        """Make a workload ready: each entry for its kind, with what keeps it from being timed.

        An exception of our own is raised, as it is a bug.
        """
        self._task = None  # its memory is free before the next takes some
        self._ready.clear()
        self._repeats.clear()
        self._task = make_task(workload)
        chosen = [entry for entry in self._entries if entry.kind == workload.kind]
        return [self._prepared(*numbered, self._task) for numbered in enumerate(chosen)]

    def _prepared(self, number: int, entry: Entry, task: Task) -> Timed:
        make = partial(Timed, entry.peer, entry.mode)
        try:
            self._ready[number] = entry.prepare(task)
            return make(wrong=find_fault(task, self._ready[number]))
        except UnableError as reason:
            return make(cannot=str(reason))
        except Exception as error:  # another library may raise anything; what we raise is a bug
            if is_ours(entry.peer):
                raise
            return make(cannot=str(UnableError("it fails", error)))

    def sample(self, number: int, pause: float = 0.0) -> float:
        """Return the seconds of one call, after a pause."""
        if number == BASELINE and number not in self._ready:
            self._ready[number] = Prepared(baseline(self._prepared_task))
        call = self._ready[number].call
        if number not in self._repeats:
            self._repeats[number] = repeats_of(call)
        return sample(call, self._repeats[number], pause)

    def fault(self, number: int) -> str | None:
        """Return the error in the result, as of now; None if it is right."""
        return find_fault(self._prepared_task, self._ready[number])

    @property
    def is_prepared(self) -> bool:
        """Whether a workload is ready."""
        return self._task is not None

    @property
    def _prepared_task(self) -> Task:
        if self._task is None:
            raise RuntimeError("a worker is prepared before it is asked")
        return self._task


class SeparateWorker:
    """A worker in a process of its own, which is stopped but for its turns."""

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.process = EngineProcess(peer or "the baseline", f"{__name__}:answer")
        self._workload: object = None

    def prepare(self, workload: Workload) -> list[Timed]:
        """Do as `LocalWorker.prepare`; if the process ends, the library can't do it."""
        self._workload = msgspec.to_builtins(workload)
        try:
            timed = self._ask("prepare", [])
        except UnableError as reason:
            kinds = [entry for entry in ENTRIES if entry.kind == workload.kind]
            chosen = [entry for entry in kinds if entry.peer == self.peer]
            return [Timed(entry.peer, entry.mode, cannot=str(reason)) for entry in chosen]
        return msgspec.convert(timed, list[Timed])

    def sample(self, number: int, pause: float = 0.0) -> float:
        """Do as `LocalWorker.sample`; UnableError if that ends the process."""
        return float(self._ask("sample", [number, pause]))

    def fault(self, number: int) -> str | None:
        """Do as `LocalWorker.fault`."""
        try:
            found: str | None = self._ask("fault", [number])
        except UnableError as reason:
            return str(reason)
        return found

    def _ask(self, method: str, about: list[object]) -> Any:
        self._signal("SIGCONT")
        reply = self.process.ask((self.peer, self._workload, method, about), _SECONDS)
        self._signal("SIGSTOP")
        if reply.death is not None:
            raise UnableError(f"its process {reply.death}")
        if reply.words is not None and self.peer and not is_ours(self.peer):
            raise UnableError(f"it fails: {reply.words}")
        return reply.value(self.process.name)

    def _signal(self, name: str) -> None:
        """Let the process go on, or stop it and wait until it stands, where that can be done."""
        pid = self.process.pid
        if not _CAN_STOP or pid is None:
            return
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, getattr(signal, name))
            if name == "SIGSTOP" and hasattr(os, "waitid"):
                os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)


@contextmanager
def separate_workers(entries: Iterable[Entry]) -> Iterator[list[SeparateWorker]]:
    """Yield a worker for the baseline and each library, in processes that end afterwards."""
    peers = dict.fromkeys(["", *(entry.peer for entry in entries)])
    with ExitStack() as stack:
        workers = [SeparateWorker(peer) for peer in peers]
        for worker in workers:
            stack.callback(worker.process.close)
        yield workers


@cache
def _worker_of(peer: str) -> LocalWorker:
    """Return the worker of this process."""
    return LocalWorker(entry for entry in ENTRIES if entry.peer == peer)


def answer(peer: str, workload: object, method: str, about: list[Any]) -> object:
    """Answer `SeparateWorker` in the process of a library.

    Each question names the workload: the system may have ended the process that was prepared.
    """
    worker = _worker_of(peer)
    if method == "prepare" or not worker.is_prepared:
        timed = worker.prepare(msgspec.convert(workload, Workload))
    if method == "prepare":
        return msgspec.to_builtins(timed)
    if method == "fault":
        return worker.fault(*about)
    seconds = worker.sample(*about)
    if not _CAN_STOP:
        rest()
    return seconds


def measure(
    workload: Workload, workers: Sequence[LocalWorker | SeparateWorker], effort: Effort
) -> Measured:
    """Time a workload at every worker beside its baseline; check the results before and after.

    The baseline is timed at the first worker. A peer whose result is wrong before the timing is
    not timed; nor are entries for other kinds. Where the effort has a pause, each sample is taken
    without and with it, and compared with a baseline like it.
    """
    found = {
        (worker, number): timed
        for worker in workers
        for number, timed in enumerate(worker.prepare(workload))
    }
    ready = [place for place, timed in found.items() if timed.is_ready]
    first = workers[0], BASELINE
    samples: dict[tuple[LocalWorker | SeparateWorker, int, float], Callable[[], float]] = {
        (worker, number, pause): partial(worker.sample, number, pause)
        for worker, number in [first, *ready]
        for pause in effort.pauses
    }
    taken = in_turns(samples, effort)
    least = [_numbers(taken[*first, pause]) for pause in effort.pauses]
    for worker, number in ready:
        peer, mode = found[worker, number].peer, found[worker, number].mode
        try:
            mine = [_numbers(taken[worker, number, pause]) for pause in effort.pauses]
        except UnableError as reason:
            found[worker, number] = Timed(peer, mode, cannot=str(reason))
            continue
        ratios = map(_ratio, mine, least)
        wrong = worker.fault(number)
        found[worker, number] = Timed(
            peer, mode, next(ratios), spread(mine[0]), wrong=wrong, paused=next(ratios, None)
        )
    baseline = map(spread, least)
    entries = tuple(found.values())
    return Measured(workload, len(least[0]), next(baseline), entries, next(baseline, None))


def _numbers(taken: list[float] | UnableError) -> list[float]:
    """Return the measured numbers; raise the reason if nothing could be measured."""
    if isinstance(taken, UnableError):
        raise taken
    return taken


def _ratio(mine: list[float], others: list[float]) -> Spread:
    """Compare how long a call takes with another one of the same round."""
    return spread([one / other for one, other in zip(mine, others, strict=True)])
