"""Cutting NumPy arrays, and reading operands from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.array_utils import byte_bounds

from tensorsplit.errors import (
    OUT_COUNT,
    OUT_OVERLAP,
    OUT_READ_ONLY,
    OUT_SHAPE,
    OUT_TYPE,
    SplitError,
)
from tensorsplit.plan import SplitPlan

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

_NAMES = {
    "float32": "float",
    "float64": "double",
    "object": "string",
    "float8_e4m3fn": "float8e4m3fn",
    "float8_e4m3fnuz": "float8e4m3fnuz",
    "float8_e5m2": "float8e5m2",
    "float8_e5m2fnuz": "float8e5m2fnuz",
    "float8_e8m0fnu": "float8e8m0",
    "float4_e2m1fn": "float4e2m1",
    "float6_e2m3fn": "float6e2m3",
    "float6_e3m2fn": "float6e3m2",
}
_MAX_WORK: Any = 100_000
_cache: dict[np.dtype[Any], str] = {}


def is_array(value: object) -> bool:
    """Whether the value is a NumPy array, or a scalar that stands for a rank-0 one."""
    return isinstance(value, (np.ndarray, np.generic))


def element_type(array: Array) -> str:
    """The element type in the package's spelling, whatever the byte order.

    Types that no standard names keep NumPy's name.
    """
    dtype = array.dtype
    name = _cache.get(dtype)
    if name is None:
        name = "string" if dtype.kind in "UST" else _NAMES.get(dtype.name, dtype.name)
        if len(_cache) < 1024:
            _cache[dtype] = name
    return name


def fingerprint(value: Array) -> tuple[object, ...]:
    """What tells one small array from another: its bytes, element type and shape.

    Raises:
        TypeError: For an array that is too large to be worth it, or whose bytes are not all.
    """
    if value.size > 64 or value.dtype.hasobject:
        raise TypeError("no fingerprint")
    return value.tobytes(), value.dtype, value.shape


def operand_parts(value: Array) -> tuple[tuple[Any, ...], int, str]:
    """The elements in order as Python numbers, the rank, and the element type."""
    element = element_type(value)
    if value.dtype.kind == "V":  # ml_dtypes give their own scalars
        value = value.astype(np.int64 if "int" in element else np.float64)
    return tuple(value.ravel().tolist()), value.ndim, element


def views(array: Array, plan: SplitPlan) -> list[Array]:
    """The parts as views of the array."""
    return [array[index] for index in plan.indices]


def copies(array: Array, plan: SplitPlan) -> list[Array]:
    """The parts as new C-contiguous arrays that share no memory with the array."""
    return [array[index].copy(order="C") for index in plan.indices]


def copies_into(array: Array, plan: SplitPlan, out: Sequence[Array]) -> list[Array]:
    """The parts written into the caller's buffers; these are what is returned.

    Raises:
        SplitError: TS401 to TS405, before any byte is written.
    """
    try:
        _check_out(array, plan, out)
    except SplitError as error:
        error.parameter = "out"
        raise error.located(operator=plan.operator) from None
    for buffer, index in zip(out, plan.indices, strict=True):
        buffer[...] = array[index]
    return list(out)


def _check_out(array: Array, plan: SplitPlan, out: Sequence[Array]) -> None:
    if not isinstance(out, (list, tuple)) or len(out) != len(plan.sizes):
        count = f"{len(out)} buffers" if isinstance(out, (list, tuple)) else type(out).__name__
        raise SplitError(OUT_COUNT, f"it is {count}", f"give a list of {len(plan.sizes)} arrays")
    for number, (buffer, shape) in enumerate(zip(out, plan.output_shapes, strict=True)):
        if not isinstance(buffer, np.ndarray):
            raise SplitError(
                OUT_TYPE, f"buffer {number} is a {type(buffer).__name__}", "give NumPy arrays"
            )
        if buffer.shape != shape:
            raise SplitError(
                OUT_SHAPE, f"buffer {number} has shape {buffer.shape}", f"its part has {shape}"
            )
        if buffer.dtype != array.dtype:
            raise SplitError(
                OUT_TYPE, f"buffer {number} has type {buffer.dtype}", f"the data has {array.dtype}"
            )
        if not buffer.flags.writeable:
            raise SplitError(
                OUT_READ_ONLY, f"buffer {number} is read-only", "give writable buffers"
            )
        _check_overlap(f"buffer {number}", buffer, array)
    _check_disjoint(out)


def _check_overlap(name: str, buffer: Array, array: Array) -> None:
    other = None
    if _may_overlap_itself(buffer):
        other = "itself"
    elif _share(buffer, array):
        other = "the data"
    if other is not None:
        raise SplitError(
            OUT_OVERLAP, f"{name} shares memory with {other}", "give buffers of their own"
        )


def _check_disjoint(out: Sequence[Array]) -> None:
    """Compare only buffers whose address ranges meet, so that many buffers stay cheap."""
    ranges = sorted(
        (*byte_bounds(buffer), number) for number, buffer in enumerate(out) if buffer.size
    )
    open_ranges: list[tuple[int, int]] = []
    for start, end, number in ranges:
        open_ranges = [(stop, other) for stop, other in open_ranges if stop > start]
        for _, other in open_ranges:
            if _share(out[number], out[other]):
                raise SplitError(
                    OUT_OVERLAP,
                    f"buffers {other} and {number} share memory",
                    "give buffers of their own",
                )
        open_ranges.append((end, number))


def _share(left: Array, right: Array) -> bool:
    """Whether the arrays share memory; where that is too hard to tell (it is NP-hard), yes."""
    try:
        return np.shares_memory(left, right, max_work=_MAX_WORK)
    except np.exceptions.TooHardError:
        return True


def _may_overlap_itself(array: Array) -> bool:
    """Whether two elements may lie on each other, as in a broadcast array."""
    reach = array.itemsize
    for stride, size in sorted(zip(map(abs, array.strides), array.shape, strict=True)):
        if size > 1:
            if stride < reach:
                return array.size > 1
            reach += stride * (size - 1)
    return False
