"""Lengths that the running model calculates from the dimension, by ONNX operators."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from tensorsplit.core.emit import Computed
from tensorsplit.core.errors import CANNOT_EXPRESS, SplitError
from tensorsplit.core.rules import ceil, equal
from tensorsplit.model.convert.conversion import linked_constant
from tensorsplit.model.graph.building import Builder
from tensorsplit.model.graph.nodes import NodeRef

FIRST_WITH_VALUE_INT = 12
_WRITTEN_OUT = 8
"""Up to so many lengths are listed one by one; more are repeated by an operator."""


def axis_value(site: NodeRef, builder: Builder) -> ir.Value:
    """The axis of a split node as a tensor of shape [1].

    Raises:
        SplitError: TS310 if a function gives it and the opset has no constant for that.
    """
    attribute = site.node.attributes.get("axis")
    if attribute is None or not attribute.is_ref():
        return builder.constant([0 if attribute is None else attribute.value])
    if builder.opset < FIRST_WITH_VALUE_INT:
        raise SplitError(
            CANNOT_EXPRESS,
            "the axis is given by the function's caller, and the lengths must be calculated from"
            f" it; before opset {FIRST_WITH_VALUE_INT} there are no constants for that",
            "give the axis in the function",
            parameter="axis",
        )
    number = linked_constant(builder, "value_int", attribute)
    return builder.op("Reshape", [number, builder.constant([1])])


def dimension(site: NodeRef, builder: Builder, axis: ir.Value) -> ir.Value:
    """The dimension that is cut, as a tensor of shape [1]."""
    shape = builder.op("Shape", [site.node.inputs[0]])
    return builder.op("Gather", [shape, axis], {"axis": 0})


def ceil_size(builder: Builder, dim: ir.Value, count: int) -> ir.Value:
    """The dimension divided by a count, rounded up."""
    raised = builder.op("Add", [dim, builder.constant([count - 1])])
    return builder.op("Div", [raised, builder.constant([count])])


def computed(site: NodeRef, builder: Builder, said: Computed) -> ir.Value:
    """The lengths of a rule as a tensor; the new node itself refuses those that do not fit.

    Raises:
        SplitError: TS310.
    """
    if said.rule not in (ceil, equal) or not isinstance(said.given, tuple):
        raise SplitError(
            CANNOT_EXPRESS, "the lengths are known only at run time", "give them as a constant"
        )
    (count,) = said.given
    dim = dimension(site, builder, axis_value(site, builder))
    size = ceil_size(builder, dim, count)
    if count == 1:
        result = dim
    else:
        taken = builder.op("Mul", [size, builder.constant([count - 1])]) if count > 2 else size
        last = builder.op("Sub", [dim, taken])
        full = [size] * (count - 1)
        if count > _WRITTEN_OUT:
            full = [builder.op("Expand", [size, builder.constant([count - 1])])]
        result = builder.op("Concat", [*full, last], {"axis": 0})
    result.shape, result.type = ir.Shape([count]), ir.TensorType(ir.DataType.INT64)
    return result


def zero_if(builder: Builder, excess: ir.Value) -> ir.Value:
    """Zero, of shape [1]; the running model stops if the excess, which is >= 0, is not zero.

    It is an index into a list of one zero, so that anything else is out of range.
    """
    return builder.op("Gather", [builder.constant(np.zeros(1)), excess], {"axis": 0})
