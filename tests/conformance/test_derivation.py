"""Profiles derived from runs: what is said of an engine is what its failures have in common."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from onnx.parser import parse_model

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


def test_the_example_is_a_split_of_the_main_graph_if_one_fails() -> None:
    """What fails in a body may be said of the body: that there is no Loop."""
    places = ("loop/lengths", "graph/longer-lengths", "graph/lengths", "scan/l")
    found = [
        Observation(
            Result(f"onnx.Split-18/float/static-r1/initializer/{place}", "engine", "wrong"),
            frozenset({Condition("version", value="onnx.Split-18")}),
        )
        for place in places
    ]
    (finding, *_), _ = derive(found * 5)
    assert finding.example.case.endswith("/graph/lengths")


@pytest.mark.parametrize(
    ("operator", "header", "bodies"),
    [("Loop", "int64 i, bool c, {}", {"Loop"}), ("Scan", "{}", {"Scan"})],
)
def test_a_split_in_a_body_has_the_body_as_a_condition(
    operator: str, header: str, bodies: set[str]
) -> None:
    is_loop = operator == "Loop"
    made = parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] s, float[3, 4] x, int64 n, bool go) => (float[4] y, float[3, 2] z) {{
      y, z = {operator} ({"n, go, s" if is_loop else "s, x"}) <
        {"" if is_loop else "num_scan_inputs = 1,"}
        body = b ({header.format("float[4] t" if is_loop else "float[4] t, float[4] row")})
          => ({"bool d, " if is_loop else ""}float[4] u, float[2] v) {{
            {"d = Identity (c)" if is_loop else ""}
            u = Identity (t)
            v, w = Split <axis = 0> (t)
          }}>
    }}""")
    found = conditions_of(made.SerializeToString())
    assert {each.value for each in found if each.feature == "body"} == bodies


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


@pytest.mark.parametrize(
    ("failed", "count", "wins"),
    [(21, 36, True), (18, 32, False), (10, 12, True), (27, 36, True), (8, 12, False)],
)
def test_many_failures_explain_more_if_there_are_few_passes_beside_them(
    failed: int, count: int, wins: bool
) -> None:
    """Against 9 of 12, which weigh 3.80: 4.17, 3.20, 5.79, 11.39 and 2.37."""
    other = Condition("runtime_axis", "Split")
    cases = seen("wrong", 9, SOME) + seen("pass", 3, SOME) + seen("pass", 40)
    cases += seen("wrong", failed, other) + seen("pass", count - failed, other)
    assert (derive(cases)[0][0].condition == other) is wins


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


@pytest.mark.parametrize(("passed", "explains"), [(12, True), (13, False)])
@pytest.mark.parametrize("condition", [SOME, Condition("element_type", "Split", "float")])
def test_one_failure_of_an_ordinary_input_is_no_edge(
    passed: int, explains: bool, condition: Condition
) -> None:
    cases = seen("wrong", 2, condition, rare=True) + seen("wrong", 2, condition)
    cases += seen("pass", passed, condition)
    expected = [(*condition, "some")] if explains else []
    assert said(derive(cases + seen("pass", 40))[0]) == expected


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


@pytest.mark.parametrize("feature", ["runtime_lengths", "runtime_axis", "count_on_dynamic_axis"])
def test_an_illegal_model_that_runs_is_an_edge_of_what_arrives_at_run_time(feature: str) -> None:
    conditions = {Condition(feature, operator) for operator in ("", "Split", "onnx.Split-13")}
    result = Result("bad", "engine", "accepted-but-illegal")
    illegal = Observation(result, frozenset(conditions), is_legal=False)
    findings, left = derive([*observations(), illegal])
    assert said(findings) == [(feature, "onnx.Split-13", "", "edge")]
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
    version = document.subjects[0].version
    for subjects in (document.subjects, document.subjects[::-1]):
        ((name, _),) = profile_files(replace(document, subjects=subjects))
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


FOLDER = Path(profiles.__file__).parent


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*-*.json")), ids=lambda path: str(path.stem))
def test_what_is_known_of_an_engine_beside_its_entries_stays(path: Path) -> None:
    before = json.loads(path.read_text("utf-8"))
    engine, _, version = path.stem.rpartition("-")
    package = before.get("package", engine)
    subject = SubjectInfo(engine, "engine", {package: version, "another": "1.0"})
    empty = Document({"version": "0", "seed": 3}, {"date": "2026-11-30"}, (subject,), (), ())
    ((name, text),) = profile_files(empty)
    after = json.loads(text)
    assert name == path.name
    for each in ("measured", "entries", "unexplained"):
        before.pop(each, None)
        assert after.pop(each, []) or each == "unexplained"
    assert after == before


