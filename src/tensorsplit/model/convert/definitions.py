"""Operators replaced by the definition that their schema gives: a function of simpler ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import onnx
import onnx_ir as ir

from tensorsplit.model.convert.conversion import Conversion, NodeConversion
from tensorsplit.model.convert.operator_versions import default_of
from tensorsplit.model.graph.calls import attributes_of
from tensorsplit.model.graph.copying import Copies
from tensorsplit.model.graph.nodes import as_proto, bodies
from tensorsplit.model.graph.opsets import schema_of


def replace_by_definition(node: NodeConversion) -> bool:
    """Replace a node by its operator's definition, if there is one that can be used."""
    own = node.node
    entry = schema_of(node.step.op_type, node.step.before)
    proto = None if entry is None or any(bodies(own)) else _definition(node, entry)
    if entry is None or proto is None:
        return False
    formal = list(proto.output)
    produced = {*proto.input, *(name for inner in proto.node for name in inner.output)}
    proto.output[:] = [name for name in formal if name in produced]
    try:
        function = ir.serde.deserialize_function(proto)
    except ir.serde.SerdeError:  # some definitions are not well-formed functions
        return False
    if any(any(bodies(inner)) for inner in function):
        return False
    imports = function.opset_imports
    node.opset = imports.get("", imports.get("ai.onnx", node.step.before))
    given = dict(zip(function.inputs, (*own.inputs, *[None] * len(function.inputs)), strict=False))
    defaults = {name: default_of(each) for name, each in entry.attributes.items()}
    passed = {
        name: held for name, held in defaults.items() if held is not None
    } | own.attributes.data
    stem, fresh = node.make.stem, node.conversion.names.fresh
    copies = Copies(
        given, partial(attributes_of, passed=passed), lambda name: fresh(f"{stem}_{name}"), {}
    )
    for inner in copies.of(function):
        node.make.add(inner)
    results = {value.name: copies.stands_for(value) for value in function.outputs}
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
