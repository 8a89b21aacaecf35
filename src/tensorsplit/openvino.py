"""The OpenVINO operators whose names would clash with ONNX's: ``tensorsplit.openvino.split``."""

from __future__ import annotations

from tensorsplit.api import openvino_split as split
from tensorsplit.api import variadic_split

__all__ = ["split", "variadic_split"]
