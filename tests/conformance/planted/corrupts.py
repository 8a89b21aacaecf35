"""An engine that is damaged by one case, and dies of it in the next."""

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
    if os.environ.get("DAMAGED"):
        os.abort()
    if "damage" in inputs:
        os.environ["DAMAGED"] = "yes"
    return run_numpy(model, weights, {"x": inputs["x"]}, outputs)
