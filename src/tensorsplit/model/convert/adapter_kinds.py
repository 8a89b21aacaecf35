"""Adapters, and the kinds of change that many operators share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from tensorsplit.model.convert.conversion import NodeConversion
from tensorsplit.model.convert.operator_versions import VersionStep
from tensorsplit.model.graph.opsets import attribute_type, existing_schema

Adapter: TypeAlias = Callable[[NodeConversion], object]
"""Takes one step with a node: rewrites it for the opset of the step, or refuses (TS512).

What the step's schemas change besides is brought in line, or refused, after it.
"""


def table(*rows: tuple[str, int, Adapter | None, Adapter | None]) -> dict[VersionStep, Adapter]:
    """Return adapters by step, from rows of operators, newer version, adapters up and down."""
    return {
        VersionStep(name, boundary, is_up): adapter
        for names, boundary, up, down in rows
        for name in names.split()
        for is_up, adapter in ((True, up), (False, down))
        if adapter is not None
    }


def only(name: str, *allowed: str) -> Adapter:
    """Refuse values of an attribute that the older version does not know (TS512)."""

    def adapt(node: NodeConversion) -> None:
        value = node.attribute(name)
        if value is not None and value not in allowed:
            raise node.refusal(
                f"its attribute '{name}' is {value!r}; opset {node.opset} knows"
                f" {', '.join(sorted(allowed))}"
            )

    return adapt


def stated(name: str, value: Any) -> Adapter:
    """Set an attribute that requests what the older version always does."""
    return lambda node: node.node.attributes.setdefault(
        name, ir.convenience.convert_attribute(name, value)
    )


def dropped(name: str) -> Adapter:
    """Remove an attribute that asks for what the other version always does."""
    return lambda node: node.take(name)


def take_only(node: NodeConversion, name: str, value: object) -> None:
    """Remove an attribute whose only value in the older version is this one (else TS512)."""
    if node.take(name) != value:
        raise node.refusal(
            f"opset {node.opset} always does what '{name}' = {value!r} asks for",
            f"set '{name}' to {value!r}, if that is meant",
        )


def renamed(op_type: str) -> Adapter:
    """Give the operator its other name."""

    def adapt(node: NodeConversion) -> None:
        node.node.op_type = op_type

    return adapt


def attribute_renamed(old: str, new: str) -> Adapter:
    """Give an attribute its other name."""
    return lambda node: node.put(**{new: node.take(old)})


def to_inputs(*names: str) -> Adapter:
    """Turn attributes into the inputs after the data, in this order."""
    return lambda node: node.set_inputs(
        node.input(0), *(attribute_to_input(node, name) for name in names)
    )


def to_attributes(*names: str) -> Adapter:
    """Turn the inputs after the data into attributes, in this order."""

    def adapt(node: NodeConversion) -> None:
        for index, name in enumerate(names, 1):
            input_to_attribute(node, index, name)
        node.keep_inputs(1)

    return adapt


def attribute_to_input(node: NodeConversion, name: str) -> ir.Value | None:
    """Remove an attribute, and make a constant of its numbers; None if it is absent."""
    attribute = node.node.attributes.get(name)
    if attribute is None:
        return None
    is_float = attribute.type in (ir.AttributeType.FLOAT, ir.AttributeType.FLOATS)
    return node.make.constant(node.take(name), np.float32 if is_float else np.int64)


def input_to_attribute(node: NodeConversion, index: int, name: str) -> None:
    """Make an attribute of what a constant input holds (else TS512); the input stays for now."""
    value = node.input(index)
    if value is None:
        return
    kind = attribute_type(existing_schema(node.op_type, node.opset).attributes[name])
    array = node.needed(index, name)
    number: Any = int if kind.startswith("INT") else float
    held = [number(item) for item in array.ravel()] if kind[-1] == "S" else number(array.item())
    node.node.attributes[name] = ir.Attr(name, ir.AttributeType[kind], held)
