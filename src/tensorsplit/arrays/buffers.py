"""The checks of `out`: buffers of the right shape and type, none of which shares memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import combinations, islice
from typing import Any, TypeGuard

import numpy as np
from numpy.lib.array_utils import byte_bounds

from tensorsplit.arrays.pool import Array
from tensorsplit.core.errors import (
    OUT_COUNT,
    OUT_OVERLAP,
    OUT_READ_ONLY,
    OUT_SHAPE,
    OUT_TYPE,
    SplitError,
    count_of,
)
from tensorsplit.core.given import is_a
from tensorsplit.core.plan import SplitPlan, offsets_of
from tensorsplit.core.rules import MAX_PARTS

_MAX_WORK: Any = 100_000
_MAX_PAIRED = 32
_MAX_MARKED = 1 << 30


def snapshot(out: object) -> Any:
    """List the buffers of a call, in a list that nobody else can change.

    It is taken before anything is looked at: a sequence of the caller's may run any code.
    """
    if type(out) is list:
        return out.copy()
    if is_a(out, Sequence) and not is_a(out, (str, bytes, bytearray, memoryview)):
        with suppress(Exception):  # others' methods may raise anything; it is not a list then
            return list(islice(out, MAX_PARTS + 1))
    return out


def check_buffer_count(out: object, plan: SplitPlan, kind: str) -> list[Any]:
    """Return buffers of a kind; refuse another number than the plan's, or no list (TS401)."""
    if type(out) is list and len(out) == len(plan.sizes):
        return out
    what = count_of(len(out), "buffer") if type(out) is list else type(out).__name__
    fix = f"give a list of {count_of(len(plan.sizes), kind)}"
    raise SplitError(OUT_COUNT, f"it is {what}", fix)


def check_buffers(array: Array, plan: SplitPlan, out: object) -> list[Array]:
    """Return the buffers as plain arrays, which run no code of the caller's when they are written.

    Those that the parts of an array can't be written to are refused (TS401 to TS405).
    """
    listed = check_buffer_count(out, plan, "array")
    check_elements_only("the data or a buffer", (array, *listed))
    array = as_plain(array)
    buffers: list[Array] = []
    for number, (given, shape) in enumerate(zip(listed, plan.output_shapes, strict=True)):
        if not _is_array(given):
            raise SplitError(
                OUT_TYPE, f"buffer {number} is a {type(given).__name__}", "give NumPy arrays"
            )
        buffer = np.ndarray.view(given, np.ndarray)
        buffers.append(buffer)
        name = f"buffer {number}"
        if buffer.shape != shape:
            raise SplitError(OUT_SHAPE, f"{name} has shape {buffer.shape}", f"its part has {shape}")
        _check_writable(name, buffer, array.dtype)
    if not _are_surely_disjoint(buffers, [array]):
        for number, buffer in enumerate(buffers):
            _check_overlap(f"buffer {number}", buffer, array, "the data")
        _check_disjoint(buffers)
    return buffers


def _are_surely_disjoint(written: Sequence[Array], read: Sequence[Array]) -> bool:
    """Return whether it is seen at once that nothing that is written shares memory."""
    if not all(buffer.flags.c_contiguous for buffer in written):
        return False
    ranges = [[byte_bounds(array) for array in side if array.size] for side in (written, read)]
    return are_disjoint(*ranges)


def are_disjoint(written: Iterable[tuple[int, int]], read: Iterable[tuple[int, int]]) -> bool:
    """Return whether no range of addresses that is written, each with its end, meets another."""
    reach = reach_written = 0
    for start, end, is_written in sorted(
        [*((*each, True) for each in written), *((*each, False) for each in read)]
    ):
        if start < (reach if is_written else reach_written):
            return False
        reach = max(reach, end)
        if is_written:
            reach_written = end
    return True


def _is_array(value: object) -> TypeGuard[Array]:
    """Return whether a value is an array, and does not only claim to be one, as a proxy does."""
    return issubclass(type(value), np.ndarray)


def as_plain(value: object) -> Any:
    """Return an array as a view that runs no code of its class; anything else as it is."""
    return np.ndarray.view(value, np.ndarray) if _is_array(value) else value