def written(title: str, results: Iterable[Result], version: str = "1.0") -> dict[str, Any]:
    """Return the profile that results of cases of the suite make."""
    found = tuple(results)
    named = {result.case for result in found}
    chosen = [each.info for each in all_cases() if each.id in named]
    subject = SubjectInfo(title, "engine", {title: version})
    measured = {"by": "a test", "date": "2026-11-24"}
    about = {"version": "0", "cases": len(chosen), "seed": 0}
    made = Document(about, measured, (subject,), tuple(chosen), found)
    ((_, text),) = profile_files(made)
    content: dict[str, Any] = json.loads(text)
    return content


def rerun(
    version: str, failing: Iterable[str], begin: str = "onnx.Split-18/float/static-r"
) -> dict[str, Any]:
    """Return the entries of a profile, by feature, after a run in which some cases fail."""
    named = set(failing)
    results = [
        Result(each.id, "onnxruntime", "refused-but-legal" if each.id in named else "pass", "seen")
        for each in all_cases()
        if each.id.startswith(begin)
    ]
    entries = written("onnxruntime", results, version)["entries"]
    return {entry["feature"]: entry for entry in entries}


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


def cases_of(begin: str, word: str = "") -> list[str]:
    """Return cases of the suite, by how their names begin, and a word in them."""
    return [each.id for each in all_cases() if each.id.startswith(begin) and word in each.id]


def narrowed(case: str, engine: str) -> Result:
    """Return that 2**32 + 5 became 5."""
    told = {"index": (1,), "expected": "4294967301", "seen": "5"}
    return Result(case, engine, "wrong", f"5 in {case}", **told)  # type: ignore[arg-type]


def of_one_value(
    kind: str, expected: str, seen: str, **other: Any
) -> list[tuple[str, str, list[str]]]:
    """Return what a new engine's profile says after one value of a kind was wrong."""
    cases = cases_of(f"onnx.Split-18/{kind}/static")
    told = {"index": (1,), "expected": expected, "seen": seen, "verdict": "wrong"} | other
    results = [Result(case, "new", "pass") for case in cases[1:]]
    entries = written("new", [Result(cases[0], "new", **told), *results])["entries"]
    return [(each["feature"], each["extent"], each.get("values", [])) for each in entries]


LARGEST = "3.4028234663852886e+38"
"""The largest finite number of 32 bits: (2 - 2**-23) * 2**127, in IEEE 754."""


@pytest.mark.parametrize(
    ("kind", "expected", "seen"),
    [
        ("int64", "4294967301", "5"),  # 2**32 + 5: what is left is cut off
        ("int64", "2147483648", "-2147483648"),  # the lower 32 bits, with a sign
        ("int64", "-1", "4294967295"),  # without one
        ("int64", "3000000000", "2147483647"),  # the largest with a sign
        ("int64", "-3000000000", "-2147483648"),  # the smallest one
        ("int64", "4294967296", "4294967295"),  # the largest without a sign
        ("uint64", "2147483648", "18446744071562067968"),  # 2**64 - 2**31: negative, then widened
        ("uint64", "18446744073709551615", "4294967295"),
        ("double", "0.1", "0.10000000149011612"),  # the nearest number with 24 bits
        ("double", "1e+300", "inf"),
        ("double", "1e+300", LARGEST),
        ("double", "-1e+300", f"-{LARGEST}"),
        ("double", "5e-324", "0.0"),
        ("double", "nan (bits 0x7ff8000000000001)", "nan (bits 0x7ff8000000000000)"),
    ],
)
def test_what_is_left_of_64_bits_in_32_is_said_of_wide_values(
    kind: str, expected: str, seen: str
) -> None:
    assert of_one_value(kind, expected, seen) == [("wide_values", "values", [kind])]


@pytest.mark.parametrize(
    ("kind", "expected", "seen", "other"),
    [
        ("int64", "5", "6", {}),
        ("int64", "4294967301", "6", {}),
        ("int64", "3000000000", "-2147483648", {}),  # the wrong end
        ("int64", "5", "2147483647", {}),
        ("int64", "5", "-4294967291", {}),
        ("int32", "-1", "4294967295", {}),  # has 32 bits
        ("double", "0.1", "0.2", {}),
        ("double", "1e+300", f"-{LARGEST}", {}),
        ("double", "2.0", LARGEST, {}),
        ("double", "-0.0", "0.0", {}),  # a float has -0.0 too
        ("double", "nan", "0.0", {}),
        ("double", "0.0", "nan", {}),
        ("int64", "[5]", "[6]", {"index": ()}),  # the shape is wrong
        ("int64", "4294967301", "5", {"verdict": "crash"}),
    ],
)
def test_another_wrong_value_says_nothing_of_wide_values(
    kind: str, expected: str, seen: str, other: dict[str, Any]
) -> None:
    said_of_it = of_one_value(kind, expected, seen, **other)
    assert "wide_values" not in [feature for feature, _, _ in said_of_it]


