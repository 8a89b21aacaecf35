"""Patterns of case ids: matching them, and finding few that match some cases and no other."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import cache, reduce
from operator import and_

_SAMPLES = 8


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
    by_length: dict[int, list[str]] = defaultdict(list)
    for name in sorted({*wanted, *others}):
        by_length[name.count("/")].append(name)
    found = [
        pattern for names in by_length.values() for pattern in _covering(names, frozenset(wanted))
    ]
    return tuple(sorted(_merged(found)))


def _covering(names: list[str], wanted: Collection[str]) -> Iterator[str]:
    """Patterns for ids of one length; sets of ids are the bits of integers.

    Some of the ids that no pattern matches yet are made as general as can be, segment by segment,
    each of them first in turn; of what comes of it, the pattern that matches most of them is taken.
    """
    bits: dict[tuple[int, str], int] = defaultdict(int)
    for number, name in enumerate(names):
        for place, segment in enumerate(name.split("/")):
            for text in _generalised(segment):
                bits[place, text] |= 1 << number
    outside = sum(1 << number for number, name in enumerate(names) if name not in wanted)
    left = (1 << len(names)) - 1 & ~outside

    def matched(segments: list[str]) -> int:
        return reduce(and_, (bits[entry] for entry in enumerate(segments)))

    def generalised(segments: list[str], places: Iterable[int]) -> list[str]:
        for place in places:
            texts = _generalised(segments[place])
            tried = ([*segments[:place], text, *segments[place + 1 :]] for text in texts)
            segments = next(entry for entry in tried if not matched(entry) & outside)
        return segments

    while left:
        open_ids = [number for number in range(len(names)) if left >> number & 1]
        best, count = "", 0
        for number in open_ids[:: -(-len(open_ids) // _SAMPLES)]:
            segments = names[number].split("/")
            for first in range(len(segments)):
                order = sorted(range(len(segments)), key=lambda place: place != first)
                found = generalised(segments, order)
                if (matched(found) & left).bit_count() > count:
                    best, count = "/".join(found), (matched(found) & left).bit_count()
        left &= ~matched(best.split("/"))
        yield best


def _generalised(segment: str) -> Iterator[str]:
    """Patterns that match a segment: anything first, the segment itself last."""
    yield "*"
    tokens = segment.split("-")
    for number, token in enumerate(tokens if len(tokens) > 1 else ()):
        yield f"{'*-' * (number > 0)}{token}{'-*' * (number < len(tokens) - 1)}"
    for number, token in enumerate(tokens[2:], 2):
        yield f"{tokens[0]}-*-{token}{'-*' * (number < len(tokens) - 1)}"
    yield segment


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
