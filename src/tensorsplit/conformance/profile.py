"""Profiles of engines, as `tensorsplit.model.profiles` reads them, from what a run has measured."""

from __future__ import annotations

import json
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain, product
from typing import Any

import numpy as np
import onnx

from tensorsplit.conformance.case import CaseInfo
from tensorsplit.conformance.cases import all_cases
from tensorsplit.conformance.derivation import Condition, Explanation, Observation, derive
from tensorsplit.conformance.document import Document, Result, SubjectInfo
from tensorsplit.model import profiles
from tensorsplit.model.features import features_of, model_features
from tensorsplit.model.graph.nodes import walk
from tensorsplit.model.infer.analysis import analyse
from tensorsplit.model.reading import open_model

_LONGEST = 160
_WIDE = {"int64": "i", "uint64": "i", "double": "f"}
_OPERATORS = ("operator", "version")
_LEFT_OUT = ("opset",)


def profile_files(document: Document) -> Iterator[tuple[str, str]]:
    """Return the profile of each engine of a run: ``ENGINE-VERSION.json`` and its text.

    The run must have all cases of this version of the package: what no case shows is taken over
    from the newest profile there is.
    """
    cases = {case.id: case for case in document.cases if case.model_format == "onnx"}
    seed = document.seed
    conditions = {
        case.id: conditions_of(case.build(seed).model) for case in all_cases() if case.id in cases
    }
    for subject in document.subjects:
        if subject.kind != "engine":
            continue
        observations = [
            _observation(result, cases[result.case], conditions[result.case])
            for result in document.results
            if result.subject == subject.name
            and result.verdict != "skipped"
            and result.case in conditions
        ]
        findings, unexplained = derive(observations)
        content = {
            "measured": _measured(document, subject, observations),
            **_view(subject),
            "entries": [*_entries(findings), *_carried(subject, observations, findings)],
            "unexplained": [entry.result.case for entry in unexplained],
        }
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        yield f"{subject.name}-{subject.version}.json", text


_OF_ILLEGAL_LENGTHS = ("runtime_lengths", "edge")
"""What is said of lengths that reach no node behind others that check them."""


_PATTERN = ("also", "unless")
"""What says of an entry which other features have to be there, or must not."""


def _carried(
    subject: SubjectInfo, observations: Sequence[Observation], findings: Sequence[Explanation]
) -> Iterator[dict[str, Any]]:
    """Return what was known of the engine before, where no case contradicts it."""
    if subject.name not in profiles.targets():
        return
    before = profiles.load(subject.name, subject.version)
    passed = [entry for entry in observations if entry.is_legal and not entry.result.is_deviation]
    settled = {condition for entry in passed for condition in entry.conditions}
    found = {finding.condition for finding in findings}

    def is_open(feature: str, operator: str, value: str) -> bool:
        """Return whether neither a pass nor a finding, if about more, says anything of it."""
        wider = product([feature], {"", operator}, {"", value})
        return (feature, operator, value) not in settled and found.isdisjoint(wider)

    for entry in before.entries:
        left = [
            operator
            for operator in entry.operators or ("",)
            if all(is_open(entry.feature, operator, str(value)) for value in entry.values or ("",))
        ]
        if left:
            named = {"operators": left} if entry.operators else {}
            listed = {"values": list(entry.values)} if entry.values else {}
            yield {
                "feature": entry.feature,
                "verdict": entry.verdict,
                "extent": entry.extent,
                **named,
                **listed,
                "note": entry.note,
                **{name: list(held) for name in _PATTERN if (held := getattr(entry, name))},
                "carried": f"as {before.name} has it; no case shows otherwise",
            }


def _view(subject: SubjectInfo) -> dict[str, Any]:
    """Return what was known of the engine's import before; no case measures it."""
    is_known = subject.name in profiles.targets()
    view = profiles.load(subject.name, subject.version).view if is_known else None
    return {} if view is None else {"view": asdict(view)}


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


def conditions_of(data: bytes) -> frozenset[Condition]:
    """Return the features of a serialised ONNX model."""
    model = open_model(onnx.load_from_string(data)).model
    facts = analyse(model)
    features = [features_of(place, facts) for place in walk(model)]
    return frozenset(chain.from_iterable(map(_of_features, [*features, model_features(model)])))


def _of_features(features: Mapping[str, Any]) -> Iterator[Condition]:
    kinds = ("", *(str(features[name]) for name in _OPERATORS if name in features))
    for name, value in features.items():
        if name in _OPERATORS:
            yield Condition(name, value=str(value))
        elif name not in _LEFT_OUT:
            for kind in kinds:
                yield Condition(name, kind, "" if value is True else str(value))


def _observation(result: Result, case: CaseInfo, conditions: frozenset[Condition]) -> Observation:
    return Observation(
        result,
        conditions,
        is_legal=case.expects == "parts",
        is_rare=case.shape_class == "zero-size" or bool(case.cut and 0 in case.cut.shape),
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
    return float(seen) in (float(narrow), float(np.clip(narrow, -largest, largest)))


def _narrow_integers(value: int) -> set[int]:
    """Name how integers became 32 bits: cut off, with a sign or without, or clamped."""
    low = value & 0xFFFFFFFF
    signed = low - (low >> 31 << 32)
    clamped = {max(-(2**31), min(value, limit)) for limit in (2**31 - 1, 2**32 - 1)}
    return {low, signed, signed % 2**64, *clamped} - {value}


def _entries(findings: Sequence[Explanation]) -> Iterator[dict[str, Any]]:
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
            **({"unless": ["checked_lengths"]} if (feature, extent) == _OF_ILLEGAL_LENGTHS else {}),
            "failed": sum(finding.failed for finding in group),
            "cases": sum(finding.cases for finding in group),
            "example": most.example.case,
        }
