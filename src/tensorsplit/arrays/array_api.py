"""Splitting arrays of any library of the array API standard, on their device.

Nothing is read on the host but lengths. The one thing that is not of the standard is where
`out` looks at the memory of a device, to refuse buffers that overlap.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorsplit.arrays import numpy as numpy_arrays
from tensorsplit.arrays.buffers import check_buffer, check_buffers
from tensorsplit.arrays.numpy import check_few, standard_name
from tensorsplit.arrays.typed import Array
from tensorsplit.core.dimensions import Shape, as_index
from tensorsplit.core.errors import NOT_AN_ARRAY, OUT_OVERLAP, OUT_READ_ONLY, OUT_TYPE, SplitError
from tensorsplit.core.given import is_a
from tensorsplit.core.plan import SplitPlan

unknown = "give an array of a known shape"


def is_array(value: object) -> bool:
    """Return whether the value claims to be an array of the standard."""
    return hasattr(type(value), "__array_namespace__") or _is_cupy(value)


def _is_cupy(value: object) -> bool:
    """Return whether it is CuPy, whose arrays follow the standard from its version 14 on."""
    return is_a(value, getattr(sys.modules.get("cupy"), "ndarray", ()))


def _namespace(array: Array) -> Any:
    """Return the functions of the library."""
    find = getattr(array, "__array_namespace__", None)
    return sys.modules["cupy"] if find is None else find()


_checked: set[type] = set()
"""Types of arrays whose libraries have the functions of the standard: asking may take long."""


def check(array: Array) -> None:
    """Refuse arrays that are not of the standard, whatever they claim (TS204)."""
    kind = type(array)
    try:
        fits = len(array.shape) == array.ndim and array.dtype is not None
        if fits and kind not in _checked:
            fits = callable(_namespace(array).asarray)
            if fits and len(_checked) < 1024:
                _checked.add(kind)
    except Exception:  # noqa: BLE001 - anyone's attributes may raise anything
        fits = False
    if not fits:
        problem = f"{type(array).__name__} says that it is an array of the standard, and is not"
        raise SplitError(NOT_AN_ARRAY, problem, "pass a NumPy array of it")


def element_type(array: Array) -> str:
    """Return the name of the element type, as in the schemas of ONNX."""
    if isinstance(array.dtype, np.dtype):
        return numpy_arrays.element_type(array)
    return standard_name(str(array.dtype).rpartition(".")[2])


def shape(array: Array) -> Shape:
    """Return the shape, with None where the library does not know it."""
    return tuple(map(as_index, array.shape))


def operand_parts(value: Array, name: str) -> tuple[tuple[float, ...], int, str]:
    """Return the elements in order as Python numbers, fetched from the device; rank and type."""
    try:
        check(value)
    except SplitError as error:
        error.parameter = name
        raise
    check_few(value.size, name)
    element = element_type(value)
    flat = _namespace(value).reshape(value, (-1,))
    if hasattr(flat, "tolist"):
        return tuple(flat.tolist()), value.ndim, element
    number = {"b": bool, "f": float, "d": float}.get(element[0], int)
    return tuple(number(flat[place]) for place in range(value.size)), value.ndim, element


def views(array: Array, plan: SplitPlan) -> list[Array]:
    """Return the parts, as the library slices."""
    return [array[index] for index in _indices(plan)]


def _indices(plan: SplitPlan) -> Sequence[object]:
    """Return the index of each part, with an Ellipsis: the standard lets no axis be left out."""
    if plan.axis == len(plan.input_shape) - 1 or not plan.keepdims:
        return plan.indices
    return [(*index, ...) for index in plan.indices]


def copies(array: Array, plan: SplitPlan) -> list[Array]:
    """Return the parts as new arrays on the same device."""
    make = _namespace(array).asarray
    return [make(part, copy=True) for part in views(array, plan)]


def copies_into(array: Array, plan: SplitPlan, out: Any) -> list[Array]:
    """Return the parts written into the buffers of a snapshot, which is returned.

    Buffers that don't fit are refused before any byte is written (TS401 to TS405).
    """
    _check_alike(array, out)
    check_buffers(_memory(array), plan, list(map(_memory, out)) if type(out) is list else out)
    parts = views(array, plan)
    for number, (buffer, part) in enumerate(zip(out, parts, strict=True)):
        _check_writable(f"buffer {number}", buffer, part)
    for buffer, part in zip(out, parts, strict=True):
        buffer[...] = part
    buffers: list[Array] = out
    return buffers


def _check_alike(array: Array, out: object) -> None:
    """Refuse buffers of another library, element type or device than the data (TS403)."""
    for number, buffer in enumerate(out if type(out) is list else ()):
        _check_buffer_alike(f"buffer {number}", buffer, array)


def _check_buffer_alike(name: str, buffer: Array, array: Array) -> None:
    library = type(buffer).__module__.partition(".")[0]
    if not is_array(buffer) or _namespace(buffer) != _namespace(array):
        problem = f"is of type {type(buffer).__name__}, of {library}"
        fix = "give arrays of the library of the data"
    elif buffer.dtype != array.dtype:
        problem, fix = f"has type {buffer.dtype}", f"the data has {array.dtype}"
    elif buffer.device != array.device:
        problem, fix = f"is on {buffer.device}", f"the data is on {array.device}"
    else:
        return
    raise SplitError(OUT_TYPE, f"{name} {problem}", fix)


def _check_writable(name: str, buffer: Array, part: Array) -> None:
    """Write nothing to a buffer, which must be possible (TS404)."""
    if type(buffer) is getattr(sys.modules.get("cupy"), "ndarray", None):
        return  # all of these can be written
    nothing = slice(0, 0) if part.ndim else ...
    try:
        buffer[nothing, ...] = part[nothing, ...]
    except Exception as error:
        problem = f"{name} can't be written: {type(error).__name__}"
        raise SplitError(OUT_READ_ONLY, problem, "give writable buffers") from error


def kind(array: Array) -> tuple[object, ...]:
    """Return the element type and the device."""
    return array.dtype, array.device


def joined(parts: list[Array], plan: SplitPlan) -> Array:
    """Return the parts as one new array on the same device."""
    library = _namespace(parts[0])
    if not plan.keepdims:
        return library.stack(parts, axis=plan.axis)
    concat = library.concat if hasattr(library, "concat") else library.concatenate  # CuPy before 14
    return concat(parts, axis=plan.axis)


def joined_into(parts: list[Array], plan: SplitPlan, out: Any) -> object:
    """Return the buffer, with the parts written to it.

    One that doesn't fit is refused before any byte is written (TS402 to TS405).
    """
    name = "the buffer"
    for part in parts:
        _check_buffer_alike(name, out, part)
    check_buffer(list(map(_memory, parts)), plan, _memory(out))
    for part, index in zip(parts, _indices(plan), strict=True):
        _check_writable(name, out[index], part)
    for part, index in zip(parts, _indices(plan), strict=True):
        out[index] = part
    return out


class _Addresses:
    """The facts that NumPy needs about memory, which it never reads here."""

    def __init__(self, **interface: object) -> None:
        self.__array_interface__ = {**interface, "version": 3}


def _memory(array: Array) -> np.ndarray:
    """Return the memory of an array, on whatever device, as an array that must not be read.

    TS405 if the library does not show where it is.
    """
    cuda = getattr(array, "__cuda_array_interface__", None)
    sycl = getattr(array, "__sycl_usm_array_interface__", None)
    size = array.dtype.itemsize if cuda or sycl else 0
    if cuda:
        strides = cuda.get("strides")
        pointer, is_read_only = cuda["data"]
    elif sycl:
        strides = tuple(size * stride for stride in sycl["strides"] or ()) or None
        pointer, is_read_only = sycl["data"]
        pointer += size * sycl["offset"]
    else:
        try:
            found = np.from_dlpack(array)
        except Exception as error:
            raise SplitError(
                OUT_OVERLAP,
                f"it is not known whether buffers on {array.device} share memory",
                "use `copy=True`",
            ) from error
        strides, size, pointer = found.strides, found.itemsize, found.ctypes.data
        is_read_only = False  # NumPy says it of all; what can't be written refuses it
    shape, kind, data = tuple(array.shape), f"|V{size}", (pointer, is_read_only)
    return np.asarray(_Addresses(data=data, shape=shape, strides=strides, typestr=kind))
