"""Operators that lengths are calculated with: they give what a run gives, or leave it unknown."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import tensorsplit as ts
from tensorsplit.model.infer.length_operators import (
    MOST_ELEMENTS,
    MOST_PARTS,
    OPERATORS,
    Attributes,
    MayStopError,
    StopsError,
    UnknownResultError,
)
from tests.model.build import BOOL, INT64, graph, model, node, untyped, value

RNG = np.random.default_rng(29)
A, B, LIST = (RNG.integers(-9, 10, shape) for shape in ((2, 3), (3,), (5,)))
YES, NO = RNG.random((2, 2, 3)) < 0.5
SIGNS = np.array([-7, 7, -7, 7, 6]), np.array([2, -2, -2, 2, -3])

Calls = list[tuple[str, list[Any], dict[str, Any]]]

CALLS: Calls = [
    *((name, [A, B], {}) for name in ("Add", "Equal", "Greater", "GreaterOrEqual", "Less")),
    *((name, [A, B], {}) for name in ("LessOrEqual", "Mul", "Sub")),
    *((name, [A, B, A[:, 1:2]], {}) for name in ("Max", "Min")),
    *((name, [YES, NO], {}) for name in ("And", "Or")),
    ("Cast", [A], {"to": BOOL}),
    ("Cast", [YES], {"to": INT64}),
    ("Concat", [A, A[:, :2]], {"axis": -1}),
    ("CumSum", [A, np.array(1)], {}),
    ("Div", [*SIGNS], {}),
    ("Expand", [B, np.array([2, 1])], {}),
    ("Gather", [A, np.array([[2, -1], [0, -3]])], {"axis": -1}),
    ("Gather", [A, np.array(1)], {}),
    ("Identity", [A], {}),
    ("Neg", [A], {}),
    ("Not", [YES], {}),
    ("Range", [np.array(7), np.array(-2), np.array(-3)], {}),
    ("ReduceSum", [A], {}),
    ("ReduceSum", [A, np.array([-1])], {}),
    ("ReduceSum", [A, np.array([0])], {"keepdims": 0}),
    ("Reshape", [A, np.array([3, -1])], {}),
    ("Shape", [A], {"start": -1}),
    ("Shape", [A], {"end": 1}),
    ("Slice", [LIST, np.array([-2]), np.array([-9]), np.array([0]), np.array([-2])], {}),
    ("Slice", [A, np.array([1, 0]), np.array([9, 1]), np.array([-1, 0])], {}),
    ("Slice", [A, np.array([1]), np.array([2])], {}),
    ("Squeeze", [A[:1, :, None]], {}),
    ("Squeeze", [A[:1, :, None], np.array([-1])], {}),
    ("Unsqueeze", [A, np.array([0, -1])], {}),
    ("Where", [YES, A, B], {}),
]
"""An operator, its operands, and its attributes."""


@pytest.mark.parametrize(("operator", "inputs", "attributes"), CALLS)
def test_an_operator_gives_what_a_run_gives(
    operator: str, inputs: list[Any], attributes: dict[str, Any]
) -> None:
    names = [f"x{place}" for place in range(len(inputs))]
    given = [
        value(name, BOOL if each.dtype == np.bool_ else INT64, each.shape)
        for name, each in zip(names, inputs, strict=True)
    ]
    made = graph([node(operator, " ".join(names), "y", **attributes)], given, [untyped("y")])
    wanted = ts.run(model(made, 18), dict(zip(names, inputs, strict=True)))["y"]
    found = OPERATORS[operator](inputs, attributes)
    np.testing.assert_array_equal(found, wanted, strict=True)


def test_every_operator_is_tried() -> None:
    assert OPERATORS.keys() - {call[0] for call in CALLS} == {"Sum"}  # takes floats in ONNX


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes"),
    [
        ("Cast", [A], {"to": onnx.TensorProto.INT32}),
        ("CumSum", [B, np.array(0)], {"exclusive": 1}),
        ("CumSum", [B, np.array(0)], {"reverse": 1}),
        ("Div", [B, np.array([2, 0, 1])], {}),
        ("ReduceSum", [A], {"noop_with_empty_axes": 1}),
        ("ReduceSum", [A, np.zeros(0, np.int64)], {}),
        ("Reshape", [A, np.array([0, -1])], {}),
        ("Reshape", [A, np.array([6])], {"allowzero": 1}),
    ],
)
def test_what_engines_do_differently_is_left_unknown(
    operator: str, inputs: list[Any], attributes: dict[str, Any]
) -> None:
    with pytest.raises(UnknownResultError):
        OPERATORS[operator](inputs, attributes)


@pytest.mark.parametrize(
    ("operator", "inputs", "error", "instead"),
    [
        ("Gather", [LIST, np.array([4, 5, -6])], MayStopError, [LIST[4], 0, 0]),
        ("Reshape", [LIST[:0], np.array([2, 1])], StopsError, [[0], [0]]),
        ("Where", [YES[0], B, B[:0]], StopsError, YES[0]),
    ],
)
def test_a_running_model_stops_at_what_is_not_there(
    operator: str, inputs: list[Any], error: type[StopsError], instead: Any
) -> None:
    with pytest.raises(error) as stop:
        OPERATORS[operator](inputs, {})
    assert type(stop.value) is error
    np.testing.assert_array_equal(stop.value.instead, instead)


LONG = np.arange(1, (1 << 12) + 1)
ROWS, COLUMNS = LONG[:, None], LONG[None]
assert LONG.size**2 > MOST_ELEMENTS


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes"),
    [
        ("Expand", [np.array(1), np.array([MOST_ELEMENTS + 1])], {}),
        ("Expand", [ROWS, np.array([1, 1 << 12])], {}),
        *((name, [ROWS, COLUMNS], {}) for name in ("Add", "Div", "Less", "Mul")),
        *((name, [ROWS, LONG, COLUMNS], {}) for name in ("Max", "Sum")),
        ("Where", [ROWS > 3, COLUMNS, np.array(7)], {}),
        ("Gather", [ROWS, np.zeros(1 << 12, np.int64)], {"axis": 1}),
        ("Reshape", [np.zeros(0, np.int64), np.array([1 << 12, 1 << 12])], {}),
        ("Range", [np.array(3), np.array(4 + MOST_PARTS), np.array(1)], {}),
    ],
)
def test_what_broadcasts_to_very_many_elements_is_left_unknown(
    operator: str, inputs: list[object], attributes: Attributes
) -> None:
    with pytest.raises(UnknownResultError):
        OPERATORS[operator](inputs, attributes)


@pytest.mark.parametrize(
    ("operator", "inputs", "want"),
    [
        *((name, [LONG, LONG + 1], 2 * LONG + 1) for name in ("Add", "Sum")),
        *((name, [LONG, LONG + 1], LONG < 0) for name in ("Equal", "Greater")),
        ("Max", [LONG, LONG[::-1], LONG], np.maximum(LONG, LONG[::-1])),
        ("Div", [LONG, LONG], LONG // LONG),
        ("Where", [LONG < 3, LONG, -LONG], np.where(LONG < 3, LONG, -LONG)),
        ("Expand", [LONG, np.array([LONG.size])], LONG),
        ("Expand", [LONG, np.array([MOST_ELEMENTS // LONG.size, 1])], LONG),
        ("Reshape", [LONG, np.array([-1, 1])], ROWS),
        ("Gather", [LONG, LONG - 1], LONG),
    ],
)
def test_long_lists_that_stay_as_long_are_calculated(
    operator: str, inputs: list[Any], want: Any
) -> None:
    made = OPERATORS[operator](inputs, {})
    assert made.shape[-1:] == want.shape[-1:]
    assert (made == want).all()


@pytest.mark.parametrize("shape", [(3, 1), (3, 4), (2, 3, 4), (0, 1)])
def test_expand_broadcasts_both_ways(shape: tuple[int, ...]) -> None:
    data = np.random.default_rng(5).integers(-9, 9, (shape[-2], 1))
    want = data * np.ones(shape, np.int64)
    made = OPERATORS["Expand"]([data, np.array(shape)], {})
    assert made.shape == want.shape
    assert (made == want).all()


def test_a_table_without_elements_may_be_long() -> None:
    wanted = np.array([0, 1 << 40])
    assert OPERATORS["Expand"]([np.zeros((0, 1), np.int64), wanted], {}).shape == (0, 1 << 40)
