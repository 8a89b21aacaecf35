"""Paths of outputs: where they lead, and which names a file can have."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from tensorsplit.core.errors import UNWRITABLE, SplitError, fix_of, show_path, words_of

ELSEWHERE = "give another path"
_MOST_LINKS = 40


def place_of(target: Path) -> Path:
    """Return the file that an output is, at the end of its links; streams are refused."""
    check_name(os.fspath(target))
    place = target
    for _ in range(_MOST_LINKS):
        place = in_real_folder(place)
        if place.is_relative_to("/proc"):  # as /dev/stdout is
            raise unwritable(f"{target} is not a regular file", "give the name of a file")
        if not place.is_symlink():
            return place
        place = place.parent / place.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def encoded_name(path: str) -> bytes | None:
    """Return a path as the system has it; None for one with a NUL, or with half a character."""
    try:
        octets = os.fsencode(path)
    except UnicodeEncodeError:
        return None
    return None if b"\0" in octets else octets


def check_name(path: str) -> None:
    """Refuse (TS702) what no file can be called."""
    if encoded_name(path) is None:
        raise unwritable(f"{show_path(path)} can't be the name of a file")


def in_real_folder(path: Path) -> Path:
    """Return a path whose folder is the real one; what it names may be a link."""
    return real_path(path.parent) / path.name


def real_path(path: Path) -> Path:
    """Return a path without links; one in a loop stays, where `Path.resolve` raises what it may."""
    return Path(os.path.realpath(path))


def status_of(place: Path) -> os.stat_result | None:
    """Return the system's status of a file; None if it is not there."""
    try:
        return place.stat()
    except FileNotFoundError:
        return None


def walk(folder: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Go through a folder as `os.walk` does, but raise an OSError for what can't be listed."""

    def fail(error: OSError) -> None:
        raise error

    return os.walk(folder, onerror=fail)


def why_unread(error: Exception, path: str) -> str:
    """Return why a file could not be read; of one that only others may read, whose it is."""
    if not isinstance(error, PermissionError):
        return words_of(error)
    return f"{words_of(error)}{_owner_of(os.fsdecode(error.filename or path))}"


def fix_unread(error: Exception, otherwise: str) -> str:
    """Return the fix for a file that could not be read."""
    if isinstance(error, PermissionError):
        return "run as a user who may read it, or ask for permission to read it"
    return fix_of(error, otherwise)


def _owner_of(path: str) -> str:
    """Return whose a path is, and who may read it; empty where that can't be known either."""
    try:
        found = Path(path).stat()
    except OSError:
        return ", on the way to it"
    owner = str(found.st_uid)
    if sys.platform != "win32":
        import pwd

        with contextlib.suppress(KeyError):
            owner = pwd.getpwuid(found.st_uid).pw_name
    return f"; it belongs to {owner}, and its mode is {stat.filemode(found.st_mode)}"


def unwritable(problem: str, fix: str = ELSEWHERE) -> SplitError:
    """Return the refusal (TS702) of an output."""
    return SplitError(UNWRITABLE, problem, fix)
