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
from tensorsplit.model.lower.split_nodes import length_of
from tensorsplit.model.lower.state import InsertionPoint, refusal

MAX_PARTS_OF_ONE_NODE = 4096
"""Sequences of more parts are split one part at a time, not by one node with so many outputs."""

_DECLARE = "declare the shapes that are known, for example with infer_shapes"


@dataclass(frozen=True, slots=True)
class Layout:
    """How a sequence lies in one tensor: along an axis, from the front where known.

    If it is dropped, each part is one step along the axis, and lacks it.
    """

    axis: int
    dropped: bool

    def around(self, part: Iterable[Dim], size: int | None) -> list[Dim]:
        """The shape of a tensor that holds parts of a shape."""
        shape = list(part)
        axis = self.axis % max(1, len(shape) + self.dropped)
        shape[axis : axis + (not self.dropped)] = [size]
        return shape

    def tensor(self, fact: Sequence) -> Tensor:
        """What is known of the tensor that holds a sequence."""
        if fact.part is None:
            return Tensor(fact.element_type)
        part = (dim if is_known(dim) else None for dim in fact.part)
        return Tensor(fact.element_type, tuple(self.around(part, None)))

    def check(self, parts: Iterable[Shape | None], data: Shape | None = None) -> None:
        """Refuse parts that are known not to go into one tensor, with data that may be there."""
        known = [tuple(self.around(part, None)) for part in parts if part is not None]
        known += [data] if data is not None else []
        rank = max(map(len, known), default=1)
        fit = all(len(shape) == rank > self.axis for shape in known) and all(
            len(set(filter(is_known, dims))) < 2 or axis == self.axis % rank
            for axis, dims in enumerate(zip(*known, strict=False))
        )
        if not fit:
            shown = " and ".join(dict.fromkeys(map(show_shape, known)))
            raise refusal(
                f"tensors of the shapes {shown} do not fit into one tensor, and a sequence of an"
                " unknown number of tensors must",
                "give it tensors of one shape",
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
        """The parts of a tensor that was put together."""
        dim: Number = dimension(data, layout.axis)
        if not layout.dropped:
            return cls(point, data, layout, dim, calculated(point, lengths))
        count = len(lengths) if isinstance(lengths, tuple) else dim
        return cls(point, data, layout, count, Chunks(count, count, 1))

    @cached_property
    def known_sizes(self) -> tuple[int, ...] | None:
        """The length of each part, if all are known and there are not too many."""
        sizes = self.sizes
        if isinstance(sizes, Chunks):
            few = is_known(sizes.count) and sizes.count <= MAX_PARTS_OF_ONE_NODE
            sizes = sizes.parts(sizes.count) if few else (None,)
        if isinstance(sizes, Formula) or len(sizes) > MAX_PARTS_OF_ONE_NODE:
            return None
        return sizes if are_known(sizes) else None

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
        """Where a part starts and ends; the end of the last chunk may lie behind the data's.

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
        start = place * step + self.zero
        return start, start + step

    def _start(self, place: Number) -> Number:
        """Where the part at a position starts, or where the data ends for one behind the last."""
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
    def lengths(self) -> Numbers:
        """The length of each part as one list; empty if the parts lack the axis."""
        if self.layout.dropped:
            return ()
        known = self.known_sizes
        if known is not None and is_known(self.zero):
            return known
        if not isinstance(self.sizes, Chunks):
            return calculated(self.point, as_formula(listed(self.sizes)) + self.zero)
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
    """What stands for a sequence: its tensors, one tensor that holds all parts, or both."""

    fact: Sequence
    parts: tuple[Part, ...] | None
    packed: PackedParts | None = None

    @classmethod
    def of(cls, packed: PackedParts, fact: Sequence) -> LoweredSequence:
        """The sequence of the parts of one tensor."""
        sizes, parts = packed.known_sizes, None
        if sizes is not None:
            parts = tuple(partial(packed.part, index) for index in range(len(sizes)))
        return cls(fact, parts, packed)

    def tensor(self, index: int) -> ir.Value:
        """One tensor of a sequence of a known number of them."""
        assert self.parts is not None  # noqa: S101 - the caller looked
        part = self.parts[index]
        return part if isinstance(part, ir.Value) else part()

    def tensors(self) -> list[ir.Value]:
        """Every tensor of a sequence of a known number of them."""
        return [self.tensor(index) for index in range(len(self.parts or ()))]

    def in_layout(self, layout: Layout, point: InsertionPoint) -> PackedParts:
        """The sequence laid out in one tensor, for a node that needs it."""
        if self.packed is not None and self.packed.layout == layout:
            return self.packed
        if self.parts is None:
            raise refusal("the sequence's tensors follow each other along another axis")
        parts, axis = self.tensors(), layout.axis
        layout.check(point.lowering.tensor(part).shape for part in parts)
        if not parts:
            data = point.empty(*self._empty(layout))
        elif layout.dropped:
            data = point.concat([point.unsqueeze(part, [axis]) for part in parts], axis)
        else:
            data = point.concat(parts, axis)
        lengths = tuple(length_of(point.lowering, part, axis) for part in parts)
        return PackedParts.of(point, data, layout, lengths)

    def _empty(self, layout: Layout) -> tuple[list[int], int, ir.DataType]:
        """The shape of a tensor that holds no tensors at all, the axis and the type."""
        part, element_type = self.fact.part, self.fact.element_type
        if part is None or element_type is None:
            raise refusal("an empty sequence has neither shape nor type", _DECLARE)
        shape = layout.around(part, 0)
        if not are_known(shape):
            text = f"the shape {part} of an empty sequence's tensors is open"
            raise refusal(text, _DECLARE)
        return shape, layout.axis, element_type


def layout_of(fact: Sequence) -> Layout:
    """How tensors of which this is known can be laid out in one."""
    if fact.part is None:
        raise refusal("nothing is known of the rank of the sequence's tensors", _DECLARE)
    vary = [axis for axis, dim in enumerate(fact.part) if not is_known(dim)]
    if len(vary) > 1:
        raise refusal(
            f"the sequence's tensors may differ in the dimensions {vary}, so that no one tensor"
            " can hold them all",
            _DECLARE,
        )
    return Layout(vary[0], dropped=False) if vary else Layout(0, dropped=True)
