"""Arithmetic that the target was measured to calculate wrongly."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import onnx_ir as ir

from tensorsplit.model.features.forms import axes_of_rows
from tensorsplit.model.features.misread import chosen_conditions
from tensorsplit.model.graph.calculation import FIRST_WITH_INTEGERS_COMPARED, FLOATS
from tensorsplit.model.graph.nodes import NodeRef, attribute_of, change_inputs
from tensorsplit.model.lower.constants import write_quotient
from tensorsplit.model.lower.state import ChangeAfterSplits, InsertionPoint, Lowering, NodeChange
from tensorsplit.model.profiles import Limitation

_FIRST_WITH_BROADCASTING = 7
"""From here on numbers are calculated of two shapes without an attribute."""


def _widen_quotient(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Divide integers of 8 bits as int32, where the target rounds their quotients."""
    node, made = ref.node, ref.node.outputs[0]
    make = InsertionPoint.instead_of(lowering, ref)
    wide = [make.op("Cast", [held], {"to": ir.DataType.INT32}) for held in node.inputs]
    narrow = {"to": lowering.facts.tensor(made).element_type}
    make.put_instead(ref, make.op("Cast", [make.op("Div", wide)], narrow), "Div of int32", entry)


def _widen_shift(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Shift integers of 8 bits as those of 32, where the target rounds what comes out."""
    make = InsertionPoint.instead_of(lowering, ref)
    wide = [make.op("Cast", [held], {"to": ir.DataType.UINT32}) for held in ref.node.inputs]
    shifted = make.op("BitShift", wide, {"direction": "RIGHT"})
    new = make.op("Cast", [shifted], {"to": ir.DataType.UINT8})
    make.put_instead(ref, new, "BitShift of uint32", entry)


def _divide_minus_one(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Divide -1 where the target would take the product of 1 / x and y for y / x."""
    node, made = ref.node, ref.node.outputs[0]
    make = InsertionPoint.instead_of(lowering, ref)
    kind = lowering.facts.tensor(made).element_type or ir.DataType.INT64
    shape = lowering.facts.tensor(node.inputs[0]).shape or ()
    minus_one = make.constant(np.full((1,) * len(shape), -1), kind.numpy())
    make.put_instead(
        ref,
        make.op("Neg", [make.op("Div", [minus_one, node.inputs[1]])]),
        "Neg of a Div of -1",
        entry,
    )


def _choose_sign(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Choose between a number and its negative, where the target would leave Abs out.

    Opsets before 9 compare no integers; nodes of those stay.
    """
    held = ref.input(0)
    if ref.opset < FIRST_WITH_INTEGERS_COMPARED:
        return
    assert held is not None  # noqa: S101 - see the feature
    make = InsertionPoint.instead_of(lowering, ref)
    element_type = lowering.facts.tensor(held).element_type or ir.DataType.INT64
    zero = make.constant(0, element_type.numpy())
    chosen = [make.op("Greater", [held, zero]), held, make.op("Sub", [zero, held])]
    make.put_instead(ref, make.op("Where", chosen), "Where", entry)


def _compare_difference(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Compare the difference of two numbers with 0; nodes of old opsets stay."""
    if ref.opset < _FIRST_WITH_BROADCASTING:
        lowering.note(entry)
        return
    make = InsertionPoint.instead_of(lowering, ref)
    kind = lowering.facts.tensor(ref.input(0)).element_type or ir.DataType.INT64
    operands = [make.op("Sub", ref.node.inputs), make.constant(0, kind.numpy())]
    make.put_instead(ref, make.op("Equal", operands), "Equal of the difference and 0", entry)


def _negate(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Take Abs of the negative, where the target would change what is joined for other nodes."""
    node = ref.node
    make = InsertionPoint.instead_of(lowering, ref)
    change_inputs(node, {0: make.op("Neg", [ref.input(0)])})
    lowering.changed(ref, "Abs of the negative", entry)


def _cast_negative(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Cast to bool the negative of a part, where the target has no such cast of the part."""
    node, held = ref.node, ref.input(0)
    make = InsertionPoint.instead_of(lowering, ref)
    if lowering.facts.tensor(held).element_type not in FLOATS:
        held = make.op("Cast", [held], {"to": ir.DataType.FLOAT})
    change_inputs(node, {0: make.op("Neg", [held])})
    lowering.changed(ref, f"{ref.op_type} of the negative", entry)


def _choose_constants(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Replace a condition by a choice: true where it holds, false elsewhere."""
    make = InsertionPoint.before(lowering, ref)
    places = chosen_conditions(ref.node, lowering.imported)
    change_inputs(ref.node, {i: make.constant(i == 1, np.bool_) for i in places})
    lowering.changed(ref, "the same, with constants in the place of its condition", entry)


def _multiply_row(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Let a vector that comes first in a product be a row, where the target keeps its axis.

    That axis is taken away again; products by a tensor of unknown rank stay.
    """
    shape = lowering.facts.tensor(ref.input(1)).shape
    if shape is None:
        lowering.note(entry)
        return
    data = ref.input(0)
    assert data is not None  # noqa: S101 - see the feature
    make = InsertionPoint.instead_of(lowering, ref)
    product = make.op(ref.op_type, [make.unsqueeze(data, [0]), *ref.node.inputs[1:]])
    new = make.squeeze(product, [max(len(shape) - 2, 0)])
    make.put_instead(ref, new, "the same of a row, without its axis", entry)


def _write_reduction(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Write reductions of which the target ignores the axes as a ReduceSum and other nodes.

    Those of integers by logarithms stay.
    """
    data, element_type = ref.input(0), lowering.facts.tensor(ref.input(0)).element_type
    if element_type not in FLOATS and ref.op_type != "ReduceL1":
        lowering.note(entry)
        return
    make = InsertionPoint.instead_of(lowering, ref)
    axes = attribute_of(ref.node, "axes", ir.AttributeType.INTS) or ()
    keepdims = {"keepdims": attribute_of(ref.node, "keepdims", ir.AttributeType.INT, 1)}

    def total(held: ir.Value) -> ir.Value:
        return make.op("ReduceSum", [held, make.constant(list(axes))], keepdims)

    if ref.op_type == "ReduceL1":
        new = total(make.op("Abs", [data]))
    elif ref.op_type == "ReduceLogSum":
        assert data is not None  # noqa: S101 - see the feature
        new = make.op("Log", [total(data)])
    else:
        assert element_type is not None  # noqa: S101 - see above
        most = np.finfo(element_type.numpy()).max
        ends = [make.constant(end, element_type.numpy()) for end in (-most, most)]
        given = {"axes": list(axes)}
        first = make.op("Clip", [make.op("ReduceMax", [data], given), *ends])  # of no infinity
        sum_ = total(make.op("Exp", [make.op("Sub", [data, first])]))
        is_kept = keepdims["keepdims"]
        first = first if is_kept else make.squeeze(first, axes)
        new = make.op("Add", [make.op("Log", [sum_]), first])
    make.put_instead(ref, new, "a ReduceSum with what comes before and after it", entry)


def _write_softmax(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Calculate a Softmax along several axes, where the target takes but one.

    Those of unknown rank stay.
    """
    axes, data = axes_of_rows(ref.node, lowering.facts), ref.input(0)
    if axes is None:
        lowering.note(entry)
        return
    make, along = InsertionPoint.instead_of(lowering, ref), {"axes": axes}
    powers = make.op("Exp", [make.op("Sub", [data, make.op("ReduceMax", [data], along)])])
    new = make.op("Div", [powers, make.op("ReduceSum", [powers], along)])
    make.put_instead(ref, new, "powers of e, divided by their sum", entry)


CHANGES: Mapping[str, NodeChange] = MappingProxyType(
    {
        "ignored_axes": _write_reduction,
        "softmax_of_rows": _write_softmax,
        "small_quotient": _widen_quotient,
        "small_shift": _widen_shift,
        "folded_quotient": write_quotient,
        "unit_quotient": _divide_minus_one,
        "vector_first": _multiply_row,
        "chosen_condition": _choose_constants,
        "abs_of_shapes": _choose_sign,
        "equal_below_0": _compare_difference,
    }
)
"""How these nodes are written before splits are, by what the target can't do."""

CHANGES_AFTER_SPLITS: Mapping[str, ChangeAfterSplits] = MappingProxyType(
    {
        "abs_of_joined": (("Abs",), _negate),
        "part_to_bool": (("Cast", "CastLike"), _cast_negative),
        "later_part_to_bool": (("Cast", "CastLike"), _cast_negative),
    }
)
"""How they are written after splits are, and their operators, by what the target can't do."""
