"""Timing: samples of a call, and rounds in which all that is compared takes turns."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import TypeVar

import numpy as np

from tensorsplit.bench.workloads import UnableError, Workload

Name = TypeVar("Name")

_LEAST_SAMPLE = 500e-6
_MOST_CALLS = 2000
_LEAST_ROUNDS = 9
_MOST_ROUNDS = 101
_CLOSE_ENOUGH = 0.01
_WARM_CALLS = 3
_WARM_SECONDS = 0.02
PAUSE = 0.08
"""Seconds after which threads sleep, as before most copies of users."""

_IDLE_WAIT = 300e-6
_IDLE_SHARE = 0.2
_MOST_WAITS = 100


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to measure: a number of rounds, or until the medians settle or time is over."""

    rounds: int | None = None
    seconds: float = 3.0  # when `rounds` is None; nine rounds are always run
    pause: float = 0.0  # all is also measured after a pause of so many seconds, unless it is 0

    @property
    def pauses(self) -> tuple[float, ...]:
        """The pauses before the samples of each round."""
        return (0.0, self.pause) if self.pause else (0.0,)


@dataclass(frozen=True, slots=True)
class Spread:
    """Where the values lie: the median, and the 10th and the 90th percentile."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Timed:
    """The figures of one library for one workload in one way."""

    peer: str
    mode: str
    ratio: Spread | None = None  # to the baseline in the same round
    seconds: Spread | None = None  # of one call
    cannot: str | None = None  # why it can't do the workload
    wrong: str | None = None  # what is wrong with its result
    paused: Spread | None = None  # the ratio where both come after a pause

    @property
    def is_ready(self) -> bool:
        """Whether it can be timed: it is able, and its result was right."""
        return self.cannot is None and self.wrong is None


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of one workload: each library in every way, and the seconds of the baseline.

    Attributes:
        paused: The seconds of the baseline after a pause; None if no pause was made.
    """

    workload: Workload
    rounds: int
    baseline: Spread
    entries: tuple[Timed, ...]
    paused: Spread | None = None


def spread(values: Sequence[float]) -> Spread:
    """Return where one value or more lie."""
    return Spread(*map(float, np.percentile(values, (50, 10, 90))))


def in_turns(
    samples: Mapping[Name, Callable[[], float]], effort: Effort
) -> dict[Name, list[float] | UnableError]:
    """Return each sample's result, once in each round, in an order that changes.

    A sample that raises `UnableError` is not taken again; the error is there instead of what it
    returned.
    """
    seconds: dict[Name, list[float]] = {name: [] for name in samples}
    failed: dict[Name, UnableError] = {}
    rng = np.random.default_rng(0)
    stop = time.perf_counter() + effort.seconds
    while seconds and not _is_enough(seconds, effort, stop):
        order = list(seconds)
        rng.shuffle(order)
        for name in order:
            try:
                seconds[name].append(samples[name]())
            except UnableError as error:
                failed[name] = error
                del seconds[name]
    return {**seconds, **failed}


def _is_enough(seconds: Mapping[Name, Sequence[float]], effort: Effort, stop: float) -> bool:
    rounds = min(map(len, seconds.values()))
    if effort.rounds is not None:
        return rounds >= effort.rounds
    if rounds < _LEAST_ROUNDS:
        return False
    over = rounds >= _MOST_ROUNDS or time.perf_counter() >= stop
    return over or all(map(_is_settled, seconds.values()))


def _is_settled(values: Sequence[float]) -> bool:
    """Return whether the median is known to about 1 %, judged by the spread of most values."""
    seen = spread(values)
    return seen.high - seen.low <= _CLOSE_ENOUGH * seen.median * sqrt(len(values))


def repeats_of(call: Callable[[], object]) -> int:
    """Return how often a call is to be repeated, so that half a millisecond passes."""
    call()
    start = time.perf_counter()
    call()
    once = max(time.perf_counter() - start, 1e-7)
    return min(_MOST_CALLS, ceil(_LEAST_SAMPLE / once))


def sample(call: Callable[[], object], repeats: int, pause: float = 0.0) -> float:
    """Return the seconds of one call; what it returns is given back within the time.

    First the process comes to rest, so that idle threads take no time from it, and sleeps for the
    pause; then the call runs up to three times for nothing, so that its threads are awake and its
    memory is as near as it can be. The garbage collector is paused.
    """
    rest()
    time.sleep(pause)
    stop = time.perf_counter() + _WARM_SECONDS
    enabled = gc.isenabled()
    gc.disable()
    try:
        for _ in range(_WARM_CALLS):
            call()
            if time.perf_counter() > stop:
                break
        numbers = range(repeats)
        start = time.perf_counter()
        for _ in numbers:
            call()
        return (time.perf_counter() - start) / repeats
    finally:
        if enabled:
            gc.enable()


def rest() -> None:
    """Wait until no thread of the process is at work: pools spin for a while when work ends."""
    for _ in range(_MOST_WAITS):
        wall, used = time.perf_counter(), time.process_time()
        time.sleep(_IDLE_WAIT)
        if time.process_time() - used < _IDLE_SHARE * (time.perf_counter() - wall):
            return
