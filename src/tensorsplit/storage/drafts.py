"""Drafts: folders for what is not whole yet.

A draft is beside its target and called ``.tensorsplit-*.part``; its run keeps it locked. The next
run that writes there removes those whose run was killed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from uuid import uuid4

from tensorsplit.core.errors import SplitWarning

if sys.platform != "win32":
    import fcntl

_DRAFTS = ".tensorsplit-*.part"


@contextlib.contextmanager
def drafts_in(folder: Path) -> Iterator[Path]:
    """Make a folder in a folder, for what is not whole yet; in the end it is removed."""
    sweep(folder)
    with contextlib.ExitStack() as cleaning:
        while True:
            drafts = folder / f".tensorsplit-{uuid4().hex}.part"
            cleaning.callback(_remove, drafts)  # Ctrl-C may come before mkdir returns
            drafts.mkdir(0o700)
            cleaning.enter_context(locked(drafts))
            if drafts.exists():
                break  # else another run took it for one that was left, before it was locked
        yield drafts


def _remove(drafts: Path) -> None:
    """Remove a folder of drafts; warn of what can't be removed."""
    try:
        shutil.rmtree(drafts)
    except FileNotFoundError:  # another run has swept it
        pass
    except OSError as error:
        _remove_in_steps(drafts)
        if drafts.exists():
            reason = error.strerror or error
            problem = f"{drafts} can't be removed: {reason}; the next run here tries again"
            warnings.warn(problem, SplitWarning, stacklevel=2)
    except BaseException:  # Ctrl-C, or another signal
        _remove_in_steps(drafts)
        raise


def _remove_in_steps(drafts: Path) -> None:
    """Remove all that can be removed, by one descriptor at a time, as there may be no more."""
    for folder, folders, files in os.walk(drafts, topdown=False):
        for name in files:
            with contextlib.suppress(OSError):
                Path(folder, name).unlink()
        for name in folders:
            with contextlib.suppress(OSError):
                Path(folder, name).rmdir()
    with contextlib.suppress(OSError):
        drafts.rmdir()


def is_draft(name: str) -> bool:
    """Return whether a folder of this name holds what is not whole yet."""
    return fnmatch(name, _DRAFTS)


def sweep(folder: Path) -> None:
    """Remove drafts that no run holds any more; the system releases the locks of one that ends."""
    if sys.platform == "win32":
        return
    found: list[Path] = []
    with contextlib.suppress(OSError):  # it can't be listed
        found += folder.glob(_DRAFTS)
    for drafts in found:
        with contextlib.suppress(OSError):  # it is another's, or in use
            number = os.open(drafts, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(drafts) if drafts.is_dir() else drafts.unlink()
            finally:
                os.close(number)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, where the system has locks and permits it."""
    with contextlib.ExitStack() as holding:
        if sys.platform != "win32":
            with contextlib.suppress(OSError):
                number = os.open(folder, os.O_RDONLY)
                holding.callback(_close, number)
                fcntl.flock(number, fcntl.LOCK_EX)
        yield


def _close(number: int) -> None:
    """Close a descriptor that nothing was written to; the system releases it in any case."""
    with contextlib.suppress(OSError):
        os.close(number)
