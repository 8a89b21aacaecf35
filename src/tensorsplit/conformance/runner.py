"""Running cases with subjects: batches in parallel, each in a process of its own.

The process is new for each batch: what ran before a case is always the same, and a run can be
repeated. A case that ends the process is tried again, alone in a new one. If it lives there, an
earlier case has damaged the process, and the earlier ones are tried together with it until the one
to blame is found.
"""

from __future__ import annotations

import os
import platform
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import onnx

from tensorsplit import __version__
from tensorsplit.conformance import subjects, verdicts
from tensorsplit.conformance.case import Built, Case
from tensorsplit.conformance.document import SKIPPED, Document, Result, SubjectInfo
from tensorsplit.engines.process import EngineProcess, Reply

SECONDS = 10.0
"""How long a subject may take for one case before it is said to hang."""

_SECONDS_TO_IMPORT = 300.0
_MORE_TIME_ALONE = 3
_MOST_SUSPECTS = 24
_ENVIRONMENT = {"PYTHONHASHSEED": "0"}
_BATCH = 100
_MOST_JOBS = 8
_FRAGILE = "string"
_UPWARDS, _DOWNWARDS, _NEWEST = 18, 13, 24

Progress = Callable[[int], None]
"""Is told how many results have been added."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject of a run."""

    source: str  # as `tensorsplit.conformance.subjects.load` takes it
    title: str  # what it is called in the document
    traits: subjects.Traits
    seconds: float = SECONDS  # how long it may take for one case

    @classmethod
    def of(cls, name: str, seconds: float = SECONDS) -> Subject:
        """The subject of a name, a path or a module; SplitError TS601, TS602 if there is none.

        A user's adapter is imported in a process of its own, never here.
        """
        if name in subjects.SUBJECTS:
            return cls(name, name, subjects.SUBJECTS[name], seconds)
        source = str(Path(name).absolute()) if name.endswith(".py") else name
        told = asked(source, "tensorsplit.conformance.subjects:traits")
        return cls(source, subjects.title(name), msgspec.convert(told, subjects.Traits), seconds)

    @property
    def info(self) -> SubjectInfo:
        """What a document says of it."""
        return SubjectInfo(self.title, self.traits.kind, self.traits.versions())

    def model(self, built: Built) -> bytes:
        """The model that it is given."""
        return verdicts.undeclared(built.model) if self.traits.states_shapes else built.model

    def target_opset(self, case: Case) -> int:
        """The opset that a tool is asked for: another wording of the split where there is one."""
        if case.opset < _UPWARDS:
            return _UPWARDS
        return _DOWNWARDS if self.traits.downwards else max(case.opset, _NEWEST)


def asked(source: str, function: str) -> Any:
    """What a function of this package says of a user's adapter, in a process of its own.

    SplitError TS601 or TS602 for the adapter; so too if it ends its process, or hangs.
    """
    process = EngineProcess(source, function, _ENVIRONMENT)
    try:
        reply = process.ask((source,), _SECONDS_TO_IMPORT)
    finally:
        process.close()
    return _imported(source, reply)


def _imported(source: str, reply: Reply) -> Any:
    """What a subject was asked for when it was imported."""
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
    jobs: int | None = None,
    progress: Progress = lambda _: None,
) -> Document:
    """Run cases with subjects; two runs with the same seed differ in nothing but the date.

    So many jobs run at a time; as many as there are processors, but not more than 8, if None. The
    progress is told from several threads in turn. SplitError TS601 or TS602 for a subject that
    can't be used at all.
    """
    jobs = jobs or min(os.cpu_count() or 1, _MOST_JOBS)
    ordered = sorted(cases, key=lambda case: case.id)
    results = _Run(chosen, ordered, seed, progress).results(jobs)
    return Document(
        {"version": __version__, "cases": len(ordered), "seed": seed},
        measured(),
        tuple(subject.info for subject in chosen),
        tuple(case.info for case in ordered),
        tuple(results),
    )


def measured() -> dict[str, str]:
    """Who measures, when and on what."""
    return {
        "by": f"tensorsplit {__version__}, tensorsplit conformance",
        "date": datetime.now(UTC).date().isoformat(),
        "system": f"{platform.system()}-{platform.machine()}",
        "python": platform.python_version(),
        "cpu": _processor(),
    }


def output_names(model_format: str, built: Built) -> tuple[str, ...]:
    """The names of the outputs of a model, in its own order."""
    if built.expected is not None:
        return tuple(built.expected)
    if model_format == "onnx":
        return tuple(output.name for output in onnx.load_from_string(built.model).graph.output)
    layers = ElementTree.fromstring(built.model).iter("layer")  # noqa: S314 - our own text
    return tuple(layer.get("name", "") for layer in layers if layer.get("type") == "Result")


