"""The workloads: splits as data, their tensors, and the check of each library's results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import accumulate
from math import prod
from typing import Any, Literal, TypeAlias

import numpy as np

from tensorsplit.core.errors import USAGE, SplitError, did_you_mean, show

Array: TypeAlias = "np.ndarray"

Kind: TypeAlias = Literal["copy", "join", "views", "plan"]
"""What is timed: contiguous parts, the way back from these, an eager call that returns views, or a
plan that does."""

COPIES = frozenset({"copy", "join"})
"""The kinds that copy every byte."""

Layout: TypeAlias = Literal["contiguous", "transposed", "sliced", "reversed"]
"""How the source lies in memory: in C order, in Fortran order, with every other element of the last
axis, or with its first axis backwards."""

_LINE = 64
_SEED = 20240613
_LONGEST_REASON = 200


@dataclass(frozen=True, slots=True)
class Workload:
    """A split to be timed; the element type goes by NumPy's name, ``object`` for strings."""

    name: str
    stands_for: str
    shape: tuple[int, ...]
    dtype: str
    axis: int  # counted from the front
    sizes: tuple[int, ...]
    layout: Layout = "contiguous"
    kind: Kind = "copy"

    @property
    def nbytes(self) -> int:
        """The bytes of the source; of strings, those of the references to them."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize

    @property
    def baseline(self) -> str:
        """The baseline that the times are compared with."""
        return {"views": "numpy.split", "plan": "slicing"}.get(self.kind, "memcpy")

    @property
    def indices(self) -> tuple[tuple[slice, ...], ...]:
        """The index of each part."""
        before = (slice(None),) * self.axis
        pairs = zip(self.sizes, accumulate(self.sizes), strict=True)
        return tuple((*before, slice(end - size, end)) for size, end in pairs)

    def __str__(self) -> str:
        least, most = min(self.sizes), max(self.sizes)
        lengths = f"{least}" if least == most else f"{least} to {most}"
        element = "strings" if self.dtype == "object" else self.dtype
        layout = "" if self.layout == "contiguous" else f" {self.layout}"
        count = (
            f"{len(self.sizes)} parts"
            if self.kind != "join"
            else f"joined, {len(self.sizes)} parts"
        )
        return f"{element} {self.shape}{layout}, axis {self.axis}: {count} of {lengths}"


_ATTENTION = (8, 512, 2304), "float32", 2, (768,) * 3
_ROWS = (4096, 2048), "float32", 0, (1024,) * 4
_SMALL = (1, 64, 768), "float32", 2, (256,) * 3
_RAGGED = tuple(8 + 37 * number % 71 for number in range(96))  # from 8 to 78, in no order
_COLUMNS = (65536, 64), "float32", 1, (1,) * 64
_BLOCKS = (2048, 3072), "float32", 1, (1024,) * 3
_PICTURE = (2160, 3840, 3), "uint8", 2, (1,) * 3

_ALL = (
    Workload("attention", "query, key and value of a transformer", *_ATTENTION),
    Workload(
        "grouped-query",
        "query, key and value where the heads share keys",
        (2, 1024, 6144),
        "float16",
        2,
        (4096, 1024, 1024),
    ),
    Workload("channels", "halves of a feature map, NCHW", (8, 128, 80, 80), "float32", 1, (64, 64)),
    Workload("rgb", "the channels of a 4K picture", *_PICTURE),
    Workload("rgba", "the channels of a 4K picture", (2160, 3840, 4), "uint8", 2, (1,) * 4),
    Workload("stereo", "left and right of 16-bit sound", (1 << 22, 2), "int16", 1, (1, 1)),
    Workload("columns", "the columns of a table", *_COLUMNS),
    Workload("doubles", "the columns of a table", (131072, 16), "float64", 1, (1,) * 16),
    Workload("complex", "two antennas, interleaved", (1 << 21, 2), "complex64", 1, (1, 1)),
    Workload("complex-pairs", "pairs of wide elements", (1 << 20, 2), "complex128", 1, (1, 1)),
    Workload("ragged", "96 features of uneven widths", (2048, sum(_RAGGED)), "float32", 1, _RAGGED),
    Workload("rows", "batches along the first axis", *_ROWS),
    Workload("strings", "the columns of a table of text", (32768, 8), "object", 1, (1,) * 8),
    Workload("transposed", "three blocks of a source in Fortran order", *_BLOCKS, "transposed"),
    Workload("sliced", "three blocks of every other column", *_BLOCKS, "sliced"),
    Workload("reversed", "the channels of a picture upside down", *_PICTURE, "reversed"),
    Workload("small", "a layer for one short text", *_SMALL),
    Workload("tiny", "the cost of the call itself", (6, 4), "float32", 0, (2, 4)),
    Workload("join-attention", "gradients back into one weight", *_ATTENTION, kind="join"),
    Workload("join-rows", "shards along the first axis", *_ROWS, kind="join"),
    Workload("join-rgb", "channels back into a 4K picture", *_PICTURE, kind="join"),
    Workload("join-columns", "columns back into a table", *_COLUMNS, kind="join"),
    Workload("join-small", "a layer for one short text", *_SMALL, kind="join"),
    Workload("views", "two views, eagerly", (6, 4), "float32", 0, (2, 4), kind="views"),
    Workload("views-many", "64 views, eagerly", (64, 64), "float32", 1, (1,) * 64, kind="views"),
    Workload("plan", "two views by a prepared plan", (6, 4), "float32", 0, (2, 4), kind="plan"),
    Workload(
        "plan-many", "64 views by a prepared plan", (64, 64), "float32", 1, (1,) * 64, kind="plan"
    ),
)

WORKLOADS: dict[str, Workload] = {workload.name: workload for workload in _ALL}
"""Every workload, by its name."""


def choose_workloads(patterns: tuple[str, ...]) -> list[Workload]:
    """Choose the workloads that any pattern names, or all; TS703 if a pattern names nothing."""
    chosen: set[str] = set()
    for pattern in patterns or ("*",):
        named = {name for name in WORKLOADS if fnmatchcase(name, pattern)}
        if not named:
            raise SplitError(
                USAGE,
                f"there is no workload {show(pattern)}",
                did_you_mean(pattern, WORKLOADS).rstrip() or f"give one of {', '.join(WORKLOADS)}",
                parameter="workload",
            )
        chosen |= named
    return [workload for name, workload in WORKLOADS.items() if name in chosen]


@dataclass(frozen=True)
class Task:
    """A workload with its data.

    All peers that write into buffers share `buffers`, so that none has to bring memory of its own
    back into the caches.
    """

    workload: Workload
    source: Array  # random, without a zero byte
    parts: tuple[Array, ...]  # as plain slicing gives them, in memory of their own
    buffers: tuple[Array, ...]
    memory: Array  # the bytes that the buffers lie in, one after the other; of strings, others

    @property
    def expected(self) -> tuple[Array, ...]:
        """The right result: the parts, or the whole that they are joined to."""
        return (self.source,) if self.workload.kind == "join" else self.parts

    @property
    def given(self) -> tuple[Array, ...]:
        """The data that a library is given: the parts, or the whole."""
        return self.parts if self.workload.kind == "join" else (self.source,)


@dataclass(frozen=True)
class Prepared:
    """A workload as one library runs it in one way."""

    call: Callable[[], Any]
    collect: Callable[[Any], Sequence[Array]] = list  # the parts, from what `call` returned
    buffers: Sequence[Array] = ()  # where `call` writes the parts, if it is given buffers


class UnableError(Exception):
    """A library can't do a workload; the message gives the reason, in one line."""

    def __init__(self, reason: str, error: Exception | None = None) -> None:
        whole = f"{reason}: {error}" if error is not None else reason
        super().__init__(" ".join(whole.split())[:_LONGEST_REASON])


