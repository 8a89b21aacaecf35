"""The tensors that stand for a sequence in a model without sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TypeAlias

import onnx_ir as ir

from tensorsplit.core.arithmetic import (
    Formula,
    Listed,
    Number,
    Numbers,
    as_formula,
    at_least,
    dimension,
    guarded,
    head,
    joined,
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
from tensorsplit.model.graph.calculation import TO_THE_END, Calculation
from tensorsplit.model.graph.facts import SequenceFact, Tensor
from tensorsplit.model.lower.state import InsertionPoint, refusal

MAX_PARTS_OF_ONE_NODE = 4096
"""Sequences of more parts are split one part at a time, not by one node with so many outputs."""

_DECLARE = "declare the shapes that are known, for example with infer_shapes"


@dataclass(frozen=True, slots=True)
class Layout:
    """How a sequence lies in one tensor: along an axis, from the front where known.

    If it is dropped, each part is one step along the axis, and lacks it. With the rank of the parts
    given, they may differ in every dimension: the tensor is a list of their elements, and a table
    beside it has a row for each part, its shape; both with the axis moved to the front.
    """

    axis: int
    dropped: bool = False
    rank: int | None = None

    @property
    def is_flat(self) -> bool:
        """Whether the tensor is a list of elements."""
        return self.rank is not None

    @property
    def along(self) -> int:
        """The axis of the tensor along which the parts follow each other."""
        return 0 if self.is_flat else self.axis

    def around(self, part: Iterable[Dim], size: int | None) -> list[Dim]:
        """Return the shape of a tensor that holds parts of a shape."""
        shape = list(part)
        if self.is_flat:
            return [size]
        axis = self.axis % max(1, len(shape) + self.dropped)
        shape[axis : axis + (not self.dropped)] = [size]
        return shape

    def tensors(self, fact: SequenceFact) -> tuple[Tensor, ...]:
        """Return the facts about the tensors that hold a sequence."""
        shape = None if fact.part is None else tuple(self.around(fact.part, None))
        held = Tensor(fact.element_type, shape)
        if self.dropped:
            return (held,)
        beside = (None, self.rank) if self.is_flat else (None,)
        return held, Tensor(ir.DataType.INT64, beside)

    def fits(self, part: Shape, data: Shape | None) -> bool:
        """Return whether parts of which this is known are sure to go into one tensor, with data."""
        shape = self.around(part, 0)
        there = shape if data is None else data
        return len(there) == len(shape) and all(
            is_known(dim) or (dim is not None and data is not None and dim == other)
            for dim, other in zip(shape, there, strict=True)
        )


@dataclass
class PackedParts:
    """A sequence that is nothing but consecutive parts of one tensor.

    Attributes:
        point: Where nodes that all uses share are inserted; it comes before all of them.
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
        cls, point: InsertionPoint, data: ir.Value, layout: Layout, lengths: Numbers
    ) -> PackedParts:
        """Return the parts of a tensor put together; the lengths are a table if it is flat."""
        dim: Number = dimension(data, layout.along)
        if layout.is_flat:
            return FlatParts(point, data, layout, dim, calculated_list(point, lengths))
        if not layout.dropped:
            return cls(point, data, layout, dim, calculated_list(point, lengths))
        count = len(lengths) if isinstance(lengths, tuple) else dim
        return cls(point, data, layout, count, Chunks(count, count, 1))

    @property
    def rank(self) -> int | None:
        """The rank of the parts, if it is known."""
        shape = self.point.lowering.facts.tensor(self.data).shape
        if self.layout.is_flat or shape is None:
            return self.layout.rank
        return len(shape) - self.layout.dropped

    @cached_property
    def known_sizes(self) -> tuple[int, ...] | None:
        """The length of each part, if all are known and there are not too many."""
        sizes = self.sizes
        if isinstance(sizes, Chunks):
            if not is_known(sizes.count) or sizes.count > MAX_PARTS_OF_ONE_NODE:
                return None
            sizes = sizes.parts(sizes.count)
        if isinstance(sizes, Formula) or len(sizes) > MAX_PARTS_OF_ONE_NODE:
            return None
        return sizes if are_known(sizes) else None

    @property
    def by_index(self) -> bool:
        """Whether the target can take only single steps of the data, and no parts."""
        return self.point.lowering.takes_by_index(self.data)

    def part(self, index: int) -> ir.Value:
        """Return one of the parts where their sizes are known."""
        return self.at(self.point, index) if self.layout.dropped else self._parts[index]

    @cached_property
    def _parts(self) -> list[ir.Value]:
        """All parts where their sizes are known; they come from one node."""
        lowering, axis, sizes = self.point.lowering, self.layout.along, self.known_sizes
        assert sizes is not None  # noqa: S101 - the caller looked
        parts = self.point.split(self.data, axis, self.dim, sizes, len(sizes))
        for part, size in zip(parts, sizes, strict=True):
            lowering.facts.set(part, resized(lowering.facts.tensor(self.data), axis, size))
        return parts

    @cached_property
    def count(self) -> Number:
        """How many parts there are."""
        sizes = self.sizes
        count = sizes.count if isinstance(sizes, Chunks) else size_of(sizes) + self.zero
        return calculated(self.point, count)

    def at(self, make: Calculation, place: Number) -> ir.Value:
        """Return the part at a position, which is in range."""
        if self.layout.dropped:
            axis, held = self.layout.axis, self.point.lowering.facts.tensor(self.data)
            is_string, is_empty = held.element_type == ir.DataType.STRING, 0 in (held.shape or ())
            if (is_string or is_empty) and not self.by_index:
                # onnxruntime gathers one string of each step, and OpenVINO dies where there is none
                return make.squeeze(self._slice(make, place, place + 1), [axis])
            return make.take(self.data, place, axis)
        start, end = self._bounds(place)
        if self.by_index and isinstance(self.sizes, Chunks):
            end = minimum(end, self._end)
        return self._slice(make, start, end)

    def before(self, make: Calculation, place: Number) -> Piece:
        """Return the elements before a position."""
        return self._slice(make, 0, self._start(place)), head(self.beside, place)

    def after(self, make: Calculation, place: Number) -> Piece:
        """Return the elements from a position on."""
        return self._slice(make, self._start(place), self._end), tail(self.beside, place)

    def not_empty(self, point: InsertionPoint) -> PackedParts:
        """Return the same parts; the running model stops if there are none."""
        if is_known(self.count) and self.count > 0:
            return self
        count = value(point.make(self.count))  # not folded: what always stops is a node, too
        return replace(self, point=point, zero=self.zero + guarded(0, at_least(1, count)))

    def _slice(self, make: Calculation, start: Number, end: Number) -> ir.Value:
        return make.slice(self.data, start, end, self.layout.along, by_index=self.by_index)

    def _bounds(self, place: Number) -> tuple[Number, Number]:
        """Return where a part starts and ends; the last chunk's end may lie after the data's.

        The length of a single part is not looked up in a list of one: it would not depend on the
        position for OpenVINO, which then leaves out that the position may be out of range.
        """
        if isinstance(self.sizes, Chunks):
            step = self.sizes.size
        elif isinstance(self.sizes, tuple) and len(set(self.sizes)) == 1:
            step = self.sizes[0]
        else:
            end = pick(self._ends, place)
            return end - pick(self.lengths, place), end
        # A product with 0 is 0, without the guard of the position
        first = minimum(place, 0) if is_known(step) and step == 0 else place * step
        start = first + self.zero
        return start, start + step

    def _start(self, place: Number) -> Number:
        """Return where the part at a position starts, or the data's end for one after the last."""
        if isinstance(self.sizes, Chunks):
            return minimum(place * self.sizes.size, self._end)
        return total(head(self.lengths, place))

    @cached_property
    def _end(self) -> Number:
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
    def lengths(self) -> Listed:
        """The length of each part as one list; empty if the parts lack the axis."""
        if self.layout.dropped:
            return ()
        known = self.known_sizes
        if known is not None and is_known(self.zero):
            return known
        if not isinstance(self.sizes, Chunks):
            return value(self.point.make(as_formula(listed(self.sizes)) + self.zero))
        starts = self.point.range(0, self._end, self.sizes.size)
        left = self.dim - value(starts)
        return value(self.point.make(minimum(left, self.sizes.size)))

    @property
    def beside(self) -> Listed:
        """The tensor beside the data that locates each part: the lengths."""
        return self.lengths

    @cached_property
    def _ends(self) -> Formula:
        return value(self.point.make(sums(self.lengths)))

    def tensors(self) -> list[ir.Value]:
        """Return the tensors that hold the sequence: the data, and the lengths unless all are 1."""
        return [self.whole] if self.layout.dropped else [self.whole, self.point.make(self.beside)]

    def side_by_side(self, layout: Layout, point: InsertionPoint) -> PackedParts:
        """Return the same parts, which lack the axis of the tensor, along an axis of their own."""
        data, axis, old = self.whole, layout.axis, self.layout.axis
        facts, held = point.lowering.facts, point.lowering.facts.tensor(self.data)
        known = held.shape or ()
        dims = [point.lowering.length(data, at) for at in range(len(known)) if at != old]
        size = dims[axis]
        dims[axis] = self.count * size
        data = point.moved(data, len(known), old, axis)
        data = point.op("Reshape", [data, point.make(listed(tuple(dims)))])
        sizes = point.op("Expand", [point.make(listed((n,))) for n in (size, self.count)])
        shape = layout.around(known[:old] + known[old + 1 :], None)
        facts.set(data, Tensor(held.element_type, tuple(shape)))
        return PackedParts.of(point, data, layout, value(sizes))

    def flattened(self, layout: Layout, point: InsertionPoint) -> PackedParts:
        """Return the same parts as a list of elements."""
        data, axis, rank = self.whole, self.layout.axis, layout.rank or 0
        if self.layout.dropped:
            data = point.moved(data, rank + 1, axis, 0)
            data = point.moved(data, rank + 1, layout.axis + 1, 1)
        else:
            data = point.moved(data, rank, axis, 0)
        shape = point.make(tail(value(point.op("Shape", [data])), 1))
        table = point.op("Expand", [shape, point.make(listed((self.count, 1)))])
        if not self.layout.dropped:
            table = point.concat([point.unsqueeze(point.make(self.lengths), [1]), table], 1)
        element_type = point.lowering.facts.tensor(self.data).element_type
        data = point.elements(data)
        point.lowering.facts.set(data, Tensor(element_type, (None,)))
        return PackedParts.of(point, data, layout, value(table))


