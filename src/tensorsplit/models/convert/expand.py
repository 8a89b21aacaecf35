"""Operators by the definition that their schema gives: a function of simpler operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
import onnx_ir as ir

from tensorsplit.models.convert.change import Change, Site
from tensorsplit.models.convert.schemas import Step, schema
from tensorsplit.models.graph.places import as_proto, bodies


def expand(site: Site, step: Step, change: Change) -> bool:
    """Put an operator's own definition in its place; whether it has one that can be used."""
    entry = schema(step.op_type, step.before)
    if any(True for _ in bodies(site.node)):
        return False
    if any(attribute.is_ref() for attribute in site.node.attributes.values()):
        return False
    found = _definition(site, change, entry)
    if found is None:
        return False
    function, opset = found
    attributes = {
        name: ir.serde.deserialize_attribute(attribute.default_value)
        for name, attribute in entry.attributes.items()
        if attribute.default_value.type
    }
    attributes.update(site.node.attributes)
    nodes = list(function)
    if any(True for node in nodes for _ in bodies(node)):
        return False
    for node in nodes:
        for name, attribute in list(node.attributes.items()):
            if attribute.is_ref():
                given = attributes.get(attribute.ref_attr_name or "")
                del node.attributes[name]
                if given is not None:
                    node.attributes[name] = ir.Attr(name, given.type, given.value)
    splice(site, opset, change, function)
    return True


def _definition(site: Site, change: Change, entry: Any) -> tuple[ir.Function, int] | None:
    """The definition in the newest opset that is not beyond the target, else in the oldest."""
    if entry.has_function:
        opset = _nearest(entry.function_opset_versions, change.target)
        data = entry.get_function_with_opset_version(opset)
    elif entry.has_context_dependent_function:
        types = [_type_bytes(change, value) for value in site.node.inputs]
        if any(known is None for known in types):
            return None
        opset = _nearest(entry.context_dependent_function_opset_versions, change.target)
        node = as_proto(site.node).SerializeToString()
        data = entry.get_context_dependent_function_with_opset_version(opset, node, types)
    else:
        return None
    if not data:
        return None
    proto = onnx.FunctionProto.FromString(data)
    imported = [item.version for item in proto.opset_import if item.domain in ("", "ai.onnx")]
    try:
        return ir.serde.deserialize_function(proto), imported[0] if imported else opset
    except ir.serde.SerdeError:  # some definitions are no well-formed functions
        return None


def _nearest(versions: Sequence[int], target: int) -> int:
    return max((version for version in versions if version <= target), default=min(versions))


def _type_bytes(change: Change, value: ir.Value | None) -> bytes | None:
    """The type of an input, as onnx wants to be told it; None if it is not known."""
    dtype = None if value is None else change.dtype(value)
    if value is not None and dtype is None:
        return None
    proto = onnx.TypeProto()
    if dtype is not None:
        proto.tensor_type.elem_type = dtype.value
    return bytes(proto.SerializeToString())


def _input(site: Site, value: ir.Value) -> ir.Value | None:
    """The input of the node that a value of a model made for it stands for; None for others."""
    number = (value.name or "").removeprefix("input_")
    return site.input(int(number)) if number.isdigit() else None


def splice(site: Site, opset: int, change: Change, scope: ir.Graph | ir.Function) -> None:
    """Put the nodes of a graph or function in the place of a node.

    Args:
        site: The node.
        opset: The opset whose words the nodes are in.
        change: The model.
        scope: A graph whose inputs are named ``input_0`` and so on by their place in the node, or
            a function whose inputs are those of the operator.
    """
    builder = change.builder(site, opset)
    values: dict[ir.Value, ir.Value | None] = {}
    for index, value in enumerate(scope.inputs):
        values[value] = site.input(index) if isinstance(scope, ir.Function) else _input(site, value)
    if isinstance(scope, ir.Graph):
        for value in scope.initializers.values():
            tensor = value.const_value
            if tensor is not None:
                given = _input(site, value)
                values[value] = given or builder.constant(tensor.numpy(), tensor.dtype.numpy())
    for node in scope:
        inputs = [None if value is None else values.get(value) for value in node.inputs]
        made = ir.Node(
            node.domain,
            node.op_type,
            inputs,
            list(node.attributes.values()),
            outputs=[
                ir.Value(
                    name=change.names.fresh(f"{builder.stem}_{value.name}") if value.name else "",
                    type=value.type,
                    shape=value.shape,
                )
                for value in node.outputs
            ],
            name=change.names.fresh(f"{builder.stem}_{node.op_type}"),
        )
        values.update(zip(node.outputs, made.outputs, strict=True))
        builder.nodes.append(made)
    outputs = [values.get(value) for value in scope.outputs]
    named = iter(outputs)
    results: list[ir.Value | None] = []
    for index, old in enumerate(site.node.outputs):
        if isinstance(scope, ir.Graph):
            results.append(next(named) if old.name else None)
        else:
            results.append(outputs[index] if old.name else None)
    change.replace(site, builder, results)
