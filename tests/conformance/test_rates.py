"""What `check --for` finds is so, and nothing that goes wrong is left out: on a part of the run.

``python -m tests.conformance.rates docs/conformance.json.gz`` counts the whole run.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from tensorsplit.conformance import document
from tensorsplit.conformance.cases import all_cases
from tensorsplit.conformance.document import Document, SubjectInfo
from tensorsplit.model import profiles
from tests.conformance.rates import measured, rates

PUBLISHED = Path(__file__).parents[2] / "docs" / "conformance.json.gz"


@cache
def published() -> Document:
    return document.read(PUBLISHED)


def test_what_is_published_is_of_the_cases_of_today() -> None:
    assert published().cases == tuple(case.info for case in all_cases())


def subject(engine: str) -> SubjectInfo:
    return next(subject for subject in measured(published()) if subject.title == engine)


@pytest.mark.parametrize(("engine", "most_right"), [("onnxruntime", 0.95), ("openvino", 0.6)])
def test_no_error_is_false_and_nothing_is_missed(engine: str, most_right: float) -> None:
    found = rates(published(), subject(engine), every=60)
    assert found.models > 50
    assert found.wrong > (1 - most_right) * found.models
    assert found.false == []
    assert found.missed == []


@pytest.mark.parametrize("engine", sorted({*profiles.targets()} - {"portable"}))
def test_no_error_for_any_engine_that_was_measured_is_false(engine: str) -> None:
    found = rates(published(), subject(engine), every=200)
    assert found.models > 10
    assert found.errors
    assert found.false == []


def planted(path: Path, engine: str, entries: list[dict[str, str]]) -> str:
    """Write the profile of an engine with other entries."""
    of_engine = subject(engine)
    name = f"{engine}-{of_engine.version}.json"
    content = json.loads((Path(profiles.__file__).parent / name).read_text("utf-8"))
    made = path / name
    made.write_text(json.dumps({**content, "entries": entries}), "utf-8")
    return str(made)


def test_an_error_about_what_runs_right_is_false(tmp_path: Path) -> None:
    """With an entry that is not so: every Split with lengths known at run time is wrong."""
    entry = {"feature": "runtime_lengths", "verdict": "wrong", "extent": "all", "note": "-"}
    target = planted(tmp_path, "onnxruntime", [entry])
    found = rates(published(), subject("onnxruntime"), every=60, target=target)
    assert len(found.false) > 3
    assert all("/runtime/" in name or "/overridable/" in name for name in found.false)


def test_what_goes_wrong_and_no_entry_says_is_missed(tmp_path: Path) -> None:
    target = planted(tmp_path, "openvino", [])
    found = rates(published(), subject("openvino"), every=60, target=target)
    assert found.errors < found.wrong / 2
    assert len(found.missed) > 20
