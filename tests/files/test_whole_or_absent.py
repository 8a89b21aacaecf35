"""A result is whole or not there, whatever happens while it is written."""

from __future__ import annotations

import errno
import io
import os
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tensorsplit as ts
from tensorsplit.files import byte_copies, byte_files
from tensorsplit.files.dense_files import DenseWriting
from tensorsplit.files.formats import WriteTask
from tests.cli.conftest import Command
from tests.files.checkpoints import held
from tests.interpreters import printed
from tests.refusals import refused as refusal

RANDOM = np.random.default_rng(3)
ARRAY = RANDOM.random((60, 8))
posix = pytest.mark.skipif(sys.platform == "win32", reason="no such signals here")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "x.npy"
    np.save(path, ARRAY)
    return path


def begin(source: Path, *words: str, seconds: float = 60) -> Iterator[subprocess.Popen[bytes]]:
    """A run whose first task writes, says so, and then takes its time."""
    code = """
import sys, time
from tensorsplit.files import byte_copies
from tensorsplit.files.dense_files import DenseWriting
from tensorsplit.files.formats import WriteTask
from tensorsplit.cli import main
write = byte_copies.RowCopies.write
def slow(self, memory):
    write(self, memory)
    print("written", flush=True)
    time.sleep(float(sys.argv[1]))
byte_copies.RowCopies.write = slow
main.main(sys.argv[2:])
"""
    words = ("split", str(source), "-o", str(source.with_name("out")), "--axis", "1", *words)
    command = [sys.executable, "-c", code, str(seconds), *words]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert run.stdout is not None
        assert run.stdout.readline() == b"written\n"
        yield run
    finally:
        run.kill()
        run.communicate()


@posix
def test_killed_in_the_middle_nothing_is_there_and_the_next_run_sweeps(source: Path) -> None:
    for run in begin(source, "--num-outputs", "2"):
        drafts = [path for path in source.parent.iterdir() if path != source]
        assert [path.suffix for path in drafts] == [".part"]
        run.send_signal(signal.SIGKILL)
        assert run.wait() == -signal.SIGKILL
    assert [path for path in source.parent.iterdir() if path != source] == drafts
    out = source.with_name("out")
    ts.files.split(source, out, axis=1, num_outputs=2)
    assert sorted(path.name for path in source.parent.iterdir()) == ["out", "x.npy"]
    np.testing.assert_array_equal(np.load(out / "x.1.npy"), ARRAY[:, 4:])


@posix
def test_killed_in_the_middle_what_was_there_is_as_it_was(source: Path) -> None:
    out = source.with_name("out")
    ts.files.split(source, out, axis=0, num_outputs=2)
    before = held(out)
    for run in begin(source, "--num-outputs", "2", "--overwrite"):
        run.send_signal(signal.SIGKILL)
        run.wait()
    assert held(out) == before
    ts.files.split(source, out, axis=1, num_outputs=2, overwrite=True)
    np.testing.assert_array_equal(np.load(out / "x.0.npy"), ARRAY[:, :4])
    assert sorted(path.name for path in source.parent.iterdir()) == ["out", "x.npy"]