class FlatParts(PackedParts):
    """Parts in a list of elements, with a table of their shapes instead of their lengths."""

    @cached_property
    def count(self) -> Number:
        """How many parts there are."""
        return calculated(self.point, size_of(self.lengths))

    @cached_property
    def lengths(self) -> Listed:
        """How many elements each part has."""
        return self.point.products(self.point.make(self.beside))

    @property
    def beside(self) -> Listed:
        """The tensor beside the data that locates each part: the shapes."""
        assert not isinstance(self.sizes, Chunks)  # noqa: S101 - it is a table
        return listed(self.sizes)

    def at(self, make: Calculation, place: Number) -> ir.Value:
        """Return the part at a position, which is in range."""
        rank, axis = self.layout.rank or 0, self.layout.axis
        shape = make.op("Reshape", [make.make(pick(self.beside, place)), make.make(rank)])
        held = self.point.lowering.facts.tensor(self.data).element_type
        made = make.in_shape(super().at(make, place), shape, rank, held, by_index=self.by_index)
        return make.moved(made, rank, 0, axis)


Piece: TypeAlias = "tuple[ir.Value, Listed]"
"""Parts one after the other in a tensor, and their lengths along it."""


def calculated(make: Calculation, number: Number) -> Number:
    """Return a formula as the value that it is calculated to, once for all that use it."""
    return value(make.make(number)) if isinstance(number, Formula) else number


