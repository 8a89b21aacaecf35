"""Splits of ``.npy`` files, against slices of the array that was written."""

from __future__ import annotations

import errno
import os
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

import tensorsplit as ts
from tensorsplit.files import byte_copies
from tensorsplit.files.byte_moves import Move, RowPlace
from tensorsplit.files.sources import open_archive
from tests.cli.conftest import Command
from tests.refusals import refused as refusal

RANDOM = np.random.default_rng(7)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f4", ">i8", "|b1", "<c16", "<U3", "<M8[s]", "|V3"])
def test_parts_are_slices(tmp_path: Path, axis: int, order: str, dtype: str) -> None:
    shape = (6, 6, 6)
    data = RANDOM.bytes(216 * np.dtype(dtype).itemsize)
    if dtype == "<U3":
        array = np.array([f"{n:03}" for n in range(216)], dtype).reshape(shape)
    else:
        array = np.frombuffer(data, dtype).reshape(shape)
    np.save(tmp_path / "x.npy", np.array(array, order=order))  # type: ignore[call-overload]
    ts.files.split(tmp_path / "x.npy", tmp_path / "parts", [1, 0, 5], axis=axis, verify=True)
    for number, (start, stop) in enumerate([(0, 1), (1, 1), (1, 6)]):
        part = np.load(tmp_path / "parts" / f"x.{number}.npy")
        index = (slice(None),) * (axis % 3) + (slice(start, stop),)
        assert part.dtype.str == np.dtype(dtype).str
        assert part.shape == array[index].shape
        assert part.tobytes() == np.ascontiguousarray(array[index]).tobytes()
        assert part.flags.f_contiguous if order == "F" else part.flags.c_contiguous


def test_what_another_run_has_not_finished_is_none_of_the_arrays(tmp_path: Path) -> None:
    source = tmp_path / "x"
    (source / ".tensorsplit-1a2b.part").mkdir(parents=True)
    array = RANDOM.random((4, 3))
    np.save(source / "a.npy", array)
    ts.files.split(source, tmp_path / "out", num_outputs=2)
    assert np.load(tmp_path / "out" / "a.1.npy").tobytes() == array[2:].tobytes()


@pytest.mark.parametrize("compressed", [False, True])
def test_archives(tmp_path: Path, compressed: bool) -> None:
    arrays: dict[str, Any] = {
        "a": RANDOM.random((40, 9)),
        "b": np.asfortranarray(RANDOM.integers(0, 99, (7, 5))),
        "c": RANDOM.random(11).astype(np.float16),
    }
    save = np.savez_compressed if compressed else np.savez
    save(tmp_path / "x.npz", **arrays)
    ts.files.split(tmp_path / "x.npz", tmp_path / "all", num_outputs=2, verify=True)
    ts.files.split(
        tmp_path / "x.npz", tmp_path / "b", axis=1, split=[2, 3], array="b", names=["l", "*.r"]
    )
    half = {"a": 20, "b": 4, "c": 6}
    for name, array in arrays.items():
        np.testing.assert_array_equal(
            np.load(tmp_path / "all" / f"{name}.0.npy"), array[: half[name]]
        )
        np.testing.assert_array_equal(
            np.load(tmp_path / "all" / f"{name}.1.npy"), array[half[name] :]
        )
    np.testing.assert_array_equal(np.load(tmp_path / "b" / "l.npy"), arrays["b"][:, :2])
    np.testing.assert_array_equal(np.load(tmp_path / "b" / "b.r.npy"), arrays["b"][:, 2:])
    assert len(list((tmp_path / "b").iterdir())) == 2


def test_an_archive_says_the_sizes_of_its_files_before_each_of_them(tmp_path: Path) -> None:
    """In a field of 16 bytes, as those of more than 4 GB need; many programs read no other one."""
    parts = tmp_path / "x"
    parts.mkdir()
    for number, array in enumerate((RANDOM.random((4, 3)), RANDOM.random((2, 3)))):
        np.save(parts / f"a.{number}.npy", array)
    ts.files.merge(parts, tmp_path / "x.npz")
    octets = (tmp_path / "x.npz").read_bytes()
    with zipfile.ZipFile(tmp_path / "x.npz") as archive:
        (info,) = archive.infolist()
    found = struct.unpack_from("<4s5H3L2H", octets, info.header_offset)
    assert (found[0], found[6], found[7:9]) == (b"PK\3\4", info.CRC, (0xFFFFFFFF, 0xFFFFFFFF))
    assert info.date_time == (1980, 1, 1, 0, 0, 0)  # whenever it is written
    name, more = found[9:]
    sizes = octets[info.header_offset + 30 + name :][:more]
    assert struct.unpack("<2H2Q", sizes) == (1, 16, info.file_size, info.file_size)


