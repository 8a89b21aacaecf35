"""A model file, with its weights, stays as it is, whatever is made of it."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Command
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
        ("run", "--random", "-o", "out"),
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
