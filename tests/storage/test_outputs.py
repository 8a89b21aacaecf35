"""Output files appear whole and together, or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest

from tensorsplit.core.errors import SplitError, SplitWarning
from tensorsplit.storage import outputs
from tensorsplit.storage.drafts import drafts_in
from tensorsplit.storage.outputs import Brought, Outputs
from tests.refusals import refused
from tests.storage.disk import close_folder


def content(data: bytes) -> Callable[[IO[bytes]], object]:
    return lambda file: file.write(data)


def breaking(file: IO[bytes]) -> None:
    file.write(b"half")
    raise OSError(28, "No space left on device")


def write_files(files: dict[Path, Any], **settings: Any) -> None:
    Outputs(**{"overwrite": True, **settings}).write(files)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*"))


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_what_no_file_can_be_called_is_refused(tmp_path: Path, name: str) -> None:
    with refused("TS702", "can't be the name of a file"):
        write_files({tmp_path / name: content(b"x")})
    assert names(tmp_path) == []


def test_missing_folders_are_made_where_that_is_asked_for(tmp_path: Path) -> None:
    files = {tmp_path / "a" / "b" / "one": content(b"1"), tmp_path / "two": content(b"2")}
    with refused("TS702", "there is no folder", "make it"):
        write_files(files)
    assert names(tmp_path) == []
    write_files(files, create_dirs=True)
    assert (tmp_path / "a" / "b" / "one").read_bytes() == b"1"
    assert names(tmp_path) == ["a", "b", "one", "two"]


def test_a_folder_of_the_current_one_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    wanted = Outputs(folders=[Path("out")])
    wanted.check()
    wanted.write({Path("out", "one"): b"1"})
    assert names(tmp_path) == ["one", "out"]


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
    drafts: list[int] = []
    before = os.umask(0o026)
    try:
        write_files(
            {
                tmp_path / "new": content(b"1"),
                tmp_path / "old": lambda file: drafts.append(
                    os.fstat(file.fileno()).st_mode & 0o777
                ),
            }
        )
    finally:
        os.umask(before)
    assert drafts == [0o600]  # also while it is written
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "old").stat().st_mode & 0o777 == 0o600


def write_beside(target: Path, data: bytes, **settings: Any) -> None:
    """Write a file as tensors are: the draft is made by the caller."""
    with Outputs(**{"overwrite": True, **settings}).replaced(target, None) as draft:
        draft.write_bytes(data)


@pytest.mark.skipif(os.name != "posix", reason="owners are those of POSIX")
@pytest.mark.parametrize("is_beside", [False, True])
def test_owner_and_attributes_of_the_file_replaced_are_kept(
    tmp_path: Path, is_beside: bool
) -> None:
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
    if is_beside:
        write_beside(old, b"2")
    else:
        write_files({old: content(b"2")})
    after = old.stat()
    assert old.read_bytes() == b"2"
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )
    assert after.st_ino != before.st_ino
    assert not noted or os.getxattr(old, "user.note") == b"mine"


@pytest.mark.skipif(os.name != "posix", reason="owners are those of POSIX")
def test_a_file_of_another_owner_does_not_run_as_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its owner can't be kept, its group perhaps."""
    old, given = tmp_path / "old", list[tuple[int, int]]()
    old.touch()
    old.chmod(0o4755)

    def change_owner(path: Path, owner: int, group: int) -> None:
        given.append((owner, group))
        if owner != -1:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "chown", change_owner)
    write_files({old: "2"})
    assert stat.S_IMODE(old.stat().st_mode) == 0o755
    assert given == [(old.stat().st_uid, old.stat().st_gid), (-1, old.stat().st_gid)]


@pytest.mark.skipif(sys.platform != "linux", reason="files have attributes on Linux")
def test_attributes_are_kept_as_far_as_that_is_permitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old").touch()
    kept: list[str] = []

    def set_one(path: Path, name: str, value: bytes) -> None:
        if name.startswith("security."):
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        kept.append(name)

    monkeypatch.setattr(os, "listxattr", lambda path: ["user.a", "security.b", "user.c"])
    monkeypatch.setattr(os, "getxattr", lambda path, name: name.encode())
    monkeypatch.setattr(os, "setxattr", set_one)
    write_beside(tmp_path / "old", b"2")
    assert kept == ["user.a", "user.c"]


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
        write_files({tmp_path / "link": content(b"2"), tmp_path / "one": content(b"1")})
    with refused("TS702", "written twice"):
        Outputs([tmp_path / "one", tmp_path / "one"]).check()
    with refused("TS702", "written twice"):  # the other one comes later
        Outputs([tmp_path / "link"]).write({tmp_path / "one": "1"})
    assert names(tmp_path) == ["link"]


