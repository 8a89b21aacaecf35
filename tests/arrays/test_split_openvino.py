"""OpenVINO VariadicSplit-1 and Split-1, against plain slicing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tensorsplit as ts
from tests.oracle import DTYPES, assert_same, random_array, slices
from tests.refusals import refused

LENGTHS: dict[int, Any] = {
    6: {(6,): (6,), (2, 4): (2, 4), (-1, 2): (4, 2), (2, -1, 4): (2, 0, 4), (-1,): (6,)},
    7: {(3, 4): (3, 4), (0, -1): (0, 7), (1, -1, 2): (1, 4, 2)},
    1: {(1,): (1,), (-1, 1): (0, 1)},
    0: {(0,): (0,), (0, 0): (0, 0), (-1, 0): (0, 0)},
}
"""Lengths as given, and what they mean, by the dimension."""
EQUAL: dict[int, Any] = {
    6: {1: (6,), 2: (3, 3), 3: (2, 2, 2)},
    7: {7: (1,) * 7},
    1: {1: (1,)},
    0: {2: (0, 0)},
}
SHAPES = [(6,), (7,), (0,), (1,), (6, 7), (6, 0), (0, 7), (2, 6, 7), (2, 7, 1, 6), (1, 2, 6, 2, 2)]

VARIADIC_SPLIT, SPLIT = "openvino.VariadicSplit-1", "openvino.Split-1"


def axes(shape: tuple[int, ...]) -> Iterator[int]:
    """Every axis whose lengths are stated above, counted from the front and from the back."""
    for axis, dim in enumerate(shape):
        if dim in LENGTHS:
            yield axis
            yield axis - len(shape)


@pytest.mark.parametrize("name", DTYPES)
def test_variadic_split(name: str, rng: np.random.Generator) -> None:
    for shape in SHAPES:
        data = random_array(name, shape, rng)
        for axis in axes(shape):
            for given, sizes in LENGTHS[shape[axis]].items():
                want = slices(data, axis, sizes)
                for lengths in (list(given), given, np.array(given), np.array(given, np.int8)):
                    what = (name, shape, axis, lengths)
                    assert_same(ts.variadic_split(data, axis, lengths), want, what)
                for place in ([axis], np.array(axis), np.array([axis], np.int32), np.int8(axis)):
                    got = ts.variadic_split(data, place, given, copy=True)
                    assert_same(got, want, (name, shape, place, given))


@pytest.mark.parametrize("name", DTYPES)
def test_split(name: str, rng: np.random.Generator) -> None:
    for shape in SHAPES:
        data = random_array(name, shape, rng)
        for axis in axes(shape):
            for count, sizes in EQUAL[shape[axis]].items():
                want = slices(data, axis, sizes)
                what = (name, shape, axis, count)
                assert_same(ts.openvino.split(data, axis, count), want, what)
                numbers: Any = np.array(axis), np.int64(count)
                got = ts.openvino.split(data, *numbers, copy=True)
                assert_same(got, want, what)


def test_parameters_have_the_names_of_the_standard() -> None:
    x = np.arange(6)
    want = slices(x, 0, (4, 2))
    assert_same(ts.variadic_split(data=x, axis=0, split_lengths=[-1, 2]), want)
    assert_same(ts.openvino.variadic_split(data=x, axis=0, split_lengths=[-1, 2]), want)
    assert_same(ts.openvino.split(data=x, axis=0, num_splits=2), slices(x, 0, (3, 3)))


@pytest.mark.parametrize(
    "dtype",
    [
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *(ml_dtypes.int4, ml_dtypes.uint4),
    ],
)
def test_axis_and_lengths_are_of_any_integer_type(dtype: Any) -> None:
    x = np.arange(6)
    lengths, axis = np.array([2, 4], dtype), np.array([0], dtype)
    assert_same(ts.variadic_split(x, axis, lengths), slices(x, 0, (2, 4)))
    assert_same(ts.openvino.split(x, axis[0], 2), slices(x, 0, (3, 3)))


def test_the_lengths_of_variadic_split_are_a_list() -> None:
    wrong: list[Any] = [6, np.array(6), [[6]], np.array([[6]])]
    for lengths in wrong:
        with refused("TS106", operator=VARIADIC_SPLIT, parameter="split_lengths"):
            ts.variadic_split(np.zeros(6), 0, lengths)


def test_the_lengths_of_variadic_split_are_at_least_one() -> None:
    with refused("TS305", operator=VARIADIC_SPLIT, parameter="split_lengths"):
        ts.variadic_split(np.zeros(0), 0, [])


@pytest.mark.parametrize("count", [0, -2])
def test_the_number_of_splits_is_at_least_one(count: int) -> None:
    with refused("TS107", count, operator=SPLIT, parameter="num_splits"):
        ts.openvino.split(np.zeros(6), 0, count)


@pytest.mark.parametrize("count", [4, 5, 7])
def test_the_number_of_splits_divides_the_dimension(count: int) -> None:
    with refused("TS303", 6, count, operator=SPLIT, parameter="num_splits"):
        ts.openvino.split(np.zeros(6), 0, count)


@pytest.mark.parametrize("axis", [[0], np.array([0]), [[0]]])
def test_the_axis_of_split_is_a_scalar(axis: Any) -> None:
    with refused("TS106", "a scalar", operator=SPLIT, parameter="axis"):
        ts.openvino.split(np.zeros(6), axis, 2)


def test_the_number_of_splits_is_one_number() -> None:
    with refused("TS106", operator=SPLIT, parameter="num_splits"):
        ts.openvino.split(np.zeros(6), 0, [2])  # type: ignore[call-overload]


@pytest.mark.parametrize("missing", ["axis", "split_lengths"])
def test_axis_and_lengths_of_variadic_split_must_be_given(missing: str) -> None:
    operands: dict[str, Any] = {"axis": 0, "split_lengths": [6], missing: None}
    with refused("TS102", operator=VARIADIC_SPLIT, parameter=missing):
        ts.variadic_split(np.zeros(6), **operands)


@pytest.mark.parametrize("missing", ["axis", "num_splits"])
def test_axis_and_number_of_splits_must_be_given(missing: str) -> None:
    operands: dict[str, Any] = {"axis": 0, "num_splits": 2, missing: None}
    with refused("TS102", operator=SPLIT, parameter=missing):
        ts.openvino.split(np.zeros(6), **operands)


@pytest.mark.parametrize("axis", [2, -3])
def test_an_axis_lies_within_the_rank(axis: int) -> None:
    with refused("TS203", "[-2, 1]", operator=VARIADIC_SPLIT, parameter="axis"):
        ts.variadic_split(np.zeros((6, 4)), axis, [-1])
    with refused("TS203", "[-2, 1]", operator=SPLIT, parameter="axis"):
        ts.openvino.split(np.zeros((6, 4)), axis, 1)


@pytest.mark.parametrize("junk", [[1.0, 2.0], 7, None, "data"])
def test_only_arrays_are_cut(junk: Any) -> None:
    with refused("TS204", operator=VARIADIC_SPLIT, parameter="data"):
        ts.variadic_split(junk, 0, [-1])
    with refused("TS204", operator=SPLIT, parameter="data"):
        ts.openvino.split(junk, 0, 1)
