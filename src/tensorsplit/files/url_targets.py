"""Targets at URLs, on storage that can't rename: what makes them readable is written last."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from fsspec.core import url_to_fs

from tensorsplit.core.errors import UNWRITABLE, SplitError, show_path

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_MARKER = ".tensorsplit-unfinished"


@contextlib.contextmanager
def written_at(url: str, names: Collection[str] | None, token: str) -> Iterator[None]:
    """Write a folder at a URL during the block; if that fails, what was written is removed.

    What a killed run has left is removed first: its marker says what that is. Two runs that write
    to one URL at once are not kept apart.

    Args:
        url: Where it is written.
        names: The names in the folder; None for a file, which is refused.
        token: The name of a file that may be written there meanwhile.

    Raises:
        SplitError: TS702 if one of the names is there already, or nothing can be written.
    """
    try:
        fs, path = url_to_fs(url)
        marker = f"{path}/{_MARKER}"
        if fs.exists(marker):
            _remove(fs, path, fs.cat_file(marker).decode().split("/"))
        there = next((name for name in names or ("",) if fs.exists(f"{path}/{name}")), None)
        if there is not None:
            raise ValueError(f"{there} is there, and nothing can be replaced as a whole at a URL")
        fs.makedirs(path, exist_ok=True)
        fs.pipe_file(marker, "/".join(names or ()).encode())
    except Exception as error:  # noqa: BLE001 - each kind of storage has its own
        problem = f"cannot write to {show_path(url)}: {error}; nothing was written"
        raise SplitError(UNWRITABLE, problem, "give another URL") from None
    with contextlib.ExitStack() as cleaning:
        cleaning.callback(_remove, fs, path, [token, _MARKER])
        with contextlib.ExitStack() as undoing:
            undoing.callback(_remove, fs, path, names or ())
            yield
            undoing.pop_all()


def _remove(fs: AbstractFileSystem, path: str, names: Collection[str]) -> None:
    for name in set(names) - {"", ".", ".."}:
        with contextlib.suppress(FileNotFoundError):
            fs.rm(f"{path}/{name}", recursive=True)
