"""Each operator on sequences, with tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TypeAlias

import onnx_ir as ir

from tensorsplit.core.arithmetic import (
    Formula,
    Number,
    fitting_zero,
    head,
    joined,
    minimum,
    pick,
    position,
    tail,
    value,
)
from tensorsplit.core.dimensions import Shape, are_known, is_known
from tensorsplit.core.rules import Chunks, chunks_of
from tensorsplit.model.graph.building import inherit
from tensorsplit.model.graph.calculation import FIRST_WITH_EMPTY_SHAPES, Calculation
from tensorsplit.model.graph.facts import SequenceFact
from tensorsplit.model.graph.nodes import NodeRef
from tensorsplit.model.infer.sequence_operators import POSITIONS
from tensorsplit.model.lower.lowered_sequence import (
    Layout,
    LoweredSequence,
    PackedParts,
    Piece,
    calculated,
    calculated_list,
    layout_for,
    piece,
    resized,
)
from tensorsplit.model.lower.sequence_loops import join_in_loop
from tensorsplit.model.lower.split_nodes import request_of, sizes_of
from tensorsplit.model.lower.state import InsertionPoint, Lowering, refusal
from tensorsplit.model.refusals import malformed

LoweredSequences: TypeAlias = "dict[ir.Value, LoweredSequence]"
Result: TypeAlias = "LoweredSequence | str"
"""What stands for the sequence that a node made, or what its tensor is made with now."""


class SequenceNode:
    """One node that makes, takes or hands on sequences, and what stands for those so far."""

    def __init__(self, lowering: Lowering, ref: NodeRef, sequences: LoweredSequences) -> None:
        self.lowering, self.ref, self.sequences = lowering, ref, sequences
        self.node = ref.node
        self.point = InsertionPoint.instead_of(lowering, ref)

    def sequence(self, held: ir.Value | None) -> LoweredSequence:
        """Return the stand-in for a sequence (TS513 if it has none)."""
        if held is None or held not in self.sequences:
            raise refusal("a sequence comes from an operator that can't be lowered")
        return self.sequences[held]

    @cached_property
    def given(self) -> LoweredSequence:
        """The first input."""
        return self.sequence(self.ref.input(0))

    def packed(self, fact: SequenceFact) -> PackedParts:
        """Return the first input in one tensor, laid out as the sequence needs it."""
        return self.given.in_layout(layout_for(fact, [self.given]), self.point)

    @property
    def fact(self) -> SequenceFact:
        """The fact about the sequence that the node makes."""
        return self.lowering.sequence(self.node.outputs[0])

    def result(self, held: ir.Value) -> None:
        """Replace this node's output by a value."""
        self.point.replace(self.node.outputs[0], held)

    def keep_notes(self) -> None:
        """Copy the notes on the split of the first input to the new nodes, if that has none."""
        held = self.ref.input(0)
        packed = self.sequences[held].packed if held in self.sequences else None
        if packed is not None and not packed.point.nodes and packed.point.origin is not None:
            inherit(self.point.nodes, packed.point.origin)

    def pass_on(self) -> None:
        """Give out the first input as a value of its own."""
        held = self.ref.input(0)
        assert held is not None  # noqa: S101 - it has an element type
        self.result(self.point.passed_on(held))

    @cached_property
    def _index(self) -> Number | None:
        """The position that the node takes; None if it is left out."""
        held = self.ref.input(POSITIONS[self.ref.op_type])
        if held is None:
            return None
        fact = self.lowering.facts.tensor(held)
        if fact.constant is not None and len(fact.constant) == 1:
            known: Number = fact.constant[0]
            return known
        return self.point.number(held, fact.element_type)

    def position(self, count: Number, beyond: int = 0) -> Number:
        """Return the position that the node takes among so many tensors, from the front.

        It is checked, here or by the running model; it may lie `beyond` the last tensor by so many.
        Left out, it is the last one.
        """
        if beyond and self._index is None:
            return count
        index = -1 if self._index is None else self._index
        return position(index, count, count - 1 + beyond, operator=f"onnx.{self.ref.op_type}")

    def known_position(self, beyond: int = 0) -> int | None:
        """Do as `position`, but return None unless it is known, and how many tensors there are."""
        parts = self.given.parts
        if parts is None or isinstance(self._index, Formula):
            return None
        found = self.position(len(parts), beyond)
        return found if is_known(found) else None