def calculated_list(make: Calculation, numbers: Numbers) -> Numbers:
    """Do as `calculated` with a list."""
    return value(make.make(numbers)) if isinstance(numbers, Formula) else numbers


def resized(known: Tensor, axis: int, size: int | None) -> Tensor:
    """Return the fact about a tensor with another length on an axis."""
    if known.shape is None:
        return Tensor(known.element_type)
    shape = list(known.shape)
    shape[axis] = size
    return Tensor(known.element_type, tuple(shape))


Part: TypeAlias = "ir.Value | Callable[[], ir.Value]"
"""A tensor of a sequence, or what makes it where something uses it."""


@dataclass(frozen=True, slots=True)
class LoweredSequence:
    """The stand-in for a sequence: its tensors, one tensor that holds all parts, or both."""

    fact: SequenceFact
    parts: tuple[Part, ...] | None
    packed: PackedParts | None = None

    @classmethod
    def of(cls, packed: PackedParts, fact: SequenceFact) -> LoweredSequence:
        """Return the sequence of the parts of one tensor."""
        sizes, parts = packed.known_sizes, None
        if sizes is not None:
            parts = tuple(partial(packed.part, index) for index in range(len(sizes)))
        return cls(fact, parts, packed)

    def tensor(self, index: int) -> ir.Value:
        """Return one tensor of a sequence of a known number of them."""
        assert self.parts is not None  # noqa: S101 - the caller looked
        part = self.parts[index]
        return part if isinstance(part, ir.Value) else part()

    def tensors(self) -> list[ir.Value]:
        """Return every tensor of a sequence of a known number of them."""
        return [self.tensor(index) for index in range(len(self.parts or ()))]

    def in_layout(self, layout: Layout, point: InsertionPoint) -> PackedParts:
        """Return the sequence laid out in one tensor, for a node that needs it."""
        packed, axis = self.packed, layout.axis
        if packed is not None and packed.layout == layout:
            return packed
        if packed is not None and self.parts is None:
            old, rank = packed.layout, layout.rank or 1
            if old.dropped and not (layout.dropped or layout.is_flat):
                return packed.side_by_side(layout, point)
            if layout.is_flat and (old.dropped or (old.axis % rank == axis and not old.is_flat)):
                return packed.flattened(layout, point)
            raise refusal("the sequence's tensors follow each other along another axis")
        parts = self.tensors()
        lengths: Numbers = ()
        if not parts:
            data = self._empty(layout, point)
        elif layout.is_flat:
            pieces = [piece(point, part, layout) for part in parts]
            data = point.concat([elements for elements, _ in pieces], 0)
            lengths = joined(*(row for _, row in pieces))
        elif layout.dropped:
            data = point.concat([point.unsqueeze(part, [axis]) for part in parts], axis)
        else:
            data = point.concat(parts, axis)
        if not layout.is_flat:
            lengths = tuple(point.lowering.length(part, axis) for part in parts)
        elif not parts:
            lengths = value(point.empty([0, layout.rank or 0], ir.DataType.INT64))
        point.lowering.facts.set(data, layout.tensors(self.fact)[0])
        return PackedParts.of(point, data, layout, lengths)

    def _empty(self, layout: Layout, point: InsertionPoint) -> ir.Value:
        """Return a tensor that holds no tensors at all."""
        part, element_type = self.fact.part, self.fact.element_type
        assert part is not None  # noqa: S101 - see `layout_for`
        if element_type is None:
            text = "the element type of an empty sequence's tensors is not known"
            raise refusal(text, "declare it")
        shape = layout.around(part, 0)
        if not are_known(shape):
            text = f"the shape {part} of an empty sequence's tensors is open"
            raise refusal(text, _DECLARE)
        return point.empty(shape, element_type)


