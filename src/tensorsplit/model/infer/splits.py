"""Types and shapes of the outputs of a split node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from tensorsplit.core.dimensions import Shape
from tensorsplit.core.errors import UNKNOWN_COUNT, SplitError
from tensorsplit.core.plan import UncountedPlan
from tensorsplit.core.resolve import Intent, check_element_type, plan
from tensorsplit.core.rules import explicit
from tensorsplit.model.graph.binding import bind
from tensorsplit.model.graph.facts import Fact, Sequence, Tensor, of_parts
from tensorsplit.model.graph.nodes import is_split, is_vendor_split

__all__ = ["bind_facts", "infer", "is_split", "is_vendor_split"]


def bind_facts(
    node: ir.Node, inputs: list[Fact], opset: int, attributes: Mapping[str, Any] | None
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
    return bind(node, opset, inputs, attributes)


def infer(
    node: ir.Node, inputs: list[Fact], opset: int, attributes: Mapping[str, Any] | None
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
