"""From the results of cases to an engine's limitations: entries of a profile.

A case has conditions: the features of its nodes and of its model, each alone, with the operator it
was seen with, with its value, or with both. An entry is one condition.

1. Where all cases with a condition fail, and too many to be chance, the condition explains them
   (extent ``all``). Of such conditions the one that explains most of what is left becomes an entry,
   of several the most general one, until none explains more. Where all its cases are one edge case
   at several opsets, what is around its nodes may matter too (``uses``).
2. What is left depends on more than one feature. One after the other, the condition that explains
   most, with few passes beside the failures, becomes an entry: ``some`` if ordinary inputs fail,
   ``edge`` if all failures have a dimension of 0. What too few have in common may be
   chance, and is left unexplained.
3. Wrong data that is nothing but 64 bits squeezed into 32 is ``values`` of the feature
   ``wide_values``; it hides no other failure.
4. A model that is illegal for what is fed at run time, and runs, is an ``edge`` of the feature that
   says that it is known only then; or ``illegal`` where only the length of the axis is.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tensorsplit.conformance.document import Result
from tensorsplit.model.features.vocabulary import NODE_FEATURES

_ORDINARY = 0.25
_CHANCE = 0.01
_LEAST = 3
_MENTIONED = 0.1
_PURITY = 4
_EDGE = re.compile(r".*/(edge-[^/]*?)(?:-o\d+)?")
_PLAIN = "/graph/"
"""The place of a split in the main graph, in the id of a case."""

_OPERATORS = ("version", "operator")
_RUNTIME = ("runtime_lengths", "runtime_axis", "count_on_dynamic_axis")
_OPEN_AXIS_FEATURES = ("constant_lengths_on_dynamic_axis", "equal_parts_on_dynamic_axis")
_POSITION_FEATURE = "runtime_sequence_index"
"""What SequenceAt and the like have, of which features give no version."""

_VERDICTS = {
    "crash": "crash",
    "hang": "crash",
    "wrong": "wrong",
    "accepted-but-illegal": "wrong",
    "lost-refusal": "wrong",
    "refused-but-legal": "refused",
    "unsupported-type": "refused",
}
_WORST = ("crash", "wrong", "refused")


class Condition(NamedTuple):
    """A feature that a case has; an empty operator or value stands for any.

    The operator is a type, such as ``Split``, or a version, such as ``onnx.Split-1``.
    """

    feature: str
    operator: str = ""
    value: str = ""

    @property
    def generality(self) -> tuple[int, int, str]:
        """More is more general; among equals, what features of nodes say comes first."""
        order = list(NODE_FEATURES)
        place = order.index(self.feature) if self.feature in order else len(order)
        narrow = bool(self.operator) + ("." in self.operator) + bool(self.value)
        return -narrow, -place, f"{self.operator}/{self.value}"


@dataclass(frozen=True, slots=True)
class Observation:
    """A case that an engine ran."""

    result: Result  # what came of it
    conditions: frozenset[Condition]  # what it required
    is_legal: bool = True  # whether the standard gives it a meaning
    is_rare: bool = False  # whether it has a dimension of 0
    narrows: str = ""  # the element type, if the result is wrong and nothing but 64 bits in 32


@dataclass(frozen=True, slots=True)
class Explanation:
    """A condition under which an engine fails."""

    condition: Condition  # the condition
    verdict: str  # of `tensorsplit.model.profiles.VERDICTS`
    extent: str  # of `tensorsplit.model.profiles.EXTENTS`
    failed: int  # how many of the cases that it is about failed
    # how many cases it is about: those under the condition that no finding before it explains
    cases: int
    example: Result  # the result of one that failed


def derive(observations: Sequence[Observation]) -> tuple[list[Explanation], list[Observation]]:
    """Find an engine's limitations, and the failures that they do not explain."""
    found = list(_narrowing(observations))
    left = [entry for entry in observations if entry.is_legal and not entry.narrows]
    for search in (_always, _mostly):
        while finding := search(left):
            found.append(finding)
            left = [entry for entry in left if finding.condition not in entry.conditions]
    found += _unchecked(observations)
    return found, list(filter(_fails, left))


def _fails(entry: Observation) -> bool:
    return entry.result.is_deviation


def _share(entries: Sequence[Observation]) -> float:
    """Return how large a part of the cases fails."""
    return sum(map(_fails, entries)) / len(entries)


