"""Rounds, turns and percentiles; no time is judged."""

from __future__ import annotations

import gc
from collections import Counter
from functools import partial
from itertools import cycle

import pytest

from tensorsplit.bench.timing import Effort, Spread, in_turns, repeats_of, sample, spread
from tensorsplit.bench.workloads import UnableError


def test_the_middle_and_the_tenths() -> None:
    assert spread([float(value) for value in range(11)]) == Spread(5.0, 1.0, 9.0)
    assert spread([3.0]) == Spread(3.0, 3.0, 3.0)


def test_every_sample_is_taken_once_in_each_round() -> None:
    calls: Counter[str] = Counter()

    def take(name: str) -> float:
        calls[name] += 1
        return float(calls[name])

    seconds = in_turns({name: partial(take, name) for name in "ab"}, Effort(rounds=3))
    assert seconds == {"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.0]}


def test_without_a_number_of_rounds_there_are_enough_for_a_median() -> None:
    assert in_turns({"a": lambda: 1.0}, Effort(seconds=0.0)) == {"a": [1.0] * 9}


@pytest.mark.parametrize(
    ("values", "effort", "rounds"),
    [
        ([1.0, 100.0], Effort(seconds=0.0), 9),
        ([1.0, 100.0], Effort(seconds=1e9), 101),
        ([1.0, 1.05], Effort(seconds=1e9), 24),  # 0.05 <= 1 % of 1.025 times the root of 24
    ],
)
def test_rounds_end_when_the_median_settles_or_there_are_enough(
    values: list[float], effort: Effort, rounds: int
) -> None:
    given = cycle(values)
    taken = in_turns({"a": lambda: next(given)}, effort)["a"]
    assert isinstance(taken, list)
    assert len(taken) == rounds


class Clock:
    """A clock that stands still but for what is done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 5.0
        monkeypatch.setattr("time.perf_counter", lambda: self.now)
        monkeypatch.setattr("tensorsplit.bench.timing.rest", lambda: None)

    def takes(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(("seconds", "times"), [(0.0, 2000), (2e-4, 3), (0.25, 1)])
def test_a_call_is_repeated_until_half_a_millisecond_has_passed(
    seconds: float, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    assert repeats_of(partial(clock.takes, seconds)) == times


def test_a_sample_is_the_share_of_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    assert sample(partial(clock.takes, 0.5), 4) == 0.5


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        sample(lambda: None, 1)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_fails_is_not_taken_again_and_the_others_are() -> None:
    taken = []
    error = UnableError("its process was ended")

    def fail() -> float:
        taken.append(1)
        raise error

    assert in_turns({"a": fail, "b": lambda: 1.0}, Effort(rounds=2)) == {
        "a": error,
        "b": [1.0, 1.0],
    }
    assert len(taken) == 1


def test_a_sample_is_the_time_of_one_call_after_a_warm_up() -> None:
    calls: list[int] = []
    assert sample(partial(calls.append, 1), 4) > 0
    assert len(calls) == 3 + 4


def test_a_pause_comes_before_the_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[object] = []
    monkeypatch.setattr("time.sleep", events.append)
    sample(partial(events.append, "call"), 1, pause=7.0)
    assert events[-5:] == [7.0, *["call"] * 4]


def test_the_garbage_collector_rests_meanwhile_and_not_after() -> None:
    seen: list[bool] = []
    sample(lambda: seen.append(gc.isenabled()), 1)
    assert not any(seen)
    assert gc.isenabled()
