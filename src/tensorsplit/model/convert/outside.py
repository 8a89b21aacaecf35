"""One node at a time through onnx's own version converter, where it has an adapter we do not."""

from __future__ import annotations

import onnx
import onnx_ir as ir
from onnx import helper, version_converter

from tensorsplit.model.convert.change import Change
from tensorsplit.model.convert.expand import splice
from tensorsplit.model.convert.schemas import Step, schema
from tensorsplit.model.convert.site import Site
from tensorsplit.model.graph.nodes import as_proto, bodies, constant


def convert(site: Site, step: Step, change: Change) -> bool:
    """Let onnx bring a node over one boundary; whether it could.

    The node goes alone, in a model of its own, so that onnx needs no adapter for others.
    """
    node = site.node
    if any(True for _ in bodies(node)) or any(a.is_ref() for a in node.attributes.values()):
        return False
    proto = _model(site, step, change)
    if proto is None:
        return False
    try:
        made = version_converter.convert_version(proto, step.opset)
        onnx.checker.check_model(made)
    except Exception:  # noqa: BLE001 - it raises of many kinds, and the refusal names our reason
        return False
    old = schema(step.op_type, step.before)
    if len(made.graph.node) == 1 and schema(step.op_type, step.opset) is old:
        return False
    graph = ir.serde.deserialize_graph(made.graph)
    values = [*graph.inputs, *graph.initializers.values()]
    inputs = {value: site.input(_number(value)) for value in values if _number(value) >= 0}
    made_outputs = {_number(value): value for value in graph.outputs}
    outputs = [made_outputs.get(index) for index in range(len(node.outputs))]
    splice(site, step.opset, change, graph, inputs=inputs, outputs=outputs)
    return True


def _number(value: ir.Value) -> int:
    """Which input or output of the node a value of the model made for it is; -1 for others."""
    number = (value.name or "").removeprefix("input_").removeprefix("output_")
    return int(number) if number.isdigit() else -1


def _model(site: Site, step: Step, change: Change) -> onnx.ModelProto | None:
    """A model of the node alone; None if a type is not known."""
    node = as_proto(site.node)
    graph = onnx.GraphProto(name="node")
    for index, value in enumerate(site.node.inputs):
        if value is None:
            continue
        name = node.input[index] = f"input_{index}"
        known = constant(value)
        if known is not None:
            graph.initializer.append(onnx.numpy_helper.from_array(known, name))
            continue
        described = _described(name, value, change)
        if described is None:
            return None
        graph.input.append(described)
    for index, value in enumerate(site.node.outputs):
        if value.name:
            node.output[index] = f"output_{index}"
            described = _described(node.output[index], value, change)
            if described is None:
                return None
            graph.output.append(described)
    graph.node.append(node)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", step.before)], ir_version=8
    )


def _described(name: str, value: ir.Value, change: Change) -> onnx.ValueInfoProto | None:
    fact = change.tensor(value)
    if fact.element_type is None or fact.shape is None:
        return None
    shape = [dim if isinstance(dim, int) else None for dim in fact.shape]
    return helper.make_tensor_value_info(name, fact.element_type.value, shape)
