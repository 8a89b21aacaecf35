"""Splits as nodes of OpenVINO."""

from __future__ import annotations

import openvino
from openvino import opset8 as ops

from tensorsplit.core.dimensions import Shape, is_known
from tensorsplit.core.errors import CANNOT_EXPRESS, UNKNOWN_COUNT, SplitError
from tensorsplit.core.resolve import Intent, check_element_type, part_sizes, plan
from tensorsplit.core.rules import Chunks, explicit, remainder
from tensorsplit.openvino.arithmetic import (
    Length,
    Value,
    as_int64,
    constant,
    dimension,
    guarded,
    listed,
    not_below_zero,
    piece,
    total,
)
from tensorsplit.openvino.nodes import element_type, shape_of


def parts(
    intent: Intent, data: Value, axis: Value | None = None, lengths: Value | None = None
) -> list[Value]:
    """Cut a tensor.

    Args:
        intent: How; the number of parts is known.
        data: The tensor.
        axis: The axis, where it is no constant.
        lengths: What holds the lengths, where they are no constants.

    Returns:
        The parts, with the axis.

    Raises:
        SplitError: TS2xx, TS3xx for a tensor that can't be cut so, as far as its shape tells.
    """
    check_data(intent, data)
    if intent.axis is not None or axis is None:
        axis = constant(intent.axis or 0)
    sizes = _sizes(intent, shape_of(data))
    wanted = listed(sizes) if sizes is not None else _lengths(intent, data, axis, lengths)
    if data.get_element_type() == openvino.Type.string:
        return _one_by_one(data, axis, wanted)
    return list(ops.variadic_split(data, axis, wanted).outputs())


def check_data(intent: Intent, data: Value) -> None:
    """Check the element type of the data (TS201)."""
    kind = element_type(data)
    if kind is not None:
        check_element_type(intent.operator.id, kind, intent.element_types)


def _sizes(intent: Intent, shape: Shape | None) -> tuple[int, ...] | None:
    """The lengths, where all are numbers; what can be refused is."""
    try:
        if shape is None or intent.axis is None:
            sizes = part_sizes(intent, None)
        else:
            made = plan(intent, shape)
            sizes = getattr(made, "sizes", ())
    except SplitError as error:
        if error.kind is UNKNOWN_COUNT:
            return None
        raise error.located(operator=intent.operator.id) from None
    if isinstance(sizes, Chunks) or not sizes or not all(map(is_known, sizes)):
        return None
    return sizes


def _lengths(intent: Intent, data: Value, axis: Value, lengths: Value | None) -> Value:
    """The lengths of a dimension that only the running model knows."""
    if intent.given is not None and intent.rule is not None:
        if intent.rule is explicit:
            return constant(intent.given)
        sizes = intent.rule(dimension(data, axis), intent.given)
        if not isinstance(sizes, Chunks):
            return not_below_zero(listed(sizes))
    if lengths is None or intent.rule not in (explicit, remainder):
        raise SplitError(UNKNOWN_COUNT, "the lengths are known only at run time")
    if not lengths.get_element_type().is_integral():
        raise SplitError(
            CANNOT_EXPRESS,
            "the lengths are known only at run time, as floats, which may turn out not to be whole",
            "give them as a constant",
            operator=intent.operator.id,
            parameter=intent.source,
        )
    wide = as_int64(lengths)
    if intent.rule is remainder:
        rest = dimension(data, axis) - (total(wide) + 1)
        is_open = ops.equal(wide, constant([-1]))
        wide = ops.select(is_open, rest.tensor, wide).output(0)
    return not_below_zero(wide)


def sure_lengths(lengths: Value, length: Length) -> Value:
    """Lengths, none below 0; the running model stops unless they sum to the dimension (D6)."""
    whole = total(lengths)
    fits = ops.equal(whole.tensor, length.tensor).output(0)
    nothing = guarded(whole, fits) - whole
    return ops.add(lengths, nothing.tensor).output(0)


def _one_by_one(data: Value, axis: Value, lengths: Value) -> list[Value]:
    """The parts of strings."""
    sure = sure_lengths(lengths, dimension(data, axis))
    count = lengths.get_partial_shape()[0].get_length()
    made, start = [], Length(constant([0]))
    for place in range(count):
        end = start + Length(ops.gather(sure, constant([place]), constant(0)).output(0))
        made.append(piece(data, start, end, axis))
        start = end
    return made
