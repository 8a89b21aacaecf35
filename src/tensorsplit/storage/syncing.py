"""Writing files and the names in folders down to the disk."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from io import FileIO
from itertools import compress, islice
from operator import not_
from pathlib import Path

_SYNCED_AT_ONCE = 16
_NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)
_NEVER_SYNCED = (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS)  # on this file system


def sync_folder(folder: Path) -> None:
    """Write the names in a folder down to the disk, on file systems that can."""
    if sys.platform == "win32":
        return
    try:
        number = os.open(folder, os.O_RDONLY)
    except PermissionError:  # a folder that may be written into, and not listed
        return
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in _NEVER_SYNCED:
            raise
    finally:
        os.close(number)


def sync_folders(folder: Path) -> None:
    """Write the names in a folder and in all folders below it down to the disk."""
    _each_of((Path(path) for path, _, _ in os.walk(folder)), sync_folder)


def sync_files(paths: Iterable[Path]) -> None:
    """Write files down to the disk."""
    _each_of(paths, _sync_file)


def _each_of(paths: Iterable[Path], sync: Callable[[Path], object]) -> None:
    """Write many down at once, as file systems do that together."""
    left = iter(paths)

    def is_synced(path: Path) -> bool:
        try:
            sync(path)
        except OSError as error:
            if error.errno not in _NO_DESCRIPTOR:
                raise
            return False
        return True

    with ThreadPoolExecutor(_SYNCED_AT_ONCE) as pool:
        while batch := list(islice(left, _SYNCED_AT_ONCE)):
            done = list((pool.map if len(batch) > 1 else map)(is_synced, batch))  # one: no thread
            for path in compress(batch, map(not_, done)):  # there may be enough for one at a time
                sync(path)


def _sync_file(path: Path) -> None:
    with FileIO(path, "r+") as file:
        os.fsync(file.fileno())
