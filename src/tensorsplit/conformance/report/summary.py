"""What the reports share: the outcomes from worst to best, their counts, and what is alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from tensorsplit.conformance.document import Document, Result, SubjectInfo


@dataclass(frozen=True, slots=True)
class Outcome:
    """A verdict as the reports show it; wrong data from foreign memory is an outcome of its own.

    Attributes:
        key: How it is written in a link, and in the class of a style.
        title: What a reader sees.
        sign: One letter that stands for it where there is little room.
        meaning: What it says, in one sentence.
    """

    key: str
    title: str
    sign: str
    meaning: str


OUTCOMES = (
    Outcome(
        "memory",
        "wrong, memory",
        "M",
        "Ran, and gave out as a result what was read or written outside of a buffer.",
    ),
    Outcome("crash", "crash", "C", "The process died: a signal, an abort, a corrupted heap."),
    Outcome("wrong", "wrong", "W", "Ran without a word and returned something else."),
    Outcome(
        "accepted-but-illegal",
        "accepted but illegal",
        "A",
        "Ran a model that the standard, or a decision where it is silent, refuses.",
    ),
    Outcome("hang", "hang", "H", "Did not come back within the time allowed."),
    Outcome("refused-but-legal", "refused but legal", "R", "Refused a model that is right."),
    Outcome(
        "unsupported-type",
        "unsupported type",
        "U",
        "Said that it does not have this element type or operator.",
    ),
    Outcome("pass", "pass", "P", "Did what the standard says."),
    Outcome(
        "skipped", "skipped", "S", "A file format that the subject does not read; not counted."
    ),
)
"""Every outcome, worst first; an outcome's place here is the `severity` of its results."""

PASS = 7
SKIPPED = 8

WORST = (0, 1, 2)
"""The outcomes whose cases the reports name before anything else."""

_VALUE = re.compile(r"\[[^][]*\]|\([\d, ]*\)|'[^']*'|0x[0-9a-fA-F]+|-?\d+(\.\d+)?(e[-+]?\d+)?")
_AGAIN = re.compile(r"(,[^,]+)\1+")


@dataclass(frozen=True, slots=True)
class Group:
    """Deviations of one subject that are alike: of one outcome and told in the same words.

    Attributes:
        severity: Where the outcome stands in `OUTCOMES`.
        subject: Who deviates.
        results: The deviations by case id, at least one.
    """

    severity: int
    subject: SubjectInfo
    results: tuple[Result, ...]

    @property
    def outcome(self) -> Outcome:
        """What came of all its cases."""
        return OUTCOMES[self.severity]

    @property
    def news(self) -> int:
        """How many of the results belong to no known deviation."""
        return sum(not result.deviation for result in self.results)


@dataclass(frozen=True, slots=True)
class Tally:
    """How often each outcome came up.

    Attributes:
        cells: For an operator and a subject's name, the count of each outcome as in `OUTCOMES`.
        totals: For a subject's name, the same over all operators.
        known: How many deviations are known.
        news: How many are not.
    """

    cells: Mapping[tuple[str, str], Sequence[int]]
    totals: Mapping[str, Sequence[int]]
    known: int
    news: int

    @classmethod
    def of(cls, document: Document) -> Tally:
        """Count the results of a run."""
        operators = {case.id: case.operator for case in document.cases}
        cells: dict[tuple[str, str], list[int]] = {}
        totals: dict[str, list[int]] = {}
        marks: Counter[bool] = Counter()
        for result in document.results:
            place = (operators[result.case], result.subject)
            cells.setdefault(place, [0] * len(OUTCOMES))[result.severity] += 1
            totals.setdefault(result.subject, [0] * len(OUTCOMES))[result.severity] += 1
            if result.is_deviation:
                marks[bool(result.deviation)] += 1
        return cls(cells, totals, marks[True], marks[False])

    def cell(self, operator: str, subject: str) -> Sequence[int]:
        """The counts of a subject with an operator; zeros where it was not run."""
        return self.cells.get((operator, subject), _NONE)

    def total(self, subject: str) -> Sequence[int]:
        """The counts of a subject."""
        return self.totals.get(subject, _NONE)


_NONE = (0,) * len(OUTCOMES)


def judged(counts: Sequence[int]) -> int:
    """How many cases were judged: all but those whose file format was not read."""
    return sum(counts[:SKIPPED])


def operators(document: Document) -> list[str]:
    """The operators of the cases, in the order of their names and then their versions."""
    return sorted({case.operator for case in document.cases}, key=_by_version)


def _by_version(operator: str) -> tuple[str, int]:
    name, _, version = operator.rpartition("-")
    return (name, int(version)) if version.isdecimal() else (operator, 0)


def groups(document: Document) -> list[Group]:
    """The deviations of a run, put together where they are alike: worst first, then as run."""
    subjects = {subject.name: subject for subject in document.subjects}
    places = {name: place for place, name in enumerate(subjects)}
    gists = {id(result): _gist(result) for result in document.deviations()}

    def order(result: Result) -> tuple[int, int, str]:
        return (result.severity, places[result.subject], gists[id(result)])

    ordered = sorted(document.deviations(), key=lambda result: (*order(result), result.case))
    found = [
        Group(severity, document.subjects[place], tuple(results))
        for (severity, place, _), results in groupby(ordered, key=order)
    ]
    return sorted(
        found, key=lambda group: (group.severity, places[group.subject.name], _size(group))
    )


def _size(group: Group) -> tuple[bool, int, str]:
    """New deviations first, then those of many cases."""
    return (not group.news, -len(group.results), group.results[0].case)


def _gist(result: Result) -> str:
    """What a deviation is about: the known one it belongs to, or its words without the values."""
    if result.deviation:
        return f"known {result.deviation}"
    words = _AGAIN.sub(r"\1", _VALUE.sub("#", result.detail or result.output))
    return f"{result.signal} {words}"


def told(result: Result) -> str:
    """A deviation in one line: what was seen, and where."""
    text = " ".join(result.detail.split())
    if not result.output or (result.output in text and result.seen in text):
        return text or result.signal
    place = f"{result.output}{list(result.index) if result.index else ''}"
    values = f"{place} is {result.seen}, not {result.expected}" if result.expected else place
    return f"{text} ({values})" if text else values


def named(subject: SubjectInfo) -> str:
    """A subject with the version of the package that it is named by."""
    return f"{subject.name} {subject.version}".rstrip()


def by_outcome(found: Iterable[Group]) -> Iterator[tuple[Outcome, list[Group]]]:
    """The groups of each outcome, worst first."""
    for severity, same in groupby(found, key=lambda group: group.severity):
        yield OUTCOMES[severity], list(same)


def conditions(document: Document) -> list[tuple[str, str]]:
    """When, where and with what was measured, as names and values that are not empty."""
    suite, measured = document.suite, document.measured
    facts = [
        ("suite", f"tensorsplit {suite.get('version', '')}".rstrip()),
        ("cases", f"{len(document.cases):,}"),
        ("seed", str(suite.get("seed", ""))),
        *((name, measured.get(name, "")) for name in ("date", "by", "system", "cpu", "python")),
    ]
    return [(name, value) for name, value in facts if value]
