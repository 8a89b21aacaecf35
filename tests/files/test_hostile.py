"""Sources that lie are refused by name, in little memory, and nothing is left behind."""

from __future__ import annotations

import errno
import io
import json
import os
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorsplit.files.sources import open_archive
from tests.cli.conftest import process
from tests.interpreters import printed

F32 = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


def npy(
    header: str | dict[str, Any], data: bytes = b"", version: tuple[int, int] = (1, 0)
) -> bytes:
    text = (header if isinstance(header, str) else repr(header)).encode()
    size = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + size + text + data


def array(shape: Any, data: bytes = b"", descr: Any = "<f4") -> bytes:
    return npy({"descr": descr, "fortran_order": False, "shape": shape}, data)


def npz(
    *members: tuple[str, bytes],
    spoil: Callable[[bytes], bytes] = bytes,
    compression: int = zipfile.ZIP_DEFLATED,
) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compression) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return spoil(made.getvalue())


def tensors(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def saved(value: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, value)
    return file.getvalue()


def with_wrong_checksum(archive: bytes) -> bytes:
    """An archive whose first member is whole, but does not have the checksum that it says."""
    (member, *_) = zipfile.ZipFile(io.BytesIO(archive)).infolist()
    return archive.replace(member.CRC.to_bytes(4, "little"), b"1234")


BOMB = ("a.npy", array((1,), bytes(150 << 20)))
ONCE = b'"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
HOSTILE: dict[str, tuple[str, bytes, str]] = {
    "npy empty": ("x.npy", b"", "it is empty"),
    "npy of text": ("x.npy", b"hello, world" * 10, "magic string"),
    "npy negative": ("x.npy", array((-3, 4)), "its shape is (-3, 4)"),
    "npy huge": ("x.npy", array((2**62, 2**62)), "but 0 follow the header"),
    "npy beyond 64 bits": ("x.npy", array((10**30,)), "its shape is"),
    "npy bool shape": ("x.npy", array((True, 1), b"1234"), "its shape is (True, 1)"),
    "npy short": ("x.npy", array((4,), b"123"), "take 16 bytes, but 3 follow"),
    "npy long": ("x.npy", array((4,), b"1" * 17), "take 16 bytes, but 17 follow"),
    "npy objects": ("x.npy", array((4,), b"1" * 32, "|O"), "pickled objects"),
    "npy no type": ("x.npy", array((4,), b"1" * 16, "nope"), "x.npy"),
    "npy nested": ("x.npy", npy("(" * 5000), "x.npy"),
    "npy code": ("x.npy", npy("__import__('os').abort()"), "x.npy"),
    "npy long text": ("x.npy", npy(" " * 10001), "its header is longer than 10000 bytes"),
    "npy long header": ("x.npy", npy("{}", b" " * 100, (2, 0))[:8] + b"\xff" * 4, "x.npy"),
    "npy version": ("x.npy", npy("{}", b"", (9, 0)), "version (9, 0)"),
    "npz no zip": ("x.npz", b"PK\x03\x04" + b"1" * 100, "not a zip file"),
    "npz other": ("x.npz", npz(("a.txt", b"1")), "'a.txt', which is not an array"),
    "npz long": ("x.npz", npz(("a.npy", array((1,), b"12345"))), "but 5 follow"),
    "npz damaged": (
        "x.npz",
        npz(("a.npy", saved(np.arange(999))), spoil=lambda z: z[:600] + b"?" * 9 + z[609:]),
        "x.npz",
    ),
    "npz bomb": ("x.npz", npz(BOMB), "but 157286400 follow"),
    "npz bzip2": ("x.npz", npz(BOMB, compression=zipfile.ZIP_BZIP2), "not compressed as NumPy"),
    "npz lzma": ("x.npz", npz(BOMB, compression=zipfile.ZIP_LZMA), "not compressed as NumPy"),
    "npz checksum": (
        "x.npz",
        npz(("a.npy", saved(np.arange(9))), spoil=with_wrong_checksum),
        "Bad CRC-32 for file 'a.npy'",
    ),
    "npz checksum of much": (
        "x.npz",
        npz(("a.npy", saved(np.arange(300_000))), spoil=with_wrong_checksum),
        "Bad CRC-32 for file 'a.npy'",
    ),
    "st empty": ("x.safetensors", b"", "has 0"),
    "st cut": ("x.safetensors", b"1234567", "has 7 bytes, and the length of a header"),
    "st length": ("x.safetensors", tensors({"a": F32}, b"1234", 2**63), "9223372036854775808"),
    "st long": ("x.safetensors", tensors(b" " * (13 << 20)), "longer than"),
    "st no json": ("x.safetensors", tensors(b"hello"), "x.safetensors"),
    "st nested": ("x.safetensors", tensors(b"[" * 99999), "x.safetensors"),
    "st shape": ("x.safetensors", tensors({"a": {**F32, "shape": [2]}}, b"1234"), "invalid shape"),
    "st negative": ("x.safetensors", tensors({"a": {**F32, "shape": [-1]}}, b"1234"), "-1"),
    "st huge": ("x.safetensors", tensors({"a": {**F32, "shape": [2**62, 8]}}, b"1234"), "overflow"),
    "st end": ("x.safetensors", tensors({"a": F32}, b"12345"), "not fully covered"),
    "st short": ("x.safetensors", tensors({"a": F32}, b"123"), "not fully covered"),
    "st same": ("x.safetensors", tensors({"a": F32, "b": F32}, b"1234"), "invalid offset"),
    "st no name": ("x.safetensors", tensors({"": F32}, b"1234"), "without a name"),
    "st twice": ("x.safetensors", tensors(b"{%b,%b}" % (ONCE, ONCE), b"1234"), "'a' twice"),
    **{
        f"st unpadded {number}": (
            "x.safetensors",
            tensors(
                {"__metadata__": {"tensorsplit.unpadded": f'{{"a": {number}}}'}, "a": F32}, b"1234"
            ),
            "tensorsplit.unpadded is not of lengths",
        )
        for number in ("-1", '"3"', "true", "2.0")
    },
    "st cut in the header": ("x.safetensors", tensors({"a": F32}, b"")[:-8], "header can't be"),
    "st type": ("x.safetensors", tensors({"a": {**F32, "dtype": "X"}}, b"1234"), "`X`"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_refused_by_name(tmp_path: Path, refused: Callable[..., str], case: str) -> None:
    name, data, said = HOSTILE[case]
    if name.endswith("safetensors"):
        pytest.importorskip("safetensors")
    source = tmp_path / name
    source.write_bytes(data)
    target = tmp_path / ("out.safetensors" if name.endswith("s") else "out")
    message = refused("TS705", "split", source, "-o", target, "--num-outputs", 1, "--axis", 0)
    assert said in message
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


class Unreadable(io.BytesIO):
    """A file on a disk that is broken."""

    def read(self, _: int | None = -1) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_disk_that_fails_is_not_an_archive_that_is_none() -> None:
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        open_archive(Unreadable(npz(("a.npy", saved(np.arange(9))))))


def test_files_of_python_2_and_odd_headers_are_no_news(tmp_path: Path) -> None:
    """NumPy and Python warn of them, and name lines of code."""
    for name, shape in (("old", "(2L,)"), ("odd", "(1or 2,)")):
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}"
        (tmp_path / f"{name}.npy").write_bytes(npy(header, b"12345678"))
    old = process("split", tmp_path / "old.npy", "-o", tmp_path / "out", "--num-outputs", 2)
    odd = process("split", tmp_path / "odd.npy", "-o", tmp_path / "no", "--num-outputs", 2)
    assert (old.status, old.err) == (0, "")
    assert odd.status == 2
    assert odd.err.startswith("tensorsplit: error: [TS705]")


IN_LITTLE_MEMORY = """
import pathlib, re, sys
import tensorsplit as ts
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    try:
        ts.files.split(path, path.with_name("out"), num_outputs=1, axis=0)
        print("split", path)
    except ts.SplitError as error:
        assert error.code == "TS705", error
print(re.search("VmHWM:[^0-9]*([0-9]+)", pathlib.Path("/proc/self/status").read_text())[1])
"""
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only it says how much was taken")


@on_linux
def test_in_little_memory(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    for number, (name, data, _) in enumerate(HOSTILE.values()):
        (tmp_path / f"{number}{Path(name).suffix}").write_bytes(data)
    assert int(printed(IN_LITTLE_MEMORY, tmp_path)) < 100_000  # kilobytes


def index_of(folder: Path, more: bytes) -> None:
    folder.mkdir()
    (folder / "a.safetensors").write_bytes(tensors({"a": F32}, b"1234"))
    text = b'{"weight_map": {"a": "a.safetensors"}, "more": %b}' % more
    (folder / "model.safetensors.index.json").write_bytes(text)


def huge_directory(place: Path, size: int) -> None:
    """An archive that takes no room on the disk, and says that its directory does."""
    end = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, size, 0)
    end += struct.pack("<4sLQL", b"PK\6\7", 0, size, 1)
    end += struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, *[2**16 - 1] * 2, *[2**32 - 1] * 2, 0)
    with place.open("wb") as file:
        file.seek(size)
        file.write(end)


@on_linux
def test_what_would_be_parsed_to_much(tmp_path: Path) -> None:
    """Documents of which a few bytes make an object each, and a directory of a gigabyte."""
    pytest.importorskip("safetensors")
    huge_directory(tmp_path / "x.npz", 1 << 30)
    index_of(tmp_path / "lists", b"[%b1]" % (b"[]," * 9_000_000))
    index_of(tmp_path / "objects", b"[%b1]" % (b"{}," * 9_000_000))
    header = b'{%b,"more":[%b1]}' % (ONCE, b"[]," * 3_900_000)
    (tmp_path / "x.safetensors").write_bytes(tensors(header, b"1234"))
    text = json.dumps({"__metadata__": {"tensorsplit.layouts": "[{}" + ",{}" * 3_900_000 + "]"}})
    (tmp_path / "y.safetensors").write_bytes(tensors(text.encode()))
    assert int(printed(IN_LITTLE_MEMORY, tmp_path)) < 160_000  # kilobytes


@on_linux
def test_a_file_that_is_cut_short_while_the_library_reads_its_header(tmp_path: Path) -> None:
    """The library maps what it reads, and the system ends a process that reads beyond the end."""
    pytest.importorskip("safetensors")
    header = {"__metadata__": {"long": "x" * 100_000}, "a": F32}
    (tmp_path / "x.safetensors").write_bytes(tensors(header, b"1234"))
    huge = tensors({"a": {**F32, "shape": [1 << 38], "data_offsets": [0, 1 << 40]}})
    (tmp_path / "huge.safetensors").write_bytes(huge)
    os.truncate(tmp_path / "huge.safetensors", len(huge) + (1 << 40))
    code = """
import os, sys
from pathlib import Path
import safetensors
from tensorsplit.files.safetensors_files import read_header
path, huge = Path(sys.argv[1], "x.safetensors"), Path(sys.argv[1], "huge.safetensors")
opened = safetensors.safe_open
def shortened(*words, **options):
    os.truncate(path, 8)
    return opened(*words, **options)
safetensors.safe_open = shortened
print(read_header(path).entries["a"].shape, read_header(huge).entries["a"].shape)
"""
    assert printed(code, tmp_path) == f"(1,) ({1 << 38},)\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pytest.importorskip("safetensors")
    place = tmp_path / "model"
    place.mkdir()
    (place / "a.safetensors").write_bytes(tensors({"x": F32}, b"1234"))
    (place / "b.safetensors").write_bytes(tensors({"y": F32}, b"5678"))
    return place


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({"x": "a.safetensors", "y": "../model/b.safetensors"}, "no .safetensors file beside it"),
        ({"x": "a.safetensors", "y": "/etc/passwd"}, "no .safetensors file beside it"),
        ({"x": "a.safetensors", "y": "a.safetensors"}, "says that y is in a.safetensors"),
        ({"x": "b.safetensors", "y": "a.safetensors"}, "but that is in "),
        ({"x": "a.safetensors", "y": "c.safetensors"}, "c.safetensors': there is no such file"),
        ({"x": "a.safetensors", "z": "a.safetensors"}, "in a.safetensors, which does not hold it"),
        ({"x": "a.safetensors", "y": 3}, "no weight_map"),
        ([], "no weight_map"),
    ],
)
def test_indices_that_lie(folder: Path, refused: Callable[..., str], names: Any, said: str) -> None:
    index = {"weight_map": names}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    out = folder.with_name("out")
    assert said in refused("TS705", "split", folder, "-o", out, "--num-outputs", 1)
    assert not out.exists()


