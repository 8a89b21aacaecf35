"""What stands for a sequence in a model without sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
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
    position,
    size_of,
    sums,
    total,
    value,
)
from tensorsplit.core.dimensions import Dim, are_known, is_known
from tensorsplit.core.rules import Chunks
from tensorsplit.model.graph.calculation import TO_THE_END, Calculation
from tensorsplit.model.graph.facts import Sequence, Tensor
from tensorsplit.model.graph.nodes import NodeRef
from tensorsplit.model.lower.context import InsertionPoint, refusal
from tensorsplit.model.lower.split_nodes import length_of

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


@dataclass
class PackedParts:
    """A sequence that is nothing but consecutive parts of one tensor.

    Attributes:
        point: Where nodes that all uses share are inserted; it comes before all of them.
        data: The tensor.
        layout: How the parts lie in it.
        sizes: Their lengths, as a length rule gives them.
        dim: The dimension; None to look it up in the tensor.
        zero: Zero; the running model stops where it is used if the lengths do not fit.
    """

    point: InsertionPoint
    data: ir.Value
    layout: Layout
    sizes: Numbers | Chunks
    dim: Number = None
    zero: Number = 0
    _squeezed: dict[int, ir.Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.dim is None:
            self.dim = dimension(self.data, self.layout.axis)

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
        return self.point.context.takes_by_index(self.data)

    def part(self, index: int) -> ir.Value:
        """One of the parts where their sizes are known; all come from one node."""
        if not self.layout.dropped:
            return self._parts[index]
        if index not in self._squeezed:
            made = self.point.squeeze(self._parts[index], [self.layout.axis])
            self._squeezed[index] = made
        return self._squeezed[index]

    @cached_property
    def _parts(self) -> list[ir.Value]:
        context, axis, sizes = self.point.context, self.layout.axis, self.known_sizes
        assert sizes is not None  # noqa: S101 - the caller looked
        parts = self.point.split(self.data, axis, self.dim, sizes, len(sizes))
        for part, size in zip(parts, sizes, strict=True):
            context.facts.set(part, resized(context.tensor(self.data), axis, size))
        return parts

    @cached_property
    def count(self) -> Number:
        """How many parts there are."""
        sizes = self.sizes
        count = sizes.count if isinstance(sizes, Chunks) else size_of(sizes) + self.zero
        return calculated(self.point, count)

    def at(self, make: Calculation, index: Number) -> ir.Value:
        """One part; the running model stops where the index is out of range."""
        place = position(index, self.count, self.count - 1)
        if self.layout.dropped:
            return make.take(self.data, place, self.layout.axis)
        start, end = self._bounds(place)
        if self.by_index and isinstance(self.sizes, Chunks):
            end = minimum(end, self.end)
        return self._slice(make, start, end)

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
        return self.sizes if self.point.context.tensor(source).shape == (1,) else None

    def around(
        self, make: Calculation, place: Number, following: Number
    ) -> tuple[ir.Value, ir.Value]:
        """The data before a position, and that from another position on."""
        start, end = self._start(place), self._start(following)
        return self._slice(make, 0, start), self._slice(make, end, self.end)

    def _start(self, place: Number) -> Number:
        """Where the part at a position starts, or where the data ends for one behind the last."""
        if isinstance(self.sizes, Chunks):
            return minimum(place * self.sizes.size, self.end)
        return total(head(self.lengths, place))

    @cached_property
    def end(self) -> Number:
        """Where the data ends."""
        return calculated(self.point, self.dim)

    @cached_property
    def whole(self) -> ir.Value:
        """The tensor; the running model stops if the lengths do not fit it."""
        if is_known(self.zero):
            return self.data
        end = self.dim if self.by_index else TO_THE_END
        made = self._slice(self.point, self.zero, end)
        facts = self.point.context.facts
        facts.set(made, facts.of(self.data))
        return made

    @cached_property
    def lengths(self) -> Numbers:
        """The length of each part as one list."""
        known = self.known_sizes
        if known is not None and is_known(self.zero):
            return known
        if not isinstance(self.sizes, Chunks):
            return calculated(self.point, as_formula(self.sizes) + self.zero)
        starts = self.point.range(0, self.end, self.sizes.size)
        return calculated(self.point, minimum(self.dim - value(starts), self.sizes.size))

    @cached_property
    def _ends(self) -> Numbers:
        return calculated(self.point, sums(self.lengths))

    def tensors(self) -> list[ir.Value]:
        """The tensors that hold the sequence: the data, and the lengths unless all are 1."""
        return [self.whole] if self.layout.dropped else [self.whole, self.point.make(self.lengths)]


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
    """What stands for a sequence; one of the first two is there, and both where both hold.

    Attributes:
        parts: Every tensor, if it is known how many there are.
        packed: The tensor that holds all parts.
        fact: What is known of the sequence.
    """

    parts: tuple[Part, ...] | None
    packed: PackedParts | None
    fact: Sequence

    @classmethod
    def of(cls, packed: PackedParts, fact: Sequence) -> LoweredSequence:
        """The sequence of the parts of one tensor."""
        sizes = packed.known_sizes
        parts = None
        if sizes is not None:
            parts = tuple(partial(packed.part, index) for index in range(len(sizes)))
        return cls(parts, packed, fact)

    def tensors(self) -> list[ir.Value]:
        """Every tensor of a sequence of a known number of them."""
        return list(map(self.tensor, self.parts or ()))

    @staticmethod
    def tensor(part: Part) -> ir.Value:
        """The tensor of a part."""
        return part if isinstance(part, ir.Value) else part()

    def layout(self, ref: NodeRef, fact: Sequence | None = None) -> Layout:
        """How to lay out the sequence in one tensor.

        Args:
            ref: The node that needs it.
            fact: What is known of every sequence that is to have the layout; the sequence's own
                if None.

        Raises:
            SplitError: TS513 if the tensors may differ in more than one dimension.
        """
        if self.packed is not None:
            return self.packed.layout
        part = (fact or self.fact).part
        if part is None:
            raise refusal("nothing is known of the rank of the sequence's tensors", ref, _DECLARE)
        vary = [axis for axis, dim in enumerate(part) if not is_known(dim)]
        if len(vary) > 1:
            raise refusal(
                f"the sequence's tensors may differ in the dimensions {vary}, so that no one tensor"
                " can hold them all",
                ref,
                _DECLARE,
            )
        return Layout(vary[0], dropped=False) if vary else Layout(0, dropped=True)

    def in_layout(self, layout: Layout, point: InsertionPoint, ref: NodeRef) -> PackedParts:
        """The sequence laid out in one tensor, for a node that needs it.

        Raises:
            SplitError: TS513 if it is laid out in another way, or has no tensors and no known
                shape.
        """
        if self.packed is not None and self.packed.layout == layout:
            return self.packed
        if self.parts is None:
            raise refusal("the sequence's tensors follow each other along another axis", ref)
        parts, axis = self.tensors(), layout.axis
        if not parts:
            shape, element_type = self._empty_shape(layout, ref)
            data = point.empty(shape, axis, element_type)
        elif layout.dropped:
            data = point.concat([point.unsqueeze(part, [axis]) for part in parts], axis)
        else:
            data = point.concat(parts, axis)
        if layout.dropped:
            chunks = Chunks(len(parts), len(parts), 1)
            return PackedParts(point, data, layout, chunks, len(parts))
        sizes = listed(tuple(length_of(point.context, part, axis) for part in parts))
        return PackedParts(point, data, layout, calculated(point, sizes))

    def _empty_shape(self, layout: Layout, ref: NodeRef) -> tuple[list[int], ir.DataType]:
        """The shape of a tensor that holds no tensors at all."""
        part, element_type = self.fact.part, self.fact.element_type
        if part is None or element_type is None:
            raise refusal("an empty sequence has neither shape nor type", ref, _DECLARE)
        shape = _with_axis(part, layout, 0)
        if not are_known(shape):
            text = f"the shape {part} of an empty sequence's tensors is open"
            raise refusal(text, ref, _DECLARE)
        return shape, element_type


def _with_axis(part: Iterable[Dim], layout: Layout, size: int | None) -> list[Dim]:
    """The shape of a tensor that holds parts of a shape."""
    shape = list(part)
    shape[layout.axis : layout.axis + (not layout.dropped)] = [size]
    return shape


def tensor_fact(fact: Sequence, layout: Layout) -> Tensor:
    """What is known of the tensor that holds a sequence."""
    if fact.part is None:
        return Tensor(fact.element_type)
    part = [dim if is_known(dim) else None for dim in fact.part]
    return Tensor(fact.element_type, tuple(_with_axis(part, layout, None)))