def _finding(condition: Condition, extent: str, entries: Sequence[Observation]) -> Explanation:
    """Return a finding about the cases under a condition."""
    failed = [entry.result for entry in entries if _fails(entry)]
    counts = Counter(_VERDICTS[result.verdict] for result in failed)
    verdict = next(name for name in _WORST if counts[name] >= _MENTIONED * len(failed))
    example = simplest(result for result in failed if _VERDICTS[result.verdict] == verdict)
    return Explanation(condition, verdict, extent, len(failed), len(entries), example)


def simplest(results: Iterable[Result]) -> Result:
    """Return the result of a case that shows most plainly what is wrong: without bodies, if any."""
    return min(results, key=lambda result: (_PLAIN not in result.case, len(result.case)))


def _under(entries: Sequence[Observation]) -> dict[Condition, list[Observation]]:
    """Return the cases under each condition."""
    found: dict[Condition, list[Observation]] = defaultdict(list)
    for entry in entries:
        for condition in entry.conditions:
            found[condition].append(entry)
    return found


def _always(left: Sequence[Observation]) -> Explanation | None:
    """Return the condition under which nothing works that explains most of what is left."""
    under = _under(left)

    def is_chance(condition: Condition) -> bool:
        """Return whether as many cases might fail of those of the same operator without it."""
        operators = [Condition(feature, value=condition.operator) for feature in _OPERATORS]
        beside = next((under[operator] for operator in operators if operator in under), left)
        others = [entry for entry in beside if condition not in entry.conditions]
        return bool(others) and _share(others) ** len(under[condition]) > _CHANCE

    ranks = {
        condition: (len(entries), *condition.generality)
        for condition, entries in under.items()
        if all(map(_fails, entries)) and not is_chance(condition)
    }
    best = max(ranks, key=ranks.__getitem__, default=None)
    if best is None:
        return None
    return _finding(best, "uses" if _are_one_edge(under[best]) else "all", under[best])


def _are_one_edge(entries: Sequence[Observation]) -> bool:
    """Return whether all cases are the same edge case, at whatever opset and of whatever type."""
    names = [_EDGE.fullmatch(entry.result.case) for entry in entries]
    return all(names) and len({name[1] for name in names if name}) == 1


def _mostly(left: Sequence[Observation]) -> Explanation | None:
    """Return the condition that has most to do with what is left."""
    under = _under(left)
    ranks = {
        condition: (weight, *condition.generality)
        for condition, entries in under.items()
        if (weight := _weight(condition, entries))
    }
    best = max(ranks, key=ranks.__getitem__, default=None)
    if best is None:
        return None
    rare = all(entry.is_rare for entry in under[best] if _fails(entry))
    return _finding(best, "edge" if rare else "some", under[best])


def _weight(condition: Condition, entries: Sequence[Observation]) -> float:
    """Weigh how many cases a condition explains, and how purely; 0 for what may be chance."""
    failed = [entry for entry in entries if _fails(entry)]
    if len(failed) < _LEAST:
        return 0.0
    if all(entry.is_rare for entry in failed):
        if condition.feature == "element_type":  # it is the dimension of 0, whatever the type
            return 0.0
        entries = [entry for entry in entries if entry.is_rare]
    share = _share(entries)
    return len(entries) * share**_PURITY if share >= _ORDINARY else 0.0


def _narrowing(observations: Sequence[Observation]) -> Iterator[Explanation]:
    for value in sorted({entry.narrows for entry in observations} - {""}):
        entries = [entry for entry in observations if entry.narrows == value]
        yield _finding(Condition("wide_values", value=value), "values", entries)


def _unchecked(observations: Sequence[Observation]) -> Iterator[Explanation]:
    """Yield the features that run although the values that arrive are illegal."""
    illegal = [entry for entry in observations if not entry.is_legal]
    for condition, entries in sorted(_under(illegal).items()):
        if _is_of_values(condition) and any(map(_fails, entries)):
            yield _finding(condition, "edge", entries)
        elif _is_of_open_axis(condition) and _share(entries) >= _ORDINARY:
            yield _finding(condition, "illegal", entries)


def _is_of_values(condition: Condition) -> bool:
    """Return whether a feature is about what only a run knows, of a version if it has any."""
    if condition.feature == _POSITION_FEATURE:
        return condition.operator != ""
    return condition.feature in _RUNTIME and "." in condition.operator


def _is_of_open_axis(condition: Condition) -> bool:
    """Return whether a feature is about an axis whose length may not fit."""
    return condition.feature in _OPEN_AXIS_FEATURES and "." in condition.operator
