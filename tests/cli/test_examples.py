"""``tensorsplit examples``: the files that the documentation uses."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tensorsplit.cli import examples_command
from tests.cli.conftest import Command

HOME = Path(__file__).parents[2] / "examples"


def test_every_file_is_written_as_it_is(tensorsplit: Command, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    wanted = {path.name: path.read_bytes() for path in HOME.iterdir() if path.is_file()}
    assert tensorsplit("examples", folder).out == f"{folder}: {len(wanted)} files\n"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == wanted
    assert tensorsplit("examples", folder).status == 0  # what is the same may stay


def test_what_a_killed_run_left_is_removed(tensorsplit: Command, tmp_path: Path) -> None:
    """It may have been killed when all files were in place."""
    folder = tmp_path / "here"
    assert tensorsplit("examples", folder).status == 0
    (folder / ".tensorsplit-0.part").mkdir()
    assert tensorsplit("examples", folder).status == 0
    assert not (folder / ".tensorsplit-0.part").exists()


def test_a_file_that_cant_be_read_is_named(
    tensorsplit: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system says of no descriptor which file it is of."""
    assert tensorsplit("examples", tmp_path).status == 0
    read = Path.read_bytes

    def failing(path: Path) -> bytes:
        if path.parent == tmp_path:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", failing)
    ended = tensorsplit("examples", tmp_path)
    assert ended.status == 2
    assert ended.err.startswith(f"tensorsplit: error: [TS702] {tmp_path / 'append'}")


def test_folders_are_left_out(
    tensorsplit: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip compiles the Python files of a package into a folder beside them."""
    home = tmp_path / "home"
    (home / "__pycache__").mkdir(parents=True)
    (home / "a.txt").write_text("a")
    monkeypatch.setattr(examples_command, "_home", lambda: home)
    assert tensorsplit("examples", tmp_path / "here").status == 0
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["a.txt"]


def test_a_folder_without_a_name_is_not_the_current_one(
    refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "the name is empty" in refused("TS702", "examples", "")
    assert not list(tmp_path.iterdir())


def test_a_file_of_someone_else_stays(refused: Callable[..., str], tmp_path: Path) -> None:
    theirs = tmp_path / "uneven.onnx"
    theirs.write_bytes(b"mine")
    assert str(theirs) in refused("TS702", "examples", tmp_path)
    assert [(path, path.read_bytes()) for path in tmp_path.iterdir()] == [(theirs, b"mine")]