@pytest.mark.parametrize("names", ["ab", b"ab", 5, ["a", 1], [None, "b"]])
def test_names_are_a_list_of_strings(tmp_path: Path, names: Any) -> None:
    np.save(tmp_path / "x.npy", RANDOM.random((2, 6)))
    with refusal("TS706", "give a list of strings", parameter="names"):
        ts.files.split(tmp_path / "x.npy", tmp_path / "y", [2, 4], axis=1, names=names)
    with refusal("TS706", "give a list of strings", parameter="names"):
        ts.files.merge(tmp_path, tmp_path / "y.npy", names=names)
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


@pytest.mark.parametrize("array", [5, b"x", ["x", 5]])
def test_arrays_are_named_by_strings(tmp_path: Path, array: Any) -> None:
    np.save(tmp_path / "x.npy", RANDOM.random(6))
    with refusal("TS703", "a list of names", parameter="array"):
        ts.files.split(tmp_path / "x.npy", tmp_path / "y", [2, 4], array=array)


HALVES: dict[str, Any] = {"shard": [{"tensors": "*", "axis": 0, "ranks": 2}]}


@pytest.mark.parametrize(
    ("function", "parameter", "value"),
    [
        (ts.files.split, "memory", "4"),
        (ts.files.split, "memory", None),
        (ts.files.split, "memory", 2.5e8),
        (ts.files.split, "workers", "4"),
        (ts.files.split, "workers", True),
        (ts.files.split, "scheduler", 5),
        (ts.files.split, "source", 5),
        (ts.files.split, "source", b"x.npy"),
        (ts.files.split, "target", None),
        (ts.files.split, "rules", 5),
        (ts.files.split, "ranks", 2.0),
        (ts.files.split, "ranks", np.array([2, 4])),
        (ts.files.split, "max_shard_size", "1GB"),
        (ts.files.merge, "source", 5),
        (ts.files.merge, "out", 5),
        (ts.files.merge, "rules", [HALVES]),
        (ts.files.merge, "ranks", "2"),
        (ts.files.merge, "max_shard_size", True),
        (ts.files.split, "overwrite", "no"),
        (ts.files.split, "verify", [False]),
        (ts.files.reshard, "source", b"parts"),
        (ts.files.reshard, "out", 5),
        (ts.files.reshard, "ranks", 4),
        (ts.files.reshard, "ranks", (4,)),
        (ts.files.reshard, "ranks", (4, "2")),
        (ts.files.reshard, "ranks", ("4", 2)),
        (ts.files.reshard, "to_rules", 5),
        (ts.files.reshard, "max_shard_size", 1.5),
    ],
)
def test_arguments_of_another_type(
    tmp_path: Path, function: Callable[..., None], parameter: str, value: Any
) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(8).random((4, 6)))
    to = "target" if function is ts.files.split else "out"
    given: dict[str, Any] = {"source": tmp_path / "x.npy", to: tmp_path / "parts"}
    if function is ts.files.reshard or parameter in ("ranks", "max_shard_size"):
        given["rules"] = HALVES
    elif function is ts.files.split and parameter != "rules":
        given["num_outputs"] = 2
    with refusal("TS703", parameter=parameter):
        function(**{**given, parameter: value})
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


@pytest.mark.parametrize("name", ["a\0b", "half\ud83d", "a\0b/parts"])
@pytest.mark.parametrize("suffix", ["", ".npz", ".zarr", ".safetensors"])
def test_a_result_that_no_file_can_be_called(tmp_path: Path, name: str, suffix: str) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(9).random((4, 6)))
    with refusal("TS702", "can't be the name of a file"):
        ts.files.split(tmp_path / "x.npy", f"{tmp_path}/{name}{suffix}", num_outputs=2)
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


def test_a_rule_that_only_renames(tmp_path: Path) -> None:
    arrays = {"a": RANDOM.random((4, 3)), "b": RANDOM.random(3)}
    np.savez(tmp_path / "x.npz", allow_pickle=False, **arrays)
    rules = {"rename": [{"tensors": "a", "name": "first"}]}
    ts.files.split(tmp_path / "x.npz", tmp_path / "out", rules=rules)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["first.npy"]
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "first.npy"), arrays["a"])


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("size", [None, 10_000])
def test_the_version_of_the_format_is_kept(
    tmp_path: Path, version: tuple[int, int], size: int | None
) -> None:
    """A header may have 10,000 bytes, which NumPy reads."""
    array = RANDOM.random((3, 4))
    with (tmp_path / "x.npy").open("wb") as file:
        np.lib.format.write_array(file, array, version)
    if size is not None:
        written = (tmp_path / "x.npy").read_bytes()
        start = 10 if version == (1, 0) else 12
        header, data = written[start : -array.nbytes].rstrip(b"\n"), written[-array.nbytes :]
        count = size.to_bytes(start - 8, "little")
        text = header.ljust(size - 1) + b"\n"
        (tmp_path / "x.npy").write_bytes(written[:8] + count + text + data)
    ts.files.split(tmp_path / "x.npy", tmp_path / "out", [1, 2])
    part = tmp_path / "out" / "x.1.npy"
    with part.open("rb") as file:
        assert np.lib.format.read_magic(file) == version
    np.testing.assert_array_equal(np.load(part), array[1:])


