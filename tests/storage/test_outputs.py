"""Output files appear whole and together, or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import pytest

from tensorsplit.core.errors import SplitError, SplitWarning
from tensorsplit.storage.outputs import Brought, Outputs, drafts_in
from tests.refusals import refused


def content(data: bytes) -> Callable[[IO[bytes]], object]:
    return lambda file: file.write(data)


def breaking(file: IO[bytes]) -> None:
    file.write(b"half")
    raise OSError(28, "No space left on device")


def write_files(files: dict[Path, Any], **settings: Any) -> None:
    Outputs(**{"overwrite": True, **settings}).write(files)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*"))


def test_missing_folders_are_made_where_that_is_asked_for(tmp_path: Path) -> None:
    files = {tmp_path / "a" / "b" / "one": content(b"1"), tmp_path / "two": content(b"2")}
    with refused("TS702", "there is no folder", "--create-dirs"):
        write_files(files)
    assert names(tmp_path) == []
    write_files(files, create_dirs=True)
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
        write_files(files, create_dirs=True)
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
    with refused("TS702", "not a regular file"):
        write_files({tmp_path / "one": content(b"1"), tmp_path / "pipe": content(b"2")})
    assert names(tmp_path) == ["pipe"]
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="Linux links /dev/stdout to it")
def test_a_link_to_a_stream_is_not_replaced(tmp_path: Path) -> None:
    link = tmp_path / "stdout"
    with (tmp_path / "redirected").open("wb") as file:
        link.symlink_to(f"/proc/self/fd/{file.fileno()}")
        with refused("TS702", "not a regular file"):
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


@pytest.mark.skipif(os.name != "posix", reason="owners are those of POSIX")
def test_owner_and_attributes_of_the_file_replaced_are_kept(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.touch(mode=0o640)
    if os.geteuid() == 0:
        os.chown(old, 12345, 54321)
    before = old.stat()
    try:
        os.setxattr(old, "user.note", b"mine")
    except (OSError, AttributeError):
        noted = False
    else:
        noted = True
    write_files({old: content(b"2")})
    after = old.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )
    assert after.st_ino != before.st_ino
    assert not noted or os.getxattr(old, "user.note") == b"mine"


@pytest.mark.parametrize("target", ["here", "other/there", "other/new"])
def test_a_link_is_written_through(tmp_path: Path, target: str) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "here").write_bytes(b"before")
    (tmp_path / "other" / "there").write_bytes(b"before")
    (tmp_path / "first").symlink_to("second")
    (tmp_path / "second").symlink_to(target)
    write_files({tmp_path / "first": content(b"after")})
    assert (tmp_path / "first").readlink() == Path("second")
    assert (tmp_path / "second").readlink() == Path(target)
    assert (tmp_path / target).read_bytes() == b"after"


def test_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("link")
    with refused("TS702", "symbolic links"):
        write_files({tmp_path / "link": content(b"1")})


@pytest.mark.parametrize("kind", ["itself", "hard", "symbolic", "two links", "other name"])
def test_what_is_read_is_not_written(tmp_path: Path, kind: str) -> None:
    read, target = tmp_path / "read", tmp_path / "target"
    read.write_bytes(b"before")
    match kind:
        case "itself":
            target = read
        case "hard":
            target.hardlink_to(read)
        case "symbolic":
            target.symlink_to(read)
        case "two links":
            (tmp_path / "between").symlink_to("read")
            target.symlink_to("between")
        case _:
            (tmp_path / "folder").mkdir()
            target = tmp_path / "folder" / ".." / "read"
    with refused("TS702", "is a file that is read"):
        write_files({target: content(b"after")}, reads=[read])
    with refused("TS702", "is a file that is read"):
        Outputs(files=[target], reads=[tmp_path / "missing", read]).check()
    assert read.read_bytes() == b"before"


@pytest.mark.parametrize(("name", "may"), [("model", True), ("link", False), ("hard", False)])
def test_what_may_be_replaced_is_called_as_it_is(tmp_path: Path, name: str, may: bool) -> None:
    model = tmp_path / "model"
    model.write_bytes(b"before")
    (tmp_path / "link").symlink_to("model")
    (tmp_path / "hard").hardlink_to(model)
    outputs = Outputs(files=[tmp_path / name], reads=[model], replaceable=model)
    if not may:
        with refused("TS702", "is a file that is read"):
            outputs.check()
        return
    outputs.check()
    outputs.reads.append(tmp_path / "hard")  # its data is in the model's own file
    with refused("TS702", "is a file that is read"):
        outputs.check()


def test_a_model_read_through_a_link_may_be_replaced_by_both_names(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"before")
    link = tmp_path / "link"
    link.symlink_to("real")
    for name in ("link", "real"):
        outputs = Outputs([tmp_path / name], reads=[link], replaceable=link)
        outputs.check()
        outputs.write({tmp_path / name: name})
        assert link.is_symlink()
        assert link.read_bytes() == name.encode()


def test_no_file_is_written_twice(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("one")
    with refused("TS702", "written twice"):
        write_files({tmp_path / "one": content(b"1"), tmp_path / "link": content(b"2")})
    with refused("TS702", "written twice"):
        Outputs([tmp_path / "one", tmp_path / "one"]).check()
    assert names(tmp_path) == ["link"]


def test_the_drafts_of_a_run_that_was_killed_are_swept(tmp_path: Path) -> None:
    (tmp_path / ".tensorsplit-1.part").mkdir()
    (tmp_path / ".tensorsplit-1.part" / "0").touch()
    (tmp_path / ".tensorsplit-2.part").touch()
    (tmp_path / ".tensorsplit-3.txt").touch()
    with drafts_in(tmp_path) as alive:
        (alive / "0").touch()
        write_files({tmp_path / "one": content(b"1")})
        assert names(tmp_path) == sorted([alive.name, "0", ".tensorsplit-3.txt", "one"])
    assert names(tmp_path) == [".tensorsplit-3.txt", "one"]


@pytest.mark.skipif(os.name != "posix", reason="links are those of POSIX")
def test_a_link_that_is_called_like_a_draft_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(b"mine")
    (tmp_path / ".tensorsplit-1.part").symlink_to("mine")
    write_files({tmp_path / "one": content(b"1")})
    assert names(tmp_path) == [".tensorsplit-1.part", "mine", "one"]


@pytest.mark.parametrize("is_copy", [False, True])
def test_what_is_brought_replaces_nothing(tmp_path: Path, is_copy: bool) -> None:
    source, target, model = (tmp_path / name for name in ("source", "target", "model"))
    source.write_bytes(b"weights")
    files = {target: Brought(source, is_copy), model: content(b"1")}
    write_files(files, reads=[source])
    assert target.read_bytes() == b"weights"
    assert target.samefile(source) is not is_copy
    write_files(files, reads=[source])  # it is there already
    target.unlink()
    target.write_bytes(b"others'")
    model.unlink()
    with refused("TS702", "holds other data"):
        write_files(files, reads=[source])
    assert names(tmp_path) == ["source", "target"]


def test_what_was_brought_goes_if_the_model_cant_be_written(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"weights")
    for is_copy in (False, True):
        with refused("TS702", "No space left"):
            write_files({tmp_path / "w": Brought(source, is_copy), tmp_path / "m": breaking})
    assert names(tmp_path) == ["source"]


def test_files_that_were_replaced_are_put_back_if_another_one_cant_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one").write_bytes(b"before")
    replace = os.replace

    def failing(source: Path, target: Path) -> None:
        if Path(target).name == "three":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        replace(source, target)

    monkeypatch.setattr(os, "replace", failing)
    with refused("TS702", "three", "nothing was written"):
        write_files({tmp_path / name: content(b"after") for name in ("one", "two", "three")})
    assert names(tmp_path) == ["one"]
    assert (tmp_path / "one").read_bytes() == b"before"


def test_of_two_runs_at_once_all_files_are_of_one(tmp_path: Path) -> None:
    def write(text: str) -> None:
        write_files({tmp_path / f"{number}": text for number in range(40)})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, "abcdefgh"))
    assert len({path.read_text() for path in tmp_path.iterdir()}) == 1
    assert len(names(tmp_path)) == 40


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EROFS, errno.EDQUOT])
@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("is_folder", [False, True])
def test_a_folder_that_is_not_written_down_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, is_there: bool, is_folder: bool
) -> None:
    """Each call that writes down fails once: the target is as before, or new and said to be."""
    sync, target = os.fsync, tmp_path / "out"

    def write(file: Path, data: bytes) -> None:
        with Outputs(overwrite=True).replaced(target, ["x"] if is_folder else None) as draft:
            if is_folder:
                draft.mkdir()
            file = draft / "x" if is_folder else draft
            file.write_bytes(data)

    def held() -> bytes | None:
        place = target / "x" if is_folder else target
        return place.read_bytes() if place.exists() else None

    calls = last = 0

    def failing(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == last:
            raise OSError(number, os.strerror(number))
        sync(descriptor)

    refusal: SplitError | None = None
    while last == 0 or refusal is not None:
        if target.exists() and not is_there:
            shutil.rmtree(target) if is_folder else target.unlink()
        if is_there:
            write(target, b"before")
        before, calls, last, refusal = held(), 0, last + 1, None
        monkeypatch.setattr(os, "fsync", failing)
        try:
            write(target, b"after")
        except SplitError as error:
            refusal = error
        monkeypatch.setattr(os, "fsync", sync)
        if refusal is not None:
            said = str(refusal)
            is_new = "is written, but" in said
            assert os.strerror(number) in said
            assert ("nothing was written" in said) != is_new
            assert held() == (b"after" if is_new else before)
        assert names(tmp_path) == sorted({*(["out"] if target.exists() else []), *inside(target)})
    assert calls < last
    assert last > 1
    assert held() == b"after"


def inside(folder: Path) -> list[str]:
    return names(folder) if folder.is_dir() else []


def test_a_file_system_that_never_syncs_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(os, "fsync", failing)
    write_files({tmp_path / "one": content(b"1")})
    assert (tmp_path / "one").read_bytes() == b"1"


def test_a_written_file_whose_folder_is_not_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", failing)
    with refused("TS702", "one is written, but", os.strerror(errno.EIO)):
        write_files({tmp_path / "one": content(b"1")})
    assert (tmp_path / "one").read_bytes() == b"1"


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_cannot_be_removed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overwrite: bool
) -> None:
    target = tmp_path / "out"
    if overwrite:
        target.mkdir()
        (target / "x").write_bytes(b"before")

    def failing(*_: Any, **__: Any) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "rmdir", failing)
    with pytest.warns(SplitWarning, match=rf"\.part can't be removed: {os.strerror(errno.EIO)}"):
        replace_with_a_folder(target, overwrite=overwrite)
    assert (target / "x").read_bytes() == b"after"
    monkeypatch.undo()
    write_files({tmp_path / "next": content(b"1")})
    assert names(tmp_path) == ["next", "out", "x"]


def replace_with_a_folder(target: Path, *, overwrite: bool) -> None:
    with Outputs(overwrite=overwrite).replaced(target, ["x"]) as draft:
        draft.mkdir()
        (draft / "x").write_bytes(b"after")


@pytest.mark.parametrize("fails", [False, True])
def test_folders_that_no_system_call_exchanges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    target, rename = tmp_path / "out", os.rename
    target.mkdir()
    (target / "x").write_bytes(b"before")

    def renaming(source: Path, place: Path) -> None:
        if fails and Path(place) == target and Path(source).suffix != ".before":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rename(source, place)

    monkeypatch.setattr(os, "rename", renaming)
    monkeypatch.setattr("tensorsplit.storage.outputs.ctypes.CDLL", lambda *_, **__: object())
    if fails:
        with refused("TS702", os.strerror(errno.EIO), "nothing was written"):
            replace_with_a_folder(target, overwrite=True)
    else:
        replace_with_a_folder(target, overwrite=True)
    assert (target / "x").read_bytes() == (b"before" if fails else b"after")
    assert names(tmp_path) == ["out", "x"]
