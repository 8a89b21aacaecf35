"""Splits as nodes of OpenVINO, also where an extension does not know how many parts there are.

Below opset 18 a Split without lengths makes one part for each output of the node, and OpenVINO
does not show an extension how many there are. It names the outputs after the extension returned,
though, and validates each node again when the model is complete. So a placeholder with more
outputs than any node has waits for that moment, counts the named ones, and has the parts used in
its own place.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import openvino
from openvino import opset8 as ops
from openvino.frontend.onnx import ConversionExtension

from tensorsplit.core.arithmetic import (
    Number,
    Numbers,
    bounds,
    dimension,
    fed,
    fitting,
    position,
    size_of,
    value,
)
from tensorsplit.core.dimensions import Shape, are_known
from tensorsplit.core.errors import CANNOT_EXPRESS, UNKNOWN_COUNT, SplitError
from tensorsplit.core.operands import Operand
from tensorsplit.core.records import operators
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.core.resolve import Intent, bind, check_element_type, part_sizes, plan
from tensorsplit.core.rules import Chunks, chunk
from tensorsplit.openvino.followed_values import followed_values
from tensorsplit.openvino.given_nodes import Given, constant_values, element_type, read, shape_of
from tensorsplit.openvino.node_maker import NodeMaker, Value, as_int64, constant, number

_MOST_PARTS = 1024
"""More parts than this can't wait to be counted."""

_EQUAL = operators["onnx.Split-13"]


def split_extensions() -> list[object]:
    """Return an extension for each operator whose parts are outputs."""
    records = [record for record in operators.values() if not record.is_sequence]
    return [
        ConversionExtension(name, *domain, partial(_split, name, vendor))
        for vendor, domain in (("onnx", ()), ("openvino", (DOMAIN,)))
        for name in sorted({record.name for record in records if record.vendor == vendor})
    ]


def _split(name: str, vendor: str, context: object) -> list[Value]:
    given = read(context, name, vendor)
    if not given.is_counted:
        return _uncounted_parts(given)
    intent = bind(given.operator, given.operands)
    return parts(
        axis_split(intent, given.data, given.lengths, given.values.get(intent.operator.axis))
    )


class AxisSplit(NamedTuple):
    """A tensor, and how an axis of it is split.

    The sizes are integers if the shape decides all of them; ``known_count`` is None where only the
    running model knows how many there are.
    """

    data: Value
    axis: Value
    dim: Number
    sizes: Numbers | Chunks
    known_count: int | None


def axis_split(
    intent: Intent, data: Value, lengths: Value | None, axis: Value | None = None
) -> AxisSplit:
    """Split a tensor by an intent; what can be refused is (TS2xx, TS3xx).

    ``lengths`` and ``axis`` hold what is not a constant.
    """
    _check_data(intent, data)
    at: Number = intent.axis or 0
    if intent.axis is None and axis is not None:
        rank = size_of(value(ops.shape_of(data, "i64").output(0)))
        at = position(number(axis), rank, rank - 1)
    dim = dimension(data, at)
    sizes = (
        _known_sizes(intent, shape_of(data))
        or _followed_sizes(intent, shape_of(data), lengths)
        or _run_time_sizes(intent, dim, lengths)
    )
    count = None
    if isinstance(sizes, tuple):
        count = len(sizes)
    elif lengths is not None and not isinstance(sizes, Chunks):
        size = lengths.get_partial_shape()[0]
        count = int(size.get_length()) if size.is_static else None
    return AxisSplit(data, at, dim, sizes, count)


def parts(split: AxisSplit, guard: str = "") -> list[Value]:
    """Return the parts, with the axis; it is known how many there are.

    ``guard`` is the name of the nodes at which the running model stops.
    """
    data, axis, dim, sizes, count = split
    if count is None or isinstance(sizes, Chunks):
        raise SplitError(UNKNOWN_COUNT, "the number of parts is known only at run time")
    make = NodeMaker(guard)
    if data.get_element_type() == openvino.Type.string:
        limits = bounds(dim, sizes, count)
        return [make.slice(data, start, end, axis) for start, end in limits]
    # OpenVINO takes a part of length 0 for a constant, and does not run the split that checks
    is_checked = are_known(shape_of(data) or (None,)) or (isinstance(sizes, tuple) and all(sizes))
    if isinstance(sizes, tuple) and are_known(sizes) and is_checked:
        fit = make.make(sizes)
    else:
        fit = make.make(fitting(dim, sizes, count, checks_sum=False))
    return list(ops.variadic_split(data, make.make(axis), fit).outputs())