class _Run:
    """The batches of one run, and what they share."""

    def __init__(
        self, chosen: Sequence[Subject], cases: Sequence[Case], seed: int, progress: Progress
    ) -> None:
        self._chosen = chosen
        self._cases = cases
        self._seed = seed
        self._progress = progress
        self._lock = threading.Lock()
        self._built: dict[str, Built] = {}
        self._cancelled = threading.Event()
        self._processes: set[EngineProcess] = set()

    def results(self, jobs: int) -> Iterator[Result]:
        """All results, by case and then subject; the processes are gone afterwards."""
        found: dict[tuple[str, str], Result] = {}
        pool = ThreadPoolExecutor(jobs)
        try:
            futures = [pool.submit(self._batch, *batch) for batch in self._batches()]
            for future in as_completed(futures):
                found.update(future.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            self._cancelled.set()
            for process in list(self._processes):
                process.stop()
            raise
        finally:
            pool.shutdown()
        for case, subject in product(self._cases, self._chosen):
            yield found[case.id, subject.title]

    def _batches(self) -> Iterator[tuple[Subject, list[Case]]]:
        """The work, in an order in which the subjects take turns."""
        for is_fragile in (False, True):
            group = [case for case in self._cases if (case.element_type == _FRAGILE) == is_fragile]
            for start in range(0, len(group), _BATCH):
                for subject in self._chosen:
                    yield subject, group[start : start + _BATCH]

    def _batch(self, subject: Subject, cases: list[Case]) -> dict[tuple[str, str], Result]:
        readable = [case for case in cases if case.model_format in subject.traits.formats]
        found = {case.id: Result(case.id, subject.title, SKIPPED) for case in cases}
        self._advance(len(cases) - len(readable))
        found |= self._tried(subject, readable)
        strings = [case for case in readable if case.element_type == _FRAGILE]
        if any(_may_have_damaged(found[case.id]) for case in strings):
            for case in strings:
                found |= self._tried(subject, [case], counts=False)
        return {(name, subject.title): result for name, result in found.items()}

    def _tried(
        self, subject: Subject, cases: list[Case], *, counts: bool = True
    ) -> dict[str, Result]:
        """The results of cases that are tried in one process."""
        found: dict[str, Result] = {}
        for case, reply, affected in self._replies(subject, cases):
            again = case.id in found
            found[case.id] = verdicts.judge(
                case.id,
                subject.title,
                self._build(case),
                reply,
                affected=affected,
                is_tool=subject.traits.kind == "tool",
                states_shapes=subject.traits.states_shapes,
                about_types=case.is_about_types,
            )
            self._advance(int(counts and not again))
        return found

    def _replies(
        self, subject: Subject, cases: Sequence[Case]
    ) -> Iterator[tuple[Case, Reply, str]]:
        """Try cases, one after the other in one process as long as it lives: what came of each.

        A case that turns out to have damaged the process for a later one comes once more, with how
        that one died, and its id.
        """
        before: list[Case] = []
        with self._process(subject) as process:
            for case in cases:
                reply = self._ask(process, subject, case)
                if reply.death is None:
                    before.append(case)
                    yield case, reply, ""
                    continue
                if before or reply.death.seconds is not None:
                    alone = self._together(subject, [case])
                    blamed = self._blamed(subject, before, case) if alone.death is None else None
                    if blamed is not None:
                        yield blamed, reply, case.id
                    reply = alone
                before = []
                yield case, reply, ""

    def _blamed(self, subject: Subject, before: Sequence[Case], affected: Case) -> Case | None:
        """The last of the earlier cases that makes the process die of the later one."""
        for suspect in before[: -_MOST_SUSPECTS - 1 : -1]:
            if self._together(subject, [suspect, affected]).death is not None:
                return suspect
        return None

    def _together(self, subject: Subject, cases: Sequence[Case]) -> Reply:
        """What comes of the last of some cases in a process of their own."""
        reply = Reply()
        with self._process(subject) as process:
            for case in cases:
                reply = self._ask(process, subject, case, _MORE_TIME_ALONE)
                if reply.death is not None:
                    break
        return reply

    def _ask(
        self, process: EngineProcess, subject: Subject, case: Case, more_time: int = 1
    ) -> Reply:
        """What comes of a case; a new process imports the subject first, which may take longer."""
        self._check()
        if process.pid is None:
            prepare = "tensorsplit.conformance.subjects:prepare"
            prepared = process.ask((subject.source,), _SECONDS_TO_IMPORT, adapter=prepare)
            self._check()
            if prepared.death is None:  # else it will die of the case too, to which that belongs
                _imported(subject.source, prepared)
        built = self._build(case)
        outputs = output_names(case.model_format, built)
        request = subject.model(built), built.weights, built.inputs, outputs
        opset = subject.target_opset(case)
        reply = process.ask((subject.source, *request, opset), subject.seconds * more_time)
        self._check()
        return reply

    def _check(self) -> None:
        if self._cancelled.is_set():
            raise CancelledError

    @contextmanager
    def _process(self, subject: Subject) -> Iterator[EngineProcess]:
        self._check()
        adapter = "tensorsplit.conformance.subjects:perform"
        process = EngineProcess(subject.source, adapter, _ENVIRONMENT)
        self._processes.add(process)
        try:
            yield process
        finally:
            process.close()
            self._processes.discard(process)

    def _build(self, case: Case) -> Built:
        """The files of a case, which every subject needs once."""
        if case.id not in self._built:
            self._built[case.id] = case.build(self._seed)
        return self._built[case.id]

    def _advance(self, count: int) -> None:
        with self._lock:
            self._progress(count)


def _may_have_damaged(result: Result) -> bool:
    """Whether the process of a case is not to be trusted with another one."""
    return result.verdict in ("wrong", "accepted-but-illegal", "lost-refusal", "crash")


def _processor() -> str:
    """The processor's name, where the system says it."""
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or sys.platform