def test_only_the_file_that_is_read_may_be_replaced_by_its_name(tmp_path: Path) -> None:
    model, weights, other = (tmp_path / name for name in ("model", "weights", "other"))
    for path in (model, weights, other):
        path.write_bytes(b"before")
    fits = Outputs(reads=[model, weights, Path("a\0b")], replaceable=model)
    fits.write({model: "after"})
    assert model.read_bytes() == b"after"
    with refused("TS702", "exists", "overwrite=True"):
        fits.write({other: "after"})
    with refused("TS702", "weights is a file that is read"):
        fits.write({weights: "after"})
    assert (other.read_bytes(), weights.read_bytes()) == (b"before", b"before")


@pytest.mark.skipif(sys.platform != "linux", reason="files have attributes on Linux")
def test_a_file_of_the_same_writer_is_replaced_unless_it_was_changed(tmp_path: Path) -> None:
    target = tmp_path / "report"
    (tmp_path / "any").touch()
    try:
        os.setxattr(tmp_path / "any", "user.note", b"it has attributes")
    except OSError:
        pytest.skip("this file system has no attributes")
    Outputs(writer="bench").write({target: "one"})
    Outputs(writer="bench").write({target: "2."})
    assert target.read_text() == "2."
    for writer in ("profile", "", "ben"):
        with refused("TS702", "report exists"):
            Outputs(writer=writer).write({target: "three"})
    wrote = target.stat().st_mtime_ns
    for mine, at in (("my", 1), ("my own", wrote)):  # as long as before, or in the same moment
        target.write_text(mine)
        os.utime(target, ns=(at, at))
        with refused("TS702", "report exists"):
            Outputs(writer="bench").write({target: "three"})
        assert target.read_text() == mine
    Outputs().write({tmp_path / "nobody's": "one"})
    with refused("TS702", "exists"):
        Outputs().write({tmp_path / "nobody's": "two"})


@pytest.mark.skipif(sys.platform != "linux", reason="files have attributes on Linux")
def test_a_folder_in_which_not_all_can_be_listed_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is hidden may be another's."""
    target = tmp_path / "made"

    def make() -> None:
        with Outputs(writer="split").replaced(target, ["inner", "x"]) as draft:
            (draft / "inner").mkdir(parents=True)
            (draft / "x").write_bytes(b"1")

    make()
    if not os.listxattr(target / "x"):
        pytest.skip("this file system has no attributes")
    make()
    (target / "inner" / "theirs").write_bytes(b"2")
    close_folder(target / "inner", monkeypatch)
    with refused("TS702", "made is not empty"):
        make()
    assert (target / "inner" / "theirs").read_bytes() == b"2"


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
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists what a process has open")
def test_nothing_stays_open_of_what_is_swept(tmp_path: Path) -> None:
    before = len([*Path("/proc/self/fd").iterdir()])
    for number in range(3):
        (tmp_path / f".tensorsplit-{number}.part").mkdir()
    write_files({tmp_path / "one": b"1"})
    assert names(tmp_path) == ["one"]
    assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_a_link_that_is_called_like_a_draft_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(b"mine")
    (tmp_path / ".tensorsplit-1.part").symlink_to("mine")
    write_files({tmp_path / "one": content(b"1")})
    assert names(tmp_path) == [".tensorsplit-1.part", "mine", "one"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_that_is_called_like_a_draft_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".tensorsplit-1.part")
    write_files({tmp_path / "one": content(b"1")})
    assert (tmp_path / "one").read_bytes() == b"1"


