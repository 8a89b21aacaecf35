"""Reading and writing parts of files, without buffers, and comparing what was written."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from io import FileIO
from typing import Any, TypeAlias

import numpy as np

from tensorsplit.core.errors import UNREADABLE_TENSORS, UNVERIFIED, SplitError, show_path
from tensorsplit.files.sources import refusing

Bytes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"

BLOCK = 1 << 20
"""How many bytes are read at once."""


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


def in_blocks(start: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield start and size of each block of some bytes; one block is in memory at a time."""
    for begin in range(start, start + size, BLOCK):
        yield begin, min(BLOCK, start + size - begin)
