"""Formulas as nodes of an OpenVINO model that is being made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np
import openvino
from openvino import opset8 as ops

from tensorsplit.core.arithmetic import Formula, Number, value
from tensorsplit.core.maker import Maker

Value: TypeAlias = Any
"""An ``openvino.Output``."""

_FAR = (1 << 31) - 1
_NODES: dict[str, Callable[..., Value]] = {
    "add": ops.add,
    "subtract": ops.subtract,
    "multiply": ops.multiply,
    "near_quotient": lambda left, right: _truncated(ops.divide(left, right)),
    "minimum": ops.minimum,
    "maximum": ops.maximum,
    "less": ops.less,
    "equal": ops.equal,
    "both": ops.logical_and,
    "choose": ops.select,
    "one_if": lambda condition: ops.convert(condition, "i64"),
    "near_total": lambda numbers: ops.reduce_sum(numbers, constant([0]), True),
    "sums": lambda numbers: ops.cum_sum(numbers, constant(0)),
    "joined": lambda *lists: ops.concat(list(lists), 0),
    "pick": lambda numbers, index: ops.gather(numbers, index, constant(0)),
    "head": lambda numbers, count: ops.slice(numbers, constant([0]), count, constant([1])),
    "tail": lambda numbers, start: ops.slice(numbers, start, constant([_FAR]), constant([1])),
    "shaped": lambda numbers, count: ops.reshape(numbers, count, False),
    "size_of": lambda numbers: ops.shape_of(numbers, "i64"),
    "dimension": lambda data, axis: ops.gather(ops.shape_of(data, "i64"), axis, constant(0)),
}
"""What makes the node of each operation."""


def _truncated(quotient: Any) -> Any:
    """Round a quotient toward zero, as the CPU plugin does in either case."""
    quotient.set_attribute("m_pythondiv", False)
    return quotient


class NodeMaker(Maker[Value]):
    """Makes nodes of formulas, and splits tensors by them.

    Guards, the nodes at which the running model stops, get a name if one is given.
    """

    rounds_integers = True

    def __init__(self, guard: str = "") -> None:
        super().__init__()
        self._guard = guard

    def constant_list(self, values: Iterable[int]) -> Value:
        """Make int64 integers of rank 1."""
        return constant(values)

    def apply(self, operation: str, operands: list[Value]) -> Value:
        """Return the node of an operation; see `Maker.apply`."""
        made: Value = _NODES[operation](*operands).output(0)
        if self._guard and operation == "shaped":
            made.get_node().set_friendly_name(self._guard)
        return made

    def scalar(self, number: Number) -> Value:
        """Return a number as int64 of rank 0."""
        if isinstance(number, int):
            return constant(number)
        return ops.squeeze(self.make(number), constant([0])).output(0)

    def slice(self, data: Value, start: Number, end: Number, axis: Number) -> Value:
        """Return the elements from one position to below another along an axis.

        Strings are taken one by one: OpenVINO splits them wrongly (D17).
        """
        if data.get_element_type() == openvino.Type.string:
            first, last = self.scalar(start), self.scalar(end)
            limit = ops.select(ops.less(first, last), last, first)
            positions = ops.range(first, limit, constant(1), "i64")
            return ops.gather(data, positions, self.make(axis)).output(0)
        bounds = (self.make(start), self.make(end), constant([1]))
        return ops.slice(data, *bounds, self.make(axis)).output(0)


def constant(values: int | Iterable[int]) -> Value:
    """Make int64 integers: one of rank 0, or a list."""
    held = values if isinstance(values, int) else list(values)
    return ops.constant(np.array(held, np.int64)).output(0)


def number(held: Value) -> Formula:
    """Return a value of any shape that holds one integer."""
    return value(ops.reshape(as_int64(held), constant([1]), False).output(0))


def as_int64(held: Value) -> Value:
    """Convert integers of any type to int64."""
    if held.get_element_type() == openvino.Type.i64:
        return held
    return ops.convert(held, "i64").output(0)


def itself(held: Value) -> Value:
    """Pass a tensor through a node: the import renames the outputs that a conversion returns."""
    return ops.concat([held], 0).output(0)
