"""Merges of zarr arrays, against the arrays that were split, bit for bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts

zarr = pytest.importorskip("zarr")

RANDOM = np.random.default_rng(51)
X = RANDOM.random((10, 7, 9)).astype("<f4")
KINDS: dict[str, dict[str, Any]] = {
    "v2": {"zarr_format": 2},
    "v2 F": {"zarr_format": 2, "order": "F", "compressors": None},
    "v3": {},
    "v3 plain": {"compressors": None},
    "v3 sharded": {"shards": (4, 6, 10)},
}


def made(path: Path, data: Any = X, **options: Any) -> None:
    options = {"chunks": (4, 3, 5), "dtype": data.dtype, "fill_value": 7, **options}
    array = zarr.create_array(path, shape=data.shape, attributes={"kept": [1]}, **options)
    array[...] = data


def files_of(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def described(folder: Path, name: str = "") -> dict[str, Any]:
    names = ("zarr.json", ".zarray", ".zattrs")
    places = [folder / name / each for each in names]
    return {each.name: json.loads(each.read_text()) for each in places if each.exists()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("axis", "lengths"), [(0, [4, 4, 2]), (0, [3, 0, 7]), (1, [6, 1]), (-1, [2, 7])]
)
def test_an_array_comes_back(tmp_path: Path, kind: str, axis: int, lengths: list[int]) -> None:
    source, back = tmp_path / "x.zarr", tmp_path / "back.zarr"
    made(source, **KINDS[kind])
    ts.files.split(source, tmp_path / "parts", lengths, axis=axis)
    ts.files.merge(tmp_path / "parts", back, axis=axis, verify=True)
    assert zarr.open_array(back, mode="r")[...].tobytes() == X.tobytes()
    assert described(back) == described(source)
    ts.files.merge(tmp_path / "parts", tmp_path / "folder", axis=axis)
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["x.zarr"]
    assert files_of(tmp_path / "folder" / "x.zarr") == files_of(back)


@pytest.mark.parametrize("kind", ["v2", "v3", "v3 plain"])
def test_parts_that_begin_at_chunks_give_the_very_files(tmp_path: Path, kind: str) -> None:
    made(tmp_path / "x.zarr", **KINDS[kind])
    ts.files.split(tmp_path / "x.zarr", tmp_path / "parts", [4, 4, 2])
    ts.files.merge(tmp_path / "parts", tmp_path / "back.zarr")
    before, after = files_of(tmp_path / "x.zarr"), files_of(tmp_path / "back.zarr")
    assert after.keys() == before.keys()
    for name in before.keys() - {"zarr.json", ".zarray", ".zattrs"}:
        assert after[name] == before[name]


@pytest.mark.parametrize("version", [2, 3])
def test_chunks_that_are_missing_stay_missing(tmp_path: Path, version: int) -> None:
    made(tmp_path / "x.zarr", zarr_format=version)
    gone = ["0/0/0", "1/0/0", "1/2/1"]  # rows 3 to 6, which one part begins with, are missing
    for chunk in gone:
        name = "c/" + chunk if version == 3 else chunk.replace("/", ".")
        (tmp_path / "x.zarr" / name).unlink()
    expected = zarr.open_array(tmp_path / "x.zarr", mode="r")[...]
    assert expected[0, 0, 0] == 7
    ts.files.split(tmp_path / "x.zarr", tmp_path / "parts", [3, 7])
    ts.files.merge(tmp_path / "parts", tmp_path / "back.zarr", verify=True)
    back = zarr.open_array(tmp_path / "back.zarr", mode="r")
    assert back[...].tobytes() == expected.tobytes()
    first = "c/0/0/0" if version == 3 else "0.0.0"
    assert not (tmp_path / "back.zarr" / first).exists()


@pytest.mark.parametrize("version", [2, 3])
def test_a_group_comes_back(tmp_path: Path, version: int) -> None:
    group = zarr.create_group(tmp_path / "g.zarr", zarr_format=version, attributes={"of": "all"})
    inner = group.create_group("inner", attributes={"deep": True})
    arrays = {"a": (group, X), "b": (inner, X[:6, :3]), "kept": (group, X[0])}
    for name, (where, data) in arrays.items():
        chunks = tuple(-(-size // 2) for size in data.shape)
        array = where.create_array(name, shape=data.shape, dtype=data.dtype, chunks=chunks)
        array[...] = data
    rules = {
        "split": [
            {"tensors": "a", "axis": 2, "split": [4, 5], "names": ["one", "deep/two"]},
            {"tensors": "inner/*", "axis": 0, "num_outputs": 3},
        ]
    }
    ts.files.split(tmp_path / "g.zarr", tmp_path / "parts.zarr", rules=rules)
    ts.files.merge(tmp_path / "parts.zarr", tmp_path / "back.zarr", rules=rules, verify=True)
    back = zarr.open_group(tmp_path / "back.zarr", mode="r")
    assert dict(back.attrs) == {"of": "all"}
    assert dict(back["inner"].attrs) == {"deep": True}
    found = {path for path, each in back.members(max_depth=None) if isinstance(each, zarr.Array)}
    assert found == {"a", "inner/b", "kept"}
    for path in found:
        _, data = arrays[path.rpartition("/")[2]]
        assert back[path][...].tobytes() == np.ascontiguousarray(data).tobytes()
        assert described(tmp_path / "back.zarr", path) == described(tmp_path / "g.zarr", path)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"fill_value": 8}, "fill_value"),
        ({"compressors": None}, "codecs"),
        ({"chunks": (5, 3, 5)}, "chunk_grid"),
    ],
)
def test_parts_that_are_stored_differently(
    tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    (tmp_path / "parts").mkdir()
    made(tmp_path / "parts" / "x.0.zarr")
    made(tmp_path / "parts" / "x.1.zarr", **options)
    with pytest.raises(ts.SplitError, match=rf"TS713.*x\.1 is stored differently.*{said}"):
        ts.files.merge(tmp_path / "parts", tmp_path / "back.zarr")
    assert not (tmp_path / "back.zarr").exists()


def test_other_attributes_are_said(tmp_path: Path) -> None:
    made(tmp_path / "x.zarr")
    ts.files.split(tmp_path / "x.zarr", tmp_path / "parts", [4, 6])
    zarr.open_array(tmp_path / "parts" / "x.1.zarr").attrs["kept"] = [2]
    with pytest.warns(ts.SplitWarning, match=r"x\.1 has other attributes; those of the first stay"):
        ts.files.merge(tmp_path / "parts", tmp_path / "back.zarr")
    assert dict(zarr.open_array(tmp_path / "back.zarr", mode="r").attrs) == {"kept": [1]}
