"""Timing several calls in turns, so that what disturbs one of them disturbs all alike."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from statistics import median, quantiles
from typing import Any, TypeAlias

import numpy as np

Call: TypeAlias = Callable[[], Any]

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
    """How long to measure.

    Attributes:
        rounds: The number of rounds; None for as many as it takes for the medians to settle.
        seconds: When to stop, with `rounds` None; at least nine rounds are run.
    """

    rounds: int | None = None
    seconds: float = 3.0


@dataclass(frozen=True, slots=True)
class Spread:
    """Where the middle and most of the values lie.

    Attributes:
        median: The median.
        low: The 10th percentile.
        high: The 90th percentile.
    """

    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """The median and the 10th and 90th percentiles of one value or more."""
    if len(values) == 1:
        return Spread(values[0], values[0], values[0])
    tenths = quantiles(values, n=10, method="inclusive")
    return Spread(median(values), tenths[0], tenths[-1])


def in_turns(calls: Mapping[str, Call], effort: Effort) -> dict[str, list[float]]:
    """Time every call once in each round, in an order that changes from round to round.

    Before each is timed, the process comes to rest, so that the idle threads of one library don't
    take time from the next; then the call runs up to three times for nothing, so that its threads
    are awake and its memory is as near as it can be. Short calls are repeated until half a
    millisecond has passed. The garbage collector is paused.

    Args:
        calls: What to time, by name.
        effort: How long.

    Returns:
        The seconds of one call in each round, by name.
    """
    repeats = {name: _repeats(call) for name, call in calls.items()}
    seconds: dict[str, list[float]] = {name: [] for name in calls}
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


def _is_enough(seconds: Mapping[str, Sequence[float]], effort: Effort, stop: float) -> bool:
    rounds = min(map(len, seconds.values()))
    if effort.rounds is not None:
        return rounds >= effort.rounds
    if rounds < _LEAST_ROUNDS:
        return False
    if rounds >= _MOST_ROUNDS or time.perf_counter() >= stop:
        return True
    return all(_is_settled(values) for values in seconds.values())


def _is_settled(values: Sequence[float]) -> bool:
    """Whether the median is known to about 1 %; for that, what most values differ by counts."""
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
    _warm(call)
    numbers = range(repeats)
    start = time.perf_counter()
    for _ in numbers:
        call()
    return (time.perf_counter() - start) / repeats


def _warm(call: Call) -> None:
    stop = time.perf_counter() + _WARM_SECONDS
    for _ in range(_WARM_CALLS):
        call()
        if time.perf_counter() > stop:
            return


def _rest() -> None:
    """Wait until no thread of the process is at work: pools spin for a while when work ends."""
    for _ in range(_MOST_WAITS):
        wall, used = time.perf_counter(), time.process_time()
        time.sleep(_IDLE_WAIT)
        if time.process_time() - used < _IDLE_SHARE * (time.perf_counter() - wall):
            return
