"""The operands of a node of an ONNX model, as OpenVINO's import shows them to an extension."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tensorsplit.core.errors import SplitError
from tensorsplit.core.operands import Operand
from tensorsplit.core.records import operators
from tensorsplit.core.records.openvino import ELEMENT_TYPES
from tensorsplit.core.resolve import bind
from tensorsplit.core.schema import Operator
from tensorsplit.openvino.node_maker import Value

_ABSENT = "NullNode"
_NUMBERS = frozenset(
    {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
    | {"float16", "float", "double"}
)


class Given(NamedTuple):
    """A split node as far as an extension knows it.

    Attributes:
        operator: The version that it is read as.
        operands: What it gives, by the names of the standard.
        data: The tensor to split.
        values: The inputs after the data that are given, by name.
    """

    operator: Operator
    operands: list[tuple[str, Operand]]
    data: Value
    values: dict[str, Value]

    @property
    def lengths(self) -> Value | None:
        """The input that gives the lengths."""
        ways = [self.values.get(entry.operand) for entry in self.operator.lengths]
        return next((value for value in ways if value is not None), None)

    @property
    def is_counted(self) -> bool:
        """Whether its operands give the number of parts."""
        if self.lengths is None:
            ways = {entry.operand for entry in self.operator.lengths}
            return any(name in ways for name, _ in self.operands)
        shape = self.lengths.get_partial_shape()
        return bool(shape.rank.is_static and (len(shape) != 1 or shape[0].is_static))


def read(context: Any, name: str, vendor: str) -> Given:
    """Read a split node from an ``openvino.frontend.NodeContext``.

    OpenVINO gives neither the opset nor the number of outputs. So a node is read as the newest
    version that takes what it gives; versions that share their operands differ in nothing that a
    node shows here. A node that no version takes is refused with the message of the newest.
    """
    versions = [
        record for record in operators.values() if (record.vendor, record.name) == (vendor, name)
    ]
    versions.sort(key=lambda record: record.since_version, reverse=True)
    data, *inputs = (context.get_input(place) for place in range(context.get_input_size()))
    attributes = {
        entry.name: _attribute(context.get_attribute(entry.name))
        for record in versions
        for entry in record.attributes
        if context.has_attribute(entry.name)
    }
    readings = []
    for record in versions:
        names = [parameter.name for parameter in record.inputs[1:]]
        names += [f"input {place}" for place in range(len(names) + 1, len(inputs) + 1)]
        values = {
            called: value
            for called, value in zip(names, inputs, strict=False)
            if value.get_node().get_type_name() != _ABSENT
        }
        operands = [*attributes.items(), *((each, operand_of(values[each])) for each in values)]
        readings.append(Given(record, operands, data, values))
    return next(filter(_is_taken, readings), readings[0])


def _is_taken(given: Given) -> bool:
    try:
        bind(given.operator, given.operands, 1)
    except SplitError:
        return False
    return True


def _attribute(value: Any) -> Operand:
    is_list = isinstance(value, (list, tuple))
    return Operand(tuple(value) if is_list else (value,), int(is_list), None, "attribute")


def operand_of(value: Value) -> Operand:
    """Return the known facts about an input: all of a constant, else its rank and element type."""
    shape = shape_of(value)
    rank = None if shape is None else len(shape)
    return Operand(constant_values(value), rank, element_type(value), "input")


def constant_values(value: Value) -> tuple[int | float, ...] | None:
    """Return the elements of a constant of numbers; None for anything else."""
    node = value.get_node()
    if node.get_type_name() != "Constant" or element_type(value) not in _NUMBERS:
        return None
    return tuple(np.asarray(node.data).reshape(-1).tolist())


def element_type(value: Value) -> str | None:
    """Return the element type by the package's name; None if it is not known."""
    return ELEMENT_TYPES.get(value.get_element_type().get_type_name())


def shape_of(value: Value) -> tuple[int | None, ...] | None:
    """Return the shape, with None for unknown dimensions; None if not even the rank is known."""
    shape = value.get_partial_shape()
    if shape.rank.is_dynamic:
        return None
    return tuple(size.get_length() if size.is_static else None for size in shape)
