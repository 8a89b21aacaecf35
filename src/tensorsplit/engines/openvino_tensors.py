"""Arrays as OpenVINO's tensors, and back, bit for bit."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import openvino

from tensorsplit.arrays.numpy import element_type
from tensorsplit.core.records.openvino import ELEMENT_TYPES
from tensorsplit.engines.wire import EngineRefusal
from tensorsplit.model.openvino_ir.packing import pack, unpack
from tensorsplit.model.openvino_ir.types import STORAGE

_NAMES = {ours: name for name, ours in ELEMENT_TYPES.items()}


def to_tensor(value: Any) -> Any:
    """An array as a tensor.

    Raises:
        EngineRefusal: For a value that OpenVINO has no tensors for.
    """
    if not isinstance(value, np.ndarray):
        raise EngineRefusal("sequences and optionals can't be fed")
    name = _NAMES.get(element_type(value))
    if name == "string":
        if any(text.endswith("\0") for text in value.flat):
            raise EngineRefusal("strings that end in a NUL character can't be fed")
        return openvino.Tensor(value.astype("U"))
    if name is None or name not in STORAGE:
        raise EngineRefusal(f"tensors of {element_type(value)} can't be fed")
    tensor = openvino.Tensor(getattr(openvino.Type, name), openvino.Shape(list(value.shape)))
    if value.size:
        tensor.data.reshape(-1).view(np.uint8)[:] = pack(value)
    return tensor


def to_array(tensor: Any) -> Any:
    """A tensor as a new array.

    Raises:
        EngineRefusal: For a type that NumPy has no arrays of.
    """
    name = tensor.element_type.get_type_name()
    shape = tuple(tensor.shape)
    if name == "string":
        return np.array(tensor.str_data.tolist(), dtype=object).reshape(shape)
    storage = STORAGE.get(name)
    if storage is None or storage.dtype is None:
        raise EngineRefusal(f"NumPy has no arrays of {name}")
    data = np.ascontiguousarray(tensor.data).tobytes()
    return unpack(data, storage.dtype, prod(shape)).reshape(shape)
