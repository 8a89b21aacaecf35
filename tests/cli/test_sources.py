"""Where models and arrays come from: files, which stay as they are, and pipes."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.cli.conftest import Command, process
from tests.model.test_left_as_it_is import with_everything


@pytest.mark.parametrize(
    "words",
    [
        ("check", "--for", "openvino"),
        ("explain",),
        ("infer", "-o", "out"),
        ("convert", "--opset", "11", "-o", "out"),
        ("convert", "--to-variadic", "-o", "out"),
        ("lower", "--for", "openvino", "-o", "out"),
        ("run", "--seed", "1", "-o", "out"),
    ],
    ids=" ".join,
)
def test_files_stay_as_they_are(
    words: tuple[str, ...],
    tmp_path: Path,
    tensorsplit: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    made = with_everything()
    path, weights = tmp_path / "model.onnx", tmp_path / "weights"
    onnx.save(made, path, save_as_external_data=True, location=weights.name, size_threshold=0)
    before = path.read_bytes(), weights.read_bytes()
    tensorsplit(words[0], path, *words[1:])
    assert (path.read_bytes(), weights.read_bytes()) == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("check", "-"), "no findings in 1 split node"),
        (("explain", "-"), "part  offset  size  shape"),
        (("run", "-", "--seed", "1"), "b: float (2, 3)"),
        (("infer", "-", "--dry-run"), "(2, 3)"),
        (("convert", "-", "--opset", "13", "--dry-run"), "opset ai.onnx  18"),
        (("lower", "-", "--for", "portable", "--dry-run"), "portable runs it as it is"),
    ],
    ids=lambda words: words[0],
)
def test_a_dash_is_standard_input(
    words: tuple[str, ...],
    said: str,
    split: Path,
    tensorsplit: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fixed = onnx.load(split)
    fixed.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 4
    octets = io.BytesIO(fixed.SerializeToString())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(octets))
    ended = tensorsplit(*words)
    assert (ended.status, ended.err) == (0, "")
    assert said in ended.out


def test_standard_input_that_is_empty(
    refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    assert "'standard input': it is empty" in refused("TS501", "infer", "-", "-o", "out")


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="needs process substitution")
def test_pipes_as_files(split: Path, x: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", x)
    inputs = f'<(cat "{split}") -i x=<(cat "{tmp_path}/x.npy") -o "{tmp_path}/out"'
    ended = process("run", shell=inputs)
    assert (ended.status, ended.err) == (0, "")
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "b.npy"), x[:, 1:])


def test_no_model_is_written_onto_a_terminal(
    split: Path, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert "-o OUT" in refused("TS703", "infer", split, "-o", "-")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs users")
def test_what_may_not_be_read(split: Path, refused: Callable[..., str]) -> None:
    split.chmod(0)
    if os.access(split, os.R_OK):
        pytest.skip("root may read everything")
    assert "Permission denied" in refused("TS501", "check", split)