def test_names_of_fields_are_written_in_utf_8(tmp_path: Path) -> None:
    array = np.zeros(6, [("形", "<f4"), ("n", "<i2")])
    array["形"] = RANDOM.random(6)
    with pytest.warns(UserWarning, match="format 3.0"):
        np.save(tmp_path / "x.npy", array)
    ts.files.split(tmp_path / "x.npy", tmp_path / "out", [2, 4])
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "x.1.npy"), array[2:])


def test_float8_is_called_as_numpy_calls_it(tmp_path: Path) -> None:
    kind = pytest.importorskip("ml_dtypes").float8_e5m2
    array = RANDOM.random(6).astype(kind)
    np.save(tmp_path / "x.npy", array)
    ts.files.split(tmp_path / "x.npy", tmp_path / "out", [2, 4])
    part = (tmp_path / "out" / "x.1.npy").read_bytes()
    assert b"'descr': '<f1'" in part
    assert part.endswith(array[2:].tobytes())


def test_parts_in_another_order_of_axes_are_not_merged(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    for number, order in enumerate("CF"):
        part = np.array(RANDOM.random((2, 3)), order=order)  # type: ignore[call-overload]
        np.save(tmp_path / "parts" / f"x.{number}.npy", part)
    rules = {"split": [{"tensors": "x", "num_outputs": 2}]}
    with refusal("TS713", "another type or order of axes"):
        ts.files.merge(tmp_path / "parts", tmp_path / "x.npy", rules=rules)


def test_a_version_of_an_opset_takes_its_own_types(tmp_path: Path) -> None:
    array = RANDOM.integers(0, 99, (2, 9))
    np.save(tmp_path / "x.npy", array)
    with refusal("TS201", "int64"):
        ts.files.split(tmp_path / "x.npy", tmp_path / "out", [4, 5], axis=1, opset=1)
    ts.files.split(tmp_path / "x.npy", tmp_path / "out", chunk=4, axis=1, opset=11)
    assert [np.load(tmp_path / "out" / f"x.{n}.npy").shape[1] for n in range(3)] == [4, 4, 1]
    with refusal("TS101"):  # which has no sequences
        ts.files.split(tmp_path / "x.npy", tmp_path / "no", chunk=4, axis=1, opset=10)


@pytest.mark.parametrize(("size", "is_written"), [(240, True), (241, False)])
def test_the_longest_name_of_a_file(tmp_path: Path, size: int, is_written: bool) -> None:
    np.save(tmp_path / "x.npy", RANDOM.random(4))
    names = ["a" * (size - len(".npy")), "b"]
    if not is_written:
        with refusal("TS706", "of at most 240 bytes"):
            ts.files.split(tmp_path / "x.npy", tmp_path / "out", [1, 3], names=names)
        return
    ts.files.split(tmp_path / "x.npy", tmp_path / "out", [1, 3], names=names)
    assert {each.stem for each in (tmp_path / "out").iterdir()} == set(names)


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="space is not reserved here")
@pytest.mark.parametrize("number", [errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOSPC])
def test_a_file_system_that_can_not_reserve_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    array = RANDOM.random(6)
    np.save(tmp_path / "x.npy", array)
    if number == errno.ENOSPC:
        with refusal("TS702", "No space left"):
            ts.files.split(tmp_path / "x.npy", tmp_path / "out", [2, 4])
        return
    ts.files.split(tmp_path / "x.npy", tmp_path / "out", [2, 4])
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "x.1.npy"), array[2:])


