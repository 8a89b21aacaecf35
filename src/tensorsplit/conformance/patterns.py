"""Patterns of case ids: matching them, and finding few that match some cases and no other."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import cache, reduce
from itertools import chain
from operator import and_

_SAMPLES = 6


def matches(name: str, pattern: str) -> bool:
    """Return whether the id of a case is meant by a pattern.

    A pattern has segments between slashes, as many as the id; in each, ``*`` stands for any
    characters and ``{a,b}`` for one of those between the commas, which may hold ``*``.
    """
    return _compiled(pattern).fullmatch(name) is not None


def matching(names: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """Return the ids that at least one pattern matches."""
    wanted = [_compiled(pattern) for pattern in patterns]
    return [name for name in names if any(pattern.fullmatch(name) for pattern in wanted)]


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    signs = {"*": "[^/]*", "{": "(?:", "}": ")", ",": "|"}
    return re.compile("".join(signs.get(sign, re.escape(sign)) for sign in pattern))


def covering(wanted: Collection[str], others: Collection[str]) -> tuple[str, ...]:
    """Find patterns that match all of some ids and none of others: few, and sorted."""
    by_length: dict[int, list[str]] = defaultdict(list)
    for name in sorted({*wanted, *others}):
        by_length[name.count("/")].append(name)
    kept = frozenset(wanted)
    found = (_merged(_covering(names, kept)) for names in by_length.values())
    return tuple(sorted(chain.from_iterable(found)))


def _covering(names: list[str], wanted: Collection[str]) -> Iterator[str]:
    """Find patterns for ids of one length; sets of ids are the bits of integers.

    Some of the ids that no pattern matches yet are made as general as can be, segment by segment,
    forwards and backwards from each of them; of what comes of it, the pattern that matches most of
    them is taken.
    """
    bits: dict[tuple[int, str], int] = defaultdict(int)
    for number, name in enumerate(names):
        for place, segment in enumerate(name.split("/")):
            for text in _generalised(segment):
                bits[place, text] |= 1 << number
    outside = sum(1 << number for number, name in enumerate(names) if name not in wanted)
    left = (1 << len(names)) - 1 & ~outside
    places = list(range(names[0].count("/") + 1))
    turned = [places[first:] + places[:first] for first in places]

    def matched(segments: Iterable[str]) -> int:
        return reduce(and_, (bits[entry] for entry in enumerate(segments)))

    def generalised(name: str, order: Iterable[int]) -> list[str]:
        segments = name.split("/")
        for place in order:
            others = (bits[entry] for entry in enumerate(segments) if entry[0] != place)
            wrong = reduce(and_, others, outside)
            texts = _generalised(segments[place])
            segments[place] = next(text for text in texts if not wrong & bits[place, text])
        return segments

    while left:
        open_ids = [number for number in range(len(names)) if left >> number & 1]
        found = [
            generalised(names[number], order)
            for number in open_ids[:: -(-len(open_ids) // _SAMPLES)]
            for order in (*turned, *map(reversed, turned))
        ]
        best = max(found, key=lambda segments: (matched(segments) & left).bit_count())
        left &= ~matched(best)
        yield "/".join(best)


def _generalised(segment: str) -> Iterator[str]:
    """Yield patterns that match a segment: anything first, the segment itself last."""
    yield "*"
    tokens = segment.split("-")
    for number, token in enumerate(tokens if len(tokens) > 1 else ()):
        yield f"{'*-' * (number > 0)}{token}{'-*' * (number < len(tokens) - 1)}"
    for number, token in enumerate(tokens[2:], 2):
        yield f"{tokens[0]}-*-{token}{'-*' * (number < len(tokens) - 1)}"
    yield segment


def _merged(patterns: Iterable[str]) -> Iterator[str]:
    """Merge patterns that differ in one segment only, into one with alternatives."""
    left = [tuple(pattern.split("/")) for pattern in sorted(patterns)]
    for place in range(len(left[0]) if left else 0):
        groups: dict[tuple[str, ...], set[str]] = defaultdict(set)
        for segments in left:
            others = segments[:place] + segments[place + 1 :]
            groups[others].add(segments[place])
        left = [
            (*others[:place], "{" + ",".join(sorted(found)) + "}", *others[place:])
            if len(found) > 1
            else (*others[:place], *found, *others[place:])
            for others, found in groups.items()
        ]
    return map("/".join, left)
