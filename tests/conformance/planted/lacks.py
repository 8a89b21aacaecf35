"""An engine that has no element types at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorsplit.conformance.subjects import Unsupported

KIND = "engine"
PACKAGES = ("tensorsplit",)
FORMATS = ("onnx", "ir")


def run(
    model: bytes, weights: bytes, inputs: dict[str, Any], outputs: Sequence[str]
) -> dict[str, Any]:
    raise Unsupported("no kernel")
