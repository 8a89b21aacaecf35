"""Splitting NumPy arrays, and reading operands from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.array_utils import byte_bounds

from tensorsplit import native
from tensorsplit.arrays.pool import BufferPool
from tensorsplit.core.dimensions import is_known
from tensorsplit.core.errors import (
    OPERAND_VALUE,
    OUT_COUNT,
    OUT_OVERLAP,
    OUT_READ_ONLY,
    OUT_SHAPE,
    OUT_TYPE,
    TOO_MANY_PARTS,
    SplitError,
)
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
_MAX_WORK: Any = 100_000
_MAX_PAIRED = 32
_MAX_MARKED = 1 << 30
_cache: dict[np.dtype[Any], str] = {}


def is_array(value: object) -> bool:
    """Whether the value is a NumPy array, or a scalar that stands for a rank-0 one."""
    return isinstance(value, (np.ndarray, np.generic))


def element_type(array: Array) -> str:
    """The name of the element type, as in the schemas of ONNX, whatever the byte order.

    Types that no standard names keep NumPy's name.
    """
    dtype = array.dtype
    try:
        name = _cache.get(dtype)
    except TypeError:  # a StringDType whose stand-in for missing strings can't be hashed
        return "string"
    if name is None:
        name = "string" if dtype.kind in "UST" else _NAMES.get(dtype.name, dtype.name)
        if len(_cache) < 1024:
            _cache[dtype] = name
    return name


def operand_parts(value: Array, name: str) -> tuple[tuple[Any, ...], int, str]:
    """The elements in order as Python numbers, the rank, and the element type.

    Raises:
        SplitError: TS107 for masked elements, TS308 for more than could be listed.
    """
    if value.size > MAX_PARTS:
        raise SplitError(
            TOO_MANY_PARTS, f"it has {value.size} elements", "give fewer", parameter=name
        )
    if _is_masked_array(value) and np.ma.is_masked(value):
        raise SplitError(
            OPERAND_VALUE, "some of its elements are masked", "fill them", parameter=name
        )
    plain = np.asarray(value)
    element = element_type(plain)
    if element.lstrip("u") in ("int1", "int2", "int4"):  # these give scalars of their own
        plain = plain.astype(np.int64)
    return tuple(plain.ravel().tolist()), plain.ndim, element


def viewer(plan: SplitPlan) -> Callable[[Any], list[Any] | None]:
    """A function that splits an ``ndarray`` into views, and gives None for one of another shape.

    It takes no subclasses.

    Raises:
        SplitError: TS309 if a size is symbolic.
    """
    indices, shape = plan.indices, plan.input_shape
    if native.kernel is not None and all(map(is_known, shape)):
        made: Callable[[Any], list[Any] | None] = native.kernel.viewer(
            shape, plan.axis, plan.sizes, plan.keepdims
        )
        return made
    match indices:
        case ():
            return lambda array: [] if array.shape == shape else None
        case (first,):
            return lambda array: [array[first]] if array.shape == shape else None
    parts = itemgetter(*indices)  # faster than a loop
    return lambda array: [*parts(array)] if array.shape == shape else None


def views(array: Array, plan: SplitPlan) -> list[Array]:
    """The parts as views of the array."""
    array = _any_rank(array)
    return [array[index] for index in plan.indices]


def copies(array: Array, plan: SplitPlan) -> list[Array]:
    """The parts as new C-contiguous arrays that share no memory with the array."""
    kernel = find_kernel()
    if kernel is not None:
        parts: list[Array] | None = kernel.copies(array, plan.axis, plan.sizes, plan.keepdims)
        if parts is not None:
            return parts
    return [part.copy() for part in views(array, plan)]


def pooled(array: Array, plan: SplitPlan, pool: BufferPool) -> list[Array]:
    """The parts as C-contiguous arrays in the memory of a pool."""
    parts = pool.blocks.copies(array, plan.axis, plan.sizes, plan.keepdims)
    if parts is not None:
        return parts
    buffers = [pool.empty(shape, array.dtype) for shape in plan.output_shapes]
    return copies_into(array, plan, buffers)


def find_kernel() -> Any:
    """The native kernel, or None where NumPy copies.

    Raises:
        SplitError: TS107 if an environment variable asks for what does not exist.
    """
    if native.kernel is None and native.refused is not None:
        variable, problem, expected = native.refused
        raise SplitError(OPERAND_VALUE, problem, expected, parameter=variable)
    return native.kernel


def _any_rank(array: Array) -> Array:
    """A `numpy.matrix` as an array: its parts would stay 2-D where the axis is dropped."""
    return np.asarray(array) if isinstance(array, np.matrix) else array


def _is_masked_array(value: object) -> bool:
    """Whether it is one, without loading `numpy.ma` for those that are not."""
    return type(value) is not np.ndarray and isinstance(value, np.ma.MaskedArray)


def copies_into(array: Array, plan: SplitPlan, out: Sequence[Array]) -> list[Array]:
    """The parts written into the caller's buffers; these are what is returned.

    Raises:
        SplitError: TS401 to TS405, before any byte is written.
    """
    kernel = find_kernel()
    is_plain = type(array) is np.ndarray
    if kernel is not None and (is_plain or not _is_masked_array(array)):
        plain = array if is_plain else np.asarray(array)
        if kernel.copy_into(plain, plan.axis, plan.sizes, plan.keepdims, out):
            return [*out]
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
    if any(map(_is_masked_array, (array, *out))):
        raise SplitError(
            OUT_TYPE, "the data or a buffer is a masked array", "a mask can't be written to `out`"
        )
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
    meeting: list[int] = []
    first, reach = 0, 0
    for start, end, number in ranges:
        if start >= reach:
            _check_meeting(out, meeting, first, reach)
            meeting, first = [], start
        meeting.append(number)
        reach = max(reach, end)
    _check_meeting(out, meeting, first, reach)


def _check_meeting(out: Sequence[Array], numbers: list[int], first: int, reach: int) -> None:
    """Refuse shared memory among buffers that lie between two addresses."""
    if len(numbers) <= _MAX_PAIRED or reach - first > _MAX_MARKED:
        pairs = combinations(numbers, 2)
        shared = next((pair for pair in pairs if _share(out[pair[0]], out[pair[1]])), None)
        names = f"buffers {shared[0]} and {shared[1]} share memory" if shared else None
    else:
        found = _find_marked([out[number] for number in numbers], first, reach)
        names = None if found is None else f"buffer {numbers[found]} shares memory with another"
    if names is not None:
        raise SplitError(OUT_OVERLAP, names, "give buffers of their own")


def _find_marked(buffers: Sequence[Array], first: int, reach: int) -> int | None:
    """The position of a buffer that shares memory with one before it, or None.

    Each buffer marks its bytes in a map of the memory, so that the time grows with the bytes and
    not with the pairs of buffers, of which columns of one big array make many.
    """
    marks = np.zeros(reach - first, bool)
    for position, buffer in enumerate(buffers):
        start: int = buffer.__array_interface__["data"][0] - first
        shape = (*buffer.shape, buffer.itemsize)
        seen = np.ndarray(shape, bool, marks, start, (*buffer.strides, 1))
        if seen.any():
            return position
        seen[...] = True
    return None


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
