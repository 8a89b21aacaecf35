"""An engine that forgets the last part."""

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
    return {name: found[name] for name in outputs[:-1]}
