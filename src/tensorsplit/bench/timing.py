"""Timing: the peers of a workload in turns, so that what disturbs one disturbs all alike."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any, TypeAlias, TypeVar

import numpy as np

from tensorsplit.bench.peers import OURS, Entry, baseline
from tensorsplit.bench.workloads import Prepared, Task, UnableError, Workload, find_fault, make_task

Call: TypeAlias = Callable[[], Any]
Name = TypeVar("Name")

_LEAST_SAMPLE = 500e-6
_MOST_CALLS = 2000
_LEAST_ROUNDS = 9
_MOST_ROUNDS = 101
_CLOSE_ENOUGH = 0.01
_WARM_CALLS = 3
_WARM_SECONDS = 0.02
_IDLE_WAIT = 300e-6
_IDLE_SHARE = 0.2
_MOST_WAITS = 100


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to measure: a number of rounds, or until the medians settle or time is over."""

    rounds: int | None = None
    seconds: float = 3.0  # when `rounds` is None; nine rounds are always run


@dataclass(frozen=True, slots=True)
class Spread:
    """Where the values lie: the median, and the 10th and the 90th percentile."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Timed:
    """How one peer did one workload in one way."""

    peer: str
    mode: str
    ratio: Spread | None = None  # to the baseline in the same round
    seconds: Spread | None = None  # of one call
    cannot: str | None = None  # why it can't do the workload
    wrong: str | None = None  # what is wrong with its result


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of one workload: every peer in every way, and the seconds of the baseline."""

    workload: Workload
    rounds: int
    baseline: Spread
    entries: tuple[Timed, ...]


def measure(workload: Workload, entries: Iterable[Entry], effort: Effort) -> Measured:
    """Time a workload on every peer beside its baseline; check the results before and after.

    A peer whose result is wrong before the timing is not timed; nor are entries for other kinds.
    """
    task = make_task(workload)
    found = {entry: _prepare(entry, task) for entry in entries if entry.kind == workload.kind}
    ready = {entry: each for entry, each in found.items() if isinstance(each, Prepared)}
    calls = {entry: prepared.call for entry, prepared in ready.items()}
    seconds = in_turns({None: baseline(task), **calls}, effort)
    least = seconds[None]
    for entry, prepared in ready.items():
        ratios = [mine / other for mine, other in zip(seconds[entry], least, strict=True)]
        fault = find_fault(task, prepared)
        times = spread(ratios), spread(seconds[entry])
        found[entry] = Timed(entry.peer, entry.mode, *times, wrong=fault)
    timed = tuple(each for each in found.values() if isinstance(each, Timed))
    return Measured(workload, len(least), spread(least), timed)


def _prepare(entry: Entry, task: Task) -> Prepared | Timed:
    """What is to be timed; or what can't be, and why."""
    try:
        prepared = entry.prepare(task)
        wrong = find_fault(task, prepared)
    except UnableError as reason:
        return Timed(entry.peer, entry.mode, cannot=str(reason))
    except Exception as error:  # another library may raise anything; what we raise is a bug
        if entry.peer == OURS:
            raise
        return Timed(entry.peer, entry.mode, cannot=str(UnableError("it fails", error)))
    return Timed(entry.peer, entry.mode, wrong=wrong) if wrong else prepared


def spread(values: Sequence[float]) -> Spread:
    """Where one value or more lie."""
    return Spread(*map(float, np.percentile(values, (50, 10, 90))))


def in_turns(calls: Mapping[Name, Call], effort: Effort) -> dict[Name, list[float]]:
    """The seconds of one call of each, once in each round, in an order that changes.

    Before each is timed, the process comes to rest, so that the idle threads of one library don't
    take time from the next; then the call runs up to three times for nothing, so that its threads
    are awake and its memory is as near as it can be. Short calls are repeated until half a
    millisecond has passed. The garbage collector is paused.
    """
    repeats = {name: _repeats(call) for name, call in calls.items()}
    seconds: dict[Name, list[float]] = {name: [] for name in calls}
    order = list(calls)
    rng = np.random.default_rng(0)
    stop = time.perf_counter() + effort.seconds
    enabled = gc.isenabled()
    gc.disable()
    try:
        while not _is_enough(seconds, effort, stop):
            rng.shuffle(order)
            for name in order:
                seconds[name].append(_sample(calls[name], repeats[name]))
    finally:
        if enabled:
            gc.enable()
    return seconds


def _is_enough(seconds: Mapping[Any, Sequence[float]], effort: Effort, stop: float) -> bool:
    rounds = min(map(len, seconds.values()))
    if effort.rounds is not None:
        return rounds >= effort.rounds
    if rounds < _LEAST_ROUNDS:
        return False
    over = rounds >= _MOST_ROUNDS or time.perf_counter() >= stop
    return over or all(map(_is_settled, seconds.values()))


def _is_settled(values: Sequence[float]) -> bool:
    """Whether the median is known to about 1 %, judged by how far most values lie apart."""
    seen = spread(values)
    return seen.high - seen.low <= _CLOSE_ENOUGH * seen.median * sqrt(len(values))


def _repeats(call: Call) -> int:
    call()
    start = time.perf_counter()
    call()
    once = max(time.perf_counter() - start, 1e-7)
    return min(_MOST_CALLS, ceil(_LEAST_SAMPLE / once))


def _sample(call: Call, repeats: int) -> float:
    """The seconds of one call; what it returns is given back within the time."""
    _rest()
    stop = time.perf_counter() + _WARM_SECONDS
    for _ in range(_WARM_CALLS):
        call()
        if time.perf_counter() > stop:
            break
    numbers = range(repeats)
    start = time.perf_counter()
    for _ in numbers:
        call()
    return (time.perf_counter() - start) / repeats


def _rest() -> None:
    """Wait until no thread of the process is at work: pools spin for a while when work ends."""
    for _ in range(_MOST_WAITS):
        wall, used = time.perf_counter(), time.process_time()
        time.sleep(_IDLE_WAIT)
        if time.process_time() - used < _IDLE_SHARE * (time.perf_counter() - wall):
            return
