"""What a model is fed from files: which file is for which input, and what a file holds."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx.numpy_helper
import pytest

from tensorsplit.cli.input_files import read_feeds, read_input_shapes
from tensorsplit.model.feeds import DeclaredInput
from tests.refusals import refused


def tensor(name: str, element_type: str = "float", *, has_default: bool = False) -> DeclaredInput:
    return DeclaredInput(name, element_type, None, has_default=has_default)


def sequence(name: str) -> DeclaredInput:
    return DeclaredInput(name, "float", None, "sequence")


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with files, which is the current one."""
    monkeypatch.chdir(tmp_path)
    for number in range(3):
        np.save(f"{number}.npy", np.full(2, number, np.float32))
    arrays: Any = {"x": np.zeros(1), "s[1]": np.ones(1), "s[0]": np.full(1, 2.0)}
    np.savez("all.npz", **arrays)
    np.save("x=y.npy", np.full(1, 7.0))
    return tmp_path


def test_an_archive_may_be_one_of_many_arrays_or_many_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends otherwise then, from 65,536 arrays or 4 GiB on."""
    with monkeypatch.context() as limited:
        limited.setattr("zipfile.ZIP_FILECOUNT_LIMIT", 1)
        np.savez(tmp_path / "x.npz", x=np.full(2, 3.0), y=np.zeros(1))
    assert b"PK\x06\x06" in (tmp_path / "x.npz").read_bytes()
    found: Any = read_feeds([str(tmp_path / "x.npz")], [tensor("x"), tensor("y")])
    assert (found["x"].tolist(), found["y"].tolist()) == ([3, 3], [0])


HEADER = b"{'descr': '|u1', 'fortran_order': False, 'shape': (%d,)}"


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (HEADER % (1 << 33), "take 8589934592 bytes, but 4 follow the header"),
        (HEADER % 4 + b" " * 20_000, "its header is longer than 10000 bytes"),
    ],
)
@pytest.mark.parametrize("name", ["x.npy", "x"])
def test_an_archive_whose_headers_lie_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, header: bytes, said: str, name: str
) -> None:
    """NumPy would take gigabytes for them, and calls a long header a pickled object."""
    octets = b"\x93NUMPY\2\0" + struct.pack("<I", len(header)) + header + b"1234"
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr(name, octets)
    monkeypatch.setattr(np, "load", None)
    with refused("TS701", said):
        read_feeds([str(tmp_path / "x.npz")], [tensor("x", "uint8")])


def test_what_follows_an_array_in_an_archive_is_ignored(tmp_path: Path) -> None:
    """As NumPy does, and as it is in a file of one array."""
    np.save(tmp_path / "x.npy", np.array([3, 1], np.int64))
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", (tmp_path / "x.npy").read_bytes() + b"more")
    found: Any = read_feeds([str(tmp_path / "x.npz")], [tensor("x", "int64")])
    assert found["x"].tolist() == [3, 1]


def test_a_long_header_is_no_pickled_object(tmp_path: Path) -> None:
    header = HEADER % 4 + b" " * 20_000
    octets = b"\x93NUMPY\2\0" + struct.pack("<I", len(header)) + header + b"1234"
    (tmp_path / "x.npy").write_bytes(octets)
    with refused("TS701", "its header is longer than 10000 bytes"):
        read_feeds([str(tmp_path / "x.npy")], [tensor("x", "uint8")])


@pytest.mark.parametrize(
    ("written", "declared", "fed"),
    [
        (["x=1.npy"], [tensor("x"), tensor("y")], {"x": [1, 1]}),
        (["1.npy"], [tensor("x")], {"x": [1, 1]}),
        (["1.npy"], [tensor("w", has_default=True), tensor("x")], {"x": [1, 1]}),
        (["x=y=1.npy"], [tensor("x=y"), tensor("x")], {"x=y": [1, 1]}),
        (["x=y.npy"], [tensor("w")], {"w": [7]}),  # there is such a file
        (["s=1.npy", "s=0.npy"], [sequence("s")], {"s": [[1, 1], [0, 0]]}),
        (["s=2.npy", "x=1.npy"], [sequence("s"), tensor("x")], {"s": [[2, 2]], "x": [1, 1]}),
        (["all.npz"], [tensor("x"), sequence("s")], {"x": [0], "s": [[1], [2]]}),
        (["all.npz"], [tensor("x"), tensor("s[0]")], {"x": [0], "s[1]": [1], "s[0]": [2]}),
        (["all.npz"], [tensor("s[0]"), sequence("s")], {"x": [0], "s": [[1]], "s[0]": [2]}),
    ],
)
@pytest.mark.usefixtures("there")
def test_a_file_is_for_the_input_that_is_named_or_the_only_one_that_is_needed(
    written: list[str], declared: list[DeclaredInput], fed: dict[str, Any]
) -> None:
    """The arrays of a sequence are in the order in which they are given."""
    found = read_feeds(written, declared)
    listed = {
        name: [each.tolist() for each in held] if isinstance(held, list) else held.tolist()
        for name, held in found.items()
    }
    assert listed == fed


@pytest.mark.parametrize(
    ("written", "declared", "code", "words"),
    [
        (["x=1.npy", "x=0.npy"], [tensor("x")], "TS703", "it is given twice"),
        (["1.npy"], [tensor("x"), tensor("y")], "TS703", "write NAME=1.npy"),
        (["x"], [tensor("x"), tensor("y")], "TS703", "write x=FILE"),
        (["0.npy"], [tensor("0.npy"), tensor("y")], "TS703", "write NAME=0.npy"),  # it is there
        (["x=all.npz"], [tensor("x")], "TS701", "holds 3 arrays"),
        (["x=none.npy"], [tensor("x")], "TS701", "there is no such file"),
    ],
)
@pytest.mark.usefixtures("there")
def test_what_is_for_no_input_or_for_two_is_refused(
    written: list[str], declared: list[DeclaredInput], code: str, words: str
) -> None:
    with refused(code, words):
        read_feeds(written, declared)


@pytest.mark.parametrize(
    ("held", "words"),
    [
        (np.array([1], "M8[s]"), "which no model takes"),
        (np.array([1], "m8[s]"), "which no model takes"),
        (np.zeros(1, [("a", "f4")]), "which no model takes"),
        (np.array([{}], object), "never read"),
        (np.zeros(2, "V2"), "2 nameless bytes each"),
    ],
)
def test_elements_that_no_model_takes_are_refused(held: Any, words: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", held)
    np.savez(tmp_path / "x.npz", x=held)
    for name in ("x.npy", "x.npz"):
        with refused("TS701", words):
            read_feeds([f"x={tmp_path / name}"], [tensor("x")])


def test_as_many_nameless_bytes_as_the_input_has_are_needed(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(2, "V4"))
    for element_type in ("bfloat16", "double"):
        with refused("TS701", "4 nameless bytes each, and the input declared as"):
            read_feeds([f"x={tmp_path / 'x.npy'}"], [tensor("x", element_type)])


def test_nameless_bytes_are_what_the_input_is_declared_as(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([0x3F80, 0xC000], np.uint16).view("V2"))
    fed = read_feeds([f"x={tmp_path / 'x.npy'}"], [tensor("x", "bfloat16")])["x"]
    assert not isinstance(fed, list)
    assert (fed.dtype.name, fed.astype(float).tolist()) == ("bfloat16", [1, -2])


def test_float8_is_read_as_numpy_writes_it(tmp_path: Path) -> None:
    """It writes the type as `<f1`, which it can't read."""
    np.save(tmp_path / "x.npy", np.array([1.5, -2], ml_dtypes.float8_e5m2))
    fed = read_feeds([f"x={tmp_path / 'x.npy'}"], [tensor("x", "float8e5m2")])["x"]
    assert not isinstance(fed, list)
    assert (fed.dtype.name, fed.astype(float).tolist()) == ("float8_e5m2", [1.5, -2])


