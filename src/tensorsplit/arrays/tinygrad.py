"""Splitting tensors of tinygrad, which calculates nothing before it has to."""

from __future__ import annotations

from tinygrad import Tensor

from tensorsplit.arrays.numpy import check_few
from tensorsplit.arrays.typed import Array
from tensorsplit.core.dimensions import Shape, as_index
from tensorsplit.core.plan import SplitPlan, sizes_of

unknown = "bind no variable to the dimension, or split where it is a number"

_NAMES = {
    "signed char": "int8",
    "unsigned char": "uint8",
    "short": "int16",
    "unsigned short": "uint16",
    "int": "int32",
    "unsigned int": "uint32",
    "long": "int64",
    "unsigned long": "uint64",
    "half": "float16",
    "__bf16": "bfloat16",
    "float8_e4m3": "float8e4m3fn",
    "float8_e4m3fnuz": "float8e4m3fnuz",
    "float8_e5m2": "float8e5m2",
    "float8_e5m2fnuz": "float8e5m2fnuz",
}
"""The standard's names of what tinygrad calls as C does."""


def is_array(value: object) -> bool:
    """Return whether the value is a tensor."""
    return isinstance(value, Tensor)


def check(array: Array) -> None:
    """Accept every tensor of tinygrad."""


def element_type(array: Array) -> str:
    """Return the name of the element type, as in the schemas of ONNX."""
    name = str(array.dtype.name)
    return _NAMES.get(name, name)


def shape(array: Array) -> Shape:
    """Return the shape, with None for a dimension that is a variable."""
    return tuple(map(as_index, array.shape))


def operand_parts(value: Array, name: str) -> tuple[tuple[float, ...], int, str]:
    """Return the elements in order as Python numbers, which are calculated; rank and type."""
    check_few(value.numel(), name)
    return tuple(value.flatten().tolist()), value.ndim, element_type(value)


def views(array: Array, plan: SplitPlan) -> list[Array]:
    """Return the parts, lazily, in the memory of the whole where that is known."""
    if not plan.sizes:
        return []
    parts = array.split(list(sizes_of(plan)), plan.axis)
    return list(parts) if plan.keepdims else [part.squeeze(plan.axis) for part in parts]


def copies(array: Array, plan: SplitPlan) -> list[Array]:
    """Return the parts, lazily, each in memory of its own."""
    return [part.clone() for part in views(array, plan)]


def kind(array: Array) -> tuple[object, ...]:
    """Return the element type and the device."""
    return element_type(array), array.device


def joined(parts: list[Array], plan: SplitPlan) -> Array:
    """Return the parts as one lazy tensor."""
    first, *others = parts
    if not plan.keepdims:
        return first.stack(*others, dim=plan.axis)
    return first.cat(*others, dim=plan.axis)
