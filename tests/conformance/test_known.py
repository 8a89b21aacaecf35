"""Known deviations: a run that shows these and no others is fine, and no other run is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tensorsplit.conformance.cases import all_cases
from tensorsplit.conformance.document import Document, Result, SubjectInfo
from tensorsplit.conformance.known import Deviation, compare, dumps, load, updated
from tensorsplit.conformance.patterns import matches, matching
from tensorsplit.conformance.subjects import SUBJECTS
from tests.conformance.fakes import case
from tests.refusals import refused

NAMES = ("a/float/x", "a/int8/x", "a/string/x", "b/float/x", "b/string/x")
STRINGS = Deviation("strings", "engine", ">=1.2", ("crash",), ("*/string/*",), "it dies")


def document(deviations: Mapping[str, str], version: str = "1.3") -> Document:
    """A run in which some cases have a verdict that is not a pass."""
    return Document(
        {"version": "0", "cases": len(NAMES), "seed": 0},
        {},
        (SubjectInfo("engine", "engine", {"engine": version}),),
        tuple(case(name).info for name in NAMES),
        tuple(Result(name, "engine", deviations.get(name, "pass"), "seen") for name in NAMES),
    )


CRASHES = {"a/string/x": "crash", "b/string/x": "crash"}


def test_a_run_that_shows_what_is_known_is_fine() -> None:
    found = compare(document(CRASHES), [STRINGS])
    assert found.is_fine
    marked = {result.case: result.deviation for result in found.document.results}
    assert marked == {name: "strings" if name in CRASHES else "" for name in NAMES}


def test_a_deviation_that_is_not_known_is_new() -> None:
    found = compare(document({**CRASHES, "a/int8/x": "wrong"}), [STRINGS])
    assert [result.case for result in found.new] == ["a/int8/x"]
    assert not found.stale


def test_the_same_case_with_another_verdict_is_new() -> None:
    found = compare(document({**CRASHES, "b/string/x": "wrong"}), [STRINGS])
    assert [result.case for result in found.new] == ["b/string/x"]
    assert [entry.cases for entry in found.stale] == [("b/string/x",)]


@pytest.mark.parametrize("left", [{}, {"a/string/x": "crash"}])
def test_a_deviation_that_does_not_occur_in_the_version_that_shows_it_is_stale(
    left: dict[str, str],
) -> None:
    found = compare(document(left, "1.2"), [STRINGS])
    assert not found.is_fine
    assert not found.fixed
    assert [entry.deviation.id for entry in found.stale] == ["strings"]
    assert set(found.stale[0].cases) == set(CRASHES) - set(left)


@pytest.mark.parametrize("version", ["1.2.1", "1.10rc1", "2"])
def test_a_deviation_that_a_newer_version_no_longer_shows_is_fixed(version: str) -> None:
    found = compare(document({}, version), [STRINGS])
    assert found.is_fine
    assert [str(entry) for entry in found.fixed] == [
        "fixed since 1.2: strings: no longer seen with a/string/x and 1 more"
    ]


def test_a_case_that_was_not_measured_shows_nothing_else() -> None:
    """It was left out of the run, or skipped."""
    skipped = document({**CRASHES, "b/string/x": "skipped"}, "1.2")
    assert compare(skipped, [STRINGS]).is_fine
    whole = document(CRASHES, "1.2")
    results = tuple(result for result in whole.results if result.case != "b/string/x")
    assert compare(replace(whole, results=results), [STRINGS]).is_fine


def test_a_deviation_belongs_to_the_first_entry_that_says_it() -> None:
    one = Deviation("a", "engine", "", ("crash",), ("a/string/*",), "")
    for entries in ((one, STRINGS), (STRINGS, one)):
        found = compare(document(CRASHES), entries)
        owners = {result.case: result.deviation for result in found.document.results}
        assert (owners["a/string/x"], owners["b/string/x"]) == (entries[0].id, "strings")


def test_an_entry_that_matches_no_case_at_all_is_stale() -> None:
    entry = Deviation("gone", "engine", "", ("crash",), ("c/*/*",), "")
    assert [str(stale) for stale in compare(document({}), [entry], NAMES).stale] == [
        "stale: gone: its patterns match no case"
    ]


def test_an_entry_about_cases_that_were_not_run_is_not_stale() -> None:
    entry = Deviation("elsewhere", "engine", "", ("crash",), ("c/*/*",), "")
    assert compare(document({}), [entry], [*NAMES, "c/float/x"]).is_fine


def test_an_entry_about_another_subject_says_nothing() -> None:
    entry = Deviation("other", "other", "", ("crash",), ("*/*/*",), "")
    assert compare(document({}), [entry]).is_fine


@pytest.mark.parametrize(
    ("versions", "version", "covered"),
    [
        (">=1.2", "1.2", True),
        (">=1.2", "1.2.0", True),
        (">=1.2", "1.10", True),
        (">=1.2", "1.1.9", False),
        (">=1.2,<1.4", "1.3.7", True),
        (">=1.2,<1.4", "1.4", False),
        ("==1.2", "1.2.0", True),
        ("!=1.2", "1.2", False),
        ("<=1.2", "1.2.1", False),
        ("", "7", True),
        (">=1.2", "1.3.dev20", True),
        ("<=1.2", "1.2rc1", True),
        (">=1.2", "unknown", False),
    ],
)
def test_a_version_range_covers_a_version(versions: str, version: str, covered: bool) -> None:
    assert Deviation("e", "e", versions, (), (), "").covers(version) is covered


def test_an_entry_for_other_versions_does_not_excuse_a_deviation() -> None:
    found = compare(document(CRASHES, "1.1"), [STRINGS])
    assert len(found.new) == 2
    assert not found.stale


def test_an_update_explains_all_and_nothing_else() -> None:
    run = document({**CRASHES, "a/int8/x": "wrong"})
    entries = updated(run, [])
    assert [(entry.verdicts, entry.cases) for entry in entries] == [
        (("crash",), ("*/string/*",)),
        (("wrong",), ("*/int8/*",)),
    ]
    assert len({entry.id for entry in entries}) == len(entries)
    assert all(entry.versions == ">=1.3" for entry in entries)
    assert compare(run, entries).is_fine


def with_results(**found: Result) -> Document:
    """A run in which some cases have these results; their names have _ for the slashes."""
    whole = document({})
    results = (found.get(each.case.replace("/", "_"), each) for each in whole.results)
    return replace(whole, results=tuple(results))


@pytest.mark.parametrize("verdict", ["refused-but-legal", "unsupported-type"])
def test_a_new_entry_says_what_most_of_its_cases_say(verdict: str) -> None:
    words = {"a_float_x": "bad shape", "a_int8_x": "no kernel 1", "a_string_x": "no kernel 2"}
    run = with_results(
        **{
            name: Result(name.replace("_", "/"), "engine", verdict, detail)
            for name, detail in words.items()
        }
    )
    (entry,) = updated(run, [])
    assert (entry.cases, entry.seen) == (("a/*/*",), "no kernel 1")


@pytest.mark.parametrize(
    ("signals", "cases"),
    [
        (("SIGSEGV", "SIGSEGV"), [("a/int8/*", "b/string/*")]),
        (("SIGSEGV", "SIGFPE"), [("a/int8/*",), ("b/string/*",)]),
    ],
)
def test_crashes_of_one_signal_are_one_entry(
    signals: tuple[str, str], cases: list[tuple[str, ...]]
) -> None:
    names = ("a/int8/x", "b/string/x")
    run = with_results(
        **{
            name.replace("/", "_"): Result(name, "engine", "crash", "it dies", signal=signal)
            for name, signal in zip(names, signals, strict=True)
        }
    )
    found = [matching(NAMES, entry.cases) for entry in updated(run, [])]
    assert found == [matching(NAMES, patterns) for patterns in cases]


def test_an_update_keeps_what_still_holds() -> None:
    assert updated(document(CRASHES), [STRINGS]) == (STRINGS,)


def test_an_update_narrows_an_entry_that_says_too_much() -> None:
    run = document({"a/string/x": "crash"})
    (entry,) = updated(run, [STRINGS])
    assert entry.id == "strings"
    assert matching(NAMES, entry.cases) == ["a/string/x"]


def test_an_update_ends_an_entry_at_the_version_that_is_mended() -> None:
    (entry,) = updated(document({}), [STRINGS])
    assert entry.versions == ">=1.2,<1.3"
    assert compare(document({}), [entry]).is_fine


def test_a_file_gives_back_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    known = replace(STRINGS, seen="形状不对")
    path.write_text(dumps([known]), "utf-8")
    assert load(path) == (known,)
    assert known.seen in path.read_text("utf-8")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"deviations": [{"id": "a"}]}',
        '{"deviations": [1]}',
        json.dumps({"deviations": [{"versions": "about 1.2"}]}),
    ],
)
def test_a_file_that_holds_none_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    path.write_text(content)
    with refused("TS703", "no known deviations"):
        load(path)


@pytest.fixture(scope="module")
def names() -> list[str]:
    """The names of all cases."""
    return [known.id for known in all_cases()]


@pytest.mark.parametrize("entry", load(), ids=lambda entry: entry.id)
def test_every_entry_of_ours_is_about_cases_and_a_subject_there_are(
    entry: Deviation, names: list[str]
) -> None:
    assert entry.subject in SUBJECTS
    assert entry.seen
    assert not entry.link or entry.link.startswith("https://github.com/")
    for pattern in entry.cases:
        assert any(matches(name, pattern) for name in names), pattern


def test_nothing_is_known_against_our_own_engine() -> None:
    assert not [entry for entry in load() if entry.subject == "tensorsplit"]


def test_names_of_entries_are_unique() -> None:
    names = [entry.id for entry in load()]
    assert len(names) == len(set(names))
