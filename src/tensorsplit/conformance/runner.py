"""Running cases with subjects: batches in parallel, each in a process of its own.

The process is new for each batch: what ran before a case is always the same, and a run can be
repeated. A case that ends the process, or hangs, is tried again, alone in a new one. If it lives
there, an earlier case has damaged the process, and the earlier ones are tried together with it
until the one to blame is found.

What hangs costs its time limit once, and less the more cases of a subject hang; see `_TimeLimit`.
"""

from __future__ import annotations

import math
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import product
from typing import Any

import msgspec

from tensorsplit import __version__
from tensorsplit.conformance import SECONDS_OF_A_CASE, subjects, verdicts
from tensorsplit.conformance.case import Built, Case
from tensorsplit.conformance.document import SKIPPED, Document, Result, SubjectInfo
from tensorsplit.core.errors import ENGINE_MISSING, USAGE, SplitError, show
from tensorsplit.engines.engine_names import ALIASES, OURS
from tensorsplit.engines.process import Death, EngineProcess, Reply
from tensorsplit.native.machine import processor_name

_SECONDS_TO_IMPORT = 60.0
_SHARE = 0.25  # of the time limit, for a case that is not the first of its process
_STAGES = {5: 4, 50: 20}  # after so many cases that hang, the limit is divided by this
_TIMES_SLOWEST = 4  # but no less than this many times what the slowest answer took
_MOST_SUSPECTS = 24
_MOST_SEARCHES = 20
_MOST_MEMORY = 1 << 26  # of an answer; those of the cases take a few kB
_ENVIRONMENT = {"PYTHONHASHSEED": "0"}
_CHILD = "tensorsplit.conformance.subjects"  # has the functions that processes call
_PAUSE = 0.5
_BATCH = 500  # importing an engine takes as long as hundreds of cases
_MOST_JOBS = 8
_FRAGILE = "string"
_UPWARDS, _DOWNWARDS, _NEWEST = 18, 13, 24

Progress = Callable[[int], None]
"""Is called with how many results have been added."""

Note = Callable[[str], None]
"""Is called with what the reader of the results should know at once, in words."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject of a run."""

    source: str  # as `tensorsplit.conformance.subjects.load` takes it
    title: str  # what it is called in the document
    traits: subjects.Traits

    @classmethod
    def of(cls, name: str) -> Subject:
        """Return the subject of a name, a path or a module; TS601, TS602 if there is none.

        A user's adapter is imported in a process of its own, never here.
        """
        name = ALIASES.get(name, name)
        if name in subjects.SUBJECTS:
            return cls(name, name, subjects.SUBJECTS[name])
        source = subjects.place(name)
        answer = ask_adapter(source, f"{_CHILD}:traits")
        try:
            traits = msgspec.convert(answer, subjects.Traits)
        except msgspec.ValidationError as error:
            problem = f"its description of itself is invalid: {error}"
            raise subjects.missing(source, problem) from None
        if traits.interpreter is not None:
            source = traits.interpreter.adapter  # which knows files alone
        return cls(source, subjects.title(name), traits)

    @classmethod
    def installed(cls, name: str) -> Subject:
        """Return the subject as `of` does; TS602 if a package that it needs is missing."""
        subject = cls.of(name)
        if not subject.traits.is_installed:
            problem, fix = f"{name} is not installed", subject.traits.how_to_install
            raise SplitError(ENGINE_MISSING, problem, fix, parameter="engine")
        return subject

    @classmethod
    def engine(cls, name: str) -> Subject:
        """Return the subject as `installed` does; TS703 for a tool."""
        subject = cls.installed(name)
        if subject.traits.kind != "engine":
            problem, fix = f"{subject.title} rewrites models", "name an engine"
            raise SplitError(USAGE, problem, fix, parameter="engine")
        return subject

    def process(self, most: int) -> EngineProcess:
        """Return a process that does its cases, started with the first; answers have a limit."""
        there = self.traits.interpreter
        python = "" if there is None else there.python
        return EngineProcess(self.source, f"{_CHILD}:perform", _ENVIRONMENT, most, python)

    @property
    def info(self) -> SubjectInfo:
        """The description of it for a document."""
        return SubjectInfo(self.title, self.traits.kind, self.traits.versions())

    def model(self, built: Built) -> bytes:
        """Return the model that it is given."""
        return verdicts.undeclared(built.model) if self.traits.states_shapes else built.model

    def target_opset(self, case: Case) -> int:
        """Return the opset to convert to: another encoding of the split where there is one."""
        if case.opset < _UPWARDS:
            return _UPWARDS
        return _DOWNWARDS if self.traits.downwards else max(case.opset, _NEWEST)


