"""Targets at URLs, on storage that can't rename: what makes them readable is written last."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING
from uuid import uuid4

from fsspec.core import url_to_fs

from tensorsplit.files.sources import refusing_writes

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_MARKER = ".tensorsplit-unfinished"


@contextlib.contextmanager
def written_at(url: str, names: Collection[str], token: str) -> Iterator[Callable[[], None]]:
    """Write a folder at a URL during the block; if that fails, what was written is removed.

    A marker names the run that is still writing. Files that a killed run has left are removed
    first. Such storage has no lock that ends with a killed run: of two runs at once, the later one
    takes over the marker. The earlier one finds that out by the check that is yielded, and stops.

    Args:
        url: Where it is written.
        names: The names in the folder.
        token: The name of a file that may be written there meanwhile.

    Raises:
        SplitError: TS702 if one of the names is there already, nothing can be written, or another
            run has taken over.
    """
    run, ours = uuid4().hex, set(names)
    with refusing_writes(url):
        fs, path = url_to_fs(url)
        fs.invalidate_cache(path)
        marker = f"{path}/{_MARKER}"
        left = set(_read(fs, marker)[1:])
        if there := [name for name in sorted(ours - left) if fs.exists(f"{path}/{name}")]:
            raise ValueError(
                f"{there[0]} is there, and nothing can be replaced as a whole at a URL"
            )
        fs.pipe_file(marker, "/".join((run, *ours, *left)).encode())
        _remove(fs, path, left)

    def check() -> None:
        with refusing_writes(url):
            if _read(fs, marker)[0] != run:
                raise ValueError("another run has begun to write there")

    try:
        yield check
    except BaseException:
        with contextlib.suppress(Exception):  # what stays is removed by the next run
            if _read(fs, marker)[0] == run:
                _remove(fs, path, ours | {token, _MARKER})
        raise
    with refusing_writes(url):
        _remove(fs, path, {token, _MARKER})


def _read(fs: AbstractFileSystem, marker: str) -> list[str]:
    """Return the run that a marker is of, and the names that it writes."""
    try:
        return str(fs.cat_file(marker).decode()).split("/")
    except FileNotFoundError:
        return [""]


def _remove(fs: AbstractFileSystem, path: str, names: Collection[str]) -> None:
    for name in set(names) - {"", ".", ".."}:
        with contextlib.suppress(FileNotFoundError):
            fs.rm(f"{path}/{name}", recursive=True)
