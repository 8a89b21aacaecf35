"""Splitting NumPy arrays, and reading operands from them."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np

from tensorsplit import native
from tensorsplit.arrays.buffers import check_buffers, is_masked_array
from tensorsplit.arrays.pool import BufferPool
from tensorsplit.core.errors import OPERAND_VALUE, TOO_MANY_PARTS, SplitError
from tensorsplit.core.plan import SplitPlan
from tensorsplit.core.rules import MAX_PARTS

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
"""The standard's names of what NumPy, and most libraries after it, call something else."""

_cache: dict[np.dtype[Any], str] = {}


unknown: str | None = None
"""NumPy's shapes are known."""


def is_array(value: object) -> bool:
    """Return whether the value is a NumPy array, or a scalar that stands for a rank-0 one."""
    return isinstance(value, (np.ndarray, np.generic))


def check(array: Array) -> None:
    """Accept every array of NumPy."""


def shape(array: Array) -> tuple[int, ...]:
    """Return the shape."""
    found: tuple[int, ...] = array.shape
    return found


def standard_name(name: str) -> str:
    """Return an element type's name in ONNX's schemas; NumPy's where no standard names it."""
    return _NAMES.get(name, name)


def element_type(array: Array) -> str:
    """Return the name of the element type, as in the schemas of ONNX, whatever the byte order.

    Types that no standard names keep NumPy's name.
    """
    dtype = array.dtype
    try:
        name = _cache.get(dtype)
    except TypeError:  # a StringDType whose stand-in for missing strings can't be hashed
        return "string"
    if name is None:
        name = "string" if dtype.kind in "UST" else standard_name(dtype.name)
        if len(_cache) < 1024:
            _cache[dtype] = name
    return name


def check_few(size: int, name: str) -> None:
    """Refuse an operand of more elements than could be listed (TS308)."""
    if size > MAX_PARTS:
        raise SplitError(TOO_MANY_PARTS, f"it has {size} elements", "give fewer", parameter=name)


def operand_parts(value: Array, name: str) -> tuple[tuple[Any, ...], int, str]:
    """Return the elements in order as Python numbers, the rank, and the element type.

    Masked elements are refused (TS107), and more than could be listed (TS308).
    """
    check_few(value.size, name)
    if is_masked_array(value) and np.ma.is_masked(value):
        raise SplitError(
            OPERAND_VALUE, "some of its elements are masked", "fill them", parameter=name
        )
    plain = np.asarray(value)
    element = element_type(plain)
    if element.lstrip("u") in ("int1", "int2", "int4"):  # these give scalars of their own
        plain = plain.astype(np.int64)
    return tuple(plain.ravel().tolist()), plain.ndim, element


def viewer(plan: SplitPlan) -> Callable[[Any], list[Any] | None]:
    """Return a function that splits an ``ndarray`` into views; it gives None for another shape.

    It takes no subclasses. A symbolic size is refused (TS309).
    """
    indices, shape = plan.indices, plan.input_shape
    match indices:
        case ():
            return lambda array: [] if array.shape == shape else None
        case (first,):
            return lambda array: [array[first]] if array.shape == shape else None
    parts = itemgetter(*indices)  # faster than a loop
    return lambda array: [*parts(array)] if array.shape == shape else None


def views(array: Array, plan: SplitPlan) -> list[Array]:
    """Return the parts as views of the array."""
    array = _any_rank(array)
    return [array[index] for index in plan.indices]


def copies(array: Array, plan: SplitPlan) -> list[Array]:
    """Return the parts as new C-contiguous arrays that share no memory with the array."""
    kernel = find_kernel()
    if kernel is not None:
        parts: list[Array] | None = kernel.copies(array, plan.axis, plan.sizes, plan.keepdims)
        if parts is not None:
            return parts
    return [part.copy() for part in views(array, plan)]


def pooled(array: Array, plan: SplitPlan, pool: BufferPool) -> list[Array]:
    """Return the parts as C-contiguous arrays in the memory of a pool."""
    parts = pool.blocks.copies(array, plan.axis, plan.sizes, plan.keepdims)
    if parts is not None:
        return parts
    buffers = [pool.empty(shape, array.dtype) for shape in plan.output_shapes]
    return copies_into(array, plan, buffers)


def find_kernel() -> Any:
    """Return the native kernel, or None where NumPy copies.

    An environment variable that asks for what does not exist is refused (TS107).
    """
    if native.kernel is None and native.refused is not None:
        variable, problem, expected = native.refused
        raise SplitError(OPERAND_VALUE, problem, expected, parameter=variable)
    return native.kernel


def _any_rank(array: Array) -> Array:
    """Return a `numpy.matrix` as an array: its parts would stay 2-D where the axis is dropped."""
    return np.asarray(array) if isinstance(array, np.matrix) else array


def copies_into(array: Array, plan: SplitPlan, out: Any) -> list[Array]:
    """Return the parts written into the buffers of a snapshot, which is returned.

    Buffers that don't fit are refused before any byte is written (TS401 to TS405).
    """
    kernel = find_kernel()
    plain = np.ndarray.view(array, np.ndarray)
    if (
        kernel is None
        or is_masked_array(array)
        or not kernel.copy_into(plain, plan.axis, plan.sizes, plan.keepdims, out)
    ):
        buffers = check_buffers(array, plan, out)
        for buffer, index in zip(buffers, plan.indices, strict=True):
            buffer[...] = plain[index]
    parts: list[Array] = out
    return parts
