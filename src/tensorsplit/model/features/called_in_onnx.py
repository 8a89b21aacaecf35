"""The layers of an IR under the names of ONNX, as engines calculate both alike."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import onnx_ir as ir

from tensorsplit.core.records.openvino import DOMAIN

_CALLED_IN_ONNX: Mapping[str, str] = MappingProxyType(
    {
        "Broadcast": "Expand",
        "Clamp": "Clip",
        "Convert": "Cast",
        "ConvertLike": "CastLike",
        "Divide": "Div",
        "GRUSequence": "GRU",
        "Interpolate": "Resize",
        "LSTMSequence": "LSTM",
        "Multiply": "Mul",
        "Negative": "Neg",
        "PReLU": "PRelu",
        "Power": "Pow",
        "RNNSequence": "RNN",
        "ReLU": "Relu",
        "ScatterNDUpdate": "ScatterND",
        "Select": "Where",
        "ShapeOf": "Shape",
        "SoftMax": "Softmax",
        "StridedSlice": "Slice",
        "Subtract": "Sub",
        "VariadicSplit": "Split",
    }
)
"""The layers that ONNX has under another name."""


def operator_of(node: ir.Node | None) -> str:
    """Return what ONNX calls a node or a layer; nothing of other domains."""
    if node is None:
        return ""
    if node.domain == DOMAIN:
        return _CALLED_IN_ONNX.get(node.op_type, node.op_type)
    return node.op_type if node.domain == "" else ""
