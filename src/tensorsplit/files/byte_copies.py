"""Copies of bytes between files, in tasks that each take little memory.

A tensor is rows of bytes: one row for each index of the axes before the split one. What is long in
each row is copied range by range, by the system (`RangeCopies`); where it is short, blocks of rows
are read, taken apart by the copy kernel, and written (`RowCopies`).
"""

from __future__ import annotations

import errno
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import FileIO
from itertools import groupby, islice
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import IO, Any, TypeAlias
from zipfile import ZipFile

import numpy as np

from tensorsplit.arrays.numpy import copies_into
from tensorsplit.core.errors import UNREADABLE_TENSORS, UNVERIFIED, SplitError, show_path
from tensorsplit.core.plan import SplitPlan
from tensorsplit.files.sources import refusing

Bytes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"

LEAST_MEMORY = 16 << 20
"""What a task needs: a block of rows, and the same rows taken apart."""

_BLOCK = 1 << 20
_LONGEST_ROW = LEAST_MEMORY // 2
_LONG = 128 << 10  # from here on, a range costs more than the calls that copy it
_WRITE = 64 << 10
_TASK = 32 << 20
_MOST_RANGES = 256
_SYNCED_AT_ONCE = 16
_NOT_BY_SYSTEM = (
    *(errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM, errno.EBADF),
    *(errno.EIO, errno.ETXTBSY),
)
"""What a system or file system says that can't copy between these files by itself."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes of a file, and where they go in another one."""

    source: str
    start: int
    target: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class RowTarget:
    """A tensor whose rows are columns of the source's rows, side by side.

    Attributes:
        path: The file that it goes to.
        offset: Where its bytes begin there.
        columns: Start and size of each column, in bytes.
    """

    path: str
    offset: int
    columns: tuple[tuple[int, int], ...]

    @property
    def width(self) -> int:
        """The bytes of a row."""
        return sum(size for _, size in self.columns)


