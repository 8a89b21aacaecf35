"""The target for arrays: any layout, any way to ask, any place for the parts.

What comes back is compared with plain slicing; what is refused has left every byte as it was.
Memory that parts are written to is poisoned before, and guarded on both sides.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

import tensorsplit as ts
from tensorsplit import native
from tests.native.splits import arrays as strided_arrays
from tests.native.splits import sizes_of
from tests.oracle import Array, assert_same, random_array, slices

POISON = 0xA5
GUARD = 32
ONNX_KINDS = "biufcOUT"
"""The kinds of NumPy types that ONNX's operators take; all others are OpenVINO's only."""


class Own(np.ndarray):
    """A subclass."""


@st.composite
def references(draw: st.DrawFn) -> Array:
    """Strings, which are handles or pointers."""
    shape = draw(st.lists(st.integers(0, 5), min_size=1, max_size=3))
    name = draw(st.sampled_from(["string", "string as U", "string as StringDType"]))
    return random_array(name, shape, np.random.default_rng(sum(shape)))


@st.composite
def without_elements(draw: st.DrawFn) -> Array:
    """Large dimensions and strides that lead nowhere."""
    shape = draw(st.permutations([0, draw(st.sampled_from([1, 3, 1 << 40])), 2]))
    far = st.sampled_from([0, 1, -1, 1 << 62, -(1 << 63), (1 << 63) - 1])
    return as_strided(np.zeros(1, "f4"), shape, [draw(far) for _ in shape])


@st.composite
def data(draw: st.DrawFn) -> Array:
    """An array of any layout."""
    kind = draw(st.sampled_from(["strided"] * 4 + sorted(LAYOUTS)))
    if kind == "references":
        return draw(references())
    if kind == "without elements":
        return draw(without_elements())
    return LAYOUTS[kind](draw(strided_arrays()))


def _window(array: Array) -> Array:
    """Rows that share elements."""
    flat = np.ascontiguousarray(array).reshape(-1)[:300]
    width = max(1, flat.size // 2)
    rows = max(0, flat.size - width + 1)
    return as_strided(flat, (rows, width), flat.strides * 2)


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "strided": lambda array: array,
    "references": lambda array: array,
    "without elements": lambda array: array,
    "byte-swapped": lambda array: array.view(array.dtype.newbyteorder()),
    "broadcast": lambda array: np.broadcast_to(array[..., :1], (3, *array.shape)),
    "window": _window,
    "read-only": lambda array: np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape),
    "a subclass": lambda array: array.view(Own),
    "at the end of a buffer": lambda array: array[..., array.shape[-1] // 2 :],
}


@dataclass(frozen=True)
class Call:
    """A split to ask for."""

    data: Array
    axis: int
    sizes: tuple[int, ...]
    keepdims: bool
    function: str
    place: str
    buffers: tuple[str, ...]
    spoiled: tuple[int, str] | None
    kernel: tuple[str, int, int]


@st.composite
def calls(draw: st.DrawFn) -> Call:
    """Any call."""
    array = draw(data())
    axis = draw(st.integers(0, array.ndim - 1))
    extent = array.shape[axis]
    some = sizes_of(extent) if extent < 1000 else st.just((extent // 3, 0, extent - extent // 3))
    sizes = draw(some) or (0,)
    functions = ["variadic", "plan"]
    keepdims = True
    if array.dtype.kind in ONNX_KINDS:
        functions += ["split", "old split", "sequence"]
        keepdims = set(sizes) != {1} or draw(st.booleans())
    if len(set(sizes)) == 1:
        functions.append("equal")
    place = draw(st.sampled_from(["view", "copy", "pool", "own pool", "out", "out", "out"]))
    spoil = None
    if place == "out":
        spoil = draw(
            st.none() | st.tuples(st.integers(0, len(sizes) - 1), st.sampled_from(sorted(SPOILED)))
        )
    return Call(
        array,
        axis,
        sizes,
        keepdims,
        draw(st.sampled_from(functions)) if keepdims else "dropping",
        place,
        tuple(draw(st.lists(st.sampled_from(sorted(PLACES)), min_size=1, max_size=3))),
        spoil,
        (
            draw(st.sampled_from(["", "baseline"])),
            draw(st.sampled_from([1, 4 << 20])),
            draw(st.sampled_from([1, 2, 4])),
        ),
    )


def ask(call: Call, **how: Any) -> list[Array]:
    """What the function that is to be called gives."""
    array, axis, sizes = call.data, call.axis, list(call.sizes)
    match call.function:
        case "split":
            return list(ts.split(array, sizes, axis=axis - array.ndim, **how))
        case "old split":
            lengths = np.array(sizes, np.int64).tolist()
            return list(ts.split(array, lengths, axis=axis, opset=11, **how))
        case "sequence":
            return list(ts.split_to_sequence(array, np.array(sizes, np.int64), axis=axis, **how))
        case "dropping":
            return list(ts.split_to_sequence(array, axis=axis, keepdims=0, **how))
        case "equal":
            return ts.openvino.split(array, axis, len(sizes), **how)
        case "plan":
            plan = ts.plan("openvino.VariadicSplit-1", array.shape, axis=axis, split_lengths=sizes)
            plan(array)
            return plan(array, **how)
    return list(ts.variadic_split(array, axis, sizes, **how))


@dataclass(frozen=True)
class Room:
    """Poisoned memory with a buffer in its middle."""

    raw: Array
    buffer: Array

    @classmethod
    def like(cls, part: Array, kind: str) -> Room:
        if part.dtype.hasobject or part.size == 0 or part.dtype.kind == "T":
            return cls(np.empty(0, np.uint8), np.empty(part.shape, part.dtype))
        shape, arrange = PLACES[kind](part.shape)
        size = int(np.prod(shape)) * part.itemsize
        raw = np.full(size + 2 * GUARD + 1, POISON, np.uint8)
        start = GUARD + (kind == "misaligned")
        inside = raw[start : start + size].view(part.dtype).reshape(shape)
        return cls(raw, arrange(inside))

    def is_intact(self, part: Array) -> bool:
        """Whether only the elements of the buffer have changed, to those of the part."""
        if not self.raw.size:
            return True
        kept = self.buffer.copy()
        self.buffer.view(f"V{part.itemsize}")[...] = np.frombuffer(
            bytes([POISON]) * part.itemsize, f"V{part.itemsize}"
        )[0]
        clean = bool((self.raw == POISON).all())
        self.buffer[...] = kept
        return clean


Arranged = tuple[tuple[int, ...], Callable[[Array], Array]]
PLACES: dict[str, Callable[[tuple[int, ...]], Arranged]] = {
    "contiguous": lambda shape: (shape, lambda inside: inside),
    "misaligned": lambda shape: (shape, lambda inside: inside),
    "every second": lambda shape: (
        (*shape[:-1], 2 * shape[-1]) if shape else (),
        lambda inside: inside[..., ::2] if inside.ndim else inside,
    ),
    "backwards": lambda shape: (shape, lambda inside: inside[::-1] if inside.ndim else inside),
    "Fortran": lambda shape: (shape[::-1], lambda inside: inside.T),
    "a subclass": lambda shape: (shape, lambda inside: inside.view(Own)),
}


def _read_only(call: Call, out: list[Any], place: int) -> str:
    out[place] = out[place].view()
    out[place].flags.writeable = False
    return "TS404"


def _other_shape(call: Call, out: list[Any], place: int) -> str:
    out[place] = out[place][None]
    return "TS402"


def _other_type(call: Call, out: list[Any], place: int) -> str:
    out[place] = np.empty(out[place].shape, "m8[s]")
    return "TS403"


def _masked(call: Call, out: list[Any], place: int) -> str:
    out[place] = np.ma.array(out[place])
    return "TS403"


def _no_array(call: Call, out: list[Any], place: int) -> str:
    out[place] = None
    return "TS403"


def _too_few(call: Call, out: list[Any], place: int) -> str:
    del out[place]
    return "TS401"


def _of_the_data(call: Call, out: list[Any], place: int) -> str:
    if not call.data.flags.writeable or call.data.size == 0:
        return ""
    part = slices(call.data, call.axis, call.sizes)[place]
    if not call.keepdims:
        part = np.squeeze(part, call.axis)  # a view, even of one element
    out[place] = part.view(np.ndarray)
    return "TS405" if part.size else ""


def _twice(call: Call, out: list[Any], place: int) -> str:
    same = [i for i, other in enumerate(out) if i != place and other.shape == out[place].shape]
    if not same:
        return ""
    out[place] = out[same[0]]
    return "TS405" if out[place].size else ""


def _on_itself(call: Call, out: list[Any], place: int) -> str:
    buffer = out[place]
    if buffer.dtype.hasobject or buffer.size < 2:
        return ""
    out[place] = as_strided(np.empty(1, buffer.dtype), buffer.shape, (0,) * buffer.ndim)
    return "TS405"


SPOILED: dict[str, Callable[[Call, list[Any], int], str]] = {
    "another shape": _other_shape,
    "another type": _other_type,
    "masked": _masked,
    "no array": _no_array,
    "of the data": _of_the_data,
    "on itself": _on_itself,
    "read-only": _read_only,
    "too few": _too_few,
    "twice": _twice,
}
"""What makes buffers unfit, and the code that says so; none if they happen to be fit."""

SHARED = ts.BufferPool(8 << 20)
_kept: deque[tuple[list[Array], list[Array]]] = deque()


def check(call: Call) -> str:
    """Ask for a split, and compare; what came of it, in a word."""
    if native.kernel is not None:
        name, non_temporal_from, threads = call.kernel
        native.kernel.use(name)
        native.kernel.use_non_temporal_from(non_temporal_from)
        native.kernel.use_threads(threads)
    plain = call.data.view(np.ndarray)
    want = slices(plain, call.axis, call.sizes, call.keepdims)
    before = plain.tobytes()
    if call.place == "out":
        result = _into_buffers(call, want)
    elif call.place in ("pool", "own pool"):
        result = _from_a_pool(call, want)
    else:
        parts = ask(call, copy=call.place == "copy")
        assert_same([part.view(np.ndarray) for part in parts], want, call)
        if call.place == "copy":
            assert all(part.flags.c_contiguous and part.flags.writeable for part in parts)
            assert not any(np.may_share_memory(part, plain) for part in parts), call
        result = call.place
    assert plain.tobytes() == before, call
    return result


def _into_buffers(call: Call, want: list[Array]) -> str:
    rooms = [
        Room.like(part, call.buffers[number % len(call.buffers)])
        for number, part in enumerate(want)
    ]
    out: list[Any] = [room.buffer for room in rooms]
    code = SPOILED[call.spoiled[1]](call, out, call.spoiled[0]) if call.spoiled else ""
    if not code:
        parts = ask(call, out=out)
        assert all(part is buffer for part, buffer in zip(parts, out, strict=True))
        assert_same([part.view(np.ndarray) for part in parts], want, call)
        assert all(room.is_intact(part) for room, part in zip(rooms, want, strict=True)), call
        return "out"
    refused = ""
    try:
        ask(call, out=out)
    except ts.SplitError as error:
        refused = error.code
    assert refused == code, call
    assert all((room.raw == POISON).all() for room in rooms), call
    return code


def _from_a_pool(call: Call, want: list[Array]) -> str:
    pool = SHARED if call.place == "pool" else ts.BufferPool(1 << 20)
    parts = ask(call, out=pool)
    assert_same([part.view(np.ndarray) for part in parts], want, call)
    spans = sorted(np.lib.array_utils.byte_bounds(part) for part in parts if part.size)
    assert all(left[1] <= right[0] for left, right in pairwise(spans)), call
    _kept.append((parts, want if call.data.flags.writeable else [part.copy() for part in want]))
    pool.blocks.fill(POISON)  # what still shows in a part was handed out too early
    if len(_kept) > 8:
        old, expected = _kept.popleft()
        assert_same([part.view(np.ndarray) for part in old], expected, "a part that was kept")
    return call.place