def piece(point: InsertionPoint, tensor: ir.Value, layout: Layout) -> Piece:
    """Return a tensor as it goes beside others into one tensor."""
    axis = layout.axis
    if layout.dropped:
        return point.unsqueeze(tensor, [axis]), ()
    if not layout.is_flat:
        return tensor, dimension(tensor, axis)
    rank = layout.rank or 0
    moved = point.moved(tensor, rank, axis, 0)
    row = point.op("Reshape", [point.op("Shape", [moved]), point.make((1, rank))])
    return point.elements(moved), value(row)


def layout_for(fact: SequenceFact, sequences: Iterable[LoweredSequence]) -> Layout:
    """Return how sequences can be laid out in one tensor if this is known of all of them.

    They stay as they lie where their tensors are sure to fit. Only those of a known number of
    tensors can be laid out along another axis.
    """
    alike = tuple(sequences)
    given = [(each, each.packed) for each in alike if each.packed is not None]
    bound = [packed for each, packed in given if each.parts is None]
    lying = bound or [packed for _, packed in given]
    layouts = {packed.layout for packed in lying}
    known = {packed.rank for packed in lying} - {None}
    if fact.part is None and not known and len(layouts) == 1 and len(given) == len(alike):
        return layouts.pop()
    if fact.part is None or known - {len(fact.part)}:
        raise refusal(
            "a sequence of an unknown number of tensors must be in one tensor, and its tensors have"
            " different ranks, or ranks that are not known",
            "give it tensors of one rank, and declare the shapes",
        )
    # Of none that are there, nothing says what the tensor that holds them looks like
    fits = all(each.fact.count != 0 for each, _ in given) and all(
        packed.layout.fits(fact.part, packed.point.lowering.facts.tensor(packed.data).shape)
        for packed in lying
    )
    if len(layouts) == 1 and fits:
        return layouts.pop()
    rank, kept = len(fact.part), {each for each in layouts if not (each.dropped or each.is_flat)}
    if len(kept) == 1 and fits and not any(each.is_flat for each in layouts):
        return kept.pop()  # those that lack an axis get it, and lie beside the others
    axes = {layout.axis % rank for layout in layouts if bound and not layout.dropped}
    if len(axes) > 1:
        raise refusal("sequences of unknown numbers of tensors are split along different axes")
    vary = [axis for axis, dim in enumerate(fact.part) if not is_known(dim)]
    if bound or len(vary) > 1:
        return Layout(axes.pop() if axes else 0, rank=rank)
    return Layout(vary[0]) if vary else Layout(0, dropped=True)
