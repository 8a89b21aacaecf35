"""onnxslim."""

from __future__ import annotations

KIND = "tool"
PACKAGES = ("onnxslim",)
MODULES = ("onnx", "onnxslim")
FORMATS = ("onnx",)

IMPORTS = """\
import onnx, onnxslim"""
SCRIPT = """\
rewritten = onnxslim.slim(onnx.load_from_string(MODEL)).SerializeToString()"""


def rewrite(model: bytes, target_opset: int | None) -> bytes:
    """What the tool makes of a model; see `tensorsplit.conformance.subjects`."""
    import onnxslim
    from onnx import load_from_string

    del target_opset
    return bytes(onnxslim.slim(load_from_string(model)).SerializeToString())
