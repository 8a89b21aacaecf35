"""Profiles of engines, as `tensorsplit.model.profiles` reads them, from what a run has measured."""

from __future__ import annotations

import json
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from itertools import chain

import numpy as np
import onnx

from tensorsplit.conformance.case import CaseInfo
from tensorsplit.conformance.cases import all_cases
from tensorsplit.conformance.derivation import Condition, Explanation, Observation, derive, simplest
from tensorsplit.conformance.document import Document, Result, SubjectInfo
from tensorsplit.core.errors import SplitError
from tensorsplit.model import profiles
from tensorsplit.model.features import features_of, model_features
from tensorsplit.model.features.vocabulary import Features
from tensorsplit.model.graph.nodes import walk
from tensorsplit.model.infer.analysis import analyse
from tensorsplit.model.infer.seen import seen
from tensorsplit.model.profiles import Limitation, Profile
from tensorsplit.model.reading import open_model
from tensorsplit.model.view import View

_LONGEST = 160
_WIDE_VALUES = "wide_values"
_WIDE = {"int64": "i", "uint64": "i", "double": "f"}
_OPERATORS = ("operator", "version")
_LEFT_OUT = ("opset",)


def profile_files(document: Document) -> Iterator[tuple[str, str]]:
    """Return the profile of each engine of a run: ``ENGINE-VERSION.json`` and its text.

    The run must have all cases of this version of the package. What the profile before says is
    tried on them: what none shows otherwise is taken over, and the rest is derived.
    """
    cases = {case.id: case for case in document.cases if case.model_format == "onnx"}
    models = {case.id: case.build(document.seed).model for case in all_cases() if case.id in cases}

    @cache
    def seen_by(view: View | None) -> Mapping[str, Sequence[Features]]:
        return {name: _features(model, view) for name, model in models.items()}

    for subject in document.subjects:
        if subject.kind != "engine":
            continue
        before = None
        with suppress(SplitError):  # none of it was measured before
            before = profiles.load(subject.title, subject.version)
        view = None if before is None else before.view
        features = seen_by(view)
        observations = [
            _observation(result, cases[result.case], features[result.case])
            for result in document.results
            if result.subject == subject.name
            and result.verdict != "skipped"
            and result.case in features
        ]
        kept, left = _kept(before, observations, features)
        findings, unexplained = derive(left)
        package = next(iter(subject.versions), subject.title)
        content: dict[str, object] = {
            **({} if package == subject.title else {"package": package}),
            "measured": _measured(document, subject, observations),
            **({} if view is None else {"view": asdict(view)}),
            **({"sorts": before.sorts} if before is not None and before.sorts else {}),
            **({"reads_unrun": before.reads_unrun} if before and before.reads_unrun else {}),
            **({"runs_unused": True} if before and before.runs_unused else {}),
            **({"kernels": before.kernels} if before is not None and before.kernels else {}),
            "entries": [*kept, *_entries(findings)],
            "unexplained": [entry.result.case for entry in unexplained],
        }
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        yield f"{subject.title}-{subject.version}.json", text


_ILLEGAL_LENGTHS = ("runtime_lengths", "edge")
"""The note for lengths that reach no node after those that check them."""


def _kept(
    before: Profile | None,
    observations: Sequence[Observation],
    features: Mapping[str, Sequence[Features]],
) -> tuple[list[dict[str, object]], list[Observation]]:
    """Return the entries of the previous profile that still hold, and what they do not explain.

    An entry stays where a case shows it, or none could. One about every input, under which a case
    now passes, is about some.
    """
    kept, explained = list[dict[str, object]](), set[str]()
    for entry in () if before is None else before.entries:
        about = [
            each
            for each in observations
            if _could_show(entry, each) and any(map(entry.holds, features[each.result.case]))
        ]
        failed = [each for each in about if each.result.is_deviation]
        if about and not failed:
            continue
        if entry.extent != "values" or entry.feature == _WIDE_VALUES:  # others hide no failure
            explained |= {each.result.case for each in failed}
        record = {
            name: value for name, value in asdict(entry).items() if value or name == "feature"
        }
        if failed and entry.extent == "all" and len(failed) < len(about):
            record["extent"] = "some"
        if failed:
            record |= {
                "failed": len(failed),
                "cases": len(about),
                "example": simplest(each.result for each in failed).case,
            }
        else:
            record["carried"] = f"as {before and before.name} has it; no case shows otherwise"
        kept.append(record)
    return kept, [each for each in observations if each.result.case not in explained]


def _could_show(entry: Limitation, observation: Observation) -> bool:
    """Return whether a case with the features of an entry has inputs of the kind that it is about.

    Rare inputs are those that are illegal, or have a dimension of 0. What fails otherwise says
    nothing of wide values.
    """
    if entry.feature == _WIDE_VALUES:
        return bool(observation.narrows) or not observation.result.is_deviation
    if entry.extent == "values":
        return True
    if entry.extent == "illegal":
        return not observation.is_legal
    if entry.extent == "edge":
        return observation.is_rare or not observation.is_legal
    return observation.is_legal and not observation.narrows


