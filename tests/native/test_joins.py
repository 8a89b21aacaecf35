"""Parts joined in an array: every byte, and none around it; what needs a closer look is left."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tensorsplit import native
from tests.interpreters import printed
from tests.native.splits import DTYPES, Guarded
from tests.oracle import assert_same, slices

SHAPES: list[tuple[tuple[int, ...], int, tuple[int, ...]]] = [
    ((6, 400), 1, (100, 300)),
    ((3, 5, 300), 2, (1, 64, 0, 235)),
    ((4, 70, 31), 1, (33, 1, 36)),
    ((700, 9), 0, (1, 650, 49)),
    ((200_003,), 0, (70_001, 1, 130_001)),
    ((1, 2, 1000, 2, 64), 3, (1, 1)),
    ((40, 3 * 4100), 1, (4100,) * 3),
    ((0, 400), 1, (100, 300)),
    ((9, 0), 1, (0, 0)),
]


def data(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return rng.integers(1, 256, size, np.uint8).view(dtype).reshape(shape)


def poisoned(want: np.ndarray) -> np.ndarray:
    """An array of which every byte is wrong."""
    return (~np.frombuffer(want.tobytes(), np.uint8)).view(want.dtype).reshape(want.shape)


def joined(
    kernel: Any, whole: object, axis: Any, parts: object, *, keepdims: object = True
) -> bool:
    """Join parts in an array; False where they need a closer look."""
    answer = kernel.join(parts, axis, keepdims, None, whole)
    assert answer is None or answer is whole
    return answer is not None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "axis", "sizes"), SHAPES)
def test_every_byte_is_joined(
    kernel: Any,
    rng: np.random.Generator,
    dtype: str,
    shape: tuple[int, ...],
    axis: int,
    sizes: tuple[int, ...],
) -> None:
    want = data(dtype, shape, rng)
    for keepdims in {True, set(sizes) != {1}}:
        parts = [part.copy() for part in slices(want, axis, sizes, keepdims)]
        whole = poisoned(want)
        assert joined(kernel, whole, axis, parts, keepdims=keepdims)
        assert whole.tobytes() == want.tobytes()


NARROW: list[tuple[int, ...]] = [
    *((width,) * count for width in (1, 2, 4, 8, 16) for count in (*range(2, 10), 15, 16, 17, 33)),
    *((1, 3), (3, 1), (1, 2, 1), (2, 0, 6), (1, 1, 5), (4, 1, 1, 1, 1), (7, 9, 3), (20, 17, 31)),
    (*[1] * 20, 40, *[2] * 9, 3, *[8] * 5),
    (*[4] * 300, 2),
    (24,) * 256,
]
"""How many bytes of each part a row of the whole has."""


def _few(sizes: tuple[int, ...]) -> str:
    return f"{len(sizes)} parts of {min(sizes)} to {max(sizes)}"


@pytest.mark.parametrize("sizes", NARROW, ids=_few)
def test_narrow_strips(kernel: Any, rng: np.random.Generator, sizes: tuple[int, ...]) -> None:
    for rows, shift in ((1, 0), (31, 1), (66, 13), (1000, 0), (2111, 3)):
        want = data("u1", (rows, sum(sizes)), rng)
        whole = Guarded.like(want, shift)
        parts = [part.copy() for part in slices(want, 1, sizes)]
        assert joined(kernel, whole.buffer, 1, parts)
        assert whole.buffer.tobytes() == want.tobytes()
        assert whole.is_intact()


@pytest.mark.parametrize("sizes", NARROW, ids=_few)
def test_narrow_strips_of_wider_rows(
    kernel: Any, rng: np.random.Generator, sizes: tuple[int, ...]
) -> None:
    want, around = (data("u1", (700, sum(sizes) + 9), rng) for _ in range(2))
    want[:, :3], want[:, -6:] = around[:, :3], around[:, -6:]
    parts = slices(want[:, 3:-6], 1, sizes)
    assert joined(kernel, around[:, 3:-6], 1, parts)
    assert around.tobytes() == want.tobytes()


def test_an_axis_that_the_parts_have_not(kernel: Any, rng: np.random.Generator) -> None:
    want = data("f4", (5, 3, 100), rng)
    whole = poisoned(want)
    assert joined(kernel, whole, 1, [want[:, i].copy() for i in range(3)], keepdims=False)
    assert whole.tobytes() == want.tobytes()


LAYOUTS: dict[str, Any] = {
    "views of the whole": lambda part: part,
    "backwards": lambda part: part[::-1].copy()[::-1],
    "apart": lambda part: np.repeat(part, 3, axis=0)[::3],
    "in another order": lambda part: np.swapaxes(np.swapaxes(part, 0, 1).copy(), 0, 1),
    "read-only": lambda part: np.frombuffer(part.tobytes(), part.dtype).reshape(part.shape),
    "one for all": lambda part: np.broadcast_to(part[:1], part.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_parts_lie_as_they_like(
    kernel: Any, rng: np.random.Generator, dtype: str, layout: Any
) -> None:
    whole = data(dtype, (7, 5, 230), rng)
    parts = [layout(part) for part in slices(whole, 2, (70, 160))]
    want = np.concatenate(parts, 2)
    out = poisoned(want)
    assert joined(kernel, out, 2, parts)
    assert out.tobytes() == want.tobytes()


PLANES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "in one piece": np.copy,
    "rows with gaps": lambda part: np.insert(part, 0, 0, axis=2)[:, :, 1:],
    "planes with gaps": lambda part: np.insert(part, 6, 0, axis=1)[:, :6],
    "planes in the rows": lambda part: part.transpose(1, 0, 2).copy().transpose(1, 0, 2),
}
"""How a part of 8 planes of 6 rows lies: how many of its rows are a stride apart differs."""


@pytest.mark.parametrize("layouts", [*product(PLANES, repeat=2)], ids=", ".join)
@pytest.mark.parametrize("sizes", [(3, 2), (400, 300), (3, 300)])
def test_rows_that_each_part_has_elsewhere(
    kernel: Any, rng: np.random.Generator, layouts: tuple[str, str], sizes: tuple[int, int]
) -> None:
    want = data("u1", (8, 6, sum(sizes)), rng)
    parts = [
        PLANES[layout](part) for layout, part in zip(layouts, slices(want, 2, sizes), strict=True)
    ]
    whole = poisoned(want)
    assert joined(kernel, whole, 2, parts)
    assert whole.tobytes() == want.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_whole_with_gaps_keeps_them(kernel: Any, rng: np.random.Generator, dtype: str) -> None:
    want, around = data(dtype, (30, 200), rng), data(dtype, (34, 210), rng)
    before = around.copy()
    inside = around[2:32, 3:203]
    assert joined(kernel, inside, 1, [want[:, :90], want[:, 90:]])
    before[2:32, 3:203] = want
    assert around.tobytes() == before.tobytes()


def not_plain() -> dict[str, tuple[Any, Any]]:
    parts = [np.full((4, 100), 1, np.int32), np.full((4, 50), 2, np.int32)]
    whole = np.full((4, 150), 77, np.int32)
    read_only = whole.copy()
    read_only.flags.writeable = False
    wide = np.full((4, 300), 77, np.int32)
    repeated = np.lib.stride_tricks.as_strided(whole.copy(), (4, 150), (0, 4))
    return {
        "too few": (whole, parts[:1]),
        "too many": (whole, [*parts, parts[0][:, :1]]),
        "not an array": (whole, [parts[0], parts[1].tolist()]),
        "none": (whole, [parts[0], None]),
        "another shape": (whole, [parts[0], parts[1][:3]]),
        "another rank": (whole, [parts[0], parts[1][None]]),
        "another type": (whole, [parts[0], parts[1].astype(np.uint32)]),
        "another byte order": (whole, [parts[0], parts[1].astype(">i4")]),
        "a subclass": (whole, [parts[0], np.ma.array(parts[1])]),
        "elements apart": (whole, [parts[0], np.repeat(parts[1], 2, 1)[:, ::2]]),
        "Fortran order": (np.asfortranarray(whole), parts),
        "a read-only whole": (read_only, parts),
        "a whole with elements apart": (wide[:, ::2], parts),
        "a whole backwards": (whole.copy()[::-1], parts),
        "a whole on itself": (repeated, parts),
        "a whole whose rows overlap": (
            np.lib.stride_tricks.as_strided(wide.copy(), (4, 150), (149 * 4, 4)),
            parts,
        ),
        "a part of the whole": (whole, [whole[:, :100], parts[1]]),
        "a part between its rows": (wide[:, :150], [parts[0], wide[:, 150:200]]),
        "objects": (whole.astype(object), [part.astype(object) for part in parts]),
    }


@pytest.mark.parametrize("name", not_plain())
def test_what_is_not_plainly_fine_is_left_as_it_is(kernel: Any, name: str) -> None:
    whole, parts = not_plain()[name]
    before = whole.tobytes()
    assert joined(kernel, whole, 1, parts) is False
    assert whole.tobytes() == before


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_the_parts_say_their_lengths(
    kernel: Any, rng: np.random.Generator, dtype: str, axis: int
) -> None:
    want = data(dtype, (9, 8, 7), rng)
    whole = Guarded.like(want, 3)
    lengths = (3, 0, want.shape[axis] - 3)
    parts = [part.copy() for part in slices(want, axis % 3, lengths)]
    assert joined(kernel, whole.buffer, axis, parts)
    assert whole.buffer.tobytes() == want.tobytes()
    assert whole.is_intact()


@pytest.mark.parametrize("lengths", [(), (4,), (2, 1), (2, 3), (4, 1), (5,)])
def test_lengths_that_are_not_those_of_the_whole(kernel: Any, lengths: tuple[int, ...]) -> None:
    whole = np.full((2, 4), 77, np.int32)
    parts = [np.ones((2, length), np.int32) for length in lengths]
    assert joined(kernel, whole, 1, parts) is (lengths == (4,))
    assert (whole == (1 if lengths == (4,) else 77)).all()


HUGE = 1 << 80


@pytest.mark.parametrize(
    ("axis", "keepdims"),
    [
        *((axis, True) for axis in (2, -3, HUGE, -HUGE, True, 1.0, "1", None, np.int64(1))),
        *((1, flag) for flag in (2, -1, HUGE, 1.0, "1", None, np.int64(1), np.True_)),
    ],
)
def test_an_axis_or_a_flag_that_needs_a_closer_look(
    kernel: Any, axis: object, keepdims: object
) -> None:
    whole, parts = np.full((2, 4), 77, np.int32), [np.ones((2, 2), np.int32)] * 2
    assert joined(kernel, whole, axis, parts, keepdims=keepdims) is False
    assert (whole == 77).all()


@pytest.mark.parametrize("copy", [False, 1, 0, "", np.True_])
def test_a_copy_that_needs_a_closer_look(kernel: Any, copy: object) -> None:
    parts = [np.ones((2, 2), np.int32)] * 2
    assert kernel.join(parts, 1, True, copy, None) is None


def test_parts_that_need_a_closer_look(kernel: Any) -> None:
    whole, parts = np.full((2, 4), 77, np.int32), [np.ones((2, 2), np.int32)] * 2

    class Parts(list[Any]):
        """May answer anything."""

    for given in (Parts(parts), iter(parts), {"a": parts[0], "b": parts[1]}, np.array(parts), None):
        assert joined(kernel, whole, 1, given) is False
    assert joined(kernel, whole.tolist(), 1, parts) is False
    assert joined(kernel, np.array(3), 0, []) is False
    assert joined(kernel, np.empty((2, 0), np.int32), 1, []) is False
    assert joined(kernel, whole, 1, [np.array(7, np.int32), *parts]) is False
    assert (whole == 77).all()
    assert joined(kernel, whole, 1, tuple(parts))


def test_what_is_new_is_in_c_order_and_what_is_a_view_is_not_copied(
    kernel: Any, rng: np.random.Generator
) -> None:
    x = data("i2", (4, 6, 5), rng)
    views = slices(x, 1, (1, 0, 5))
    view = kernel.join(views, 1, True, None, None)
    assert same_place(view, x)
    assert view.base is x.base or view.base is x
    for parts, copy in ((views, True), ([part.copy() for part in views], None)):
        new = kernel.join(parts, -2, 1, copy, None)
        assert new.flags.c_contiguous
        assert new.flags.owndata
        assert_same([new], [x])


def same_place(view: np.ndarray, x: np.ndarray) -> bool:
    """Whether two arrays have the same elements at the same places."""
    return view.__array_interface__ == x.__array_interface__ and view.strides == x.strides


CUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "in C order": np.copy,
    "backwards": lambda x: x[::-1, ::-1, ::-1],
    "transposed": lambda x: x.transpose(2, 0, 1).copy().transpose(1, 2, 0),
    "apart": lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, 1::3],
}


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("writable", [True, False])
def test_views_are_joined_where_they_lie(
    kernel: Any, rng: np.random.Generator, cut: Any, axis: int, writable: bool
) -> None:
    x = cut(data("f4", (4, 6, 5), rng))[...]
    x.flags.writeable = writable
    length = x.shape[axis]
    for sizes, keepdims in (((1,) * length, 0), ((1,) * length, 1), ((1, 2, length - 3), 1)):
        view = kernel.join(slices(x, axis, sizes, bool(keepdims)), axis, keepdims, None, None)
        assert same_place(view, x)
        assert view.flags.writeable == writable


def not_views() -> dict[str, list[np.ndarray]]:
    x = np.arange(24, dtype=np.int32).reshape(4, 6)[...]
    left, right = x[:, :3], x[:, 3:]
    other = x.copy()[...]
    return {
        "in another order": [right, left],
        "twice": [left, left],
        "with a gap": [left, x[:, 4:]],
        "with every other": [x[:, ::2], x[:, 1::2]],
        "of another array": [left, other[:, 3:]],
        "a copy": [left, right.copy()],
        "copies": [left.copy(), right.copy()],
        "in other steps": [left, other.T.copy().T[:, 3:]],
        "writable, and the same again": [
            np.lib.stride_tricks.as_strided(x, (4, 2), (24, 0)) for _ in range(2)
        ],
    }


@pytest.mark.parametrize("name", not_views())
def test_what_lies_elsewhere_is_copied(kernel: Any, name: str) -> None:
    parts = not_views()[name]
    whole = kernel.join(parts, 1, True, None, None)
    if whole is None:  # NumPy has to copy elements that lie apart
        whole = ts.join(parts, axis=1)
    assert_same([whole], [np.concatenate(parts, 1)])
    assert not any(np.shares_memory(whole, part) for part in parts)


def test_views_of_another_shape_or_type_are_no_parts(kernel: Any) -> None:
    x = np.arange(24, dtype=np.int32).reshape(4, 6)[...]
    left, right = x[:, :3], x[:, 3:]
    for other in (
        right[:3],
        right[:, :, None],
        right.view(np.uint32),
        right.view(">i4"),
        x[:, 3:3].reshape(0, 4)[:, :0],
        right[:0, :0],
    ):
        for copy in (None, True):
            assert kernel.join([left, other], 1, True, copy, None) is None


@pytest.mark.parametrize("dtype", ["O", "U3", "i4,O", "i4,f4", "M8[s]"])
def test_elements_with_references_need_a_closer_look(kernel: Any, dtype: str) -> None:
    x = np.zeros((4, 6), dtype)
    for parts in (slices(x, 1, (2, 4)), [part.copy() for part in slices(x, 1, (2, 4))]):
        whole = kernel.join(parts, 1, True, None, None)
        assert (whole is None) == x.dtype.hasobject
        assert_same([ts.join(parts, axis=1)], [x])


def test_an_empty_whole_needs_a_closer_look(kernel: Any) -> None:
    x = np.zeros((0, 6), np.int8)
    parts = slices(x, 1, (2, 4))
    assert kernel.join(parts, 1, True, None, None) is None
    assert kernel.join(parts, 1, True, True, None).shape == (0, 6)


def test_more_dimensions_than_an_array_has_need_a_closer_look(kernel: Any) -> None:
    most = np.zeros((1,) * 64)
    assert kernel.join([most], 0, False, None, None) is None
    assert kernel.join([most], 63, True, None, None).shape == most.shape


def test_more_elements_than_there_can_be(kernel: Any) -> None:
    wide = np.broadcast_to(np.uint8(1), (1 << 62,))
    assert kernel.join([wide] * 3, 0, True, True, None) is None
    with pytest.raises((MemoryError, ValueError)):
        kernel.join([wide], 0, True, True, None)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_many_bytes_by_several_threads(
    kernel: Any, restore_threads: None, rng: np.random.Generator, threads: int
) -> None:
    kernel.use_threads(threads)
    want = data("f4", (900, 1001), rng)
    for _ in range(6):
        whole = poisoned(want)
        parts = slices(want, 1, (500, 17, 484))
        assert joined(kernel, whole, 1, parts)
        assert whole.tobytes() == want.tobytes()


@pytest.mark.parametrize("lengths", [[100, 28], [1] * 128])
def test_join_writes_wide_and_narrow_strips_to_its_buffer(
    rng: np.random.Generator, lengths: list[int]
) -> None:
    want = data("f4", (50, 128), rng)
    plan = ts.plan("onnx.Split-18", want.shape, lengths, axis=1)
    whole = poisoned(want)
    assert plan.join(plan(want, copy=True), out=whole) is whole
    assert_same([whole, plan.join(plan(want, copy=True))], [want, want])


@pytest.mark.skipif(native.kernel is None, reason="copies go through NumPy here")
@pytest.mark.skipif(sys.platform != "linux", reason="pages are guarded as Linux does it")
def test_no_byte_beyond_an_array_is_touched() -> None:
    """Every array ends, or begins, where memory does."""
    text = printed(
        """
