"""The common parts of the reports: outcomes from worst to best, counts, groups of deviations."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, product

from tensorsplit.conformance.document import (
    OUTCOMES,
    PASS,
    SKIPPED,
    Document,
    Outcome,
    Result,
    SubjectInfo,
)

WORST = OUTCOMES[:3]
"""The outcomes whose cases the reports name before anything else."""

_VALUE = re.compile(r"\[[^][]*\]|\([\d, ]*\)|'[^']*'|0x[0-9a-fA-F]+|-?\d+(\.\d+)?(e[-+]?\d+)?")
_AGAIN = re.compile(r"(,[^,]+)\1+")


class Counts(Counter[str]):
    """How often each outcome came up, by its key."""

    @property
    def judged(self) -> int:
        """The cases that were judged: all but those whose file format was not read."""
        return self.total() - self[SKIPPED]

    @property
    def share(self) -> str:
        """The passes among the cases that were judged; only all of them are 100 %."""
        tenths = 1000 * self[PASS] // self.judged if self.judged else 0
        return f"{tenths // 10}.{tenths % 10} %"

    @property
    def others(self) -> list[tuple[Outcome, int]]:
        """The outcomes other than a pass that came up, worst first."""
        outcomes = (entry for entry in OUTCOMES if entry.key not in (PASS, SKIPPED))
        return [(outcome, self[outcome.key]) for outcome in outcomes if self[outcome.key]]


@dataclass(frozen=True, slots=True)
class Group:
    """Deviations of one subject that are alike: of one outcome, and described in the same words."""

    outcome: Outcome  # the outcome of all its cases
    subject: SubjectInfo  # who deviates
    results: tuple[Result, ...]  # the deviations by case id, at least one

    @property
    def news(self) -> int:
        """How many of the results belong to no known deviation."""
        return sum(not result.deviation for result in self.results)


@dataclass(frozen=True, slots=True)
class OutcomeChange:
    """Cases whose outcome is another one in a newer version of a subject."""

    before: Outcome
    after: Outcome
    cases: tuple[str, ...]  # their ids, at least one

    @property
    def direction(self) -> str:
        """Whether the newer version is nearer to what the standard asks: worse, better or alike."""
        before, after = self.before.severity, self.after.severity
        return "worse" if after < before else "better" if after > before else "alike"


@dataclass(frozen=True, slots=True)
class Succession:
    """Two versions of a subject, and what changed from one to the other."""

    before: SubjectInfo
    after: SubjectInfo
    compared: int  # how many cases were put to both
    changes: tuple[OutcomeChange, ...]  # for the worse first, and by the outcome that is worse

    def to_json(self) -> dict[str, object]:
        """Return the names of both, and the ids of the cases with both outcomes."""
        changed = [
            {"case": case, "before": change.before.key, "after": change.after.key}
            for change in self.changes
            for case in change.cases
        ]
        return {"before": self.before.name, "after": self.after.name, "cases": changed}


class Summary:
    """A run, counted and grouped."""

    def __init__(self, document: Document) -> None:
        self.document = document
        operators = {case.id: case.operator for case in document.cases}
        self._counts: dict[tuple[str, str], Counts] = defaultdict(Counts)
        for result in document.results:
            for key in product((result.subject, ""), (operators[result.case], "")):
                self._counts[key][result.outcome.key] += 1
        self.successions = _successions(document)  # what changed, where versions were compared
        self.operators = sorted(set(operators.values()), key=_by_version)
        self.groups = _groups(document)  # the deviations, worst first
        self.news = sum(group.news for group in self.groups)  # deviations that are not known
        self.known = sum(len(group.results) for group in self.groups) - self.news

    def counts(self, subject: SubjectInfo | None = None, operator: str = "") -> Counts:
        """Return the counts of one subject or all, with one operator or all."""
        return self._counts[subject.name if subject else "", operator]

    @property
    def used(self) -> list[Outcome]:
        """The outcomes other than a pass that came up, worst first."""
        return [outcome for outcome, _ in self.counts().others]

    @property
    def conditions(self) -> list[tuple[str, str]]:
        """When, where and with what was measured, as names and values that are not empty."""
        suite, measured = self.document.suite, self.document.measured
        facts = [
            ("suite", f"tensorsplit {suite.get('version', '')}".rstrip()),
            ("cases", f"{len(self.document.cases):,}"),
            ("seed", str(suite.get("seed", ""))),
            *((name, measured.get(name, "")) for name in ("date", "by", "system", "cpu", "python")),
        ]
        return [(name, value) for name, value in facts if value]


def _successions(document: Document) -> list[Succession]:
    pairs = list(document.successions())
    if not pairs:
        return []
    outcomes: dict[str, dict[str, Outcome]] = defaultdict(dict)
    for result in document.results:
        if result.verdict != SKIPPED:
            outcomes[result.subject][result.case] = result.outcome
    return [_succession(*pair, *(outcomes[each.name] for each in pair)) for pair in pairs]


def _succession(
    before: SubjectInfo, after: SubjectInfo, old: Mapping[str, Outcome], new: Mapping[str, Outcome]
) -> Succession:
    both = [case for case in old if case in new]
    changed: dict[tuple[Outcome, Outcome], list[str]] = defaultdict(list)
    for case in both:
        if old[case] != new[case]:
            changed[old[case], new[case]].append(case)
    changes = [OutcomeChange(*outcomes, tuple(cases)) for outcomes, cases in changed.items()]
    order = ("worse", "better", "alike")
    changes.sort(
        key=lambda each: (order.index(each.direction), each.after.severity, each.before.severity)
    )
    return Succession(before, after, len(both), tuple(changes))


def _by_version(operator: str) -> tuple[str, int]:
    name, _, version = operator.rpartition("-")
    return (name, int(version)) if version.isdecimal() else (operator, 0)


def _groups(document: Document) -> list[Group]:
    """Group by subject, as they were run; new deviations first, then those of many cases."""
    subjects = {subject.name: subject for subject in document.subjects}
    places = list(subjects)
    alike: dict[tuple[Outcome, str, str], list[Result]] = defaultdict(list)
    for result in sorted(document.deviations(), key=lambda result: result.case):
        alike[result.outcome, result.subject, _gist(result)].append(result)

    def order(group: Group) -> tuple[int, int, bool, int, str]:
        first, size = group.results[0], len(group.results)
        severity, place = group.outcome.severity, places.index(first.subject)
        return severity, place, not group.news, -size, first.case

    groups = (
        Group(outcome, subjects[name], tuple(results))
        for (outcome, name, _), results in alike.items()
    )
    return sorted(groups, key=order)


def _gist(result: Result) -> str:
    """Return the gist of a deviation: its known deviation, or its text without the values."""
    if result.deviation:
        return f"known {result.deviation}"
    words = _AGAIN.sub(r"\1", _VALUE.sub("#", result.detail or result.output))
    return f"{result.signal} {words}"


def by_outcome(
    groups: Iterable[Group],
) -> Iterator[tuple[Outcome, list[tuple[SubjectInfo, list[Group]]]]]:
    """Yield the groups of each outcome, worst first, and in it those of each subject."""
    for outcome, same in groupby(groups, key=lambda group: group.outcome):
        theirs = groupby(same, key=lambda group: group.subject)
        yield outcome, [(subject, list(own)) for subject, own in theirs]


def observation(result: Result) -> str:
    """Return a deviation in one line: what was seen, and where."""
    text = " ".join(result.detail.split())
    if not result.output or (result.output in text and result.seen in text):
        return text or result.signal
    place = f"{result.output}{list(result.index) if result.index else ''}"
    values = f"{place} is {result.seen}, not {result.expected}" if result.expected else place
    return f"{text} ({values})" if text else values
