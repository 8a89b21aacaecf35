"""Elements smaller than a byte, packed as model files and engines pack them: low bits first.

ONNX says so for its 4-bit and 2-bit types; OpenVINO and onnxruntime do the same (measured on
2026.4 and 1.31). NumPy holds each such element in a byte of its own.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

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
    """The elements of an array of numbers as packed, little-endian bytes, 1-D."""
    flat = np.ascontiguousarray(array).reshape(-1)
    bits = bits_of(flat.dtype)
    if bits >= 8:
        return np.asarray(flat.astype(flat.dtype.newbyteorder("<"), copy=False).view(np.uint8))
    per_byte = 8 // bits
    padded = np.zeros(packed_size(flat.dtype, flat.size) * per_byte, np.uint8)
    padded[: flat.size] = flat.view(np.uint8) & ((1 << bits) - 1)
    return np.asarray(np.bitwise_or.reduce(padded.reshape(-1, per_byte) << _shifts(bits), axis=1))


def unpack(data: bytes, dtype: np.dtype[Any], count: int) -> Array:
    """The inverse of `pack`: a new, writable 1-D array; the bytes need not be aligned."""
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
