"""What is written is brought down to the disk, many files and folders at once."""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tensorsplit.storage import syncing
from tests.storage.disk import close_folder


@pytest.mark.skipif(sys.platform == "win32", reason="folders are not synced here")
@pytest.mark.parametrize(
    ("call", "number", "is_whole"),
    [
        ("open", errno.EMFILE, True),
        ("open", errno.EIO, False),
        ("fsync", errno.EMFILE, False),
        ("fsync", errno.EIO, False),
    ],
)
def test_what_lacks_a_descriptor_beside_others_is_synced_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int, is_whole: bool
) -> None:
    """After a sync that failed, the next one says nothing of what was lost."""
    folders, files = [tmp_path / str(each) for each in range(40)], []
    for folder in folders:
        folder.mkdir()
        files.append(folder / "file")
        files[-1].touch()
    synced: list[int] = []
    original: dict[str, Any] = {"open": os.open, "fsync": os.fsync}

    def of(name: str) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            if name == call and threading.current_thread() is not threading.main_thread():
                raise OSError(number, os.strerror(number))
            if name == "fsync":
                synced.append(os.fstat(given[0]).st_ino)
            return original[name](*given)

        return run

    for name in original:
        monkeypatch.setattr(os, name, of(name))
    calls: list[tuple[Callable[[], None], list[Path]]] = [
        (lambda: syncing.sync_folders(tmp_path), [tmp_path, *folders]),
        (lambda: syncing.sync_files(files), files),
    ]
    for sync, expected in calls:
        synced.clear()
        if is_whole:
            sync()
            assert sorted(synced) == sorted(path.stat().st_ino for path in expected)
        else:
            with pytest.raises(OSError, match=os.strerror(number)):
                sync()


def test_a_folder_that_cannot_be_listed_is_not_said_to_be_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "closed" / "inner").mkdir(parents=True)
    close_folder(tmp_path / "closed", monkeypatch)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        syncing.sync_folders(tmp_path)