def ask_adapter(source: str, function: str) -> Any:
    """Call a function of this package about a user's adapter, in a process of its own.

    SplitError TS601 or TS602 for the adapter; so too if it ends its process, or hangs.
    """
    process = EngineProcess(source, function, _ENVIRONMENT, _MOST_MEMORY)
    try:
        reply = process.ask((source,), _SECONDS_TO_IMPORT)
    finally:
        process.close()
    return _imported(source, reply)


def prepare(process: EngineProcess, source: str) -> Reply:
    """Let a new process import its subject, which may take longer than a case."""
    return process.ask((source,), _SECONDS_TO_IMPORT, adapter=f"{_CHILD}:prepare")


def _imported(source: str, reply: Reply) -> object:
    """Return a subject's traits, found when it was imported."""
    if reply.error is not None:
        raise reply.error
    if reply.death is not None:
        fix = "importing it must neither end the process nor wait"
        raise subjects.missing(source, f"its process {reply.death}", fix)
    if reply.words is not None:
        raise subjects.missing(source, reply.words)
    return reply.result


def run(
    chosen: Sequence[Subject],
    cases: Sequence[Case],
    *,
    seed: int = 0,
    seconds: float = SECONDS_OF_A_CASE,
    jobs: int | None = None,
    progress: Progress = lambda _: None,
    note: Note = lambda _: None,
) -> Document:
    """Run cases with subjects; two runs with the same seed differ in nothing but the date.

    A subject may take so many seconds for one case. So many jobs run at a time; as many as there
    are processors, but not more than 8, if None. `progress` and `note` are called
    from several threads in turn. SplitError TS601 or TS602 for a subject that can't be used at all,
    TS703 for two of one title.
    """
    jobs = jobs or min(os.cpu_count() or 1, _MOST_JOBS)
    ordered = sorted(cases, key=lambda case: case.id)
    titles = [subject.title for subject in chosen]
    twice = [title for title in titles if titles.count(title) > 1]
    if twice:
        problem = f"two engines or tools are called {show(twice[0])}"
        raise SplitError(USAGE, problem, "rename the file of one", parameter="engine")
    results = _Run(chosen, seed, seconds, progress, note).results(ordered, jobs)
    return Document(
        {"version": __version__, "cases": len(ordered), "seed": seed, "seconds": seconds},
        measured(),
        tuple(subject.info for subject in chosen),
        tuple(case.info for case in ordered),
        tuple(results),
    )


class OneByOne:
    """A subject that runs cases on request, one after the other in one process.

    What it does is judged as by `run`, but that a case has damaged the process is found out only
    when a later one dies of it. Strings have a process of their own each.
    """

    def __init__(self, subject: Subject, seconds: float = SECONDS_OF_A_CASE) -> None:
        self._run = _Run([subject], 0, seconds, lambda _: None, lambda _: None)
        self._process = _Process(self._run, subject)

    def results(self, case: Case) -> list[Result]:
        """Yield a case's result, after that of an earlier one that made the process die, if any."""
        self._run.found.clear()
        if case.element_type == _FRAGILE:
            self._run.alone(self._process.subject, [case])
        else:
            self._process.do(case)
        return list(self._run.found.values())

    def close(self) -> None:
        """End all processes."""
        self._run.close()


def measured() -> dict[str, str]:
    """Return who measures, when and on what."""
    return {
        "by": f"tensorsplit {__version__}, tensorsplit conformance",
        "date": datetime.now(UTC).date().isoformat(),
        "system": f"{platform.system()}-{platform.machine()}",
        "python": platform.python_version(),
        "cpu": processor_name(),
    }


