"""What OpenVINO's own import makes of a node.

An extension stands in the place of the import's own conversion of an operator. Where it has nothing
to add, it asks an import without extensions to convert a model of that one node, and takes the
nodes that came of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

from onnx import ModelProto, TensorProto, ValueInfoProto, helper
from openvino.frontend import FrontEndManager

from tensorsplit.openvino.given_nodes import element_type, shape_of
from tensorsplit.openvino.node_maker import Value

MARK = "SequenceMark"
"""The type of the nodes by which the import knows a sequence; their inputs are its tensors."""

_OPSET = 13
_IR_VERSION = 8
_PREFIX = "tensorsplit"


def stock(
    op_type: str,
    sequence: Value | None,
    tensors: Sequence[Value],
    attributes: Mapping[str, Any] | None = None,
) -> Value:
    """The output of a node of an operator of ONNX's own domain.

    Its first input is a sequence unless that is None; the others are tensors.
    """
    parts = None if sequence is None else tensors_of(sequence)
    if parts is not None:
        sequence = None
    parts = parts or []
    values = {f"{_PREFIX}/{place}": value for place, value in enumerate((*parts, *tensors))}
    names = list(values)
    inputs = [_described(name, value) for name, value in values.items()]
    nodes, own = [], names[len(parts) :]
    if parts:
        nodes.append(helper.make_node("SequenceConstruct", names[: len(parts)], [f"{_PREFIX}/s"]))
    if sequence is not None:
        values[f"{_PREFIX}/s"] = sequence
        kind = helper.make_tensor_type_proto(_onnx_type(sequence), None)
        inputs.append(helper.make_value_info(f"{_PREFIX}/s", helper.make_sequence_type_proto(kind)))
    if parts or sequence is not None:
        own.insert(0, f"{_PREFIX}/s")
    nodes.append(helper.make_node(op_type, own, [f"{_PREFIX}/out"], **(attributes or {})))
    outputs = [ValueInfoProto(name=f"{_PREFIX}/out")]
    graph = helper.make_graph(nodes, _PREFIX, inputs, outputs)
    opsets = [helper.make_opsetid("", _OPSET)]
    return _transplanted(
        helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION), values
    )


def tensors_of(sequence: Value) -> list[Value] | None:
    """The tensors of a sequence; None if they are not known yet, as behind an insertion."""
    node = sequence.get_node()
    if node.get_type_name() != MARK:
        return None
    tensors = list(node.input_values())
    if any(value.get_node().get_type_name().startswith("Sequence") for value in tensors):
        return None
    return tensors


def _transplanted(model: ModelProto, values: Mapping[str, Value]) -> Value:
    """The output of a model of one output, with values in the place of its inputs."""
    importer = FrontEndManager().load_by_framework("onnx")
    made = importer.convert_partially(importer.load(BytesIO(model.SerializeToString())))
    for parameter in made.get_parameters():
        value = values[parameter.get_friendly_name()]
        for target in parameter.output(0).get_target_inputs():
            target.replace_source_output(value)
    return made.get_results()[0].input_value(0)


def _described(name: str, value: Value) -> ValueInfoProto:
    shape = shape_of(value)
    return helper.make_tensor_value_info(name, _onnx_type(value), shape)


def _onnx_type(value: Value) -> int:
    name = (element_type(value) or "undefined").upper()
    known = name in TensorProto.DataType.keys()  # noqa: SIM118 - no mapping
    return int(TensorProto.DataType.Value(name)) if known else int(TensorProto.FLOAT)
