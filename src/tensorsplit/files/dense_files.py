"""Writing files in which tensors lie whole, element after element, behind a header."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from io import FileIO
from itertools import accumulate, islice
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from tensorsplit.core.errors import WITHIN_BYTE, SplitError
from tensorsplit.core.plan import SplitPlan
from tensorsplit.files.byte_copies import (
    LEAST_MEMORY,
    MemberCopy,
    RowTarget,
    compare,
    copies,
    read_at,
    reading,
    sync_files,
    write_at,
)
from tensorsplit.files.formats import Division, WriteTask

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


@dataclass(frozen=True, slots=True)
class Move:
    """Where the bytes of a stored tensor are, and where those of the new ones go.

    Attributes:
        source: The file that holds them.
        start: Where they begin.
        rows: The number of rows; see `byte_copies`.
        width: The bytes of a row.
        targets: Where they go; paths are names of files to write.
        member: The member of a zip archive that the file is; empty for a file of its own.
    """

    source: str
    start: int
    rows: int
    width: int
    targets: tuple[RowTarget, ...]
    member: str = ""


def move(
    division: Division,
    source: str,
    start: int,
    places: Sequence[tuple[str, int]],
    *,
    fortran: bool = False,
) -> Move:
    """Return how the bytes of a stored tensor become those of the new ones.

    Args:
        division: The tensors.
        source: The file of the stored one.
        start: Where its bytes begin there.
        places: For each new tensor its file, and where its bytes begin there.
        fortran: Whether the first axis is the one whose elements lie side by side.

    Raises:
        SplitError: TS709 if a part would begin or end within a byte.
    """
    tensor, plan = division.tensor, division.plan
    if plan is None:
        columns: list[tuple[tuple[int, int], ...]] = [((0, tensor.nbytes),)] * len(places)
        rows, width = 1, tensor.nbytes
    else:
        before, after = tensor.shape[: plan.axis], tensor.shape[plan.axis + 1 :]
        rows = prod(after if fortran else before) or 1  # one is enough where there are no bytes
        width = _whole(tensor.nbytes, rows, plan)
        bounds = [
            _whole(end * width, plan.input_shape[plan.axis] or 1, plan)
            for end in accumulate(plan.sizes, initial=0)
        ]
        columns = [
            tuple((bounds[part], bounds[part + 1] - bounds[part]) for part in each.parts)
            for each in division.outputs
        ]
    targets = tuple(RowTarget(*place, each) for place, each in zip(places, columns, strict=True))
    return Move(source, start, rows, width, targets)


def _whole(size: Any, count: Any, plan: SplitPlan) -> int:
    """Return a number of bytes divided by a count."""
    if size % count:
        raise SplitError(
            WITHIN_BYTE,
            "a part would begin or end within a byte, which holds several elements",
            "choose lengths of which each row takes whole bytes",
            operator=plan.operator,
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

    def __init__(self, files: Sequence[DenseFile], moves: Sequence[Move]) -> None:
        self._files, self._moves = files, moves
        self._draft = Path()
        self.nbytes = sum(each.rows * sum(t.width for t in each.targets) for each in moves)
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
        """Yield the headers, and the copies in the order of the moves."""
        headers = ((str(self._path(e.name)), e.header) for e in self._files if e.header)
        while some := tuple(islice(headers, _MOST_HEADERS)):
            yield HeaderWrites(some)
        for each in self._moves:
            targets = tuple(replace(t, path=str(self._path(t.path))) for t in each.targets)
            whole = (each.source, each.start, each.rows, each.width, targets)
            if each.member:
                yield MemberCopy(each.source, each.member, *whole[1:])
            else:
                yield from copies(*whole)

    def finish(self) -> None:
        """Write the files down to the disk."""
        sync_files(self._path(each.name) for each in self._files)

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
