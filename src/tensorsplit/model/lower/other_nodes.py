"""Nodes other than splits that the target was measured to calculate wrongly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import numpy as np
import onnx_ir as ir

from tensorsplit.core.arithmetic import dimension, listed, sums
from tensorsplit.core.dimensions import are_known, is_known
from tensorsplit.model.features.body_features import (
    declared_empty,
    read_as_outputs,
    undeclared_inputs,
)
from tensorsplit.model.features.forms import axes_of_rows
from tensorsplit.model.features.from_constants import is_calculated
from tensorsplit.model.features.integers import fused_operand
from tensorsplit.model.features.limited_lengths import limited_axes
from tensorsplit.model.features.misread import (
    MOST_REPEATED,
    chosen_conditions,
    is_in_training,
    narrow_axes,
)
from tensorsplit.model.features.quantized import (
    constants_given_back,
    limits_of,
    shared_zero_points,
)
from tensorsplit.model.features.ranks import SEEN_OPERANDS
from tensorsplit.model.features.transforms import FRAME_LENGTH, WINDOW, axis_of_transform
from tensorsplit.model.features.values import ends_before_largest
from tensorsplit.model.features.without_elements import flattened_at
from tensorsplit.model.graph.axes import order_of
from tensorsplit.model.graph.batch_first import with_steps_first
from tensorsplit.model.graph.calculation import (
    FIRST_WITH_ANY_CONSTANT,
    FIRST_WITH_INTEGERS_COMPARED,
    FIRST_WITH_SUMS,
    FLOATS,
)
from tensorsplit.model.graph.held_tensors import constant
from tensorsplit.model.graph.loops import body_of, scanned_by
from tensorsplit.model.graph.nodes import (
    NodeRef,
    attribute_of,
    change_inputs,
    is_used,
    nodes_within,
)
from tensorsplit.model.graph.opsets import ATTENTION_MASK
from tensorsplit.model.graph.producers import passed_from
from tensorsplit.model.infer.filling import fill_value
from tensorsplit.model.lower.constants import write_quotient
from tensorsplit.model.lower.preparing import take_branch
from tensorsplit.model.lower.shown_operands import (
    quantize_second,
    show_channels,
    show_operands,
    show_scales,
    show_sizes,
    spread_slope,
)
from tensorsplit.model.lower.state import InsertionPoint, Lowering, NodeChange, refusal
from tensorsplit.model.profiles import Limitation

_FIRST_WITH_BROADCASTING = 7
"""From here on numbers are calculated of two shapes without an attribute."""

_LEAST_RANK_WITH_AXIS_1 = 2
"""Of data of this rank axis 1 holds the parts of complex numbers."""


def _turn_at_rank_4(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Transpose the input of recurrent layers at rank 4, which the target does right."""
    node, data = ref.node, ref.input(0)
    assert data is not None  # noqa: S101 - see the feature
    make = InsertionPoint.instead_of(lowering, ref)
    order = [*order_of(node, 3), 3]
    turned = make.op("Transpose", [make.unsqueeze(data, [3])], {"perm": order})
    make.put_instead(ref, make.squeeze(turned, [3]), "Transpose with one more axis", entry)


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