def test_versions_by_name(
    tmp_path: Path, tensorsplit: Command, refused: Callable[..., str]
) -> None:
    array = RANDOM.random((2, 9)).astype("<M8[s]")
    np.save(tmp_path / "x.npy", array)
    words = ("split", tmp_path / "x.npy", "--axis", 1, "-o", tmp_path / "out")
    variadic = ("--operator", "openvino.VariadicSplit-1", "--split", "-1,2")
    assert tensorsplit(*words, *variadic).status == 0
    assert np.load(tmp_path / "out" / "x.0.npy").tobytes() == array[:, :7].tobytes()
    assert np.load(tmp_path / "out" / "x.1.npy").tobytes() == array[:, 7:].tobytes()
    assert "datetime64" in refused("TS201", *words, "--opset", 13, "--split", "4,5", "--overwrite")
    assert "[-1, 2]" in refused("TS301", *words, "--split", "-1,2", "--overwrite")
    assert "it holds 1: x" in refused("TS703", *words, "--array", "y", "--num-outputs", 1)
    ended = tensorsplit(*words[:4], "--chunk", 4, "--dry-run")
    assert ended.out.split() == [
        *("tensor", "shape", "parts", "size"),
        *("x", "2x9", "x.0", "2x4", "144", "bytes", "x.1", "2x4", "x.2", "2x1"),
    ]


@pytest.mark.parametrize(("count", "first"), [(10, "x.0.npy"), (11, "x.00.npy")])
def test_numbers_have_as_many_digits_as_the_last_one(
    tmp_path: Path, count: int, first: str
) -> None:
    np.save(tmp_path / "x.npy", np.arange(count))
    ts.files.split(tmp_path / "x.npy", tmp_path / "parts", num_outputs=count)
    names = sorted(path.name for path in (tmp_path / "parts").iterdir())
    assert names[:: count - 1] == [first, f"x.{count - 1}.npy"]


def test_the_directory_of_an_archive_is_not_read_for_each_array(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = {f"a{number}": RANDOM.random((2, 3)) for number in range(600)}
    np.savez(tmp_path / "x.npz", **arrays)  # type: ignore[arg-type]  # numpy's stubs
    opened = []

    def counted(file: IO[bytes]) -> zipfile.ZipFile:
        opened.append(file)
        return open_archive(file)

    monkeypatch.setattr(byte_copies, "open_archive", counted)
    ts.files.split(tmp_path / "x.npz", tmp_path / "parts.npz", [1, 2], axis=1, verify=True)
    assert 0 < len(opened) <= 6  # written and verified by three tasks
    ts.files.merge(tmp_path / "parts.npz", tmp_path / "back.npz", axis=1)
    assert len(opened) <= 9
    with np.load(tmp_path / "back.npz") as found:
        assert set(found.files) == set(arrays)
        assert all(found[name].tobytes() == each.tobytes() for name, each in arrays.items())


@pytest.mark.parametrize("out", ["parts", "parts.npz"])
def test_a_dimension_of_0_that_gives_no_parts_is_refused_and_one_part_of_it_is_not(
    tmp_path: Path, out: str
) -> None:
    empty = np.zeros((3, 0), "<f4")
    np.save(tmp_path / "x.npy", empty)
    with refusal("TS703", "tensor x: its dimension 1 is 0, which gives no parts"):
        ts.files.split(tmp_path / "x.npy", tmp_path / out, axis=1, chunk=2)
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]
    ts.files.split(tmp_path / "x.npy", tmp_path / out, [0], axis=1)
    ts.files.merge(tmp_path / out, tmp_path / "back.npy", axis=1)
    back = np.load(tmp_path / "back.npy")
    assert (back.shape, back.dtype) == (empty.shape, empty.dtype)


def test_an_archive_with_two_arrays_of_one_name_is_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        np.save(tmp_path / f"{name}.npy", np.arange(6))
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the name
        for name in ("one", "two"):
            archive.write(tmp_path / f"{name}.npy", "x.npy")
    with refusal("TS705", "it holds two arrays of the same name"):
        ts.files.split(tmp_path / "x.npz", tmp_path / "parts", [2, 4])
    assert not (tmp_path / "parts").exists()


def test_small_arrays_side_by_side_are_copied_by_few_tasks() -> None:
    moves = [
        Move(1, 8, (RowPlace("read", 8 * n, ((0, 8),)),), (RowPlace(f"{n}", 0, ((0, 8),)),))
        for n in range(600)
    ]
    tasks = list(byte_copies.copies(moves))
    assert [task.nbytes for task in tasks] == [8 * 256, 8 * 256, 8 * 88]


def test_blocks_of_many_files_are_no_larger_than_a_task_may_have() -> None:
    sources = tuple(RowPlace(f"{n}", 0, ((4 * n, 4),)) for n in range(200))
    move = Move(1 << 20, 800, sources, (RowPlace("whole", 0, ((0, 800),)),))
    for memory in (byte_copies.LEAST_MEMORY, 1 << 30):
        rows = byte_copies._rows_of_block(move, memory)
        assert rows * 800 <= memory // 4
        assert rows * 4 > 16 << 10  # reads and writes are long enough
