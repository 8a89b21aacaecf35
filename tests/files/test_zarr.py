"""Splits of zarr arrays, against slices of the array that was written, and chunk by chunk."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import warnings
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tensorsplit.files import zarr_files
from tensorsplit.files.divisions import SplitOperands
from tensorsplit.files.formats import open_source
from tensorsplit.files.jobs import plan_split
from tensorsplit.files.rule_files import chosen_rules
from tests.cli.conftest import Command
from tests.refusals import refused

zarr = pytest.importorskip("zarr")
numcodecs = pytest.importorskip("numcodecs")
zarr_arrays: Any = pytest.importorskip("tensorsplit.files.zarr_arrays")
zarr_nodes: Any = pytest.importorskip("tensorsplit.files.zarr_nodes")

pytestmark = pytest.mark.filterwarnings("ignore:.*does not have a Zarr V3 specification")

RANDOM = np.random.default_rng(15)
X = RANDOM.random((10, 7, 9)).astype("<f4")

V3: dict[str, dict[str, Any]] = {
    "plain": {"compressors": None},
    "zstd": {},
    "blosc": {"compressors": zarr.codecs.BloscCodec()},
    "gzip": {"compressors": zarr.codecs.GzipCodec(level=1)},
    "checked": {"compressors": [zarr.codecs.ZstdCodec(), zarr.codecs.Crc32cCodec()]},
    "big": {"serializer": zarr.codecs.BytesCodec(endian="big")},
    "transposed": {"filters": zarr.codecs.TransposeCodec(order=(2, 0, 1))},
    "sharded": {"shards": (4, 6, 10)},
    "dots": {"chunk_key_encoding": {"name": "default", "separator": "."}},
}
V2: dict[str, dict[str, Any]] = {
    "v2 plain": {"compressors": None},
    "v2": {"compressors": numcodecs.Blosc()},
    "v2 zlib": {"compressors": numcodecs.Zlib(), "filters": [numcodecs.Shuffle(4)]},
    "v2 F": {"order": "F", "compressors": numcodecs.LZ4()},
    "v2 slashes": {"chunk_key_encoding": {"name": "v2", "separator": "/"}},
}


def made(path: Path, data: Any = X, chunks: Sequence[int] = (4, 3, 5), **options: Any) -> Any:
    """A store that holds an array."""
    array = zarr.create_array(path, shape=data.shape, chunks=chunks, dtype=data.dtype, **options)
    array[...] = data
    return array


def pieces(data: Any, lengths: Sequence[int], axis: int = 0) -> list[Any]:
    """The slices that parts of these lengths are."""
    ends = np.cumsum(lengths)
    starts = ends - lengths
    before = (slice(None),) * axis
    return [data[(*before, slice(*each))] for each in zip(starts, ends, strict=True)]


def parts(folder: Path, name: str, count: int) -> list[Any]:
    """The parts that were written."""
    return [zarr.open_array(folder / f"{name}.{number}.zarr", mode="r") for number in range(count)]


@pytest.mark.parametrize("kind", [*V3, *V2])
def test_parts_are_slices(tmp_path: Path, kind: str) -> None:
    version = 2 if kind in V2 else 3
    made(tmp_path / "x.zarr", zarr_format=version, attributes={"a": 1}, **{**V3, **V2}[kind])
    for axis, lengths in [(0, [4, 0, 5, 1]), (2, [3, 6])]:
        out = tmp_path / str(axis)
        ts.files.split(tmp_path / "x.zarr", out, lengths, axis=axis, verify=True)
        written = parts(out, "x", len(lengths))
        for part, expected in zip(written, pieces(X, lengths, axis), strict=True):
            assert part.shape == expected.shape
            assert part[...].tobytes() == expected.tobytes()
            assert part.metadata.zarr_format == version
            assert dict(part.attrs) == {"a": 1}


@pytest.mark.parametrize("version", [2, 3])
def test_only_the_shape_is_described_otherwise(tmp_path: Path, version: int) -> None:
    made(tmp_path / "x.zarr", zarr_format=version, fill_value=float("nan"), attributes={"é": [1]})
    name = "zarr.json" if version == 3 else ".zarray"
    document = tmp_path / "x.zarr" / name
    before = json.loads(document.read_text())
    if version == 3:
        before |= {"dimension_names": ["t", None, "x"], "later": {"must_understand": False}}
    document.write_text(json.dumps(before))
    ts.files.split(tmp_path / "x.zarr", tmp_path / "out", [4, 6])
    after = json.loads((tmp_path / "out" / "x.1.zarr" / name).read_text())
    assert after == {**before, "shape": [6, 7, 9]}


def test_tasks_state_the_bytes_of_the_elements_in_their_chunks(tmp_path: Path) -> None:
    made(tmp_path / "x.zarr")
    rules = chosen_rules(None, SplitOperands(0, (4, 6)), None, tmp_path / "x.zarr")
    job = plan_split(str(tmp_path / "x.zarr"), str(tmp_path / "out"), rules)
    assert sum(task.nbytes for task in job.writing.tasks()) == X.nbytes


def test_of_an_array_of_version_3_alone_nothing_of_version_2_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path / "x.zarr")
    asked, read = list[str](), zarr_nodes.read_values

    def read_values(store: Any, keys: Sequence[str], allowance: Any) -> Any:
        asked.extend(keys)
        return read(store, keys, allowance)

    monkeypatch.setattr(zarr_nodes, "read_values", read_values)
    open_source(str(tmp_path / "x.zarr"))
    assert asked == ["zarr.json"]


def test_chunks_that_begin_parts_are_copied_as_they_are(tmp_path: Path) -> None:
    made(tmp_path / "x.zarr", fill_value=7)
    ts.files.split(tmp_path / "x.zarr", tmp_path / "out", [4, 4, 2])
    read = tmp_path / "x.zarr" / "c"
    copies = [(0, "0/0/0", "0/0/0"), (0, "0/2/1", "0/2/1"), (1, "0/0/1", "1/0/1")]
    for number, chunk, origin in copies:
        written = tmp_path / "out" / f"x.{number}.zarr" / "c" / chunk
        assert written.read_bytes() == (read / origin).read_bytes()


def test_nothing_that_was_split_off_remains_in_a_chunk(tmp_path: Path) -> None:
    data = np.full((8, 2), 1, "<u2")
    data[3:] = 0xBEEF
    made(tmp_path / "x.zarr", data, (4, 2), fill_value=9, compressors=None)
    ts.files.split(tmp_path / "x.zarr", tmp_path / "out", [3, 5])
    stored = np.frombuffer((tmp_path / "out/x.0.zarr/c/0/0").read_bytes(), "<u2")
    assert stored.tolist() == [1] * 6 + [9] * 2


@pytest.mark.parametrize("version", [2, 3])
def test_chunks_that_are_missing_stay_missing(tmp_path: Path, version: int) -> None:
    array = made(tmp_path / "x.zarr", zarr_format=version, fill_value=7)
    for chunk in ("0/0/0", "0/1/1", "1/1/1"):
        (tmp_path / "x.zarr" / ("c/" + chunk if version == 3 else chunk.replace("/", "."))).unlink()
    expected = array[...]
    ts.files.split(tmp_path / "x.zarr", tmp_path / "out", [3, 7], verify=True)
    for part, piece in zip(parts(tmp_path / "out", "x", 2), pieces(expected, [3, 7]), strict=True):
        assert part[...].tobytes() == piece.tobytes()
    missing = "c/0/1/1" if version == 3 else "0.1.1"  # made of rows 3 to 6, which were missing
    for part in ("x.0.zarr", "x.1.zarr"):
        assert not (tmp_path / "out" / part / missing).exists()
    there = "c/0/0/0" if version == 3 else "0.0.0"  # made of rows 4 to 6, and of missing ones
    assert (tmp_path / "out" / "x.1.zarr" / there).exists()


@pytest.mark.parametrize("lengths", [[4, 6], [3, 7]])  # copied as they are, and made anew
def test_chunks_that_are_missing_add_nothing_to_the_checksum(
    tmp_path: Path, tensorsplit: Command, lengths: list[int]
) -> None:
    zarr.create_array(tmp_path / "x.zarr", shape=(10, 4), chunks=(4, 4), dtype="<f4")
    words = ("--axis", 0, "--split", ",".join(map(str, lengths)), "--verify")
    said = tensorsplit("split", tmp_path / "x.zarr", "-o", tmp_path / "out", *words).out
    assert said.endswith("sum of CRC-32 00000000\n")


NANS = np.array([0x7FC00000, 0x7FC00001, 0xFFC12345, 0x7F800001], "<u4").view("<f4")


@pytest.mark.parametrize("options", [{}, {"shards": (4,)}])
@pytest.mark.parametrize("fill", [float("nan"), 0.0])
def test_bits_that_equal_the_fill_value_stay(
    tmp_path: Path, options: dict[str, Any], fill: float
) -> None:
    data = np.concatenate([NANS, np.array([-0.0, -0.0, 0, 0], "<f4"), NANS[::-1]])
    settings = {"config": {"write_empty_chunks": True}, **options}
    made(tmp_path / "x.zarr", data, (2,), fill_value=fill, **settings)
    ts.files.split(tmp_path / "x.zarr", tmp_path / "out", [3, 4, 5], verify=True)
    for part, expected in zip(
        parts(tmp_path / "out", "x", 3), pieces(data, [3, 4, 5]), strict=True
    ):
        assert part[...].tobytes() == expected.tobytes()


@pytest.mark.filterwarnings("error")
def test_shards_of_complex_nans_that_signal_are_split_without_a_warning(tmp_path: Path) -> None:
    bits = RANDOM.integers(0x7F800001, 0x7FBFFFFF, (40, 9, 2), "<u4")
    data = np.ascontiguousarray(bits).view("<c8")[..., 0]
    made(tmp_path / "x.zarr", data, (10, 9), shards=(20, 9), fill_value=1)
    ts.files.split(tmp_path / "x.zarr", tmp_path / "out", [13, 27])
    for part, expected in zip(parts(tmp_path / "out", "x", 2), pieces(data, [13, 27]), strict=True):
        assert part[...].tobytes() == expected.tobytes()


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3")
@pytest.mark.parametrize("has_filter", [False, True])
def test_chunks_missing_in_a_shard_stay_missing(tmp_path: Path, has_filter: bool) -> None:
    data = np.zeros((16, 64), "<f4")
    data[5, 3] = 1
    filters = None
    if has_filter:
        filters = pytest.importorskip("zarr.codecs.numcodecs").Delta(dtype="<f4")
    array = zarr.create_array(
        tmp_path / "x.zarr",
        shape=data.shape,
        shards=(8, 64),
        chunks=(1, 64),
        dtype="<f4",
        compressors=None,
        filters=filters,
    )
    array[...] = data
    ts.files.split(tmp_path / "x.zarr", tmp_path / "out", [3, 13])
    assert [path.name for path in (tmp_path / "out/x.0.zarr").iterdir()] == ["zarr.json"]
    (stored,) = (path for path in (tmp_path / "out/x.1.zarr/c").rglob("*") if path.is_file())
    assert stored.stat().st_size < 2 * 256 + 16 * 8 + 64  # one chunk, and the index


@pytest.mark.parametrize("dtype", ["|b1", "i1", "<M8[s]", "<c16", "<U3", "|S5", "str", "|V3"])
def test_element_types(tmp_path: Path, dtype: str) -> None:
    if dtype == "|V3":
        data = np.frombuffer(RANDOM.bytes(60), dtype)
    elif dtype == "str":
        data = np.array([f"é{n}" for n in range(20)], np.dtypes.StringDType())
    else:
        data = RANDOM.integers(0, 2 if dtype == "|b1" else 99, 20).astype(dtype)
    made(tmp_path / "x.zarr", data, (4,))
    ts.files.split(tmp_path / "x.zarr", tmp_path / "out", [7, 13], verify=True)
    for part, expected in zip(parts(tmp_path / "out", "x", 2), pieces(data, [7, 13]), strict=True):
        assert part[...].tolist() == expected.tolist()


def test_arrays_of_a_group(tmp_path: Path) -> None:
    group = zarr.create_group(tmp_path / "g.zarr")
    for name, size in [("a", 10), ("deep/b", 10), ("c", 4)]:
        group.create_array(name, shape=(size,), chunks=(3,), dtype="i4")[:] = np.arange(size) + 5
    source = tmp_path / "g.zarr"
    ts.files.split(source, tmp_path / "one", [4, 6], array="deep/b")
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["b.0.zarr", "b.1.zarr"]
    assert parts(tmp_path / "one", "b", 2)[1][:].tolist() == [9, 10, 11, 12, 13, 14]
    ts.files.split(source, tmp_path / "two", num_outputs=2, array=["a", "c"])
    assert parts(tmp_path / "two", "c", 2)[1][:].tolist() == [7, 8]
    with refused("TS302"):  # without names, all of them are split
        ts.files.split(source, tmp_path / "three", [4, 6])
    for missing in ("d", "deep", "", "../g.zarr/a"):
        with refused("TS705" if missing == "d" else "TS703"):
            ts.files.split(source, tmp_path / "four", [4, 6], array=missing)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.zarr", "one", "two"]


def group_of(place: str | Path, version: int, *, is_consolidated: bool) -> None:
    """A group with attributes, in which an array of ten rows lies beside others."""
    group = zarr.create_group(place, zarr_format=version, attributes={"title": "é"})
    deep = group.create_group("deep", attributes={"depth": 1})
    for where, name, data in [
        (deep, "t", X),
        (deep, "scalar", np.array(7, "i2")),
        (group, "lat", np.arange(7, dtype="f8")),
        (group, "empty", np.empty((0, 3), "i4")),
    ]:
        array = where.create_array(
            name, shape=data.shape, dtype=data.dtype, attributes={"of": name}, fill_value=3
        )
        array[...] = data
    if is_consolidated:
        zarr.consolidate_metadata(place)


@pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part")
@pytest.mark.parametrize("is_consolidated", [False, True])
@pytest.mark.parametrize("version", [2, 3])
def test_a_group_stays_one(tmp_path: Path, version: int, is_consolidated: bool) -> None:
    source, out = tmp_path / "g.zarr", tmp_path / "out.zarr"
    group_of(source, version, is_consolidated=is_consolidated)
    carried = [
        path.relative_to(source)
        for path in source.rglob("*")
        if path.is_file() and "t" not in path.parts and path.name not in ("zarr.json", ".zmetadata")
    ]
    ts.files.split(source, out, [4, 6], array="deep/t", names=["*", "*ail/last"], verify=True)
    opened = zarr.open_group(out, mode="r", use_consolidated=is_consolidated)
    assert opened.metadata.zarr_format == version
    assert (opened.metadata.consolidated_metadata is not None) == is_consolidated
    assert dict(opened.attrs) == {"title": "é"}
    assert dict(opened["deep"].attrs) == {"depth": 1}
    assert sorted(path for path, _ in opened.members(max_depth=None)) == [
        "deep", "deep/scalar", "deep/t", "deep/tail", "deep/tail/last", "empty", "lat"
    ]  # fmt: skip
    assert opened["deep/t"][...].tobytes() == X[:4].tobytes()
    assert opened["deep/tail/last"][...].tobytes() == X[4:].tobytes()
    assert dict(opened["deep/tail/last"].attrs) == {"of": "t"}
    assert opened["deep/scalar"][...] == 7
    assert opened["lat"][...].tolist() == list(range(7))
    for path in carried:
        assert (out / path).read_bytes() == (source / path).read_bytes()


def test_an_array_becomes_a_group(tmp_path: Path) -> None:
    for version in (2, 3):
        made(tmp_path / f"{version}.zarr", zarr_format=version)
        out = tmp_path / f"parts-{version}.zarr"
        ts.files.split(tmp_path / f"{version}.zarr", out, [4, 6])
        ts.files.split(tmp_path / f"{version}.zarr", out, [3, 7], overwrite=True)
        group = zarr.open_group(out, mode="r")
        assert group.metadata.zarr_format == version
        assert group[f"{version}.1"][...].tobytes() == X[3:].tobytes()


def test_a_group_at_a_url(tmp_path: Path) -> None:
    group_of(tmp_path / "g.zarr", 3, is_consolidated=False)
    target = "memory://test-groups/out.zarr"
    rules = {"rename": [{"tensors": "lat", "name": "axes/*"}]}
    ts.files.split(tmp_path / "g.zarr", target, rules=rules)
    opened = zarr.open_group(target, mode="r")
    assert opened["axes/lat"][...].tolist() == list(range(7))
    assert opened["deep/t"][...].tobytes() == X.tobytes()


@pytest.mark.parametrize(
    "names",
    [
        ["lat", "x"],
        ["deep", "x"],
        ["lat/a", "x"],
        ["a", "a/b"],
        ["../a", "x"],
        ["a//b", "x"],
        ["zarr.json", "x"],
        ["/a", "x"],
        ["x" * 300, "x"],
    ],
)
def test_names_that_a_group_cannot_hold(tmp_path: Path, names: list[str]) -> None:
    group_of(tmp_path / "g.zarr", 3, is_consolidated=False)
    with refused("TS706"):
        ts.files.split(
            tmp_path / "g.zarr", tmp_path / "out.zarr", [4, 6], array="deep/t", names=names
        )
    assert [path.name for path in tmp_path.iterdir()] == ["g.zarr"]


def test_urls(tmp_path: Path) -> None:
    made(tmp_path / "x.zarr")
    ts.files.split(f"file://{tmp_path}/x.zarr", tmp_path / "out", [4, 6])
    assert parts(tmp_path / "out", "x", 2)[1][...].tobytes() == X[4:].tobytes()
    made_at: Any = zarr.create_array(
        "memory://test-urls/x.zarr", shape=X.shape, chunks=(2, 3, 2), dtype="<f4"
    )
    made_at[...] = X
    ts.files.split("memory://test-urls/x.zarr/", tmp_path / "more", [5, 5], verify=True)
    assert parts(tmp_path / "more", "x", 2)[1][...].tobytes() == X[5:].tobytes()
    with refused("TS705"):
        ts.files.split("memory://nowhere/x.zarr", tmp_path / "none", [5, 5])
    with refused("TS705"):
        ts.files.split("nothing-that-is-known://x.zarr", tmp_path / "none", [5, 5])


def test_a_chunk_at_a_url_is_named_by_its_url() -> None:
    fs = pytest.importorskip("fsspec").filesystem("memory")
    source = "memory://test-named/x.zarr"
    made_at: Any = zarr.create_array(source, shape=(4,), chunks=(4,), dtype="<f4", compressors=None)
    made_at[...] = 1.0
    fs.pipe("/test-named/x.zarr/c/0", b"short")
    with refused("TS705", "'memory:///test-named/x.zarr/c/0': "):
        ts.files.split(source, "memory://test-named/out", [1, 3])


def test_targets_at_urls(tmp_path: Path) -> None:
    fs = pytest.importorskip("fsspec").filesystem("memory")
    made(tmp_path / "x.zarr")
    ts.files.split(tmp_path / "x.zarr", "memory://test-targets/a", [4, 6], verify=True)
    for number, expected in enumerate(pieces(X, [4, 6])):
        part = zarr.open_array(f"memory://test-targets/a/x.{number}.zarr", mode="r")
        assert part[...].tobytes() == expected.tobytes()
    written = fs.find("/test-targets/a")
    for overwrite in (False, True):
        with refused("TS702"):
            ts.files.split(
                tmp_path / "x.zarr", "memory://test-targets/a", [4, 6], overwrite=overwrite
            )
    assert fs.find("/test-targets/a") == written
    ts.files.split("memory://test-targets/a/x.0.zarr", "memory://test-targets/a/b", [1, 3])
    with refused("TS702", "is inside"):
        ts.files.split(
            "memory://test-targets/a/x.0.zarr/", "memory://test-targets/a/x.0.zarr/b", [1, 3]
        )
    with refused("TS702"):
        ts.files.split(tmp_path / "x.zarr", "nothing-that-is-known://a", [4, 6])


def test_what_a_run_that_was_killed_left_at_a_url(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs = pytest.importorskip("fsspec").filesystem("memory")
    made(tmp_path / "x.zarr")
    job = "tensorsplit.files.zarr_writing.ZarrWriting.finish"
    with monkeypatch.context() as patch:
        patch.setattr(job, lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ts.files.split(tmp_path / "x.zarr", "memory://test-left/a", [4, 6])
        assert fs.find("/test-left") == []
        patch.setattr("tensorsplit.files.url_targets._remove", lambda *_: None)  # no time for it
        with pytest.raises(ZeroDivisionError):
            ts.files.split(tmp_path / "x.zarr", "memory://test-left/a", [5, 5])
    left = fs.find("/test-left/a")
    assert any(each.endswith("c/1/2/1") for each in left)
    assert not any(each.endswith("zarr.json") for each in left)
    ts.files.split(tmp_path / "x.zarr", "memory://test-left/a", [10], names=["x.0"])
    part = zarr.open_array("memory://test-left/a/x.0.zarr", mode="r")
    assert part[...].tobytes() == X.tobytes()
    assert all(each.startswith("/test-left/a/x.0.zarr/") for each in fs.find("/test-left"))


def test_of_two_runs_at_a_url_the_later_one_takes_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs = pytest.importorskip("fsspec").filesystem("memory")
    made(tmp_path / "x.zarr")
    target = "memory://test-two/a"
    monkeypatch.setattr("tensorsplit.files.zarr_writing._TASK", 1)
    from tensorsplit.files.zarr_arrays import StoredArray

    save, begun = StoredArray.save, False

    def save_late(self: Any, *given: Any) -> None:
        nonlocal begun
        if not begun:
            begun = True
            ts.files.split(tmp_path / "x.zarr", target, [5, 5])
            done.update({each: fs.cat_file(each) for each in fs.find("/test-two")})
        save(self, *given)

    done: dict[str, bytes] = {}
    monkeypatch.setattr(StoredArray, "save", save_late)
    with refused("TS702", "another run"):
        ts.files.split(tmp_path / "x.zarr", target, [10], names=["other"])
    assert any(each.endswith("zarr.json") for each in done)
    assert done.items() <= {each: fs.cat_file(each) for each in fs.find("/test-two")}.items()
    assert not any(each.endswith("zarr.json") for each in fs.find("/test-two/a/other.zarr"))


def test_storage_that_fails_in_the_middle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fs = pytest.importorskip("fsspec").filesystem("memory")
    made(tmp_path / "x.zarr")

    async def fail(*_: object) -> None:
        raise RuntimeError("no answer")

    monkeypatch.setattr(zarr.storage.FsspecStore, "set", fail)
    with refused("TS702", "no answer"):
        ts.files.split(tmp_path / "x.zarr", "memory://test-fails/a", [4, 6])
    assert fs.find("/test-fails") == []


def test_storage_that_lists_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec")
    source: Any = zarr.create_array("memory://test-lists/g.zarr/a", data=X, chunks=(2, 3, 2))
    zarr.open_group("memory://test-lists/g.zarr")

    async def lists(*_: object) -> Any:
        for name in list[str]():
            yield name

    monkeypatch.setattr(zarr.storage.FsspecStore, "list_dir", lists)
    url = "memory://test-lists/g.zarr"
    with refused("TS705", "does not list what it holds"):
        ts.files.split(url, tmp_path / "out.zarr", [4, 6], array="a")
    ts.files.split(url, tmp_path / "out", [4, 6], array="a")
    assert parts(tmp_path / "out", "a", 2)[1][...].tobytes() == source[4:].tobytes()


def change(document: Path, **fields: Any) -> None:
    document.write_text(json.dumps({**json.loads(document.read_text()), **fields}))


@pytest.mark.parametrize(
    ("shape", "chunk"),
    [
        ([2**62], [2]),
        ([2**62], [2**61]),
        ([2**200], [2**199]),
        ([-1], [2]),
        ([2**40, 2**40], [1, 2**30]),
    ],
)
def test_shapes_that_no_machine_holds(tmp_path: Path, shape: list[int], chunk: list[int]) -> None:
    made(tmp_path / "x.zarr", X[0, 0], (2,))
    grid = {"name": "regular", "configuration": {"chunk_shape": chunk}}
    change(tmp_path / "x.zarr" / "zarr.json", shape=shape, chunk_grid=grid)
    lengths = [1, max(1, shape[0] - 1)]
    with pytest.raises(ts.SplitError) as caught:
        ts.files.split(tmp_path / "x.zarr", tmp_path / "out", lengths)
    assert caught.value.code in ("TS705", "TS707")
    assert [path.name for path in tmp_path.iterdir()] == ["x.zarr"]


def test_chunks_that_take_more_memory_than_there_is(tmp_path: Path) -> None:
    made(tmp_path / "x.zarr")
    with (tmp_path / "x.zarr" / "c" / "0" / "0" / "0").open("r+b") as file:
        file.truncate(1 << 33)
    with refused("TS705", "it takes more than the ", " bytes that a task has for it"):
        ts.files.split(tmp_path / "x.zarr", tmp_path / "out", [1, 9])
    assert [path.name for path in tmp_path.iterdir()] == ["x.zarr"]


def test_copies_that_changed_on_the_way_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path / "x.zarr")
    finish = "tensorsplit.files.zarr_writing.ZarrWriting.finish"
    changes: list[Callable[[Path], object]] = [
        lambda chunk: chunk.write_bytes(chunk.read_bytes()[:-1] + b"?"),
        lambda chunk: chunk.write_bytes(chunk.read_bytes() + b"?"),
        Path.unlink,
    ]
    for spoil in changes:

        def spoiled(_: Any, spoil: Callable[[Path], object] = spoil) -> None:
            (drafts,) = tmp_path.glob(".tensorsplit-*")
            spoil(drafts / "out" / "x.1.zarr" / "c" / "0" / "1" / "0")

        monkeypatch.setattr(finish, spoiled)
        with refused("TS708"):
            ts.files.split(tmp_path / "x.zarr", tmp_path / "out", [4, 6], verify=True)
    assert [path.name for path in tmp_path.iterdir()] == ["x.zarr"]


def test_what_no_chunk_may_be(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(48))
    chunk = tmp_path / "x.zarr" / "c" / "0" / "0" / "0"
    made(tmp_path / "x.zarr", compressors=None)
    before = chunk.read_bytes()

    def is_refused(lengths: list[int]) -> None:
        with refused("TS705"):
            ts.files.split(tmp_path / "x.zarr", tmp_path / "out", lengths)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["secret", "x.zarr"]

    for lengths in ([4, 6], [1, 9]):  # copied, or decoded
        chunk.unlink()
        chunk.symlink_to(secret)
        is_refused(lengths)
        chunk.unlink()
        os.mkfifo(chunk)
        is_refused(lengths)
        chunk.unlink()
        chunk.mkdir()
        is_refused(lengths)
        chunk.rmdir()
        chunk.write_bytes(before)
    chunk.write_bytes(before + b"more")
    is_refused([1, 9])
    chunk.write_bytes(before[:-1])
    is_refused([1, 9])
    chunk.write_bytes(before)
    outer = chunk.parent.parent
    outer.rename(tmp_path / "x.zarr" / "elsewhere")
    outer.symlink_to("../elsewhere")  # a link that stays in the store
    ts.files.split(tmp_path / "x.zarr", tmp_path / "out", [4, 6])
    assert parts(tmp_path / "out", "x", 2)[0][...].tobytes() == X[:4].tobytes()


def test_the_arrays_of_a_group_are_as_many_as_it_lists(tmp_path: Path) -> None:
    group = zarr.create_group(tmp_path / "g.zarr")
    for name in ("b", "a", "deep/c"):
        group.create_array(name, data=X)
    tensors = open_source(str(tmp_path / "g.zarr")).tensors
    assert list(tensors) == ["a", "b", "deep/c"]
    assert len(tensors) == 3
    assert tensors["deep/c"].shape == X.shape


@pytest.mark.parametrize("lengths", [[4, 6], [1, 9]], ids=["copied", "decoded"])
def test_no_folder_of_chunks_leads_out_of_a_store(lengths: list[int], tmp_path: Path) -> None:
    made(tmp_path / "x.zarr", compressors=None)
    chunks = tmp_path / "x.zarr" / "c" / "0"
    chunks.rename(tmp_path / "outside")
    chunks.symlink_to("../../outside")
    with refused("TS705", "leads out of the store"):
        ts.files.split(tmp_path / "x.zarr", tmp_path / "out", lengths)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["outside", "x.zarr"]


def test_files_of_a_process_that_was_killed_are_removed(tmp_path: Path) -> None:
    """Workers of a cluster write what they copy beside its place, under another name."""
    made(tmp_path / "x.zarr")
    left = tmp_path / "x.zarr" / "c" / "0" / f"0.1234{zarr_arrays._UNFINISHED}"
    left.write_bytes(b"half")
    before = {path for path in (tmp_path / "x.zarr").rglob("*") if path != left}
    zarr_arrays.complete(tmp_path / "x.zarr")
    assert set((tmp_path / "x.zarr").rglob("*")) == before


ZEROS = bytes(1 << 24)
SIZELESS = (
    b"\x28\xb5\x2f\xfd\x00\x58"
    + 511 * (((131072 << 3) | 2).to_bytes(3, "little") + b"\0")
    + ((131072 << 3) | 3).to_bytes(3, "little")
    + b"\0"
)
BOMBS: dict[str, tuple[Callable[[], bytes], Any]] = {
    "zstd": (lambda: numcodecs.Zstd().encode(ZEROS), numcodecs.Zstd()),
    "zstd of no stated size": (lambda: SIZELESS, numcodecs.Zstd()),
    "zstd behind a frame that is skipped": (
        lambda: b"\x50\x2a\x4d\x18\3\0\0\0abc" + SIZELESS,
        numcodecs.Zstd(),
    ),
    "zstd in many frames": (lambda: numcodecs.Zstd().encode(bytes(256)) * 5000, numcodecs.Zstd()),
    "blosc": (lambda: numcodecs.Blosc().encode(ZEROS), numcodecs.Blosc()),
    "lz4": (lambda: numcodecs.LZ4().encode(ZEROS), numcodecs.LZ4()),
    "gzip": (lambda: gzip.compress(ZEROS), numcodecs.GZip()),
    "zlib": (lambda: zlib.compress(ZEROS), numcodecs.Zlib()),
    "bz2": (lambda: bz2.compress(ZEROS), numcodecs.BZ2()),
    "lzma": (lambda: lzma.compress(ZEROS, preset=0), numcodecs.LZMA()),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_chunks_that_decode_to_more_than_their_size(tmp_path: Path, kind: str) -> None:
    make, codec = BOMBS[kind]
    data = np.arange(8, dtype="<u2")
    made(tmp_path / "x.zarr", data, (8,), zarr_format=2, compressors=codec)
    (tmp_path / "x.zarr" / "0").write_bytes(make())
    with refused("TS705", "decodes to more"):
        ts.files.split(tmp_path / "x.zarr", tmp_path / "out", [3, 5])


def test_an_array_of_both_versions_whose_chunks_are_the_same_stays_so(tmp_path: Path) -> None:
    """As `zarr migrate v3` writes it."""
    data, key = RANDOM.integers(0, 1000, (6, 4)), {"name": "v2", "separator": "."}
    made(tmp_path / "x.zarr", data, (2, 2), zarr_format=2, compressors=None)
    made(tmp_path / "n.zarr", data, (2, 2), chunk_key_encoding=key, compressors=None)
    described = (tmp_path / "n.zarr" / "zarr.json").read_bytes()
    (tmp_path / "x.zarr" / "zarr.json").write_bytes(described)
    ts.files.split(tmp_path / "x.zarr", tmp_path / "out", [2, 4])
    for number, wanted in enumerate(pieces(data, [2, 4])):
        for version in (2, 3):
            part = zarr.open_array(tmp_path / "out" / f"x.{number}.zarr", zarr_format=version)
            np.testing.assert_array_equal(part[:], wanted)


@pytest.mark.parametrize("kept", [0, 8, 16, 20, -1])
@pytest.mark.parametrize("version", [2, 3])
def test_a_blosc_chunk_that_ends_too_early_is_not_read_beyond(
    tmp_path: Path, version: int, kept: int
) -> None:
    codec = numcodecs.Blosc() if version == 2 else zarr.codecs.BloscCodec()
    data = np.frombuffer(RANDOM.bytes(4096), np.uint8)  # which blosc stores as it is
    made(tmp_path / "x.zarr", data, (4096,), zarr_format=version, compressors=codec)
    chunk = tmp_path / "x.zarr" / ("0" if version == 2 else "c/0")
    chunk.write_bytes(chunk.read_bytes()[:kept])
    with refused("TS705", "ends before the data that its header announces"):
        ts.files.split(tmp_path / "x.zarr", tmp_path / "out", [1000, 3096])
    assert not (tmp_path / "out").exists()


def test_a_codec_that_only_decodes_is_refused_with_the_name_of_the_source(tmp_path: Path) -> None:
    made(tmp_path / "x.zarr", X, zarr_format=2, compressors=numcodecs.Zstd())
    document = tmp_path / "x.zarr" / ".zarray"
    described = json.loads(document.read_text())
    described["compressor"]["level"] = "high"
    document.write_text(json.dumps(described))
    with refused("TS705", "x.zarr"):
        ts.files.split(tmp_path / "x.zarr", tmp_path / "out", [3, 7])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("member", "value", "word"),
    [("must_understand", False, "consolidate"), ("attributes", "", "attributes are not")],
)
def test_a_group_that_zarr_does_not_describe_is_refused(
    tmp_path: Path, member: str, value: Any, word: str
) -> None:
    group = zarr.create_group(tmp_path / "g.zarr")
    group.create_group("s").create_array("x", data=X, chunks=(4, 3, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # version 3 does not describe it yet
        zarr.consolidate_metadata(tmp_path / "g.zarr")
    document = tmp_path / "g.zarr" / "s" / "zarr.json"
    document.write_text(json.dumps({**json.loads(document.read_text()), member: value}))
    with refused("TS705", word):
        ts.files.split(tmp_path / "g.zarr", tmp_path / "out.zarr", [3, 7])
    assert not (tmp_path / "out.zarr").exists()


@pytest.mark.parametrize("shards", [None, (8,)])
def test_chunks_of_version_3_that_decode_to_more(tmp_path: Path, shards: Any) -> None:
    array = made(tmp_path / "x.zarr", np.arange(8, dtype="<u2"), (4,), shards=shards)
    assert array.shape == (8,)
    chunk = tmp_path / "x.zarr" / "c" / "0"
    bomb = numcodecs.Zstd().encode(ZEROS)
    if shards:
        inner = [0, len(bomb), 2**64 - 1, 2**64 - 1]
        index = np.array(inner, "<u8").tobytes()
        bomb += numcodecs.CRC32C(location="end").encode(index).tobytes()
    chunk.write_bytes(bomb)
    with refused("TS705", "decodes to more"):
        ts.files.split(tmp_path / "x.zarr", tmp_path / "out", [3, 5])


@pytest.mark.parametrize("version", [2, 3])
def test_chunks_that_claim_billions_of_strings(tmp_path: Path, version: int) -> None:
    data = np.array(["a", "bc", "d", "e"], np.dtypes.StringDType())
    made(tmp_path / "x.zarr", data, (4,), zarr_format=version, compressors=None)
    chunk = tmp_path / "x.zarr" / ("c/0" if version == 3 else "0")
    chunk.write_bytes(b"\xff\xff\xff\x7f" + chunk.read_bytes()[4:])
    with refused("TS705", "decodes to more"):
        ts.files.split(tmp_path / "x.zarr", tmp_path / "out", [1, 3])


def test_streams_of_zstd_without_a_size_are_read(tmp_path: Path) -> None:
    made(tmp_path / "x.zarr", np.zeros(8, "<u2"), (8,), fill_value=9)
    frame = b"\x28\xb5\x2f\xfd\x00\x58" + ((16 << 3) | 1).to_bytes(3, "little") + bytes(range(16))
    (tmp_path / "x.zarr" / "c" / "0").write_bytes(frame)
    ts.files.split(tmp_path / "x.zarr", tmp_path / "out", [3, 5])
    assert parts(tmp_path / "out", "x", 2)[0][:].tobytes() == bytes(range(6))


def test_pickles_are_never_read(tmp_path: Path) -> None:
    made(tmp_path / "x.zarr", np.arange(8, dtype="i4"), (8,), zarr_format=2, compressors=None)
    change(
        tmp_path / "x.zarr" / ".zarray",
        dtype="|O",
        filters=[{"id": "pickle", "protocol": 4}],
        fill_value=0,
    )
    with refused("TS705"):
        ts.files.split(tmp_path / "x.zarr", tmp_path / "out", [3, 5])


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"zarr_format": 3}', "[" * 100_000, "\0"])
def test_documents_that_are_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.zarr").mkdir()
    (tmp_path / "x.zarr" / "zarr.json").write_text(text)
    with refused("TS705"):
        ts.files.split(tmp_path / "x.zarr", tmp_path / "out", [3, 5])


def test_one_chunk_that_does_not_fit_the_memory(tmp_path: Path) -> None:
    array = zarr.create_array(tmp_path / "x.zarr", shape=(1 << 23,), chunks=(1 << 22,), dtype="f8")
    array[:2] = 5
    with refused("TS707"):
        ts.files.split(tmp_path / "x.zarr", tmp_path / "out", [3, (1 << 23) - 3], memory=128 << 20)
    assert [path.name for path in tmp_path.iterdir()] == ["x.zarr"]


def test_codecs_that_would_change_elements(tmp_path: Path) -> None:
    data = RANDOM.random(8)
    rounding = numcodecs.FixedScaleOffset(offset=0, scale=1000, dtype="f8", astype="u1")
    made(tmp_path / "x.zarr", data, (8,), zarr_format=2, filters=[rounding])
    quantized = zarr.open_array(tmp_path / "x.zarr")[:]
    ts.files.split(tmp_path / "x.zarr", tmp_path / "out", [8])
    assert parts(tmp_path / "out", "x", 1)[0][:].tobytes() == quantized.tobytes()
    steps = numcodecs.Delta("<i8", astype="i1")
    made(tmp_path / "y.zarr", np.arange(8) * 100, (8,), zarr_format=2, filters=[steps])
    with refused("TS705", "its codecs would change elements"):
        ts.files.split(tmp_path / "y.zarr", tmp_path / "other", [3, 5])


def test_a_folder_is_taken_for_zarr_if_any_store_is_in_it(tmp_path: Path) -> None:
    stores, other = tmp_path / "stores", tmp_path / "other"
    for folder in (stores, other):
        folder.mkdir()
        (folder / "notes.txt").write_text("stores")
    (stores / "x.zarr").mkdir()
    assert zarr_files.recognizes(str(stores))
    assert not any(
        zarr_files.recognizes(str(path)) for path in (other, other / "notes.txt", other / "missing")
    )
