"""The suite catches engines and tools that are wrong in a way we know, and says how."""

from __future__ import annotations

from functools import cache

import pytest

from tensorsplit.conformance.case import Case
from tensorsplit.conformance.document import Result
from tensorsplit.conformance.runner import run
from tests.conformance.fakes import case, planted_subject

LEGAL = case("legal")
ILLEGAL = case("illegal", lengths=(-1, 5), legal=False)
ONES = case("ones", shape=(2, 2), lengths=(1, 1), data=[[1, 2], [1, 4]])
FAULTS = [
    ("swaps", LEGAL, "wrong"),
    ("swaps", ONES, "wrong"),
    ("drops", LEGAL, "wrong"),
    ("segfaults", LEGAL, "crash"),
    ("exits", LEGAL, "crash"),
    ("overreads", ILLEGAL, "accepted-but-illegal"),
    ("refuses", LEGAL, "refused-but-legal"),
    ("refuses", ILLEGAL, "pass"),
    ("rewires", LEGAL, "wrong"),
    ("rewires", ILLEGAL, "pass"),
    ("mends", LEGAL, "pass"),
    ("mends", ILLEGAL, "lost-refusal"),
    ("misstates", LEGAL, "wrong"),
    ("misstates", ILLEGAL, "accepted-but-illegal"),
]


@cache
def results(engine: str) -> dict[str, Result]:
    """What comes of an engine's cases in `FAULTS`, by case."""
    cases = [asked for name, asked, _ in FAULTS if name == engine]
    document = run([planted_subject(engine)], cases, seconds=20, jobs=1)
    assert {found.subject for found in document.results} == {engine}
    return {found.case: found for found in document.results}


def result(engine: str, asked: Case) -> Result:
    return results(engine)[asked.id]


@pytest.mark.parametrize(("engine", "asked", "verdict"), FAULTS)
def test_a_planted_fault_is_caught(engine: str, asked: Case, verdict: str) -> None:
    assert result(engine, asked).verdict == verdict


def test_swapped_parts_are_shown_where_they_differ() -> None:
    found = result("swaps", ONES)
    assert (found.output, found.index) == ("y0", (0, 1))
    assert (found.expected, found.seen) == ("2.0", "4.0")


def test_a_lost_part_is_named() -> None:
    found = result("drops", LEGAL)
    assert found.output == "y1"
    assert "missing" in found.detail


def test_reading_beyond_the_data_is_an_error_of_memory() -> None:
    found = result("overreads", ILLEGAL)
    assert found.memory
    assert found.outcome.severity == 0


def test_a_case_that_damages_the_process_is_blamed_and_the_affected_one_is_not() -> None:
    asked = [case("a"), case("b", damage=True), case("c"), case("d"), case("e")]
    document = run([planted_subject("corrupts")], asked, jobs=1)
    verdicts = {found.case: found for found in document.results}
    assert [verdicts[name].verdict for name in "abcde"] == ["pass", "crash", "pass", "pass", "pass"]
    assert verdicts["b"].memory
    assert "while it ran c" in verdicts["b"].detail


def test_strings_are_tried_alone_once_one_went_wrong() -> None:
    """What corrupts the heap may show anywhere after it: each has a process of its own then."""
    asked = [case(name, element_type="string") for name in "ab"]
    document = run([planted_subject("remembers")], asked, jobs=1)
    assert [found.verdict for found in document.results] == ["pass", "pass"]
