"""Measuring a workload: prepare every peer, check, time all in turns, check again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tensorsplit.bench.figures import Measured, Timed
from tensorsplit.bench.floor import baseline
from tensorsplit.bench.peers import OURS, Entry
from tensorsplit.bench.task import Prepared, Task, UnableError, find_fault, make_task
from tensorsplit.bench.timing import Effort, in_turns, spread
from tensorsplit.bench.workloads import Workload

_BASELINE = "baseline"


@dataclass(slots=True)
class _Runner:
    """One entry of a workload on its way."""

    entry: Entry
    prepared: Prepared | None = None
    cannot: str | None = None
    wrong: str | None = None

    @property
    def key(self) -> str:
        return f"{self.entry.peer} {self.entry.mode}"


def measure(workload: Workload, entries: Iterable[Entry], effort: Effort) -> Measured:
    """Time a workload on every peer beside what it is compared with.

    A peer whose result is wrong before the timing is not timed.

    Args:
        workload: The workload.
        entries: What to time; those for other kinds of workloads are left out.
        effort: How long.

    Returns:
        The figures.
    """
    task = make_task(workload)
    runners = [_prepare(entry, task) for entry in entries if entry.kind == workload.kind]
    calls = {
        runner.key: runner.prepared.call
        for runner in runners
        if runner.prepared is not None and runner.wrong is None
    }
    seconds = in_turns({_BASELINE: baseline(task), **calls}, effort)
    floor = seconds[_BASELINE]
    for runner in runners:
        if runner.key in calls and runner.prepared is not None:
            runner.wrong = find_fault(task, runner.prepared)
    return Measured(
        workload,
        len(floor),
        spread(floor),
        tuple(_timed(runner, seconds.get(runner.key), floor) for runner in runners),
    )


def _prepare(entry: Entry, task: Task) -> _Runner:
    runner = _Runner(entry)
    try:
        runner.prepared = entry.prepare(task)
        runner.wrong = find_fault(task, runner.prepared)
    except UnableError as reason:
        runner.cannot = str(reason)
    except Exception as error:  # another library may raise anything; what we raise is a bug
        if entry.peer == OURS:
            raise
        runner.cannot = str(UnableError("it fails", error))
    return runner


def _timed(runner: _Runner, seconds: list[float] | None, floor: list[float]) -> Timed:
    entry = runner.entry
    if seconds is None:
        return Timed(entry.peer, entry.mode, cannot=runner.cannot, wrong=runner.wrong)
    ratios = [mine / least for mine, least in zip(seconds, floor, strict=True)]
    return Timed(
        entry.peer, entry.mode, spread(ratios), spread(seconds), runner.cannot, runner.wrong
    )
