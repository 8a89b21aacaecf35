"""onnx's shape inference, strict and with data propagation: all that it can say."""

from __future__ import annotations

KIND = "tool"
PACKAGES = ("onnx",)
MODULES = ("onnx.shape_inference",)
FORMATS = ("onnx",)
JUDGED_BY = "shapes"

IMPORTS = """\
import onnx"""
SCRIPT = """\
model = onnx.load_from_string(MODEL)
found = onnx.shape_inference.infer_shapes(model, True, True, True)
rewritten = found.SerializeToString()"""


def rewrite(model: bytes, target_opset: int | None) -> bytes:
    """What the tool makes of a model; see `tensorsplit.conformance.subjects`."""
    from onnx import load_from_string, shape_inference

    del target_opset
    found = shape_inference.infer_shapes(
        load_from_string(model), check_type=True, strict_mode=True, data_prop=True
    )
    return bytes(found.SerializeToString())
