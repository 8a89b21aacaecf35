"""Element types, and random arrays in which a misplaced element shows.

The types that each version allows are stated here by hand, from the standards' pages.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from tensorsplit.conformance.oracle import Array

FLOATS = ("float16", "float", "double")
CLASSIC = (
    *("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "float", "double", "string", "bool", "complex64", "complex128"),
)
NEWEST = (*CLASSIC, "bfloat16")
IR_NAMES = {
    "bool": "boolean",
    "bfloat16": "bf16",
    "float16": "f16",
    "float": "f32",
    "double": "f64",
    "float4e2m1": "f4e2m1",
    "float8e4m3fn": "f8e4m3",
    "float8e5m2": "f8e5m2",
    "float8e8m0": "f8e8m0",
    "string": "string",
    **{f"int{bits}": f"i{bits}" for bits in (4, 8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (2, 4, 8, 16, 32, 64)},
}
"""OpenVINO's names of its element types, of those that NumPy has arrays of."""

ALLOWED: dict[str, tuple[str, ...]] = {
    "onnx.Split-1": FLOATS,
    "onnx.Split-2": CLASSIC,
    "onnx.Split-11": CLASSIC,
    "onnx.Split-13": NEWEST,
    "onnx.Split-18": NEWEST,
    "onnx.SplitToSequence-11": CLASSIC,
    "onnx.SplitToSequence-24": NEWEST,
    "openvino.VariadicSplit-1": tuple(IR_NAMES),
    "openvino.Split-1": tuple(IR_NAMES),
}
"""The element types of the data that the page of each operator version lists."""

BITS = {"int4": 4, "uint4": 4, "float4e2m1": 4, "uint2": 2}
"""The element types smaller than a byte."""

WIDE = {
    "int64": (2**31, -(2**31) - 1, 2**32 + 5, 2**53 + 1, -(2**63), 2**63 - 1),
    "uint64": (2**31, 2**32 + 5, 2**53 + 1, 2**63, 2**63 + 5, 2**64 - 1),
    "double": (1e300, -1e300, 5e-324, np.pi, 1e-320, -(2.0**1023)),
}
"""Values that do not survive a way through 32 bits."""

_PATTERNS = {
    "float16": (0x7E01, 0x7D02, 0xFC00, 0x8000, 0x0001, 0x7BFF),
    "bfloat16": (0x7FC1, 0x7F82, 0xFF80, 0x8000, 0x0001, 0x7F7F),
    "float": (0x7FC00001, 0x7FA00002, 0xFF800000, 0x80000000, 0x00000001, 0x7F7FFFFF),
    "double": (
        *(0x7FF8000000000001, 0x7FF4000000000002, 0xFFF0000000000000),
        *(0x8000000000000000, 0x0000000000000001, 0x7FEFFFFFFFFFFFFF),
    ),
}
"""A quiet and a signalling NaN with a payload, -inf, -0.0, the smallest and the largest number."""

_WORDS = ("", "a", "split", "é", "日本語", "-0.0", "longer than what is kept in place " * 2)


def tensor_type(element_type: str) -> int:
    """Return ONNX's number of an element type."""
    return int(TensorProto.DataType.Value(element_type.upper()))


def dtype_of(element_type: str) -> np.dtype[np.generic]:
    """Return NumPy's type of an element type; strings are objects."""
    return tensor_dtype_to_np_dtype(tensor_type(element_type))


def values(
    element_type: str, shape: Sequence[int], rng: np.random.Generator, extreme: bool = False
) -> Array:
    """Return random elements, none of them zero and no two equal as far as the type has so many.

    With `extreme`, some are NaNs with payloads, -0.0, infinities and the like: only for a type that
    `has_extremes`. Without it 64-bit types hold what 32 bits hold as well: only cases about large
    values are to show what an engine does to them.
    """
    size = int(np.prod(shape))
    dtype = dtype_of(element_type)
    if element_type == "string":
        flat = np.array([f"{_WORDS[i % len(_WORDS)]}{i:x}" for i in range(size)], object)
        rng.shuffle(flat)
        if size:
            flat[rng.integers(size)] = ""
    elif element_type == "bool":
        flat = np.arange(size) % 2 == 0
        rng.shuffle(flat)
    elif dtype.kind == "c":
        flat = np.empty(size, dtype)
        flat.real, flat.imag = _numbers("float", size, rng), _numbers("float", size, rng)
    else:
        flat = _numbers(element_type, size, rng)
    if extreme:
        flat = _with_extremes(flat, element_type, rng)
    return flat.reshape(tuple(shape))


def has_extremes(element_type: str) -> bool:
    """Return whether `values` knows extreme elements of the type."""
    large = element_type not in ("bool", "string", *BITS)
    return large and not element_type.startswith("float8")


def _numbers(element_type: str, size: int, rng: np.random.Generator) -> Array:
    dtype = dtype_of(element_type)
    bits = BITS.get(element_type, 8 * dtype.itemsize)
    if bits <= 8:
        codes = np.arange(1, 1 << bits)
        rounds = -(-size // codes.size) + 1
        small = np.concatenate([rng.permutation(codes) for _ in range(rounds)])[:size]
        small = small.astype(np.uint8)
        if element_type == "int4":
            small = (small ^ 8) - np.uint8(8)
        return small.view(dtype)
    if dtype.kind in "iu":
        top = 1 << min(bits - 1, 31)
        start = 1 if dtype.kind == "u" else 1 - top
        numbers = rng.choice(2 * top - 2 if start < 0 else top - 1, size, replace=False)
        found = numbers.astype(np.int64) + start
        return np.where(found == 0, top - 1, found).astype(dtype)
    codes = rng.choice(0x7F00 if dtype.itemsize > 2 else 0x3B00, size, replace=False)
    if dtype.itemsize == 2:
        signs = rng.integers(2, size=size) << 15
        return (codes + 0x0400 | signs).astype(np.uint16).view(dtype)
    return ((codes - 0x3F80 + 0.5) * 0.25).astype(dtype)


def _with_extremes(flat: Array, element_type: str, rng: np.random.Generator) -> Array:
    flat = flat.copy()
    if element_type in WIDE or element_type in _PATTERNS:
        codes = np.array(_PATTERNS.get(element_type, ()), f"u{flat.dtype.itemsize}")
        wide = np.array(WIDE.get(element_type, ()), flat.dtype)
        chosen = np.concatenate([wide, codes.view(flat.dtype)])
    elif flat.dtype.kind in "iu":
        limits = np.iinfo(flat.dtype)
        chosen = np.array([limits.max, limits.min, 0], flat.dtype)
    else:  # complex numbers
        chosen = np.array([complex(np.nan, -0.0), complex(-np.inf, 1e-40)], flat.dtype)
    places = rng.permutation(flat.size)[: chosen.size]
    flat[places] = rng.permutation(chosen)[: places.size]
    return flat
