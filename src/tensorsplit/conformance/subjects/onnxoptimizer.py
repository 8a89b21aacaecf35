"""onnxoptimizer, with the passes that it applies by itself."""

from __future__ import annotations

KIND = "tool"
PACKAGES = ("onnxoptimizer",)
MODULES = ("onnx", "onnxoptimizer")
FORMATS = ("onnx",)

IMPORTS = """\
import onnx, onnxoptimizer"""
SCRIPT = """\
rewritten = onnxoptimizer.optimize(onnx.load_from_string(MODEL)).SerializeToString()"""


def rewrite(model: bytes, target_opset: int | None) -> bytes:
    """What the tool makes of a model; see `tensorsplit.conformance.subjects`."""
    import onnxoptimizer
    from onnx import load_from_string

    del target_opset
    return bytes(onnxoptimizer.optimize(load_from_string(model)).SerializeToString())
