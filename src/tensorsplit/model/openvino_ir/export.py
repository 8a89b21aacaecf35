"""An IR model as an ONNX message, with the type and shape of every value that is known."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.model.openvino_ir.declared import CONSTANTS, constant_of
from tensorsplit.model.openvino_ir.graph import Layer, Source
from tensorsplit.model.openvino_ir.ir import OpenVinoModel
from tensorsplit.model.openvino_ir.walk import Value, Walk

_OPSET = 18
_IR_VERSION = 10


def as_onnx(model: OpenVinoModel) -> ModelProto:
    """Write an IR model as ONNX: each layer is a node of the domain ``org.openvinotoolkit``.

    Args:
        model: What `read_ir` returned. Constants that hold an axis or lengths are read; all
            others become external data in the ``.bin``, which stays where it is.

    Returns:
        The model, with the types and shapes of what split layers give.

    Raises:
        SplitError: TS1xx to TS3xx for a split layer that is wrong; TS504 for a constant that
            can't be read.
    """
    walk = Walk(model.weights, load_all=False)
    declared = {
        layer.id: entry for layer, entry in zip(model.parameters, model.inputs, strict=True)
    }
    walk.run(
        model.graph,
        {key: Value(entry.shape, entry.element_type) for key, entry in declared.items()},
    )
    graph = GraphProto(name=model.path.stem)
    names: dict[Source, str] = {}
    for layer in model.graph.order:
        for place in range(len(layer.outputs)):
            names[Source(layer.id, place)] = _name(layer, place)
        if layer.id in declared:
            name = names[Source(layer.id, 0)] = declared[layer.id].name
            graph.input.append(_described(name, walk.known[layer.id][0]))
        elif layer.type in CONSTANTS:
            graph.initializer.append(_tensor(layer, walk.known[layer.id][0], model))
        elif layer.type != "Result":
            _add_node(graph, layer, names, walk.known[layer.id])
    for result, name in zip(model.graph.of_type("Result"), model.output_names, strict=True):
        (source,) = result.sources
        graph.node.append(NodeProto(op_type="Identity", input=[names[source]], output=[name]))
        graph.output.append(_described(name, walk.known[source.layer][source.output]))
    opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)


def _name(layer: Layer, place: int) -> str:
    """A name that no input or output of the model has, since ids are unique."""
    return f"{layer.name or layer.type}/{layer.id}.{place}"


def _add_node(
    graph: GraphProto, layer: Layer, names: Mapping[Source, str], values: tuple[Value, ...]
) -> None:
    outputs = [_name(layer, place) for place in range(len(layer.outputs))]
    node = graph.node.add(op_type=layer.type, domain=DOMAIN, name=layer.name)
    node.input.extend(names[source] for source in layer.sources)
    node.output.extend(outputs)
    for name, text in layer.attributes.items():
        number = text.strip()
        is_number = number.lstrip("-").isdecimal() and len(number) < 19
        node.attribute.append(helper.make_attribute(name, int(number) if is_number else text))
    graph.value_info.extend(map(_described, outputs, values))


def _tensor(layer: Layer, value: Value, model: OpenVinoModel) -> TensorProto:
    if isinstance(value.array, np.ndarray):
        return numpy_helper.from_array(value.array, _name(layer, 0))
    constant = constant_of(layer)
    tensor = TensorProto(
        name=_name(layer, 0),
        data_type=_data_type(value.element_type),
        dims=constant.shape,
        data_location=TensorProto.EXTERNAL,
    )
    place = {"location": model.weights.name, "offset": constant.offset, "length": constant.size}
    for key, text in place.items():
        tensor.external_data.add(key=key, value=str(text))
    return tensor


def _described(name: str, value: Value) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, _data_type(value.element_type), value.shape)


def _data_type(element_type: str | None) -> int:
    """ONNX's number of an element type; undefined for those that ONNX lacks."""
    name = (element_type or "undefined").upper()
    return int(TensorProto.DataType.Value(name)) if name in _TYPES else TensorProto.UNDEFINED


_TYPES = frozenset(TensorProto.DataType.keys())
