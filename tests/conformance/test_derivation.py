"""Profiles derived from runs: what is said of an engine is what its failures have in common."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tensorsplit.conformance.cases import all_cases
from tensorsplit.conformance.derivation import Condition, Explanation, Observation, derive
from tensorsplit.conformance.document import Document, Result, SubjectInfo
from tensorsplit.conformance.profile import conditions_of, profile_files
from tensorsplit.conformance.runner import Subject, run
from tensorsplit.model import profiles
from tensorsplit.model.features.vocabulary import MODEL_FEATURES, NODE_FEATURES
from tests.conformance.fakes import case, planted
from tests.refusals import refused

TYPES = ("float", "int8", "int64", "string", "uint8")


def observations(
    fails: Iterable[tuple[str, str]] = (), rare: bool = False, verdict: str = "refused-but-legal"
) -> Iterator[Observation]:
    """20 cases of each operator and type, half of which have run-time lengths; some fail."""
    failing = set(fails)
    for operator, kind, number in product(("Split", "SplitToSequence"), TYPES, range(20)):
        runtime = number % 2 == 0
        is_rare = number < 4
        failed = (operator, kind) in failing or ((operator, "runtime") in failing and runtime)
        if rare:
            failed = failed and is_rare
        features = {"element_type": kind} | ({"runtime_lengths": ""} if runtime else {})
        conditions = {Condition("operator", value=operator)}
        for name, value in features.items():
            conditions |= {Condition(name, "", value), Condition(name, operator, value)}
        name = f"{operator}/{kind}/{number}"
        found = Result(name, "engine", verdict if failed else "pass", "no kernel")
        yield Observation(found, frozenset(conditions), is_rare=is_rare)


def said(findings: Iterable[Explanation]) -> list[tuple[str, str, str, str]]:
    return [(*finding.condition, finding.extent) for finding in findings]


def test_nothing_is_said_of_an_engine_that_fails_nowhere() -> None:
    assert derive(list(observations())) == ([], [])


def test_a_type_that_never_works_is_said_of_all_operators() -> None:
    fails = [("Split", "string"), ("SplitToSequence", "string")]
    findings, left = derive(list(observations(fails)))
    assert said(findings) == [("element_type", "", "string", "all")]
    assert (findings[0].failed, findings[0].cases, left) == (40, 40, [])


def test_a_type_that_fails_in_one_operator_is_said_of_that_one() -> None:
    findings, _ = derive(list(observations([("SplitToSequence", "uint8")])))
    assert said(findings) == [("element_type", "SplitToSequence", "uint8", "all")]


def test_what_fails_whatever_the_type_is_not_said_of_types() -> None:
    findings, _ = derive(list(observations([("Split", "runtime")])))
    assert said(findings) == [("runtime_lengths", "Split", "", "all")]


def test_failures_for_dimensions_of_0_only_are_an_edge() -> None:
    findings, _ = derive(list(observations([("Split", "runtime")], rare=True)))
    assert said(findings) == [("runtime_lengths", "Split", "", "edge")]


def test_failures_with_nothing_in_common_are_left_unexplained() -> None:
    found = list(observations())
    for place in (3, 77):
        entry = found[place]
        found[place] = Observation(Result("x", "engine", "wrong"), entry.conditions)
    findings, left = derive(found)
    assert findings == []
    assert len(left) == 2


SOME = Condition("runtime_lengths", "Split")


def seen(
    word: str, count: int, *conditions: Condition, rare: bool = False, legal: bool = True
) -> list[Observation]:
    """Cases of which the same came, and what they asked for."""
    found = Result("case", "engine", word)
    return [Observation(found, frozenset(conditions), legal, rare)] * count


@pytest.mark.parametrize(
    ("failed", "passed", "explains"),
    [(2, 2, False), (3, 1, True), (3, 9, True), (3, 10, False), (30, 90, True), (30, 91, False)],
)
def test_what_fails_three_times_and_in_a_quarter_of_the_cases_is_about_some(
    failed: int, passed: int, explains: bool
) -> None:
    cases = seen("wrong", failed, SOME) + seen("pass", passed, SOME) + seen("pass", 40)
    findings, left = derive(cases)
    assert said(findings) == [("runtime_lengths", "Split", "", "some")] * explains
    assert len(left) == (0 if explains else failed)


@pytest.mark.parametrize(("count", "explains"), [(1, False), (6, False), (7, True), (10, True)])
def test_as_many_failures_as_chance_would_give_explain_nothing(count: int, explains: bool) -> None:
    """Of the others half fail: that seven of seven do is less than a hundredth."""
    cases = seen("wrong", count, SOME) + seen("wrong", 8) + seen("pass", 8)
    findings, left = derive(cases)
    extents = [extent for *_, extent in said(findings)]
    assert ("all" in extents) is explains
    assert len(left) == 8 + (0 if findings else count)


@pytest.mark.parametrize(
    ("names", "extent"),
    [
        (("edge-halves-o11", "edge-halves-o2"), "uses"),
        (("edge-halves-o11", "edge-thirds-o11"), "all"),
        (("edge-halves-o11", "lengths-1.2of3-axis0-o11"), "all"),
    ],
)
def test_one_edge_case_that_fails_does_not_say_that_every_input_does(
    names: tuple[str, ...], extent: str
) -> None:
    failed = [
        Observation(Result(f"onnx.Split-{n}/float/r1/{name}", "e", "wrong"), frozenset({SOME}))
        for n, name in enumerate(names)
    ]
    assert said(derive(failed * 2 + seen("pass", 40))[0]) == [
        ("runtime_lengths", "Split", "", extent)
    ]


@pytest.mark.parametrize(("crashes", "verdict"), [(3, "refused"), (4, "crash")])
def test_a_crash_in_a_tenth_of_the_failures_is_said_first(crashes: int, verdict: str) -> None:
    cases = seen("refused-but-legal", 40 - crashes, SOME) + seen("crash", crashes, SOME)
    (finding,), _ = derive(cases + seen("pass", 40))
    assert (finding.verdict, finding.failed) == (verdict, 40)


def test_a_crash_is_worse_than_a_wrong_result_and_that_than_a_refusal() -> None:
    words = ("refused-but-legal", "wrong", "hang")
    verdicts = []
    for number in range(1, 4):
        cases = [case for word in words[:number] for case in seen(word, 5, SOME)]
        (finding,), _ = derive(cases + seen("pass", 40))
        verdicts.append(finding.verdict)
    assert verdicts == ["refused", "wrong", "crash"]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (SOME, [("runtime_lengths", "Split", "", "edge")]),
        (Condition("element_type", "", "float"), []),
    ],
)
def test_dimensions_of_0_are_no_matter_of_the_type(
    condition: Condition, expected: list[tuple[str, str, str, str]]
) -> None:
    cases = seen("wrong", 3, condition, rare=True) + seen("pass", 20, condition)
    assert said(derive(cases + seen("pass", 40))[0]) == expected


def test_one_failure_of_an_ordinary_input_is_no_edge() -> None:
    cases = seen("wrong", 2, SOME, rare=True) + seen("wrong", 2, SOME) + seen("pass", 3, SOME)
    assert said(derive(cases + seen("pass", 40))[0]) == [("runtime_lengths", "Split", "", "some")]


def test_of_conditions_that_explain_the_same_the_most_general_one_is_said() -> None:
    every = [
        Condition("element_type", operator, "string") for operator in ("onnx.Split-13", "Split", "")
    ]
    findings, _ = derive(seen("wrong", 5, *every) + seen("pass", 40))
    assert said(findings) == [("element_type", "", "string", "all")]


def test_an_illegal_model_that_runs_once_is_said_of_all() -> None:
    version = Condition("runtime_lengths", "onnx.Split-13")
    cases = seen("accepted-but-illegal", 1, version, legal=False)
    cases += seen("pass", 3, version, legal=False)
    (finding,), left = derive(cases)
    assert (finding.extent, finding.failed, finding.cases, left) == ("edge", 1, 4, [])


def test_narrowed_values_are_said_of_wide_values_and_hide_nothing() -> None:
    wide = Observation(
        Result("wide", "engine", "wrong", "rounded"),
        frozenset({Condition("wide_values", "", "int64")}),
        narrows="int64",
    )
    findings, _ = derive([*observations([("Split", "string")]), wide])
    assert said(findings) == [
        ("wide_values", "", "int64", "values"),
        ("element_type", "Split", "string", "all"),
    ]


def test_an_illegal_model_that_runs_is_an_edge_of_what_arrives_at_run_time() -> None:
    conditions = {
        Condition("runtime_lengths", operator) for operator in ("", "Split", "onnx.Split-13")
    }
    result = Result("bad", "engine", "accepted-but-illegal")
    illegal = Observation(result, frozenset(conditions), is_legal=False)
    findings, left = derive([*observations(), illegal])
    assert said(findings) == [("runtime_lengths", "onnx.Split-13", "", "edge")]
    assert (findings[0].verdict, left) == ("wrong", [])


def test_the_conditions_of_a_model_are_of_the_vocabulary() -> None:
    found = conditions_of(case("legal").build().model)
    assert Condition("operator", value="Split") in found
    assert Condition("version", value="onnx.Split-13") in found
    assert Condition("element_type", "Split", "float") in found
    assert {condition.feature for condition in found} <= {*NODE_FEATURES, *MODEL_FEATURES}


@pytest.fixture(scope="module")
def document() -> Document:
    cases = [case(f"case{number}", shape=(number + 3,), lengths=(number, 3)) for number in range(6)]
    return run([Subject.of(planted("refuses")), Subject.of("onnx-shape-inference")], cases)


def test_a_profile_is_written_for_each_engine_and_no_tool(document: Document) -> None:
    ((name, _),) = profile_files(document)
    version = document.subjects[0].version
    assert name == f"refuses-{version}.json"


def test_a_written_profile_is_read_and_says_who_measured_when_and_how(
    document: Document, tmp_path: Path
) -> None:
    ((name, text),) = profile_files(document)
    (tmp_path / name).write_text(text)
    profile = profiles.load(str(tmp_path / name))
    assert (profile.engine, profile.version) == ("refuses", document.subjects[0].version)
    assert profile.measured["date"] == document.measured["date"]
    assert "conformance suite" in profile.measured["how"]
    assert json.loads(text)["entries"] == []  # the cases made up here are not of the suite


@pytest.mark.parametrize("content", ["", "[]", '{"entries": [1]}', '{"entries": []}'])
def test_a_file_that_is_no_profile_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "engine-1.0.json"
    path.write_text(content)
    with refused("TS703", "no profile", parameter="target"):
        profiles.load(str(path))


def test_a_profile_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with refused("TS703", "no profile", parameter="target"):
        profiles.load(str(tmp_path / "engine-1.0.json"))


def test_what_no_case_contradicts_is_taken_over_from_the_profile_before() -> None:
    """A suite without cases of a feature must not make an engine look better than it is."""
    ours = Document(
        {"version": "0", "cases": 0, "seed": 0},
        {"by": "a test", "date": "2026-11-21"},
        (SubjectInfo("onnxruntime", "engine", {"onnxruntime": "1.31.1"}),),
        (),
        (),
    )
    ((name, text),) = profile_files(ours)
    assert name == "onnxruntime-1.31.1.json"
    before = profiles.load("onnxruntime", "1.31.1")
    carried = json.loads(text)["entries"]
    assert [entry["feature"] for entry in carried] == [entry.feature for entry in before.entries]
    assert all("onnxruntime 1.31.1" in entry["carried"] for entry in carried)


def rerun(
    version: str, failing: Iterable[str], begin: str = "onnx.Split-18/float/static-r"
) -> dict[str, Any]:
    """Return the entries of a profile, by feature, after a run in which some cases fail."""
    chosen = [each for each in all_cases() if each.id.startswith(begin)]
    named = set(failing)
    results = tuple(
        Result(each.id, "onnxruntime", "refused-but-legal" if each.id in named else "pass", "seen")
        for each in chosen
    )
    subject = SubjectInfo("onnxruntime", "engine", {"onnxruntime": version})
    suite = {"version": "0", "cases": len(chosen), "seed": 0}
    measured = {"by": "a test", "date": "2026-11-24"}
    made = Document(suite, measured, (subject,), tuple(each.info for each in chosen), results)
    ((_, text),) = profile_files(made)
    return {entry["feature"]: entry for entry in json.loads(text)["entries"]}


BLANK = [
    each.id
    for each in all_cases()
    if each.id.startswith("onnx.Split-18/float/static-r") and "count-blank" in each.id
]


def test_what_a_new_version_still_does_stays_with_what_was_said_of_it() -> None:
    assert len(BLANK) > 1
    entry = rerun("1.31.2", BLANK)["omitted_lengths"]
    assert (entry["extent"], entry["failed"], entry["cases"]) == ("all", len(BLANK), len(BLANK))
    before = profiles.load("onnxruntime@1.31.1").about(
        {"operator": "Split", "omitted_lengths": True}
    )
    assert entry["note"] == next(before).note


def test_what_a_new_version_does_right_for_some_inputs_is_about_some() -> None:
    entry = rerun("1.31.2", BLANK[1:])["omitted_lengths"]
    assert (entry["extent"], entry["failed"]) == ("some", len(BLANK) - 1)


def test_what_a_new_version_does_right_is_said_no_longer() -> None:
    found = rerun("1.31.2", [])
    assert "omitted_lengths" not in found
    assert "vendor_operator" in found  # which no case shows


def test_what_a_version_does_wrong_in_some_uses_is_no_error_where_the_suite_has_no_other() -> None:
    """Every case of it has the parts joined; where they are outputs, the engine is right."""
    halves = [each.id for each in all_cases() if "also-halves" in each.id]
    entry = rerun("1.32.0", halves, "onnx.Split-11/double/")["equal_parts_alike"]
    assert (entry["extent"], entry["failed"]) == ("uses", entry["cases"])
    new = rerun("1.32.1", halves, "onnx.Split-11/double/")["equal_parts_alike"]
    assert new["extent"] == "uses"
