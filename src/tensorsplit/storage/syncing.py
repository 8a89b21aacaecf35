"""Writing files and the names in folders down to the disk."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import compress, islice
from operator import not_
from pathlib import Path
from typing import NamedTuple

from tensorsplit.storage.paths import walk

_SYNCED_AT_ONCE = 16
_NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)
_NEVER_SYNCED = (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS)  # on this file system


def sync_folder(folder: Path) -> None:
    """Write the names in a folder down to the disk, on file systems that can."""
    _sync(_opened_folder(folder))


def sync_folders(folder: Path) -> None:
    """Write the names in a folder and in all folders below it down to the disk."""
    _sync_each((Path(path) for path, _, _ in walk(folder)), _opened_folder)


def sync_files(paths: Iterable[Path]) -> None:
    """Write files down to the disk."""
    _sync_each(paths, _opened_file)


class _Opened(NamedTuple):
    """The file that is open for syncing, if it is, and the errors that mean that it never is."""

    number: int | None
    ignored: tuple[int, ...] = ()


def _opened_folder(folder: Path) -> _Opened:
    if sys.platform == "win32":
        return _Opened(None)
    try:
        return _Opened(os.open(folder, os.O_RDONLY), _NEVER_SYNCED)
    except PermissionError:  # a folder that may be written into, and not listed
        return _Opened(None)


def _opened_file(path: Path) -> _Opened:
    return _Opened(os.open(path, os.O_RDWR))


def _sync(opened: _Opened) -> None:
    """Write down what is open, and close it; never again after a failure, which loses data."""
    if opened.number is None:
        return
    try:
        os.fsync(opened.number)
    except OSError as error:
        if error.errno not in opened.ignored:
            raise
    finally:
        os.close(opened.number)


def _sync_each(paths: Iterable[Path], open_path: Callable[[Path], _Opened]) -> None:
    """Write many down at once, as file systems do that together."""
    left = iter(paths)

    def is_synced(path: Path) -> bool:
        try:
            opened = open_path(path)
        except OSError as error:
            if error.errno not in _NO_DESCRIPTOR:
                raise
            return False
        _sync(opened)
        return True

    with ThreadPoolExecutor(_SYNCED_AT_ONCE) as pool:
        while batch := list(islice(left, _SYNCED_AT_ONCE)):
            done = list((pool.map if len(batch) > 1 else map)(is_synced, batch))  # one: no thread
            for path in compress(batch, map(not_, done)):  # there may be enough for one at a time
                _sync(open_path(path))
