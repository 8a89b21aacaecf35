"""Running cases with subjects: batches in parallel, each in a process of its own."""

from __future__ import annotations

import os
import platform
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import onnx

from tensorsplit import __version__
from tensorsplit.conformance import subjects, verdicts
from tensorsplit.conformance.case import Built, Case
from tensorsplit.conformance.document import SKIPPED, Document, Result, SubjectInfo
from tensorsplit.conformance.isolation import SECONDS, Attempt, CaseTask, IsolatedRunner

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
    adapter: subjects.Adapter  # its adapter
    seconds: float = SECONDS  # how long it may take for one case

    @classmethod
    def of(cls, name: str, seconds: float = SECONDS) -> Subject:
        """The subject of a name, a path or a module; SplitError TS601, TS602 if there is none."""
        source = str(Path(name).absolute()) if name.endswith(".py") else name
        return cls(source, subjects.title(name), subjects.load(name), seconds)

    @property
    def info(self) -> SubjectInfo:
        """What a document says of it."""
        return SubjectInfo(self.title, self.adapter.kind, subjects.versions(self.source))

    def model(self, built: Built) -> bytes:
        """The model that it is given."""
        return verdicts.undeclared(built.model) if self.adapter.states_shapes else built.model

    def target_opset(self, case: Case) -> int:
        """The opset that a tool is asked for: another wording of the split where there is one."""
        if case.opset < _UPWARDS:
            return _UPWARDS
        return _DOWNWARDS if self.adapter.downwards else max(case.opset, _NEWEST)

    def request(self, case: Case, built: Built) -> tuple[Any, ...]:
        """What `tensorsplit.conformance.subjects.perform` is called with, after the name."""
        outputs = output_names(case.model_format, built)
        return self.model(built), built.weights, built.inputs, outputs, self.target_opset(case)

    def judge(self, case: Case, built: Built, attempt: Attempt) -> Result:
        """The verdict on what it did with a case."""
        return verdicts.judge(
            case.id,
            self.title,
            built,
            attempt,
            states_shapes=self.adapter.states_shapes,
            about_types=case.is_about_types,
        )


def run(
    chosen: Sequence[Subject],
    cases: Sequence[Case],
    *,
    seed: int = 0,
    jobs: int | None = None,
    progress: Progress = lambda _: None,
) -> Document:
    """Run cases with subjects; two runs with the same seed differ in nothing but the date.

    Args:
        chosen: The subjects.
        cases: The cases.
        seed: What the elements of the inputs are drawn from.
        jobs: How many processes run at a time; as many as there are processors, but not more than
            8, if None.
        progress: Is called after each case of each subject, from several threads in turn.

    Raises:
        SplitError: TS601 or TS602 for a subject that can't be used at all.
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
        self._runners = {
            subject.title: IsolatedRunner(subject.source, subject.seconds) for subject in chosen
        }

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
            for runner in self._runners.values():
                runner.cancel()
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
        readable = [case for case in cases if case.model_format in subject.adapter.formats]
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
        by_id = {case.id: case for case in cases}
        tasks = [
            CaseTask(case.id, lambda case=case: subject.request(case, self._build(case)))  # type: ignore[misc]
            for case in cases
        ]
        found: dict[str, Result] = {}
        for name, attempt in self._runners[subject.title].batch(tasks):
            again = name in found
            case = by_id[name]
            found[name] = subject.judge(case, self._build(case), attempt)
            self._advance(int(counts and not again))
        return found

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
    return result.verdict in ("wrong", "accepted-but-illegal", "crash")


def _processor() -> str:
    """The processor's name, where the system says it."""
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or sys.platform
