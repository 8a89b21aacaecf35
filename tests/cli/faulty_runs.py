"""Run a command again and again, while one call of the system fails each time: see `test_faults`.

The words of this program are the library that makes calls fail, how many errors each call fails
with (all, or one in turn), the folder in which calls fail, the folder that is written into, one
that holds what is in it before, and the command.
"""

from __future__ import annotations

import ctypes
import errno
import io
import json
import os
import shutil
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from tensorsplit.cli import main

ERRORS = (
    *(errno.EIO, errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EACCES, errno.EMFILE),
    errno.EINTR,  # after which Python makes most calls again
)
MOST_CALLS = 1000
MAY_BE_SILENT = {
    *("open", "read", "close", "mkdir", "rmdir", "unlink", "unlinkat", "renameat2", "link"),
    *("copy_file_range", "sendfile64", "opendir", "readdir", "stat64", "lstat64", "fstat64"),
    *("fstatat64", "readlink", "flock", "chmod", "chown", "setxattr", "getxattr", "listxattr"),
}
"""Calls that are made again in another way, or that nothing is lost without."""


def held(folder: Path) -> dict[str, bytes | None]:
    """Return the files and folders in a folder."""
    paths = folder.rglob("*")
    return {str(path): path.read_bytes() if path.is_file() else None for path in paths}


def ended(words: list[str]) -> tuple[int, str]:
    """Run a command in this process; return its status and what it says on standard error."""
    text = io.StringIO()
    with redirect_stderr(text), redirect_stdout(io.StringIO()):
        try:
            main.main(words)
        except SystemExit as end:
            return int(end.code or 0), text.getvalue()
    raise AssertionError("a command ends its process")


class Faults:
    """One command, and what its folder holds before and after it."""

    def __init__(self, library: str, watched: str, folders: list[str], words: list[str]) -> None:
        self._library = ctypes.CDLL(library)
        self._library.failed_call.restype = ctypes.c_char_p
        self._folder, self._before = map(Path, folders)
        self._words = words
        self._watched = os.fsencode(watched)
        self._is_reading = int(Path(watched) != self._folder)
        status, said, _ = self.run(MOST_CALLS, 0)
        assert status == 0, said
        self._new = held(self._folder)
        shutil.rmtree(self._folder)
        shutil.copytree(self._before, self._folder)
        self._old = held(self._folder)
        assert self._new != self._old

    def run(self, calls: int, number: int) -> tuple[int, str, str | None]:
        """Run the command; return how it ended, and the name of the call that failed."""
        shutil.rmtree(self._folder, ignore_errors=True)
        shutil.copytree(self._before, self._folder)
        self._library.fail_after(self._watched, calls, number, self._is_reading)
        try:
            status, said = ended(self._words)
        finally:
            name = self._library.failed_call()
        return status, said, name and name.decode()

    def check(self, calls: int, number: int) -> str | None:
        """Let a call fail; return its name, or None if there are not so many calls."""
        status, said, name = self.run(calls, number)
        found, when = held(self._folder), f"{name} {calls} {os.strerror(number)}: {status} {said}"
        assert not [path for path in found if ".part" in path], when
        if found == self._new:
            assert status == 0 or "is written, but" in said, when
        else:
            assert found == self._old, when
            assert status != 0, when
            assert "is written" not in said, when
        is_silent = status == 0 and name is not None and number != errno.EINTR
        assert not is_silent or name in MAY_BE_SILENT, when
        return name


def run(library: str, errors: str, watched: str, *words: str) -> None:
    """Let each call of a command fail, and print the names of the calls."""
    faults = Faults(library, watched, list(words[:2]), list(words[2:]))
    names = set[str]()
    for calls in range(MOST_CALLS):
        numbers = ERRORS if errors == "all" else [ERRORS[calls % len(ERRORS)]]
        found = [faults.check(calls, number) for number in numbers]
        names.update(filter(None, found))
        if None in found:
            print(json.dumps(sorted(names)))
            return
    raise AssertionError("the command does not end")


if __name__ == "__main__":
    run(*sys.argv[1:])
