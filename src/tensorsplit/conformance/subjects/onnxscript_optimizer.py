"""onnxscript's optimizer."""

from __future__ import annotations

KIND = "tool"
PACKAGES = ("onnxscript",)
MODULES = ("onnx", "onnxscript.optimizer")
FORMATS = ("onnx",)

IMPORTS = """\
import onnx, onnxscript.optimizer"""
SCRIPT = """\
rewritten = onnxscript.optimizer.optimize(onnx.load_from_string(MODEL)).SerializeToString()"""


def rewrite(model: bytes, target_opset: int | None) -> bytes:
    """What the tool makes of a model; see `tensorsplit.conformance.subjects`."""
    from onnx import load_from_string
    from onnx_ir.passes import PassError
    from onnxscript import optimizer

    del target_opset
    try:
        return bytes(optimizer.optimize(load_from_string(model)).SerializeToString())
    except PassError as error:  # which says no more than the address of the pass
        raise error.__cause__ or error from None
