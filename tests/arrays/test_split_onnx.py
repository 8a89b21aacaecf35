"""ONNX Split in every version, element type, shape and spelling, against plain slicing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import tensorsplit as ts
from tests.oracle import (
    ALLOWED,
    DTYPES,
    FLOATS,
    Array,
    assert_same,
    element_type,
    random_array,
    slices,
)
from tests.refusals import refused

VERSIONS = {1: 1, 2: 2, 10: 2, 11: 11, 12: 11, 13: 13, 17: 13, 18: 18, 28: 18}
"""Opsets, and the version of Split that holds there."""

LENGTHS = {
    6: [(6,), (2, 4), (1, 2, 3), (0, 6, 0)],
    7: [(3, 4), (1, 0, 6)],
    1: [(1,), (0, 1)],
    0: [(0,), (0, 0)],
}
EQUAL: dict[int, Any] = {
    6: {1: (6,), 2: (3, 3), 3: (2, 2, 2)},
    7: {7: (1,) * 7},
    1: {1: (1,)},
    0: {2: (0, 0)},
}
CEIL: dict[int, Any] = {
    6: {2: (3, 3), 4: (2, 2, 2, 0)},
    7: {1: (7,), 2: (4, 3), 3: (3, 3, 1), 4: (2, 2, 2, 1)},
    1: {1: (1,), 2: (1, 0)},
    0: {1: (0,), 3: (0, 0, 0)},
}
"""Lengths by the dimension, and by the number of outputs."""

SHAPES = [
    *((6,), (7,), (0,), (1,)),
    *((6, 7), (1, 6), (6, 0), (0, 7)),
    *((2, 6, 7), (3, 0, 7)),
    *((2, 7, 1, 6), (1, 2, 6, 2, 2)),
]


def axes(shape: tuple[int, ...]) -> Iterator[int]:
    """Every axis whose lengths are stated above, counted from the front and from the back."""
    for axis, dim in enumerate(shape):
        if dim in LENGTHS:
            yield axis
            yield axis - len(shape)


def spellings(version: int, dim: int, data: Array) -> Iterator[tuple[dict[str, Any], Any]]:
    """What can be asked for, with the lengths that it means."""
    for sizes in LENGTHS[dim]:
        yield {"split": list(sizes)}, sizes
        yield {"split": sizes}, sizes
        if version == 1:
            yield {"split": np.array(sizes, data.dtype)}, sizes
        else:
            yield {"split": np.array(sizes, np.int64)}, sizes
            yield {"split": np.array(sizes, np.int64), "num_outputs": None}, sizes
        if version < 18:
            yield {"split": list(sizes), "num_outputs": len(sizes)}, sizes
    for count, sizes in (EQUAL if version < 18 else CEIL)[dim].items():
        yield {"num_outputs": count}, sizes
        yield {"num_outputs": np.int64(count)}, sizes


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize(("opset", "version"), VERSIONS.items())
def test_split(opset: int, version: int, name: str, rng: np.random.Generator) -> None:
    operator = f"onnx.Split-{version}"
    if element_type(name) not in ALLOWED[operator]:
        with refused("TS201", element_type(name), operator=operator, parameter="input"):
            ts.split(random_array(name, (6,), rng), [2, 4], opset=opset)
        return
    for shape in SHAPES:
        data = random_array(name, shape, rng)
        for axis in axes(shape):
            for asked, sizes in spellings(version, shape[axis], data):
                want = slices(data, axis, sizes)
                what = (operator, name, shape, axis, asked)
                assert_same(ts.split(data, axis=axis, opset=opset, **asked), want, what)
                got = ts.split(data, axis=axis, opset=opset, copy=True, **asked)
                assert_same(got, want, what)


@pytest.mark.parametrize("opset", VERSIONS)
def test_the_axis_is_the_first_one_by_default(opset: int) -> None:
    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    assert_same(ts.split(x, [2, 4], opset=opset), slices(x, 0, (2, 4)))
    zero: Any = np.int64(0)
    assert_same(ts.split(x, [2, 4], opset=opset, axis=zero), slices(x, 0, (2, 4)))


def test_the_newest_version_is_the_default() -> None:
    assert [part.shape for part in ts.split(np.zeros((7, 4)), num_outputs=3)] == [
        *((3, 4), (3, 4), (1, 4))
    ]


@pytest.mark.parametrize("opset", [2, 11, 13, 18])
@pytest.mark.parametrize("code", "bhilqBHILQ")
def test_an_array_of_any_integer_type_gives_the_lengths(opset: int, code: str) -> None:
    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    assert_same(ts.split(x, np.array([2, 4], code), opset=opset), slices(x, 0, (2, 4)))


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("other", FLOATS)
def test_the_second_input_of_split_1_has_the_type_of_the_data(name: str, other: str) -> None:
    data, split = np.zeros(6, DTYPES[name]), np.array([2, 4], DTYPES[other])
    if name == other:
        assert_same(ts.split(data, split, opset=1), slices(data, 0, (2, 4)))
    else:
        with refused("TS201", name, other, operator="onnx.Split-1"):
            ts.split(data, split, opset=1)


@pytest.mark.parametrize("split", [np.array([2, 4]), np.array([2, 4], np.int32), [2.0, 4.0]])
def test_lengths_of_split_1_are_an_attribute_of_integers_or_an_array_of_floats(split: Any) -> None:
    with refused("TS105", operator="onnx.Split-1", parameter="split"):
        ts.split(np.zeros(6, np.float32), split, opset=1)


@pytest.mark.parametrize("opset", [2, 11, 13, 18])
@pytest.mark.parametrize(
    "split",
    [
        *([2.0, 4.0], [2, 4.0], np.array([2.0, 4.0]), [True, 5], np.array([True, False])),
        *(["2", "4"], "24", b"24", [None, 6], {2, 4}, np.array([2, 4], object), 2.0),
        *map(Mock, (np.ndarray, list, tuple)),  # whose __class__ lies
    ],
)
def test_lengths_are_integers(opset: int, split: Any) -> None:
    with refused("TS105", operator=f"onnx.Split-{VERSIONS[opset]}", parameter="split"):
        ts.split(np.zeros(6, np.float32), split, opset=opset)


@pytest.mark.parametrize("opset", [2, 11, 13, 18])
@pytest.mark.parametrize("split", [6, np.int64(6), np.array(6), [[2, 4]], np.array([[2, 4]])])
def test_lengths_are_a_list(opset: int, split: Any) -> None:
    with refused("TS106", operator=f"onnx.Split-{VERSIONS[opset]}", parameter="split"):
        ts.split(np.zeros(6, np.float32), split, opset=opset)


@pytest.mark.parametrize("opset", VERSIONS)
@pytest.mark.parametrize("axis", [2, -3, 1 << 70])
def test_an_axis_lies_within_the_rank(opset: int, axis: int) -> None:
    operator = f"onnx.Split-{VERSIONS[opset]}"
    with refused("TS203", "rank 2", "[-2, 1]", operator=operator, parameter="axis"):
        ts.split(np.zeros((6, 4), np.float32), [2, 4], axis=axis, opset=opset)


@pytest.mark.parametrize("opset", VERSIONS)
@pytest.mark.parametrize(
    ("code", "axis"),
    [
        *(("TS105", axis) for axis in (0.0, True, "0", 1j, np.float32(0), np.True_, object())),
        *(("TS106", axis) for axis in ([0], (), [0, 1], np.array([0]))),
    ],
)
def test_an_axis_is_one_integer(opset: int, code: str, axis: Any) -> None:
    with refused(code, operator=f"onnx.Split-{VERSIONS[opset]}", parameter="axis"):
        ts.split(np.zeros((6, 4), np.float32), [2, 4], axis=axis, opset=opset)


@pytest.mark.parametrize("opset", [*VERSIONS])
@pytest.mark.parametrize("count", [0, -1])
def test_the_number_of_outputs_is_at_least_one(opset: int, count: int) -> None:
    code = "TS107" if opset >= 18 else "TS305"
    with refused(code, count, operator=f"onnx.Split-{VERSIONS[opset]}", parameter="num_outputs"):
        ts.split(np.zeros(6, np.float32), num_outputs=count, opset=opset)


@pytest.mark.parametrize("opset", [*VERSIONS])
@pytest.mark.parametrize("count", [2.0, True, "2", np.bool_(True), np.float64(2)])
def test_the_number_of_outputs_is_an_integer(opset: int, count: Any) -> None:
    operator = f"onnx.Split-{VERSIONS[opset]}"
    with refused("TS105", operator=operator, parameter="num_outputs"):
        ts.split(np.zeros(6, np.float32), num_outputs=count, opset=opset)


@pytest.mark.parametrize("opset", [1, 2, 11, 13, 18])
def test_no_lengths_make_no_outputs(opset: int) -> None:
    with refused("TS305", operator=f"onnx.Split-{opset}", parameter="split"):
        ts.split(np.zeros(0, np.float32), [], opset=opset)


@pytest.mark.parametrize("opset", [0, -1, 29, 1 << 70, True, 13.0, "13", None])
def test_an_opset_that_does_not_exist_is_refused(opset: Any) -> None:
    with refused("TS101", parameter="opset"):
        ts.split(np.zeros(6), [2, 4], opset=opset)


@pytest.mark.parametrize("junk", [[1.0, 2.0], (1, 2), 7, None, "data", object(), {}])
def test_only_arrays_are_cut(junk: Any) -> None:
    with refused("TS204", operator="onnx.Split-18", parameter="input"):
        ts.split(junk, [1, 1])


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (12, f"[{', '.join('1' * 12)}]"),
        (13, "[1, 1, 1, 1, 1, 1, 1, 1, ... 13 lengths]"),
    ],
)
def test_more_than_12_lengths_are_shortened(count: int, shown: str) -> None:
    with pytest.raises(ts.SplitError) as refusal:
        ts.split(np.ones(20), [1] * count)
    assert shown in str(refusal.value)
