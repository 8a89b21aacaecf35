"""What stands for a sequence in a model without sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeAlias

import onnx_ir as ir

from tensorsplit.core.arithmetic import (
    Formula,
    Number,
    Numbers,
    as_formula,
    dimension,
    head,
    listed,
    minimum,
    pick,
    size_of,
    sums,
    tail,
    total,
    value,
)
from tensorsplit.core.dimensions import Dim, Shape, are_known, is_known
from tensorsplit.core.rules import Chunks
from tensorsplit.model.feeds import show_shape
from tensorsplit.model.graph.calculation import TO_THE_END, Calculation
from tensorsplit.model.graph.facts import Sequence, Tensor
from tensorsplit.model.graph.nodes import NodeRef
from tensorsplit.model.lower.split_nodes import length_of
from tensorsplit.model.lower.state import InsertionPoint, refusal

MAX_PARTS_OF_ONE_NODE = 4096
"""Sequences of more parts are split one part at a time, not by one node with so many outputs."""

_DECLARE = "declare the shapes that are known, for example with infer_shapes"


@dataclass(frozen=True, slots=True)
class Layout:
    """How a sequence lies in one tensor.

    Attributes:
        axis: The axis along which the parts follow each other, from the front where known.
        dropped: Whether the parts lack the axis, and each is one step along it.
    """

    axis: int
    dropped: bool

    def around(self, part: Iterable[Dim], size: int | None) -> list[Dim]:
        """The shape of a tensor that holds parts of a shape."""
        shape = list(part)
        shape[self.axis : self.axis + (not self.dropped)] = [size]
        return shape

    def tensor(self, fact: Sequence) -> Tensor:
        """What is known of the tensor that holds a sequence."""
        if fact.part is None:
            return Tensor(fact.element_type)
        part = (dim if is_known(dim) else None for dim in fact.part)
        return Tensor(fact.element_type, tuple(self.around(part, None)))

    def part(self, shape: Shape | None) -> Shape | None:
        """What the shape of a tensor says of the parts in it."""
        if shape is None:
            return None
        here: Shape = () if self.dropped else (None,)
        return (*shape[: self.axis], *here, *shape[self.axis + 1 :])

    def check(self, shapes: Iterable[Shape | None], ref: NodeRef) -> None:
        """Refuse parts of which it is known that no one tensor can hold them (TS513)."""
        known = [shape for shape in shapes if shape is not None]
        ranks = {len(shape) for shape in known}
        along = None if self.dropped else self.axis % max(ranks, default=1)
        differ = any(
            len(set(filter(is_known, dims))) > 1 and axis != along
            for axis, dims in enumerate(zip(*known, strict=False))
        )
        if differ or len(ranks) > 1 or any(self.axis >= rank + self.dropped for rank in ranks):
            shown = " and ".join(dict.fromkeys(map(show_shape, known)))
            raise refusal(
                f"tensors of the shapes {shown} do not fit into one tensor, and a sequence of an"
                " unknown number of tensors must",
                ref,
                "give it tensors of one shape",
            )


@dataclass
class PackedParts:
    """A sequence that is nothing but consecutive parts of one tensor.

    Attributes:
        point: Where nodes that all uses share are inserted; it comes before all of them.
        data: The tensor.
        layout: How the parts lie in it.
        dim: Its length along the axis.
        sizes: The lengths of the parts, as a length rule gives them.
        zero: Zero; the running model stops where it is used if the lengths do not fit.
    """

    point: InsertionPoint
    data: ir.Value
    layout: Layout
    dim: Number
    sizes: Numbers | Chunks
    zero: Number = 0

    @classmethod
    def of(
        cls,
        point: InsertionPoint,
        data: ir.Value,
        layout: Layout,
        lengths: Numbers,
        count: Number = None,
    ) -> PackedParts:
        """The parts of a tensor that was put together, which have lengths unless all are 1."""
        dim = dimension(data, layout.axis)
        if layout.dropped:
            dim = dim if count is None else count
            return cls(point, data, layout, dim, Chunks(dim, dim, 1))
        return cls(point, data, layout, dim, calculated(point, lengths))

    @property
    def known_sizes(self) -> tuple[int, ...] | None:
        """The length of each part, if all are known and there are not too many."""
        sizes = self.sizes
        if isinstance(sizes, Chunks):
            if not is_known(sizes.count) or sizes.count > MAX_PARTS_OF_ONE_NODE:
                return None
            sizes = sizes.parts(sizes.count)
        if isinstance(sizes, Formula) or not are_known(sizes):
            return None
        return sizes if len(sizes) <= MAX_PARTS_OF_ONE_NODE else None

    @property
    def by_index(self) -> bool:
        """Whether the target can take only single steps of the data, and no parts."""
        return self.point.lowering.takes_by_index(self.data)

    def part(self, index: int) -> ir.Value:
        """One of the parts where their sizes are known."""
        return self.at(self.point, index) if self.layout.dropped else self._parts[index]

    @cached_property
    def _parts(self) -> list[ir.Value]:
        """All parts where their sizes are known; they come from one node."""
        lowering, axis, sizes = self.point.lowering, self.layout.axis, self.known_sizes
        assert sizes is not None  # noqa: S101 - the caller looked
        parts = self.point.split(self.data, axis, self.dim, sizes, len(sizes))
        for part, size in zip(parts, sizes, strict=True):
            lowering.facts.set(part, resized(lowering.tensor(self.data), axis, size))
        return parts

    @cached_property
    def count(self) -> Number:
        """How many parts there are."""
        sizes = self.sizes
        count = sizes.count if isinstance(sizes, Chunks) else size_of(sizes) + self.zero
        return calculated(self.point, count)

    def at(self, make: Calculation, place: Number) -> ir.Value:
        """The part at a position, which is in range."""
        if self.layout.dropped:
            return make.take(self.data, place, self.layout.axis)
        start, end = self._bounds(place)
        if self.by_index and isinstance(self.sizes, Chunks):
            end = minimum(end, self._end)
        return self._slice(make, start, end)

    def before(self, make: Calculation, place: Number) -> Piece:
        """What comes before a position."""
        return self._slice(make, 0, self._start(place)), head(self.lengths, place)

    def behind(self, make: Calculation, place: Number) -> Piece:
        """What comes from a position on."""
        return self._slice(make, self._start(place), self._end), tail(self.lengths, place)

    def _slice(self, make: Calculation, start: Number, end: Number) -> ir.Value:
        return make.slice(self.data, start, end, self.layout.axis, by_index=self.by_index)

    def _bounds(self, place: Number) -> tuple[Number, Number]:
        """Where a part starts and ends; the end of the last chunk may lie behind the data's."""
        step = self._step()
        if step is not None:
            start = place * step + self.zero
            return start, start + step
        end = pick(self._ends, place)
        return end - pick(self.lengths, place), end

    def _step(self) -> Number | None:
        """The length of every part but perhaps the last, if there is such a length.

        A single part has one as well. Looked up in a list of one, its length would not depend on
        the position for OpenVINO, which then leaves out that the position may be out of range.
        """
        if isinstance(self.sizes, Chunks):
            return self.sizes.size
        if isinstance(self.sizes, tuple):
            return self.sizes[0] if len(set(self.sizes)) == 1 else None
        source = self.sizes.operands[0] if self.sizes.operation == "value" else None
        return self.sizes if self.point.lowering.tensor(source).shape == (1,) else None

    def _start(self, place: Number) -> Number:
        """Where the part at a position starts, or where the data ends for one behind the last."""
        if isinstance(self.sizes, Chunks):
            return minimum(place * self.sizes.size, self._end)
        return total(head(self.lengths, place))

    @cached_property
    def _end(self) -> Number:
        """Where the data ends."""
        return calculated(self.point, self.dim)

    @cached_property
    def whole(self) -> ir.Value:
        """The tensor; the running model stops if the lengths do not fit it."""
        if is_known(self.zero):
            return self.data
        made = self._slice(self.point, self.zero, self.dim if self.by_index else TO_THE_END)
        facts = self.point.lowering.facts
        facts.set(made, facts.of(self.data))
        return made

    @cached_property
    def lengths(self) -> Numbers:
        """The length of each part as one list; empty if the parts lack the axis."""
        if self.layout.dropped:
            return ()
        known = self.known_sizes
        if known is not None and is_known(self.zero):
            return known
        if not isinstance(self.sizes, Chunks):
            return calculated(self.point, as_formula(self.sizes) + self.zero)
        starts = self.point.range(0, self._end, self.sizes.size)
        return calculated(self.point, minimum(self.dim - value(starts), self.sizes.size))

    @cached_property
    def _ends(self) -> Numbers:
        return calculated(self.point, sums(self.lengths))

    def tensors(self) -> list[ir.Value]:
        """The tensors that hold the sequence: the data, and the lengths unless all are 1."""
        return [self.whole] if self.layout.dropped else [self.whole, self.point.make(self.lengths)]


