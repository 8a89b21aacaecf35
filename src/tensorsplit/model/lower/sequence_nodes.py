"""Each operator on sequences, with tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import onnx_ir as ir

from tensorsplit.core.arithmetic import (
    Formula,
    Number,
    Numbers,
    dimension,
    fitting_zero,
    head,
    joined,
    minimum,
    pick,
    position,
    tail,
    value,
)
from tensorsplit.core.errors import SEQUENCE_INDEX, SplitError
from tensorsplit.core.rules import Chunks, chunks_of
from tensorsplit.model.graph.calculation import Calculation
from tensorsplit.model.graph.facts import Sequence, Tensor
from tensorsplit.model.graph.nodes import NodeRef
from tensorsplit.model.lower.context import Context, InsertionPoint, graph_of, refusal
from tensorsplit.model.lower.packed_parts import Layout, LoweredSequence, PackedParts, resized
from tensorsplit.model.lower.split_nodes import bound, known_axis, known_dim, sizes_of

LoweredSequences: TypeAlias = "dict[ir.Value, LoweredSequence]"
Result: TypeAlias = "LoweredSequence | str"
"""What stands for the sequence that a node made, or what its tensor is made with now."""


class SequenceNode:
    """One node that makes or takes sequences.

    Args:
        context: The lowering.
        place: The node.
        sequences: What stands for each sequence so far.
    """

    def __init__(self, context: Context, place: NodeRef, sequences: LoweredSequences) -> None:
        self.context, self.place, self.sequences = context, place, sequences
        self.node = place.node
        self.point = InsertionPoint(graph_of(place.node), place.node)
        self.stem = self.node.name or self.node.op_type

    def input(self, index: int) -> ir.Value | None:
        """An input, None if it is left out."""
        return self.node.inputs[index] if index < len(self.node.inputs) else None

    def sequence(self) -> LoweredSequence:
        """What stands for the first input."""
        held = self.input(0)
        if held is None or held not in self.sequences:
            raise refusal("the sequence comes from a node that can't be lowered", self.place)
        return self.sequences[held]

    def packed(self) -> PackedParts:
        """The first input, laid out in one tensor."""
        sequence = self.sequence()
        layout = sequence.layout(self.place)
        return sequence.in_layout(layout, self.context, self.point, self.place)

    @property
    def fact(self) -> Sequence:
        """What is known of the sequence that the node makes."""
        return self.context.sequence(self.node.outputs[0])

    def build(self, make: Callable[[Calculation], ir.Value]) -> ir.Value:
        """Make nodes in front of this one."""
        return self.context.build(self.point, self.stem, make)

    def result(self, make: Callable[[Calculation], ir.Value]) -> None:
        """Make nodes whose last output takes the place of this node's output."""
        self.alias(self.build(make))

    def alias(self, held: ir.Value) -> None:
        """Have a value that is there take the place of this node's output."""
        self.context.replace(self.node.outputs[0], held, self.point)

    def position(self, index: int) -> int | ir.Value | None:
        """A position: an integer, a value to be made a number, or None for one that is absent."""
        held = self.input(index)
        if held is None:
            return None
        known = self.context.tensor(held).constant
        return known[0] if known is not None and len(known) == 1 else held

    def number(self, make: Calculation, held: int | ir.Value) -> Number:
        """An operand as a number."""
        if isinstance(held, int):
            return held
        return make.number(held, self.context.tensor(held).element_type)

    def constant_position(self, index: int, count: int, extra: int) -> int | None:
        """A constant position among a known number of tensors, counted from the front.

        Raises:
            SplitError: TS511 if it is out of range.
        """
        found = self.position(index)
        if found is None:
            return count - 1 + extra
        if not isinstance(found, int):
            return None
        if not -count <= found < count + extra:
            raise SplitError(
                SEQUENCE_INDEX,
                f"the position {found} is out of range, the sequence has {count} tensors",
                f"give a position in [{-count}, {count - 1 + extra}]",
                operator=self.node.op_type,
                node=self.place.path,
            )
        return found + count if found < 0 else found