def _split(step: SequenceNode) -> Result:
    """Lower SplitToSequence."""
    lowering, point = step.lowering, step.point
    intent, data, axis, dim = request_of(lowering, step.ref)
    if intent.rule is None:
        problem = "it is not known whether 'split' is a scalar or a list"
        raise refusal(problem, "declare its shape")
    sizes = sizes_of(lowering, step.ref, point, intent, dim)
    zero: Number = 0
    if not intent.keepdims:
        sizes = Chunks(dim, dim, 1)
    elif not isinstance(sizes, Chunks):
        zero = calculated(point, fitting_zero(dim, sizes))
        sizes = calculated_list(point, sizes)
        if isinstance(sizes, Formula) and lowering.facts.tensor(step.ref.input(1)).shape == (1,):
            sizes = (sizes,)
    elif isinstance(sizes.size, Formula):
        size = calculated(point, sizes.size)
        sizes, zero = chunks_of(dim, size), calculated(point, minimum(size, 1) - 1)
    layout = Layout(axis, dropped=not intent.keepdims)
    return LoweredSequence.of(PackedParts(point, data, layout, dim, sizes, zero), step.fact)


def _at(step: SequenceNode) -> Result:
    place = step.known_position()
    if place is not None:
        step.result(step.given.tensor(place))
        return "the part itself"
    packed = step.packed(step.given.fact)
    step.result(packed.at(step.point, step.position(packed.count)))
    return "Gather" if packed.layout.dropped else "Slice"


def _length(step: SequenceNode) -> Result:
    parts, packed = step.given.parts, step.given.packed
    count: Number = len(parts or ()) if packed is None else packed.count
    step.result(step.point.scalar(count))
    return "Constant" if is_known(count) else "computed length"


def _construct(step: SequenceNode) -> Result:
    """Lower SequenceConstruct, and SequenceEmpty, which has no inputs."""
    return LoweredSequence(step.fact, tuple(held for held in step.node.inputs if held is not None))


def _identity(step: SequenceNode) -> Result:
    return step.given


def _insert(step: SequenceNode) -> Result:
    tensor, place, parts = step.ref.input(1), step.known_position(beyond=1), step.given.parts
    assert tensor is not None  # noqa: S101 - the input is required
    if parts is not None and place is not None:
        return LoweredSequence(step.fact, (*parts[:place], tensor, *parts[place:]))
    beside, make = LoweredSequence(step.fact, (tensor,)), step.point
    if parts == ():  # of what shape they would be does not matter
        packed = beside.in_layout(layout_for(step.fact, [beside]), make)
        first = calculated(make, step.position(0, beyond=1))
        return _repacked(step, packed, [packed.after(make, first)])
    packed = step.given.in_layout(layout_for(step.fact, [step.given, beside]), make)
    new = piece(make, tensor, packed.layout)
    where = step.position(packed.count, beyond=1)
    if where is packed.count:
        return _repacked(step, packed, [(packed.whole, packed.beside), new])
    where = calculated(make, where)
    before, after = packed.before(make, where), packed.after(make, where)
    return _repacked(step, packed, [before, new, after])


def _erase(step: SequenceNode) -> Result:
    place, parts = step.known_position(), step.given.parts
    if parts is not None and place is not None:
        return LoweredSequence(step.fact, (*parts[:place], *parts[place + 1 :]))
    packed, make = step.packed(step.given.fact), step.point
    where = calculated(make, step.position(packed.count))
    return _repacked(step, packed, [packed.before(make, where), packed.after(make, where + 1)])