def _measured(
    document: Document, subject: SubjectInfo, observations: Sequence[Observation]
) -> dict[str, str]:
    measured = document.measured
    versions = ", ".join(f"{name} {version}" for name, version in subject.versions.items())
    return {
        "by": measured.get("by", ""),
        "date": measured.get("date", ""),
        "how": f"{len(observations)} cases of the conformance suite of tensorsplit"
        f" {document.suite.get('version', '')} (seed {document.suite.get('seed', 0)}) with"
        f" {versions}, each in a process that may die; derived by"
        " tensorsplit.conformance.derivation",
        "system": ", ".join(filter(None, (measured.get("system"), measured.get("cpu")))),
    }


def _features(data: bytes, view: View | None) -> list[Features]:
    """Return the features of each node of a serialised ONNX model, and those of the model.

    The view is what an engine knows of it at import.
    """
    model = open_model(onnx.load_from_string(data)).model
    facts = analyse(model)
    imported = None if view is None else seen(model, view)
    of_nodes = (features_of(place, facts, imported) for place in walk(model))
    return [*filter(None, of_nodes), model_features(model)]


def conditions_of(data: bytes) -> frozenset[Condition]:
    """Return the features of a serialised ONNX model, each as a condition."""
    return _conditions(_features(data, None))


def _conditions(features: Iterable[Features]) -> frozenset[Condition]:
    return frozenset(chain.from_iterable(map(_of_features, features)))


def _of_features(features: Mapping[str, object]) -> Iterator[Condition]:
    kinds = ("", *(str(features[name]) for name in _OPERATORS if name in features))
    for name, held in features.items():
        for value in held if isinstance(held, tuple) else (held,):
            if name in _OPERATORS:
                yield Condition(name, value=str(value))
            elif name not in _LEFT_OUT:
                for kind in kinds:
                    yield Condition(name, kind, "" if value is True else str(value))


def _observation(result: Result, case: CaseInfo, features: Iterable[Features]) -> Observation:
    return Observation(
        result,
        _conditions(features),
        is_legal=case.expects == "parts",
        is_rare=case.shape_class == "zero-size",
        narrows=case.element_type if _narrows(result, case.element_type) else "",
    )


def _narrows(result: Result, element_type: str) -> bool:
    """Return whether a value is what is left of the right one in 32 bits."""
    kind = _WIDE.get(element_type)
    if kind is None or result.verdict != "wrong" or not result.index:
        return False
    if kind == "f":
        return _is_narrow_float(result.expected, result.seen)
    return int(result.seen) in _narrow_integers(int(result.expected))


def _is_narrow_float(expected: str, seen: str) -> bool:
    if expected.startswith("nan"):  # whose payload is lost
        return seen.startswith("nan")
    with np.errstate(over="ignore"):
        narrow = np.float32(float(expected))
    largest = float(np.finfo(np.float32).max)
    left = (float(narrow), float(np.clip(narrow, -largest, largest)))
    return str(float(seen)) in map(str, left)  # -0.0 is not 0.0


def _narrow_integers(value: int) -> set[int]:
    """Name how integers became 32 bits: cut off, with a sign or without, or clamped."""
    low = value & 0xFFFFFFFF
    signed = low - (low >> 31 << 32)
    clamped = {max(-(2**31), min(value, limit)) for limit in (2**31 - 1, 2**32 - 1)}
    return {low, signed, signed % 2**64, *clamped}


def _entries(findings: Sequence[Explanation]) -> Iterator[dict[str, object]]:
    """Merge findings that differ in nothing but the value, or the operator."""
    by_operator: dict[tuple[str, str, str, str], list[Explanation]] = defaultdict(list)
    for finding in findings:
        feature, operator, _ = finding.condition
        by_operator[feature, finding.verdict, finding.extent, operator].append(finding)
    by_values: dict[tuple[str, str, str, tuple[str, ...]], list[Explanation]] = defaultdict(list)
    for (feature, verdict, extent, _), group in by_operator.items():
        values = tuple(sorted({finding.condition.value for finding in group} - {""}))
        by_values[feature, verdict, extent, values] += group
    for (feature, verdict, extent, values), group in by_values.items():
        operators = sorted({finding.condition.operator for finding in group} - {""})
        most = max(group, key=lambda finding: finding.failed)
        yield {
            "feature": feature,
            "verdict": verdict,
            "extent": extent,
            **({"operators": operators} if operators else {}),
            **({"values": list(values)} if values else {}),
            "note": textwrap.shorten(most.example.detail, _LONGEST, placeholder="..."),
            **({"unless": ["checked_lengths"]} if (feature, extent) == _ILLEGAL_LENGTHS else {}),
            "failed": sum(finding.failed for finding in group),
            "cases": sum(finding.cases for finding in group),
            "example": most.example.case,
        }
