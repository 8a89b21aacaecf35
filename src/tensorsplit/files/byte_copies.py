"""Copies of bytes between files, in tasks that each take little memory.

A tensor is rows of bytes: one row for each index of the axes before the split one. What is long in
each row is copied range by range, by the system (`RangeCopies`); where it is short, blocks of rows
are read, put together, taken apart by the copy kernel, and written (`RowCopies`). What is read and
what is written are described alike, so that a merge is a split with the two exchanged.
"""

from __future__ import annotations

import os
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from io import FileIO
from itertools import accumulate, groupby, product
from operator import attrgetter, itemgetter
from typing import IO, Any, TypeAlias, TypeVar
from zipfile import ZipFile

import numpy as np

from tensorsplit.arrays.numpy import copies_into
from tensorsplit.core.errors import (
    NOT_PARTS,
    NOT_SHARED,
    UNREADABLE_TENSORS,
    UNVERIFIED,
    SplitError,
    short_name,
    show_path,
)
from tensorsplit.core.plan import SplitPlan
from tensorsplit.files.sources import open_archive, refusing

Bytes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"
_T = TypeVar("_T")

LEAST_MEMORY = 16 << 20
"""What a task needs: a block of rows, the same rows taken apart, and what was read of them."""

_BLOCK = 1 << 20
_LONGEST_ROW = LEAST_MEMORY // 4
_LONG = 128 << 10  # from here on, a range costs more than the calls that copy it
_WRITE = 64 << 10
_TASK = 32 << 20
_MOST_RANGES = 256


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


def copies(moves: Iterable[Move]) -> Iterator[RangeCopies | RowCopies | MemberCopies]:
    """Yield the tasks that copy tensors in order; small ones side by side are copied by one."""
    for kind, some in groupby((each for each in moves if each.rows * each.width), _kind):
        if kind is MemberCopies:
            for batch in _batches(some, lambda each: each.rows * each.written):
                yield MemberCopies(batch)
        elif kind is RangeCopies:
            ranges = (each for move in some for each in _ranges(move))
            for pieces in _batches(ranges, lambda each: each.size):
                yield RangeCopies(pieces)
        else:
            yield from (task for move in some for task in _row_copies(move))


def _kind(move: Move) -> type[RangeCopies | RowCopies | MemberCopies]:
    """Return by which tasks a tensor is copied."""
    if any(each.member for each in move.sources):
        return MemberCopies
    columns = max(sum(len(p.columns) for p in places) for places in (move.sources, move.targets))
    return RowCopies if _is_short(move) and move.width < _LONG * columns else RangeCopies


def _is_short(move: Move) -> bool:
    """Return whether rows are short enough to be put together and taken apart in blocks."""
    return move.rows > 1 and max(move.width, move.written) <= _LONGEST_ROW


