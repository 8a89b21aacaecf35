"""onnxruntime, on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorsplit.conformance.subjects import unsupported
from tensorsplit.engines.wire import EngineRefusal, Request

KIND = "engine"
PACKAGES = ("onnxruntime",)
MODULES = ("onnxruntime",)
FORMATS = ("onnx",)

IMPORTS = "import onnxruntime"
SCRIPT = """\
session = onnxruntime.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
results = dict(zip(OUTPUTS, session.run(list(OUTPUTS), INPUTS)))"""

FOREIGN_IMPORTS = """\
import ctypes
import onnxruntime"""
FOREIGN_SCRIPT = """\
def to_value(array):
    if array.dtype != ml_dtypes.bfloat16:
        return onnxruntime.OrtValue.ortvalue_from_numpy(array)
    bits, kind = array.view(np.uint16), onnx.TensorProto.BFLOAT16
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, kind)


def to_array(value):
    if value.data_type() != "tensor(bfloat16)":
        return value.numpy()
    shape = value.shape()
    data = ctypes.string_at(value.data_ptr(), 2 * int(np.prod(shape)))
    return np.frombuffer(data, ml_dtypes.bfloat16).reshape(shape)


session = onnxruntime.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
feeds = {name: to_value(value) for name, value in INPUTS.items()}
values = session.run_with_ort_values(list(OUTPUTS), feeds)
results = {name: to_array(value) for name, value in zip(OUTPUTS, values)}"""

_UNSUPPORTED = (
    r"NOT_IMPLEMENTED : Could not find an implementation"
    r"|is not currently registered or supported"
    r"|only \*guarantees\* support for models stamped with official released onnx opset versions"
)


def run(
    model: bytes, weights: bytes, inputs: dict[str, Any], outputs: Sequence[str]
) -> dict[str, Any]:
    """Run a model; see `tensorsplit.conformance.subjects`."""
    from tensorsplit.engines.onnxruntime import run as run_session

    del weights
    with unsupported(model, EngineRefusal, says=_UNSUPPORTED):
        found = run_session(Request("onnx", data=model, feeds=inputs, outputs=tuple(outputs)))
    return dict(zip(outputs, found, strict=True))
