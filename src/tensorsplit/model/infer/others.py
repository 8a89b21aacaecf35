"""Types and shapes of operators outside the family: onnx's own inference, one node at a time.

A node at a time keeps the cost linear, and keeps split nodes away from it. Small integer tensors
that follow from shapes are calculated here, so that lengths computed by a graph are seen through.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeGuard

import numpy as np
import onnx
import onnx_ir as ir

from tensorsplit.core.dimensions import Dim, Shape, add, combine, is_known, times
from tensorsplit.model.graph.facts import UNKNOWN, Fact, Other, Sequence, Tensor
from tensorsplit.model.graph.nodes import bodies, domain_name, readable_constant

_MAX_VALUES = 1024


def infer(
    node: ir.Node,
    inputs: list[Fact],
    opsets: Mapping[str, int],
    values: tuple[Dim, ...] | None,
) -> list[Fact]:
    """What onnx's inference says of the outputs of a node.

    Args:
        node: The node, outside the family.
        inputs: What is known of each input.
        opsets: The opset of each domain where the node stands.
        values: The elements of the first output, if they were calculated.

    Returns:
        A fact for each output; nothing is known where onnx refuses.
    """
    domain = domain_name(node.domain)
    found: dict[str, onnx.TypeProto] = {}
    try:
        schema = onnx.defs.get_schema(node.op_type, opsets[domain], domain)
        if not any(bodies(node)):  # onnx would look at the split nodes in a body, and may abort
            found = _ask(schema, node, inputs, opsets)
    except (
        KeyError,
        onnx.checker.ValidationError,
        onnx.defs.SchemaError,
        onnx.shape_inference.InferenceError,
        ir.serde.SerdeError,
        OverflowError,
        TypeError,
        ValueError,
        RuntimeError,
    ):
        pass
    outputs = [_fact(found.get(value.name or "")) for value in node.outputs]
    if values is not None and outputs and _fits(outputs[0], values):
        outputs[0] = replace(outputs[0], values=values)
    return outputs


def _fits(fact: Fact, values: tuple[Dim, ...]) -> TypeGuard[Tensor]:
    """Whether the elements are all of a tensor of rank 0 or 1."""
    if not isinstance(fact, Tensor) or fact.shape is None:
        return False
    return fact.shape in ((), (len(values),)) and (fact.shape != () or len(values) == 1)


def _ask(
    schema: onnx.defs.OpSchema,
    node: ir.Node,
    inputs: list[Fact],
    opsets: Mapping[str, int],
) -> dict[str, onnx.TypeProto]:
    types: dict[str, onnx.TypeProto] = {}
    data: dict[str, onnx.TensorProto] = {}
    for value, fact in zip(node.inputs, inputs, strict=True):
        if value is None:
            continue
        name = value.name or ""
        types[name] = _type_proto(fact)
        if isinstance(fact, Tensor) and fact.constant is not None and fact.shape is not None:
            array = np.array(fact.constant, _NUMPY.get(fact.element_type, np.int64))
            data[name] = onnx.numpy_helper.from_array(array.reshape(fact.shape), name)
    proto = ir.serde.serialize_node(node)
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    return onnx.shape_inference.infer_node_outputs(
        schema, proto, types, data, opset_imports=imports
    )


_NUMPY: dict[ir.DataType | None, Any] = {ir.DataType.INT32: np.int32, ir.DataType.INT64: np.int64}


def _type_proto(fact: Fact) -> onnx.TypeProto:
    proto = onnx.TypeProto()
    if isinstance(fact, Other):
        if fact.type is not None:
            ir.serde.serialize_type_into(proto, fact.type)
        return proto
    tensor = (
        proto.tensor_type if isinstance(fact, Tensor) else proto.sequence_type.elem_type.tensor_type
    )
    if fact.element_type is None:
        return onnx.TypeProto()
    tensor.elem_type = int(fact.element_type)
    shape = fact.shape if isinstance(fact, Tensor) else fact.part
    if shape is not None:
        tensor.shape.SetInParent()
        for dim in shape:
            entry = tensor.shape.dim.add()
            if is_known(dim):
                entry.dim_value = dim
            elif dim is not None:
                entry.dim_param = str(dim)
    return proto


def _fact(proto: onnx.TypeProto | None) -> Fact:
    if proto is None:
        return UNKNOWN
    if proto.HasField("tensor_type"):
        return Tensor(*_tensor(proto.tensor_type))
    if proto.HasField("sequence_type") and proto.sequence_type.elem_type.HasField("tensor_type"):
        return Sequence(*_tensor(proto.sequence_type.elem_type.tensor_type))
    typed = ir.serde.deserialize_type_proto_for_type(proto)
    return UNKNOWN if typed is None else Other(typed)


def _tensor(proto: onnx.TypeProto.Tensor) -> tuple[ir.DataType | None, Shape | None]:
    element_type = ir.DataType(proto.elem_type) if proto.elem_type else None
    if not proto.HasField("shape"):
        return element_type, None
    dims = tuple(
        (dim.dim_value if dim.dim_value >= 0 else None)
        if dim.HasField("dim_value")
        else (dim.dim_param or None)
        for dim in proto.shape.dim
    )
    return element_type, dims


def compute_values(node: ir.Node, inputs: list[Fact], opset: int) -> tuple[Dim, ...] | None:
    """The elements of a small integer tensor that a node makes, where they follow from shapes."""
    rule = _VALUES.get(node.op_type)
    if rule is None:
        return None
    values = rule(node, inputs, opset)
    return None if values is None or len(values) > _MAX_VALUES else values


def _constant(node: ir.Node, _: list[Fact], __: int) -> tuple[Dim, ...] | None:
    array = readable_constant(node.outputs[0]) if node.outputs else None
    if array is None or array.ndim > 1 or array.dtype not in (np.int64, np.int32, np.bool_):
        return None
    return tuple(map(int, array.ravel().tolist()))


def _shape(node: ir.Node, inputs: list[Fact], opset: int) -> tuple[Dim, ...] | None:
    fact = inputs[0]
    if not isinstance(fact, Tensor) or fact.shape is None:
        return None
    bounds = (
        [node.attributes.get("start"), node.attributes.get("end")] if opset >= 15 else [None, None]
    )
    if any(bound is not None and bound.is_ref() for bound in bounds):
        return None
    start, end = (None if bound is None else bound.as_int() for bound in bounds)
    return fact.shape[start:end]


def _same(_: ir.Node, inputs: list[Fact], __: int) -> tuple[Dim, ...] | None:
    return _values(inputs, 0)


def _cast(node: ir.Node, inputs: list[Fact], _: int) -> tuple[Dim, ...] | None:
    to = node.attributes.get("to")
    integers = (int(ir.DataType.INT64), int(ir.DataType.INT32))
    if to is None or to.is_ref() or to.type != ir.AttributeType.INT or to.as_int() not in integers:
        return None
    return _values(inputs, 0)


def _gather(node: ir.Node, inputs: list[Fact], _: int) -> tuple[Dim, ...] | None:
    values = _values(inputs, 0)
    indices = inputs[1].constant if len(inputs) > 1 and isinstance(inputs[1], Tensor) else None
    axis = node.attributes.get("axis")
    if values is None or indices is None or (axis is not None and (axis.is_ref() or axis.as_int())):
        return None
    if any(not -len(values) <= index < len(values) for index in indices):
        return None
    return tuple(values[index] for index in indices)


def _concat(_: ir.Node, inputs: list[Fact], __: int) -> tuple[Dim, ...] | None:
    found: list[Dim] = []
    for index in range(len(inputs)):
        values = _values(inputs, index)
        if values is None:
            return None
        found += values
    return tuple(found)


def _slice(_: ir.Node, inputs: list[Fact], opset: int) -> tuple[Dim, ...] | None:
    values = _values(inputs, 0)
    bounds = [fact.constant if isinstance(fact, Tensor) else None for fact in inputs[1:]]
    if opset < 10 or values is None or len(bounds) < 2:
        return None
    if any(bound is None or len(bound) != 1 for bound in bounds):
        return None
    start, end = bounds[0], bounds[1]
    step = bounds[3] if len(bounds) > 3 else (1,)
    if not start or not end or not step or step[0] <= 0:
        return None
    return values[start[0] : end[0] : step[0]]


def _arithmetic(rule: Callable[[Dim, Dim], Dim]) -> Callable[..., tuple[Dim, ...] | None]:
    def apply(_: ir.Node, inputs: list[Fact], __: int) -> tuple[Dim, ...] | None:
        left, right = _values(inputs, 0), _values(inputs, 1)
        if left is None or right is None:
            return None
        if len(left) != len(right):
            if len(left) == 1:
                left *= len(right)
            elif len(right) == 1:
                right *= len(left)
            else:
                return None
        return tuple(rule(a, b) for a, b in zip(left, right, strict=True))

    return apply


def _divide(left: Dim, right: Dim) -> Dim:
    """Integer division truncates in ONNX; lengths are not negative, so it rounds down as well."""
    if not is_known(right) or right <= 0 or (is_known(left) and left < 0):
        return None
    return combine(lambda a, b: a // b, left, right)


def _values(inputs: list[Fact], index: int) -> tuple[Dim, ...] | None:
    fact = inputs[index] if index < len(inputs) else UNKNOWN
    return fact.values if isinstance(fact, Tensor) else None


_VALUES: Mapping[str, Callable[[ir.Node, list[Fact], int], tuple[Dim, ...] | None]] = {
    "Constant": _constant,
    "Shape": _shape,
    "Identity": _same,
    "Squeeze": _same,
    "Unsqueeze": _same,
    "Reshape": _same,
    "Cast": _cast,
    "Gather": _gather,
    "Concat": _concat,
    "Slice": _slice,
    "Add": _arithmetic(add),
    "Sub": _arithmetic(lambda a, b: combine(lambda x, y: x - y, a, b)),
    "Mul": _arithmetic(times),
    "Div": _arithmetic(_divide),
}
"""How the elements follow, by operator; the first output's rank is 0 or 1."""
