"""onnxruntime, on the CPU."""

from __future__ import annotations

import ctypes
import re
from math import prod
from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from tensorsplit.arrays.numpy import element_type
from tensorsplit.engines.wire import EngineRefusal, Request
from tensorsplit.model.openvino_ir.packing import pack, packed_size, unpack

_FATAL = 4
_FOREIGN = re.compile(r"tensor\((bfloat16|float[468]e\w+|u?int[24])\)")


def run(request: Request) -> list[Any]:
    """Run a model.

    Args:
        request: An ONNX model and what to feed it.

    Returns:
        The outputs, in the order of the request.

    Raises:
        EngineRefusal: For values that onnxruntime takes from Python, or gives to it, in no way.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _FATAL  # what goes wrong is in the exception as well
    session = onnxruntime.InferenceSession(
        request.path or request.data, options, providers=["CPUExecutionProvider"]
    )
    names = list(request.outputs)
    types = [output.type for output in session.get_outputs()]
    if not any(map(_FOREIGN.fullmatch, types)):
        feeds = {name: _fed(value) for name, value in request.feeds.items()}
        return list(session.run(names, feeds))
    values = {name: _ort_value(value) for name, value in request.feeds.items()}
    return [_array(value) for value in session.run_with_ort_values(names, values)]


def _is_foreign(array: Any) -> bool:
    """Whether onnxruntime does not take NumPy arrays of the type."""
    return _FOREIGN.fullmatch(f"tensor({element_type(array)})") is not None


def _fed(value: Any) -> Any:
    if isinstance(value, np.ndarray) and _is_foreign(value):
        return _ort_value(value)
    return value


def _ort_value(value: Any) -> Any:
    """An array as a tensor in onnxruntime's own memory."""
    if not isinstance(value, np.ndarray) or value.dtype.hasobject:
        raise EngineRefusal(
            "strings, sequences and optionals can't be fed where an output is of a type that"
            " NumPy does not have"
        )
    array = np.ascontiguousarray(value).reshape(value.shape)
    if not _is_foreign(array):
        return onnxruntime.OrtValue.ortvalue_from_numpy(array)
    tensor = onnxruntime.OrtValue.ortvalue_from_shape_and_type(
        list(array.shape), getattr(TensorProto, element_type(array).upper())
    )
    octets = pack(array)
    if octets.size:
        ctypes.memmove(tensor.data_ptr(), octets.ctypes.data, octets.size)
    return tensor


def _array(value: Any) -> Any:
    foreign = _FOREIGN.fullmatch(value.data_type())
    if foreign is None:
        return value.numpy()
    shape = value.shape()
    dtype = tensor_dtype_to_np_dtype(getattr(TensorProto, foreign[1].upper()))
    size = packed_size(dtype, prod(shape))
    data = ctypes.string_at(value.data_ptr(), size) if size else b""
    return unpack(data, dtype, prod(shape)).reshape(shape)
