"""onnxscript's version converter, on a model in onnxscript's own representation.

Given a ``ModelProto``, it does the same to the nodes and leaves the opset imports as they were
(measured on 0.7.2), which would hide what it does to each node.
"""

from __future__ import annotations

KIND = "tool"
PACKAGES = ("onnxscript",)
MODULES = ("onnx", "onnxscript.version_converter")
FORMATS = ("onnx",)
DOWNWARDS = False

IMPORTS = """\
import onnx, onnxscript.version_converter"""
SCRIPT = """\
model = onnxscript.ir.from_proto(onnx.load_from_string(MODEL))
onnxscript.version_converter.convert_version(model, TARGET_OPSET)
rewritten = onnxscript.ir.to_proto(model).SerializeToString()"""


def rewrite(model: bytes, target_opset: int | None) -> bytes:
    """What the tool makes of a model; see `tensorsplit.conformance.subjects`."""
    from onnx import load_from_string
    from onnxscript import ir, version_converter

    if target_opset is None:
        return model
    converted = ir.from_proto(load_from_string(model))
    version_converter.convert_version(converted, target_opset)
    return bytes(ir.to_proto(converted).SerializeToString())
