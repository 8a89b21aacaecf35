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
        assert "Permission denied" in each.err
        assert "run as a user who may read it" in each.err
    assert (adapter.status, "[TS602]" in adapter.err) == (2, True)


def test_who_may_read_what_else_a_command_reads(
    place: Path, tensorsplit: Command, refused: Callable[..., str]
) -> None:
    """Models, what they are fed, their weights, rules, the numbers of a model, and reports."""
    onnx = pytest.importorskip("onnx")
    ranks, files = place / "ranks", [place / name for name in ("m.onnx", "x.npy", "r.toml", "w")]
    held = onnx.TensorProto(name="w", data_type=1, dims=[4], data_location=1)
    held.external_data.add(key="location", value="w")
    nodes = [node("Sum", "x w", "s"), node("Split", "s", "a b", num_outputs=2)]
    made = model(graph(nodes, [value("x", shape=[4])], "ab", [held]))
    made.ir_version = 10
    onnx.save(made, files[0])
    np.save(files[1], RANDOM.random(4, np.float32))
    files[2].write_text('[[shard]]\ntensors = "x"\naxis = 0\n')
    files[3].write_bytes(RANDOM.random(4, np.float32).tobytes())
    ts.files.split(safetensors(place), ranks, rules=RULES, ranks=2)
    run = ("run", files[0], "-i", f"x={files[1]}")
    commands: list[tuple[str, tuple[object, ...]]] = [
        *(("TS501", (name, files[0])) for name in ("check", "explain", "doctor")),
        *(("TS501", (*words, files[0], "-o", place / "o.onnx")) for words in (["infer"],)),
        ("TS501", run),
        ("TS701", run),
        ("TS703", ("merge", ranks, "-o", place / "o.safetensors", "--rules", files[2])),
        ("TS504", run),
    ]
    for code, words in commands:
        read = {"TS501": 0, "TS701": 1, "TS703": 2, "TS504": 3}[code]
        assert tensorsplit(*words).status in (0, 1)  # all modules are loaded now
        shutil.rmtree(place / "o.onnx", ignore_errors=True)
        for left in (place / "o.onnx", place / "o.safetensors"):
            left.unlink(missing_ok=True)
        files[read].chmod(0)
        with as_nobody():
            said = refused(code, *words)
        files[read].chmod(0o644)
        assert "Permission denied; it belongs to " in said, words
        assert "run as a user who may read it" in said, words
