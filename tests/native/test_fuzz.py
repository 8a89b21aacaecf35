"""Whatever the layout and the lengths, parts are those of plain slicing to the bit, and back."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

import tensorsplit as ts
from tests.native.conftest import WAYS, set_to
from tests.native.splits import LINE, Case, Guarded, cases, prepared, strided
from tests.oracle import assert_same

pytestmark = pytest.mark.thorough


@settings(max_examples=400, suppress_health_check=list(HealthCheck))
@given(case=cases(), shift=st.integers(0, 33))
def test_any_split(case: Case, shift: int) -> None:
    """One case goes every way: making cases takes longer than trying them."""
    for way in WAYS:
        with set_to(way) as kernel:
            check_copies(kernel, case)
            check_copies_in_memory_that_was_used_before(kernel, case)
            check_copies_into_buffers_at_any_address(kernel, case, shift)
            check_views_are_what_slicing_gives(kernel, case)
            check_the_parts_are_joined_again(kernel, case, shift)


def check_copies(kernel: Any, case: Case) -> None:
    parts = kernel.copies(*case.arguments)
    assert_same(parts, case.parts, case)
    for part in parts:
        assert part.flags.c_contiguous
        assert part.flags.owndata
        assert part.flags.writeable


def check_copies_in_memory_that_was_used_before(kernel: Any, case: Case) -> None:
    blocks = kernel.Blocks(1 << 20)
    for _ in range(2):
        parts = blocks.copies(*case.arguments)
        assert_same(parts, case.parts, case)
        assert blocks.in_use_bytes >= case.array.nbytes
        assert all(part.flags.c_contiguous and part.flags.writeable for part in parts)
        del parts
        blocks.fill(0xA5)
    assert blocks.in_use_bytes == 0


def check_copies_into_buffers_at_any_address(kernel: Any, case: Case, shift: int) -> None:
    guarded = [Guarded.like(part, shift) for part in case.parts]
    buffers = [each.buffer for each in guarded]
    before = case.array.tobytes()
    assert kernel.copy_into(*case.arguments, buffers)
    assert_same(buffers, case.parts, case)
    assert all(each.is_intact() for each in guarded)
    assert case.array.tobytes() == before


def check_views_are_what_slicing_gives(kernel: Any, case: Case) -> None:
    start, head = 0, (slice(None),) * case.axis
    views = prepared(kernel, *case.arguments)(case.array)
    for view, size in zip(views, case.sizes, strict=True):
        index: Any = slice(start, start + size) if case.keepdims else start
        part = case.array[(*head, index, ...)]
        interface = part.__array_interface__
        if part.size == 0:  # none of its addresses is used, so none is computed
            interface = {**interface, "data": case.array.__array_interface__["data"]}
        assert view.__array_interface__ == interface
        assert view.strides == part.strides
        assert view.flags.num == part.flags.num
        assert view.base is part.base
        start += size


def check_the_parts_are_joined_again(kernel: Any, case: Case, shift: int) -> None:
    want = np.ascontiguousarray(case.array)
    for parts in ([part.copy() for part in case.parts], case.parts):
        whole = Guarded.like(want, shift)
        before = whole.buffer.tobytes()
        answer = kernel.join(parts, case.axis, case.keepdims, None, whole.buffer)
        done = answer is whole.buffer
        assert done or answer is None
        assert done or not parts or not all(part.flags.c_contiguous for part in parts)
        assert whole.buffer.tobytes() == (want.tobytes() if done else before)
        assert whole.is_intact()


@pytest.mark.parametrize("step", [1, -1], ids=["forwards", "backwards"])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 8, 13, 33])
@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 8, 12, 16, 20, 64, 192])
def test_columns_whose_lines_begin_with_the_same_row(
    kernel: Any, width: int, count: int, step: int
) -> None:
    for rows, place in ((63, 0), (64, 0), (131, 0), (515, width * 3 % LINE)):
        array = strided(f"V{width}", (rows, count), (step, 1), (0, 1), 0)
        case = Case(array, 1, (1,) * count, keepdims=True)
        guarded = [Guarded.at_line(part, place) for part in case.parts]
        buffers = [each.buffer for each in guarded]
        assert kernel.copy_into(*case.arguments, buffers)
        assert_same(buffers, case.parts, (rows, place))
        assert all(each.is_intact() for each in guarded)


@pytest.mark.parametrize("stride", [-17, -16, -3, -2, -1, 2, 3, 4, 5, 8, 16, 17])
@pytest.mark.parametrize("dtype", ["u1", "u2", "V3", "f4", "f8"])
def test_lines_of_elements_apart(kernel: Any, dtype: str, stride: int) -> None:
    for count in (33, 64, 1023, 20_000):
        array = strided(dtype, (count,), (stride,), (0,), 1)
        case = Case(array, 0, (count - 32, 32), keepdims=True)
        guarded = [Guarded.like(part, 1) for part in case.parts]
        buffers = [each.buffer for each in guarded]
        assert kernel.copy_into(*case.arguments, buffers)
        assert_same(buffers, case.parts, count)
        assert all(each.is_intact() for each in guarded)


LARGE = {
    "wide rows": ("f4", (64, 9, 1024), (0, 1, 2), 2),
    "wide rows, the axis in the middle": ("f4", (16, 9, 4096), (0, 1, 2), 1),
    "few very long rows": ("f8", (3, 1 << 17), (0, 1), 1),
    "a flat array": ("u2", (1 << 21,), (0,), 0),
    "pixels": ("u1", (700, 1001, 3), (0, 1, 2), 2),
    "planes of pixels": ("u1", (3, 700, 1001), (1, 2, 0), 0),
    "pixels of planes": ("u1", (700, 1001, 3), (2, 0, 1), 2),
    "pairs": ("u2", (1 << 20, 2), (0, 1), 1),
    "narrow columns": ("f4", (20_011, 37), (0, 1), 1),
    "columns of bytes": ("u1", (30_011, 83), (0, 1), 1),
    "columns of doubles": ("f8", (50_021, 5), (0, 1), 1),
    "odd elements": ("V12", (20_011, 11), (0, 1), 1),
    "transposed": ("f4", (1023, 777), (1, 0), 0),
    "transposed, the other axis": ("f8", (1023, 777), (1, 0), 1),
    "images by channel": ("f4", (7, 5, 211, 97), (0, 2, 3, 1), 1),
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("dtype", "shape", "order", "axis"), LARGE.values(), ids=LARGE)
@pytest.mark.parametrize("step", [1, 2, -1], ids=["dense", "every second", "reversed"])
def test_what_threads_share(
    kernel: Any,
    dtype: str,
    shape: tuple[int, ...],
    order: tuple[int, ...],
    axis: int,
    step: int,
    threads: int,
    restore_threads: None,
) -> None:
    kernel.use_threads(threads)
    array = strided(dtype, shape, (step,) * len(shape), order, 1)
    extent = shape[axis]
    some = min(extent, 5)
    for sizes in ((1,) * some + (extent - some,), (extent // 3, extent - extent // 3)):
        case = Case(array, axis, sizes, True)
        guarded = [Guarded.like(part, 5) for part in case.parts]
        assert kernel.copy_into(*case.arguments, [each.buffer for each in guarded])
        assert_same([each.buffer for each in guarded], case.parts, sizes)
        assert all(each.is_intact() for each in guarded)


@pytest.mark.parametrize("rank", [32, 33, 64])
def test_as_many_dimensions_as_numpy_has(kernel: Any, rank: int) -> None:
    shape = (*(2 if i % 5 == 0 else 1 for i in range(rank - 1)), 3)
    array = strided("u2", shape, (2,) * 3 + (1,) * (rank - 3), tuple(reversed(range(rank))), 0)
    for axis in (0, rank - 1):
        case = Case(array, axis, (1,) * shape[axis], keepdims=False)
        for copy, part in zip(kernel.copies(*case.arguments), case.parts, strict=True):
            assert copy.shape == part.shape
            assert (copy == part).all()  # `tobytes` has fewer dimensions in older NumPys


def test_many_parts(kernel: Any) -> None:
    array = strided("f4", (300, 5000), (1, 1), (0, 1), 0)
    case = Case(array, 1, (1,) * 5000, keepdims=False)
    assert_same(kernel.copies(*case.arguments), case.parts)


@pytest.mark.parametrize("stride", [sys.maxsize, -sys.maxsize - 1, 1 << 62, -(1 << 61)])
@pytest.mark.parametrize("shape", [(3, 4, 0), (1 << 40, 0), (0, 1 << 40), (1, 1, 5), (1, 0, 1)])
def test_addresses_that_are_not_used(kernel: Any, shape: tuple[int, ...], stride: int) -> None:
    strides = tuple(4 if extent == 5 else stride for extent in shape)
    array = as_strided(np.arange(5, dtype=np.int32), shape, strides)
    address = array.__array_interface__["data"]
    for axis, extent in enumerate(shape):
        sizes = (extent // 2, 0, extent - extent // 2)
        views = prepared(kernel, array, axis, sizes, True)(array)
        assert all(view.__array_interface__["data"] == address for view in views if not view.size)
        out = [np.empty(view.shape, array.dtype) for view in views]
        assert kernel.copy_into(array, axis, sizes, True, out)
        parts = kernel.copies(array, axis, sizes, True)
        pooled = kernel.Blocks(0).copies(array, axis, sizes, True)
        for number, size in enumerate(sizes):
            shape_of_part = (*shape[:axis], size, *shape[axis + 1 :])
            for got in (views, out, parts, pooled):
                assert got[number].shape == shape_of_part
                want = [0, 1, 2, 3, 4] if shape_of_part == (1, 1, 5) else None
                assert want is None or got[number].ravel().tolist() == want
        overlapping = [as_strided(array, view.shape, strides) for view in views]
        kernel.copy_into(array, axis, sizes, True, overlapping)


def test_one_element_in_all_places(kernel: Any) -> None:
    array = np.broadcast_to(np.float32(7), (300, 400, 5))
    case = Case(array, 1, (100, 300), keepdims=True)
    assert_same(kernel.copies(*case.arguments), case.parts)


@pytest.mark.parametrize("rows", [2, 3, 17, 70])
@pytest.mark.parametrize("steps", [(1, -1), (2, -1), (-1, -1), (1, 2)])
@pytest.mark.parametrize("dtype", ["u1", "u2", "V3", "f4", "f8", "c16"])
def test_rows_that_lie_between_those_of_other_columns(
    kernel: Any, dtype: str, steps: tuple[int, int], rows: int
) -> None:
    array = strided(dtype, (3, rows), steps, (0, 1), 0).T
    case = Case(array, 1, (1, 1, 1), keepdims=True)
    assert_same(kernel.copies(*case.arguments), case.parts, case)


def test_strides_that_nothing_is_read_by_may_be_of_any_size() -> None:
    """A sanitizer sees where their products overflow."""
    torch = pytest.importorskip("torch")
    far = 1 << 62
    for rows in (0, 1):
        x = torch.rand(4 * rows).as_strided((rows, 4), (far, 1))
        want = [x[:, :1], x[:, 1:]]
        for out in (None, [torch.empty(rows, 1), torch.empty(rows, 3)]):
            parts = ts.split(x, [1, 3], axis=1, copy=out is None, out=out)
            assert all(map(torch.equal, parts, want))
    array = as_strided(np.empty(0), (0, 1 << 40, 4), (far, 1 << 40, 8))
    pieces = ts.split(array, [1, 3], axis=2, copy=True)
    assert [part.shape for part in pieces] == [(0, 1 << 40, 1), (0, 1 << 40, 3)]
    assert ts.join(pieces, axis=2, out=array) is array
