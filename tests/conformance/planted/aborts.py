"""An engine that aborts, as C++ does with an exception that nobody catches."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

KIND = "engine"
PACKAGES = ("tensorsplit",)
FORMATS = ("onnx", "ir")


def run(
    model: bytes, weights: bytes, inputs: dict[str, Any], outputs: Sequence[str]
) -> dict[str, Any]:
    sys.stderr.write("free(): invalid pointer\n")
    os.abort()
