"""What is expected, stated by hand: plain slicing, the standards' type lists, random data.

Nothing here knows the package: a rule that is wrong there can't be wrong here in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

FLOATS = ("float16", "float", "double")
CLASSIC = (
    *("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "float", "double", "string", "bool", "complex64", "complex128"),
)
SIXTEEN = (*CLASSIC, "bfloat16")
"""Every element type of ONNX's newest Split."""

ALLOWED = {
    "onnx.Split-1": FLOATS,
    "onnx.Split-2": CLASSIC,
    "onnx.Split-11": CLASSIC,
    "onnx.Split-13": SIXTEEN,
    "onnx.Split-18": SIXTEEN,
    "onnx.SplitToSequence-11": CLASSIC,
    "onnx.SplitToSequence-24": SIXTEEN,
}
"""The element types that each version's page lists for its data; OpenVINO takes any."""

DTYPES: dict[str, Any] = {
    **{name: np.dtype(name) for name in CLASSIC if "int" in name or "complex" in name},
    "bool": np.dtype(bool),
    "float16": np.dtype(np.float16),
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float8e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "float8e4m3fnuz": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "float8e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "float8e5m2fnuz": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "float8e8m0": np.dtype(ml_dtypes.float8_e8m0fnu),
    "float4e2m1": np.dtype(ml_dtypes.float4_e2m1fn),
    "float6e2m3": np.dtype(ml_dtypes.float6_e2m3fn),
    "float6e3m2": np.dtype(ml_dtypes.float6_e3m2fn),
    "float8_e3m4": np.dtype(ml_dtypes.float8_e3m4),
    "float8_e4m3": np.dtype(ml_dtypes.float8_e4m3),
    "float8_e4m3b11fnuz": np.dtype(ml_dtypes.float8_e4m3b11fnuz),
    "int4": np.dtype(ml_dtypes.int4),
    "uint4": np.dtype(ml_dtypes.uint4),
    "int2": np.dtype(ml_dtypes.int2),
    "uint2": np.dtype(ml_dtypes.uint2),
    "string": np.dtype(object),
    "string as U": np.dtype("U7"),
    "string as StringDType": np.dtypes.StringDType(),
}
"""What NumPy has for each element type; strings come in three ways."""

_LETTERS = ("", "a", "split", "é", "日本", "-0.0", "\x00b", "longer than the others" * 2)
_NOT_A_NUMBER = {2: 0x7D01, 4: 0x7FA00001, 8: 0x7FF4000000000001}
"""Signalling NaNs with a payload, by the bytes of the float."""


def element_type(name: str) -> str:
    """The element type that a name of `DTYPES` stands for."""
    return name.partition(" ")[0]


def random_array(name: str, shape: Sequence[int], rng: np.random.Generator) -> Array:
    """Random elements of every bit pattern, or strings; floats begin with a NaN and -0.0."""
    dtype = DTYPES[name]
    size = int(np.prod(shape))
    if element_type(name) == "string":
        words = [_LETTERS[index] for index in rng.integers(len(_LETTERS), size=size)]
        return np.array(words, object).reshape(shape).astype(dtype)
    if name == "bool":
        return rng.integers(2, size=shape).astype(bool)
    flat = np.frombuffer(bytearray(rng.bytes(size * dtype.itemsize)), dtype)
    if name in FLOATS and size > 1:
        flat.view(f"u{dtype.itemsize}")[0] = _NOT_A_NUMBER[dtype.itemsize]
        flat[1] = -0.0
    return flat.reshape(shape)


def slices(array: Array, axis: int, sizes: Sequence[int], keepdims: bool = True) -> list[Array]:
    """The parts, by plain slicing."""
    parts, start = [], 0
    for size in sizes:
        index: list[Any] = [slice(None)] * array.ndim
        index[axis] = slice(start, start + size)
        part = array[tuple(index)]
        parts.append(part if keepdims else part.reshape(_without(array.shape, axis)))
        start += size
    assert start == array.shape[axis], "the stated sizes must cover the axis"
    return parts


def _without(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    axis %= len(shape)
    return (*shape[:axis], *shape[axis + 1 :])


def same(got: Array, want: Array) -> bool:
    """Whether two arrays are the same in shape, element type, byte order and every bit."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return False
    if isinstance(want.dtype, np.dtypes.StringDType):
        return bool(got.tolist() == want.tolist())
    return got.tobytes() == want.tobytes()


def assert_same(got: Sequence[Array], want: Sequence[Array], what: object = "") -> None:
    """Both hold the same parts, bit for bit."""
    assert isinstance(got, list), what
    assert len(got) == len(want), what
    for number, (left, right) in enumerate(zip(got, want, strict=True)):
        assert isinstance(left, np.ndarray), (what, number)
        assert same(left, right), (what, number, left, right)