def test_values_of_several_types_are_said_together() -> None:
    wide, double = cases_of("onnx.Split-18/int64/static-r1")[:2], cases_of("onnx.Split-18/double/")
    third = Result(double[0], "new", "wrong", "0.1", index=(0,), expected="1e300", seen="inf")
    content = written("new", [third, *(narrowed(case, "new") for case in wide)])
    assert content["entries"] == [
        {
            "feature": "wide_values",
            "verdict": "wrong",
            "extent": "values",
            "values": ["double", "int64"],
            "note": f"5 in {wide[0]}",
            "failed": 3,
            "cases": 3,
            "example": wide[0],
        }
    ]


@pytest.mark.parametrize(
    ("place", "says"), [("constant", "constant_lengths"), ("absent", "equal_parts")]
)
def test_illegal_dimensions_that_run_are_said_of_the_open_axis(place: str, says: str) -> None:
    cases = cases_of(f"onnx.Split-13/float/dynamic-axis-r2/{place}/", "refuse-fed")
    content = written("new", [Result(case, "new", "accepted-but-illegal") for case in cases])
    (entry,) = content["entries"]
    assert (entry["feature"], entry["extent"]) == (f"{says}_on_dynamic_axis", "illegal")
    assert (entry["verdict"], entry["failed"], entry["cases"]) == ("wrong", len(cases), len(cases))
    content = written("new", [Result(case, "new", "pass") for case in cases])
    assert content["entries"] == []


def test_what_one_case_alone_does_is_named_as_unexplained() -> None:
    cases = cases_of("onnx.Split-13/float/static-r2/initializer/graph/uneven")
    cases += cases_of("onnx.Split-13/float/static-r2/initializer/graph/many")
    results = [Result(case, "new", "pass") for case in cases[1:]]
    content = written("new", [Result(cases[0], "new", "wrong"), *results])
    assert (content["entries"], content["unexplained"]) == ([], cases[:1])


def test_what_is_said_of_narrowed_values_is_said_once_and_of_nothing_else() -> None:
    """OpenCV was measured to keep 32 bits of 64; another failure of such data is not that."""
    first, second, *others = cases_of("onnx.Split-18/int64/static")
    results = [Result(case, "opencv", "pass") for case in others]
    results += [narrowed(first, "opencv"), Result(second, "opencv", "crash")]
    entries = written("opencv", results, "5.0.0.94")["entries"]
    (entry,) = [each for each in entries if each["feature"] == "wide_values"]
    assert (entry["values"], entry["extent"]) == (["int64", "uint64"], "values")
    assert (entry["failed"], entry["cases"], entry["example"]) == (1, len(others) + 1, first)


def test_a_failure_that_is_not_narrowed_says_nothing_of_wide_values() -> None:
    first, *_ = cases_of("onnx.Split-18/int64/static")
    entries = written("opencv", [Result(first, "opencv", "crash")], "5.0.0.94")["entries"]
    (entry,) = [each for each in entries if each["feature"] == "wide_values"]
    assert "opencv 5.0.0.93" in entry["carried"]


def test_what_is_said_of_some_values_hides_no_other_failure() -> None:
    """OpenVINO was measured to change some float16 that it only moves."""
    case, *others = cases_of("onnx.Split-18/float16/static")
    results = [Result(each, "openvino", "pass") for each in others]
    results.append(Result(case, "openvino", "wrong"))
    content = written("openvino", results, "2026.4.2")
    of_values = [each for each in content["entries"] if each.get("values") == ["float16"]]
    assert [(each["extent"], each["failed"]) for each in of_values] == [("values", 1)]
    assert content["unexplained"] == [case]


def test_narrowed_values_say_nothing_of_other_features() -> None:
    """OpenVINO squeezes 64 bits into 32, whatever else the model does."""
    blank = cases_of("onnx.Split-18/int64/static", "count-blank")
    results = [narrowed(case, "onnxruntime") for case in blank]
    entries = written("onnxruntime", results, "1.31.2")["entries"]
    (entry,) = [each for each in entries if each["feature"] == "omitted_lengths"]
    assert "onnxruntime 1.31.1" in entry["carried"]


def edge_of(title: str, version: str, feature: str, results: Iterable[Result]) -> dict[str, Any]:
    """Return the only entry about wrong or rare values of a feature, or nothing."""
    entries = written(title, results, version)["entries"]
    found = [each for each in entries if (each["feature"], each["extent"]) == (feature, "edge")]
    assert len(found) < 2
    return dict(*found)


