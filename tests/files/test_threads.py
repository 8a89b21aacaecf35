"""Tasks on threads of this machine: all of them, in bounded memory, and none left behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from tensorsplit import native
from tensorsplit.files.threads import BASE, LocalThreads
from tests.refusals import refused


@dataclass
class Task:
    """A task that does something and says that it wrote so many bytes."""

    nbytes: int
    does: Callable[[int], object] = int

    def write(self, memory: int) -> int:
        self.does(memory)
        return self.nbytes

    def verify(self, memory: int) -> int:
        self.does(memory)
        return 1000 + self.nbytes


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(native, "threads", request.param)
    return int(request.param)


@pytest.mark.parametrize(("verify", "total"), [(False, 0), (True, 20_000 + sum(range(20)))])
def test_every_task_runs_and_is_told_of_in_order(threads: int, verify: bool, total: int) -> None:
    told: list[int] = []
    given: list[int] = []
    with LocalThreads(BASE + 3000, 10) as executor:
        tasks = (Task(number, given.append) for number in range(20))
        assert executor.run(tasks, told.append, verify=verify) == total
    assert told == [*range(20)]
    assert given == [3000 // threads] * 20


def test_each_thread_has_the_memory_that_a_task_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "threads", 9)
    for memory, each in ((100, 100), (199, 199), (200, 100), (1000, 250)):
        with LocalThreads(BASE + memory, 100) as executor:
            assert executor.memory == each
    with refused("TS707", "a task needs 100 bytes", "at least 64.1 MiB", parameter="memory"):
        LocalThreads(BASE + 99, 100)


def test_no_task_runs_on_after_one_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would write into a draft that is gone."""
    monkeypatch.setattr(native, "threads", 2)
    began, ended = threading.Event(), list[int]()

    def fail(_: int) -> None:
        began.wait()
        raise ValueError("it fails")

    def last(_: int) -> None:
        began.set()
        time.sleep(0.2)
        ended.append(1)

    told: list[int] = []
    with LocalThreads(BASE + 100, 10) as executor:
        with pytest.raises(ValueError, match="it fails"):
            executor.run(iter([Task(1, fail), Task(2, last)]), told.append)
        assert ended == [1]
    assert told == []


def test_ctrl_c_while_a_task_begins_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    begin, ended = ThreadPoolExecutor.submit, threading.Event()

    def interrupted(*args: Any) -> None:
        begin(*args)
        raise KeyboardInterrupt

    def slow(_: int) -> None:
        time.sleep(0.2)
        ended.set()

    monkeypatch.setattr(ThreadPoolExecutor, "submit", interrupted)
    with LocalThreads(BASE + 1000, 10) as executor:
        with pytest.raises(KeyboardInterrupt):
            executor.run(iter([Task(1, slow)]), int)
        assert ended.is_set()