def test_of_two_indices_none_is_believed(folder: Path, refused: Callable[..., str]) -> None:
    names = {"x": "a.safetensors", "y": "b.safetensors"}
    for stem in ("model", "other"):
        index = folder / f"{stem}.safetensors.index.json"
        index.write_text(json.dumps({"weight_map": names}))
    message = refused("TS705", "split", folder, "-o", folder.with_name("out"), "--num-outputs", 1)
    assert "several indices: model.safetensors.index.json, other.safetensors" in message


def test_a_name_in_two_files(folder: Path, refused: Callable[..., str]) -> None:
    (folder / "c.safetensors").write_bytes(tensors({"y": F32}, b"5678"))
    out = folder.with_name("out")
    assert "same name" in refused("TS705", "split", folder, "-o", out, "--num-outputs", 1)


def test_an_index_that_names_not_all(folder: Path, refused: Callable[..., str]) -> None:
    (folder / "a.safetensors").write_bytes(
        tensors({"x": F32, "z": {**F32, "data_offsets": [4, 8]}}, b"12345678")
    )
    index = {"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    message = refused("TS705", "split", folder, "-o", folder.with_name("out"), "--num-outputs", 1)
    assert "does not name z, which is in a.safetensors" in message


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_what_never_ends_is_not_read(
    folder: Path, refused: Callable[..., str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    os.mkfifo(tmp_path / "x.npy")
    assert "not a file" in refused("TS705", "split", tmp_path / "x.npy", "-o", out, "--chunk", 1)
    os.mkfifo(folder / "other")
    assert "other is not a file" in refused("TS705", "split", folder, "-o", out, "--num-outputs", 1)
    (folder / "other").unlink()
    os.mkfifo(folder / "model.safetensors.index.json")
    assert "json': it is not a file" in refused("TS705", "split", folder, "-o", out, "--chunk", 1)
    (folder / "model.safetensors.index.json").unlink()
    (folder / "a.safetensors").unlink()
    os.mkfifo(folder / "a.safetensors")
    assert "it is not a file" in refused("TS705", "split", folder, "-o", out, "--chunk", 1)
    (folder / "a.safetensors").unlink()
    (folder / "loop").symlink_to(folder)
    assert "loop is not a file" in refused("TS705", "split", folder, "-o", out, "--num-outputs", 1)


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (FileNotFoundError("No such file or directory"), "could not be opened a second time"),
        (PermissionError("Permission denied (os error 13)"), "Permission denied (os error 13)"),
    ],
)
def test_what_the_library_says_of_a_file_that_is_there(
    folder: Path,
    refused: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    raised: OSError,
    said: str,
) -> None:
    def safe_open(*_: object, **__: object) -> object:
        raise raised

    monkeypatch.setattr("safetensors.safe_open", safe_open)
    out = folder.with_name("out")
    message = refused("TS705", "split", folder / "a.safetensors", "-o", out, "--num-outputs", 1)
    assert "a.safetensors" in message
    assert said in message
