"""What takes or gives tensors without elements."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir
from onnx import defs

from tensorsplit.core.dimensions import are_known
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.model.features.forms import sparse_initializers
from tensorsplit.model.features.values import is_empty
from tensorsplit.model.graph.nodes import (
    NodeRef,
    attribute_of,
    constant,
    fixed_tensor_of,
    is_vendor_split,
    order_of,
)
from tensorsplit.model.graph.producers import passed_from
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.validity.node_errors import types_of

_INDICES = {"tensor(int32)", "tensor(int64)"}


def empty_operands(ref: NodeRef) -> list[int]:
    """Return the places of a node's data that are constants without elements.

    Operands that are left out so, as those of `Resize` are (up to opset 12 they can't be absent),
    and those that are integers only, such as shapes and axes, are none.
    """
    empty = [i for i, held in enumerate(ref.node.inputs) if held is not None and _holds_none(held)]
    if not empty or is_vendor_split(ref.node) or ref.op_type == "Resize":
        return [place for place in empty if place == 0]
    schema = ref.schema
    if schema is None or not schema.inputs:
        return []
    last = len(schema.inputs) - 1
    return [place for place in empty if _is_data(schema, schema.inputs[min(place, last)])]


def _holds_none(held: ir.Value) -> bool:
    """Return whether a value is a constant without elements."""
    tensor = fixed_tensor_of(held)
    return tensor is not None and 0 in tensor.shape


def _is_data(schema: defs.OpSchema, formal: defs.OpSchema.FormalParameter) -> bool:
    is_optional = formal.option == defs.OpSchema.FormalParameterOption.Optional
    return not is_optional and not types_of(schema, formal) <= _INDICES


def gives_empty_constant(node: ir.Node) -> bool:
    """Return whether a graph gives out a constant without elements as it is."""
    return any(value.is_graph_output() and _holds_none(value) for value in node.outputs)


def of_constant_operands(ref: NodeRef) -> Iterator[tuple[str, object]]:
    """Yield what holds of the constants that a node takes or gives out."""
    if sparse_initializers(ref.node):
        yield "sparse_initializer", True
    if gives_empty_constant(ref.node) or empty_operands(ref):
        yield "empty_constant", True


def of_no_elements(node: ir.Node, facts: Facts, seen: Facts) -> Iterator[str]:
    """Yield what holds of a node that takes or gives no elements."""
    if _is_flattened(node, facts):
        yield "flattened"
    if _loses_dimension(node, seen):
        yield "lost_dimension"
    if _calculates_from_nothing(node, facts):
        yield "calculated_from_nothing"
    if node.op_type == "TopK" and _number_of_top(node, facts) == 0:
        yield "top_of_none"
    if _expands_to_nothing(node, facts):
        yield "expanded_to_nothing"
    elif node.op_type == "Expand" and node.inputs and is_empty(node.inputs[0], seen):
        yield "expanded_from_nothing"
    if _takes_nothing(node, facts, seen):
        yield "takes_nothing"
    elif _takes_from_nothing(node, facts, seen):
        yield "taken_from_nothing"


def flattened_at(node: ir.Node, facts: Facts) -> int | None:
    """Return the axis of a Flatten from the front, where it is known."""
    axis: int | None = attribute_of(node, "axis", ir.AttributeType.INT, 1)
    if axis is None or axis >= 0:
        return axis
    shape = facts.tensor(node.inputs[0]).shape if node.inputs else None
    return None if shape is None else axis + len(shape)


def _is_flattened(node: ir.Node, facts: Facts) -> bool:
    """Return whether more than one axis comes before a Flatten's of data maybe without elements."""
    if node.op_type != "Flatten" or not node.inputs or (flattened_at(node, facts) or 0) < 2:
        return False
    shape = facts.tensor(node.inputs[0]).shape
    return shape is None or 0 in shape or not are_known(shape)


def _loses_dimension(node: ir.Node, seen: Facts) -> bool:
    """Return whether a node gives an empty tensor another shape, of which one number is not seen.

    That one follows from the number of elements, which is 0 whatever it is.
    """
    if node.op_type not in ("Squeeze", "Transpose", "Unsqueeze") or not node.inputs:
        return False
    shape = seen.tensor(node.inputs[0]).shape or ()
    if 0 not in shape or shape.count(None) != 1:
        return False
    if node.op_type != "Transpose":
        return True
    moved = [
        axis
        for axis in order_of(node, len(shape))
        if axis in range(len(shape)) and shape[axis] != 1
    ]
    return moved == sorted(moved)


def _calculates_from_nothing(node: ir.Node, facts: Facts) -> bool:
    """Return whether an Einsum of several tensors or a recurrent layer takes no elements."""
    if node.op_type == "Einsum":
        return len(node.inputs) > 1 and any(is_empty(held, facts) for held in node.inputs)
    is_recurrent = node.op_type in ("GRU", "LSTM", "RNN") and bool(node.inputs)
    return is_recurrent and is_empty(node.inputs[0], facts)


def _number_of_top(node: ir.Node, facts: Facts) -> int | None:
    """Return how many elements a TopK takes, which is an attribute before opset 10."""
    if len(node.inputs) < 2:
        number: int | None = attribute_of(node, "k", ir.AttributeType.INT)
        return number
    return next(iter(facts.tensor(node.inputs[1]).constant or ()), None)


def _expands_to_nothing(node: ir.Node, facts: Facts) -> bool:
    """Return whether an Expand makes a dimension 0 that may be 1."""
    if node.op_type != "Expand" or len(node.inputs) != 2:
        return False
    shape = facts.tensor(node.inputs[0]).shape or ()
    lengths = facts.tensor(node.inputs[1]).values or ()
    pairs = zip(shape[::-1], lengths[::-1], strict=False)
    return any(length == 0 and dim != 0 for dim, length in pairs)


def _takes_nothing(node: ir.Node, facts: Facts, seen: Facts) -> bool:
    """Return whether a node is seen to take no elements along an axis, whatever its data holds.

    Strings are left out: those are taken one by one.
    """
    if node.op_type not in ("Compress", "Gather") or len(node.inputs) < 2:
        return False
    if ir.DataType.STRING in facts.element_types(node.inputs[0]):
        return False
    shape = seen.tensor(node.inputs[1]).shape
    if shape is not None and are_known(shape) and shape.count(0) == 1:
        return True
    taken = facts.tensor(node.inputs[1])
    known = taken.constant if taken.constant is not None else constant(passed_from(node.inputs[1]))
    return node.op_type == "Compress" and known is not None and not np.any(known)


def _takes_from_nothing(node: ir.Node, facts: Facts, seen: Facts) -> bool:
    """Return whether a Gather's data and result are seen to have no elements, at one axis."""
    if node.op_type != "Gather" or (len(node.inputs), len(node.outputs)) != (2, 1):
        return False
    shapes = seen.tensor(node.inputs[0]).shape, facts.tensor(node.outputs[0]).shape
    return all(shape is not None and are_known(shape) and shape.count(0) == 1 for shape in shapes)


_INPUTS_OF_GATHER = 3


def of_empty_layers(node: ir.Node, facts: Facts) -> Iterator[str]:
    """Yield what holds of a Gather layer of a known shape that gives no elements.

    Strings are left out.
    """
    is_gather = (node.domain, node.op_type) == (DOMAIN, "Gather")
    if not is_gather or len(node.inputs) != _INPUTS_OF_GATHER:
        return
    given, made = facts.tensor(node.inputs[0]), facts.tensor(node.outputs[0])
    are_seen = all(each.shape is not None and are_known(each.shape) for each in (given, made))
    if are_seen and 0 in (made.shape or ()) and made.element_type != ir.DataType.STRING:
        takes_none = facts.tensor(node.inputs[1]).shape == (0,)
        yield "takes_nothing" if takes_none else "taken_from_nothing"
