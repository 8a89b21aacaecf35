"""Patterns of case ids: matching them, and finding few that match some cases and no other."""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from math import log2
from typing import TypeAlias

_ANY = "*"
_BEAM = 8
_ENOUGH = 3
_SIMPLER = 0.8


def matches(name: str, pattern: str) -> bool:
    """Whether a case is meant by a pattern.

    Args:
        name: The case's id.
        pattern: Segments between slashes, as many as the id has; in each, ``*`` stands for any
            characters and ``{a,b}`` for one of those between the commas, which may hold ``*``.
    """
    return _compiled(pattern).fullmatch(name) is not None


def matching(names: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """The ids that at least one pattern matches."""
    wanted = [_compiled(pattern) for pattern in patterns]
    return [name for name in names if any(pattern.fullmatch(name) for pattern in wanted)]


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    signs = {"*": "[^/]*", "{": "(?:", "}": ")", ",": "|"}
    return re.compile("".join(signs.get(sign, re.escape(sign)) for sign in pattern))


def covering(wanted: Collection[str], others: Collection[str]) -> tuple[str, ...]:
    """Patterns that match all of some ids and none of others.

    Args:
        wanted: The ids to match.
        others: The ids that must not match.

    Returns:
        Patterns, few but not always the fewest there are; sorted.
    """
    by_length: dict[int, tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
    for side, names in enumerate((wanted, set(others) - set(wanted))):
        for name in names:
            by_length[name.count("/")][side].add(name)
    found = [
        pattern
        for inside, outside in by_length.values()
        if inside
        for pattern in _Cover(sorted(inside), sorted(outside)).patterns()
    ]
    return tuple(sorted(_merged(found)))


_Literal: TypeAlias = tuple[int, str]


@dataclass(frozen=True, slots=True)
class _Rule:
    """A pattern for each segment, and what it matches: sets of ids are the bits of integers."""

    segments: tuple[str, ...]
    inside: int
    outside: int
    gain: float = 0.0

    @property
    def narrowed(self) -> int:
        """How many segments are not just anything."""
        return sum(segment != _ANY for segment in self.segments)


class _Cover:
    """Rules for ids of one length, found one after the other.

    The search for a rule starts with one that matches everything. Those that gain most are
    narrowed down by one more segment, until some match nothing that they must not; of these the
    one that matches most is taken.
    """

    def __init__(self, inside: list[str], outside: list[str]) -> None:
        bits: dict[_Literal, list[int]] = defaultdict(lambda: [0, 0])
        for side, names in enumerate((inside, outside)):
            for number, name in enumerate(names):
                for literal in _literals(name):
                    bits[literal][side] |= 1 << number
        self._literals = {key: (yes, no) for key, (yes, no) in bits.items() if yes}
        width = len(inside[0].split("/"))
        self._all = _Rule((_ANY,) * width, (1 << len(inside)) - 1, (1 << len(outside)) - 1)

    def patterns(self) -> Iterator[str]:
        """The rules that together match all that they should."""
        left = self._all.inside
        while left:
            rule = self._best(left)
            left &= ~rule.inside
            yield "/".join(rule.segments)

    def _best(self, left: int) -> _Rule:
        beam, pure = [self._all], list[_Rule]()
        if not self._all.outside:
            return self._all
        while beam:
            grown = {rule.segments: rule for old in beam for rule in self._narrowed(old, left)}
            pure += [rule for rule in grown.values() if not rule.outside]
            if pure and max(rule.narrowed for rule in pure) >= _ENOUGH:
                break
            mixed = (rule for rule in grown.values() if rule.outside)
            beam = heapq.nlargest(_BEAM, mixed, key=lambda rule: (rule.gain, rule.segments))
        return max(
            pure,
            key=lambda rule: (
                (rule.inside & left).bit_count() * _SIMPLER**rule.narrowed,
                -sum(map(len, rule.segments)),
                rule.segments,
            ),
        )

    def _narrowed(self, rule: _Rule, left: int) -> Iterator[_Rule]:
        """The rule with one more segment said, or said more precisely."""
        good, bad = (rule.inside & left).bit_count(), rule.outside.bit_count()
        share = log2(good / (good + bad))
        for (place, text), (yes, no) in self._literals.items():
            inside = rule.inside & yes
            count = (inside & left).bit_count()
            if not count or (inside == rule.inside and rule.outside & ~no == 0):
                continue
            if not self._refines(place, text, rule):
                continue
            outside = rule.outside & no
            gain = count * (log2(count / (count + outside.bit_count())) - share)
            segments = (*rule.segments[:place], text, *rule.segments[place + 1 :])
            yield _Rule(segments, inside, outside, gain)

    def _refines(self, place: int, text: str, rule: _Rule) -> bool:
        """Whether a literal means no id that the pattern of its segment so far does not."""
        before = rule.segments[place]
        if before == _ANY:
            return True
        new, old = self._literals[place, text], self._literals[place, before]
        return all(mine & ~other == 0 for mine, other in zip(new, old, strict=True))


def _literals(name: str) -> Iterator[_Literal]:
    """What can be said of each segment of an id."""
    for place, segment in enumerate(name.split("/")):
        yield place, segment
        tokens = segment.split("-")
        for number, token in enumerate(tokens):
            before, after = number > 0, number < len(tokens) - 1
            if before or after:
                yield place, f"{'*-' * before}{token}{'-*' * after}"
            if number > 1:
                yield place, f"{tokens[0]}-*-{token}{'-*' * after}"


def _merged(patterns: list[str]) -> list[str]:
    """Patterns that differ in one segment only, as one pattern with alternatives."""
    left = sorted(set(patterns))
    for place in range(max((pattern.count("/") + 1 for pattern in left), default=0)):
        groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for pattern in left:
            segments = pattern.split("/")
            if place >= len(segments):
                groups[(pattern,)].append("")
                continue
            groups[*segments[:place], "", *segments[place + 1 :]].append(segments[place])
        left = []
        for key, alternatives in groups.items():
            if alternatives == [""] and "" not in key:
                left.append(key[0])
                continue
            words = [word for text in alternatives for word in text.strip("{}").split(",")]
            joined = words[0] if len(words) == 1 else "{" + ",".join(sorted(set(words))) + "}"
            left.append("/".join((*key[:place], joined, *key[place + 1 :])))
    return left