def _split(step: SequenceNode) -> Result:
    """SplitToSequence."""
    context, data = step.context, step.input(0)
    intent = bound(context, step.place)
    assert data is not None  # noqa: S101 - `bound` looked
    if intent.rule is None:
        raise refusal(
            "it is not known whether 'split' is a scalar or a list",
            step.place,
            "declare its shape",
        )
    axis = known_axis(context, step.place, intent)
    known = known_dim(context, data, axis)
    dim = dimension(data, axis) if known is None else known

    def calculated(make: Calculation) -> tuple[Numbers | Chunks, Number]:
        """The lengths, and a zero that stops the running model if they do not fit."""
        sizes = sizes_of(context, step.place, make, intent, dim)
        if not isinstance(sizes, Chunks):
            zero = fitting_zero(dim, sizes)
            return _held(make, sizes), _held(make, zero)
        if not isinstance(sizes.size, Formula):
            return sizes, 0
        size = _held(make, sizes.size)
        return chunks_of(dim, size), _held(make, minimum(size, 1) - 1)

    sizes, zero = context.build(step.point, step.stem, calculated)
    layout = Layout(axis, dropped=not intent.keepdims)
    if isinstance(sizes, Formula) and (held := step.input(1)) is not None:
        context.know(sizes.operands[0], Tensor(ir.DataType.INT64, context.tensor(held).shape))
    packed = PackedParts(context, step.point, data, layout, sizes, step.stem, dim, zero)
    return LoweredSequence.of(packed, step.fact)


def _held(make: Calculation, number: Number) -> Number:
    """A formula as the value that it was calculated to."""
    return value(make.make(number)) if isinstance(number, Formula) else number


def _at(step: SequenceNode) -> Result:
    sequence = step.sequence()
    if sequence.parts is not None:
        index = step.constant_position(1, len(sequence.parts), 0)
        if index is not None:
            step.alias(sequence.tensor(sequence.parts[index]))
            return "the part itself"
    index_value = step.position(1)
    assert index_value is not None  # noqa: S101 - the input is required
    packed = step.packed()
    step.result(lambda make: packed.at(make, step.number(make, index_value)))
    return "Gather" if packed.layout.dropped else "Slice"


def _length(step: SequenceNode) -> Result:
    sequence = step.sequence()
    count: Number = len(sequence.parts or ())
    if sequence.packed is not None:
        count = sequence.packed.count()
    step.result(lambda make: make.scalar(count))
    return "Constant" if isinstance(count, int) else "computed length"


def _construct(step: SequenceNode) -> Result:
    parts = tuple(held for held in step.node.inputs if held is not None)
    return LoweredSequence(parts, None, step.fact)


def _empty(step: SequenceNode) -> Result:
    return LoweredSequence((), None, step.fact)


def _identity(step: SequenceNode) -> Result:
    return step.sequence()


def _insert(step: SequenceNode) -> Result:
    sequence, tensor = step.sequence(), step.input(1)
    assert tensor is not None  # noqa: S101 - the input is required
    if sequence.parts is not None:
        index = step.constant_position(2, len(sequence.parts), 1)
        if index is not None:
            parts = (*sequence.parts[:index], tensor, *sequence.parts[index:])
            return LoweredSequence(parts, None, step.fact)
    layout = sequence.layout(step.place, step.fact)
    packed = sequence.in_layout(layout, step.context, step.point, step.place)
    given = step.position(2)

    def inserted(make: Calculation) -> tuple[ir.Value, Numbers | None]:
        axis, dropped = packed.layout.axis, packed.layout.dropped
        new = make.unsqueeze(tensor, [axis]) if dropped else tensor
        lengths = None if dropped else packed.lengths()
        length = dimension(tensor, axis)
        if given is None:
            whole = make.concat([packed.whole(), new], axis)
            return whole, None if lengths is None else joined(lengths, (length,))
        count = packed.count()
        place = _held(make, position(step.number(make, given), count, count))
        before, after = _around(make, packed, place, place)
        whole = make.concat([before, new, after], axis)
        if lengths is None:
            return whole, None
        return whole, joined(head(lengths, place), (length,), tail(lengths, place))

    return _repacked(step, packed, inserted)


def _erase(step: SequenceNode) -> Result:
    sequence = step.sequence()
    if sequence.parts is not None:
        index = step.constant_position(1, len(sequence.parts), 0)
        if index is not None:
            parts = (*sequence.parts[:index], *sequence.parts[index + 1 :])
            return LoweredSequence(parts, None, step.fact)
    packed = step.packed()
    given = step.position(1)

    def erased(make: Calculation) -> tuple[ir.Value, Numbers | None]:
        count = packed.count()
        index = -1 if given is None else step.number(make, given)
        place = _held(make, position(index, count, count - 1))
        before, after = _around(make, packed, place, place + 1)
        whole = make.concat([before, after], packed.layout.axis)
        if packed.layout.dropped:
            return whole, None
        lengths = packed.lengths()
        return whole, joined(head(lengths, place), tail(lengths, place + 1))

    return _repacked(step, packed, erased)