def copies(
    source: str, start: int, rows: int, width: int, targets: tuple[RowTarget, ...]
) -> Iterator[RangeCopies | RowCopies]:
    """Yield the tasks that copy a tensor.

    Args:
        source: The file that it is in.
        start: Where its bytes begin there.
        rows: How many rows it has.
        width: The bytes of a row.
        targets: Where they go. Each byte of a row goes to one of them.
    """
    if rows * width == 0:
        return
    columns = sum(len(each.columns) for each in targets)
    if rows > 1 and width <= _LONGEST_ROW and width < _LONG * columns:
        step = max(1, max(_TASK, 4 * _block(targets)) // width)
        for first in range(0, rows, step):
            yield RowCopies(source, start, width, first, min(step, rows - first), targets)
    else:
        yield from _batches(_ranges(source, start, rows, width, targets))


def _ranges(
    source: str, start: int, rows: int, width: int, targets: tuple[RowTarget, ...]
) -> Iterator[ByteRange]:
    """Yield the ranges of all rows, none longer than what a task copies."""
    columns = []
    for target in targets:
        place = target.offset
        for column, size in target.columns:
            columns.append((column, size, target, place))
            place += size
    columns.sort(key=itemgetter(0))
    for row in range(rows):
        for column, whole, target, place in columns:
            begin = start + row * width + column
            offset = place + row * target.width
            for done in range(0, whole, _TASK):
                size = min(_TASK, whole - done)
                yield ByteRange(source, begin + done, target.path, offset + done, size)


def _batches(ranges: Iterable[ByteRange]) -> Iterator[RangeCopies]:
    batch: list[ByteRange] = []
    size = 0
    for each in ranges:
        if batch and (size + each.size > _TASK or len(batch) == _MOST_RANGES):
            yield RangeCopies(tuple(batch))
            batch, size = [], 0
        batch.append(each)
        size += each.size
    if batch:
        yield RangeCopies(tuple(batch))


def _block(targets: tuple[RowTarget, ...]) -> int:
    """Return how many bytes are read at once: more for many targets, for longer writes."""
    return max(_BLOCK, _WRITE * len(targets))


@dataclass(frozen=True, slots=True)
class RangeCopies:
    """A task that copies ranges of bytes."""

    ranges: tuple[ByteRange, ...]

    @property
    def nbytes(self) -> int:
        """The bytes that are written."""
        return sum(each.size for each in self.ranges)

    def write(self, memory: int) -> int:
        """Copy the ranges, by the system where it can."""
        for (source, target), ranges in groupby(self.ranges, attrgetter("source", "target")):
            with reading(source) as read_from, FileIO(target, "r+") as written_to:
                for each in ranges:
                    _copy_range(read_from, written_to, each, min(memory, _BLOCK))
        return self.nbytes

    def verify(self, memory: int) -> int:
        """Compare the ranges (TS708)."""
        checksum = 0
        step = min(memory // 2, _BLOCK)
        for each in self.ranges:
            with reading(each.source) as source, reading(each.target, fresh=True) as target:
                for done in range(0, each.size, step):
                    size = min(step, each.size - done)
                    expected = read_at(source, each.start + done, size)
                    read = read_at(target, each.offset + done, size)
                    checksum += compare(expected, read, each.target)
        return checksum


@dataclass(frozen=True, slots=True)
class RowCopies:
    """A task that takes rows apart.

    Attributes:
        source: The file that is read.
        start: Where the bytes of the tensor begin there.
        width: The bytes of a row.
        first: The first of the rows.
        rows: How many.
        targets: What is written; each byte of a row goes to one of them.
    """

    source: str
    start: int
    width: int
    first: int
    rows: int
    targets: tuple[RowTarget, ...]

    @property
    def nbytes(self) -> int:
        """The bytes that are written."""
        return self.rows * self.width

    def write(self, memory: int) -> int:
        """Copy the rows, block by block."""
        taken: list[Bytes] = []
        for first, block in self._blocks(memory):
            taken = _take_apart(block, self.targets, taken)
            for each, data in zip(self.targets, taken, strict=True):
                with FileIO(each.path, "r+") as target:
                    write_at(target, each.offset + first * each.width, data)
        return self.nbytes

    def verify(self, memory: int) -> int:
        """Compare the rows (TS708)."""
        checksum = 0
        for first, block in self._blocks(memory):
            for each in self.targets:
                with reading(each.path, fresh=True) as target:
                    place = each.offset + first * each.width
                    read = read_at(target, place, len(block) * each.width)
                columns = [block[:, start : start + size] for start, size in each.columns]
                checksum += compare(np.concatenate(columns, axis=1).ravel(), read, each.path)
        return checksum

    def _blocks(self, memory: int) -> Iterator[tuple[int, Bytes]]:
        """Yield each block and the number of its first row; the next block replaces it."""
        step = max(1, min(memory // 2, _block(self.targets)) // self.width)
        buffer = np.empty(step * self.width, np.uint8)
        with reading(self.source) as source:
            for first in range(self.first, self.first + self.rows, step):
                rows = min(step, self.first + self.rows - first)
                block = buffer[: rows * self.width]
                fill(source, self.start + first * self.width, block)
                yield first, block.reshape(rows, self.width)


@dataclass(frozen=True, slots=True)
class MemberCopy:
    """A task that copies a member of a zip archive, which can only be read from its beginning on.

    Attributes:
        source: The archive.
        member: The name of the member.
        start: Where the bytes of the tensor begin in it.
        rows: How many rows.
        width: The bytes of a row.
        targets: What is written; each byte of a row goes to one of them.
    """

    source: str
    member: str
    start: int
    rows: int
    width: int
    targets: tuple[RowTarget, ...]

    @property
    def nbytes(self) -> int:
        """The bytes that are written."""
        return self.rows * self.width

    def write(self, memory: int) -> int:
        """Copy the rows, block by block."""
        for path, offset, data in self._pieces(memory):
            with FileIO(path, "r+") as target:
                write_at(target, offset, data)
        return self.nbytes

    def verify(self, memory: int) -> int:
        """Compare the rows (TS708)."""
        checksum = 0
        for path, offset, data in self._pieces(memory):
            with reading(path, fresh=True) as target:
                checksum += compare(data.ravel(), read_at(target, offset, data.size), path)
        return checksum

    def _pieces(self, memory: int) -> Iterator[tuple[str, int, Bytes]]:
        """Yield what is written: file, place and bytes, in the order of the source."""
        with refusing(self.source), ZipFile(self.source) as archive:
            file = archive.open(self.member)
        with file:
            _next_bytes(file, self.start, self.source)
            if self.rows == 1 or self.width > _LONGEST_ROW:
                for each in _ranges("", 0, self.rows, self.width, self.targets):
                    for done in range(0, each.size, _BLOCK):
                        data = _next_bytes(file, min(_BLOCK, each.size - done), self.source)
                        yield each.target, each.offset + done, data
            else:
                step = max(1, min(memory // 2, _block(self.targets)) // self.width)
                for first in range(0, self.rows, step):
                    rows = min(step, self.rows - first)
                    data = _next_bytes(file, rows * self.width, self.source)
                    taken = _take_apart(data.reshape(rows, self.width), self.targets)
                    for to, part in zip(self.targets, taken, strict=True):
                        yield to.path, to.offset + first * to.width, part
            _next_bytes(file, 0, self.source)


def _next_bytes(file: IO[bytes], size: int, path: str) -> Bytes:
    """Return the next bytes of a member; TS705 for one that is damaged, as its checksum tells."""
    with refusing(path):
        data = file.read(size) if size else file.read(1)
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


def _take_apart(
    block: Bytes, targets: tuple[RowTarget, ...], before: Sequence[Bytes] = ()
) -> list[Bytes]:
    """Split a block's rows by target, into the memory of the block before if there is one."""
    if before and len(block) <= len(before[0]):
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
    parts = [part for _, part in columns]
    plan = SplitPlan("", block.shape, 1, tuple(part.shape[1] for part in parts))
    copies_into(block, plan, parts)
    return taken


def _copy_range(source: FileIO, target: FileIO, wanted: ByteRange, step: int) -> None:
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
            except OSError as error:
                if error.errno not in _NOT_BY_SYSTEM:
                    raise
                break
            if not count:
                break
            done += count
    for begin in range(done, wanted.size, step):
        data = read_at(source, wanted.start + begin, min(step, wanted.size - begin))
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
        "look at the disk and the memory of this machine",
    )


def sync_files(paths: Iterable[Path]) -> None:
    """Write files down to the disk, many at once, as file systems do that together."""
    left = iter(paths)
    with ThreadPoolExecutor(_SYNCED_AT_ONCE) as pool:
        while batch := list(islice(left, _SYNCED_AT_ONCE)):
            list(pool.map(_sync, batch))


def _sync(path: Path) -> None:
    with FileIO(path, "r+") as file:
        os.fsync(file.fileno())
