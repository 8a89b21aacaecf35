"""Writing files in which tensors lie whole, element after element, after a header."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from io import FileIO
from itertools import islice
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from tensorsplit.core.errors import WITHIN_BYTE, SplitError
from tensorsplit.core.plan import SplitPlan, offsets_of, sizes_of
from tensorsplit.files.byte_checks import PaddingCheck, SameBytes
from tensorsplit.files.byte_copies import LEAST_MEMORY, copies
from tensorsplit.files.byte_files import compare, read_at, reading, write_at
from tensorsplit.files.byte_moves import Move, RowPlace
from tensorsplit.files.formats import Division, NewTensor, Recast, WriteTask
from tensorsplit.storage.syncing import sync_files

_MOST_HEADERS = 256


@dataclass(frozen=True, slots=True)
class DenseFile:
    """A file to write.

    Attributes:
        name: Its path in the folder; empty if there is no folder but this file alone.
        header: What it begins with.
        size: Its size, with the header.
    """

    name: str
    header: bytes
    size: int


Place: TypeAlias = tuple[str, int, str]
"""Where the bytes of a tensor begin: the file, the place in it, and its member in an archive."""

_Columns: TypeAlias = tuple[tuple[int, int], ...]


def move_of(
    change: Recast,
    held: Sequence[Place],
    wanted: Sequence[Sequence[Place]],
    *,
    fortran: bool = False,
) -> tuple[Move, list[SameBytes | PaddingCheck]]:
    """Return how the bytes of stored tensors become those of new ones.

    Bytes that several stored tensors hold are read from the first one, and the others are compared
    with it. Padding is zeros, which are checked where they are read.

    Args:
        change: The tensors.
        held: Where each of the stored ones is.
        wanted: Where each of the new ones goes, perhaps to several files.
        fortran: Whether the first axis is the one whose elements lie side by side.

    Raises:
        SplitError: TS709 if a part would begin or end within a byte.
    """
    whole, plan = change.before.tensor, change.before.plan or change.after.plan
    rows = 1
    if plan is not None:
        outer = whole.shape[plan.axis + 1 :] if fortran else whole.shape[: plan.axis]
        rows = prod(outer) or 1  # one is enough where there are no bytes
    width = _whole(whole.nbytes, rows, plan)
    stored = [
        _row_place(place, change.before, output, width)
        for place, output in zip(held, change.before.outputs, strict=True)
    ]
    written = [
        _row_place(place, change.after, output, width)
        for places, output in zip(wanted, change.after.outputs, strict=True)
        for place in places
    ]
    first: dict[tuple[int, int], RowPlace] = {}  # that holds a column
    compared = []
    for each in stored:
        others = {first[column]: None for column in each.columns if column in first}
        compared += [SameBytes(whole.name, rows, other, each) for other in others]
        for column in each.columns:
            first.setdefault(column, each)
    sources = tuple(dict.fromkeys(first.values()))
    padded = max(start + size for each in (*stored, *written) for start, size in each.columns)
    checks: list[SameBytes | PaddingCheck] = [*compared]
    if change.before.plan is not None and padded > width:
        checks += [PaddingCheck(whole.name, rows, width, each) for each in sources]
    return Move(rows, max(width, padded), sources, tuple(written)), checks


def _row_place(place: Place, division: Division, tensor: NewTensor, width: int) -> RowPlace:
    path, offset, member = place
    return RowPlace(path, offset, _columns(division, tensor.parts, width), member)


def _columns(division: Division, parts: Sequence[int], width: int) -> _Columns:
    """Return which bytes of a row parts of the whole take."""
    plan = division.plan
    if plan is None:
        return _whole_row(width)
    length = division.tensor.shape[plan.axis] or 1
    starts, sizes = offsets_of(plan), sizes_of(plan)
    bounds = [(starts[part] * width, (starts[part] + sizes[part]) * width) for part in parts]
    ends = [(_whole(start, length, plan), _whole(end, length, plan)) for start, end in bounds]
    return tuple((start, end - start) for start, end in ends)


@lru_cache(maxsize=1024)
def _whole_row(width: int) -> _Columns:
    """Return the one range of bytes that is a whole row, shared by all tensors of this width."""
    return ((0, width),)


def _whole(size: Any, count: object, plan: SplitPlan | None) -> int:
    """Return a number of bytes divided by a count."""
    if size % count:
        raise SplitError(
            WITHIN_BYTE,
            "a part would begin or end within a byte, which holds several elements",
            "choose lengths of which each row takes whole bytes",
            operator=None if plan is None else plan.operator,
        )
    whole: int = size // count
    return whole


@dataclass(frozen=True, slots=True)
class HeaderWrites:
    """A task that writes what files begin with: path and bytes of each."""

    headers: tuple[tuple[str, bytes], ...]

    @property
    def nbytes(self) -> int:
        """Bytes of elements: none."""
        return 0

    def write(self, _memory: int) -> int:
        """Write the headers."""
        for path, data in self.headers:
            with FileIO(path, "r+") as file:
                write_at(file, 0, np.frombuffer(data, np.uint8))
        return 0

    def verify(self, _memory: int) -> int:
        """Compare the headers (TS708)."""
        checksum = 0
        for path, data in self.headers:
            with reading(path, fresh=True) as file:
                read = read_at(file, 0, len(data))
            checksum += compare(np.frombuffer(data, np.uint8), read, path)
        return checksum


class DenseWriting:
    """Files, all of whose headers and sizes are known beforehand."""

    least_memory = LEAST_MEMORY

    def __init__(
        self,
        files: Sequence[DenseFile],
        moves: Sequence[Move],
        checks: Sequence[SameBytes | PaddingCheck] = (),
    ) -> None:
        self._files, self._moves, self._checks = files, moves, checks
        self._draft = Path()
        self.nbytes = sum(each.rows * each.written for each in moves)
        self.space = sum(each.size for each in files)

    @property
    def names(self) -> Collection[str] | None:
        """The names at the top of the folder; None for one file."""
        names = {each.name.partition("/")[0] for each in self._files}
        return None if names == {""} else names

    def prepare(self, draft: str) -> None:
        """Allocate the files."""
        self._draft = Path(draft)
        for each in self._files:
            path = self._path(each.name)
            path.parent.mkdir(parents=True, exist_ok=True)
            with FileIO(path, "x") as file:
                _allocate(file, each.size)

    def tasks(self) -> Iterator[WriteTask]:
        """Yield the checks, the headers, and the copies in the order of the moves."""
        yield from self._checks
        headers = ((str(self._path(e.name)), e.header) for e in self._files if e.header)
        while some := tuple(islice(headers, _MOST_HEADERS)):
            yield HeaderWrites(some)
        yield from copies(map(self._placed, self._moves))

    def finish(self) -> None:
        """Write the files down to the disk."""
        sync_files(self._path(each.name) for each in self._files)

    def _placed(self, move: Move) -> Move:
        targets = (replace(each, path=str(self._path(each.path))) for each in move.targets)
        return replace(move, targets=tuple(targets))

    def _path(self, name: str) -> Path:
        return self._draft / name


def _allocate(file: FileIO, size: int) -> None:
    """Give a file its size, with space on the disk where the file system can allocate it."""
    if size and hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                raise
    file.truncate(size)
