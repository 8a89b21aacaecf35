"""onnxsim (onnx-simplifier)."""

from __future__ import annotations

KIND = "tool"
PACKAGES = ("onnxsim",)
MODULES = ("onnx", "onnxsim")
FORMATS = ("onnx",)

IMPORTS = """\
import onnx, onnxsim"""
SCRIPT = """\
rewritten = onnxsim.simplify(onnx.load_from_string(MODEL))[0].SerializeToString()"""


def rewrite(model: bytes, target_opset: int | None) -> bytes:
    """What the tool makes of a model; see `tensorsplit.conformance.subjects`."""
    import onnxsim
    from onnx import load_from_string

    del target_opset
    found, _ = onnxsim.simplify(load_from_string(model))
    return bytes(found.SerializeToString())
