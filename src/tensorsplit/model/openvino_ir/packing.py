"""OpenVINO's element types: how many bytes they take, and their bytes as NumPy arrays.

Elements smaller than a byte are packed as model files and engines pack them, low bits first: ONNX
says so for its 4-bit and 2-bit types; OpenVINO and onnxruntime do the same (measured on 2026.4 and
1.31). NumPy holds each such element in a byte of its own.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from tensorsplit.core.errors import EXTERNAL_DATA, SplitError

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

BITS: dict[np.dtype[Any], int] = {
    np.dtype(ml_dtypes.int4): 4,
    np.dtype(ml_dtypes.uint4): 4,
    np.dtype(ml_dtypes.float4_e2m1fn): 4,
    np.dtype(ml_dtypes.int2): 2,
    np.dtype(ml_dtypes.uint2): 2,
}
"""The types whose elements are smaller than a byte, and their bits."""


def bits_of(dtype: np.dtype[Any]) -> int:
    """How many bits an element takes where it is packed."""
    return BITS.get(dtype, 8 * dtype.itemsize)


def packed_size(dtype: np.dtype[Any], count: int) -> int:
    """How many bytes so many elements take where they are packed."""
    return -(-count * bits_of(dtype) // 8)


def pack(array: Array) -> Array:
    """The elements as they lie in memory where they are packed.

    Args:
        array: An array of numbers, of any shape and layout.

    Returns:
        A 1-D array of bytes, little-endian.
    """
    flat = np.ascontiguousarray(array).reshape(-1)
    bits = bits_of(flat.dtype)
    if bits >= 8:
        return np.asarray(flat.astype(flat.dtype.newbyteorder("<"), copy=False).view(np.uint8))
    per_byte = 8 // bits
    padded = np.zeros(packed_size(flat.dtype, flat.size) * per_byte, np.uint8)
    padded[: flat.size] = flat.view(np.uint8) & ((1 << bits) - 1)
    return np.asarray(np.bitwise_or.reduce(padded.reshape(-1, per_byte) << _shifts(bits), axis=1))


def unpack(data: bytes, dtype: np.dtype[Any], count: int) -> Array:
    """The inverse of `pack`.

    Args:
        data: As many bytes as `packed_size` says; they need not be aligned.
        dtype: The type of the elements.
        count: How many elements there are.

    Returns:
        A new, writable 1-D array with the same bits.
    """
    octets = np.frombuffer(bytearray(data), np.uint8)
    bits = bits_of(dtype)
    if bits >= 8:
        return octets.view(dtype.newbyteorder("<"))
    numbers = ((octets[:, None] >> _shifts(bits)) & ((1 << bits) - 1)).reshape(-1)[:count]
    if dtype.name.startswith("int"):  # two's complement, of which NumPy's byte repeats the sign
        sign = np.uint8(1 << (bits - 1))
        return ((numbers ^ sign) - sign).view(np.int8).astype(dtype)
    return numbers.view(dtype)


def _shifts(bits: int) -> Array:
    return np.arange(0, 8, bits, dtype=np.uint8)


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


def decode_strings(data: bytes, count: int) -> list[bytes]:
    """The strings of a tensor.

    Args:
        data: A count, the offset of each string and of the end (32-bit each), then the characters.
        count: How many strings there are.

    Raises:
        SplitError: TS504 for bytes that hold something else.
    """
    head = 4 * (count + 2)
    if len(data) < head or struct.unpack_from("<i", data)[0] != count:
        raise _bad_data(f"{len(data)} bytes do not hold the offsets of {count} strings")
    offsets = struct.unpack_from(f"<{count + 1}i", data, 4)
    text = data[head:]
    ordered = all(start <= end for start, end in pairwise(offsets))
    if offsets[0] != 0 or not ordered or offsets[-1] > len(text):
        raise _bad_data("the offsets of the strings do not lie in the data in order")
    return [text[start:end] for start, end in pairwise(offsets)]


def _bad_data(problem: str) -> SplitError:
    return SplitError(EXTERNAL_DATA, problem, "the .bin file must be the one written with the .xml")