def make_task(workload: Workload) -> Task:
    """Return the workload with its data, the same in every run."""
    source = _laid_out(workload.shape, np.dtype(workload.dtype), workload.layout)
    parts = tuple(source[index].copy() for index in workload.indices)
    return Task(workload, source, parts, *_buffers([source] if workload.kind == "join" else parts))


def _buffers(parts: Sequence[Array]) -> tuple[tuple[Array, ...], Array]:
    """Allocate buffers aligned to cache lines in one block, every page of it touched."""
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


def _laid_out(shape: tuple[int, ...], dtype: np.dtype, layout: Layout) -> Array:
    if layout == "transposed":
        return _random(shape[::-1], dtype).transpose()
    if layout == "sliced":
        return _random((*shape[:-1], 2 * shape[-1]), dtype)[..., ::2]
    array = _random(shape, dtype)
    return array[::-1] if layout == "reversed" else array


def _random(shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """Return random elements: no byte of them is zero, and none of the strings is empty."""
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
    if not poisoned and task.workload.kind in COPIES:
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
    if fault is None and not all(map(_same, sources, task.parts)):
        return "the source was changed"
    return fault


def _compare(task: Task, parts: Sequence[Array]) -> str | None:
    if len(parts) != len(task.expected):
        return f"{len(parts)} parts, not {len(task.expected)}"
    for number, (part, right) in enumerate(zip(parts, task.expected, strict=True)):
        if part.shape != right.shape or part.dtype != right.dtype:
            seen = f"part {number} is {part.dtype} of shape {part.shape}"
            return f"{seen}, not {right.dtype} of shape {right.shape}"
        is_copy = task.workload.kind in COPIES
        if is_copy and not part.flags.c_contiguous:
            return f"part {number} is not contiguous"
        if is_copy and any(np.may_share_memory(part, given) for given in task.given):
            return f"part {number} is not a copy"
        if not _same(part, right):
            return f"part {number} has other values"
    return None


def _poison(buffer: Array, part: Array) -> None:
    if buffer.dtype.hasobject:
        buffer.fill(None)
    elif buffer.flags.writeable:
        np.invert(_octets(part), out=_octets(buffer))


def _octets(array: Array) -> Array:
    """Return an array's bytes in C order (a view if it is contiguous); references as they are."""
    contiguous = np.ascontiguousarray(array)
    return contiguous if array.dtype.hasobject else contiguous.reshape(-1).view(np.uint8)


def _same(left: Array, right: Array) -> bool:
    return bool(np.array_equal(_octets(left), _octets(right)))