def test_drafts_that_can_only_be_removed_one_by_one_go_without_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a process may open no more files."""

    def failing(*_: Any, **__: Any) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(shutil, "rmtree", failing)
    with warnings.catch_warnings(), drafts_in(tmp_path) as drafts:
        warnings.simplefilter("error")
        (drafts / "folder").mkdir()
        (drafts / "folder" / "file").touch()
    assert names(tmp_path) == []


def test_ctrl_c_in_the_clean_up_leaves_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("shutil.rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_files({tmp_path / "x": b"1"})
    assert names(tmp_path) == ["x"]


def test_ctrl_c_when_a_folder_was_just_made_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, folder = Path.mkdir, tmp_path / "a" / "b"
    for count in (1, 2, 3):
        left = iter([*range(1, count), 0])

        def interrupted(path: Path, *args: Any, left: Iterator[int] = left, **more: Any) -> None:
            make(path, *args, **more)
            if not next(left):
                raise KeyboardInterrupt

        monkeypatch.setattr(Path, "mkdir", interrupted)
        with pytest.raises(KeyboardInterrupt):
            write_files({folder / "x": b"1"}, create_dirs=True)
        assert names(tmp_path) == []


@pytest.mark.parametrize("is_copy", [False, True])
def test_what_is_brought_replaces_nothing(tmp_path: Path, is_copy: bool) -> None:
    source, target, model = (tmp_path / name for name in ("source", "target", "model"))
    source.write_bytes(b"weights")
    files = {target: Brought(source, is_copy), model: content(b"1")}
    write_files(files, reads=[source])
    assert target.read_bytes() == b"weights"
    assert target.samefile(source) is not is_copy
    model.unlink()
    write_files(files, reads=[source])  # the weights are there already
    assert model.read_bytes() == b"1"
    target.unlink()
    target.write_bytes(b"others'")  # as long, and as old
    os.utime(target, ns=(source.stat().st_atime_ns, source.stat().st_mtime_ns))
    model.unlink()
    with refused("TS702", "holds other data"):
        write_files(files, reads=[source])
    assert names(tmp_path) == ["source", "target"]


@pytest.mark.parametrize("theirs", [b"weights", b"others'"])
def test_what_another_run_brought_meanwhile_is_not_replaced(tmp_path: Path, theirs: bytes) -> None:
    source, target, model = (tmp_path / name for name in ("source", "target", "model"))
    source.write_bytes(b"weights")

    def meanwhile(file: IO[bytes]) -> None:
        target.write_bytes(theirs)
        target.chmod(0o600)
        file.write(b"1")

    files = {target: Brought(source, is_copy=True), model: meanwhile}
    if theirs == b"weights":
        write_files(files, reads=[source])
        assert model.read_bytes() == b"1"
    else:
        with refused("TS702", "holds other data"):
            write_files(files, reads=[source])
        assert not model.exists()
    assert target.read_bytes() == theirs
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_a_link_that_is_brought_is_a_link_to_the_file_itself(tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(b"weights")
    (tmp_path / "cache").symlink_to("weights")
    write_files({tmp_path / "target": Brought(tmp_path / "cache", is_copy=False)})
    (tmp_path / "cache").unlink()
    assert not (tmp_path / "target").is_symlink()
    assert (tmp_path / "target").samefile(tmp_path / "weights")


def test_what_was_brought_goes_if_the_model_cant_be_written(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"weights")
    for is_copy in (False, True):
        with refused("TS702", "No space left"):
            write_files({tmp_path / "w": Brought(source, is_copy), tmp_path / "m": breaking})
    assert names(tmp_path) == ["source"]


@pytest.mark.parametrize("call", ["shutil.copyfile", "filecmp.cmp"])
def test_what_is_brought_and_where_to_are_both_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"weights")
    if call == "filecmp.cmp":
        target.write_bytes(b"weights")

    def failing(*_: object, **__: object) -> None:  # the system does not say of which file it is
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(call, failing)
    with refused("TS702", f"{source}", f"{target}", os.strerror(errno.EIO)):
        write_files({target: Brought(source, is_copy=True)})


@pytest.mark.parametrize("others", [b"we", b"others' weights", b"others'"])
def test_what_is_written_to_while_it_is_copied_is_not_brought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: bytes
) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"weights")
    copy = shutil.copyfile

    def meanwhile(source: Path, draft: Path) -> None:
        source.write_bytes(others)
        copy(source, draft)
        os.utime(source, (1, 1))

    monkeypatch.setattr(shutil, "copyfile", meanwhile)
    with refused("TS702", f"{source} was changed while it was read"):
        write_files({tmp_path / "target": Brought(source, is_copy=True)})
    assert names(tmp_path) == ["source"]


def test_what_the_disk_has_no_room_for_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "source").open("wb") as file:
        file.truncate(1 << 42)  # of which nothing is on the disk
    monkeypatch.setattr(shutil, "copyfile", None)
    with refused("TS702", f"cannot copy {tmp_path / 'source'}", "No space left"):
        write_files({tmp_path / "target": Brought(tmp_path / "source", is_copy=True)})
    assert names(tmp_path) == ["source"]


@pytest.mark.parametrize("known", [SimpleNamespace(total=0, free=0), OSError(errno.ENOSYS, "")])
def test_a_file_system_that_does_not_know_its_room_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: object
) -> None:
    def usage(_: Path) -> object:
        if isinstance(known, OSError):
            raise known
        return known

    (tmp_path / "source").write_bytes(b"weights")
    monkeypatch.setattr(shutil, "disk_usage", usage)
    write_files({tmp_path / "target": Brought(tmp_path / "source", is_copy=True)})
    assert (tmp_path / "target").read_bytes() == b"weights"


def test_a_copy_that_is_cut_short_is_not_brought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the system may end it without an error."""
    source = tmp_path / "source"
    source.write_bytes(b"weights")
    monkeypatch.setattr(shutil, "copyfile", lambda _, draft: draft.write_bytes(b"we"))
    with refused("TS702", f"{source} was changed while it was read"):
        write_files({tmp_path / "target": Brought(source, is_copy=True)})
    assert names(tmp_path) == ["source"]


