"""An engine that gives wrong strings in a process that has run before."""

from __future__ import annotations

import os
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
    if os.environ.get("RAN"):
        return {name: value[::-1][:1] for name, value in found.items()}
    os.environ["RAN"] = "yes"
    return found
