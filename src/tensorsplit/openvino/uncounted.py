"""Split nodes of which an extension is not told how many parts they have.

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

from tensorsplit.core.errors import CANNOT_EXPRESS, SplitError
from tensorsplit.core.operands import Operand
from tensorsplit.core.records import operators
from tensorsplit.core.resolve import bind
from tensorsplit.openvino.arithmetic import Value, constant
from tensorsplit.openvino.nodes import Given, constant_values
from tensorsplit.openvino.splits import check_data, parts

MOST_PARTS = 1024

_EQUAL = operators["onnx.Split-13"]


class UncountedParts(openvino.Op):  # type: ignore[misc]  # openvino ships no types
    """The parts of a tensor, until it is known how many there are.

    OpenVINO makes copies of it from its inputs alone; so they hold all that it knows.

    Args:
        inputs: The data; the axis, a constant; the lengths, if any are given. Without lengths,
            all parts are equal.
    """

    def __init__(self, inputs: list[Any]) -> None:
        super().__init__(self, inputs)

    def validate_and_infer_types(self) -> None:
        """Called by OpenVINO whenever shapes may have changed.

        Raises:
            SplitError: TS2xx, TS3xx once the number of parts is known and can't be.
        """
        names = [output.get_names() for output in self.outputs()]
        count = sum(map(bool, names))
        if not count:
            self._describe()
            return
        made = _cut([self.input_value(place) for place in range(self.get_input_size())], count)
        for place, part in enumerate(made):
            for target in self.output(place).get_target_inputs():
                target.replace_source_output(part)
            part.get_tensor().set_names(names[place])

    def _describe(self) -> None:
        data = self.input_value(0)
        shape = data.get_partial_shape()
        if shape.rank.is_static:
            (axis,) = constant_values(self.input_value(1)) or (0,)
            shape[int(axis)] = openvino.Dimension()
        for place in range(MOST_PARTS):
            self.set_output_type(place, data.get_element_type(), shape)


def uncounted_parts(given: Given, lengths: Value | None) -> list[Value]:
    """More parts than any node has outputs, of which as many will be right as there are.

    Args:
        given: The node.
        lengths: What holds the lengths, if they are given and it is not known how many there are.

    Raises:
        SplitError: TS1xx, TS2xx for a node that can't be right; TS310 for one that can't wait.
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


def _cut(inputs: list[Value], count: int) -> list[Value]:
    data, axis_value, *given = inputs
    (axis,) = constant_values(axis_value) or (0,)
    operands = [("axis", Operand((axis,), 0, None, "attribute"))]
    if not given:
        return parts(bind(_EQUAL, operands, count), data)
    lengths = ops.reshape(given[0], constant([count]), False).output(0)
    operands.append(("split", Operand(None, 1, "int64", "input")))
    return parts(bind(_EQUAL, operands, count), data, None, lengths)
