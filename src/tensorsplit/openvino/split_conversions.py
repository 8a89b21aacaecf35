"""Splits as nodes of OpenVINO, also where an extension is not told how many parts there are.

Below opset 18 a Split without lengths makes one part for each output of the node, and OpenVINO
does not show an extension how many there are. It names the outputs after the extension returned,
though, and validates each node again when the model is complete. So a placeholder with more
outputs than any node has waits for that moment, counts the named ones, and has the parts used in
its own place.
"""

from __future__ import annotations

from typing import Any

import openvino
from openvino import opset8 as ops

from tensorsplit.core.arithmetic import Number, Numbers, bounds, dimension, fed, fitting
from tensorsplit.core.dimensions import Shape, are_known
from tensorsplit.core.errors import CANNOT_EXPRESS, UNKNOWN_COUNT, SplitError
from tensorsplit.core.operands import Operand
from tensorsplit.core.records import operators
from tensorsplit.core.resolve import Intent, bind, check_element_type, part_sizes, plan
from tensorsplit.core.rules import Chunks, chunk
from tensorsplit.openvino.given_nodes import Given, constant_values, element_type, shape_of
from tensorsplit.openvino.node_maker import NodeMaker, Value, as_int64, constant, number

MOST_PARTS = 1024
"""More parts than this can't wait to be counted."""

_EQUAL = operators["onnx.Split-13"]


def parts(
    intent: Intent, data: Value, axis: Value | None = None, lengths: Value | None = None
) -> list[Value]:
    """The parts of a tensor, with the axis; their number is known.

    What its shape tells that can't be split is refused (TS2xx, TS3xx). ``axis`` and ``lengths``
    hold what is no constant.
    """
    check_data(intent, data)
    at: Number = intent.axis or 0
    if intent.axis is None and axis is not None:
        at = number(axis)
    make, dim = NodeMaker(), dimension(data, at)
    sizes: Numbers | Chunks = known_sizes(intent, shape_of(data))
    if sizes is None:
        sizes = run_time_sizes(intent, dim, lengths)
    if isinstance(sizes, Chunks):
        raise SplitError(UNKNOWN_COUNT, "the number of parts is known only at run time")
    count = len(sizes) if isinstance(sizes, tuple) else _length_of(lengths)
    if data.get_element_type() == openvino.Type.string:
        limits = bounds(dim, sizes, count)
        return [make.slice(data, start, end, at) for start, end in limits]
    if not (isinstance(sizes, tuple) and are_known(sizes)):
        sizes = fitting(dim, sizes, count, checks_sum=False)
    return list(ops.variadic_split(data, make.make(at), make.make(sizes)).outputs())


def _length_of(lengths: Value) -> int:
    return int(lengths.get_partial_shape()[0].get_length())


def check_data(intent: Intent, data: Value) -> None:
    """Check the element type of the data (TS201)."""
    kind = element_type(data)
    if kind is not None:
        check_element_type(intent.operator.id, kind, intent.element_types)


def known_sizes(intent: Intent, shape: Shape | None) -> tuple[int, ...] | None:
    """The lengths, where all are numbers; what can be refused is."""
    try:
        if shape is None or intent.axis is None:
            sizes = part_sizes(intent, None)
        else:
            sizes = getattr(plan(intent, shape), "sizes", ())
    except SplitError as error:
        if error.kind is UNKNOWN_COUNT:
            return None
        raise error.located(operator=intent.operator.id) from None
    return None if isinstance(sizes, Chunks) or not sizes or not are_known(sizes) else sizes


def run_time_sizes(intent: Intent, dim: Number, lengths: Value | None) -> Numbers | Chunks:
    """What the rule makes of a dimension that only the running model knows.

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
        return intent.rule(dim, (fed(number(lengths).operands[0], dim),))
    return intent.rule(dim, fed(as_int64(lengths), dim))


class UncountedParts(openvino.Op):  # type: ignore[misc]  # openvino ships no types
    """The parts of a tensor, until it is known how many there are.

    OpenVINO makes copies of it from its inputs alone; so they hold all that it knows: the data, the
    axis (a constant), and the lengths if any are given; without, all parts are equal.
    """

    def __init__(self, inputs: list[Any]) -> None:
        super().__init__(self, inputs)

    def validate_and_infer_types(self) -> None:
        """Called by OpenVINO whenever shapes may have changed; refuses a count that can't be."""
        names = [output.get_names() for output in self.outputs()]
        count = sum(map(bool, names))
        if not count:
            self._describe()
            return
        made = _counted_parts(self.input_values(), count)
        for place, part in enumerate(made):
            for target in self.output(place).get_target_inputs():
                target.replace_source_output(part)
            part.get_tensor().set_names(names[place])

    def _describe(self) -> None:
        data = self.input_value(0)
        shape = data.get_partial_shape()
        if shape.rank.is_static and len(shape):
            (axis,) = constant_values(self.input_value(1)) or (0,)
            shape[int(axis) % len(shape)] = openvino.Dimension()
        for place in range(MOST_PARTS):
            self.set_output_type(place, data.get_element_type(), shape)


def uncounted_parts(given: Given, lengths: Value | None) -> list[Value]:
    """More parts than any node has outputs, of which as many will be right as there are.

    ``lengths`` holds them if they are given and it is not known how many there are. A node that
    can't be right is refused (TS1xx, TS2xx), and one that can't wait (TS310).
    """
    if given.operator.absent is not _EQUAL.absent and lengths is not None:
        raise SplitError(
            CANNOT_EXPRESS,
            "it is not known how many lengths there are",
            "declare the shape",
            operator=given.operator.id,
            parameter=given.operator.lengths[0].operand,
        )
    intent = bind(given.operator, given.operands, 1)
    check_data(intent, given.data)
    inputs = [given.data, constant(intent.axis or 0)] + ([] if lengths is None else [lengths])
    return list(UncountedParts(inputs).outputs())


def _counted_parts(inputs: list[Value], count: int) -> list[Value]:
    data, axis_value, *given = inputs
    (axis,) = constant_values(axis_value) or (0,)
    operands = [("axis", Operand((axis,), 0, None, "attribute"))]
    if not given:
        return parts(bind(_EQUAL, operands, count), data)
    lengths = ops.reshape(given[0], constant([count]), False).output(0)
    operands.append(("split", Operand(None, 1, "int64", "input")))
    return parts(bind(_EQUAL, operands, count), data, None, lengths)
