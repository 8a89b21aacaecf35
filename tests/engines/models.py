"""Small ONNX models for the tests of the engines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT
INT64 = TensorProto.INT64


def tensor(
    name: str, element: int = FLOAT, shape: Sequence[int | str] | None = None
) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element, shape)


def sequence(name: str, element: int = FLOAT) -> onnx.ValueInfoProto:
    inner = helper.make_tensor_type_proto(element, None)
    return helper.make_value_info(name, helper.make_sequence_type_proto(inner))


def optional(name: str, element: int = FLOAT) -> onnx.ValueInfoProto:
    inner = helper.make_tensor_type_proto(element, None)
    return helper.make_value_info(name, helper.make_optional_type_proto(inner))


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    *,
    opset: int = 18,
    **initializers: np.ndarray,
) -> onnx.ModelProto:
    held = [numpy_helper.from_array(array, name) for name, array in initializers.items()]
    graph = helper.make_graph(list(nodes), "g", list(inputs), list(outputs), initializer=held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def node(op_type: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op_type, inputs.split(), outputs.split(), **attributes)


def split_model(*lengths: int, element: int = FLOAT, opset: int = 13) -> onnx.ModelProto:
    """``x`` of 6 elements cut into ``a`` and ``b``."""
    return model(
        [node("Split", "x split", "a b")],
        [tensor("x", element, [6])],
        [tensor("a", element), tensor("b", element)],
        opset=opset,
        split=np.array(lengths or (2, 4), np.int64),
    )
