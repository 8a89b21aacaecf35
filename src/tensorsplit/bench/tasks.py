"""A workload with its data: a random source, what must come out, and the check that it did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np

from tensorsplit.bench.workloads import Layout, Workload

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

_LINE = 64
_SEED = 20240613
_LONGEST_REASON = 200


@dataclass(frozen=True)
class Task:
    """A workload with its data.

    All peers that write into buffers share `buffers`, so that none has to bring memory of its own
    back into the caches.
    """

    workload: Workload
    source: Array  # random, without a zero byte
    expected: tuple[Array, ...]  # as plain slicing gives them, in memory of their own
    buffers: tuple[Array, ...]
    memory: Array  # the bytes that the buffers lie in, one after the other; of strings, others


@dataclass(frozen=True)
class Prepared:
    """A workload as one peer runs it in one way."""

    call: Callable[[], Any]
    collect: Callable[[Any], Sequence[Array]] = list  # the parts, from what `call` returned
    buffers: Sequence[Array] = ()  # where `call` writes the parts, if it is given buffers


class UnableError(Exception):
    """A peer can't do a workload; the message says why, in one line."""

    def __init__(self, reason: str, error: Exception | None = None) -> None:
        whole = f"{reason}: {error}" if error is not None else reason
        super().__init__(" ".join(whole.split())[:_LONGEST_REASON])


def make_task(workload: Workload) -> Task:
    """The workload with its data, the same in every run."""
    source = _laid_out(workload.shape, np.dtype(workload.dtype), workload.layout)
    expected = tuple(source[index].copy() for index in workload.indices)
    return Task(workload, source, expected, *_buffers(expected))


def _buffers(parts: Sequence[Array]) -> tuple[tuple[Array, ...], Array]:
    """Buffers aligned to cache lines in one block of memory, every page of it touched."""
    if any(part.dtype.hasobject for part in parts):
        memory = np.ones(sum(part.nbytes for part in parts), np.uint8)
        return tuple(np.full_like(part, None) for part in parts), memory
    ends = tuple(accumulate(-(-part.nbytes // _LINE) * _LINE for part in parts))
    block = np.ones(ends[-1] + _LINE, np.uint8)
    memory = block[-block.ctypes.data % _LINE :][: ends[-1]]
    buffers = (
        memory[start : start + part.nbytes].view(part.dtype).reshape(part.shape)
        for start, part in zip((0, *ends[:-1]), parts, strict=True)
    )
    return tuple(buffers), memory


def _laid_out(shape: tuple[int, ...], dtype: np.dtype[Any], layout: Layout) -> Array:
    if layout == "transposed":
        return _random(shape[::-1], dtype).transpose()
    if layout == "sliced":
        return _random((*shape[:-1], 2 * shape[-1]), dtype)[..., ::2]
    array = _random(shape, dtype)
    return array[::-1] if layout == "reversed" else array


def _random(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Random elements: no byte of them is zero, and none of the strings is empty."""
    rng = np.random.default_rng(_SEED)
    if dtype.hasobject:
        texts = np.array([f"text {number}" for number in rng.permutation(1 << 16)], object)
        return texts[rng.integers(0, texts.size, shape)]
    return rng.integers(1, 256, (*shape, dtype.itemsize), np.uint8).view(dtype).reshape(shape)


def find_fault(task: Task, prepared: Prepared) -> str | None:
    """Run once and compare every bit with plain slicing; what is wrong, or None.

    What will be written to is filled beforehand with the complement of what must be written, so
    that no byte which is left as it was can pass: the buffers, or else the memory of a first
    result, which an allocator or a pool is likely to hand out again.
    """
    poisoned = prepared.buffers
    if not poisoned and task.workload.kind == "copy":
        poisoned = prepared.collect(prepared.call())
        fault = _compare(task, poisoned)
        if fault is not None:
            return fault
    for buffer, part in zip(poisoned, task.expected, strict=False):
        _poison(buffer, part)
    del poisoned
    parts = prepared.collect(prepared.call())
    if prepared.buffers and not all(map(np.may_share_memory, parts, prepared.buffers)):
        return "the parts are not in the buffers that were given"
    fault = _compare(task, parts)
    sources = (task.source[index] for index in task.workload.indices)
    if fault is None and not all(map(_same, sources, task.expected)):
        return "the source was changed"
    return fault


def _compare(task: Task, parts: Sequence[Array]) -> str | None:
    if len(parts) != len(task.expected):
        return f"{len(parts)} parts, not {len(task.expected)}"
    for number, (part, right) in enumerate(zip(parts, task.expected, strict=True)):
        if part.shape != right.shape or part.dtype != right.dtype:
            seen = f"part {number} is {part.dtype} of shape {part.shape}"
            return f"{seen}, not {right.dtype} of shape {right.shape}"
        if task.workload.kind == "copy" and not part.flags.c_contiguous:
            return f"part {number} is not contiguous"
        if task.workload.kind == "copy" and np.may_share_memory(part, task.source):
            return f"part {number} is no copy"
        if not _same(part, right):
            return f"part {number} has other values"
    return None


def _poison(buffer: Array, part: Array) -> None:
    if buffer.dtype.hasobject:
        buffer.fill(None)
    elif buffer.flags.writeable:
        np.invert(_octets(part), out=_octets(buffer))


def _octets(array: Array) -> Array:
    """The bytes of an array in C order (a view where it is contiguous); references as they are."""
    contiguous = np.ascontiguousarray(array)
    return contiguous if array.dtype.hasobject else contiguous.reshape(-1).view(np.uint8)


def _same(left: Array, right: Array) -> bool:
    return bool(np.array_equal(_octets(left), _octets(right)))