class _TimeLimit:
    """How long one subject may take for a case: the less, the more cases hang.

    Else thousands of cases that hang would take hours. A subject that is just slow keeps its time.
    """

    def __init__(self, title: str, seconds: float, note: Note) -> None:
        self._title = title
        self._seconds = seconds
        self._note = note
        self._lock = threading.Lock()
        self._hung = 0
        self._slowest = 0.0
        self.searches = 0  # for the case to blame, in vain

    def seconds(self) -> float:
        """Return the limit of the next case."""
        divisor = max((by for count, by in _STAGES.items() if self._hung >= count), default=1)
        least = _TIMES_SLOWEST * self._slowest
        return min(self._seconds, max(self._seconds / divisor, least))

    def watch(self, seconds: float) -> None:
        """Remember how long a case took that did not hang."""
        with self._lock:
            self._slowest = max(self._slowest, seconds)

    def count(self) -> None:
        """Count a case that hangs; say so where the limit becomes another."""
        with self._lock:
            self._hung += 1
            if self._hung in _STAGES:
                self._note(
                    f"{self._title}: {self._hung} cases hang; the others may take no more"
                    f" than {self.seconds():g} s each"
                )


class _Run:
    """The batches of one run, their results, and their common state."""

    def __init__(
        self,
        chosen: Sequence[Subject],
        seed: int,
        seconds: float,
        progress: Progress,
        note: Note,
    ) -> None:
        self._chosen = chosen
        self._seed = seed
        self._progress = progress
        self._lock = threading.Lock()
        self._built: dict[str, Built] = {}
        self._is_cancelled = False
        self._of_thread = threading.local()  # its ``judge``: the process of our own engine
        self.found: dict[tuple[str, str], Result] = {}  # by case and subject
        self.processes: set[EngineProcess] = set()
        titles = [subject.title for subject in chosen]
        self.time_limits = {title: _TimeLimit(title, seconds, note) for title in titles}

    def results(self, cases: Sequence[Case], jobs: int) -> Iterator[Result]:
        """Yield the results, by case and then subject; the processes are gone afterwards."""
        pool = ThreadPoolExecutor(jobs)
        try:
            waiting = {pool.submit(self._batch, *batch) for batch in self._batches(cases)}
            while waiting:  # a signal that comes just before Python waits would wait, too
                done, waiting = wait(waiting, _PAUSE, FIRST_COMPLETED)
                for future in done:
                    future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            self._is_cancelled = True
            for process in list(self.processes):
                process.stop()
            raise
        finally:
            pool.shutdown()
            self.close()
        for case, subject in product(cases, self._chosen):
            yield self.found[case.id, subject.title]

    def close(self) -> None:
        """End the processes."""
        for process in list(self.processes):
            process.close()

    def _batches(self, cases: Sequence[Case]) -> Iterator[tuple[Subject, list[Case]]]:
        """Yield the work, in an order in which the subjects take turns."""
        for is_fragile in (False, True):
            group = [case for case in cases if (case.element_type == _FRAGILE) == is_fragile]
            for start in range(0, len(group), _BATCH):
                for subject in self._chosen:
                    yield subject, group[start : start + _BATCH]

    def _batch(self, subject: Subject, cases: list[Case]) -> None:
        readable = []
        for case in cases:
            if case.model_format in subject.traits.formats:
                readable.append(case)
            else:
                self.record(Result(case.id, subject.title, SKIPPED))
        self.alone(subject, readable)
        strings = [case for case in readable if case.element_type == _FRAGILE]
        if any(_may_have_damaged(self.found[case.id, subject.title]) for case in strings):
            for case in strings:
                self.alone(subject, [case])

    def alone(self, subject: Subject, cases: Sequence[Case]) -> None:
        """Run cases in a process of their own."""
        with closing(_Process(self, subject)) as process:
            for case in cases:
                process.do(case)

    def record(self, result: Result) -> None:
        """Record the result of a case; a second one replaces the first."""
        with self._lock:
            key = result.case, result.subject
            self._progress(int(key not in self.found))
            self.found[key] = result

    def build(self, case: Case) -> Built:
        """Return the files of a case, which every subject needs once."""
        if case.id not in self._built:
            self._built[case.id] = case.build(self._seed)
        return self._built[case.id]

    def check(self) -> None:
        """Raise a CancelledError if the run is to end."""
        if self._is_cancelled:
            raise CancelledError

    def execute(self, allowed: _TimeLimit, model: bytes, inputs: Mapping[str, object]) -> Reply:
        """Run the model that a tool returns in our own engine; it may hang too."""
        judge: EngineProcess | None = getattr(self._of_thread, "judge", None)
        if judge is None:
            judge = EngineProcess(OURS, f"{_CHILD}:run_model", _ENVIRONMENT, _MOST_MEMORY)
            self._of_thread.judge = judge
            self.processes.add(judge)
        self.check()
        if judge.pid is None:
            prepare(judge, OURS)
        reply = judge.ask((model, inputs), allowed.seconds())
        self.check()
        if reply.has_hung:
            allowed.count()
        return reply


