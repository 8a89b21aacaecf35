"""Weights come along with what is written, from beside a model to another folder too."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import tensorsplit as ts
from tests.cli.conftest import Command
from tests.model.build import FLOAT, graph, model, node, value
from tests.model.graph.test_weights import whole

DATA = np.arange(1, 7, dtype=np.float32)


def save(folder: Path, location: str) -> Path:
    """A model whose only tensor lies at a location; its data is written there."""
    weights = TensorProto(name="w", data_type=FLOAT, dims=[6], data_location=TensorProto.EXTERNAL)
    weights.external_data.add(key="location", value=location)
    made = node("Split", "w", "a b", num_outputs=2)
    folder.mkdir(parents=True)
    (folder / location).write_bytes(DATA.tobytes())
    outputs = [value(name, FLOAT, (3,)) for name in "ab"]
    path = folder / "m.onnx"
    onnx.save(model(graph([made], [], outputs, [weights])), path)
    return path


@pytest.mark.parametrize("option", [(), ("--link-external-data",)])
def test_they_are_linked_or_copied(
    option: tuple[str, ...], tensorsplit: Command, tmp_path: Path
) -> None:
    source, out = save(tmp_path / "in", "w.bin"), tmp_path / "out" / "m.onnx"
    out.parent.mkdir()
    assert tensorsplit("convert", source, "--opset", 13, "-o", out, *option).status == 0
    brought = out.parent / "w.bin"
    assert brought.read_bytes() == DATA.tobytes()
    assert brought.samefile(source.parent / "w.bin") is bool(option)


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_copies_have_the_permissions_of_any_new_file(tensorsplit: Command, tmp_path: Path) -> None:
    source, out = save(tmp_path / "in", "w.bin"), tmp_path / "out" / "m.onnx"
    out.parent.mkdir()
    tensorsplit("convert", source, "--opset", 13, "-o", out)
    assert (out.parent / "w.bin").stat().st_mode == out.stat().st_mode


def test_none_is_brought_from_outside_the_folder(tensorsplit: Command, tmp_path: Path) -> None:
    source, out = save(tmp_path / "a" / "in", "../secret.bin"), tmp_path / "b" / "out" / "m.onnx"
    ended = tensorsplit("convert", source, "--opset", 13, "-o", out, "--create-dirs")
    assert ended.status == 2
    assert "[TS504]" in ended.err
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("name", ["m.onnx", "other.onnx"])
@pytest.mark.parametrize("command", ["infer", "convert"])
def test_those_in_the_file_do(
    command: str, name: str, tensorsplit: Command, tmp_path: Path
) -> None:
    source, out = tmp_path / "m.onnx", tmp_path / name
    onnx.save(whole(), source)
    options = ["--opset", 18] if command == "convert" else []
    wanted = ts.convert(whole(), opset=18) if options else ts.infer_shapes(whole())
    assert tensorsplit(command, source, *options, "-o", out).status == 0
    assert onnx.load(out) == wanted
    assert set(tmp_path.iterdir()) == {source, out}