@pytest.mark.parametrize(
    ("case", "stays"),
    [
        ("dynamic-axis-r1/attribute/graph/refuse-1into3-o24", False),
        ("dynamic-axis-r1/attribute/graph/types-count-last-empty-4of6-axis0-o24", True),
    ],
)
def test_only_wrong_models_that_are_refused_show_that_wrong_models_are(
    case: str, stays: bool
) -> None:
    """Tract was measured to run counts that leave a negative part, where the axis is fed."""
    result = Result(f"onnx.Split-18/float/{case}", "tract", "pass")
    entry = edge_of("tract", "0.23.10", "count_on_dynamic_axis", [result])
    assert ("carried" in entry) is stays


@pytest.mark.parametrize("is_refused", [False, True])
def test_only_refusals_show_that_wrong_dimensions_are_refused(is_refused: bool) -> None:
    """IREE was measured to run constant lengths that do not sum to a dimension that is fed."""
    cases = [case for case in cases_of("onnx.Split-18/", "/constant/") if "dynamic-axis" in case]
    chosen = [case for case in cases if ("refuse-" in case) is is_refused]
    assert chosen
    content = written("iree", [Result(case, "iree", "pass") for case in chosen], "3.14.0")
    kinds = [(each["feature"], each["extent"]) for each in content["entries"]]
    stays = ("constant_lengths_on_dynamic_axis", "illegal") in kinds
    assert stays is not is_refused


def test_a_dimension_of_0_that_is_right_shows_that_such_are() -> None:
    """TVM was measured to fail for some splits of an axis of length 0."""
    case = "onnx.Split-2/float/zero-size-r3/absent/graph/stated-equal-2of0-axism3-o10"
    assert edge_of("tvm", "0.28.0", "empty_axis", [])
    assert edge_of("tvm", "0.28.0", "empty_axis", [Result(case, "tvm", "pass")]) == {}


def test_a_refusal_of_a_wrong_model_does_not_show_that_right_ones_run() -> None:
    """Tract was measured to refuse every Split-1 of lengths that are fed."""
    case = "onnx.Split-1/float/dynamic-axis-r1/runtime/graph/refuse-float-half-o1"
    entries = written("tract", [Result(case, "tract", "pass")], "0.23.10")["entries"]
    told = [each for each in entries if each.get("operators") == ["onnx.Split-1"]]
    assert "runtime_lengths all" in [f"{each['feature']} {each['extent']}" for each in told]


def test_wrong_lengths_that_are_taken_are_an_edge_unless_they_are_checked() -> None:
    cases = cases_of("onnx.Split-13/float/", "runtime/graph/refuse")
    assert len(cases) > 1
    results = [Result(case, "new", "accepted-but-illegal") for case in cases]
    (entry,) = written("new", results)["entries"]
    assert (entry["feature"], entry["extent"]) == ("runtime_lengths", "edge")
    assert (entry["operators"], entry["unless"]) == (["onnx.Split-13"], ["checked_lengths"])


def test_right_lengths_that_fail_do_so_though_they_are_checked() -> None:
    cases = cases_of("onnx.Split-13/float/", "/runtime/graph/")
    legal = [case for case in cases if "refuse" not in case and "zero-size" not in case]
    results = [Result(case, "new", "wrong") for case in legal]
    results += [Result(case, "new", "pass") for case in cases_of("onnx.Split-13/float/static")]
    entries = [each for each in written("new", results)["entries"] if each["extent"] != "edge"]
    assert "runtime_lengths" in [each["feature"] for each in entries]
    assert not any("unless" in each for each in entries)


def test_a_position_out_of_range_that_is_taken_is_an_edge_of_its_operator() -> None:
    """SequenceAt has no versions that profiles tell apart."""
    cases = cases_of("onnx.SplitToSequence-11/float/static-r1", "SequenceAt/refuse-at100-runtime")
    results = [Result(case, "new", "accepted-but-illegal") for case in cases]
    entry = edge_of("new", "1.0", "runtime_sequence_index", results)
    assert (entry["verdict"], entry["operators"]) == ("wrong", ["SequenceAt"])
    assert entry["failed"] == len(cases) > 0


def test_zero_size_cases_that_fail_are_an_edge() -> None:
    cases = cases_of("onnx.Split-13/float/zero-size")
    results = [Result(case, "new", "wrong") for case in cases]
    results += [Result(case, "new", "pass") for case in cases_of("onnx.Split-13/float/static")]
    extents = {each["extent"] for each in written("new", results)["entries"]}
    assert "edge" in extents
    assert "some" not in extents
