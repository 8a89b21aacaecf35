"""Sequences that are parts of one tensor, and what is taken out of them."""

from __future__ import annotations

from typing import Any

import openvino
from openvino import opset8 as ops

from tensorsplit.core.arithmetic import (
    Formula,
    Number,
    Numbers,
    as_formula,
    dimension,
    fitting_zero,
    minimum,
    pick,
    position,
    size_of,
    sums,
    value,
)
from tensorsplit.core.dimensions import is_known
from tensorsplit.core.errors import CANNOT_EXPRESS, SEQUENCE_INDEX, SplitError
from tensorsplit.core.resolve import Intent, bind, plan
from tensorsplit.core.rules import Chunks, explicit
from tensorsplit.openvino.given_nodes import constant_values, read, shape_of
from tensorsplit.openvino.node_maker import NodeMaker, Value, constant, itself, number
from tensorsplit.openvino.split_conversions import check_data, parts, run_time_sizes
from tensorsplit.openvino.stock import MARK, stock, tensors_of

_SPLIT = "VariadicSplit"
_MOST_MARKED = 4096
"""Of more parts, each is taken where it is used."""


class PackedSequence(openvino.Op):  # type: ignore[misc]  # openvino ships no types
    """Consecutive parts of a tensor, of which it is not known how many there are.

    It stands in the model only while that is imported: what takes a part out of it takes it out
    of the tensor itself. The parts lack the axis if it is ``dropped``; the running model stops
    where ``zero`` is used if the lengths do not fit; ``maker`` makes the nodes that all uses share.
    """

    data: Value
    axis: int
    dropped: bool
    dim: Number
    sizes: Numbers | Chunks
    zero: Number
    maker: NodeMaker

    def __init__(self, inputs: list[Value]) -> None:
        super().__init__(self, inputs)

    @classmethod
    def of(cls, intent: Intent, data: Value, lengths: Value | None) -> PackedSequence:
        """The parts that a node asks for."""
        made = cls([data])
        made.data, made.axis, made.dropped = data, intent.axis or 0, not intent.keepdims
        made.maker, made.dim = NodeMaker(), dimension(data, made.axis)
        sizes = made.sizes = run_time_sizes(intent, made.dim, lengths)
        if not isinstance(sizes, Chunks):
            made.zero = fitting_zero(made.dim, sizes)
        else:
            made.zero = 0 if is_known(sizes.size) else minimum(sizes.size, 1) - 1
        return made

    def validate_and_infer_types(self) -> None:
        """Called by OpenVINO; a complete model may not use such sequences (TS310)."""
        if self.get_output_size() and (users := self.output(0).get_target_inputs()):
            raise SplitError(
                CANNOT_EXPRESS,
                "a sequence of which it is not known how many tensors it has is used by"
                f" {next(iter(users)).get_node().get_type_name()}",
                "lower the model instead: tensorsplit.lower(model, target='openvino')",
                operator="onnx.SplitToSequence",
            )
        self.set_output_type(0, self.get_input_element_type(0), openvino.PartialShape.dynamic())

    def count(self) -> Number:
        """How many parts there are."""
        if isinstance(self.sizes, Chunks):
            return self.sizes.count
        return size_of(self.sizes) + self.zero

    def at(self, index: Number) -> Value:
        """A part; the running model stops where there is none of that position (D19)."""
        count = self.count()
        place = position(index, count, count - 1)
        if self.dropped:
            axis = constant(self.axis)
            return ops.gather(self.data, self.maker.scalar(place), axis).output(0)
        if isinstance(self.sizes, Chunks):
            start = place * self.sizes.size
            end = minimum(start + self.sizes.size, self.dim)
        else:
            lengths = as_formula(self.sizes) + self.zero
            end = pick(sums(lengths), place)
            start = end - pick(lengths, place)
        return self.maker.slice(self.data, start, end, self.axis)

    def whole(self) -> Value:
        """The tensor; the running model stops if the lengths do not fit it."""
        if is_known(self.zero):
            return self.data
        return self.maker.slice(self.data, self.zero, self.dim, self.axis)


