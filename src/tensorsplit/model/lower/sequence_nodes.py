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
from tensorsplit.model.graph.facts import Sequence, Tensor
from tensorsplit.model.graph.nodes import NodeRef
from tensorsplit.model.lower.context import Context, InsertionPoint, graph_of, refusal
from tensorsplit.model.lower.packed_parts import (
    Layout,
    LoweredSequence,
    PackedParts,
    calculated,
    resized,
)
from tensorsplit.model.lower.split_nodes import bound, known_axis, length_of, sizes_of

LoweredSequences: TypeAlias = "dict[ir.Value, LoweredSequence]"
Result: TypeAlias = "LoweredSequence | str"
"""What stands for the sequence that a node made, or what its tensor is made with now."""


class SequenceNode:
    """One node that makes, takes or hands on sequences.

    Attributes:
        context: The lowering.
        ref: The node.
        sequences: What stands for each sequence so far.
        point: Before the node.
    """

    def __init__(self, context: Context, ref: NodeRef, sequences: LoweredSequences) -> None:
        self.context, self.ref, self.sequences = context, ref, sequences
        self.node, self.stem = ref.node, ref.node.name or ref.op_type
        self.point = InsertionPoint(context, self.stem, graph_of(ref.node), ref.node)

    def sequence(self, held: ir.Value | None) -> LoweredSequence:
        """What stands for a sequence (TS513 if nothing does)."""
        if held is None or held not in self.sequences:
            raise refusal("a sequence comes from an operator that can't be lowered", self.ref)
        return self.sequences[held]

    def packed(self) -> PackedParts:
        """The first input, laid out in one tensor."""
        sequence = self.sequence(self.ref.input(0))
        return sequence.in_layout(sequence.layout(self.ref), self.point, self.ref)

    @property
    def fact(self) -> Sequence:
        """What is known of the sequence that the node makes."""
        return self.context.sequence(self.node.outputs[0])

    def result(self, held: ir.Value) -> None:
        """Have a value take the place of this node's output."""
        self.point.replace(self.node.outputs[0], held)

    def position(self, index: int) -> Number:
        """An input that is a position; None if it is left out."""
        held = self.ref.input(index)
        if held is None:
            return None
        known = self.context.tensor(held)
        if known.constant is not None and len(known.constant) == 1:
            return known.constant[0]
        return self.point.number(held, known.element_type)

    def constant_position(self, index: int, count: int, extra: int) -> int | None:
        """A constant position among a known number of tensors, counted from the front.

        Raises:
            SplitError: TS511 if it is out of range.
        """
        held = self.ref.input(index)
        if held is None:
            return count - 1 + extra
        known = self.context.tensor(held).constant
        if known is None or len(known) != 1:
            return None
        found = known[0]
        if not -count <= found < count + extra:
            raise SplitError(
                SEQUENCE_INDEX,
                f"the position {found} is out of range, the sequence has {count} tensors",
                f"give a position in [{-count}, {count - 1 + extra}]",
                operator=self.node.op_type,
                node=self.ref.path,
            )
        return found + count if found < 0 else found


def _split(step: SequenceNode) -> Result:
    """SplitToSequence."""
    context, point, data = step.context, step.point, step.ref.input(0)
    intent = bound(context, step.ref)
    assert data is not None  # noqa: S101 - `bound` looked
    if intent.rule is None:
        problem = "it is not known whether 'split' is a scalar or a list"
        raise refusal(problem, step.ref, "declare its shape")
    axis = known_axis(context, step.ref, intent)
    dim = length_of(context, data, axis)
    sizes, zero = sizes_of(context, step.ref, point, intent, dim), 0
    if not isinstance(sizes, Chunks):
        zero = calculated(point, fitting_zero(dim, sizes))
        sizes = calculated(point, sizes)
    elif isinstance(sizes.size, Formula):
        size = calculated(point, sizes.size)
        sizes, zero = chunks_of(dim, size), calculated(point, minimum(size, 1) - 1)
    lengths = step.ref.input(1)
    if isinstance(sizes, Formula) and lengths is not None:
        known = Tensor(ir.DataType.INT64, context.tensor(lengths).shape)
        context.facts.set(sizes.operands[0], known)
    layout = Layout(axis, dropped=not intent.keepdims)
    return LoweredSequence.of(PackedParts(point, data, layout, sizes, dim, zero), step.fact)


def _at(step: SequenceNode) -> Result:
    sequence = step.sequence(step.ref.input(0))
    if sequence.parts is not None:
        index = step.constant_position(1, len(sequence.parts), 0)
        if index is not None:
            step.result(sequence.tensor(sequence.parts[index]))
            return "the part itself"
    packed = step.packed()
    step.result(packed.at(step.point, step.position(1)))
    return "Gather" if packed.layout.dropped else "Slice"


def _length(step: SequenceNode) -> Result:
    sequence = step.sequence(step.ref.input(0))
    packed = sequence.packed
    count: Number = len(sequence.parts or ()) if packed is None else packed.count
    step.result(step.point.scalar(count))
    return "Constant" if isinstance(count, int) else "computed length"


