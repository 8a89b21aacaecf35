"""Models and arrays on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tests.model.build import FLOAT, graph, model, node, tensor, value

SPLIT = graph(
    [node("Split", "x s", "a b", axis=1)],
    [value("x", FLOAT, [2, "N"])],
    [value("a", FLOAT), value("b", FLOAT)],
    [tensor("s", [1, 3])],
)


def save(folder: Path, made: onnx.GraphProto, opset: int = 18) -> Path:
    saved = model(made, opset)
    saved.ir_version = 10  # one that every engine reads
    onnx.save(saved, folder / "model.onnx")
    return folder / "model.onnx"


def npy(folder: Path, array: Any, name: str = "x.npy") -> Path:
    np.save(folder / name, array)
    return folder / name


def identity(folder: Path, element: int, shape: list[int | str | None] | None = None) -> Path:
    """A model that returns what it is fed."""
    made = graph([node("Identity", "x", "y")], [value("x", element, shape)], [value("y", element)])
    return save(folder, made, 23)