class _Process:
    """A process of a subject, and the cases that it has done."""

    def __init__(self, run: _Run, subject: Subject) -> None:
        run.check()
        self.subject = subject
        self._run = run
        self._time_limit = run.time_limits[subject.title]
        self._done: list[Case] = []
        self._import_death: Reply | None = None  # where it ended, or hung, when it was to import
        self._process = subject.process(_MOST_MEMORY)
        run.processes.add(self._process)

    def close(self) -> None:
        """End it."""
        self._process.close()
        self._run.processes.discard(self._process)

    def do(self, case: Case) -> None:
        """Run a case, and record the result.

        Where it dies of what an earlier one did, that one gets another result, before this one.
        """
        whole = self._time_limit.seconds()
        share = _SHARE * whole if self._done else whole
        reply = self.ask(case, share)
        if reply.death is None:
            self._done.append(case)
        elif reply is not self._import_death:
            if self._done:
                rest = whole - share if reply.has_hung else whole
                alone = self._run_separately([case], rest)
                if alone.death is None:
                    self._blame(case, reply, rest, 2 * whole if reply.has_hung else math.inf)
                reply = alone
                self._done.clear()
            if reply.has_hung:
                self._time_limit.count()
                reply = Reply(death=Death(None, seconds=whole))
        self._record(case, reply)

    def _blame(self, affected: Case, reply: Reply, seconds: float, limit: float) -> None:
        """Record the last of the earlier cases that makes the process die of a later one.

        Each may take so many seconds. No more are tried after the limit, nor where such a search
        never finds anything.
        """
        allowed, end = self._time_limit, time.monotonic() + limit
        for suspect in self._done[: -_MOST_SUSPECTS - 1 : -1]:
            if allowed.searches >= _MOST_SEARCHES or time.monotonic() > end:
                break
            if self._run_separately([suspect, affected], seconds).death is not None:
                self._record(suspect, reply, affected.id)
                return
        allowed.searches += 1

    def _run_separately(self, cases: Sequence[Case], seconds: float) -> Reply:
        """Run the last of some cases in another process."""
        reply = Reply()
        with closing(_Process(self._run, self.subject)) as process:
            for case in cases:
                reply = process.ask(case, seconds)
                if reply.death is not None:
                    break
        return reply

    def ask(self, case: Case, seconds: float) -> Reply:
        """Run a case; a new process imports the subject first, which may take longer."""
        self._run.check()
        subject, process = self.subject, self._process
        if self._import_death is None and process.pid is None:
            prepared = prepare(process, subject.source)
            self._run.check()
            if prepared.death is not None:
                self._import_death = prepared
            else:
                _imported(subject.source, prepared)
        if self._import_death is not None:  # as it would be with each case
            return self._import_death
        built = self._run.build(case)
        files = subject.model(built), built.weights, built.inputs, built.outputs
        opset = subject.target_opset(case)
        begin = time.monotonic()
        reply = process.ask((subject.source, *files, opset), seconds)
        self._run.check()
        if reply.death is None:
            self._time_limit.watch(time.monotonic() - begin)
        return reply

    def _record(self, case: Case, reply: Reply, affected: str = "") -> None:
        subject = self.subject
        result = verdicts.judge(
            case,
            subject.title,
            subject.traits,
            self._run.build(case),
            reply,
            execute=partial(self._run.execute, self._time_limit),
            affected=affected,
        )
        self._run.record(result)


def _may_have_damaged(result: Result) -> bool:
    """Return whether the process of a case is not to be trusted with another one."""
    return result.verdict in ("wrong", "accepted-but-illegal", "lost-refusal", "crash")