def split_to_sequence(context: Any) -> list[Value]:
    """A sequence of the parts of a tensor; a node that is wrong is refused (TS1xx to TS3xx)."""
    given = read(context, "SplitToSequence", "onnx")
    intent = bind(given.operator, given.operands)
    check_data(intent, given.data)
    if intent.axis is None or intent.rule is None:
        raise SplitError(
            CANNOT_EXPRESS,
            "it is not known whether 'split' is a scalar or a list",
            "declare its shape",
            operator=given.operator.id,
            parameter=intent.source,
        )
    lengths = given.values.get(intent.source or "")
    count = _count(intent, given.data, lengths)
    if count is not None and 0 < count <= _MOST_MARKED:
        made = parts(intent, given.data, None, lengths)
        if not intent.keepdims:
            made = [ops.squeeze(part, constant([intent.axis])).output(0) for part in made]
        mark = stock("SequenceConstruct", None, made)
        if mark.get_node().get_type_name() == MARK:
            return [mark]
    return [PackedSequence.of(intent, given.data, lengths).output(0)]


def _count(intent: Intent, data: Value, lengths: Value | None) -> int | None:
    """How many parts there are, where that is known; what can be refused is."""
    shape = shape_of(data)
    sizes = None
    if shape is not None and intent.given is not None:
        sizes = getattr(plan(intent, shape), "sizes", None)
    elif intent.rule is explicit:
        sizes = intent.given
    if sizes is not None:
        return len(sizes)
    if intent.rule is explicit and lengths is not None:
        size = lengths.get_partial_shape()[0]
        return int(size.get_length()) if size.is_static else None
    return None


def sequence_at(context: Any) -> list[Value]:
    """One tensor of a sequence; a position that is known and out of range is refused (TS511)."""
    sequence, index = context.get_input(0), context.get_input(1)
    values = constant_values(index)
    place: Number = int(values[0]) if values else number(index)
    node = sequence.get_node()
    if isinstance(node, PackedSequence):
        return [node.at(place)]
    tensors = tensors_of(sequence)
    if tensors is None:
        return [stock("SequenceAt", sequence, [index])]
    if isinstance(place, Formula):
        sure, make = position(place, len(tensors), len(tensors) - 1), NodeMaker()
        if len(tensors) > 1:
            return [stock("SequenceAt", sequence, [make.scalar(sure)])]
        # OpenVINO makes no use of a position in a list of one: a slice needs it, and so the guard
        one = make.slice(ops.unsqueeze(tensors[0], constant(0)).output(0), sure, 1, 0)
        return [ops.squeeze(one, constant([0])).output(0)]
    if not -len(tensors) <= place < len(tensors):
        raise SplitError(
            SEQUENCE_INDEX,
            f"the position is {place}, but the sequence has {len(tensors)} tensors",
            f"give one from {-len(tensors)} to {len(tensors) - 1}",
            operator="onnx.SequenceAt",
        )
    return [itself(tensors[place])]


def sequence_length(context: Any) -> list[Value]:
    """How many tensors a sequence has."""
    sequence = context.get_input(0)
    node = sequence.get_node()
    if isinstance(node, PackedSequence):
        return [node.maker.scalar(node.count())]
    tensors = tensors_of(sequence) or ()
    part = tensors[0].get_node() if tensors else node
    if part.get_type_name() == _SPLIT and part.input(0).get_partial_shape().is_dynamic:
        data, axis, lengths = part.input_values()  # counting its parts does not run it
        zero = fitting_zero(dimension(data, number(axis)), value(lengths))
        return [NodeMaker().scalar(zero + len(tensors))]
    return [stock("SequenceLength", sequence, [])]


def concat_from_sequence(context: Any) -> list[Value]:
    """The tensors of a sequence, joined.

    Of an unknown number, they must be joined along the axis they were split on (TS310).
    """
    sequence = context.get_input(0)
    attributes = {"axis": context.get_attribute("axis", 0)}
    attributes["new_axis"] = context.get_attribute("new_axis", 0)
    node = sequence.get_node()
    if not isinstance(node, PackedSequence):
        return [stock("ConcatFromSequence", sequence, [], attributes)]
    shape = shape_of(node.data)
    axis, along = attributes["axis"], node.axis
    if shape is not None:
        axis, along = axis % len(shape), along % len(shape)
    if axis == along and bool(attributes["new_axis"]) == node.dropped:
        return [itself(node.whole())]
    raise SplitError(
        CANNOT_EXPRESS,
        "an unknown number of tensors is joined along another axis than they were split on",
        "lower the model instead: tensorsplit.lower(model, target='openvino')",
        operator="onnx.ConcatFromSequence",
    )
