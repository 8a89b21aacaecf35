"""A disk that may lose power: what it keeps is what was synced, and no more than that."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tensorsplit.storage import drafts, outputs


def close_folder(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a folder fail to be listed."""
    scan = os.scandir

    def scanned(path: Any) -> Any:
        if Path(path) == closed:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", scanned)


class Disk:
    """Records what reaches the disk, from the calls that write down and rename.

    A file is kept as it was when it was synced; a folder keeps the names that it had when it was
    synced. What is renamed into place has to be kept as a whole by then: the names may reach the
    disk before the data does.

    Attributes:
        above: The folder that is watched; Python writes its compiled modules elsewhere.
        torn: What was renamed into place before all of it had reached the disk.
        renamed: What was renamed into place.
    """

    def __init__(self, above: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.above = above
        self.torn: list[Path] = []
        self.renamed: list[Path] = []
        self._kept: dict[int, bytes | dict[str, int]] = {}
        self._fsync = os.fsync
        monkeypatch.setattr(os, "fsync", self._sync)
        for name in ("rename", "replace"):
            monkeypatch.setattr(os, name, self._renaming(getattr(os, name)))
        monkeypatch.setattr(outputs, "_exchange", self._renaming(outputs._exchange))

    def _sync(self, number: int) -> None:
        self._fsync(number)
        self._kept[os.fstat(number).st_ino] = _content(Path(f"/proc/self/fd/{number}"))

    def _renaming(self, rename: Callable[..., Any]) -> Callable[..., Any]:
        def renamed(source: Path, target: Path, **options: Any) -> None:
            is_in_place = not any(map(drafts.is_draft, Path(target).parts))
            if is_in_place and Path(target).is_relative_to(self.above):
                self.torn += self.lost(Path(source))
                self.renamed.append(Path(target))
            rename(source, target, **options)

        return renamed

    def lost(self, path: Path) -> list[Path]:
        """Return the files and folders, of all that are there now, that would not be kept."""
        inside = sorted(path.iterdir()) if path.is_dir() else []
        below = [each for inner in inside for each in self.lost(inner)]
        is_kept = self._kept.get(path.stat().st_ino) == _content(path)
        return below if is_kept else [path, *below]

    def forgets(self, path: Path, above: Path) -> list[Path]:
        """Return the folders on the way to a file that would not hold the next name after a cut."""
        found = []
        while path != above:
            names = self._kept.get(path.parent.stat().st_ino, {})
            if not isinstance(names, dict) or names.get(path.name) != path.stat().st_ino:
                found.append(path.parent)
            path = path.parent
        return found


def _content(path: Path) -> bytes | dict[str, int]:
    if not stat.S_ISDIR(path.stat().st_mode):
        return path.read_bytes()
    return {each.name: each.lstat().st_ino for each in path.iterdir()}
