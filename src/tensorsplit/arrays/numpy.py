"""Splitting NumPy arrays, and reading operands from them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tensorsplit import native
from tensorsplit.arrays.buffers import (
    as_plain,
    check_buffer,
    check_buffers,
    check_elements_only,
    has_own_functions,
    is_masked_array,
    is_more_than_elements,
    strides_of_whole,
)
from tensorsplit.arrays.pool import Array, BufferPool
from tensorsplit.core.errors import OPERAND_VALUE, TOO_MANY_PARTS, SplitError
from tensorsplit.core.given import is_a
from tensorsplit.core.plan import SplitPlan, part_shapes, shape_of
from tensorsplit.core.rules import MAX_PARTS

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

_OWN_NAMES = {name: own for own, name in _NAMES.items()}

_cache: dict[np.dtype, str] = {}


unknown: str | None = None
"""NumPy's shapes are known."""


def is_array(value: object) -> bool:
    """Return whether the value is a NumPy array, or a scalar that stands for a rank-0 one."""
    return is_a(value, (np.ndarray, np.generic))


def check(array: Array) -> None:
    """Accept every array of NumPy."""


def shape(array: Array) -> tuple[int, ...]:
    """Return the shape of the memory, whatever a subclass claims."""
    found: tuple[int, ...] = as_plain(array).shape
    return found


def standard_name(name: str) -> str:
    """Return an element type's name in ONNX's schemas; NumPy's where no standard names it."""
    return _NAMES.get(name, name)


def numpy_name(name: str) -> str:
    """Return NumPy's name of an element type; the inverse of `standard_name`."""
    return _OWN_NAMES.get(name, name)


def element_type(array: Array) -> str:
    """Return the name of the element type, as in the schemas of ONNX, whatever the byte order.

    Types that no standard names keep NumPy's name.
    """
    dtype = as_plain(array).dtype
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


def operand_parts(value: Array, name: str) -> tuple[tuple[float, ...], int, str]:
    """Return the elements in order as Python numbers, the rank, and the element type.

    Masked elements are refused (TS107), and more than could be listed (TS308).
    """
    plain = np.asarray(value)
    check_few(plain.size, name)
    if is_masked_array(value) and np.ma.is_masked(value):
        raise SplitError(
            OPERAND_VALUE, "some of its elements are masked", "fill them", parameter=name
        )
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
    if isinstance(array, np.matrix) and not plan.keepdims:
        array = np.asarray(array)  # parts of a matrix would stay 2-D
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
    dtype = as_plain(array).dtype
    buffers = [pool.empty(shape, dtype) for shape in part_shapes(plan)]
    return copies_into(array, plan, buffers)


def find_kernel() -> Any:
    """Return the native kernel, or None where NumPy copies.

    An environment variable that asks for what does not exist is refused (TS107).
    """
    if native.refused is not None:
        variable, problem, expected = native.refused
        raise SplitError(OPERAND_VALUE, problem, expected, parameter=variable)
    return native.kernel


def copies_into(array: Array, plan: SplitPlan, out: Any) -> list[Array]:
    """Return the parts written into the buffers of a snapshot, which is returned.

    Buffers that don't fit are refused before any byte is written (TS401 to TS405).
    """
    kernel = find_kernel()
    plain = np.ndarray.view(array, np.ndarray)
    if (
        kernel is None
        or type(out) is not list
        or len(out) != len(plan.sizes)
        or any(map(is_more_than_elements, (array, *out)))
        or not kernel.copy_into(
            plain, plan.axis, plan.sizes, plan.keepdims, list(map(as_plain, out))
        )
    ):
        buffers = check_buffers(array, plan, out)
        for buffer, index in zip(buffers, plan.indices, strict=True):
            buffer[...] = plain[index]
    parts: list[Array] = out
    return parts


def kind(array: Array) -> tuple[object, ...]:
    """Return the element type, with its byte order."""
    return (as_plain(array).dtype,)


_PLAIN = frozenset({np.ndarray, np.memmap})
"""The types of arrays that are their elements and nothing else."""