def _check_data(intent: Intent, data: Value) -> None:
    """Check the element type of the data (TS201)."""
    kind = element_type(data)
    if kind is not None:
        check_element_type(intent.operator.id, kind, intent.element_types)


def _known_sizes(intent: Intent, shape: Shape | None) -> tuple[int, ...] | None:
    """Return the lengths, where all are numbers; what can be refused is."""
    try:
        if shape is None or intent.axis is None:
            sizes = part_sizes(intent, None)
        else:
            sizes = getattr(plan(intent, shape), "sizes", ())
    except SplitError as error:
        if error.kind is UNKNOWN_COUNT:
            return None
        raise error.located(operator=intent.operator.id) from None
    return sizes if isinstance(sizes, tuple) and sizes and are_known(sizes) else None


def _followed_sizes(
    intent: Intent, shape: Shape | None, lengths: Value | None
) -> tuple[int, ...] | None:
    """Return lengths that follow from known shapes, if they fit the data; the model may stop else.

    What is never run, such as a branch, may have lengths that do not fit.
    """
    if lengths is None or intent.rule is None or intent.given is not None:
        return None
    given = followed_values(lengths)
    if given is None or shape is None or not are_known(shape):
        return None
    with suppress(SplitError):
        return _known_sizes(replace(intent, given=given), shape)
    return None


def _run_time_sizes(intent: Intent, dim: Number, lengths: Value | None) -> Numbers | Chunks:
    """Apply the rule to a dimension that only the running model knows.

    Where it is not known what to apply it to, it is refused (TS309, TS310).
    """
    if intent.rule is not None and intent.given is not None:
        return intent.rule(dim, intent.given)
    if lengths is None or intent.rule is None:
        raise SplitError(UNKNOWN_COUNT, "the lengths are known only at run time")
    if not lengths.get_element_type().is_integral():
        raise SplitError(
            CANNOT_EXPRESS,
            "the lengths are known only at run time, as floats, which may turn out not to be whole",
            "give them as a constant",
            operator=intent.operator.id,
            parameter=intent.source,
        )
    if intent.rule is chunk:
        return intent.rule(dim, (fed(number(lengths).held, dim),))
    return intent.rule(dim, fed(as_int64(lengths), dim))


class UncountedParts(openvino.Op):  # type: ignore[misc]  # openvino ships no types
    """The parts of a tensor, until it is known how many there are.

    OpenVINO makes copies of it from its inputs alone; so they hold all that it knows: the data, the
    axis (a constant), and the lengths if any are given; without, all parts are equal.
    """

    def __init__(self, inputs: list[object]) -> None:
        super().__init__(self, inputs)

    def validate_and_infer_types(self) -> None:
        """Refuse an impossible count; OpenVINO calls this when shapes may have changed."""
        names = [output.get_names() for output in self.outputs()]
        count = sum(map(bool, names))
        data, axis_value, *given = self.input_values()
        (axis,) = constant_values(axis_value) or (0,)
        if not count:
            shape = data.get_partial_shape()
            if shape.rank.is_static and len(shape):
                shape[int(axis) % len(shape)] = openvino.Dimension()
            for place in range(_MOST_PARTS):
                self.set_output_type(place, data.get_element_type(), shape)
            return
        operands = [("axis", Operand((axis,), 0, None, "attribute"))]
        lengths = None
        if given:
            lengths = ops.reshape(given[0], constant([count]), False).output(0)
            operands.append(("split", Operand(None, 1, "int64", "input")))
        made = parts(axis_split(bind(_EQUAL, operands, count), data, lengths))
        for place, part in enumerate(made):
            for target in self.output(place).get_target_inputs():
                target.replace_source_output(part)
            part.get_tensor().set_names(names[place])


def _uncounted_parts(given: Given) -> list[Value]:
    """Return more parts than any node has outputs; as many are right as there are.

    A node that can't be right is refused (TS1xx, TS2xx), and one that can't wait (TS310).
    """
    if given.operator.absent is not _EQUAL.absent and given.lengths is not None:
        raise SplitError(
            CANNOT_EXPRESS,
            "it is not known how many lengths there are",
            "declare the shape",
            operator=given.operator.id,
            parameter=given.operator.lengths[0].operand,
        )
    intent = bind(given.operator, given.operands, 1)
    _check_data(intent, given.data)
    inputs = [given.data, constant(intent.axis or 0)]
    return list(
        UncountedParts(inputs + ([] if given.lengths is None else [given.lengths])).outputs()
    )
