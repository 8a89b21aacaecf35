"""Operators by the definition that their schema gives: a function of simpler operators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import onnx
import onnx_ir as ir

from tensorsplit.model.convert.change import Change
from tensorsplit.model.convert.schemas import Step, schema
from tensorsplit.model.convert.site import Site
from tensorsplit.model.graph.nodes import as_proto, bodies


def expand(site: Site, step: Step, change: Change) -> bool:
    """Put an operator's own definition in its place; whether it has one that can be used."""
    entry = schema(step.op_type, step.before)
    if any(True for _ in bodies(site.node)):
        return False
    if any(attribute.is_ref() for attribute in site.node.attributes.values()):
        return False
    proto = _definition(site, change, entry)
    if proto is None:
        return False
    produced = {name for node in proto.node for name in node.output} | set(proto.input)
    formal = list(proto.output)
    proto.output[:] = [name for name in formal if name in produced]
    try:
        function = ir.serde.deserialize_function(proto)
    except ir.serde.SerdeError:  # some definitions are no well-formed functions
        return False
    if any(True for node in function for _ in bodies(node)):
        return False
    _give_attributes(function, site, entry)
    made = {value.name: value for value in function.outputs}
    inputs = dict(zip(function.inputs, map(site.input, range(len(function.inputs))), strict=True))
    opset = function.opset_imports.get("", function.opset_imports.get("ai.onnx", step.before))
    outputs = [made.get(name) for name in formal]
    splice(site, opset, change, function, inputs=inputs, outputs=outputs)
    return True


def _give_attributes(function: ir.Function, site: Site, entry: Any) -> None:
    """Put the node's attributes, and the defaults of the others, where the definition links."""
    attributes = {
        name: ir.serde.deserialize_attribute(attribute.default_value)
        for name, attribute in entry.attributes.items()
        if attribute.default_value.type
    }
    attributes.update(site.node.attributes)
    for node in function:
        for name, attribute in list(node.attributes.items()):
            if attribute.is_ref():
                given = attributes.get(attribute.ref_attr_name or "")
                del node.attributes[name]
                if given is not None:
                    node.attributes[name] = ir.Attr(name, given.type, given.value)


def _definition(site: Site, change: Change, entry: Any) -> onnx.FunctionProto | None:
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
    return onnx.FunctionProto.FromString(data) if data else None


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


def splice(
    site: Site,
    opset: int,
    change: Change,
    scope: ir.Graph | ir.Function,
    *,
    inputs: Mapping[ir.Value, ir.Value | None],
    outputs: Iterable[ir.Value | None],
) -> None:
    """Put the nodes of a graph or function in the place of a node.

    Args:
        site: The node.
        opset: The opset whose words the nodes are in.
        change: The model.
        scope: The graph or function; it is left as it is.
        inputs: What its inputs stand for.
        outputs: Its values that stand for the outputs of the node, in order.
    """
    builder = change.builder(site, opset)
    values = dict(inputs)
    for value in scope.initializers.values() if isinstance(scope, ir.Graph) else ():
        if value not in values and value.const_value is not None:
            tensor = value.const_value
            values[value] = builder.constant(tensor.numpy(), tensor.dtype.numpy())
    for node in scope:
        given = [None if value is None else values.get(value) for value in node.inputs]
        made = ir.Node(
            node.domain,
            node.op_type,
            given,
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
    results = [None if value is None else values.get(value) for value in outputs]
    results += [None] * (len(site.node.outputs) - len(results))
    named = zip(site.node.outputs, results, strict=False)
    change.replace(site, builder, [new if old.name else None for old, new in named])