def joined_view(parts: list[Array], plan: SplitPlan) -> Array | None:
    """Return the array whose views the parts are, in order; None if they are not.

    None too for arrays of types of their own, which may hold more than elements.
    """
    if not _PLAIN.issuperset(map(type, parts)):
        return None
    bases = [part.base for part in parts if part.size]  # the memory of the others doesn't matter
    if any(base is None or base is not bases[0] for base in bases) and len(parts) > 1:
        return None
    found = strides_of_whole(
        plan,
        [part.strides for part in parts],
        [part.__array_interface__["data"][0] for part in parts],
    )
    if found is None:
        return None
    first, strides = found
    writable = all(part.flags.writeable for part in parts)
    shape = shape_of(plan)
    if writable and strides[plan.axis] == 0 and shape[plan.axis] > 1:
        return None  # the same elements, again and again
    return _as_whole(parts[first], shape, strides, writable)


def _as_whole(
    part: Array, shape: tuple[int, ...], strides: tuple[int, ...], writable: bool
) -> Array | None:
    """Return the array that begins where a part does; None if NumPy can't make it."""
    dtype = part.dtype
    plain = part if dtype.hasobject else part.view((np.void, dtype.itemsize))
    with suppress(TypeError):  # of elements with references, only objects have a name in NumPy
        whole = as_strided(plain, shape, strides, subok=True, writeable=writable)
        return whole if dtype.hasobject else whole.view(dtype)
    return None


def joined(parts: list[Any], plan: SplitPlan) -> Array:
    """Return the parts as one new array, in C order; the type of a subclass stays."""
    own = [kind for kind in {*map(type, parts)} - _PLAIN if issubclass(kind, np.ndarray)]
    if any(issubclass(kind, np.ma.MaskedArray) for kind in own):
        return _joined_masked(parts, plan)
    plain = list(map(np.asarray, parts))
    if not own:
        return _fill(np.empty(shape_of(plan), plain[0].dtype), plain, plan)
    if len(own) == 1 and not has_own_functions(own[0]):
        like = next(part for part in parts if type(part) is own[0])
        whole: Array = np.empty_like(like, shape=shape_of(plan), order="C")
        _fill(np.ndarray.view(whole, np.ndarray), plain, plan)
        return whole
    join: Any = np.concatenate if plan.keepdims else np.stack
    made: Array = join(parts, axis=plan.axis)
    return made


def _fill(whole: Array, parts: list[Array], plan: SplitPlan) -> Array:
    if not join_by_kernel(whole, parts, plan):
        _join_by_numpy(whole, parts, plan)
    return whole


def _join_by_numpy(whole: Array, parts: list[Array], plan: SplitPlan) -> None:
    for part, index in zip(parts, plan.indices, strict=True):
        whole[index] = part


def join_by_kernel(whole: object, parts: list[Array], plan: SplitPlan) -> bool:
    """Join parts in an array with the kernel; False, with nothing written, where it can't."""
    kernel = find_kernel()
    if kernel is None or type(whole) is not np.ndarray:
        return False
    return kernel.join(parts, plan.axis, plan.keepdims, True, whole) is not None


def _joined_masked(parts: list[Array], plan: SplitPlan) -> Array:
    """Return the parts as one masked array; a mask stays, even if it masks nothing."""
    whole = joined([np.ma.getdata(part) for part in parts], plan)
    mask: Any = np.ma.nomask
    if any(np.ma.getmask(part) is not np.ma.nomask for part in parts):
        mask = joined([np.ma.getmaskarray(part) for part in parts], plan)
    first: Any = next(filter(is_masked_array, parts))
    make: Any = np.ma.array
    made: Array = make(whole, mask=mask, fill_value=first.fill_value, hard_mask=first.hardmask)
    return made


def joined_in_pool(parts: list[Array], plan: SplitPlan, pool: BufferPool) -> Any:
    """Return the parts as one array in the memory of a pool."""
    return joined_into(parts, plan, pool.empty(shape_of(plan), as_plain(parts[0]).dtype))


def joined_into(parts: list[Array], plan: SplitPlan, out: object) -> Any:
    """Return the buffer, with the parts written to it.

    One that doesn't fit is refused before any byte is written (TS402 to TS405).
    """
    whole = out
    if {type(out), *map(type, parts)} != {np.ndarray}:
        check_elements_only("the buffer or a part", (out, *parts))
        whole, parts = as_plain(out), list(map(np.asarray, parts))
    if not join_by_kernel(whole, parts, plan):
        _join_by_numpy(check_buffer(parts, plan, whole), parts, plan)
    return out