def _construct(step: SequenceNode) -> Result:
    """SequenceConstruct, and SequenceEmpty, which has no inputs."""
    parts = tuple(held for held in step.node.inputs if held is not None)
    return LoweredSequence(parts, None, step.fact)


def _identity(step: SequenceNode) -> Result:
    return step.sequence(step.ref.input(0))


def _insert(step: SequenceNode) -> Result:
    sequence, tensor = step.sequence(step.ref.input(0)), step.ref.input(1)
    assert tensor is not None  # noqa: S101 - the input is required
    if sequence.parts is not None:
        index = step.constant_position(2, len(sequence.parts), 1)
        if index is not None:
            parts = (*sequence.parts[:index], tensor, *sequence.parts[index:])
            return LoweredSequence(parts, None, step.fact)
    make = step.point
    packed = sequence.in_layout(sequence.layout(step.ref, step.fact), make, step.ref)
    axis, dropped = packed.layout.axis, packed.layout.dropped
    new = make.unsqueeze(tensor, [axis]) if dropped else tensor
    lengths = () if dropped else packed.lengths
    length = (dimension(tensor, axis),)
    given = step.position(2)
    if given is None:
        whole = make.concat([packed.whole, new], axis)
        return _repacked(step, packed, whole, joined(lengths, length))
    place = calculated(make, position(given, packed.count, packed.count))
    before, after = packed.around(make, place, place)
    whole = make.concat([before, new, after], axis)
    return _repacked(
        step, packed, whole, joined(head(lengths, place), length, tail(lengths, place))
    )


def _erase(step: SequenceNode) -> Result:
    sequence = step.sequence(step.ref.input(0))
    if sequence.parts is not None:
        index = step.constant_position(1, len(sequence.parts), 0)
        if index is not None:
            parts = (*sequence.parts[:index], *sequence.parts[index + 1 :])
            return LoweredSequence(parts, None, step.fact)
    packed, make, given = step.packed(), step.point, step.position(1)
    count = packed.count
    place = calculated(make, position(-1 if given is None else given, count, count - 1))
    before, after = packed.around(make, place, place + 1)
    whole = make.concat([before, after], packed.layout.axis)
    lengths = () if packed.layout.dropped else packed.lengths
    return _repacked(step, packed, whole, joined(head(lengths, place), tail(lengths, place + 1)))


def _repacked(
    step: SequenceNode, packed: PackedParts, data: ir.Value, lengths: Numbers
) -> LoweredSequence:
    """The sequence with other data and lengths, laid out as before."""
    context, layout = step.context, packed.layout
    context.facts.set(data, resized(context.tensor(packed.data), layout.axis, None))
    dim = dimension(data, layout.axis)
    sizes = Chunks(dim, dim, 1) if layout.dropped else calculated(step.point, lengths)
    return LoweredSequence.of(PackedParts(step.point, data, layout, sizes, dim), step.fact)


def _concat(step: SequenceNode) -> Result:
    """ConcatFromSequence."""
    sequence, make = step.sequence(step.ref.input(0)), step.point
    axis = step.node.attributes.get_int("axis", 0)
    new_axis = bool(step.node.attributes.get_int("new_axis", 0))
    if sequence.packed is not None:
        became = _joined_at_once(step, sequence.packed, axis, new_axis=new_axis)
        if became is not None:
            return became
    if sequence.parts is None:
        raise refusal(
            "an unknown number of tensors is joined along another axis than they were split on",
            step.ref,
        )
    if not sequence.parts:
        raise refusal("it joins no tensors", step.ref, "give it at least one")
    parts = sequence.tensors()
    if new_axis:
        parts = [make.unsqueeze(part, [axis]) for part in parts]
    step.result(make.concat(parts, axis))
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
        step.result(packed.whole)
        return "the data itself"
    if rank is None or not packed.layout.dropped or (not new_axis and rank < 2):
        return None
    make = step.point
    if new_axis:
        step.result(_moved(make, packed.whole, rank, here, there))
        return "Transpose"
    end = axis % (rank - 1)
    moved = _moved(make, packed.whole, rank, here, end)
    dims = value(make.op("Shape", [moved]))
    before = [head(dims, end)] if end else []
    after = [tail(dims, end + 2)] if end + 2 < rank else []
    new = make.make(joined(*before, (pick(dims, end) * pick(dims, end + 1),), *after))
    attributes = {"allowzero": 1} if make.opset >= 14 else {}
    step.result(make.op("Reshape", [moved, new], attributes))
    return "Transpose and Reshape"


def _moved(make: InsertionPoint, data: ir.Value, rank: int, start: int, end: int) -> ir.Value:
    """The data with one axis moved."""
    order = [axis for axis in range(rank) if axis != start]
    order.insert(end, start)
    if order == list(range(rank)):
        return data
    return make.op("Transpose", [data], {"perm": order})


HANDLERS: Mapping[str, Callable[[SequenceNode], Result]] = {
    "SplitToSequence": _split,
    "SequenceAt": _at,
    "SequenceLength": _length,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _construct,
    "SequenceInsert": _insert,
    "SequenceErase": _erase,
    "ConcatFromSequence": _concat,
    "Identity": _identity,
}
"""What to do with each operator."""
