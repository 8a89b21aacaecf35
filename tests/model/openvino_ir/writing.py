"""Programs of layers, and of ONNX, as OpenVINO writes their IRs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import openvino
from openvino import opset1, opset5, opset8
from openvino.utils.node_factory import NodeFactory

from tensorsplit.engines import adapters
from tests.model.programs import Array, Graph, Program, Step
from tests.model.random_checks import without_defaults


def convert(program: Program, path: Path, seed: int) -> set[str]:
    """Let OpenVINO write the IR of an ONNX model, some with float16 weights; return its inputs."""
    source = path.with_suffix(".onnx")
    source.write_bytes(without_defaults(program.model()).SerializeToString())
    model = openvino.convert_model(source)
    openvino.save_model(model, path, compress_to_fp16=bool(seed % 2))
    return set().union(*(port.names for port in model.inputs))  # it drops what nothing reads


def save(program: Program, path: Path, _: int = 0) -> set[str]:
    """Write the IR of a program of layers; return the names of its inputs.

    Raises:
        Exception: Of any kind, where OpenVINO does not take the layers.
    """
    model = model_of(program.graph)
    for name, port in zip(program.graph.outputs, model.outputs, strict=True):
        port.add_names({name})
    openvino.serialize(model, path, path.with_suffix(".bin"))
    return set(program.graph.inputs)


def model_of(graph: Graph, extra: Sequence[Any] = ()) -> openvino.Model:
    """Make a model of a graph, or of a body with more results than it has outputs."""
    ports: dict[str, Any] = {}
    inputs = []
    for name in graph.inputs:
        kind = graph.declared[name].type.tensor_type
        dims = [str(getattr(dim, dim.WhichOneof("value") or "", "?")) for dim in kind.shape.dim]
        shape = openvino.PartialShape(f"[{','.join(dims)}]")
        made = opset1.parameter(shape, element_of(graph.samples[name]), name=name)
        made.output(0).set_names({name})
        inputs.append(made)
        ports[name] = made.output(0)
    for step in graph.steps:
        node = layer(step, [ports[name] for name in step.inputs])
        node.set_friendly_name(step.outputs[0])
        ports.update(zip(step.outputs, node.outputs(), strict=True))
    results = [*extra, *(opset1.result(ports[name]) for name in graph.outputs)]
    return openvino.Model(results, inputs, "random")


def element_of(value: Array) -> openvino.Type:
    """OpenVINO's element type of an array."""
    if value.dtype == ml_dtypes.bfloat16:
        return openvino.Type.bf16
    return openvino.Type.string if value.dtype.hasobject else openvino.Type(value.dtype)


def layer(step: Step, inputs: Sequence[Any]) -> Any:
    """Make one layer."""
    attributes = step.attributes
    match step.op_type:
        case "Constant":
            return openvino.op.Constant(adapters.to_openvino(attributes["value"]))
        case "If":
            return if_layer(inputs, attributes["then_body"], attributes["else_body"])
        case "Loop" | "TensorIterator":
            return iterating(step, *inputs)
    plain = {name: listed(value) for name, value in attributes.items()}
    return NodeFactory(step.domain).create(step.op_type, list(inputs), plain)


def listed(value: Any) -> Any:
    """An attribute as the factory takes it."""
    return np.array(value, np.int64) if isinstance(value, list) else value


def if_layer(inputs: Sequence[Any], *branches: Graph) -> Any:
    """Make an If, whose branches take all inputs but the condition."""
    node = opset8.if_op(inputs[0])
    then, other = map(model_of, branches)
    node.set_then_body(then)
    node.set_else_body(other)
    inner = then.get_parameters(), other.get_parameters()
    for given, *fed in zip(inputs[1:], *inner, strict=True):
        node.set_input(given, *fed)
    for results in zip(then.results, other.results, strict=True):
        node.set_output(*results)
    return node


def iterating(step: Step, data: Any, state: Any, around: Any) -> Any:
    """Make a Loop or a TensorIterator."""
    axis = step.attributes["axis"]
    true = opset1.constant(np.array(True))
    if step.op_type == "Loop":
        node = opset5.loop(opset1.constant(np.int64(step.attributes["rounds"])), true)
        body = model_of(step.attributes["body"], [opset1.result(true)])
        node.set_function(body)
        node.set_special_body_ports([-1, 0])
    else:
        node, body = opset1.tensor_iterator(), model_of(step.attributes["body"])
        node.set_body(body)
    row, carried, outside = body.get_parameters()
    changed, part, last = (end.output(0) for end in body.results[-3:])
    node.set_sliced_input(row, data, 0, 1, 1, -1, axis)
    node.set_merged_input(carried, state, changed)
    node.set_invariant_input(outside, around)
    node.get_iter_value(changed, -1)
    node.get_concatenated_slices(part, 0, 1, 1, -1, step.attributes["joined"])
    node.get_iter_value(last, -1)
    node.validate_and_infer_types()
    return node
