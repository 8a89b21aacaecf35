"""Sources that may not be read are refused as such, by name and with their owner."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import tensorsplit as ts
from tests.cli.conftest import Command
from tests.model.build import graph, model, node, value

numpy_files = pytest.importorskip("safetensors.numpy")
zarr = pytest.importorskip("zarr")
pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs users")
RANDOM = np.random.default_rng(285)
RULES = {"shard": [{"tensors": "x", "axis": 0}]}


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Run as a user who is not root, to whom modes mean nothing."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user may read and write."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def npy(place: Path) -> Path:
    np.save(place / "x.npy", RANDOM.random(8))
    return place / "x.npy"


def safetensors(place: Path) -> Path:
    numpy_files.save_file({"x": RANDOM.random(8)}, place / "x.safetensors")
    return place / "x.safetensors"


def store(place: Path) -> Path:
    zarr.create_array(place / "x.zarr", data=RANDOM.random(8), chunks=(4,))
    return place / "x.zarr"


def folder(place: Path) -> Path:
    (place / "model").mkdir()
    safetensors(place / "model")
    return place / "model"


@pytest.mark.parametrize("make", [npy, safetensors, store, folder])
def test_who_may_read_a_source(place: Path, make: Callable[[Path], Path]) -> None:
    source = make(place)
    rules = {"split": [{"tensors": "x", "num_outputs": 2}]}
    ts.files.split(source, place / "first", rules=rules)  # all modules are loaded now
    mode = source.stat().st_mode
    source.chmod(0)
    try:
        with as_nobody(), pytest.raises(ts.SplitError, match="TS705") as refusal:
            ts.files.split(source, place / "out", rules=rules)
    finally:
        source.chmod(mode)
    said = str(refusal.value)
    assert f"'{source}': Permission denied; it belongs to " in said
    assert "its mode is " in said
    assert "---------" in said
    assert "run as a user who may read it" in said
    assert "usage" not in said
    assert not (place / "out").exists()


def test_who_may_read_the_files_of_ranks(place: Path) -> None:
    ts.files.split(safetensors(place), place / "ranks", rules=RULES, ranks=2)
    ts.files.merge(place / "ranks", place / "first.safetensors", rules=RULES)
    for path in (place / "ranks" / "rank-1-of-2.safetensors", place / "ranks"):
        mode = path.stat().st_mode
        path.chmod(0)
        try:
            with as_nobody(), pytest.raises(ts.SplitError, match=r"TS705.*Permission denied"):
                ts.files.merge(place / "ranks", place / "out.safetensors", rules=RULES)
        finally:
            path.chmod(mode)
    assert not (place / "out.safetensors").exists()


def test_the_command_line_gives_no_hint_on_usage(
    place: Path, tensorsplit: Command, refused: Callable[..., str]
) -> None:
    source = npy(place)
    assert tensorsplit("split", source, "-o", place / "first", "--chunk", 4).status == 0
    source.chmod(0)
    with as_nobody():
        said = refused("TS705", "split", source, "-o", place / "out", "--chunk", 4)
    assert "Permission denied; it belongs to" in said
    assert "--help" not in said


def test_a_folder_that_may_not_be_read_is_not_one_without_models(
    place: Path, tensorsplit: Command, refused: Callable[..., str]
) -> None:
    onnx = pytest.importorskip("onnx")
    dark = place / "dark"
    dark.mkdir()
    for path in (place / "m.onnx", dark / "m.onnx"):
        onnx.save(
            model(graph([node("Split", "x", "a b", num_outputs=2)], [value("x")], "ab")), path
        )
    dark.chmod(0)
    refused("TS501", "check", place / "no.onnx")  # all modules are loaded now
    refused("TS601", "conformance", "--engine", place / "no.py")
    with as_nobody():
        ended = tensorsplit("check", place)
        alone = [tensorsplit("check", each) for each in (dark, dark / "m.onnx")]
        adapter = tensorsplit("conformance", "--engine", dark / "adapter.py")
    dark.chmod(0o755)
    assert (ended.status, "1 split node" in ended.out) == (2, True)
    for each in (ended, *alone):
        assert (each.status, "[TS501]" in each.err) == (2, True)
        assert "Permission denied; give the path of a model that can be read" in each.err
    assert (adapter.status, "[TS602]" in adapter.err) == (2, True)
