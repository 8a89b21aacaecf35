"""OpenVINO's element types: how many bytes they take, and their bytes as NumPy arrays."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from tensorsplit.core.errors import EXTERNAL_DATA, UNSUPPORTED_NODE, SplitError
from tensorsplit.model.openvino_ir.packing import bits_of, unpack

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


@dataclass(frozen=True, slots=True)
class Storage:
    """How elements of a type lie in memory.

    Attributes:
        bits: The size of an element.
        dtype: NumPy's type of the same elements; None if there is none.
        group: Elements are stored in whole groups of so many bytes.
    """

    bits: int
    dtype: np.dtype[Any] | None
    group: int = 1


def _stored(dtype: Any) -> Storage:
    found: np.dtype[Any] = np.dtype(dtype)
    return Storage(bits_of(found), found)


STORAGE = {
    "boolean": _stored(np.bool_),
    "bf16": _stored(ml_dtypes.bfloat16),
    "f16": _stored(np.float16),
    "f32": _stored(np.float32),
    "f64": _stored(np.float64),
    "f4e2m1": _stored(ml_dtypes.float4_e2m1fn),
    "f8e4m3": _stored(ml_dtypes.float8_e4m3fn),
    "f8e5m2": _stored(ml_dtypes.float8_e5m2),
    "f8e8m0": _stored(ml_dtypes.float8_e8m0fnu),
    "nf4": Storage(4, None),
    "i4": _stored(ml_dtypes.int4),
    "i8": _stored(np.int8),
    "i16": _stored(np.int16),
    "i32": _stored(np.int32),
    "i64": _stored(np.int64),
    "u1": Storage(1, None),
    "u2": _stored(ml_dtypes.uint2),
    "u3": Storage(3, None, group=3),
    "u4": _stored(ml_dtypes.uint4),
    "u6": Storage(6, None, group=3),
    "u8": _stored(np.uint8),
    "u16": _stored(np.uint16),
    "u32": _stored(np.uint32),
    "u64": _stored(np.uint64),
}
"""Every type of fixed size, by OpenVINO's name; ``string`` has none."""


def byte_count(element_type: str, shape: tuple[int, ...]) -> int | None:
    """How many bytes a tensor takes; None for strings, whose length is in the data.

    Args:
        element_type: OpenVINO's name of the type.
        shape: The shape.
    """
    if element_type == "string":
        return None
    storage = STORAGE[element_type]
    size = -(-prod(shape) * storage.bits // 8)
    return -(-size // storage.group) * storage.group


def is_held(element_type: str) -> bool:
    """Whether NumPy has arrays of the type."""
    return element_type == "string" or STORAGE[element_type].dtype is not None


def decode(data: bytes, element_type: str, shape: tuple[int, ...]) -> Array:
    """The elements of a tensor from their bytes, which OpenVINO need not have aligned.

    Args:
        data: As many bytes as `byte_count` says.
        element_type: OpenVINO's name of the type.
        shape: The shape of the tensor.

    Returns:
        A new array with the same bits; strings as an array of ``str`` objects, in which bytes
        that are no UTF-8 are kept as surrogate escapes.

    Raises:
        SplitError: TS504 for bytes that are not as the type needs them, TS509 for a type that
            NumPy has no arrays of.
    """
    if element_type == "string":
        flat = _decode_strings(data, prod(shape))
    else:
        flat = _decode_numbers(data, element_type, prod(shape))
    try:
        return flat.reshape(shape)
    except ValueError:
        raise _bad_data(f"the shape {shape} is none that an array can have") from None


def _decode_numbers(data: bytes, element_type: str, count: int) -> Array:
    storage = STORAGE[element_type]
    if storage.dtype is None:
        raise SplitError(
            UNSUPPORTED_NODE,
            f"NumPy has no arrays of the element type {element_type}",
            'use engine="openvino"',
        )
    return unpack(data, storage.dtype, count)


def _decode_strings(data: bytes, count: int) -> Array:
    """A count, the offset of each string and of the end (32-bit each), then the characters."""
    head = 4 * (count + 2)
    if len(data) < head or struct.unpack_from("<i", data)[0] != count:
        raise _bad_data(f"{len(data)} bytes do not hold the offsets of {count} strings")
    offsets = struct.unpack_from(f"<{count + 1}i", data, 4)
    text = data[head:]
    ordered = all(start <= end for start, end in pairwise(offsets))
    if offsets[0] != 0 or not ordered or offsets[-1] > len(text):
        raise _bad_data("the offsets of the strings do not lie in the data in order")
    strings = np.empty(count, object)
    for number, (start, end) in enumerate(pairwise(offsets)):
        strings[number] = text[start:end].decode("utf-8", "surrogateescape")
    return strings


def _bad_data(problem: str) -> SplitError:
    return SplitError(EXTERNAL_DATA, problem, "the .bin file must be the one written with the .xml")
