"""Refusals say what would be right as numbers: `SplitError.wants`."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tensorsplit.core import errors, resolve
from tensorsplit.core.arithmetic import position
from tensorsplit.core.dimensions import MAX_DIM
from tensorsplit.core.operands import Operand
from tensorsplit.core.rules import MAX_PARTS

PLAN: Any = ts.plan
SPLIT: Any = ts.split

NUMBERS = 1 << 63
"""A dimension is below it."""


def exactly(number: int) -> range:
    return range(number, number + 1)


def plan(operator: str, shape: Any, **operands: Any) -> Callable[[], object]:
    return lambda: PLAN(operator, shape, **operands)


REFUSALS: dict[str, tuple[Callable[[], object], str, dict[str, range]]] = {
    "sum": (
        plan("onnx.Split-18", (2, 7), axis=1, split=[3, 3]),
        "TS302",
        {"sum": exactly(7), "dimension": exactly(6)},
    ),
    "sum of an open dimension": (
        plan("onnx.Split-18", ("N",), split=[NUMBERS - 1, 1]),
        "TS302",
        {},
    ),
    "more than any dimension": (
        plan("onnx.Split-18", (7,), split=[NUMBERS - 1, 1]),
        "TS302",
        {"sum": exactly(7)},
    ),
    "negative": (
        plan("onnx.Split-18", (7,), split=[-1, 8]),
        "TS301",
        {"length": range(NUMBERS)},
    ),
    "equal parts": (
        plan("onnx.Split-13", (7,), num_outputs=3),
        "TS303",
        {"dimension": range(0, NUMBERS, 3)},
    ),
    "last part": (
        plan("onnx.Split-18", (5,), num_outputs=4),
        "TS304",
        {"dimension": range(0, NUMBERS, 4)},
    ),
    "rest": (
        plan("openvino.VariadicSplit-1", (7,), axis=0, split_lengths=[5, -1, 4]),
        "TS306",
        {"sum": range(8), "dimension": range(9, NUMBERS)},
    ),
    "two rests": (
        plan("openvino.VariadicSplit-1", (7,), axis=0, split_lengths=[-1, -1]),
        "TS306",
        {},
    ),
    "chunk": (
        plan("onnx.SplitToSequence-11", (7,), split=0),
        "TS307",
        {"length": range(1, NUMBERS)},
    ),
    "too many parts": (
        plan("onnx.SplitToSequence-11", (NUMBERS - 1,), split=1),
        "TS308",
        {"count": range(1, MAX_PARTS + 1)},
    ),
    "no parts": (
        plan("onnx.Split-18", (7,), num_outputs=0),
        "TS107",
        {"count": range(1, MAX_PARTS + 1)},
    ),
    "no outputs": (
        lambda: resolve.bind(ts.operators["onnx.Split-13"], [], 0),
        "TS305",
        {"count": range(1, MAX_PARTS + 1)},
    ),
    "an empty part where there may be none": (
        plan("webnn.split", (2, 6), splits=[0, 6], axis=1),
        "TS301",
        {"length": range(1, NUMBERS)},
    ),
    "no lengths": (
        plan("onnx.Split-18", (0,), split=[]),
        "TS305",
        {"count": range(1, MAX_PARTS + 1)},
    ),
    "lengths for another number of outputs": (
        lambda: resolve.plan(
            resolve.bind(ts.operators["onnx.Split-13"], [("split", Operand((3, 4), 1))], 3), (7,)
        ),
        "TS305",
        {"count": exactly(3)},
    ),
    "axis": (
        plan("onnx.Split-18", (2, 7), axis=2, num_outputs=2),
        "TS203",
        {"axis": range(-2, 2)},
    ),
    "axis from the front": (
        plan("webnn.split", (2, 6), splits=[1, 5], axis=-1),
        "TS203",
        {"axis": range(2)},
    ),
    "keepdims": (
        plan("onnx.SplitToSequence-11", (7,), keepdims=2),
        "TS107",
        {"keepdims": range(2)},
    ),
    "index": (
        lambda: PLAN("onnx.Split-18", (7,), num_outputs=2).find(7),
        "TS107",
        {"index": range(-7, 7)},
    ),
    "index of nothing": (
        lambda: PLAN("onnx.Split-18", (0,), num_outputs=2).find(0),
        "TS107",
        {},
    ),
    "position": (
        lambda: position(5, 3, 2),
        "TS511",
        {"position": range(-3, 3), "count": range(6, MAX_DIM + 1)},
    ),
    "position from the end": (
        lambda: position(-5, 3, 2),
        "TS511",
        {"position": range(-3, 3), "count": range(5, MAX_DIM + 1)},
    ),
    "position of an insertion": (
        lambda: position(5, 3, 3),
        "TS511",
        {"position": range(-3, 4), "count": range(5, MAX_DIM + 1)},
    ),
    "position beyond all sequences": (
        lambda: position(1 << 63, 3, 2),
        "TS511",
        {"position": range(-3, 3)},
    ),
    "position in an empty sequence": (
        lambda: position(0, 0, -1),
        "TS511",
        {"count": range(1, MAX_DIM + 1)},
    ),
    "type": (lambda: SPLIT(np.arange(6), 2.0, axis=0), "TS105", {}),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_would_be_right(name: str) -> None:
    refused, code, wants = REFUSALS[name]
    with pytest.raises(ts.SplitError) as raised:
        refused()
    assert (raised.value.code, raised.value.wants) == (code, wants)


@pytest.mark.parametrize("lengths", [[3, 3], [0, 2], [9, 1, 4]])
def test_the_dimension_that_is_wanted_fits_the_lengths(lengths: list[int]) -> None:
    with pytest.raises(ts.SplitError) as raised:
        PLAN("onnx.Split-18", (7,), split=lengths)
    (wanted,) = raised.value.wants["dimension"]
    assert PLAN("onnx.Split-18", (wanted,), split=lengths).sizes == tuple(lengths)


@pytest.mark.parametrize(
    ("operator", "dim", "count"), [("onnx.Split-13", 7, 3), ("onnx.Split-18", 11, 8)]
)
def test_every_dimension_that_is_wanted_divides(operator: str, dim: int, count: int) -> None:
    with pytest.raises(ts.SplitError) as raised:
        PLAN(operator, (dim,), num_outputs=count)
    for wanted in raised.value.wants["dimension"][:20]:
        assert PLAN(operator, (wanted,), num_outputs=count).sizes == (wanted // count,) * count


@pytest.mark.parametrize("name", ["onnx", "openvino"])
def test_an_axis_that_is_wanted_lies_in_the_data(name: str) -> None:
    operator = {"onnx": "onnx.Split-18", "openvino": "openvino.Split-1"}[name]
    count = {"onnx": "num_outputs", "openvino": "num_splits"}[name]
    with pytest.raises(ts.SplitError) as raised:
        PLAN(operator, (2, 4, 6), axis=5, **{count: 2})
    assert list(raised.value.wants["axis"]) == [-3, -2, -1, 0, 1, 2]
    for axis in raised.value.wants["axis"]:
        assert PLAN(operator, (2, 4, 6), axis=axis, **{count: 2}).axis == axis % 3


def test_it_survives_copying_and_pickling() -> None:
    error = ts.SplitError(errors.LENGTHS_SUM, "it is 3", wants={"sum": range(4, 5)})
    for again in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert again.wants == {"sum": range(4, 5)}


def test_it_is_empty_where_nothing_is_wanted() -> None:
    assert ts.SplitError(errors.USAGE, "no").wants == {}
