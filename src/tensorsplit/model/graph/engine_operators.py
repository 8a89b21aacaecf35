"""Operators that engines have in ONNX's own domain at opsets at which ONNX has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import onnx_ir as ir

from tensorsplit.model.graph.nodes import is_used
from tensorsplit.model.graph.opsets import schema_of


class Counterpart(NamedTuple):
    """The operator of ONNX that means the same as one of engines.

    Attributes:
        op_type: The operator.
        opset: An opset that has it.
        outputs: The number of its outputs.
        further: The number of outputs that the one of engines may have after these.
    """

    op_type: str
    opset: int
    outputs: int
    further: int = 0

    def lack(self, outputs: Sequence[ir.Value]) -> str | None:
        """Return why it can't take the place of a node with these outputs, if so."""
        is_lacking = any(map(is_used, outputs[self.outputs :]))
        return f"{self.op_type}, which takes its place, has one output" if is_lacking else None


ENGINE_OPERATORS: Mapping[str, Counterpart] = {
    "LayerNormalization": Counterpart("LayerNormalization", 17, 3),
    "SimplifiedLayerNormalization": Counterpart("RMSNormalization", 23, 1, further=1),
    "ThresholdedRelu": Counterpart("ThresholdedRelu", 10, 1),
}
"""Operators of engines, which the optimiser of ONNX Runtime writes."""

EXPERIMENTAL = frozenset(
    (
        *("Affine", "Crop", "ImageScaler", "MeanVarianceNormalization", "ParametricSoftplus"),
        *("Scale", "ScaledTanh"),
    )
)
"""Experimental operators of ONNX, which it removed; engines have them below opset 10."""

_FIRST_WITHOUT_EXPERIMENTAL = 10


def is_of_engines(op_type: str, opset: int) -> bool:
    """Return whether engines have an operator in ONNX's own domain where ONNX has none."""
    is_experimental = op_type in EXPERIMENTAL and opset < _FIRST_WITHOUT_EXPERIMENTAL
    return (op_type in ENGINE_OPERATORS or is_experimental) and schema_of(op_type, opset) is None


def in_onnx(op_type: str, opset: int) -> Counterpart | None:
    """Return the operator that an operator of engines means; None where ONNX has it itself."""
    return ENGINE_OPERATORS.get(op_type) if schema_of(op_type, opset) is None else None
