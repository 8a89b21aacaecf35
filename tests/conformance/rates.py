"""How often `check` is wrong about an engine: what it finds beside what a run of the suite showed.

``python -m tests.conformance.rates DOCUMENT`` counts all cases, in minutes. A model with an error
is a false error if each of its cases ran right. One with neither error nor warning is missed if a
case of it went wrong.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import onnx

from tensorsplit.conformance import document
from tensorsplit.conformance.case import PARTS, Case
from tensorsplit.conformance.cases import all_cases
from tensorsplit.conformance.document import Document, SubjectInfo
from tensorsplit.model import profiles
from tensorsplit.model.check.checker import check


@dataclass
class Rates:
    """What `check` found of the models of a run, beside what one version of an engine did.

    Attributes:
        models: How many were checked.
        errors: How many have an error.
        wrong: How many the engine refused or ran wrongly, though they are legal, or ran though
            they are not.
        false: The cases of models with an error that the engine runs right.
        missed: The cases that went wrong of models with neither error nor warning.
    """

    models: int
    errors: int = 0
    wrong: int = 0
    false: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)


def measured(run: Document) -> Iterator[SubjectInfo]:
    """Return the engines of a run that `check` knows."""
    return (subject for subject in run.subjects if subject.title in profiles.targets())


def rates(run: Document, subject: SubjectInfo, *, every: int = 1, target: Any = None) -> Rates:
    """Check the models of a run for an engine, and compare the findings with its results.

    Cases of one model, such as those that feed it other values, have ids that differ in the last
    segment only.

    Args:
        run: The results, such as those in docs/conformance.json.gz.
        subject: The engine.
        every: Of how many groups of such cases one is checked.
        target: What `check` is told; None for the engine in the version that was run.
    """
    results = {
        result.case: result
        for result in run.results
        if result.subject == subject.name and result.verdict != "skipped"
    }
    groups = defaultdict[str, list[Case]](list)
    for case in all_cases():
        if case.id in results and case.model_format == "onnx":
            groups[case.id.rpartition("/")[0]].append(case)
    models = defaultdict[bytes, list[Case]](list)
    for case in chain.from_iterable(list(groups.values())[::every]):
        models[case.build(run.suite["seed"]).model].append(case)
    target = target or f"{subject.title}@{subject.version}"
    found = Rates(len(models))
    for model, cases in models.items():
        findings = check(onnx.load_from_string(model), target)
        severities = {finding.severity for finding in findings}
        wrong = [case.id for case in cases if results[case.id].is_deviation]
        found.errors += "error" in severities
        found.wrong += bool(wrong)
        if "error" in severities and not wrong and all(case.expects == PARTS for case in cases):
            found.false += [case.id for case in cases]
        if severities.isdisjoint({"error", "warning"}):
            found.missed += wrong
    return found


def main(path: str) -> int:
    """Print the rates of each engine in a run; return 1 if any is not 0."""
    run = document.read(Path(path))
    is_wrong = False
    for subject in measured(run):
        found = rates(run, subject)
        print(
            f"{subject.title} {subject.version}: of {found.models} models, {found.wrong} go wrong"
            f" and {found.errors} have errors; {len(found.false)} false, {len(found.missed)} missed"
        )
        print(*(f"false   {name}" for name in found.false), sep="\n")
        print(*(f"missed  {name}" for name in found.missed), sep="\n")
        is_wrong |= bool(found.false or found.missed)
    return is_wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
