"""Where tensors are in files, and which bytes become which.

A tensor is rows of bytes: one row for each index of the axes before the split one. What is read and
what is written are described alike, so that a merge is a split with the two exchanged.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from operator import itemgetter
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes of a file, and where they go in another one."""

    source: str
    start: int
    target: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class RowPlace:
    """Where a tensor is whose rows are columns of the rows of a whole, side by side.

    Attributes:
        path: The file that it is in.
        offset: Where its bytes begin there.
        columns: Start and size of each column of the whole, in bytes.
        member: The member of a zip archive that the file is; empty for a file of its own.
    """

    path: str
    offset: int
    columns: tuple[tuple[int, int], ...]
    member: str = ""

    @property
    def width(self) -> int:
        """The bytes of a row."""
        return sum(size for _, size in self.columns)

    def is_whole(self, width: int) -> bool:
        """Return whether a row of it is one of the whole, of this width, in its order."""
        ends = accumulate((size for _, size in self.columns), initial=0)
        return self.width == width and all(
            start == end for (start, _), end in zip(self.columns, ends, strict=False)
        )


@dataclass(frozen=True, slots=True)
class Move:
    """Bytes of tensors that are read, which become those of other ones.

    Split, the whole is read; merged, it is written; otherwise it is nowhere.

    Attributes:
        rows: The rows of the whole.
        width: The bytes of a row of it.
        sources: What is read. Each byte of a row is in one of them, or in several alike; those at
            its end that are in none are zeros, as files are before something is written.
        targets: What is written. Each byte of a row goes to one of them, or to several; those at
            its end that go to none are zeros.
    """

    rows: int
    width: int
    sources: tuple[RowPlace, ...]
    targets: tuple[RowPlace, ...]

    @property
    def written(self) -> int:
        """The bytes that are written of a row, with copies."""
        return sum(each.width for each in self.targets)


def pieces_of(move: Move) -> Iterator[tuple[RowPlace, int, RowPlace, int, int]]:
    """Yield the pieces of a row of the whole, in order.

    Gives the source and the place in a row of it, the target and the place in a row of that, and
    the size.
    """
    held = list(_without_copies(columns_of(move.sources)))
    starts = [start for start, *_ in held]
    for start, size, target, inside in columns_of(move.targets):
        number, done = bisect_right(starts, start) - 1, 0
        while done < size:
            if number == len(held):
                break
            begin, length, source, place = held[number]
            skipped = start + done - begin
            if skipped >= length:
                break
            count = min(size - done, length - skipped)
            yield source, place + skipped, target, inside + done, count
            done += count
            number += 1


_Column: TypeAlias = tuple[int, int, RowPlace, int]


def _without_copies(columns: Iterable[_Column]) -> Iterator[_Column]:
    """Yield columns of which each byte is in one, that of the first place that holds it."""
    end = 0
    for start, size, place, inside in columns:
        known = max(end - start, 0)
        if known < size:
            yield start + known, size - known, place, inside + known
            end = start + size


def columns_of(places: Iterable[RowPlace]) -> list[_Column]:
    """Return the columns of a whole in order: start, size, where it is, and its place there."""
    found = []
    for place in places:
        inside = 0
        for start, size in place.columns:
            if size:
                found.append((start, size, place, inside))
            inside += size
    return sorted(found, key=itemgetter(0))
