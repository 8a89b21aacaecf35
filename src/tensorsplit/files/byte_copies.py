"""Copies of bytes between files, in tasks that each take little memory.

What is long in each row is copied range by range, by the system (`RangeCopies`); where it is short,
blocks of rows are read, put together, split by the copy kernel, and written (`RowCopies`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from io import FileIO
from itertools import accumulate, groupby
from operator import attrgetter
from pathlib import Path
from typing import IO, TypeVar
from zipfile import ZipFile

import numpy as np

from tensorsplit.arrays.numpy import copies_into
from tensorsplit.core.plan import SplitPlan
from tensorsplit.files.byte_files import (
    BLOCK,
    Bytes,
    compare,
    fill,
    in_blocks,
    read_at,
    reading,
    write_at,
)
from tensorsplit.files.byte_moves import ByteRange, Move, RowPlace, pieces_of
from tensorsplit.files.sources import open_archive, refusing

_T = TypeVar("_T")

LEAST_MEMORY = 16 << 20
"""What a task needs: a block of rows, the same rows split, and what was read of them."""

_LONGEST_ROW = LEAST_MEMORY // 4
_LONG = 128 << 10  # from here on, a range costs more than the calls that copy it
_WRITE = 64 << 10
_TASK = 32 << 20
_MOST_RANGES = 256


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
    """Return whether rows are short enough to be put together and split in blocks."""
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


def _batches(items: Iterable[_T], size_of: Callable[[_T], int]) -> Iterator[tuple[_T, ...]]:
    """Yield batches for one task each: not many bytes, and not many pieces."""
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
    return max(BLOCK, _WRITE * max(len(move.sources), len(move.targets)))


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
                for done, size in in_blocks(0, each.size):
                    expected = read_at(source, each.start + done, size)
                    read = read_at(target, each.offset + done, size)
                    checksum += compare(expected, read, each.target)
        return checksum


@dataclass(frozen=True, slots=True)
class RowCopies:
    """A task that puts rows together and splits them.

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
            taken = _split_rows(block, self.move.targets, taken)
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
        """Yield the writes: file, place and bytes; an archive is opened once for all."""
        with ExitStack() as closing:
            archives: dict[str, ZipFile] = {}
            for path in dict.fromkeys(each.path for move in self.moves for each in move.sources):
                with refusing(path):
                    file = closing.enter_context(Path(path).open("rb"))
                    archives[path] = closing.enter_context(open_archive(file))
            for move in self.moves:
                yield from _members_copied(move, archives, memory)


def _members_copied(
    move: Move, archives: Mapping[str, ZipFile], memory: int
) -> Iterator[tuple[str, int, Bytes]]:
    """Yield the pieces of a tensor that is in members of archives."""
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
            for done, count in in_blocks(0, size):
                data = _next_bytes(of_source[source], count, source.path)
                yield target.path, offset + done, data


def _member_blocks(
    move: Move, files: Sequence[IO[bytes]], memory: int
) -> Iterator[tuple[str, int, Bytes]]:
    """Yield the columns of each block of rows."""
    step = _rows_of_block(move, memory)
    buffer = np.zeros((min(step, move.rows), move.width), np.uint8)

    def read(number: int, data: Bytes) -> None:
        data[:] = _next_bytes(files[number], data.size, move.sources[number].path)

    for first in range(0, move.rows, step):
        block = buffer[: move.rows - first]
        _put_together(block, move.sources, read)
        taken = _split_rows(block, move.targets)
        for to, part in zip(move.targets, taken, strict=True):
            yield to.path, to.offset + first * to.width, part


def _next_bytes(file: IO[bytes], size: int, path: str) -> Bytes:
    """Return the next bytes of a member; with its last ones TS705 if its checksum is wrong."""
    with refusing(path):
        data = file.read(size)
        if len(data) != size:
            raise ValueError("a member of it has another size than it says")
    return np.frombuffer(data, np.uint8)


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


def _split_rows(
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
    for begin, size in in_blocks(done, wanted.size - done):
        data = read_at(source, wanted.start + begin, size)
        write_at(target, wanted.offset + begin, data)
