"""Types and shapes of the outputs of a split node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from tensorsplit.core.dimensions import Shape
from tensorsplit.core.errors import UNKNOWN_COUNT, SplitError
from tensorsplit.core.operands import Operand
from tensorsplit.core.plan import UncountedPlan
from tensorsplit.core.resolve import Intent, check_element_type, plan
from tensorsplit.core.rules import explicit
from tensorsplit.model.graph.binding import VENDOR_SPLIT, Known, bind_node
from tensorsplit.model.graph.facts import Fact, Sequence, Tensor, of_parts
from tensorsplit.model.graph.nodes import as_proto, is_split, is_vendor_split

__all__ = ["bind_facts", "infer", "is_split", "is_vendor_split"]


def bind_facts(
    node: ir.Node, inputs: list[Fact], opset: int, attributes: Mapping[str, Any]
) -> Intent:
    """What a split node asks for, as far as facts tell.

    Args:
        node: The node.
        inputs: What is known of each input.
        opset: The opset of ONNX's domain where the node stands.
        attributes: The values of the attributes of the function around it, in one call.

    Raises:
        SplitError: TS101 to TS107, TS305, TS502.
    """
    if is_vendor_split(node):
        opset = VENDOR_SPLIT.since_version
    linked = {
        name: attributes[attribute.ref_attr_name or ""]
        for name, attribute in node.attributes.items()
        if attribute.is_ref() and attribute.ref_attr_name in attributes
    }
    known: list[Known] = [
        None if value is None else _operand(fact)
        for value, fact in zip(node.inputs, inputs, strict=True)
    ]
    proto = as_proto(node)
    given = [a for a in proto.attribute if not a.ref_attr_name or a.name in linked]
    if len(given) < len(proto.attribute):  # what the call does not give is absent in the node
        del proto.attribute[:]
        proto.attribute.extend(given)
    return bind_node(proto, opset, known, linked)


def infer(
    node: ir.Node, inputs: list[Fact], opset: int, attributes: Mapping[str, Any]
) -> list[Fact]:
    """What is known of the outputs of a split node.

    Args:
        node: The node.
        inputs: What is known of each input.
        opset: The opset of ONNX's domain where the node stands.
        attributes: The values of the attributes of the function around it, in one call.

    Raises:
        SplitError: TS101 to TS308, TS502 for what the node may not ask for.
    """
    intent = bind_facts(node, inputs, opset, attributes)
    data = inputs[0]
    if not isinstance(data, Tensor):
        data = Tensor()
    if data.element_type is not None:
        name = data.element_type.name.lower()
        parameter = intent.operator.inputs[0].name
        check_element_type(intent.operator.id, name, intent.element_types, parameter)
    if data.shape is None:
        return _unranked(intent, data)
    try:
        made = plan(intent, data.shape)
    except SplitError as error:
        if error.kind is not UNKNOWN_COUNT:
            raise
        return _open_lengths(intent, data.element_type, data.shape, inputs)
    if isinstance(made, UncountedPlan):
        return [Sequence(data.element_type, made.part_shape, made.count)]
    if intent.operator.is_sequence:
        return [of_parts(data.element_type, made.output_shapes)]
    return [Tensor(data.element_type, shape) for shape in made.output_shapes]


def _operand(fact: Fact) -> Known:
    if isinstance(fact, Sequence):
        return []
    if not isinstance(fact, Tensor):
        return Operand(None, None, None, "input")
    rank = None if fact.shape is None else len(fact.shape)
    element_type = None if fact.element_type is None else fact.element_type.name.lower()
    return Operand(fact.values, rank, element_type, "input")


def _unranked(intent: Intent, data: Tensor) -> list[Fact]:
    if intent.operator.is_sequence:
        listed = intent.rule is explicit and intent.given is not None
        count = len(intent.given or ()) if listed else None
        return [Sequence(data.element_type, None, count)]
    return [Tensor(data.element_type)] * (intent.outputs or 0)


def _open_lengths(
    intent: Intent, element_type: ir.DataType | None, shape: Shape, inputs: list[Fact]
) -> list[Fact]:
    """All but the length on the axis is known, and not even that where the axis is not."""
    rank = len(shape)
    part: list[Any] = [None] * rank
    if intent.axis is not None:
        part = list(shape)
        part[intent.axis % rank] = None
    if not intent.operator.is_sequence:
        return [Tensor(element_type, tuple(part))] * (intent.outputs or 0)
    lengths = inputs[1] if len(inputs) > 1 else None
    listed = isinstance(lengths, Tensor) and lengths.shape is not None and len(lengths.shape) == 1
    count = lengths.shape[0] if isinstance(lengths, Tensor) and listed and lengths.shape else None
    return [Sequence(element_type, tuple(part), count)]
