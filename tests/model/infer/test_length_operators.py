"""Operators that lengths are calculated with: what is too large is left unknown, not made."""

from __future__ import annotations

import numpy as np
import pytest

from tensorsplit.model.infer.length_operators import (
    MOST_ELEMENTS,
    OPERATORS,
    Attributes,
    UnknownResultError,
)

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
    ],
)
def test_what_broadcasts_to_very_many_elements_is_left_unknown(
    operator: str, inputs: list[object], attributes: Attributes
) -> None:
    with pytest.raises(UnknownResultError):
        OPERATORS[operator](inputs, attributes)


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
