"""Tasks tried in processes that may die, so that each result belongs to the case that caused it.

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

from tensorsplit.conformance.worker import Outcome, Task
from tensorsplit.core.errors import ENGINE_MISSING, SplitError
from tensorsplit.engines.death import ProcessDied
from tensorsplit.engines.process import EngineProcess

SECONDS = 10.0
"""How long a subject may take for one case before it is said to hang."""

_SECONDS_TO_IMPORT = 300.0
_PATIENCE = 3
_MOST_SUSPECTS = 24
_ENVIRONMENT = {"PYTHONHASHSEED": "0"}
_ADAPTER = "tensorsplit.conformance.worker"


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of a task: one of the first two is set.

    Attributes:
        outcome: What the subject did.
        death: How its process died.
        victim: The later case that died of what this one did; empty if it was this one itself.
    """

    outcome: Outcome | None = None
    death: ProcessDied | None = None
    victim: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A task that is to be tried.

    Attributes:
        case: The id of its case.
        task: Makes the task.
    """

    case: str
    task: Callable[[], Task]


class Cancelled(Exception):  # noqa: N818 - what happened, in the past tense
    """The run was called off."""


class Laboratory:
    """Where the tasks for one subject are tried.

    Args:
        subject: As `tensorsplit.conformance.subjects.load` takes it.
        seconds: How long it may take for a case.
    """

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

    def batch(self, attempts: Sequence[Attempt]) -> Iterator[tuple[str, Trial]]:
        """Try tasks, one after the other in one process as long as it lives.

        Args:
            attempts: The tasks.

        Yields:
            The id of a case and what came of it; once more for a case that turns out to have
            damaged the process for a later one.

        Raises:
            Cancelled: After `cancel`.
            SplitError: TS601, TS602 for the subject itself.
        """
        before: list[Attempt] = []
        with self._process() as process:
            for attempt in attempts:
                trial = self._try(process, attempt)
                if trial.death is None:
                    before.append(attempt)
                    yield attempt.case, trial
                    continue
                if before or trial.death.seconds is not None:
                    alone = self._together([attempt])
                    blamed = self._blamed(before, attempt) if alone.death is None else None
                    if blamed is not None:
                        yield blamed.case, Trial(death=trial.death, victim=attempt.case)
                    trial = alone
                before = []
                yield attempt.case, trial

    def _blamed(self, before: Sequence[Attempt], victim: Attempt) -> Attempt | None:
        """The last of the earlier cases that makes the process die of the later one."""
        for suspect in before[: -_MOST_SUSPECTS - 1 : -1]:
            if self._together([suspect, victim]).death is not None:
                return suspect
        return None

    def _together(self, attempts: Sequence[Attempt]) -> Trial:
        """What comes of the last of some tasks in a process of their own."""
        trial = Trial()
        with self._process() as process:
            for attempt in attempts:
                trial = self._try(process, attempt, _PATIENCE)
                if trial.death is not None:
                    break
        return trial

    def _try(self, process: EngineProcess, attempt: Attempt, patience: int = 1) -> Trial:
        self._check()
        if process.pid is None:
            self._import(process)
        try:
            reply = process.ask(attempt.task(), self.seconds * patience)
        except ProcessDied as death:
            self._check()
            return Trial(death=death)
        if isinstance(reply.error, Exception):
            raise reply.error
        if isinstance(reply.result, Outcome):
            return Trial(outcome=reply.result)
        return Trial(outcome=Outcome(refusal=reply.refusal or reply.missing))

    def _import(self, process: EngineProcess) -> None:
        """Have a new process import the subject, which may take longer than any case."""
        try:
            reply = process.ask(Task(self.subject), _SECONDS_TO_IMPORT)
        except ProcessDied:
            self._check()
            return  # so it will with the case, to which the death then belongs
        if isinstance(reply.error, Exception):
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
        process = EngineProcess(self.subject, _ADAPTER, _ENVIRONMENT)
        self._processes.add(process)
        try:
            yield process
        finally:
            process.close()
            self._processes.discard(process)
