"""The layers of an IR under the names of ONNX, as engines calculate both alike."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import onnx_ir as ir

from tensorsplit.core.records.openvino import DOMAIN

_CALLED_IN_ONNX: Mapping[str, str] = MappingProxyType(
    {
        "Broadcast": "Expand",
        "Ceiling": "Ceil",
        "Clamp": "Clip",
        "Convert": "Cast",
        "ConvertLike": "CastLike",
        "Divide": "Div",
        "FloorMod": "Mod",
        "GreaterEqual": "GreaterOrEqual",
        "GRUSequence": "GRU",
        "HSwish": "HardSwish",
        "Interpolate": "Resize",
        "LessEqual": "LessOrEqual",
        "LogicalAnd": "And",
        "LogicalNot": "Not",
        "LogicalOr": "Or",
        "LogicalXor": "Xor",
        "LSTMSequence": "LSTM",
        "Maximum": "Max",
        "Minimum": "Min",
        "Multiply": "Mul",
        "Negative": "Neg",
        "Power": "Pow",
        "PReLU": "PRelu",
        "ReLU": "Relu",
        "RNNSequence": "RNN",
        "ScatterNDUpdate": "ScatterND",
        "Select": "Where",
        "ShapeOf": "Shape",
        "SoftMax": "Softmax",
        "SoftPlus": "Softplus",
        "SoftSign": "Softsign",
        "StridedSlice": "Slice",
        "Subtract": "Sub",
        "VariadicSplit": "Split",
    }
)
"""The layers that ONNX has under another name."""


def name_in_onnx(layer_type: str) -> str:
    """Return the name that ONNX has for a type of layer."""
    return _CALLED_IN_ONNX.get(layer_type, layer_type)


def operator_of(node: ir.Node | None) -> str:
    """Return ONNX's name for the operator of a node or a layer; nothing for other domains."""
    if node is None:
        return ""
    if node.domain == DOMAIN:
        return name_in_onnx(node.op_type)
    return node.op_type if node.domain == "" else ""


def gives_shape(node: ir.Node | None) -> bool:
    """Return whether a node gives a shape, or a number of elements."""
    return operator_of(node) in OF_SHAPES


OF_SHAPES = frozenset({"Shape", "Size"})