def check_buffer(parts: Sequence[Array], plan: SplitPlan, out: object) -> Array:
    """Return the buffer that plain arrays are joined in as another one.

    One that they can't be written to is refused (TS402 to TS405).
    """
    if not _is_array(out):
        raise SplitError(OUT_TYPE, f"it is of type {type(out).__name__}", "give one NumPy array")
    buffer = np.ndarray.view(out, np.ndarray)
    if buffer.shape != plan.input_shape:
        problem = f"the buffer has shape {buffer.shape}"
        raise SplitError(OUT_SHAPE, problem, f"the whole has {plan.input_shape}")
    _check_writable("the buffer", buffer, parts[0].dtype if parts else buffer.dtype)
    for number, part in enumerate(() if _are_surely_disjoint([buffer], parts) else parts):
        _check_overlap("the buffer", buffer, part, f"part {number}")
    return buffer


def _check_writable(name: str, buffer: Array, dtype: np.dtype) -> None:
    if buffer.dtype != dtype:
        raise SplitError(OUT_TYPE, f"{name} has type {buffer.dtype}", f"the data has {dtype}")
    if not buffer.flags.writeable:
        raise SplitError(OUT_READ_ONLY, f"{name} is read-only", "give writable buffers")


def refuse_out(array: object, _plan: SplitPlan, _out: object) -> object:
    """Refuse any `out` for arrays that can't be written to (TS404)."""
    kind = type(array)
    name = f"{kind.__module__.partition('.')[0]}'s {kind.__name__}"
    raise SplitError(
        OUT_READ_ONLY,
        f"{name} can't be written to buffers",
        "leave it out; `copy=True` makes arrays that share nothing with the data",
    )


def no_view(_parts: object, _plan: SplitPlan) -> None:
    """Return None: the library has no views."""


def refuse_to_write(parts: Sequence[object], plan: SplitPlan, out: object) -> object:
    """Refuse any `out` for parts of a library whose arrays can't be written to (TS404)."""
    return refuse_out(parts[0], plan, out)


def strides_of_whole(
    plan: SplitPlan, strides: Sequence[tuple[int, ...]], places: Sequence[int]
) -> tuple[int, tuple[int, ...]] | None:
    """Return which part begins the array that the parts make up where they lie, and its strides.

    The parts have these strides and begin at these places, in the same unit. None if they are not
    the parts of one array in order.
    """
    is_empty = 0 in plan.input_shape
    filled = [0] if is_empty else [number for number, size in enumerate(plan.sizes) if size]
    first, axis = filled[0], plan.axis
    around = strides[first]
    if any(strides[number] != around for number in filled):
        return None
    if plan.keepdims:
        step = around[axis]
    else:
        step = places[1] - places[0] if len(places) > 1 else 1
        around = (*around[:axis], step, *around[axis:])
    offsets = offsets_of(plan)
    if any(places[number] - places[first] != offsets[number] * step for number in filled):
        return None
    return first, around


def is_masked_array(value: object) -> bool:
    """Return whether it is one, without loading `numpy.ma` for those that are not."""
    return type(value) is not np.ndarray and is_a(value, np.ma.MaskedArray)


def has_own_functions(kind: type) -> bool:
    """Return whether a class of arrays replaces NumPy's functions, as those with units do."""
    own = getattr(kind, "__array_function__", None)
    return issubclass(kind, np.ndarray) and own is not np.ndarray.__array_function__


def is_more_than_elements(value: object) -> bool:
    """Return whether it is an array whose mask, or units, no buffer of elements can hold."""
    kind = type(value)
    return kind is not np.ndarray and (is_masked_array(value) or has_own_functions(kind))


def check_elements_only(what: str, values: Sequence[object]) -> None:
    """Refuse masks and units, which would be lost silently (TS403)."""
    value = next(filter(is_more_than_elements, values), None)
    if value is not None:
        problem = f"{what} is of type {type(value).__name__}"
        fix = "use `copy=True`: only elements can be written to `out`, and no masks or units"
        raise SplitError(OUT_TYPE, problem, fix)


def _check_overlap(name: str, buffer: Array, array: Array, what: str) -> None:
    overlaps_itself = _may_overlap_itself(buffer)
    if overlaps_itself or _share(buffer, array):
        problem = f"{name} shares memory with {'itself' if overlaps_itself else what}"
        raise SplitError(OUT_OVERLAP, problem, "give buffers of their own")


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
    """Return the position of a buffer that shares memory with one before it, or None.

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
    """Return whether the arrays share memory; where that is too hard to find out (NP-hard), yes."""
    try:
        return np.shares_memory(left, right, max_work=_MAX_WORK)
    except np.exceptions.TooHardError:
        return True


def _may_overlap_itself(array: Array) -> bool:
    """Return whether two elements may lie on each other, as in a broadcast array."""
    reach = array.itemsize
    for stride, size in sorted(zip(map(abs, array.strides), array.shape, strict=True)):
        if size > 1:
            if stride < reach:
                return array.size > 1
            reach += stride * (size - 1)
    return False
