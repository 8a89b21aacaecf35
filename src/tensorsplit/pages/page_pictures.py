"""The pictures of the documentation, as SVG; `python scripts/pages.py docs` writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorsplit.arrays.typed import GivenShape
from tensorsplit.core.rules import LengthRule, ceil, equal, explicit, remainder
from tensorsplit.core.schema import Operator
from tensorsplit.pages.content import Page, rules_with_operands
from tensorsplit.pages.explained import explain
from tensorsplit.pictures.svg import Drawn, sheet

PICTURES: dict[str, tuple[str, tuple[int, ...], dict[str, object]]] = {
    "split.svg": ("onnx.Split-18", (7, 4), {"num_outputs": 3}),
    "outside.svg": ("openvino.VariadicSplit-1", (6,), {"axis": 0, "split_lengths": [-1, 7]}),
    "refused.svg": ("onnx.Split-18", (5,), {"num_outputs": 4}),
}
"""The pictures of guides and of the README: an operator, a shape and its operands."""

_REFUSED: dict[LengthRule, tuple[tuple[int, ...], object]] = {
    explicit: ((6,), [2, 3]),
    remainder: ((6,), [-1, 7]),
    equal: ((7,), 2),
    ceil: ((5,), 4),
}
"""A shape and lengths that each rule refuses."""


def pictures() -> dict[str, str]:
    """Return each file of the folder of pictures, by its name."""
    return {
        name: sheet([(_call(operands), _drawn(operator, shape, operands))])
        for name, (operator, shape, operands) in PICTURES.items()
    }


def operator_picture(record: Operator, page: Page) -> str:
    """Draw the examples of an operator page, and for each length rule a split that it refuses."""
    asked = [(example.shape, example.operands) for example in page.examples]
    for rule, operand in rules_with_operands(record):
        if rule in _REFUSED:
            shape, given = _REFUSED[rule]
            asked.append((shape, {record.axis: 0, operand: given}))
    figures = [(_call(operands), _drawn(record.id, shape, operands)) for shape, operands in asked]
    return sheet(figures, name=record.id)


def _call(operands: Mapping[str, object]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in operands.items())


def _drawn(operator: str, shape: GivenShape, operands: dict[str, Any]) -> Drawn:
    (split,) = explain(operator, shape, **operands).splits
    if split.drawn is None:
        raise ValueError(f"{operator} of {shape}: there is nothing to draw")
    return split.drawn
