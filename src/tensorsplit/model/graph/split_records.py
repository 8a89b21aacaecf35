"""The split nodes of a model, and the operator version that is in force for each."""

from __future__ import annotations

import warnings

import onnx_ir as ir

from tensorsplit.core.errors import SplitWarning
from tensorsplit.core.records import NEWEST_OPSET, in_force, operators
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.core.schema import Operator
from tensorsplit.model.graph.opsets import check_known, is_unchanged
from tensorsplit.model.openvino_ir import LAYER_VERSION

FAMILY = frozenset(record.name for record in operators.values() if record.vendor == "onnx")
"""The operator types of ONNX's own domain that this package defines."""

VENDOR_FAMILY = frozenset(
    record.name for record in operators.values() if record.vendor == "openvino"
)
"""The operator types of OpenVINO that this package defines."""

VENDOR_SPLIT = operators["openvino.VariadicSplit-1"]
"""The operator of OpenVINO that ONNX models may hold, in OpenVINO's domain."""


def is_split(node: ir.Node) -> bool:
    """Return whether the node is one of the operators of this package: ONNX's or OpenVINO's."""
    return is_onnx_split(node) or is_vendor_split(node)


def is_onnx_split(node: ir.Node) -> bool:
    """Return whether the node is a Split or SplitToSequence of ONNX."""
    return node.op_type in FAMILY and node.domain == ""


def is_vendor_split(node: ir.Node) -> bool:
    """Return whether the node is one of OpenVINO's splits."""
    return node.op_type in VENDOR_FAMILY and node.domain == DOMAIN


def record_of(node: ir.Node, opset: int) -> Operator:
    """Return the operator version of a split node at an opset of ONNX's own (TS101 for none).

    SplitWarning for an opset that is newer than the records: the newest one is taken, if the
    installed onnx says that the operator has not changed since.
    """
    if is_vendor_split(node):
        version = node.metadata_props.get(LAYER_VERSION, VENDOR_SPLIT.since_version)
        return operators[f"{VENDOR_SPLIT.vendor}.{node.op_type}-{version}"]
    check_known(opset, f"onnx.{node.op_type}")
    if not is_unchanged(node.op_type, opset):
        return in_force(node.op_type, opset)
    record = in_force(node.op_type, NEWEST_OPSET)
    text = f"{record.id} is taken at opset {opset}, which is newer than those known here"
    warnings.warn(f"{text}: {NEWEST_OPSET} is the newest", SplitWarning, stacklevel=2)
    return record
