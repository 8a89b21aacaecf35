"""Sequences that are pieces of one tensor, and what is taken out of them."""

from __future__ import annotations

from typing import Any

import openvino
from openvino import opset8 as ops

from tensorsplit.core.errors import CANNOT_EXPRESS, SEQUENCE_INDEX, SplitError
from tensorsplit.core.resolve import Intent, bind, plan
from tensorsplit.core.rules import Chunks, chunk, explicit, ones
from tensorsplit.openvino.arithmetic import (
    Length,
    Number,
    Value,
    as_int64,
    constant,
    dimension,
    guarded,
    itself,
    less,
    not_below_zero,
    number,
    piece,
    position,
    scalar,
)
from tensorsplit.openvino.nodes import constant_values, read, shape_of
from tensorsplit.openvino.splits import check_data, parts, sure_lengths
from tensorsplit.openvino.stock import MARK, stock, tensors_of

_MOST_MARKED = 4096
"""Of more parts, each is cut where it is used."""


class Pieces(openvino.Op):  # type: ignore[misc]  # openvino ships no types
    """Consecutive pieces of a tensor, of which it is not known how many there are.

    It stands in the model only while that is imported: what takes a part out of it takes it out
    of the tensor itself.

    Attributes:
        data: The tensor.
        axis: The axis.
        length: The length of each piece, but perhaps the last; None if they are listed.
        lengths: The length of each piece; None if all are of one.
        dropped: Whether the pieces, of length 1, lack the axis.
    """

    data: Value
    axis: int
    length: Number | None
    lengths: Value | None
    dropped: bool

    def __init__(self, inputs: list[Value]) -> None:
        super().__init__(self, inputs)

    @classmethod
    def of(
        cls, intent: Intent, data: Value, length: Number | None, lengths: Value | None
    ) -> Pieces:
        """The pieces that a node asks for, of one length or of the lengths listed."""
        made = cls([data])
        made.data, made.axis, made.dropped = data, intent.axis or 0, not intent.keepdims
        made.length, made.lengths = length, lengths
        return made

    def validate_and_infer_types(self) -> None:
        """Called by OpenVINO, whose models hold no such sequences when they are complete.

        Raises:
            SplitError: TS310 if it is still used.
        """
        if self.get_output_size() and (users := self.output(0).get_target_inputs()):
            raise SplitError(
                CANNOT_EXPRESS,
                "a sequence of which it is not known how many tensors it has is used by"
                f" {next(iter(users)).get_node().get_type_name()}",
                "lower the model instead: tensorsplit.lower(model, target='openvino')",
                operator="onnx.SplitToSequence",
            )
        self.set_output_type(0, self.get_input_element_type(0), openvino.PartialShape.dynamic())

    def dimension(self) -> Length:
        """The dimension that is cut."""
        return dimension(self.data, constant(self.axis))

    def count(self) -> Length:
        """How many pieces there are."""
        if self.lengths is not None:
            return Length(ops.shape_of(self.lengths, "i64").output(0))
        if isinstance(self.length, int):
            sizes = chunk(self.dimension(), (self.length,))
            assert isinstance(sizes, Chunks)  # noqa: S101 - the dimension is no number
            return sizes.count  # type: ignore[no-any-return]  # a Dim may be anything
        assert self.length is not None  # noqa: S101 - one of the two is there
        return -(-self.dimension() // self.length)

    def at(self, index: Number) -> Value:
        """A piece; the running model stops where there is none of that position (D19)."""
        place = position(index, self.count())
        axis = constant(self.axis)
        if self.dropped:
            return ops.gather(self.data, scalar(place), axis).output(0)
        if self.lengths is None:
            assert self.length is not None  # noqa: S101 - one of the two is there
            start = place * self.length
            end = Length(
                ops.minimum((start + self.length).tensor, self.dimension().tensor).output(0)
            )
            return piece(self.data, start, end, axis)
        lengths = sure_lengths(self.lengths, self.dimension())
        ends = ops.cum_sum(lengths, constant(0)).output(0)
        end = Length(ops.gather(ends, place.tensor, constant(0)).output(0))
        own = Length(ops.gather(lengths, place.tensor, constant(0)).output(0))
        return piece(self.data, end - own, end, axis)


def split_to_sequence(context: Any) -> list[Value]:
    """A sequence of the parts of a tensor.

    Raises:
        SplitError: TS1xx to TS3xx for a node that is wrong.
    """
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
    return [_pieces(intent, given.data, lengths).output(0)]


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


def _pieces(intent: Intent, data: Value, lengths: Value | None) -> Pieces:
    if intent.rule is ones:
        return Pieces.of(intent, data, 1, None)
    if intent.rule is chunk and intent.given is not None:
        return Pieces.of(intent, data, intent.given[0], None)
    if intent.rule is chunk:
        length = number(lengths)
        return Pieces.of(intent, data, guarded(length, less(0, length)), None)
    listed = constant(intent.given) if intent.given is not None else as_int64(lengths)
    return Pieces.of(intent, data, None, not_below_zero(listed))


def sequence_at(context: Any) -> list[Value]:
    """One tensor of a sequence.

    Raises:
        SplitError: TS511 for a position that is known, and out of range.
    """
    sequence, index = context.get_input(0), context.get_input(1)
    values = constant_values(index)
    place: Number = int(values[0]) if values else number(index)
    node = sequence.get_node()
    if isinstance(node, Pieces):
        return [node.at(place)]
    tensors = tensors_of(sequence)
    if tensors is None:
        return [stock("SequenceAt", sequence, [index])]
    if isinstance(place, Length):
        sure = scalar(position(place, len(tensors)))
        return [stock("SequenceAt", sequence, [sure])]
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
    if isinstance(node, Pieces):
        return [scalar(node.count())]
    return [stock("SequenceLength", sequence, [])]


def concat_from_sequence(context: Any) -> list[Value]:
    """The tensors of a sequence, joined.

    Raises:
        SplitError: TS310 if an unknown number of pieces is joined along another axis than they
            were cut on.
    """
    sequence = context.get_input(0)
    attributes = {"axis": context.get_attribute("axis", 0)}
    attributes["new_axis"] = context.get_attribute("new_axis", 0)
    node = sequence.get_node()
    if not isinstance(node, Pieces):
        return [stock("ConcatFromSequence", sequence, [], attributes)]
    shape = shape_of(node.data)
    axis, along = attributes["axis"], node.axis
    if shape is not None:
        axis, along = axis % len(shape), along % len(shape)
    if axis == along and bool(attributes["new_axis"]) == node.dropped:
        return [itself(node.data)]
    raise SplitError(
        CANNOT_EXPRESS,
        "an unknown number of tensors is joined along another axis than they were cut on",
        "lower the model instead: tensorsplit.lower(model, target='openvino')",
        operator="onnx.ConcatFromSequence",
    )
