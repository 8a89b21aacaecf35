"""OpenCV's dnn module, with the engine that it chooses itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorsplit.conformance.subjects import unsupported

KIND = "engine"
PACKAGES = ("opencv-python-headless",)
MODULES = ("cv2",)
FORMATS = ("onnx",)

IMPORTS = "import cv2"
SCRIPT = """\
net = cv2.dnn.readNetFromONNX(np.frombuffer(MODEL, np.uint8))
for name, value in INPUTS.items():
    net.setInput(value, name)
results = dict(zip(OUTPUTS, net.forward(list(OUTPUTS))))"""

_UNSUPPORTED = (
    r"data type = \w+ is not supported|unsupported datatype|Can't create layer \"[^\"]*\" of type"
)


def run(
    model: bytes, weights: bytes, inputs: dict[str, Any], outputs: Sequence[str]
) -> dict[str, Any]:
    """Run a model; an output without elements may come out as None."""
    import cv2

    del weights
    with unsupported(model, says=_UNSUPPORTED):
        net = cv2.dnn.readNetFromONNX(np.frombuffer(model, np.uint8))
        for name, value in inputs.items():
            net.setInput(value, name)
        found = net.forward(list(outputs))
    return dict(zip(outputs, found, strict=True))
