"""ONNX SplitToSequence in both versions, against plain slicing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tests.oracle import ALLOWED, DTYPES, assert_same, element_type, random_array, slices
from tests.refusals import refused

VERSIONS = {11: 11, 13: 11, 23: 11, 24: 24, 28: 24}
"""Opsets, and the version of SplitToSequence that holds there."""

LENGTHS: dict[int, Any] = {
    6: [(6,), (2, 4), (0, 6, 0)],
    7: [(3, 4)],
    1: [(1,)],
    0: [(0,), (0, 0), ()],
}
CHUNKS: dict[int, Any] = {
    6: {1: (1,) * 6, 2: (2, 2, 2), 4: (4, 2), 6: (6,), 9: (6,)},
    7: {3: (3, 3, 1), 7: (7,)},
    1: {1: (1,), 2: (1,)},
    0: {1: (), 2: ()},
}
"""Lengths by the dimension, and by the length of a chunk."""

SHAPES = [(6,), (7,), (0,), (1,), (6, 7), (6, 0), (0, 7), (2, 6, 7), (2, 7, 1, 6), (1, 2, 6, 2, 2)]


def axes(shape: tuple[int, ...]) -> Iterator[int]:
    """Every axis whose lengths are stated above, counted from the front and from the back."""
    for axis, dim in enumerate(shape):
        if dim in LENGTHS:
            yield axis
            yield axis - len(shape)


def spellings(dim: int) -> Iterator[tuple[dict[str, Any], Any, bool]]:
    """What can be asked for, the lengths that it means, and whether the axis stays."""
    for sizes in LENGTHS[dim]:
        yield {"split": list(sizes)}, sizes, True
        yield {"split": sizes, "keepdims": 0}, sizes, True
        yield {"split": np.array(sizes, np.int64)}, sizes, True
        yield {"split": np.array(sizes, np.int32), "keepdims": 1}, sizes, True
    for length, sizes in CHUNKS[dim].items():
        yield {"split": length}, sizes, True
        yield {"split": np.array(length, np.int64), "keepdims": 0}, sizes, True
        yield {"split": np.int32(length)}, sizes, True
    ones = (1,) * dim
    yield {}, ones, True
    yield {"keepdims": 1}, ones, True
    yield {"keepdims": 0}, ones, False
    yield {"split": None, "keepdims": False}, ones, False


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize(("opset", "version"), VERSIONS.items())
def test_split_to_sequence(opset: int, version: int, name: str, rng: np.random.Generator) -> None:
    operator = f"onnx.SplitToSequence-{version}"
    if element_type(name) not in ALLOWED[operator]:
        with refused("TS201", element_type(name), operator=operator, parameter="input"):
            ts.split_to_sequence(random_array(name, (6,), rng), opset=opset)
        return
    for shape in SHAPES:
        data = random_array(name, shape, rng)
        for axis in axes(shape):
            for asked, sizes, keepdims in spellings(shape[axis]):
                want = slices(data, axis, sizes, keepdims)
                what = (operator, name, shape, axis, asked)
                got = ts.split_to_sequence(data, axis=axis, opset=opset, **asked)
                assert_same(got, want, what)
                got = ts.split_to_sequence(data, axis=axis, opset=opset, copy=True, **asked)
                assert_same(got, want, what)


def test_parts_of_length_one_along_the_first_axis_are_the_default() -> None:
    x = np.arange(6).reshape(3, 2)
    assert_same(ts.split_to_sequence(x), slices(x, 0, (1, 1, 1)))


@pytest.mark.parametrize("opset", [10, 1, 0, 29])
def test_the_operator_exists_from_opset_11(opset: int) -> None:
    with refused("TS101", opset, "11", operator="onnx.SplitToSequence", parameter="opset"):
        ts.split_to_sequence(np.zeros(6), opset=opset)


@pytest.mark.parametrize("keepdims", [2, -1, 1 << 64])
def test_keepdims_is_zero_or_one(keepdims: int) -> None:
    operator = "onnx.SplitToSequence-24"
    with refused("TS107", "0 (drop", "1 (keep", operator=operator, parameter="keepdims"):
        ts.split_to_sequence(np.zeros(6), keepdims=keepdims)


@pytest.mark.parametrize("keepdims", [1.0, "1", np.float32(1), object()])
def test_keepdims_is_an_integer(keepdims: Any) -> None:
    with refused("TS105", operator="onnx.SplitToSequence-24", parameter="keepdims"):
        ts.split_to_sequence(np.zeros(6), keepdims=keepdims)


@pytest.mark.parametrize("split", [2.0, np.float32(2), [2.0, 4.0], True, "2", np.bool_(True)])
def test_lengths_are_integers(split: Any) -> None:
    with refused("TS105", operator="onnx.SplitToSequence-24", parameter="split"):
        ts.split_to_sequence(np.zeros(6), split)


@pytest.mark.parametrize("split", [[[2, 4]], np.array([[2, 4]]), np.zeros((1, 1), int)])
def test_lengths_are_a_number_or_a_list(split: Any) -> None:
    words = ("a scalar or a list",)
    with refused("TS106", *words, operator="onnx.SplitToSequence-24", parameter="split"):
        ts.split_to_sequence(np.zeros(6), split)


def test_the_parts_of_a_sequence_may_be_none() -> None:
    assert ts.split_to_sequence(np.zeros((0, 3))) == []
    assert ts.split_to_sequence(np.zeros((0, 3)), []) == []
    assert ts.split_to_sequence(np.zeros((0, 3)), 5, out=[]) == []
    with refused("TS302", operator="onnx.SplitToSequence-24", parameter="split"):
        ts.split_to_sequence(np.zeros((1, 3)), [])
