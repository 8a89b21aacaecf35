"""Output files appear whole and together, or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from tensorsplit.cli.files import write_files
from tests.refusals import refused


def content(data: bytes) -> Callable[[IO[bytes]], object]:
    return lambda file: file.write(data)


def breaking(file: IO[bytes]) -> None:
    file.write(b"half")
    raise OSError(28, "No space left on device")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*"))


def test_files_are_written_into_new_folders(tmp_path: Path) -> None:
    write_files({tmp_path / "a" / "b" / "one": content(b"1"), tmp_path / "two": content(b"2")})
    assert (tmp_path / "a" / "b" / "one").read_bytes() == b"1"
    assert names(tmp_path) == ["a", "b", "one", "two"]


def test_a_file_that_fails_leaves_everything_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"before")
    files = {
        tmp_path / "one": content(b"after"),
        tmp_path / "new" / "two": content(b"2"),
        tmp_path / "three": breaking,
    }
    with refused("TS702", "three", "No space left"):
        write_files(files)
    assert (tmp_path / "one").read_bytes() == b"before"
    assert names(tmp_path) == ["one"]


def test_ctrl_c_leaves_everything_as_it_was(tmp_path: Path) -> None:
    def interrupted(file: IO[bytes]) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_files({tmp_path / "one": content(b"1"), tmp_path / "two": interrupted})
    assert names(tmp_path) == []


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "two").mkdir()
    with refused("TS702", "two is a folder"):
        write_files({tmp_path / "one": content(b"1"), tmp_path / "two": content(b"2")})
    assert names(tmp_path) == ["two"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_or_a_device_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with refused("TS702", "no regular file"):
        write_files({tmp_path / "one": content(b"1"), tmp_path / "pipe": content(b"2")})
    assert names(tmp_path) == ["pipe"]
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="Linux links /dev/stdout to it")
def test_a_link_to_a_stream_is_not_replaced(tmp_path: Path) -> None:
    link = tmp_path / "stdout"
    with (tmp_path / "redirected").open("wb") as file:
        link.symlink_to(f"/proc/self/fd/{file.fileno()}")
        with refused("TS702", "no regular file"):
            write_files({link: content(b"1")})
    assert link.is_symlink()


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with refused("TS702", "Not a directory"):
        write_files({tmp_path / "file" / "below": content(b"1")})


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_permissions_are_those_of_the_umask_or_of_the_file_replaced(tmp_path: Path) -> None:
    (tmp_path / "old").touch(mode=0o600)
    before = os.umask(0o027)
    try:
        write_files({tmp_path / "new": content(b"1"), tmp_path / "old": content(b"2")})
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "old").stat().st_mode & 0o777 == 0o600