@pytest.mark.parametrize("name", ["x.pb", "x"])
def test_a_message_is_read_from_a_pb_or_a_file_without_a_suffix(name: str, tmp_path: Path) -> None:
    held = onnx.numpy_helper.from_array(np.array([1.5, -2], np.float32), "x")
    (tmp_path / name).write_bytes(held.SerializeToString())
    fed = read_feeds([f"x={tmp_path / name}"], [tensor("x")])["x"]
    assert not isinstance(fed, list)
    assert fed.tolist() == [1.5, -2]


@pytest.mark.parametrize(
    ("word", "names", "shapes"),
    [
        ("x:1,3", "xy", {"x": (1, 3)}),
        ("1x3", "x", {"x": (1, 3)}),
        ("x:", "xy", {"x": ()}),
        ("a:b:2", ["a:b"], {"a:b": (2,)}),
    ],
)
def test_the_shape_of_an_input(word: str, names: Any, shapes: dict[str, tuple[int, ...]]) -> None:
    assert read_input_shapes([word], [tensor(name) for name in names]) == shapes


@pytest.mark.parametrize("word", ["1x3", "z:1,3", "x:N,3", "x=1,3", "x:y=1,3"])
def test_what_is_no_shape_of_an_input(word: str) -> None:
    with refused("TS703", "NAME:1,3,224", parameter="input-shape"):
        read_input_shapes([word], [tensor("x"), tensor("y")])
