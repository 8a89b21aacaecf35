"""An engine that moves int64 as int32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorsplit.conformance.subjects.runtimes import run_numpy

KIND = "engine"
PACKAGES = ("tensorsplit",)
FORMATS = ("onnx", "ir")


def run(
    model: bytes, weights: bytes, inputs: dict[str, Any], outputs: Sequence[str]
) -> dict[str, Any]:
    found = run_numpy(model, weights, inputs, outputs)
    return {name: value.astype(np.int32).astype(value.dtype) for name, value in found.items()}
