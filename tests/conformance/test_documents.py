"""Documents of several runs become one, if they are of the same cases."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tensorsplit.conformance.document import Document, merged
from tests.conformance.documents import CHUNK, LOOP, small
from tests.refusals import refused

RUN = small()


def of_subject(name: str, run: Document = RUN, **changes: Any) -> Document:
    """The document of one subject alone."""
    subjects = tuple(entry for entry in run.subjects if entry.name == name)
    results = tuple(result for result in run.results if result.subject == name)
    return replace(run, subjects=subjects, results=results, **changes)


def without(name: str, run: Document) -> Document:
    """The document without a case."""
    return replace(
        run,
        cases=tuple(entry for entry in run.cases if entry.id != name),
        results=tuple(result for result in run.results if result.case != name),
        suite={**run.suite, "cases": len(run.cases) - 1},
    )


def test_subjects_that_ran_one_by_one_are_those_of_one_run() -> None:
    pieces = [of_subject(entry.name) for entry in RUN.subjects]
    assert merged(pieces) == RUN


def test_cases_and_results_that_were_run_apart_are_those_of_one_run() -> None:
    names = [entry.id for entry in RUN.cases]
    for chosen in (names[:2], names[1::2]):
        rest = RUN
        for name in chosen:
            rest = without(name, rest)
        others = replace(RUN, cases=tuple(each for each in RUN.cases if each.id in chosen))
        theirs = tuple(result for result in RUN.results if result.case in chosen)
        assert merged([rest, replace(others, results=theirs)]) == RUN
        assert merged([replace(RUN, results=rest.results), replace(RUN, results=theirs)]) == RUN


def test_the_document_of_most_cases_says_when_and_where() -> None:
    other = of_subject("openvino", measured={**RUN.measured, "by": "another"})
    whole = merged([without(LOOP.id, other), of_subject("tensorsplit")])
    assert whole.measured["by"] == "a test"
    assert whole.suite["cases"] == 5
    seen = (LOOP.id, "openvino")
    ours = ("tensorsplit", "openvino")
    wanted = {(each.case, each.subject) for each in RUN.results if each.subject in ours} - {seen}
    assert {(each.case, each.subject) for each in whole.results} == wanted
    whole = merged([other, without(LOOP.id, of_subject("tensorsplit"))])
    assert whole.measured["by"] == "another"


def test_all_versions_of_the_suite_are_named_in_order() -> None:
    newer = of_subject("openvino", suite={**RUN.suite, "version": "0.8.0, 0.5.0, 0.3.0, 0.2.0"})
    both = merged([newer, of_subject("tensorsplit")])
    assert both.suite["version"] == "0.1.0, 0.2.0, 0.3.0, 0.5.0, 0.8.0"
    assert merged([both, of_subject("onnxslim")]).suite["version"] == both.suite["version"]


def test_of_many_versions_each_keeps_the_date_of_its_own_run() -> None:
    dates = {"0.1.78": "2026-01-01", "0.1.79": "2026-02-02", "0.1.80": "2026-03-03"}
    slim = of_subject("onnxslim")
    (subject,) = slim.subjects
    runs = [
        replace(
            slim,
            subjects=(replace(subject, versions={**subject.versions, "onnxslim": version}),),
            measured={**slim.measured, "date": date},
        )
        for version, date in dates.items()
    ]
    for chosen in ([merged(runs[:2]), runs[2]], [runs[2], merged(runs[:2])], runs):
        found = merged(chosen).subjects
        assert {each.version: each.date for each in found} == dates
        assert {each.name for each in found} == {f"onnxslim {version}" for version in dates}


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        {},
        {"cases": [], "subjects": [], "results": []},
        {"cases": [{}], "subjects": [], "results": [], "suite": {}, "measured": {}},
        {"cases": 5, "subjects": [], "results": [], "suite": {}, "measured": {}},
        {"cases": [], "subjects": [1], "results": [], "suite": {}, "measured": {}},
        {"cases": [], "subjects": [], "results": [], "suite": {"seed": -1}, "measured": {}},
        {"cases": [], "subjects": [], "results": [], "suite": {"seed": True}, "measured": {}},
        {"cases": [], "subjects": [], "results": [], "suite": {"version": []}, "measured": {}},
    ],
)
def test_anything_else_is_no_document(content: object) -> None:
    with refused("TS703", "not a document of a conformance run"):
        Document.from_json(content)


@pytest.mark.parametrize("other", [{"case": "none"}, {"subject": "none"}, {"verdict": "none"}])
def test_a_result_of_nothing_that_was_run_is_no_document(other: dict[str, str]) -> None:
    content = json.loads(json.dumps(RUN.to_json()))
    assert Document.from_json(content) == RUN
    content["results"][0] |= other
    with refused("TS703", "not a document of a conformance run"):
        Document.from_json(content)


def test_another_seed_is_refused() -> None:
    other = of_subject("openvino", suite={**RUN.suite, "seed": 1})
    with refused("TS703", "not of the same seed", parameter="from"):
        merged([of_subject("tensorsplit"), other])


def test_a_case_that_became_another_one_is_refused() -> None:
    changed = tuple(
        replace(entry, rule="Another rule.") if entry is CHUNK else entry for entry in RUN.cases
    )
    with refused("TS703", f"{CHUNK.id} is not the same case in all of them", parameter="from"):
        merged([of_subject("tensorsplit"), of_subject("openvino", cases=changed)])


def test_one_version_beside_other_packages_is_refused() -> None:
    """Its results could be of either."""
    slim = of_subject("onnxslim")
    (subject,) = slim.subjects
    beside = replace(subject, versions={**subject.versions, "onnx": "1.20.0"})
    with refused("TS703", "onnxslim 0.1.80 is in two of them, beside other packages"):
        merged([slim, replace(slim, subjects=(beside,), results=())])
