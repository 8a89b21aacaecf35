"""Operators replaced by the definition that their schema gives: a function of simpler ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
import onnx_ir as ir

from tensorsplit.model.convert.conversion import Conversion, NodeConversion
from tensorsplit.model.graph.nodes import as_proto, bodies
from tensorsplit.model.graph.opsets import schema_of


def replace_by_definition(node: NodeConversion) -> bool:
    """Replace a node by its operator's definition, if there is one that can be used."""
    own, names = node.node, node.conversion.names
    entry = schema_of(node.step.op_type, node.step.before)
    proto = None if any(bodies(own)) else _definition(node, entry)
    if proto is None:
        return False
    formal = list(proto.output)
    produced = {*proto.input, *(name for inner in proto.node for name in inner.output)}
    proto.output[:] = [name for name in formal if name in produced]
    try:
        function = ir.serde.deserialize_function(proto)
    except ir.serde.SerdeError:  # some definitions are not well-formed functions
        return False
    moved = list(function)
    if any(any(bodies(inner)) for inner in moved):
        return False
    given = {value: node.input(index) for index, value in enumerate(function.inputs)}
    results = {value.name: given.get(value, value) for value in function.outputs}
    imports = function.opset_imports
    node.opset = imports.get("", imports.get("ai.onnx", node.step.before))
    stem = node.make.stem
    _give_attributes(moved, own, entry)
    function.outputs.clear()
    function.remove(moved)
    for inner in moved:
        for index, value in enumerate(inner.inputs):
            if value in given:
                inner.replace_input_with(index, given[value])
        for output in inner.outputs:
            if output.name:
                output.name = names.fresh(f"{stem}_{output.name}")
        inner.name = names.fresh(f"{stem}_{inner.op_type}")
        node.make.add(inner)
    outputs = [
        results.get(formal[index]) if value.name and index < len(formal) else None
        for index, value in enumerate(own.outputs)
    ]
    node.replace(*outputs)
    return True


def _definition(node: NodeConversion, entry: Any) -> onnx.FunctionProto | None:
    """Return the definition in the newest opset not above the target, else in the oldest."""

    def nearest(versions: Sequence[int]) -> int:
        older = [version for version in versions if version <= node.conversion.target]
        return max(older, default=min(versions))

    if entry.has_function:
        data = entry.get_function_with_opset_version(nearest(entry.function_opset_versions))
    elif entry.has_context_dependent_function:
        types = [_type_bytes(node.conversion, value) for value in node.node.inputs]
        if None in types:
            return None
        opset = nearest(entry.context_dependent_function_opset_versions)
        message = as_proto(node.node).SerializeToString()
        try:
            data = entry.get_context_dependent_function_with_opset_version(opset, message, types)
        except Exception:  # noqa: BLE001 - onnx raises of many kinds where it has none for a node
            return None
    else:
        return None
    return onnx.FunctionProto.FromString(data) if data else None


def _type_bytes(conversion: Conversion, value: ir.Value | None) -> bytes | None:
    """Return the type of an input as a message; None if it is not known."""
    proto, dtype = onnx.TypeProto(), conversion.facts.tensor(value).element_type
    if value is not None:
        if dtype is None:
            return None
        proto.tensor_type.elem_type = dtype.value
    return bytes(proto.SerializeToString())


def _give_attributes(nodes: Sequence[ir.Node], node: ir.Node, entry: Any) -> None:
    """Give the nodes of a definition a node's attributes, and the defaults of the others."""
    attributes = {
        name: ir.serde.deserialize_attribute(attribute.default_value)
        for name, attribute in entry.attributes.items()
        if attribute.default_value.type
    }
    attributes.update(node.attributes)
    for inner in nodes:
        for name, attribute in list(inner.attributes.items()):
            if attribute.is_ref():
                given = attributes.get(attribute.ref_attr_name or "")
                del inner.attributes[name]
                if given is not None:
                    inner.attributes[name] = ir.Attr(name, given.type, given.value)