def _repacked(step: SequenceNode, packed: PackedParts, pieces: list[Piece]) -> LoweredSequence:
    """Return the sequence put together from pieces, laid out as before."""
    lowering, layout = step.lowering, packed.layout
    data = step.point.concat([held for held, _ in pieces], layout.along)
    lowering.facts.set(data, resized(lowering.facts.tensor(packed.data), layout.along, None))
    lengths = joined(*(lengths for _, lengths in pieces))
    return LoweredSequence.of(PackedParts.of(step.point, data, layout, lengths), step.fact)


def _concat(step: SequenceNode) -> Result:
    """Lower ConcatFromSequence."""
    sequence, make = step.given, step.point
    axis = step.node.attributes.get_int("axis", 0)
    new_axis = bool(step.node.attributes.get_int("new_axis", 0))
    rank = None if sequence.fact.part is None else len(sequence.fact.part) + new_axis
    if rank is not None and not -rank <= axis < rank:
        raise malformed(f"the axis is {axis}", f"it must be in [{-rank}, {rank - 1}]")
    if sequence.packed is not None:
        became = _joined_at_once(step, sequence.packed, axis, new_axis=new_axis)
        if became is not None:
            return became
        if sequence.parts is None:
            step.result(join_in_loop(step.point, sequence.packed, axis, new_axis=new_axis))
            return "Loop"
    if not sequence.parts:
        raise refusal("it joins no tensors", "give it at least one")
    parts = sequence.tensors()
    if new_axis:
        parts = [make.unsqueeze(part, [axis]) for part in parts]
    step.result(make.concat(parts, axis))
    return "Concat"


def _joined_at_once(
    step: SequenceNode, packed: PackedParts, axis: int, *, new_axis: bool
) -> str | None:
    """Join all parts of one tensor without making them; None if there is no such way.

    A new axis is an axis of the result, another one an axis of the parts.
    """
    shape, here = step.lowering.facts.tensor(packed.data).shape, packed.layout.axis
    rank = None if shape is None else len(shape)
    there = axis if rank is None else axis % rank
    is_whole = new_axis == packed.layout.dropped and there == here >= 0
    is_stacked = rank is not None and packed.layout.dropped and (new_axis or rank > 1)
    if packed.layout.is_flat or not (is_whole or is_stacked):
        return None
    make = step.point
    whole = packed.not_empty(make).whole
    if is_whole:
        step.result(whole)
        return "the data itself"
    assert rank is not None  # noqa: S101 - else nothing is stacked
    if new_axis:
        step.result(make.moved(whole, rank, here, there))
        return "Transpose"
    end = axis % (rank - 1)
    moved = make.moved(whole, rank, here, end)
    if rank == 2:
        step.result(make.elements(moved))
        return "Transpose and Reshape"
    assert shape is not None  # noqa: S101 - its length is known
    new = _in_one(make, moved, shape, here, end)
    if make.opset >= FIRST_WITH_EMPTY_SHAPES:
        step.result(make.op("Reshape", [moved, new], {"allowzero": 1}))
    elif all(is_known(dim) and dim > 0 for dim in shape or ()):
        step.result(make.op("Reshape", [moved, new]))
    else:  # a 0 in the shape would copy another dimension of the data
        held, elements = step.lowering.facts.tensor(packed.data).element_type, make.elements(moved)
        step.result(make.in_shape(elements, new, rank - 1, held, by_index=packed.by_index))
    return "Transpose and Reshape"


def _in_one(make: Calculation, moved: ir.Value, shape: Shape, start: int, end: int) -> ir.Value:
    """Return the shape of a tensor of which an axis was moved, where it is one with the next.

    It is a constant if it is known: OpenVINO copies a dimension for each 0 of what it calculates.
    """
    rank = len(shape)
    if are_known(shape):
        dims = [dim for axis, dim in enumerate(shape) if axis != start]
        dims.insert(end, shape[start])
        return make.constant([*dims[:end], dims[end] * dims[end + 1], *dims[end + 2 :]])
    held = value(make.op("Shape", [moved]))
    before = [head(held, end)] if end else []
    after = [tail(held, end + 2)] if end + 2 < rank else []
    return make.make(joined(*before, (pick(held, end) * pick(held, end + 1),), *after))


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