@posix
@pytest.mark.parametrize(("number", "status"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_leaves_nothing(source: Path, number: str, status: int) -> None:
    for run in begin(source, "--num-outputs", "2", seconds=0.2):
        run.send_signal(getattr(signal, number))
        assert run.wait(timeout=60) == status
    assert list(source.parent.iterdir()) == [source]


def test_what_a_full_disk_leaves(
    source: Path, monkeypatch: pytest.MonkeyPatch, refused: Callable[..., str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(byte_copies, "write_at", full)
    message = refused(
        "TS702", "split", source, "-o", source.with_name("out"), "--axis", 1, "--num-outputs", 2
    )
    assert "No space left on device; nothing was written" in message
    assert list(source.parent.iterdir()) == [source]


def test_a_disk_that_is_too_small(
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
    tensorsplit: Command,
    refused: Callable[..., str],
) -> None:
    import shutil

    usage = {"total": 0, "free": 0}  # of a file system that does not know
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(**usage))
    words = ("split", source, "-o", source.with_name("out"), "--chunk", 60)
    assert tensorsplit(*words).status == 0
    shutil.rmtree(source.with_name("out"))
    usage |= {"total": 4000, "free": 3839}
    message = refused("TS702", *words)
    assert "takes 3.9 KiB" in message
    assert "has 3.7 KiB left" in message
    assert list(source.parent.iterdir()) == [source]


@pytest.mark.parametrize("axis", [0, 1])
def test_what_was_verified_is_said(source: Path, tensorsplit: Command, axis: int) -> None:
    out = source.with_name("out")
    words = ("split", source, "-o", out, "--axis", axis, "--num-outputs", 2, "--verify")
    said = tensorsplit(*words).out
    headers = [(out / f"x.{number}.npy").read_bytes()[:128] for number in (0, 1)]
    rows = [part.tobytes() for part in np.split(ARRAY, 2, axis=axis)]
    checksum = sum(zlib.crc32(each) for each in (*headers, *rows)) % 2**32
    assert said == (
        f"{out}: 2 tensors, 3.8 KiB: x.0, x.1\n"
        "verified: 2 tensors, 3.8 KiB, were read back and equal the source's;"
        f" sum of CRC-32 {checksum:08x}\n"
    )


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="no such call here")
def test_what_is_verified_is_read_from_the_disk_and_not_from_memory(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped = []

    def noted(number: int, start: int, size: int, advice: int) -> None:
        assert (start, size, advice) == (0, 0, os.POSIX_FADV_DONTNEED)
        dropped.append(Path(f"/proc/self/fd/{number}").readlink().name)

    monkeypatch.setattr(os, "posix_fadvise", noted)
    ts.files.split(source, source.with_name("plain"), num_outputs=2)
    assert dropped == []
    ts.files.split(source, source.with_name("out"), num_outputs=2, verify=True)
    assert set(dropped) == {"x.0.npy", "x.1.npy"}


def test_bits_that_changed_on_the_way_are_found(
    source: Path, monkeypatch: pytest.MonkeyPatch, refused: Callable[..., str]
) -> None:
    written = byte_files.write_at

    def wrong(file: object, offset: int, data: np.ndarray) -> None:
        data = data.copy()
        data.reshape(-1)[-1] ^= 1
        written(file, offset, data)  # type: ignore[arg-type]

    monkeypatch.setattr(byte_copies, "write_at", wrong)
    out = source.with_name("out")
    words = ("split", source, "-o", out, "--axis", 1, "--num-outputs", 2, "--verify")
    assert "does not hold what was written to it" in refused("TS708", *words)
    assert list(source.parent.iterdir()) == [source]


def test_a_source_that_shrinks_meanwhile(
    source: Path, monkeypatch: pytest.MonkeyPatch, refused: Callable[..., str]
) -> None:
    fill = byte_files.fill

    def shrinking(file: object, start: int, data: np.ndarray) -> None:
        os.truncate(source, 200)
        fill(file, start, data)  # type: ignore[arg-type]

    monkeypatch.setattr(byte_copies, "fill", shrinking)
    out = source.with_name("out")
    words = ("split", source, "-o", out, "--axis", 1, "--num-outputs", 2)
    assert "ends at byte 200" in refused("TS705", *words)
    assert list(source.parent.iterdir()) == [source]


@pytest.mark.parametrize("how", ["written", "grown at once", "replaced", "removed"])
@pytest.mark.parametrize("kind", ["x.npy", "x.npz", "folder", "x.safetensors", "ranks"])
def test_a_source_that_changes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, how: str
) -> None:
    """The result would be of two versions, each part of one of them."""
    read = {"folder": "folder/x.npy", "ranks": "ranks/rank-1-of-2.safetensors"}.get(kind, kind)
    rules = {"shard": [{"tensors": "x", "axis": 0}]}
    (tmp_path / "folder").mkdir()
    np.save(tmp_path / "x.npy", ARRAY)
    np.save(tmp_path / "folder/x.npy", ARRAY)
    np.savez(tmp_path / "x.npz", x=ARRAY)
    if kind.endswith(("safetensors", "ranks")):
        numpy_files = pytest.importorskip("safetensors.numpy")
        numpy_files.save_file({"x": ARRAY}, tmp_path / "x.safetensors")
        ts.files.split(tmp_path / "x.safetensors", tmp_path / "ranks", rules=rules, ranks=2)
    os.utime(tmp_path / read, (1, 1))
    before = sorted(tmp_path.rglob("*"))
    tasks = DenseWriting.tasks

    def changing(self: DenseWriting) -> Iterator[WriteTask]:
        yield from tasks(self)
        place, new = tmp_path / read, tmp_path / "new"
        if how == "removed":
            place.unlink()
            return
        if how == "grown at once":  # before the clock of the file system went on
            with place.open("ab") as file:
                file.write(b"1")
            os.utime(place, (1, 1))
            return
        if how == "replaced":
            new.write_bytes(place.read_bytes())  # equally long
            new.replace(place)
        os.utime(place)  # as what writes to it does

    monkeypatch.setattr(DenseWriting, "tasks", changing)
    out = tmp_path / f"out{Path(kind).suffix.replace('.npz', '').replace('.npy', '')}"
    words = "no such file" if how == "removed" else "was changed or replaced"
    with refusal("TS705", Path(read).name, words):
        if kind == "ranks":
            ts.files.reshard(tmp_path / kind, out, rules=rules, ranks=(2, 3))
        else:
            ts.files.split(tmp_path / kind, out, num_outputs=2)
    after = set(tmp_path.rglob("*"))
    assert after == set(before) - ({tmp_path / read} if how == "removed" else set())


@pytest.mark.parametrize("says", [errno.EXDEV, errno.EIO, None])
def test_where_a_system_copies_no_ranges(
    source: Path, monkeypatch: pytest.MonkeyPatch, says: int | None
) -> None:
    calls = []

    def copy_file_range(*words: object) -> int:
        calls.append(words)
        assert len(calls) <= 2  # once for each part
        if says is not None:
            raise OSError(says, os.strerror(says))
        return 0

    monkeypatch.setattr(os, "copy_file_range", copy_file_range, raising=False)
    ts.files.split(source, source.with_name("out"), [1, 59])
    assert len(calls) == 2
    np.testing.assert_array_equal(np.load(source.with_name("out") / "x.1.npy"), ARRAY[1:])


@pytest.mark.skipif(not hasattr(os, "copy_file_range"), reason="there are only reads and writes")
def test_where_a_system_copies_ranges_in_pieces(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied, calls = os.copy_file_range, list[int]()

    def copy_file_range(one: int, other: int, count: int, *places: int) -> int:
        calls.append(count)
        return copied(one, other, min(count, 999), *places)

    monkeypatch.setattr(os, "copy_file_range", copy_file_range)
    ts.files.split(source, source.with_name("out"), [31, 29])
    for number, part in enumerate((ARRAY[:31], ARRAY[31:])):
        np.save(whole := io.BytesIO(), part)
        made = source.with_name("out") / f"x.{number}.npy"
        assert made.read_bytes() == whole.getvalue()
    assert calls == [31 * 64, 31 * 64 - 999, 29 * 64, 29 * 64 - 999]


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("target", ["x.npy", "."])
def test_never_onto_what_is_read(
    source: Path, refused: Callable[..., str], target: str, overwrite: bool
) -> None:
    words = ["split", source, "-o", source.parent / target, "--chunk", 60]
    refused("TS702", *words, *["--overwrite"] * overwrite)
    np.testing.assert_array_equal(np.load(source), ARRAY)


@pytest.mark.parametrize("link", [False, True])
def test_never_into_the_folder_that_is_read(
    source: Path, tmp_path: Path, refused: Callable[..., str], link: bool
) -> None:
    """The next run would read it, or no longer know the folder."""
    folder = tmp_path / "parts"
    ts.files.split(source, folder, num_outputs=3, names=["a", "b", "c"])
    target = folder / "whole.npy"
    if link:
        target = tmp_path / "link" / "whole.npy"
        target.parent.symlink_to(folder)
    words = ("merge", folder, "-o", target, "--names", "a,b,c")
    assert "is inside" in refused("TS702", *words)
    assert "is inside" in refused("TS702", *words, "--dry-run")
    assert "is inside" in refused("TS702", "split", folder, "-o", folder / "d", "--chunk", 1)
    assert sorted(each.name for each in folder.iterdir()) == ["a.npy", "b.npy", "c.npy"]
    ts.files.merge(folder, tmp_path / "parts.npy", names=["a", "b", "c"])
    np.testing.assert_array_equal(np.load(tmp_path / "parts.npy"), np.load(source))


def test_other_files_are_not_replaced(source: Path, refused: Callable[..., str]) -> None:
    out = source.with_name("out")
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    assert "is not empty" in refused("TS702", "split", source, "-o", out, "--chunk", 30)
    words = ("split", source, "-o", out, "--chunk", 30, "--overwrite")
    assert "holds notes.txt" in refused("TS702", *words)
    assert held(out) == {"notes.txt": b"mine"}


def test_the_current_folder_gets_the_parts_beside_what_it_holds(
    source: Path, monkeypatch: pytest.MonkeyPatch, refused: Callable[..., str]
) -> None:
    monkeypatch.chdir(source.parent)
    ts.files.split(source, ".", num_outputs=2)
    assert sorted(map(str, Path().iterdir())) == ["x.0.npy", "x.1.npy", "x.npy"]
    np.testing.assert_array_equal(np.load("x.1.npy"), ARRAY[30:])
    assert ". holds x.0.npy" in refused("TS702", "split", source, "-o", ".", "--num-outputs", 3)
    assert sorted(map(str, Path().iterdir())) == ["x.0.npy", "x.1.npy", "x.npy"]


def test_a_link_is_followed(source: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "there").mkdir()
    (tmp_path / "out").symlink_to("elsewhere/there")
    ts.files.split(source, tmp_path / "out", chunk=30)
    assert (tmp_path / "out").is_symlink()
    assert sorted(held(tmp_path / "elsewhere")) == ["there/x.0.npy", "there/x.1.npy"]


@pytest.mark.parametrize("names", ["q,../k", "q,k/v", "q,", "q,q", "q", "q,k,v", "q," + "k" * 300])
def test_names_that_are_none(source: Path, refused: Callable[..., str], names: str) -> None:
    words = ("split", source, "-o", source.with_name("out"), "--num-outputs", 2)
    refused("TS706", *words, "--names", names)
    assert list(source.parent.iterdir()) == [source]


def test_what_is_not_for_this_format(source: Path, refused: Callable[..., str]) -> None:
    words = ("split", source, "-o", source.with_name("out"))
    own = "each part of this source is a file of its own"
    assert own in refused("TS703", *words, "--num-outputs", 2, "--max-shard-size", "5GB")
    rules = source.with_name("rules.toml")
    rules.write_text('[[shard]]\ntensors = "x"\naxis = 0\nranks = 2\n')
    assert own in refused("TS703", *words, "--rules", rules)
    rules.write_text("[[split]\n")
    assert "rules.toml" in refused("TS703", *words, "--rules", rules)
    refused("TS703", *words)
    refused("TS703", "split", source, "--num-outputs", 2)


def test_of_two_runs_at_once_the_second_one_is_refused(source: Path) -> None:
    out = source.with_name("out")
    for run in begin(source, "--num-outputs", "2", seconds=0.3):
        ts.files.split(source, out, chunk=30)
        assert run.wait(timeout=60) == 2
        assert run.stderr is not None
        assert b"[TS702]" in run.stderr.read()
    np.testing.assert_array_equal(np.load(out / "x.0.npy"), ARRAY[:30])
    assert sorted(path.name for path in source.parent.iterdir()) == ["out", "x.npy"]


def test_many_parts_with_few_open_files(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    array = RANDOM.integers(0, 255, (4, 400), np.uint8)
    np.save(tmp_path / "x.npy", array)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, before[1]))
    try:
        ts.files.split(tmp_path / "x.npy", tmp_path / "out", chunk=1, axis=1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == [f"x.{number:03}.npy" for number in range(400)]
    for number in (0, 234, 399):
        part = np.load(tmp_path / "out" / names[number])
        np.testing.assert_array_equal(part, array[:, number : number + 1])


def test_the_folders_around_it(
    source: Path, refused: Callable[..., str], tensorsplit: Command
) -> None:
    out = source.parent / "a" / "b"
    words = ("split", source, "-o", out, "--chunk", 30)
    assert "there is no folder" in refused("TS702", *words)
    assert tensorsplit(*words, "--create-dirs").status == 0
    assert sorted(held(out)) == ["x.0.npy", "x.1.npy"]


@posix
def test_few_descriptors_leave_no_draft(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    code = """
import os, pathlib, resource, sys
import numpy as np
import zarr
import tensorsplit as ts
folder = pathlib.Path(sys.argv[1])
zarr.create_array(folder / "a.zarr", data=np.arange(64, dtype="f4").reshape(16, 4), chunks=(4, 2))
ts.files.split(folder / "a.zarr", folder / "all.zarr", num_outputs=2)
def held(name):
    files = sorted(path for path in (folder / name).rglob("*") if path.is_file())
    return [path.read_bytes() for path in files]
whole, taken = held("all.zarr"), len(os.listdir("/dev/fd")) - 1
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
ends = set()
for more in range(-1, 12):
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken + more, hard))
    try:
        ts.files.split(folder / "a.zarr", folder / f"{more}.zarr", num_outputs=2)
        end = said = "whole"
    except ts.SplitError as error:
        end, said = "absent", str(error)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    ends.add(end)
    assert held(f"{more}.zarr") == (whole if end == "whole" else []), more
    assert not list(folder.glob(".tensorsplit*")), more
    assert end == "whole" or "raise the limit of open files" in said, said
assert ends == {"whole", "absent"}
"""
    printed(code, tmp_path)


@posix
@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.safetensors", "x.zarr"])
@pytest.mark.parametrize("most", [5, 6])  # with fewer, Python does not start everywhere
def test_too_few_descriptors_are_one_line(tmp_path: Path, name: str, most: int) -> None:
    source, target, array = tmp_path / name, tmp_path / "out", np.zeros(4)
    match source.suffix:
        case ".npy":
            np.save(source, array)
        case ".npz":
            target = tmp_path / "out.npz"
            np.savez(source, x=array)
        case ".safetensors":
            pytest.importorskip("safetensors.numpy").save_file({"x": array}, source)
        case _:
            pytest.importorskip("zarr").save_array(source, array)
    words = ("-m", "tensorsplit", "split", source, "-o", target, "--num-outputs", "2")
    done = subprocess.run(
        ["bash", "-c", 'ulimit -n "$0"; exec "$@"', str(most), sys.executable, *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode == 0) == target.exists()
    if done.returncode:
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert "Too many open files" in done.stderr
        assert "raise the limit of open files" in done.stderr
    assert not list(tmp_path.glob(".tensorsplit*"))
