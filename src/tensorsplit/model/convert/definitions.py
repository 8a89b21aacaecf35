"""Nodes converted by others: by their operator's own definition, or by onnx's converter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import onnx
import onnx_ir as ir
from onnx import helper, version_converter

from tensorsplit.model.convert.conversion import Conversion, NodeConversion
from tensorsplit.model.convert.operator_versions import schema
from tensorsplit.model.graph.nodes import as_proto, bodies, constant


def is_plain(node: ir.Node) -> bool:
    """Whether a node has neither bodies nor attributes that a function's caller gives."""
    linked = any(attribute.is_ref() for attribute in node.attributes.values())
    return not linked and not any(bodies(node))


def by_definition(node: NodeConversion) -> bool:
    """Replace a node by the function of simpler operators that its schema gives.

    Returns:
        Whether there is one that can be used.
    """
    before = node.step.before
    entry = schema(node.step.op_type, before)
    proto = _definition(node, entry) if is_plain(node.node) else None
    if proto is None:
        return False
    produced = {name for inner in proto.node for name in inner.output} | set(proto.input)
    formal = list(proto.output)
    proto.output[:] = [name for name in formal if name in produced]
    try:
        function = ir.serde.deserialize_function(proto)
    except ir.serde.SerdeError:  # some definitions are no well-formed functions
        return False
    if any(any(bodies(inner)) for inner in function):
        return False
    _give_attributes(function, node.node, entry)
    made = {value.name: value for value in function.outputs}
    inputs = {value: node.input(index) for index, value in enumerate(function.inputs)}
    opset = function.opset_imports.get("", function.opset_imports.get("ai.onnx", before))
    _replace(node, opset, function, inputs, [made.get(name) for name in formal])
    return True


def _definition(node: NodeConversion, entry: Any) -> onnx.FunctionProto | None:
    """The definition in the newest opset that is not beyond the target, else in the oldest."""
    target = node.conversion.target
    if entry.has_function:
        opset = _nearest(entry.function_opset_versions, target)
        data = entry.get_function_with_opset_version(opset)
    elif entry.has_context_dependent_function:
        types = [_type_bytes(node.conversion, value) for value in node.node.inputs]
        if any(known is None for known in types):
            return None
        opset = _nearest(entry.context_dependent_function_opset_versions, target)
        message = as_proto(node.node).SerializeToString()
        data = entry.get_context_dependent_function_with_opset_version(opset, message, types)
    else:
        return None
    return onnx.FunctionProto.FromString(data) if data else None


def _nearest(versions: Sequence[int], target: int) -> int:
    return max((version for version in versions if version <= target), default=min(versions))


def _type_bytes(conversion: Conversion, value: ir.Value | None) -> bytes | None:
    """The type of an input as a message; None if it is not known."""
    proto = onnx.TypeProto()
    if value is not None:
        dtype = conversion.dtype(value)
        if dtype is None:
            return None
        proto.tensor_type.elem_type = dtype.value
    return bytes(proto.SerializeToString())


def _give_attributes(function: ir.Function, node: ir.Node, entry: Any) -> None:
    """Give a definition the node's attributes, and the defaults of the others."""
    attributes = {
        name: ir.serde.deserialize_attribute(attribute.default_value)
        for name, attribute in entry.attributes.items()
        if attribute.default_value.type
    }
    attributes.update(node.attributes)
    for inner in function:
        for name, attribute in list(inner.attributes.items()):
            if attribute.is_ref():
                given = attributes.get(attribute.ref_attr_name or "")
                del inner.attributes[name]
                if given is not None:
                    inner.attributes[name] = ir.Attr(name, given.type, given.value)


def by_onnx(node: NodeConversion) -> bool:
    """Have onnx's version converter take a step; whether it could.

    The node goes alone, in a model of its own, so that onnx needs no adapter for others.
    """
    step = node.step
    proto = _model_of(node) if is_plain(node.node) else None
    if proto is None:
        return False
    try:
        made = version_converter.convert_version(proto, step.opset)
        onnx.checker.check_model(made)
    except Exception:  # noqa: BLE001 - it raises of many kinds, and the refusal names our reason
        return False
    is_same = schema(step.op_type, step.opset) is schema(step.op_type, step.before)
    if len(made.graph.node) == 1 and is_same:
        return False
    graph = ir.serde.deserialize_graph(made.graph)
    values = {value.name: value for value in (*graph.inputs, *graph.initializers.values())}
    inputs = {
        values[name]: value
        for index, value in enumerate(node.node.inputs)
        if (name := f"input_{index}") in values
    }
    results = {value.name: value for value in graph.outputs}
    outputs = [results.get(f"output_{index}") for index in range(len(node.node.outputs))]
    _replace(node, step.opset, graph, inputs, outputs)
    return True


def _model_of(node: NodeConversion) -> onnx.ModelProto | None:
    """A model of the node alone; None if a type is not known."""
    proto = as_proto(node.node)
    graph = onnx.GraphProto(name="node")
    for index, value in enumerate(node.node.inputs):
        if value is None:
            continue
        name = proto.input[index] = f"input_{index}"
        known = constant(value)
        if known is not None:
            graph.initializer.append(onnx.numpy_helper.from_array(known, name))
        elif (described := _described(name, value, node.conversion)) is not None:
            graph.input.append(described)
        else:
            return None
    for index, value in enumerate(node.node.outputs):
        if value.name:
            name = proto.output[index] = f"output_{index}"
            described = _described(name, value, node.conversion)
            if described is None:
                return None
            graph.output.append(described)
    graph.node.append(proto)
    imports = [helper.make_opsetid("", node.step.before)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def _described(name: str, value: ir.Value, conversion: Conversion) -> onnx.ValueInfoProto | None:
    fact = conversion.tensor(value)
    if fact.element_type is None or fact.shape is None:
        return None
    shape = [dim if isinstance(dim, int) else None for dim in fact.shape]
    return helper.make_tensor_value_info(name, fact.element_type.value, shape)


def _replace(
    node: NodeConversion,
    opset: int,
    scope: ir.Graph | ir.Function,
    inputs: Mapping[ir.Value, ir.Value | None],
    outputs: Iterable[ir.Value | None],
) -> None:
    """Move the nodes of a graph or function to where a node is, and replace it by them.

    Args:
        node: The node.
        opset: The opset that the nodes are written for.
        scope: The graph or function; it is left without nodes.
        inputs: What its inputs stand for.
        outputs: Its values that stand for the outputs of the node, in order.
    """
    conversion = node.conversion
    builder = conversion.builder(node.ref, opset)
    values = dict(inputs)
    for value in scope.initializers.values() if isinstance(scope, ir.Graph) else ():
        if value not in values and value.const_value is not None:
            tensor = value.const_value
            values[value] = builder.constant(tensor.numpy(), tensor.dtype.numpy())
    moved = list(scope)
    results = [None if value is None else values.get(value, value) for value in outputs]
    scope.outputs.clear()
    scope.remove(moved)
    for inner in moved:
        for index, given in enumerate(inner.inputs):
            if given in values:
                inner.replace_input_with(index, values[given])
        for value in inner.outputs:
            value.name = (
                conversion.names.fresh(f"{builder.stem}_{value.name}") if value.name else ""
            )
        inner.name = conversion.names.fresh(f"{builder.stem}_{inner.op_type}")
    builder.nodes += moved
    results += [None] * (len(node.node.outputs) - len(results))
    named = zip(node.node.outputs, results, strict=False)
    replacing = [new if old.name else None for old, new in named]
    conversion.replace(node.ref, builder, replacing, node.origin)
