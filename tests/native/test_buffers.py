"""The quick look at `out`: whatever is not plainly fine is left, untouched, to the thorough one."""

from __future__ import annotations

import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.oracle import DTYPES, assert_same, random_array, slices

DATA = np.arange(1, 25, dtype=np.int32).reshape(6, 4)


def buffer(*shape: int, dtype: Any = np.int32) -> np.ndarray:
    return np.full(shape, 77, dtype)


def read_only(*shape: int) -> np.ndarray:
    array = buffer(*shape)
    array.flags.writeable = False
    return array


def overlapping() -> list[np.ndarray]:
    whole = buffer(8, 4)
    return [whole[:2], whole[1:5]]


NOT_PLAIN: dict[str, Any] = {
    "too few": [buffer(2, 4)],
    "too many": [buffer(2, 4), buffer(4, 4), buffer(0, 4)],
    "none": None,
    "no list": iter([buffer(2, 4), buffer(4, 4)]),
    "a dictionary": {0: buffer(2, 4), 1: buffer(4, 4)},
    "not an array": [buffer(2, 4), [[0] * 4] * 4],
    "a null": [buffer(2, 4), None],
    "another shape": [buffer(2, 4), buffer(4, 3)],
    "another rank": [buffer(2, 4), buffer(4, 4, 1)],
    "another type": [buffer(2, 4), buffer(4, 4, dtype=np.uint32)],
    "another byte order": [buffer(2, 4), buffer(4, 4, dtype=">i4")],
    "the same size": [buffer(2, 4), buffer(4, 4, dtype=np.float32)],
    "read-only": [buffer(2, 4), read_only(4, 4)],
    "Fortran order": [buffer(2, 4), np.asfortranarray(buffer(4, 4))],
    "strided": [buffer(2, 4), buffer(8, 4)[::2]],
    "broadcast": [buffer(2, 4), np.lib.stride_tricks.as_strided(buffer(4), (4, 4), (0, 4))],
    "overlapping": overlapping(),
    "the same twice": [DATA[:2].copy()] * 2,
    "a subclass": [buffer(2, 4), np.ma.array(buffer(4, 4))],
    "a matrix": [buffer(2, 4).view(np.matrix), buffer(4, 4)],
}


@pytest.mark.parametrize("out", NOT_PLAIN.values(), ids=NOT_PLAIN)
def test_what_is_not_plainly_fine(kernel: Any, out: Any) -> None:
    arrays = [each for each in out or () if isinstance(each, np.ndarray)]
    before = [array.tobytes() for array in arrays]
    assert kernel.copy_into(DATA, 0, (2, 4), True, out) is False
    assert [array.tobytes() for array in arrays] == before


@pytest.mark.parametrize("start", [-8, -4, -1, 0, 3, 23, 24])
def test_memory_shared_with_the_data(kernel: Any, start: int) -> None:
    raw = np.arange(100, dtype=np.uint8)
    data = raw[40:64]
    other = raw[40 + start : 52 + start]
    before = raw.tobytes()
    fine = start + 12 <= 0 or start >= 24
    assert kernel.copy_into(data, 0, (12, 12), True, [np.zeros(12, np.uint8), other]) is fine
    if not fine:
        assert raw.tobytes() == before


def test_memory_between_the_elements_of_the_data(kernel: Any) -> None:
    raw = np.zeros(64, np.uint8)
    assert not kernel.copy_into(raw[::-2], 0, (32,), True, [raw[1:33]])


def test_empty_buffers_share_nothing(kernel: Any) -> None:
    empty = buffer(0, 4)
    out = [empty, buffer(6, 4), empty]
    assert kernel.copy_into(DATA, 0, (0, 6, 0), True, out)
    assert_same(out, slices(DATA, 0, (0, 6, 0)))


def test_a_tuple_will_do(kernel: Any) -> None:
    out = (buffer(2, 4), buffer(4, 4))
    assert kernel.copy_into(DATA, 0, (2, 4), True, out)
    assert_same(list(out), slices(DATA, 0, (2, 4)))


def test_types_that_are_the_same_but_not_the_same_object(kernel: Any) -> None:
    data = DATA.astype(">i4")
    out = [np.zeros((2, 4), np.dtype("i4").newbyteorder()), np.zeros((4, 4), ">i4")]
    assert kernel.copy_into(data, 0, (2, 4), True, out)
    assert_same(out, slices(data, 0, (2, 4)))


WITH_REFERENCES = {
    "objects": np.array([["a"], ["b"]], object),
    "strings": np.array([["a"], ["b" * 100]], np.dtypes.StringDType()),
    "records of objects": np.array([[(1, "a")], [(2, "b")]], [("n", "i4"), ("o", object)]),
    "nothing at all": np.zeros((2, 1), "V0"),
}


@pytest.mark.parametrize("data", WITH_REFERENCES.values(), ids=WITH_REFERENCES)
def test_elements_that_are_more_than_bytes_are_copied_by_numpy(kernel: Any, data: Any) -> None:
    assert kernel.copies(data, 0, (1, 1), True) is None
    out = [np.zeros((1, 1), data.dtype) for _ in range(2)]
    assert kernel.copy_into(data, 0, (1, 1), True, out) is True
    assert [part.tolist() for part in out] == [data[:1].tolist(), data[1:].tolist()]


def test_references_are_counted(kernel: Any) -> None:
    entry, old = object(), object()
    before = sys.getrefcount(entry), sys.getrefcount(old)
    data, out = np.full((2, 1), entry), [np.full((1, 1), old) for _ in range(2)]
    assert kernel.copy_into(data, 0, (1, 1), True, out)
    assert sys.getrefcount(entry) == before[0] + 4
    assert sys.getrefcount(old) == before[1]


PLAIN = [name for name, dtype in DTYPES.items() if dtype.kind not in "OT"]


@pytest.mark.parametrize("name", PLAIN)
def test_every_type_of_plain_bytes(kernel: Any, name: str, rng: np.random.Generator) -> None:
    data = random_array(name, (70, 6), rng)
    for axis, sizes in ((0, (2, 0, 68)), (1, (1, 3, 2)), (1, (1,) * 6)):
        want = slices(data, axis, sizes)
        assert_same(kernel.copies(data, axis, sizes, True), want)
        out = [np.empty(part.shape, data.dtype) for part in want]
        assert kernel.copy_into(data, axis, sizes, True, out)
        assert_same(out, want)


def test_read_only_data(kernel: Any) -> None:
    data = np.zeros((4, 2), ml_dtypes.bfloat16)
    data.flags.writeable = False
    parts = kernel.copies(data, 0, (1, 3), True)
    assert all(part.flags.writeable for part in parts)


def test_subclasses_are_left_to_numpy(kernel: Any) -> None:
    assert kernel.copies(np.ma.array(DATA), 0, (2, 4), True) is None
    assert kernel.copy_into(np.ma.array(DATA), 0, (6,), True, [buffer(6, 4)]) is False


@pytest.mark.parametrize("flipped", [0, 1, (0, 1)])
@pytest.mark.parametrize("dtype", ["u1", "f4", "c16"])
def test_turned_data_may_lie_backwards(
    kernel: Any, rng: np.random.Generator, dtype: str, flipped: Any
) -> None:
    array = np.flip(rng.integers(1, 200, (61, 50)).astype(dtype), flipped).T
    assert_same(kernel.copies(array, 1, (20, 41), True), slices(array, 1, (20, 41)))
