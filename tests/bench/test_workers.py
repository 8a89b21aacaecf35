"""Libraries are timed in processes of their own, which stand still but for their turns."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Timer

import pytest

from tensorsplit.bench import peers, workers
from tensorsplit.bench.peers import OURS, choose_entries
from tensorsplit.bench.timing import Effort
from tensorsplit.bench.workers import (
    BASELINE,
    LocalWorker,
    SeparateWorker,
    measure,
    separate_workers,
)
from tensorsplit.bench.workloads import Task, UnableError
from tensorsplit.core.errors import SplitError
from tensorsplit.engines.process import Death, Reply
from tests.bench.samples import JOIN, SMALL
from tests.engines.test_process import is_gone

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what a process does")


def stat(pid: int) -> list[str]:
    """What Linux says of a process, from its state on."""
    return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(") ")[2].split()


def pid_of(worker: SeparateWorker) -> int:
    assert worker.process.pid is not None
    return worker.process.pid


def test_every_library_has_a_process_that_ends() -> None:
    with separate_workers(choose_entries(("numpy",))) as workers:
        assert [worker.peer for worker in workers] == ["", "tensorsplit", "numpy"]
        measured = measure(SMALL, workers, Effort(rounds=1))
        pids = {pid_of(worker) for worker in workers}
        assert len(pids - {os.getpid()}) == 3
    assert all(map(is_gone, pids))
    assert [entry.peer for entry in measured.entries] == ["tensorsplit"] * 3 + ["numpy"] * 2
    assert all(entry.ratio is not None for entry in measured.entries)


@LINUX
def test_a_thread_that_spins_gets_no_time_between_the_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one of a library whose threads wait for work by spinning, however long that lasts."""
    (tmp_path / "sitecustomize.py").write_text(
        "import threading\ndef spin():\n    while True: pass\n"
        "threading.Thread(target=spin, daemon=True).start()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with separate_workers(choose_entries(("numpy",))[:1]) as workers:
        worker = workers[-1]
        worker.prepare(SMALL)
        assert worker.sample(0) > 0
        state, used = stat(pid_of(worker))[0], stat(pid_of(worker))[11:13]
        time.sleep(0.1)
        assert state in "Tt"
        assert stat(pid_of(worker))[11:13] == used
        assert int(used[0]) > 0


@LINUX
def test_a_library_that_ends_its_process_is_unable() -> None:
    with separate_workers(choose_entries(("numpy",))) as workers:
        numpy = workers[-1]
        numpy.prepare(SMALL)
        killing = Timer(0.2, os.kill, (pid_of(numpy), signal.SIGKILL))
        killing.start()
        with pytest.raises(UnableError, match="SIGKILL"):
            numpy.sample(0, 10.0)
        killing.join()


@LINUX
def test_a_process_that_the_system_ended_between_two_turns_is_prepared_again() -> None:
    with separate_workers(choose_entries(("numpy",))) as workers:
        numpy = workers[-1]
        numpy.prepare(SMALL)
        for ask in (numpy.sample, numpy.fault):
            os.kill(pid_of(numpy), signal.SIGKILL)
            assert isinstance(ask(0), float | None)


def test_what_fails_while_it_is_timed_is_unable_and_the_others_are_timed() -> None:
    class Failing(LocalWorker):
        def sample(self, number: int, pause: float = 0.0) -> float:
            if number == 1:
                raise UnableError("its process was ended")
            return super().sample(number, pause)

    measured = measure(SMALL, [Failing(choose_entries(("numpy",)))], Effort(rounds=2))
    assert [entry.cannot for entry in measured.entries].count("its process was ended") == 1
    assert measured.entries[1].ratio is None
    assert sum(entry.ratio is not None for entry in measured.entries) == 4


def test_all_is_measured_after_a_pause_too() -> None:
    class Noting(LocalWorker):
        def sample(self, number: int, pause: float = 0.0) -> float:
            pauses.setdefault(number, []).append(pause)
            return (number + 2) * (10.0 if pause else 1.0) ** (number + 1)

    pauses: dict[int, list[float]] = {}
    measured = measure(SMALL, [Noting(choose_entries(("numpy",)))], Effort(rounds=3, pause=0.5))
    assert {number: sorted(seen) for number, seen in pauses.items()} == {
        number: [0.0] * 3 + [0.5] * 3 for number in (BASELINE, *range(5))
    }
    assert measured.rounds == 3
    without = [each.seconds for each in measured.entries if each.seconds]
    assert [each.median for each in without] == [number + 2.0 for number in range(5)]
    assert measured.paused is not None
    assert (measured.baseline.median, measured.paused.median) == (1.0, 1.0)
    ratios = [(each.ratio, each.paused) for each in measured.entries]
    assert [(loop.median, paused.median) for loop, paused in ratios if loop and paused] == [
        (number + 2.0, (number + 2) * 10.0 ** (number + 1)) for number in range(5)
    ]


def test_nothing_of_one_workload_is_timed_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared, repeated = list[str](), list[object]()

    def baseline(task: Task) -> Callable[[], object]:
        prepared.append(task.workload.name)
        return peers.baseline(task)

    def repeats_of(call: Callable[[], object]) -> int:
        repeated.append(call)
        return 1

    monkeypatch.setattr(workers, "baseline", baseline)
    monkeypatch.setattr(workers, "repeats_of", repeats_of)
    worker = LocalWorker(choose_entries(("numpy",)))
    for workload in (SMALL, JOIN):
        worker.prepare(workload)
        for number in (BASELINE, 0, BASELINE, 0):
            worker.sample(number)
    assert prepared == [SMALL.name, JOIN.name]
    assert len(repeated) == 4


def test_a_library_whose_process_ends_when_it_is_prepared_is_unable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker = SeparateWorker("numpy")
    died = Reply(death=Death(-11))
    monkeypatch.setattr(worker.process, "ask", lambda *_: died)
    found = worker.prepare(SMALL)
    assert [(each.peer, each.mode) for each in found] == [("numpy", "out"), ("numpy", "fresh")]
    assert all(each.cannot is not None and "SIGSEGV" in each.cannot for each in found)


def test_what_a_library_says_makes_it_unable_and_what_ours_says_is_a_bug(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for peer, error in ((OURS, SplitError), ("numpy", UnableError)):
        worker = SeparateWorker(peer)
        monkeypatch.setattr(worker.process, "ask", lambda *_: Reply(refusal="no memory"))
        with pytest.raises(error, match="no memory"):
            worker.sample(0)


def test_the_baseline_is_at_every_worker() -> None:
    with separate_workers(()) as (worker,):
        assert worker.prepare(SMALL) == []
        assert worker.sample(BASELINE) > 0
        assert worker.sample(BASELINE, 0.001) > 0
