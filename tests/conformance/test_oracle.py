"""What the suite computes for itself: slices, shapes and data."""

from __future__ import annotations

import numpy as np
import pytest

from tensorsplit.conformance import data, oracle
from tests.oracle import ALLOWED, DTYPES

X = np.arange(12).reshape(3, 4)


def rng(seed: int = 3) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_parts_are_slices_along_the_axis() -> None:
    one, two = oracle.parts(X, 0, (1, 2))
    assert one.tolist() == [[0, 1, 2, 3]]
    assert two.tolist() == [[4, 5, 6, 7], [8, 9, 10, 11]]
    left, none, right = oracle.parts(X, -1, (1, 0, 3))
    assert left.tolist() == [[0], [4], [8]]
    assert none.shape == (3, 0)
    assert right.tolist() == [[1, 2, 3], [5, 6, 7], [9, 10, 11]]


def test_parts_can_lose_the_axis() -> None:
    parts = oracle.parts(X, 1, (1, 1, 1, 1), keepdims=False)
    assert [part.tolist() for part in parts] == [[0, 4, 8], [1, 5, 9], [2, 6, 10], [3, 7, 11]]


def test_parts_are_copies() -> None:
    (part,) = oracle.parts(X, 0, (3,))
    assert not np.shares_memory(part, X)


def test_no_parts_of_nothing() -> None:
    assert oracle.parts(np.zeros((0, 2)), 0, ()) == []


@pytest.mark.parametrize("sizes", [(1, 1), (3, 1), (-1, 4), ()])
def test_lengths_that_do_not_cover_the_axis_are_a_mistake_in_the_case(
    sizes: tuple[int, ...],
) -> None:
    with pytest.raises(ValueError, match="do not cover 3"):
        oracle.parts(X, 0, sizes)


def test_shapes_with_another_length_or_without_an_axis() -> None:
    assert oracle.resized((2, "N", 4), -2, None) == (2, None, 4)
    assert oracle.resized((2, 3), 0, 7) == (7, 3)
    assert oracle.without((2, 3, 4), 1) == (2, 4)
    assert oracle.without((2,), -1) == ()


@pytest.mark.parametrize("operator", ALLOWED)
def test_the_element_types_are_those_of_the_pages(operator: str) -> None:
    assert set(data.ALLOWED[operator]) == set(ALLOWED[operator])


@pytest.mark.parametrize("element_type", sorted({*data.NEWEST, *data.IR_NAMES}))
@pytest.mark.parametrize("extreme", [False, True])
def test_elements_are_of_the_type_and_come_from_the_seed(element_type: str, extreme: bool) -> None:
    made = data.values(element_type, (3, 5), rng(), extreme)
    assert made.dtype == DTYPES[element_type]
    assert made.shape == (3, 5)
    again = data.values(element_type, (3, 5), rng(), extreme)
    assert repr(made.tolist()) == repr(again.tolist())
    assert repr(made.tolist()) != repr(data.values(element_type, (3, 5), rng(4), extreme).tolist())


@pytest.mark.parametrize("element_type", sorted({*data.NEWEST, *data.IR_NAMES} - {"bool"}))
def test_plain_elements_are_no_zero_bits_and_different_as_far_as_there_are_so_many(
    element_type: str,
) -> None:
    made = data.values(element_type, (2, 30), rng()).reshape(-1)
    count = {"uint2": 3, "uint4": 15, "int4": 15, "float4e2m1": 15}.get(element_type, made.size)
    if element_type == "string":
        assert len(set(made.tolist())) == count
        assert max(len(word.encode()) for word in made) > 24
        return
    bits = [item.tobytes() for item in made]
    assert len(set(bits)) == count
    assert bytes(made.dtype.itemsize) not in bits


@pytest.mark.parametrize("element_type", ["float", "double", "float16", "bfloat16"])
def test_extreme_floats_hold_payloads_signs_and_infinities(element_type: str) -> None:
    made = data.values(element_type, (40,), rng(), extreme=True)
    with np.errstate(invalid="ignore"):
        number = made.astype(np.float64)
    assert np.isnan(number).sum() == 2
    assert (number == -np.inf).sum() == 1
    assert ((number == 0) & np.signbit(number)).sum() == 1
    width = made.dtype.itemsize
    payloads = made.view(f"u{width}")[np.isnan(number)]
    assert len(set(payloads.tolist())) == 2


@pytest.mark.parametrize("element_type", data.WIDE)
def test_only_extreme_elements_need_more_than_32_bits(element_type: str) -> None:
    plain = data.values(element_type, (64,), rng())
    narrow = {"int64": np.int32, "uint64": np.uint32, "double": np.float32}[element_type]
    with np.errstate(over="ignore", invalid="ignore"):
        np.testing.assert_array_equal(plain.astype(narrow).astype(plain.dtype), plain)
        wide = data.values(element_type, (64,), rng(), extreme=True)
        assert (wide.astype(narrow).astype(wide.dtype) != wide).sum() >= 5


def test_extremes_are_told_apart_from_types_without_them() -> None:
    assert not data.has_extremes("bool")
    assert not data.has_extremes("string")
    assert not data.has_extremes("uint4")
    assert data.has_extremes("int8")
    assert data.has_extremes("bfloat16")


def test_no_elements_at_all() -> None:
    for element_type in data.NEWEST:
        assert data.values(element_type, (2, 0), rng(), extreme=True).shape == (2, 0)