def _around(
    make: Calculation, packed: PackedParts, place: Number, following: Number
) -> tuple[ir.Value, ir.Value]:
    """The data before a position, and that from another position on."""
    by_index = packed.context.takes_by_index(packed.data)
    axis = packed.layout.axis
    start, end = packed.start(place), packed.start(following)
    before = make.slice(packed.data, 0, start, axis, by_index=by_index)
    after = make.slice(packed.data, end, packed.end(), axis, by_index=by_index)
    return before, after


def _repacked(
    step: SequenceNode,
    packed: PackedParts,
    change: Callable[[Calculation], tuple[ir.Value, Numbers | None]],
) -> LoweredSequence:
    """The sequence with other data and lengths, laid out as before."""

    def made(make: Calculation) -> tuple[ir.Value, Numbers | Chunks | None]:
        data, lengths = change(make)
        return data, None if lengths is None else _held(make, lengths)

    data, sizes = step.context.build(step.point, step.stem, made)
    known, axis = step.context.tensor(packed.data), packed.layout.axis
    step.context.know(data, resized(known, axis, None))
    dim = dimension(data, axis)
    if sizes is None:
        sizes = Chunks(dim, dim, 1)
    new = PackedParts(step.context, step.point, data, packed.layout, sizes, step.stem, dim)
    return LoweredSequence.of(new, step.fact)


def _concat(step: SequenceNode) -> Result:
    """ConcatFromSequence."""
    sequence, node = step.sequence(), step.node
    axis = node.attributes.get_int("axis", 0)
    new_axis = bool(node.attributes.get_int("new_axis", 0))
    if sequence.packed is not None:
        became = _joined_at_once(step, sequence.packed, axis, new_axis=new_axis)
        if became is not None:
            return became
    if sequence.parts is None:
        raise refusal(
            "an unknown number of tensors is joined along another axis than they were split on",
            step.place,
        )
    if not sequence.parts:
        raise refusal("it joins no tensors", step.place, "give it at least one")
    parts = sequence.tensors()
    if new_axis:
        step.result(
            lambda make: make.concat([make.unsqueeze(part, [axis]) for part in parts], axis)
        )
    elif len(parts) == 1:
        step.alias(parts[0])
    else:
        step.result(lambda make: make.concat(parts, axis))
    return "Concat"


def _joined_at_once(
    step: SequenceNode, packed: PackedParts, axis: int, *, new_axis: bool
) -> str | None:
    """Join all parts of one tensor without making them; None if there is no such way.

    Args:
        step: The node.
        packed: The parts.
        axis: The axis to join them along, in the result if it is a new one.
        new_axis: Whether the axis is a new one.
    """
    shape, here = step.context.tensor(packed.data).shape, packed.layout.axis
    rank = None if shape is None else len(shape)
    there = axis if rank is None else axis % rank
    if new_axis == packed.layout.dropped and there == here >= 0:
        step.alias(packed.whole())
        return "the data itself"
    if rank is None or not packed.layout.dropped:
        return None
    if new_axis:
        step.result(lambda make: _moved(make, packed.whole(), rank, here, there))
        return "Transpose"
    if rank < 2:
        return None
    step.result(lambda make: _merged(make, packed.whole(), rank, here, axis % (rank - 1)))
    return "Transpose and Reshape"


def _moved(make: Calculation, data: ir.Value, rank: int, start: int, end: int) -> ir.Value:
    """The data with one axis moved."""
    order = [axis for axis in range(rank) if axis != start]
    order.insert(end, start)
    if order == list(range(rank)):
        return data
    return make.op("Transpose", [data], {"perm": order})


def _merged(make: Calculation, data: ir.Value, rank: int, start: int, end: int) -> ir.Value:
    """The data with one axis moved in front of another one and merged with it."""
    moved = _moved(make, data, rank, start, end)
    shape = value(make.op("Shape", [moved]))
    both = pick(shape, end) * pick(shape, end + 1)
    before = [head(shape, end)] if end else []
    after = [tail(shape, end + 2)] if end + 2 < rank else []
    new = make.make(joined(*before, (both,), *after))
    attributes = {"allowzero": 1} if make.opset >= 14 else {}
    return make.op("Reshape", [moved, new], attributes)


HANDLERS: Mapping[str, Callable[[SequenceNode], Result]] = {
    "SplitToSequence": _split,
    "SequenceAt": _at,
    "SequenceLength": _length,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "SequenceInsert": _insert,
    "SequenceErase": _erase,
    "ConcatFromSequence": _concat,
    "Identity": _identity,
}
"""What to do with each operator."""