import ctypes, itertools, mmap
import numpy as np
from tensorsplit import native

kernel, PAGE, kept = native.kernel, mmap.PAGESIZE, []
libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

def room(size, at_end):
    "So many bytes between pages that nobody may touch."
    pages = -(-size // PAGE) * PAGE
    memory = mmap.mmap(-1, pages + 2 * PAGE)
    kept.append(memory)
    begin = np.frombuffer(memory, np.uint8).ctypes.data
    for page in (begin, begin + PAGE + pages):
        assert libc.mprotect(page, PAGE, 0) == 0
    return np.frombuffer(memory, np.uint8, size, PAGE + (pages - size if at_end else 0))

rng = np.random.default_rng(3)
ways = itertools.product(("", "baseline"), (1, 1 << 62), (1, 3))
for name, non_temporal, threads in ways:
    kernel.use(name), kernel.use_non_temporal_from(non_temporal), kernel.use_threads(threads)
    for rows, sizes in ((1, (70_000, 3, 9001)), (77, (65, 67, 1, 129)), (31, (1023, 64)),
                        (300, (2000, 1100)), (5, (300_001, 64)),
                        (999, (1, 1, 1)), (500, (3, 1)), (130, (2,) * 11), (77, (7, 9, 3)),
                        (97, (8,) * 5), (65, (1,) * 20)):
        for at_end in (False, True):
            want = rng.integers(1, 256, (rows, sum(sizes)), np.uint8)
            parts, begin = [], 0
            for size in sizes:
                part = room(rows * size, at_end).reshape(rows, size)
                part[...] = want[:, begin : begin + size]
                parts.append(part)
                begin += size
            whole = room(want.size, at_end).reshape(want.shape)
            whole[...] = ~want
            assert kernel.join(parts, 1, True, None, whole) is whole
            assert (whole == want).all()
print("fine")
"""
    )
    assert text == "fine\n"
