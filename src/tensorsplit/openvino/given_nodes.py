"""What a node of an ONNX model gives, as OpenVINO's import shows it to an extension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tensorsplit.core.dimensions import Shape
from tensorsplit.core.operands import Operand
from tensorsplit.core.records import operators
from tensorsplit.core.records.openvino import ELEMENT_TYPES
from tensorsplit.core.schema import Operator
from tensorsplit.openvino.node_maker import Value

_ABSENT = "NullNode"


class Given(NamedTuple):
    """A split node as far as an extension is told of it.

    Attributes:
        operator: The version that it is read as.
        operands: What it gives, by the names of the standard.
        data: The tensor to split.
        values: The inputs behind the data that are given, by name.
    """

    operator: Operator
    operands: list[tuple[str, Operand]]
    data: Value
    values: dict[str, Value]

    @property
    def is_counted(self) -> bool:
        """Whether its operands say how many parts there are, or it makes a sequence."""
        ways = {entry.operand for entry in self.operator.lengths}
        return self.operator.is_sequence or any(name in ways for name, _ in self.operands)


def read(context: Any, name: str, vendor: str) -> Given:
    """Read a split node from an ``openvino.frontend.NodeContext``.

    OpenVINO tells neither the opset nor the number of outputs. So a node is read as the newest
    version that has all the operands that it gives; versions that share their operands differ in
    nothing that a node shows here.
    """
    versions = [
        record for record in operators.values() if (record.vendor, record.name) == (vendor, name)
    ]
    versions.sort(key=lambda record: record.since_version, reverse=True)
    data, *rest = (context.get_input(place) for place in range(context.get_input_size()))
    inputs = [None if value.get_node().get_type_name() == _ABSENT else value for value in rest]
    attributes = _attributes(context, versions)
    record = next((one for one in versions if _takes(one, attributes, inputs)), versions[0])
    names = [parameter.name for parameter in record.inputs[1:]]
    names += [f"input {place}" for place in range(len(names) + 1, len(inputs) + 1)]
    values = {name: value for name, value in zip(names, inputs, strict=False) if value is not None}
    operands = [*attributes.items(), *((name, operand(value)) for name, value in values.items())]
    return Given(record, operands, data, values)


def _attributes(context: Any, versions: Sequence[Operator]) -> dict[str, Operand]:
    names = dict.fromkeys(entry.name for record in versions for entry in record.attributes)
    found = {}
    for name in filter(context.has_attribute, names):
        value = context.get_attribute(name)
        is_list = isinstance(value, (list, tuple))
        found[name] = Operand(
            tuple(value) if is_list else (value,), int(is_list), None, "attribute"
        )
    return found


def _takes(
    record: Operator, attributes: dict[str, Operand], inputs: Sequence[Value | None]
) -> bool:
    """Whether a version has these operands, and can do with no others."""
    if any(record.attribute(name) is None for name in attributes):
        return False
    places = zip(record.inputs[1:], inputs, strict=False)
    given = {entry.name: operand(value) for entry, value in places if value is not None}
    if len(given) < sum(value is not None for value in inputs):
        return False
    sources = {"attribute": attributes, "input": given}
    has_lengths = any(entry.operand in sources[entry.kind] for entry in record.lengths)
    return (has_lengths or record.absent is not None) and all(
        entry.element_type in (None, *record.types_of(parameter).element_types)
        for parameter in record.inputs[1:]
        if (entry := given.get(parameter.name)) is not None
    )


def operand(value: Value) -> Operand:
    """What is known of an input: all of a constant, else its rank and element type."""
    rank = value.get_partial_shape().rank
    known_rank = rank.get_length() if rank.is_static else None
    return Operand(constant_values(value), known_rank, element_type(value), "input")


def constant_values(value: Value) -> tuple[int | float, ...] | None:
    """The elements of a constant of numbers; None for anything else."""
    node = value.get_node()
    if node.get_type_name() != "Constant":
        return None
    kind = element_type(value)
    if kind is None or kind not in _NUMBERS:
        return None
    return tuple(np.asarray(node.data).reshape(-1).tolist())


_NUMBERS = frozenset(
    {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
    | {"float16", "float", "double"}
)


def element_type(value: Value) -> str | None:
    """The element type by the package's name; None if it is not known."""
    return ELEMENT_TYPES.get(value.get_element_type().get_type_name())


def shape_of(value: Value) -> Shape | None:
    """The shape, with None for dimensions that are not known; None if not even the rank is."""
    shape = value.get_partial_shape()
    if shape.rank.is_dynamic:
        return None
    return tuple(size.get_length() if size.is_static else None for size in shape)
