"""Rounds, turns and percentiles; no time is judged."""

from __future__ import annotations

import gc
from collections import Counter
from functools import partial

import pytest

from tensorsplit.bench.timing import Effort, Spread, in_turns, sample, spread
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