Piece: TypeAlias = "tuple[ir.Value, Numbers]"
"""Parts one behind the other in a tensor, and their lengths along it."""


def calculated(make: Calculation, number: Number) -> Number:
    """A formula as the value that it is calculated to, once for all that use it."""
    return value(make.make(number)) if isinstance(number, Formula) else number


def resized(known: Tensor, axis: int, size: int | None) -> Tensor:
    """What is known of a tensor with another length on an axis."""
    if known.shape is None:
        return Tensor(known.element_type)
    shape = list(known.shape)
    shape[axis] = size
    return Tensor(known.element_type, tuple(shape))


Part: TypeAlias = "ir.Value | Callable[[], ir.Value]"
"""A tensor of a sequence, or what makes it where something uses it."""


@dataclass(frozen=True, slots=True)
class LoweredSequence:
    """What stands for a sequence; one of the last two is there, and both where both hold.

    Attributes:
        fact: What is known of the sequence.
        parts: Every tensor, if it is known how many there are.
        packed: The tensor that holds all parts.
    """

    fact: Sequence
    parts: tuple[Part, ...] | None
    packed: PackedParts | None = None

    @classmethod
    def of(cls, packed: PackedParts, fact: Sequence) -> LoweredSequence:
        """The sequence of the parts of one tensor."""
        sizes = packed.known_sizes
        if sizes is None:
            return cls(fact, None, packed)
        return cls(fact, tuple(partial(packed.part, index) for index in range(len(sizes))), packed)

    def tensor(self, index: int) -> ir.Value:
        """One tensor of a sequence of a known number of them."""
        assert self.parts is not None  # noqa: S101 - the caller looked
        part = self.parts[index]
        return part if isinstance(part, ir.Value) else part()

    def tensors(self) -> list[ir.Value]:
        """Every tensor of a sequence of a known number of them."""
        return [self.tensor(index) for index in range(len(self.parts or ()))]

    def in_layout(self, layout: Layout, point: InsertionPoint, ref: NodeRef) -> PackedParts:
        """The sequence laid out in one tensor, for a node that needs it.

        Raises:
            SplitError: TS513 if it is laid out in another way, has tensors that do not go into one,
                or has no tensors and no known shape.
        """
        if self.packed is not None and self.packed.layout == layout:
            return self.packed
        if self.parts is None:
            raise refusal("the sequence's tensors follow each other along another axis", ref)
        parts, axis = self.tensors(), layout.axis
        layout.check((point.lowering.tensor(part).shape for part in parts), ref)
        if not parts:
            data = point.empty(*self._empty(layout, ref))
        elif layout.dropped:
            data = point.concat([point.unsqueeze(part, [axis]) for part in parts], axis)
        else:
            data = point.concat(parts, axis)
        lengths = tuple(length_of(point.lowering, part, axis) for part in parts)
        return PackedParts.of(point, data, layout, listed(lengths), len(parts))

    def _empty(self, layout: Layout, ref: NodeRef) -> tuple[list[int], int, ir.DataType]:
        """The shape of a tensor that holds no tensors at all, the axis and the type."""
        part, element_type = self.fact.part, self.fact.element_type
        if part is None or element_type is None:
            raise refusal("an empty sequence has neither shape nor type", ref, _DECLARE)
        shape = layout.around(part, 0)
        if not are_known(shape):
            text = f"the shape {part} of an empty sequence's tensors is open"
            raise refusal(text, ref, _DECLARE)
        return shape, layout.axis, element_type


def layout_of(fact: Sequence, ref: NodeRef) -> Layout:
    """How tensors of a shape can be laid out in one.

    Raises:
        SplitError: TS513 if they may differ in more than one dimension.
    """
    if fact.part is None:
        raise refusal("nothing is known of the rank of the sequence's tensors", ref, _DECLARE)
    vary = [axis for axis, dim in enumerate(fact.part) if not is_known(dim)]
    if len(vary) > 1:
        raise refusal(
            f"the sequence's tensors may differ in the dimensions {vary}, so that no one tensor"
            " can hold them all",
            ref,
            _DECLARE,
        )
    return Layout(vary[0], dropped=False) if vary else Layout(0, dropped=True)
