"""Cases tried in processes that may die, so that each result belongs to the case that caused it.

The cases of a batch share a process, which is new for each batch: what ran before a case is always
the same, and a run can be repeated. A case that ends the process is tried again, alone in a new
one. If it lives there, an earlier case has damaged the process, and the earlier ones are tried
together with it until the one to blame is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import Any

from tensorsplit.core.errors import ENGINE_MISSING, SplitError
from tensorsplit.engines.process import EngineProcess, ProcessDied

SECONDS = 10.0
"""How long a subject may take for one case before it is said to hang."""

_SECONDS_TO_IMPORT = 300.0
_MORE_TIME_ALONE = 3
_MOST_SUSPECTS = 24
_ENVIRONMENT = {"PYTHONHASHSEED": "0"}


@dataclass(frozen=True, slots=True)
class CaseTask:
    """What a subject is asked to do."""

    case: str  # the id of the case
    # makes the arguments of `tensorsplit.conformance.subjects.perform`, but the first
    request: Callable[[], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of a task."""

    # the outputs by name that an engine gave, or the model that a tool made; None where it refused
    # or died
    result: Any = None
    refusal: str | None = None  # the words of a refusal; None where there was none
    # whether it was a refusal of the element type or the operator altogether
    unsupported: bool = False
    death: ProcessDied | None = None  # how its process died
    # the later case that died of what this one did; empty if it was this one itself
    affected: str = ""


class Cancelled(Exception):  # noqa: N818 - what happened, in the past tense
    """The run was called off."""


class IsolatedRunner:
    """Tries the tasks of one subject, as `tensorsplit.conformance.subjects.load` takes it."""

    def __init__(self, subject: str, seconds: float = SECONDS) -> None:
        self.subject = subject
        self.seconds = seconds
        self._cancelled = Event()
        self._processes: set[EngineProcess] = set()

    def cancel(self) -> None:
        """End all processes at once, and start no more."""
        self._cancelled.set()
        for process in list(self._processes):
            process.stop()

    def batch(self, tasks: Sequence[CaseTask]) -> Iterator[tuple[str, Attempt]]:
        """Try tasks, one after the other in one process as long as it lives.

        Yields:
            The id of a case and what came of it; once more for a case that turns out to have
            damaged the process for a later one.

        Raises:
            Cancelled: After `cancel`.
            SplitError: TS601, TS602 for the subject itself.
        """
        before: list[CaseTask] = []
        with self._process() as process:
            for task in tasks:
                attempt = self._try(process, task)
                if attempt.death is None:
                    before.append(task)
                    yield task.case, attempt
                    continue
                if before or attempt.death.seconds is not None:
                    alone = self._together([task])
                    blamed = self._blamed(before, task) if alone.death is None else None
                    if blamed is not None:
                        yield blamed.case, Attempt(death=attempt.death, affected=task.case)
                    attempt = alone
                before = []
                yield task.case, attempt

    def _blamed(self, before: Sequence[CaseTask], affected: CaseTask) -> CaseTask | None:
        """The last of the earlier cases that makes the process die of the later one."""
        for suspect in before[: -_MOST_SUSPECTS - 1 : -1]:
            if self._together([suspect, affected]).death is not None:
                return suspect
        return None

    def _together(self, tasks: Sequence[CaseTask]) -> Attempt:
        """What comes of the last of some tasks in a process of their own."""
        attempt = Attempt()
        with self._process() as process:
            for task in tasks:
                attempt = self._try(process, task, _MORE_TIME_ALONE)
                if attempt.death is not None:
                    break
        return attempt

    def _try(self, process: EngineProcess, task: CaseTask, more_time: int = 1) -> Attempt:
        self._check()
        if process.pid is None:
            self._import(process)
        try:
            reply = process.ask((self.subject, *task.request()), self.seconds * more_time)
        except ProcessDied as death:
            self._check()
            return Attempt(death=death)
        refusal = reply.refusal or reply.missing
        if reply.error is not None:
            refusal = f"SplitError: {reply.error}"
        return Attempt(reply.result, refusal, reply.unsupported)

    def _import(self, process: EngineProcess) -> None:
        """Have a new process import the subject, which may take longer than any case."""
        try:
            reply = process.ask((self.subject, b"", b"", {}, (), 0), _SECONDS_TO_IMPORT)
        except ProcessDied:
            self._check()
            return  # so it will with the case, to which the death then belongs
        if reply.error is not None:
            raise reply.error
        if reply.missing is not None or reply.refusal is not None:
            raise SplitError(
                ENGINE_MISSING,
                f"{self.subject} can't be imported: {reply.missing or reply.refusal}",
                "install what it needs",
                parameter="engine",
            )

    def _check(self) -> None:
        if self._cancelled.is_set():
            raise Cancelled

    @contextmanager
    def _process(self) -> Iterator[EngineProcess]:
        self._check()
        process = EngineProcess(
            self.subject, "tensorsplit.conformance.subjects:perform", _ENVIRONMENT
        )
        self._processes.add(process)
        try:
            yield process
        finally:
            process.close()
            self._processes.discard(process)
