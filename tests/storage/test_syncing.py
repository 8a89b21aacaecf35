"""What is written is brought down to the disk, many files and folders at once."""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tensorsplit.storage import syncing


@pytest.mark.skipif(sys.platform == "win32", reason="folders are not synced here")
@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO])
def test_what_lacks_a_descriptor_beside_others_is_synced_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    folders, files = [tmp_path / str(each) for each in range(40)], []
    for folder in folders:
        folder.mkdir()
        files.append(folder / "file")
        files[-1].touch()
    synced: list[Path] = []

    def sync(path: Path) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise OSError(number, os.strerror(number))
        synced.append(path)

    monkeypatch.setattr(syncing, "sync_folder", sync)
    monkeypatch.setattr(syncing, "_sync_file", sync)
    calls: list[tuple[Callable[[], None], list[Path]]] = [
        (lambda: syncing.sync_folders(tmp_path), [tmp_path, *folders]),
        (lambda: syncing.sync_files(files), files),
    ]
    for call, expected in calls:
        synced.clear()
        if number == errno.EMFILE:
            call()
            assert sorted(synced) == sorted(expected)
        else:
            with pytest.raises(OSError, match=os.strerror(number)):
                call()
