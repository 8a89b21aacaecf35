"""An engine that drops axes of length 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorsplit.conformance.subjects.runtimes import run_numpy

KIND = "engine"
PACKAGES = ("tensorsplit",)
FORMATS = ("onnx", "ir")


def run(
    model: bytes, weights: bytes, inputs: dict[str, Any], outputs: Sequence[str]
) -> dict[str, Any]:
    found = run_numpy(model, weights, inputs, outputs)
    return {name: value.squeeze() for name, value in found.items()}