def fail_at(monkeypatch: pytest.MonkeyPatch, call: str, name: str) -> None:
    """Have ``os.replace`` or ``os.rename`` fail where the target has a name."""
    original = getattr(os, call)

    def failing(source: Path, target: Path) -> None:
        if Path(target).name == name:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        original(source, target)

    monkeypatch.setattr(os, call, failing)


def test_files_that_were_replaced_are_put_back_if_another_one_cant_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one").write_bytes(b"before")
    before = (tmp_path / "one").stat()
    fail_at(monkeypatch, "replace", "three")
    with refused("TS702", "three", "nothing was written"):
        write_files({tmp_path / name: content(b"after") for name in ("one", "two", "three")})
    assert names(tmp_path) == ["one"]
    assert (tmp_path / "one").read_bytes() == b"before"
    assert os.path.samestat((tmp_path / "one").stat(), before)


def test_of_two_runs_at_once_all_files_are_of_one(tmp_path: Path) -> None:
    def write(text: str) -> None:
        write_files({tmp_path / f"{number}": text for number in range(40)})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, "abcdefgh"))
    assert len({path.read_text() for path in tmp_path.iterdir()}) == 1
    assert len(names(tmp_path)) == 40


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no locks there")
@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("kind", ["files", "a file", "a folder"])
def test_names_change_only_while_the_run_holds_their_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, is_there: bool
) -> None:
    import fcntl

    changed: list[str] = []

    def is_free(folder: Path) -> bool:
        number = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(number, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(number)
        return True

    def watched(change: Callable[..., Any]) -> Callable[..., Any]:
        def changing(source: Path, target: Path, **options: Any) -> None:
            if Path(target).parent == tmp_path:
                assert not is_free(tmp_path)
                changed.append(Path(target).name)
            change(source, target, **options)

        return changing

    def write() -> None:
        if kind == "files":
            write_files({tmp_path / "out": "1", tmp_path / "other": "2"})
        elif kind == "a file":
            write_beside(tmp_path / "out", b"1")
        else:
            replace_with_a_folder(tmp_path / "out", overwrite=True)

    if is_there:
        write()
    for name in ("rename", "replace"):
        monkeypatch.setattr(os, name, watched(getattr(os, name)))
    monkeypatch.setattr(outputs, "_exchange", watched(outputs._exchange))
    write()
    assert changed == (["out", "other"] if kind == "files" else ["out"])
    assert is_free(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no locks there")
def test_folders_are_locked_in_one_order_so_that_no_two_runs_wait_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    lock, locked = fcntl.flock, list[int]()
    folders = [tmp_path / name for name in ("a", "b", "c")]
    for folder in folders:
        folder.mkdir()
    inodes = [folder.stat().st_ino for folder in folders]

    def locking(number: int, how: int) -> None:
        if (inode := os.fstat(number).st_ino) in inodes:
            locked.append(inode)
        lock(number, how)

    monkeypatch.setattr(fcntl, "flock", locking)
    for order in ((0, 1, 2), (2, 0, 1)):
        locked.clear()
        write_files({folders[place] / "out": "1" for place in order})
        assert locked == inodes


@pytest.mark.parametrize("is_folder", [False, True])
def test_what_appeared_while_the_result_was_made_is_not_replaced(
    tmp_path: Path, is_folder: bool
) -> None:
    target = tmp_path / "out"
    with (
        refused("TS702", "is not empty" if is_folder else "out exists"),
        Outputs().replaced(target, ["x"] if is_folder else None) as draft,
    ):
        for place in (draft, target):
            if is_folder:
                place.mkdir()
            (place / "x" if is_folder else place).write_text(place.name)
    assert (target / "x" if is_folder else target).read_text() == "out"
    assert names(tmp_path) == (["out", "x"] if is_folder else ["out"])


@pytest.mark.parametrize(
    ("held", "settings", "words"),
    [
        (None, {"overwrite": True}, "out is not a folder, and the result is one"),
        (["x"], {}, "out is not empty"),
        (["x", "y"], {"overwrite": True}, "out holds y, which the result does not replace"),
        ([*"gfedcbax"], {"overwrite": True}, "out holds a, which the result does not replace"),
        (["x"], {"overwrite": True, "reads": ["out"]}, "out holds .*out, which is read"),
        (["x"], {"overwrite": True, "reads": ["out/x"]}, "out holds .*out/x, which is read"),
    ],
)
def test_a_folder_that_does_not_make_room(
    tmp_path: Path, held: list[str] | None, settings: dict[str, Any], words: str
) -> None:
    target = tmp_path / "out"
    if held is None:
        target.write_text("before")
    else:
        target.mkdir()
        for name in held:
            (target / name).write_text("before")
    reads = [tmp_path / name for name in settings.pop("reads", [])]
    with (
        pytest.raises(SplitError, match=words) as caught,
        Outputs(reads=reads, **settings).replaced(target, ["x"]),
    ):
        raise AssertionError  # it is refused before anything is made
    assert caught.value.code == "TS702"
    assert names(tmp_path) == sorted(["out", *(held or [])])


def test_a_folder_that_holds_what_is_replaced_or_nothing_makes_room(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    replace_with_a_folder(tmp_path / "empty", overwrite=False)
    replace_with_a_folder(tmp_path / "empty", overwrite=True)
    assert names(tmp_path) == ["empty", "x"]


def test_only_the_folders_that_are_named_are_made(tmp_path: Path) -> None:
    named = Outputs(files=[tmp_path / "named" / "one"], folders=[tmp_path / "named"])
    named.check()
    named.write({tmp_path / "named" / "one": "1"})
    for missing in (tmp_path / "missing" / "named", tmp_path / "missing"):
        with refused("TS702", "there is no folder"):
            Outputs(folders=[tmp_path / "missing" / "named"]).write({missing / "one": "1"})
    assert names(tmp_path) == ["named", "one"]


def test_the_way_to_a_folder_leads_through_folders(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for outputs_there, said in (
        (Outputs(files=[tmp_path / "file" / "one"]), "Not a directory"),
        (Outputs(folders=[tmp_path / "file"]), "file is not a folder"),
        (Outputs(folders=[tmp_path / "file" / "folder"], create_dirs=True), "Not a directory"),
    ):
        with refused("TS702", said):
            outputs_there.check()


def test_a_folder_that_can_not_be_entered_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for missing in (os.X_OK, os.W_OK):
        monkeypatch.setattr(os, "access", lambda path, mode, missing=missing: not mode & missing)
        with refused("TS702", "Permission denied"):
            Outputs(files=[tmp_path / "one"]).check()


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_a_folder_that_can_be_written_into_and_not_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def opening(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if Path(path) == tmp_path:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return opened(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", opening)
    write_files({tmp_path / "one": content(b"1")})
    assert (tmp_path / "one").read_bytes() == b"1"


@pytest.mark.parametrize("fails", [False, True])
def test_folders_around_what_is_replaced_go_if_it_fails(tmp_path: Path, fails: bool) -> None:
    """They are those of the file that a link leads to."""
    (tmp_path / "link").symlink_to("new/folder/target")
    try:
        with Outputs(create_dirs=True).replaced(tmp_path / "link", None) as draft:
            assert (tmp_path / "new" / "folder").is_dir()
            if fails:
                raise RuntimeError
            draft.write_text("1")
    except RuntimeError:
        pass
    assert names(tmp_path) == (["link"] if fails else ["folder", "link", "new", "target"])


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_drafts_are_nobody_elses(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with drafts_in(tmp_path) as drafts:
            assert stat.S_IMODE(drafts.stat().st_mode) == 0o700
    finally:
        os.umask(before)


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no locks there")
def test_drafts_that_another_run_swept_before_they_were_locked_are_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    lock, swept = fcntl.flock, list[Path]()

    def sweeping(number: int, how: int) -> None:
        if not swept:
            swept.extend(tmp_path.glob(".tensorsplit-*.part"))
            swept[0].rmdir()
        lock(number, how)

    monkeypatch.setattr(fcntl, "flock", sweeping)
    with drafts_in(tmp_path) as drafts:
        assert drafts.is_dir()
        assert drafts not in swept
    assert names(tmp_path) == []


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
    with refused("TS702", "one is written, but", f"to the disk: {os.strerror(errno.EIO)};"):
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


def replace_here(*names: str, without: tuple[str, ...] = (), **settings: Any) -> None:
    """Put files of these names into the current folder, and none of some others."""
    with Outputs(**settings).replaced(Path(), names + without) as draft:
        draft.mkdir()
        for name in names:
            (draft / name).write_text("after")


def test_the_current_folder_stays_and_so_does_what_else_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process would be nowhere if another folder were in its place."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    number = here.stat().st_ino
    (here / "other").write_text("before")
    replace_here("x", "y", reads=[here / "other", tmp_path])
    assert Path.cwd().stat().st_ino == here.stat().st_ino == number
    assert {name: (here / name).read_text() for name in names(here)} == {
        "other": "before",
        "x": "after",
        "y": "after",
    }


def test_what_the_current_folder_holds_is_replaced_only_where_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").write_text("before")
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("x", "link"):
        with refused("TS702", f"holds {name}", "give overwrite=True"):
            replace_here("a", name)
    for read in ("x", "."):
        with refused("TS702", "which is read"):
            replace_here("a", "x", overwrite=True, reads=[Path(read)])
    assert (tmp_path / "x").read_text() == "before"
    assert names(tmp_path) == ["link", "x"]
    replace_here("a", "x", "link", overwrite=True)
    assert [(tmp_path / name).read_text() for name in ("a", "x", "link")] == ["after"] * 3
    assert names(tmp_path) == ["a", "link", "x"]


def test_names_that_a_result_no_longer_has_leave_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would be taken for some of the result."""
    monkeypatch.chdir(tmp_path)
    replace_here("b", "c")
    (tmp_path / "a").symlink_to("nowhere")
    with refused("TS702", "holds a", "give overwrite=True"):
        replace_here("b", without=("a", "c"))
    with monkeypatch.context() as failing:
        fail_at(failing, "rename", "d")
        with refused("TS702", "nothing was written"):
            replace_here("b", "d", without=("a", "c"), overwrite=True)
    assert names(tmp_path) == ["a", "b", "c"]
    assert (tmp_path / "a").is_symlink()
    replace_here("b", without=("a", "c"), overwrite=True)
    assert names(tmp_path) == ["b"]


def test_if_one_name_can_not_be_put_into_the_current_folder_none_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b").write_text("before")
    fail_at(monkeypatch, "rename", "c")
    with refused("TS702", "nothing was written"):
        replace_here("a", "b", "c", overwrite=True)
    assert names(tmp_path) == ["b"]
    assert (tmp_path / "b").read_text() == "before"


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


def test_a_folder_that_is_not_flushed_for_want_of_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(outputs, "sync_folder", refuse)
    with pytest.raises(SplitError, match=r"x is written, but .*; raise the limit of open files"):
        Outputs().write({tmp_path / "x": b"x"})
