"""Operators that engines have in ONNX's own domain at opsets at which ONNX has none."""

from __future__ import annotations

from collections.abc import Mapping

from tensorsplit.model.graph.nodes import schema_of

ENGINE_OPERATORS: Mapping[str, tuple[str, int]] = {
    "LayerNormalization": ("LayerNormalization", 17),
    "SimplifiedLayerNormalization": ("RMSNormalization", 23),
    "ThresholdedRelu": ("ThresholdedRelu", 10),
}
"""Operators with the one of ONNX that means the same, and an opset that has it.

The optimiser of ONNX Runtime writes the normalisations.
"""

FURTHER_OUTPUTS: Mapping[str, int] = {"SimplifiedLayerNormalization": 1}
"""How many outputs engines' operators may have after those of the one of ONNX."""

EXPERIMENTAL = frozenset(
    (
        *("Affine", "Crop", "ImageScaler", "MeanVarianceNormalization", "ParametricSoftplus"),
        *("Scale", "ScaledTanh"),
    )
)
"""Experimental operators of ONNX, which it removed; engines have them below opset 10."""

_NO_EXPERIMENTAL = 10


def is_of_engines(op_type: str, opset: int) -> bool:
    """Return whether engines have an operator in ONNX's own domain where ONNX has none."""
    is_experimental = op_type in EXPERIMENTAL and opset < _NO_EXPERIMENTAL
    return (op_type in ENGINE_OPERATORS or is_experimental) and schema_of(op_type, opset) is None


def in_onnx(op_type: str, opset: int) -> tuple[str, int]:
    """Return the operator of ONNX's own domain that a node means, and an opset that has it."""
    is_other = op_type in ENGINE_OPERATORS and schema_of(op_type, opset) is None
    return ENGINE_OPERATORS[op_type] if is_other else (op_type, opset)