def _row_copies(move: Move) -> Iterator[RowCopies]:
    step = max(1, max(_TASK, 4 * _block(move)) // move.width)
    for first in range(0, move.rows, step):
        yield RowCopies(move, first, min(step, move.rows - first))


def _ranges(move: Move) -> Iterator[ByteRange]:
    """Yield the ranges of all rows, in order, none longer than what a task copies."""
    pieces = list(pieces_of(move))
    for row in range(move.rows):
        for source, place, target, inside, whole in pieces:
            begin = source.offset + row * source.width + place
            offset = target.offset + row * target.width + inside
            for done in range(0, whole, _TASK):
                size = min(_TASK, whole - done)
                yield ByteRange(source.path, begin + done, target.path, offset + done, size)


def pieces_of(move: Move) -> Iterator[tuple[RowPlace, int, RowPlace, int, int]]:
    """Yield what a row of the whole consists of, in order.

    Gives the source and the place in a row of it, the target and the place in a row of that, and
    the size.
    """
    held = list(_without_copies(_columns(move.sources)))
    starts = [start for start, *_ in held]
    for start, size, target, inside in _columns(move.targets):
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


def _columns(places: Iterable[RowPlace]) -> list[_Column]:
    """Return the columns of a whole in order: start, size, where it is, and its place there."""
    found = []
    for place in places:
        inside = 0
        for start, size in place.columns:
            if size:
                found.append((start, size, place, inside))
            inside += size
    return sorted(found, key=itemgetter(0))


def _batches(items: Iterable[_T], size_of: Callable[[_T], int]) -> Iterator[tuple[_T, ...]]:
    """Yield what one task copies after the other: not many bytes, and not many pieces."""
    batch: list[_T] = []
    size = 0
    for each in items:
        if batch and (size + size_of(each) > _TASK or len(batch) == _MOST_RANGES):
            yield tuple(batch)
            batch, size = [], 0
        batch.append(each)
        size += size_of(each)
    if batch:
        yield tuple(batch)


def _block(move: Move) -> int:
    """Return how many bytes are read at once: more for many files, for longer reads and writes."""
    return max(_BLOCK, _WRITE * max(len(move.sources), len(move.targets)))


def _rows_of_block(move: Move, memory: int) -> int:
    """Return how many rows are read at once: they are in memory up to three times."""
    return max(1, min(memory // 4, _block(move)) // max(move.width, move.written))


@dataclass(frozen=True, slots=True)
class RangeCopies:
    """A task that copies ranges of bytes."""

    ranges: tuple[ByteRange, ...]

    @property
    def nbytes(self) -> int:
        """The bytes that are written."""
        return sum(each.size for each in self.ranges)

    def write(self, _memory: int) -> int:
        """Copy the ranges, by the system where it can."""
        for (source, target), ranges in groupby(self.ranges, attrgetter("source", "target")):
            with reading(source) as read_from, FileIO(target, "r+") as written_to:
                for each in ranges:
                    _copy_range(read_from, written_to, each)
        return self.nbytes

    def verify(self, _memory: int) -> int:
        """Compare the ranges (TS708)."""
        checksum = 0
        for each in self.ranges:
            with reading(each.source) as source, reading(each.target, fresh=True) as target:
                for done in range(0, each.size, _BLOCK):
                    size = min(_BLOCK, each.size - done)
                    expected = read_at(source, each.start + done, size)
                    read = read_at(target, each.offset + done, size)
                    checksum += compare(expected, read, each.target)
        return checksum


@dataclass(frozen=True, slots=True)
class SameBytes:
    """A task that compares what two files should hold alike.

    Attributes:
        name: The tensor that it is, or that it is a part of.
        rows: The rows of the tensor.
        one: Where it is in one file.
        other: Where it is in the other one; the columns that both hold are compared.
    """

    name: str
    rows: int
    one: RowPlace
    other: RowPlace

    @property
    def nbytes(self) -> int:
        """Bytes that are written: none."""
        return 0

    def write(self, _memory: int) -> int:
        """Refuse (TS712) files that differ."""
        with reading(self.one.path) as one, reading(self.other.path) as other:
            for start, offset, whole in self._ranges():
                for done in range(0, whole, _BLOCK):
                    size = min(_BLOCK, whole - done)
                    expected = read_at(one, start + done, size)
                    if not np.array_equal(expected, read_at(other, offset + done, size)):
                        raise SplitError(
                            NOT_SHARED,
                            f"the tensor {short_name(self.name)} is not the same in"
                            f" {show_path(self.one.path)} and in {show_path(self.other.path)}",
                            "name it in a rule if it is split among ranks, or write the files"
                            " again",
                            parameter="source",
                        )
        return 0

    def _ranges(self) -> Iterator[tuple[int, int, int]]:
        """Yield the place in one file, that in the other, and the size of what both hold."""
        one, other = self.one, self.other
        if one.columns == other.columns:
            yield one.offset, other.offset, self.rows * one.width
            return
        inside = {(start, size): place for start, size, _, place in _columns([one])}
        for row in range(self.rows):
            for start, size, _, place in _columns([other]):
                if (start, size) in inside:
                    begin = one.offset + row * one.width + inside[start, size]
                    yield begin, other.offset + row * other.width + place, size

    def verify(self, _memory: int) -> int:
        """Do nothing: nothing was written."""
        return 0


@dataclass(frozen=True, slots=True)
class PaddingCheck:
    """A task that checks that what a tensor was padded with is zeros.

    Attributes:
        name: The tensor.
        rows: Its rows.
        width: The bytes of a row without padding.
        place: Where it, or a part of it, is.
    """

    name: str
    rows: int
    width: int
    place: RowPlace

    @property
    def nbytes(self) -> int:
        """Bytes that are written: none."""
        return 0

    def write(self, _memory: int) -> int:
        """Refuse (TS713) padding that is not zeros: it would be lost."""
        place = self.place
        padding = [
            (inside + max(self.width - start, 0), inside + size)
            for start, size, _, inside in _columns([place])
            if start + size > self.width
        ]
        with reading(place.path) as file:
            for row, (begin, end) in product(range(self.rows), padding):
                for first in range(begin, end, _BLOCK):
                    start = place.offset + row * place.width + first
                    if read_at(file, start, min(_BLOCK, end - first)).any():
                        raise SplitError(
                            NOT_PARTS,
                            f"the padding of {short_name(self.name)} in {show_path(place.path)} is"
                            " not all zeros",
                            "merge what was padded by the same rules",
                            parameter="source",
                        )
        return 0

    def verify(self, _memory: int) -> int:
        """Do nothing: nothing was written."""
        return 0


@dataclass(frozen=True, slots=True)
class RowCopies:
    """A task that puts rows together and takes them apart.

    Attributes:
        move: What is read and written.
        first: The first of the rows.
        rows: How many.
    """

    move: Move
    first: int
    rows: int

    @property
    def nbytes(self) -> int:
        """The bytes that are written."""
        return self.rows * self.move.written

    def write(self, memory: int) -> int:
        """Copy the rows, block by block."""
        taken: list[Bytes] = []
        for first, block in self._blocks(memory):
            taken = _take_apart(block, self.move.targets, taken)
            for each, data in zip(self.move.targets, taken, strict=True):
                with FileIO(each.path, "r+") as target:
                    write_at(target, each.offset + first * each.width, data)
        return self.nbytes

    def verify(self, memory: int) -> int:
        """Compare the rows (TS708)."""
        checksum = 0
        for first, block in self._blocks(memory):
            for each in self.move.targets:
                with reading(each.path, fresh=True) as target:
                    place = each.offset + first * each.width
                    read = read_at(target, place, len(block) * each.width)
                columns = [block[:, start : start + size] for start, size in each.columns]
                checksum += compare(np.concatenate(columns, axis=1).ravel(), read, each.path)
        return checksum

    def _blocks(self, memory: int) -> Iterator[tuple[int, Bytes]]:
        """Yield each block of the whole and the number of its first row; the next replaces it."""
        step = _rows_of_block(self.move, memory)
        buffer = np.zeros((min(step, self.rows), self.move.width), np.uint8)
        with ExitStack() as closing:
            opened = [closing.enter_context(reading(p.path)) for p in self.move.sources]

            def read(number: int, data: Bytes) -> None:
                place = self.move.sources[number]
                fill(opened[number], place.offset + first * place.width, data)

            for first in range(self.first, self.first + self.rows, step):
                block = buffer[: self.first + self.rows - first]
                _put_together(block, self.move.sources, read)
                yield first, block


@dataclass(frozen=True, slots=True)
class MemberCopies:
    """A task that copies members of zip archives, each of them from its beginning on."""

    moves: tuple[Move, ...]

    @property
    def nbytes(self) -> int:
        """The bytes that are written."""
        return sum(each.rows * each.written for each in self.moves)

    def write(self, memory: int) -> int:
        """Copy the rows, block by block."""
        for path, offset, data in self._written(memory):
            with FileIO(path, "r+") as target:
                write_at(target, offset, data)
        return self.nbytes

    def verify(self, memory: int) -> int:
        """Compare the rows (TS708)."""
        checksum = 0
        for path, offset, data in self._written(memory):
            with reading(path, fresh=True) as target:
                checksum += compare(data.ravel(), read_at(target, offset, data.size), path)
        return checksum

    def _written(self, memory: int) -> Iterator[tuple[str, int, Bytes]]:
        """Yield what is written: file, place and bytes; an archive is opened once for all."""
        with ExitStack() as closing:
            archives: dict[str, ZipFile] = {}
            for path in dict.fromkeys(each.path for move in self.moves for each in move.sources):
                with refusing(path):
                    archives[path] = closing.enter_context(open_archive(path))
            for move in self.moves:
                yield from _members_copied(move, archives, memory)


def _members_copied(
    move: Move, archives: Mapping[str, ZipFile], memory: int
) -> Iterator[tuple[str, int, Bytes]]:
    """Yield what is written of a tensor that is in members of archives."""
    with ExitStack() as closing:
        files = []
        for each in move.sources:
            with refusing(each.path):
                file = closing.enter_context(archives[each.path].open(each.member))
            _next_bytes(file, each.offset, each.path)
            files.append(file)
        yield from (_member_blocks if _is_short(move) else _member_pieces)(move, files, memory)


def _member_pieces(
    move: Move, files: Sequence[IO[bytes]], _memory: int
) -> Iterator[tuple[str, int, Bytes]]:
    """Yield each piece of each row, in the order in which it lies in its source."""
    of_source = dict(zip(move.sources, files, strict=True))
    pieces = list(pieces_of(move))
    for row in range(move.rows):
        for source, _, target, inside, size in pieces:
            offset = target.offset + row * target.width + inside
            for done in range(0, size, _BLOCK):
                count = min(_BLOCK, size - done)
                data = _next_bytes(of_source[source], count, source.path)
                yield target.path, offset + done, data


def _member_blocks(
    move: Move, files: Sequence[IO[bytes]], memory: int
) -> Iterator[tuple[str, int, Bytes]]:
    """Yield the columns of each block of rows."""
    step = _rows_of_block(move, memory)
    buffer = np.empty((min(step, move.rows), move.width), np.uint8)

    def read(number: int, data: Bytes) -> None:
        data[:] = _next_bytes(files[number], data.size, move.sources[number].path)

    for first in range(0, move.rows, step):
        block = buffer[: move.rows - first]
        _put_together(block, move.sources, read)
        taken = _take_apart(block, move.targets)
        for to, part in zip(move.targets, taken, strict=True):
            yield to.path, to.offset + first * to.width, part


def _next_bytes(file: IO[bytes], size: int, path: str) -> Bytes:
    """Return the next bytes of a member; with its last ones TS705 if its checksum is wrong."""
    with refusing(path):
        data = file.read(size)
        if len(data) != size:
            raise ValueError("a member of it has another size than it says")
    return np.frombuffer(data, np.uint8)


def reading(path: str, *, fresh: bool = False) -> FileIO:
    """Open a file for reading, without a buffer (TS705); what is new is on the disk."""
    with refusing(path):
        file = FileIO(path, "r")
    if fresh and hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return file


def read_at(file: FileIO, start: int, size: int) -> Bytes:
    """Read so many bytes of a file; TS705 if it ends before."""
    data = np.empty(size, np.uint8)
    fill(file, start, data)
    return data


def fill(file: FileIO, start: int, data: Bytes) -> None:
    """Read bytes of a file into an array; TS705 if it ends before."""
    view, done = data.data, 0
    file.seek(start)
    while done < len(view):
        count = file.readinto(view[done:])
        if not count:
            raise SplitError(
                UNREADABLE_TENSORS,
                f"{show_path(str(file.name))} ends at byte {start + done}; it was longer before",
                "split it when nobody writes to it",
            )
        done += count


def write_at(file: FileIO, offset: int, data: Bytes) -> None:
    """Write bytes to a place in a file."""
    view, done = data.reshape(-1).data, 0
    file.seek(offset)
    while done < len(view):
        done += file.write(view[done:])


def _put_together(
    block: Bytes, sources: Sequence[RowPlace], read: Callable[[int, Bytes], None]
) -> None:
    """Fill rows of the whole with those of each source; `read` fills an array of its bytes."""
    if len(sources) == 1 and sources[0].is_whole(block.shape[1]):
        read(0, block.reshape(-1))
        return
    for number, each in enumerate(sources):
        data = np.empty((len(block), each.width), np.uint8)
        read(number, data.reshape(-1))
        place = 0
        for start, size in each.columns:
            block[:, start : start + size] = data[:, place : place + size]
            place += size


def _take_apart(
    block: Bytes, targets: tuple[RowPlace, ...], before: Sequence[Bytes] = ()
) -> list[Bytes]:
    """Split a block's rows by target, into the memory of the block before if there is one."""
    if len(targets) == 1 and targets[0].is_whole(block.shape[1]):
        return [block]
    if before:
        taken = [rows[: len(block)] for rows in before]
    else:
        taken = [np.empty((len(block), each.width), np.uint8) for each in targets]
    columns = []
    for each, rows in zip(targets, taken, strict=True):
        place = 0
        for start, size in each.columns:
            columns.append((start, rows[:, place : place + size]))
            place += size
    columns.sort(key=lambda column: column[0])
    sizes = tuple(part.shape[1] for _, part in columns)
    starts = [0, *accumulate(sizes)]
    if starts == [*(start for start, _ in columns), block.shape[1]]:
        plan = SplitPlan("", block.shape, 1, sizes)
        copies_into(block, plan, [part for _, part in columns])
    else:  # some are copies, or padding is left out
        for start, part in columns:
            part[:] = block[:, start : start + part.shape[1]]
    return taken


def _copy_range(source: FileIO, target: FileIO, wanted: ByteRange) -> None:
    done = 0
    if hasattr(os, "copy_file_range"):
        while done < wanted.size:
            try:
                count = os.copy_file_range(
                    source.fileno(),
                    target.fileno(),
                    wanted.size - done,
                    wanted.start + done,
                    wanted.offset + done,
                )
            except OSError:  # it can't, or what is wrong shows below
                break
            if not count:
                break
            done += count
    for begin in range(done, wanted.size, _BLOCK):
        data = read_at(source, wanted.start + begin, min(_BLOCK, wanted.size - begin))
        write_at(target, wanted.offset + begin, data)


def compare(expected: Bytes, read: Bytes, path: str) -> int:
    """Return the checksum of a result that was read back; TS708 if it holds other bytes."""
    if not np.array_equal(expected, read):
        raise unverified(path)
    return zlib.crc32(expected.data)


def unverified(path: str) -> SplitError:
    """Return the refusal (TS708) of a result that was read back."""
    return SplitError(
        UNVERIFIED,
        f"{show_path(path)} does not hold what was written to it; nothing was put in place",
        "check the disk and the memory of this machine",
    )
