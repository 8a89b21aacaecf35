"""What shares memory, and which parts lie where one array would, by the address of each byte."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from tensorsplit.arrays import buffers
from tensorsplit.arrays.buffers import are_disjoint, strides_of_whole
from tensorsplit.arrays.pool import _size_class
from tensorsplit.core.errors import SplitError
from tensorsplit.core.plan import SplitPlan

Array = np.ndarray[Any, Any]
RANGES = [(start, start + size) for start in range(5) for size in (1, 2, 3)]


def test_nothing_that_is_written_meets_anything_else() -> None:
    random = np.random.default_rng(3)
    seen = Counter[bool]()
    for _ in range(3000):
        chosen = random.integers(0, len(RANGES), (2, 3))
        counts = random.integers(0, 4, 2)
        spread = [(11 * int(n), RANGES[i]) for n, i in enumerate(chosen.ravel())]
        near = random.integers(2) == 0
        ranges = [(a + (0 if near else by), b + (0 if near else by)) for by, (a, b) in spread]
        written, read = ranges[: counts[0]], ranges[3 : 3 + counts[1]]
        pairs = [*combinations(written, 2), *product(written, read)]
        meets = any(a < d and c < b for (a, b), (c, d) in pairs)
        assert are_disjoint(written, read) is not meets
        seen[meets] += 1
    assert min(seen.values()) > 300


def addresses(array: Array) -> Array:
    """The address of each element."""
    found = np.full(array.shape, array.__array_interface__["data"][0])
    for axis, (size, stride) in enumerate(zip(array.shape, array.strides, strict=True)):
        shape = [1] * array.ndim
        shape[axis] = size
        found += np.arange(size).reshape(shape) * stride
    return found


def octets(array: Array) -> list[int]:
    """The address of each byte."""
    starts = addresses(array).ravel()
    return (starts[:, None] + np.arange(array.itemsize)).ravel().tolist()


def views(seed: int) -> list[Array]:
    """Arrays of two bytes in one memory, of any strides, all within it."""
    random = np.random.default_rng(seed)
    memory = np.zeros(64, np.uint8)
    made = []
    for _ in range(60):
        shape = tuple(int(each) for each in random.integers(1, 4, random.integers(1, 3)))
        strides = tuple(int(each) for each in random.integers(-6, 7, len(shape)))
        low = sum(min(0, (n - 1) * stride) for n, stride in zip(shape, strides, strict=True))
        high = sum(max(0, (n - 1) * stride) for n, stride in zip(shape, strides, strict=True))
        start = int(random.integers(-low, 64 - 2 - high + 1))
        base = memory[start : start + 2].view(np.int16)
        made.append(as_strided(base, shape, strides))
    return made


@pytest.mark.parametrize("seed", range(4))
def test_an_element_on_another_one_is_found(seed: int) -> None:
    for array in views(seed):
        held = octets(array)
        shares = len(set(held)) < len(held)
        found = buffers._may_overlap_itself(array)
        assert found or not shares
        sizes = [size for size in array.shape if size > 1]
        if len(sizes) < 2:  # then it is exact
            assert found is shares


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_buffers_that_share_a_byte_are_found(
    seed: int, marked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffers, "_MAX_PAIRED", 1 if marked else 32)
    random = np.random.default_rng(seed)
    seen = Counter[bool]()
    for _ in range(150):
        memory = np.zeros((6, 8), np.int16)
        chosen = []
        for _ in range(int(random.integers(1, 5))):
            rows, columns = (
                slice(int(a), int(b) + 1, int(random.integers(1, 3)))
                for a, b in np.sort(random.integers(0, 6, (2, 2)), axis=1)
            )
            chosen.append(memory[rows, columns])
        counts = Counter(each for array in chosen for each in octets(array))
        shares = max(counts.values()) > 1
        seen[shares] += 1
        if shares:
            with pytest.raises(SplitError, match="TS405"):
                buffers._check_disjoint(chosen)
        else:
            buffers._check_disjoint(chosen)
    assert min(seen.values()) > 20


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "C": lambda x: x,
    "Fortran": np.asfortranarray,
    "turned": lambda x: x[::-1, :, ::-1],
    "every other": lambda x: x[:, ::2],
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("sizes", [(2, 3, 1), (0, 6), (6, 0, 0), (1, 0, 5), (6,), (0, 0, 6)])
def test_parts_lie_where_those_of_one_array_would(
    sizes: tuple[int, ...], axis: int, layout: str
) -> None:
    whole = np.moveaxis(np.zeros((6, 4, 4), np.int32), 0, axis)
    whole = LAYOUTS[layout](np.ascontiguousarray(whole))
    if whole.shape[axis] != 6:
        whole = np.zeros((6, 6, 6), np.int32)
    plan = SplitPlan("", whole.shape, axis, sizes)
    parts = np.split(whole, np.cumsum(sizes)[:-1], axis)
    others = [*parts[1:], parts[0]]
    copies = [part.copy() for part in parts]
    for made in (parts, others, copies, [*parts[:-1], copies[-1]]):
        if [part.shape for part in made] != [part.shape for part in parts]:
            continue
        places = [part.__array_interface__["data"][0] for part in made]
        found = strides_of_whole(plan, [part.strides for part in made], places)
        filled = [number for number, size in enumerate(sizes) if size]
        if made is parts:
            assert found is not None
        if found is None:
            assert made is not parts
            assert len(filled) > 1
            continue
        first, strides = found
        assert first == filled[0]
        as_one = as_strided(made[first], whole.shape, strides)
        expected = np.concatenate([addresses(part) for part in made], axis)
        assert np.array_equal(addresses(as_one), expected)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_parts_without_the_axis_lie_where_those_of_one_array_would(count: int, axis: int) -> None:
    shape = [4, 5]
    shape.insert(axis, count)
    whole = np.zeros(shape, np.int16)
    plan = SplitPlan("", whole.shape, axis, (1,) * count, keepdims=False)
    parts = [whole[(slice(None),) * axis + (number,)] for number in range(count)]
    for step in (1, -1):
        made = parts[::step]
        places = [part.__array_interface__["data"][0] for part in made]
        found = strides_of_whole(plan, [part.strides for part in made], places)
        assert found is not None
        as_one = as_strided(made[found[0]], whole.shape, found[1])
        assert np.array_equal(addresses(as_one), np.stack([*map(addresses, made)], axis))
    if count == 3:
        made = [parts[0], parts[2], parts[1]]
        places = [part.__array_interface__["data"][0] for part in made]
        assert strides_of_whole(plan, [part.strides for part in made], places) is None


def test_a_block_is_aligned_and_an_eighth_larger_at_most() -> None:
    held = [_size_class(size) for size in range(1, 1 << 13)]
    for size, block in enumerate(held, 1):
        assert block % 64 == 0
        assert size <= block < size + max(64, size / 8)
    assert held == sorted(held)
    assert len(set(held)) <= 16 + 8 * 4
