"""onnx's version converter."""

from __future__ import annotations

KIND = "tool"
PACKAGES = ("onnx",)
MODULES = ("onnx.version_converter",)
FORMATS = ("onnx",)

IMPORTS = """\
import onnx, onnx.version_converter"""
SCRIPT = """\
model = onnx.load_from_string(MODEL)
rewritten = onnx.version_converter.convert_version(model, TARGET_OPSET).SerializeToString()"""


def rewrite(model: bytes, target_opset: int | None) -> bytes:
    """What the tool makes of a model; see `tensorsplit.conformance.subjects`."""
    from onnx import load_from_string, version_converter

    if target_opset is None:
        return model
    found = version_converter.convert_version(load_from_string(model), target_opset)
    return bytes(found.SerializeToString())
