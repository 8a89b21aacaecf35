"""What is in place after a power cut is whole: its data is on the disk before its name is."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import tensorsplit as ts
from tensorsplit.conformance.cases import find
from tensorsplit.conformance.export import export
from tensorsplit.storage.outputs import Brought, Content, Outputs
from tests.storage.disk import Disk

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/fd")

RANDOM = np.random.default_rng(23)


@pytest.mark.parametrize("before", [None, b"before"])
def test_a_file_is_on_the_disk_before_its_name_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bytes | None
) -> None:
    target, data = tmp_path / "one", RANDOM.bytes(70_000)
    if before is not None:
        target.write_bytes(before)
    disk = Disk(tmp_path, monkeypatch)
    Outputs(overwrite=True).write({target: lambda file: file.write(data)})
    assert disk.renamed == [target]
    assert disk.torn == []
    assert disk.lost(target) == []
    assert disk.forgets(target, tmp_path) == []


def test_a_file_behind_a_link_is_on_the_disk_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "link").symlink_to("other/one")
    disk = Disk(tmp_path, monkeypatch)
    Outputs().write({tmp_path / "link": b"1"})
    target = tmp_path / "other" / "one"
    assert disk.torn == disk.lost(target) == []
    assert disk.forgets(target, target.parent) == []


def test_a_copy_of_weights_is_on_the_disk_before_the_model_that_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = tmp_path / "weights"
    weights.write_bytes(RANDOM.bytes(9_000))
    folder = tmp_path / "a" / "b"
    disk = Disk(tmp_path, monkeypatch)
    copy = Brought(weights, is_copy=True)
    files: dict[Path, Content] = {folder / "weights": copy, folder / "model": b"names it"}
    Outputs(create_dirs=True).write(files)
    assert disk.renamed == [folder / "weights", folder / "model"]
    assert disk.torn == []
    for target in files:
        assert disk.lost(target) == []
        assert disk.forgets(target, tmp_path) == []


def saved(folder: Path, suffix: str) -> Path:
    """Save an array in the format that a target of this suffix is split from."""
    array = RANDOM.random((12, 6))
    if suffix == ".zarr":
        path = folder / "x.zarr"
        pytest.importorskip("zarr").save_array(path, array)
    elif suffix == ".safetensors":
        path = folder / "x.safetensors"
        pytest.importorskip("safetensors.numpy").save_file({"x": array}, path)
    else:
        path = folder / "x.npy"
        np.save(path, array)
    return path


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("suffix", ["", ".npz", ".safetensors", ".zarr"])
def test_tensors_are_on_the_disk_before_their_name_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, is_there: bool
) -> None:
    source = saved(tmp_path, suffix)
    target = tmp_path / "new" / f"out{suffix}"
    target.parent.mkdir()
    if is_there:
        ts.files.split(source, target, axis=0, num_outputs=2)
    disk = Disk(tmp_path, monkeypatch)
    ts.files.split(source, target, axis=1, num_outputs=3, overwrite=is_there)
    assert target in disk.renamed
    assert disk.torn == []
    assert disk.lost(target) == []
    assert disk.forgets(target, target.parent) == []


def test_cases_are_on_the_disk_before_their_folder_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = find(["onnx.Split-13/float/static-r1/*"])[:3]
    target = tmp_path / "cases"
    disk = Disk(tmp_path, monkeypatch)
    export(cases, target, Outputs())
    assert disk.renamed == [target]
    assert disk.torn == []
    assert disk.lost(target) == []
    assert disk.forgets(target, target.parent) == []
