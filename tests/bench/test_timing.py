"""Rounds, turns and percentiles; no time is judged."""

from __future__ import annotations

import gc
from collections import Counter

from tensorsplit.bench.timing import Effort, Spread, in_turns, spread


def test_the_middle_and_the_tenths() -> None:
    assert spread([float(value) for value in range(11)]) == Spread(5.0, 1.0, 9.0)
    assert spread([3.0]) == Spread(3.0, 3.0, 3.0)


def test_every_call_is_timed_once_in_each_round() -> None:
    calls: Counter[str] = Counter()
    seconds = in_turns(
        {"a": lambda: calls.update("a"), "b": lambda: calls.update("b")}, Effort(rounds=3)
    )
    assert {name: len(values) for name, values in seconds.items()} == {"a": 3, "b": 3}
    assert all(value > 0 for values in seconds.values() for value in values)
    assert calls["a"] >= 3
    assert calls["b"] >= 3


def test_without_a_number_of_rounds_there_are_enough_for_a_median() -> None:
    seconds = in_turns({"a": lambda: None}, Effort(seconds=0.0))
    assert len(seconds["a"]) == 9


def test_the_garbage_collector_rests_meanwhile_and_not_after() -> None:
    seen = []
    in_turns({"a": lambda: seen.append(gc.isenabled())}, Effort(rounds=1))
    assert not seen[-1]
    assert gc.isenabled()
