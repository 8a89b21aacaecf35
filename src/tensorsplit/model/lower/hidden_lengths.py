"""Lengths and shapes that the target must not know, or must know as constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import onnx_ir as ir

from tensorsplit.core.arithmetic import dimension, listed, sums
from tensorsplit.core.dimensions import is_known
from tensorsplit.model.features.from_constants import is_calculated
from tensorsplit.model.features.limited_lengths import limited_axes
from tensorsplit.model.graph.calculation import FIRST_WITH_ANY_CONSTANT, FIRST_WITH_SUMS
from tensorsplit.model.graph.nodes import NodeRef, change_inputs
from tensorsplit.model.infer.filling import fill_value
from tensorsplit.model.lower.state import ChangeAfterSplits, InsertionPoint, Lowering, NodeChange
from tensorsplit.model.profiles import Limitation


def _measure_element(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Give the Shape or Size of an element as a constant, where the target can't tell it."""
    make = InsertionPoint.instead_of(lowering, ref)
    is_shape = ref.op_type == "Shape"
    new = make.empty((0,), ir.DataType.INT64) if is_shape else make.constant(1)
    make.put_instead(ref, new, "a constant", entry)


def _write_count(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Give the Size of a Shape as a constant, where the target takes another number."""
    make = InsertionPoint.instead_of(lowering, ref)
    count = len(lowering.facts.tensor(ref.input(0)).constant or ())
    make.put_instead(ref, make.constant(count), "a constant", entry)


def _write_shape(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Give a Reshape its shape as a constant, where the target reads a calculated one wrongly.

    Before opset 9 a constant of integers is calculated, too.
    """
    if ref.opset < FIRST_WITH_ANY_CONSTANT:
        lowering.note(entry)
        return
    shape = lowering.facts.tensor(ref.input(1)).constant or ()
    change_inputs(ref.node, {1: InsertionPoint.before(lowering, ref).constant(list(shape))})
    lowering.changed(ref, "the same, with its shape as a constant", entry)


def _calculate_start(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Add 0 times its axes to the start of a Slice, which the target does not know then."""
    start, axes = ref.input(1), ref.input(3)
    kind = lowering.facts.tensor(axes).element_type or ir.DataType.INT64
    make = InsertionPoint.before(lowering, ref)
    nothing = make.op("Mul", [axes, make.constant([0], kind.numpy())])
    change_inputs(ref.node, {1: make.op("Add", [start, nothing])})
    lowering.changed(ref, "the same, with a start that is calculated", entry)


def _hide_limit(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Reshape sliced data to their own shape, so that the target knows no length at import.

    Nodes stay where that was done to what their data is made of. So do those of data that is made
    of constants, for which the target then has no shape, and of opsets before 11, which have no
    CumSum: of that, the target knows nothing.
    """
    data, axes = ref.input(0), limited_axes(ref.node, lowering.imported)
    if not axes:
        return
    is_fixed = is_calculated(data, lowering.facts, of_shapes=False, in_bodies=True)
    if ref.opset < FIRST_WITH_SUMS or is_fixed:
        lowering.note(entry)
        return
    assert data is not None  # noqa: S101 - see the feature
    make = InsertionPoint.before(lowering, ref)
    if data.graph is not ref.node.graph:
        # In a Loop that starts with it as well, the target takes the one's shape for the other's
        make = InsertionPoint.after_made(lowering, data, ref.stem)
    change_inputs(ref.node, {0: _of_hidden_length(make, data, axes)})
    lowering.changed(ref, "the same, of data whose length is hidden", entry)


def _hide_shape(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Reshape data without elements to their own shape, where the target would lose a dimension.

    Nodes of opsets before 11 stay, which have no CumSum: of that, the target knows nothing.
    """
    data = ref.input(0)
    if ref.opset < FIRST_WITH_SUMS:
        lowering.note(entry)
        return
    assert data is not None  # noqa: S101 - see the feature
    axes = range(len(lowering.facts.tensor(data).shape or ()))
    make = InsertionPoint.before(lowering, ref)
    hidden = _of_hidden_length(make, data, axes, is_given_again=False)
    change_inputs(ref.node, {0: hidden})
    fill_value(ref.node.outputs[0], lowering.facts)  # it can't be inferred any more
    lowering.changed(ref, "the same, of data whose shape is hidden", entry)


def _of_hidden_length(
    make: InsertionPoint, data: ir.Value, axes: Sequence[int], *, is_given_again: bool = True
) -> ir.Value:
    """Return the same tensor, of which OpenVINO does not know the most that lengths may be.

    Of a shape of which it does not know one number it knows none; those that are known may be given
    again afterwards.
    """
    lowering = make.lowering
    known = lowering.facts.tensor(data).shape or ()
    dims = [lowering.length(data, axis) for axis in range(len(known))]
    hidden = [sums((dim,)) if axis in axes else dim for axis, dim in enumerate(dims)]
    same = make.op("Reshape", [data, make.make(listed(tuple(hidden)))])
    if is_given_again and any(map(is_known, known)):
        again = [dim if is_known(dim) else dimension(same, axis) for axis, dim in enumerate(known)]
        same = make.op("Reshape", [same, make.make(listed(tuple(again)))])
    lowering.describe(same, data)
    return same


CHANGES: Mapping[str, NodeChange] = MappingProxyType(
    {
        "unseen_axes": _calculate_start,
        "measured_element": _measure_element,
        "measured_shape": _write_count,
    }
)
"""How these nodes are written before splits are, by what the target can't do."""

CHANGES_AFTER_SPLITS: Mapping[str, ChangeAfterSplits] = MappingProxyType(
    {
        "limited_slice": (("Slice",), _hide_limit),
        "lost_dimension": (("Einsum", "Squeeze", "Transpose", "Unsqueeze"), _hide_shape),
        "misshapen": (("Reshape",), _write_shape),
    }
)
"""How they are written after splits are, and their operators, by what the target can't do."""