def _find_no_places(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Take no row of what NonZero gives of one number, which has no axes."""
    make = InsertionPoint.instead_of(lowering, ref)
    made = make.op("NonZero", [make.op("Reshape", [ref.input(0), make.constant([1])])])
    make.put_instead(ref, make.slice(made, 0, 0, 0), "NonZero of a list, without its row", entry)


def _keep_from_fusing(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Insert nodes that are not fused before quotients that would be rounded otherwise.

    What they give is the number itself, even if it overflows on the way.
    """
    node, held = ref.node, fused_operand(ref.node, lowering.facts)
    assert held is not None  # noqa: S101 - see the feature
    make = InsertionPoint.instead_of(lowering, ref)
    change_inputs(node, {node.inputs.index(held): make.calculated(held)})
    lowering.changed(ref, "the same, of a number that was doubled and subtracted once", entry)


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


def _end_before_largest(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Let a Slice backwards end before the largest integer; the target goes on to the start."""
    ends, kind = ends_before_largest(ref.node, lowering.facts), lowering.facts.tensor(ref.input(2))
    make = InsertionPoint.before(lowering, ref)
    change_inputs(
        ref.node, {2: make.constant(ends, (kind.element_type or ir.DataType.INT64).numpy())}
    )
    lowering.changed(ref, "the same, to the largest integer less 1", entry)


def _gather_on_last_axis(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Take strings on the last axis, where the target takes but the first one of a row elsewhere.

    By one number that is known, ONNX Runtime moves the axis back: they are sliced. Those of unknown
    rank stay.
    """
    node, (data, indices) = ref.node, ref.node.inputs
    shapes = [lowering.facts.tensor(held).shape for held in (data, indices)]
    assert data is not None  # noqa: S101 - see the feature
    if None in shapes:
        return
    rank, added = (len(shape or ()) for shape in shapes)
    axis = attribute_of(node, "axis", ir.AttributeType.INT, 0) % rank
    make = InsertionPoint.instead_of(lowering, ref)
    known = lowering.facts.tensor(indices).integer
    if not added and is_known(known):
        one = make.slice(data, known, known + 1 or np.iinfo(np.int64).max, axis)
        make.put_instead(ref, make.squeeze(one, [axis]), "Slice and Squeeze", entry)
        return
    moved = make.moved(data, rank, axis, rank - 1)
    taken = make.op("Gather", [moved, indices], {"axis": rank - 1})
    order = [*range(axis), *range(rank - 1, rank - 1 + added), *range(axis, rank - 1)]
    make.put_instead(
        ref,
        make.op("Transpose", [taken], {"perm": order}),
        "Gather on the last axis, between Transposes",
        entry,
    )


def _turn_flattened(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Let a Flatten by the last axis, or after it, take axis 1 or 0, which are always right.

    What it gives is transposed then. Others stay.
    """
    data, axis = ref.input(0), flattened_at(ref.node, lowering.facts)
    assert data is not None and axis is not None  # noqa: S101, PT018 - see the feature
    fact = lowering.facts.tensor(data)
    shape, element_type = fact.shape or (), fact.element_type
    if axis < len(shape) - 1 or not shape or element_type in (None, ir.DataType.STRING):
        return
    make = InsertionPoint.instead_of(lowering, ref)
    if axis == len(shape) and 0 in shape:  # which OpenVINO refuses by axis 0
        new = make.empty((0, 1), element_type)
    else:
        data = make.moved(data, len(shape), axis, 0) if axis < len(shape) else data
        flat = make.op("Flatten", [data], {"axis": len(shape) - axis})
        new = make.op("Transpose", [flat], {"perm": [1, 0]})
    make.put_instead(ref, new, "Flatten by another axis, between Transposes", entry)


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


def _choose_in_list(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Let a OneHot take a list of its one number, and remove the axis of the list again."""
    number = ref.input(0)
    assert number is not None  # noqa: S101 - see the feature
    make = InsertionPoint.instead_of(lowering, ref)
    listed = [make.unsqueeze(number, [0]), *ref.node.inputs[1:]]
    new = make.squeeze(make.op("OneHot", listed, {"axis": -1}), [0])
    make.put_instead(ref, new, "the same of a list, without its axis", entry)


def _gather_from_first(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Gather from as many elements along other axes as there are indices.

    These are gathered themselves: OpenVINO leaves out a Slice before such a node.
    """
    data = ref.input(0)
    assert data is not None  # noqa: S101 - see the feature
    make = InsertionPoint.before(lowering, ref)
    for axis, count in narrow_axes(ref, lowering.facts):
        data = make.op("Gather", [data, make.range(0, count)], {"axis": axis})
    change_inputs(ref.node, {0: data})
    lowering.changed(ref, "the same, of the first elements of the data", entry)


def _give_zero_point(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Give the first of two zero points, where the target does not take the second alone."""
    kind = lowering.facts.tensor(ref.input(0)).element_type or ir.DataType.UINT8
    zero = InsertionPoint.before(lowering, ref).constant(0, kind.numpy())
    change_inputs(ref.node, {2: zero})
    lowering.changed(ref, "the same, with the first zero point", entry)


def _count_from_front(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Count the axis of a DFT from the front; of data of unknown rank it stays."""
    axis = axis_of_transform(ref, lowering.facts)
    if axis is None:
        lowering.note(entry)
        return
    ref.node.attributes["axis"] = ir.AttrInt64("axis", axis)
    lowering.changed(ref, "the same, with its axis counted from the front", entry)


def _take_half(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Take one half of what a DFT gives; one along an axis known only at run time stays."""
    node, axis = ref.node, axis_of_transform(ref, lowering.facts)
    if axis is None:
        lowering.note(entry)
        return
    make = InsertionPoint.instead_of(lowering, ref)
    kept = {name: held.value for name, held in node.attributes.items() if name != "onesided"}
    whole = make.op(node.op_type, node.inputs, kept)
    length = (lowering.facts.tensor(node.outputs[0]).shape or (None,) * (axis + 1))[axis]
    end = length if is_known(length) else dimension(whole, axis) // 2 + 1
    make.put_instead(ref, make.slice(whole, 0, end, axis), "a slice of the whole", entry)


def _transform_axis_1(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Have a DFT go along axis 1, between Transposes; one along an unknown axis stays."""
    node, axis = ref.node, axis_of_transform(ref, lowering.facts)
    rank, data = len(lowering.facts.tensor(ref.input(0)).shape or ()), ref.input(0)
    if axis is None or data is None or rank <= _LEAST_RANK_WITH_AXIS_1:
        lowering.note(entry)
        return
    make = InsertionPoint.instead_of(lowering, ref)
    kept = {name: held.value for name, held in node.attributes.items()}
    operands = [make.moved(data, rank, axis, 1), ref.input(1), make.constant(1)]
    made = make.op(node.op_type, operands, kept)
    new = make.moved(made, rank, 1, axis)
    make.put_instead(ref, new, "the same along axis 1, between Transposes", entry)


def _compress_row(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Give a Compress of all elements one axis, where the target can't take it without one."""
    make = InsertionPoint.instead_of(lowering, ref)
    row = make.op("Reshape", [ref.input(0), make.constant([-1])])
    new = make.op("Compress", [row, ref.input(1)], {"axis": 0})
    make.put_instead(ref, new, "Compress of a row", entry)


def _measure_element(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Say that an element is one, and that it has no dimensions, where the target can't tell."""
    make = InsertionPoint.instead_of(lowering, ref)
    is_shape = ref.op_type == "Shape"
    new = make.empty((0,), ir.DataType.INT64) if is_shape else make.constant(1)
    make.put_instead(ref, new, "a constant", entry)


def _choose_constants(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Replace a condition by a choice: true where it holds, false elsewhere."""
    make = InsertionPoint.before(lowering, ref)
    places = chosen_conditions(ref.node, lowering.imported)
    change_inputs(ref.node, {i: make.constant(i == 1, np.bool_) for i in places})
    lowering.changed(ref, "the same, with constants in the place of its condition", entry)


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


def _keep_rounding(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Put an Identity after a QuantizeLinear, which the target would leave out with its inverse."""
    _read_through(lowering, ref, "Identity", 1)
    lowering.changed(ref, "the same, with an Identity before what gives it back", entry)


def _keep_result_separate(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Have others read the larger of the result and itself, which no target joins with them."""
    _read_through(lowering, ref, "Max", 2)
    lowering.changed(ref, "the same, and the larger of its result and itself", entry)


def _read_through(lowering: Lowering, ref: NodeRef, operator: str, count: int) -> None:
    """Put an operator, which gives what it is given, between a node's first output and its readers.

    It is given the output so many times.
    """
    made = ref.node.outputs[0]
    readers = list(made.uses())
    kept = InsertionPoint.after(lowering, ref).op(operator, [made] * count)
    for reader, place in readers:
        change_inputs(reader, {place: kept})


def _normalize_instances(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Write a GroupNormalization as an InstanceNormalization that has a channel for each group."""
    node, (data, *by) = ref.node, ref.node.inputs
    shape = lowering.facts.tensor(data).shape or ()
    groups = attribute_of(node, "num_groups", ir.AttributeType.INT, 0)
    kind = lowering.facts.tensor(data).element_type
    if kind is None or not are_known(shape) or 0 in shape or groups < 1 or len(by) != 2:
        lowering.note(entry)
        return
    make = InsertionPoint.instead_of(lowering, ref)
    rows = make.op("Reshape", [data, make.constant([shape[0], groups, -1])])
    plain = [make.constant([number] * groups, kind.numpy()) for number in (1, 0)]
    spread = {name: held for name, held in node.attributes.items() if name == "epsilon"}
    normal = make.op("InstanceNormalization", [rows, *plain], spread)
    column = make.constant([-1, *[1] * (len(shape) - 2)])
    scale, bias = (make.op("Reshape", [each, column]) for each in by)
    whole = make.op("Reshape", [normal, make.constant([*shape])])
    made = make.op("Add", [make.op("Mul", [whole, scale]), bias])
    make.put_instead(ref, made, "InstanceNormalization of the groups", entry)


def _round_before(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Round the input of a QuantizeLinear by a scale of 1, and limit it to the type's range."""
    node, facts, data = ref.node, lowering.facts, ref.input(0)
    limits, kind = limits_of(node, facts), facts.tensor(data).element_type
    if limits is None or kind is None or data is None:
        lowering.note(entry)
        return
    make = InsertionPoint.before(lowering, ref)
    if kind in _SHORT_FLOATS:  # they do not hold the limits
        kind = ir.DataType.FLOAT
        scale = make.op("Cast", [ref.input(1)], {"to": kind})
        data = make.op("Cast", [data], {"to": kind})
        change_inputs(node, {1: scale})
    whole = data if kind.is_integer() else make.op("Round", [data])
    ends = [make.constant(end, kind.numpy()) for end in (limits.min, limits.max)]
    change_inputs(node, {0: make.op("Clip", [whole, *ends])})
    lowering.changed(ref, "the same, of numbers that are rounded and limited before", entry)


_SHORT_FLOATS = frozenset({ir.DataType.FLOAT16, ir.DataType.BFLOAT16})


def _name_outputs(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Give a name to each output of a node that has none, as nobody uses it."""
    for made in ref.node.outputs:
        made.name = made.name or lowering.names.fresh(f"{ref.stem}_output")
    lowering.changed(ref, "the same, with names for all outputs", entry)


def _give_back_in_float(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Give back in float, and cast that, where the target can't give back in bfloat16."""
    node = ref.node
    make = InsertionPoint.instead_of(lowering, ref)
    wide = {"to": ir.DataType.FLOAT}
    operands = [node.inputs[0], make.op("Cast", [node.inputs[1]], wide), *node.inputs[2:]]
    kept = {name: held.value for name, held in node.attributes.items() if name != "output_dtype"}
    given = make.op(node.op_type, operands, kept)
    new = make.op("Cast", [given], {"to": ir.DataType.BFLOAT16})
    make.put_instead(ref, new, "the same in float, and a Cast", entry)


def _give_back_by_product(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Give back by Cast, Sub and Mul, where the target would quantise the result again.

    The difference is exact in float, and rounded once; so is the product.
    """
    node, scale, zero = ref.node, ref.input(1), ref.input(2)
    assert scale is not None  # noqa: S101 - see the feature
    make, wide = InsertionPoint.instead_of(lowering, ref), {"to": ir.DataType.FLOAT}
    element_type = lowering.facts.tensor(node.outputs[0]).element_type
    assert element_type is not None  # noqa: S101 - the scale is a constant: see the feature

    def one(held: ir.Value) -> ir.Value:
        """Return a scalar of float; a list of one number would add an axis to a scalar."""
        is_list = lowering.facts.tensor(held).shape != ()
        scalar = make.squeeze(held, [0]) if is_list else held
        return make.op("Cast", [scalar], wide)

    given = make.op("Cast", [node.inputs[0]], wide)
    if zero is not None:
        given = make.op("Sub", [given, one(zero)])
    new = make.op("Mul", [given, one(scale)])
    if element_type != ir.DataType.FLOAT:
        new = make.op("Cast", [new], {"to": element_type})
    make.put_instead(ref, new, "Cast, Sub and Mul", entry)


def _leave_out_end(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Leave out the inputs at the end that have an empty name."""
    ref.set_inputs(ref.node.inputs)
    lowering.changed(ref, "the same, without inputs of an empty name", entry)


_FIRST_MAX_OF_INTEGERS = 12
"""From here on Max takes integers."""


def _keep_separate(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Take the larger of what a node reads and itself, which the target makes no one node of."""
    _take_larger(lowering, ref, [0])
    lowering.changed(ref, "the same, of the larger of what it reads and itself", entry)


def _keep_reduction_separate(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Take the larger of what is reduced and itself, which the target puts nothing before."""
    kinds = lowering.facts.element_types(ref.input(0))
    if ref.opset < _FIRST_MAX_OF_INTEGERS and any(kind.is_integer() for kind in kinds):
        lowering.note(entry)
        return
    _keep_separate(lowering, ref, entry)


def _gather_from_other_end(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Count the axis of a Gather from the other end, which the target takes for another one."""
    rank = len(lowering.facts.tensor(ref.input(0)).shape or ())
    axis = attribute_of(ref.node, "axis", ir.AttributeType.INT, 0)
    ref.node.attributes["axis"] = ir.AttrInt64("axis", axis + rank if axis < 0 else axis - rank)
    lowering.changed(ref, "the same, with its axis counted from the other end", entry)


def _keep_factor_separate(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Take the larger of the second factor and itself, which the target makes no one node of."""
    _take_larger(lowering, ref, [1])
    lowering.changed(ref, "the same, by the larger of its second factor and itself", entry)


def _keep_constants(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Take the larger of a constant and itself, where the target would lose one given back."""
    _take_larger(lowering, ref, constants_given_back(ref.node, lowering.facts))
    lowering.changed(ref, "the same, of the larger of a constant and itself", entry)


def _take_larger(lowering: Lowering, ref: NodeRef, places: Iterable[int]) -> None:
    """Have a node read the larger of an input and itself, which the target does not leave out."""
    make = InsertionPoint.before(lowering, ref)
    for place in places:
        held = ref.input(place)
        change_inputs(ref.node, {place: make.op("Max", [held, held])})


def _separate_zero_points(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Give each node its own zero point, where the target would take that of others away."""
    shared = shared_zero_points(ref.node, lowering.facts)
    for node in shared:
        zero = constant(passed_from(node.inputs[2]))
        assert zero is not None  # noqa: S101 - see the feature
        make = InsertionPoint.before(lowering, lowering.refs[node])
        change_inputs(node, {2: make.constant(zero, zero.dtype)})
    if shared:  # and not changed for another sum
        lowering.changed(ref, "the same, of data with a zero point of its own", entry)


def _limit_range(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Give a Range its start as its limit, where the target would go the other way."""
    node, (start, limit, step) = ref.node, ref.node.inputs
    make = InsertionPoint.instead_of(lowering, ref)
    known = lowering.facts.tensor(step).constant
    upward = None if known else make.op("Less", [make.op("Sub", [step, step]), step])
    above = make.op("Less", [start, limit]) if not known or known[0] > 0 else None
    below = make.op("Less", [limit, start]) if not known or known[0] < 0 else None
    is_inside = above or below if known else make.op("Where", [upward, above, below])
    change_inputs(node, {1: make.op("Where", [is_inside, limit, start])})
    lowering.changed(ref, "the same, with its start as its limit if it is empty", entry)


def _repeat_in_turn(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Repeat a few axes at a time, which the target does rightly."""
    make = InsertionPoint.instead_of(lowering, ref)
    held, counts = ref.node.inputs
    rank = len(lowering.facts.tensor(held).shape or ())
    for first in range(0, rank, MOST_REPEATED):
        axes = tuple(range(rank))[first : first + MOST_REPEATED]
        ones = [(1,) * first, (1,) * (rank - first - len(axes))]
        taken = make.op("Gather", [counts, make.constant(axes)], {"axis": 0})
        parts = [make.constant(each) for each in ones if each]
        parts.insert(bool(first), taken)
        held = make.op("Tile", [held, make.concat(parts, 0)])
    assert held is not None  # noqa: S101 - see the feature
    make.put_instead(ref, held, "Tiles of two axes each", entry)


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


def _calculate_start(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Add 0 times its axes to the start of a Slice, which the target does not know then."""
    start, axes = ref.input(1), ref.input(3)
    kind = lowering.facts.tensor(axes).element_type or ir.DataType.INT64
    make = InsertionPoint.before(lowering, ref)
    nothing = make.op("Mul", [axes, make.constant([0], kind.numpy())])
    change_inputs(ref.node, {1: make.op("Add", [start, nothing])})
    lowering.changed(ref, "the same, with a start that is calculated", entry)


def _squeeze_condition(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Reshape the condition of an If to a scalar."""
    held = ref.input(0)
    rank = len(lowering.imported.tensor(held).shape or ())
    make = InsertionPoint.before(lowering, ref)
    assert held is not None  # noqa: S101 - see the feature
    change_inputs(ref.node, {0: make.squeeze(held, list(range(rank)))})
    lowering.changed(ref, "the same, with a scalar as its condition", entry)


def _copy_outputs(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Let branches read copies of the values that are outputs as well."""
    for held in read_as_outputs(ref.node):
        copy = InsertionPoint.before(lowering, ref).op("Identity", [held])
        lowering.describe(copy, held)
        for inner in nodes_within(ref.node):
            places = [place for place, value in enumerate(inner.inputs) if value is held]
            change_inputs(inner, dict.fromkeys(places, copy))
    lowering.changed(ref, "the same, with copies of what is an output as well", entry)


def _declare_round(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Declare the type of the round's number, or of the condition, in the body of a Loop."""
    what, place, kind = _ROUND_INPUTS[entry.feature]
    given = body_of(ref.node).inputs[place]
    given.type, given.shape = ir.TensorType(kind), ir.Shape([])
    lowering.changed(ref, f"the same, with the {what} of the round declared", entry)


_ROUND_INPUTS: Mapping[str, tuple[str, int, ir.DataType]] = MappingProxyType(
    {
        "undeclared_round": ("number", 0, ir.DataType.INT64),
        "undeclared_condition": ("condition", 1, ir.DataType.BOOL),
    }
)
"""What the body of a Loop is given first, its place and its type, by the feature."""


def _pass_dropped_on(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Write a Dropout that changes nothing as an Identity; one whose mask is used stays."""
    data, rest = ref.input(0), ref.node.outputs[1:]
    if data is None or any(map(is_used, rest)) or is_in_training(ref, lowering.facts):
        lowering.note(entry)
        return
    _pass_on(lowering, ref, entry)


def _pass_on(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Write a node that gives what it reads as an Identity."""
    data = ref.input(0)
    assert data is not None  # noqa: S101 - see the feature
    make = InsertionPoint.instead_of(lowering, ref)
    make.put_instead(ref, make.passed_on(data), "Identity", entry)


def _write_same_pads(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Write the padding of a ConvTranspose that its auto_pad stands for, if that is known."""
    ints = partial(attribute_of, ref.node, kind=ir.AttributeType.INTS)
    weights = lowering.facts.tensor(ref.input(1)).shape or ()
    kernel = ints("kernel_shape", default=None) or weights[2:]
    ones = [1] * len(kernel)
    strides, dilations = (ints(name, default=ones) for name in ("strides", "dilations"))
    extra = ints("output_padding", default=[0] * len(kernel))
    totals = [
        (size - 1) * dilation + 1 - stride + more if is_known(size) else -1
        for size, dilation, stride, more in zip(kernel, dilations, strides, extra, strict=False)
    ]
    is_known_side = ref.opset >= _FIRST_WITH_MORE_AT_END or not any(total % 2 for total in totals)
    is_given = "output_shape" in ref.node.attributes
    if not totals or min(totals) < 0 or is_given or not is_known_side:
        lowering.note(entry)
        return
    is_upper = ref.node.attributes.pop("auto_pad").as_string() == "SAME_UPPER"
    less, more = [total // 2 for total in totals], [total - total // 2 for total in totals]
    pads = [*less, *more] if is_upper else [*more, *less]
    ref.node.attributes.add(ir.AttrInt64s("pads", pads))
    lowering.changed(ref, f"the same, with pads = {pads}", entry)


_FIRST_WITH_MORE_AT_END = 11
"""Before, the text and engines differ in the side that gets more of an odd padding."""


def _write_sampling(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Write how many samples a RoiAlign takes where it leaves that out: as many as there are."""
    ref.node.attributes.add(ir.AttrInt64("sampling_ratio", 0))
    lowering.changed(ref, "the same, with sampling_ratio = 0", entry)


def _write_frames(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Write how long the frames of an STFT are where it leaves that out: as long as its window."""
    (length,) = lowering.facts.tensor(ref.input(WINDOW)).shape or ()
    made = InsertionPoint.before(lowering, ref).constant(length)
    ref.set_inputs([*(ref.input(place) for place in range(FRAME_LENGTH)), made])
    lowering.changed(ref, f"the same, with frames of {length}", entry)


def _repeat_mask(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Repeat the row of a mask for each query of an Attention."""
    make = InsertionPoint.before(lowering, ref)
    count = make.op("Shape", [ref.input(0)], {"start": -2, "end": -1})
    lengths = make.op("Concat", [count, make.constant([1])], {"axis": 0})
    change_inputs(
        ref.node, {ATTENTION_MASK: make.op("Expand", [ref.input(ATTENTION_MASK), lengths])}
    )
    lowering.changed(ref, "the same, with a row of its mask for each query", entry)


def _choose_padding(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Write a Pad by a value that is fed as a choice between it and the data, padded by zeros."""
    data, pads, value, axes = (ref.input(place) for place in range(4))
    make = InsertionPoint.instead_of(lowering, ref)
    more = [] if axes is None else [axes]
    inside = make.op("ConstantOfShape", [make.op("Shape", [data])])  # zeros of float
    around = make.op("Pad", [inside, pads, make.constant(1, np.float32), *more])
    is_around = make.op("Cast", [around], {"to": ir.DataType.BOOL})
    padded = make.op("Pad", [data, pads, None, *more] if more else [data, pads])
    chosen = make.op("Where", [is_around, value, padded])
    make.put_instead(ref, chosen, "Where of the value and of data padded by zeros", entry)


def _open_empty(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Leave the length of what is declared to be of shape (0) open, in the body of a node."""
    for held in declared_empty(ref.node):
        held.shape = ir.Shape([None])
    lowering.changed(ref, "the same, with the lengths of empty inputs of its body open", entry)


def _declare_ranks(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Declare the ranks of what the body of a loop is given; lengths may change in each round."""
    for held in undeclared_inputs(ref.node, lowering.facts):
        held.shape = ir.Shape([None] * len(lowering.facts.tensor(held).shape or ()))
    lowering.changed(ref, "the same, with the ranks of what its body is given declared", entry)


def _declare_rows(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Declare the type of the rows in the body of a Scan."""
    _declare(lowering, scanned_by(ref.node))
    lowering.changed(ref, "the same, with its rows declared", entry)


def _declare_results(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Declare the results of the body of a SequenceMap, a Scan or a Loop."""
    _declare(lowering, body_of(ref.node).outputs)
    lowering.changed(ref, "the same, with what its body gives declared", entry)


def _declare(lowering: Lowering, values: Iterable[ir.Value]) -> None:
    for held in values:
        fill_value(held, lowering.facts)
        if held.type is None:
            raise refusal(f"the type of '{held.name}' is not known", "declare it")


def _put_steps_first(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Have the steps of a recurrent node come first, where the target takes no batch there."""
    made = with_steps_first(InsertionPoint.instead_of(lowering, ref), ref.node)
    pairs = [(old, new) for old, new in zip(ref.node.outputs, made, strict=True) if new is not None]
    lowering.stand_in(*pairs)
    lowering.edits.retire(ref.node)
    lowering.changed(ref, "the same with its steps first, between Transposes", entry)


_CHANGES: Mapping[str, NodeChange] = MappingProxyType(
    {
        "ranked_condition": _squeeze_condition,
        "output_in_branch": _copy_outputs,
        "undeclared_round": _declare_round,
        "undeclared_condition": _declare_round,
        "drops_given": _pass_dropped_on,
        "unmoved": _pass_on,
        "fed_padding": _choose_padding,
        "omitted_sampling": _write_sampling,
        "guessed_frames": _write_frames,
        "row_mask": _repeat_mask,
        "open_same": _write_same_pads,
        "empty_body_input": _open_empty,
        "undeclared_rows": _declare_rows,
        "undeclared_inputs": _declare_ranks,
        "undeclared_results": _declare_results,
        "undeclared_ranks": _declare_results,
        "hidden_rows": _declare_results,
        "ignored_axes": _write_reduction,
        "softmax_of_rows": _write_softmax,
        "flattened": _turn_flattened,
        "turned_beside_recurrence": _turn_at_rank_4,
        "small_quotient": _widen_quotient,
        "small_shift": _widen_shift,
        "places_in_a_number": _find_no_places,
        "empty_end": _leave_out_end,
        "folded_quotient": write_quotient,
        "fused_quotient": _keep_from_fusing,
        "unit_quotient": _divide_minus_one,
        "given_back": _keep_rounding,
        "unscaled": _round_before,
        "constant_given_back": _keep_constants,
        "turned_by_channels": _keep_separate,
        "joined_by_channels": _keep_separate,
        "data_in_bytes": _keep_factor_separate,
        "shared_zero_point": _separate_zero_points,
        "rounded_extreme": _keep_separate,
        "pulled_axes": _keep_reduction_separate,
        "ignored_list": _gather_from_other_end,
        "given_back_in_bfloat16": _give_back_in_float,
        "back_to_largest": _end_before_largest,
        "unseen_axes": _calculate_start,
        "strings_gathered": _gather_on_last_axis,
        "omitted_zero_point": _give_zero_point,
        "narrow_indices": _gather_from_first,
        "one_index": _choose_in_list,
        "axis_from_back": _count_from_front,
        "transformed_axis": _transform_axis_1,
        "one_sided": _take_half,
        "vector_first": _multiply_row,
        "compressed_whole": _compress_row,
        "measured_element": _measure_element,
        "chosen_condition": _choose_constants,
        "abs_of_shapes": _choose_sign,
        "list_of_slopes": spread_slope,
        "batch_first": _put_steps_first,
        "equal_below_0": _compare_difference,
    }
)
"""How nodes are written before splits are, by what the target can't do."""

_CHANGES_AFTER_SPLITS: Mapping[str, tuple[tuple[str, ...], NodeChange]] = MappingProxyType(
    {
        "abs_of_joined": (("Abs",), _negate),
        "part_to_bool": (("Cast", "CastLike"), _cast_negative),
        "later_part_to_bool": (("Cast", "CastLike"), _cast_negative),
        "empty_range": (("Range",), _limit_range),
        "unnamed_output": (("If", "Loop", "Scan", "SequenceMap"), _name_outputs),
        "joined_groups": (("GroupNormalization",), _keep_result_separate),
        "overwritten_queries": (("Attention", "MatMul"), _keep_result_separate),
        "grouped_in_body": (("GroupNormalization",), _normalize_instances),
        "many_repeated": (("Tile",), _repeat_in_turn),
        "lost_operand": (("If",), take_branch),
        "lost_result": (("If",), take_branch),
        "shortened_loop": (("If",), take_branch),
        "moved_signed": (("DequantizeLinear",), _give_back_by_product),
        "moved_without_zero_point": (("DequantizeLinear",), _give_back_by_product),
        "rounded_once": (("DequantizeLinear",), _give_back_by_product),
        "moved_into_body": (("DequantizeLinear",), _give_back_by_product),
        "limited_slice": (("Slice",), _hide_limit),
        "lost_dimension": (("Einsum", "Squeeze", "Transpose", "Unsqueeze"), _hide_shape),
        "misshapen": (("Reshape",), _write_shape),
        "rotation": (("Add",), _keep_separate),
        "unseen_operand": (tuple(SEEN_OPERANDS), show_operands),
        "open_planes": (("GlobalLpPool",), show_operands),
        "open_channels": (("QuantizeLinear",), show_channels),
        "along_third": (("QuantizeLinear",), quantize_second),
        "uncounted_scales": (("QuantizeLinear",), show_scales),
        "uncounted_sizes": (("Resize",), show_sizes),
    }
)
"""How nodes are written after splits are, and their operators, by what the target can't do."""


def change_other_nodes(lowering: Lowering) -> bool:
    """Write nodes other than splits in a way that the target can take.

    Only those with one limitation are written at a time; the next ones need another `look`. Returns
    whether any was changed.
    """
    return any(lowering.change_limited(each, change) for each, change in _CHANGES.items())


def change_other_nodes_again(lowering: Lowering) -> None:
    """Write nodes in such a way that the target can't take because of how splits were lowered."""
    for feature, (operators, change) in _CHANGES_AFTER_SPLITS.items():
        lowering.change_each(feature, partial(_is_of, operators), change)


def _is_of(operators: tuple[str, ...], node: ir.Node) -> bool:
    """Return whether a node is of one of some operators, of whatever domain."""
    return node.op_type in operators
