"""Writing files so that an interrupted or failed command leaves what was there before."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, TypeAlias

from tensorsplit.core.errors import UNWRITABLE, SplitError

Writer: TypeAlias = Callable[[IO[bytes]], object]
"""Writes the content of one file."""


def write_files(files: Mapping[Path, Writer]) -> None:
    """Write files beside their targets, and rename all of them into place once all are whole.

    Folders that are missing are made; those made here are removed again if nothing is written.

    Args:
        files: What writes each file, by its path.

    Raises:
        SplitError: TS702 if one of them can't be written; none of them is then.
    """
    made: list[Path] = []
    drafts: dict[Path, Path] = {}
    try:
        for target, writer in files.items():
            with _refusing(target):
                _make_folder(target.parent, made)
                _draft(target, writer, drafts)
        for target, draft in list(drafts.items()):
            with _refusing(target):
                draft.replace(target)
            del drafts[target]
    finally:
        for draft in drafts.values():
            draft.unlink(missing_ok=True)
        for folder in reversed(made):
            with contextlib.suppress(OSError):  # not empty: it is in use
                folder.rmdir()


def _draft(target: Path, writer: Writer, drafts: dict[Path, Path]) -> None:
    """Write the content into a file of its own beside the target, down to the disk."""
    if target.is_dir():
        raise SplitError(UNWRITABLE, f"{target} is a folder", "give the name of a file")
    handle, name = tempfile.mkstemp(prefix=".tensorsplit-", suffix=".part", dir=target.parent)
    drafts[target] = Path(name)
    with os.fdopen(handle, "wb") as file:
        writer(file)
        file.flush()
        os.fsync(file.fileno())
    mode = target.stat().st_mode if target.exists() else 0o666 & ~_umask()
    Path(name).chmod(mode & 0o777)


def _make_folder(folder: Path, made: list[Path]) -> None:
    """Make a folder and those above it; what was missing is added to `made`, from the top."""
    missing: list[Path] = []
    while not folder.exists():
        missing.insert(0, folder)
        folder = folder.parent
    for path in missing:
        path.mkdir()
        made.append(path)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def _refusing(target: Path) -> Iterator[None]:
    """Turn what the file system raises into a refusal."""
    try:
        yield
    except OSError as error:
        raise SplitError(
            UNWRITABLE,
            f"{target}: {error.strerror or error}",
            "give a place that can be written; nothing was",
        ) from None
