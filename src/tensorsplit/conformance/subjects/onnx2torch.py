"""onnx2torch: ONNX as a PyTorch module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorsplit.conformance.subjects import ordered, unsupported

KIND = "engine"
PACKAGES = ("onnx2torch", "torch")
MODULES = ("onnx", "torch", "onnx2torch")
FORMATS = ("onnx",)

IMPORTS = """\
import onnx, onnx2torch, torch"""
SCRIPT = """\
model = onnx.load_from_string(MODEL)
given = {entry.name for entry in model.graph.initializer}
names = [entry.name for entry in model.graph.input if entry.name not in given]
found = onnx2torch.convert(model)(*[torch.from_numpy(INPUTS[name]) for name in names])
found = [found] if isinstance(found, torch.Tensor) else found
results = {name: value.numpy() for name, value in zip(OUTPUTS, found)}"""


def run(
    model: bytes, weights: bytes, inputs: dict[str, Any], outputs: Sequence[str]
) -> dict[str, Any]:
    """Run a model; see `tensorsplit.conformance.subjects`."""
    import onnx
    import onnx2torch
    import torch

    del weights
    proto = onnx.load_from_string(model)
    given = {entry.name for entry in proto.graph.initializer}
    names = [entry.name for entry in proto.graph.input if entry.name not in given]
    with unsupported(model, NotImplementedError):
        converted = onnx2torch.convert(proto)
    fed = map(np.ascontiguousarray, ordered(model, inputs, names))
    found = converted(*map(torch.from_numpy, fed))
    values = [found] if isinstance(found, torch.Tensor) else found
    return {name: value.numpy() for name, value in zip(outputs, values, strict=True)}
