"""The checks of `out`: buffers of the right shape and type, none of which shares memory."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import combinations, islice
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.array_utils import byte_bounds

from tensorsplit.core.errors import (
    OUT_COUNT,
    OUT_OVERLAP,
    OUT_READ_ONLY,
    OUT_SHAPE,
    OUT_TYPE,
    SplitError,
    count_of,
)
from tensorsplit.core.plan import SplitPlan
from tensorsplit.core.rules import MAX_PARTS

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

_MAX_WORK: Any = 100_000
_MAX_PAIRED = 32
_MAX_MARKED = 1 << 30


def snapshot(out: Any) -> Any:
    """List the buffers of a call, in a list that nobody else can change.

    It is taken before anything is looked at: a sequence of the caller's may run any code.
    """
    if type(out) is list:
        return out.copy()
    if isinstance(out, Sequence) and not isinstance(out, (str, bytes, bytearray, memoryview)):
        with suppress(Exception):  # someone else's methods may raise anything; it is no list then
            return list(islice(out, MAX_PARTS + 1))
    return out


def check_buffers(array: Array, plan: SplitPlan, out: object) -> list[Array]:
    """Return the buffers as plain arrays, which run no code of the caller's when they are written.

    Those that the parts of an array can't be written to are refused (TS401 to TS405).
    """
    if type(out) is not list or len(out) != len(plan.sizes):
        what = count_of(len(out), "buffer") if type(out) is list else type(out).__name__
        fix = f"give a list of {count_of(len(plan.sizes), 'array')}"
        raise SplitError(OUT_COUNT, f"it is {what}", fix)
    if any(map(is_masked_array, (array, *out))):
        raise SplitError(
            OUT_TYPE, "the data or a buffer is a masked array", "a mask can't be written to `out`"
        )
    buffers: list[Array] = []
    for number, (given, shape) in enumerate(zip(out, plan.output_shapes, strict=True)):
        if not isinstance(given, np.ndarray):
            raise SplitError(
                OUT_TYPE, f"buffer {number} is a {type(given).__name__}", "give NumPy arrays"
            )
        buffer = np.ndarray.view(given, np.ndarray)
        buffers.append(buffer)
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
    _check_disjoint(buffers)
    return buffers


def refuse_out(array: Any, _plan: SplitPlan, _out: object) -> Any:
    """Refuse any `out` for arrays that can't be written to (TS404)."""
    kind = type(array)
    name = f"{kind.__module__.partition('.')[0]}'s {kind.__name__}"
    raise SplitError(
        OUT_READ_ONLY,
        f"parts of {name} can't be written to buffers",
        "leave it out; `copy=True` makes parts that share nothing with the data",
    )


def is_masked_array(value: object) -> bool:
    """Return whether it is one, without loading `numpy.ma` for those that are not."""
    return type(value) is not np.ndarray and isinstance(value, np.ma.MaskedArray)


def _check_overlap(name: str, buffer: Array, array: Array) -> None:
    overlaps_itself = _may_overlap_itself(buffer)
    if overlaps_itself or _share(buffer, array):
        problem = f"{name} shares memory with {'itself' if overlaps_itself else 'the data'}"
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
