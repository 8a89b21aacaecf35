"""An engine that can't be imported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

KIND = "engine"
PACKAGES = ("tensorsplit",)
MODULES = ("no_such_module_anywhere",)
FORMATS = ("onnx",)


def run(
    model: bytes, weights: bytes, inputs: dict[str, Any], outputs: Sequence[str]
) -> dict[str, Any]:
    raise AssertionError("it is imported first")
