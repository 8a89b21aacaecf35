"""What stands for a sequence in a model without sequences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

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
from tensorsplit.core.dimensions import are_known, is_known
from tensorsplit.core.rules import Chunks
from tensorsplit.model.graph.calculation import TO_THE_END, Calculation
from tensorsplit.model.graph.facts import Sequence, Tensor
from tensorsplit.model.graph.nodes import NodeRef
from tensorsplit.model.lower.context import Context, InsertionPoint, refusal

_T = TypeVar("_T")

MAX_PARTS_OF_ONE_NODE = 4096
"""Sequences of more parts are split one part at a time, not by one node with so many outputs."""


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
        context: The lowering.
        point: Where nodes that all uses share are inserted; it comes before all of them.
        data: The tensor.
        layout: How the parts lie in it.
        sizes: Their lengths, as a length rule gives them.
        stem: What the names of new nodes start with.
        dim: The dimension; None to look it up in the tensor.
        zero: Zero; the running model stops where it is used if the lengths do not fit.
    """

    context: Context
    point: InsertionPoint
    data: ir.Value
    layout: Layout
    sizes: Numbers | Chunks
    stem: str
    dim: Number = None
    zero: Number = 0
    _shared: dict[str, Number] = field(default_factory=dict)
    _values: dict[str, ir.Value] = field(default_factory=dict)
    _parts: list[ir.Value] = field(default_factory=list)

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

    def part(self, index: int) -> ir.Value:
        """One of the parts where their sizes are known; all come from one node."""
        sizes = self.known_sizes
        assert sizes is not None  # noqa: S101 - the caller looked
        if not self._parts:
            self._parts = self._build(lambda make: self._split(make, sizes))
        if not self.layout.dropped:
            return self._parts[index]
        axis = self.layout.axis
        return self._build_once(
            f"squeezed {index}", lambda make: make.squeeze(self._parts[index], [axis])
        )

    def _split(self, make: Calculation, sizes: tuple[int, ...]) -> list[ir.Value]:
        context, axis = self.context, self.layout.axis
        parts = make.parts(
            self.data,
            axis,
            self.dim,
            sizes,
            len(sizes),
            checks_sum=context.checks_sum,
            by_index=context.takes_by_index(self.data),
        )
        for part, size in zip(parts, sizes, strict=True):
            context.know(part, resized(context.tensor(self.data), axis, size))
        return parts

    def count(self) -> Number:
        """How many parts there are."""
        if isinstance(self.sizes, Chunks):
            return self._once("count", self.sizes.count)
        return self._once("count", size_of(self.sizes) + self.zero)

    def at(self, make: Calculation, index: Number) -> ir.Value:
        """One part; the running model stops where the index is out of range."""
        count = self.count()
        place = position(index, count, count - 1)
        if self.layout.dropped:
            return make.take(self.data, place, self.layout.axis)
        start, end = self._bounds(place)
        by_index = self.context.takes_by_index(self.data)
        if by_index and isinstance(self.sizes, Chunks):
            end = minimum(end, self._once("dim", self.dim))
        return make.slice(self.data, start, end, self.layout.axis, by_index=by_index)

    def _bounds(self, place: Number) -> tuple[Number, Number]:
        """Where a part starts and ends; the end of the last chunk may lie behind the data's."""
        step = self._step()
        if step is not None:
            start = place * step + self.zero
            return start, start + step
        lengths = self.lengths()
        end = pick(self._once("ends", sums(lengths)), place)
        return end - pick(lengths, place), end

    def _step(self) -> Number | None:
        """The length of every part but perhaps the last, if there is such a length.

        A single part has one as well. Looked up in a list of one, its length would not depend on
        the position for OpenVINO, which then leaves out that the position may be out of range.
        """
        if isinstance(self.sizes, Chunks):
            return self.sizes.size
        if isinstance(self.sizes, tuple):
            return self.sizes[0] if len(set(self.sizes)) == 1 else None
        held = self.sizes.operands[0] if self.sizes.operation == "value" else None
        return self.sizes if self.context.tensor(held).shape == (1,) else None

    def start(self, place: Number) -> Number:
        """Where the part at a position starts, or where the data ends for one behind the last."""
        if isinstance(self.sizes, Chunks):
            return minimum(place * self.sizes.size, self._once("dim", self.dim))
        return total(head(self.lengths(), place))

    def end(self) -> Number:
        """Where the data ends."""
        return self._once("dim", self.dim)

    def whole(self) -> ir.Value:
        """The tensor; the running model stops if the lengths do not fit it."""
        if is_known(self.zero):
            return self.data
        return self._build_once("whole", self._whole)

    def _whole(self, make: Calculation) -> ir.Value:
        by_index = self.context.takes_by_index(self.data)
        end = self.dim if by_index else TO_THE_END
        made = make.slice(self.data, self.zero, end, self.layout.axis, by_index=by_index)
        return self.context.know(made, self.context.tensor(self.data))

    def lengths(self) -> Numbers:
        """The length of each part as one list."""
        known = self.known_sizes
        if known is not None and is_known(self.zero):
            return known
        if not isinstance(self.sizes, Chunks):
            return self._once("lengths", as_formula(self.sizes) + self.zero)
        return self._once("lengths", value(self._build_once("chunks", self._chunks)))

    def _chunks(self, make: Calculation) -> ir.Value:
        assert isinstance(self.sizes, Chunks)  # noqa: S101 - the caller looked
        starts = make.range(0, self.end(), self.sizes.size)
        return make.make(minimum(self.dim - value(starts), self.sizes.size))

    def tensors(self) -> list[ir.Value]:
        """The tensors that hold the sequence: the data, and the lengths unless all are 1."""
        if self.layout.dropped:
            return [self.whole()]
        return [self.whole(), self._build(lambda make: make.make(self.lengths()))]

    def _once(self, key: str, number: Number) -> Number:
        """A number, calculated where all uses can share it."""
        if key not in self._shared:
            self._shared[key] = self.context.calculate(self.point, self.stem, number)
        return self._shared[key]

    def _build_once(self, key: str, make: Callable[[Calculation], ir.Value]) -> ir.Value:
        if key not in self._values:
            self._values[key] = self._build(make)
        return self._values[key]

    def _build(self, make: Callable[[Calculation], _T]) -> _T:
        return self.context.build(self.point, self.stem, make)


def resized(known: Tensor, axis: int, size: int | None) -> Tensor:
    """What is known of a tensor with another length on an axis."""
    if known.shape is None:
        return Tensor(known.element_type)
    shape = list(known.shape)
    shape[axis] = size
    return Tensor(known.element_type, tuple(shape))


@dataclass(frozen=True, slots=True)
class PackedPart:
    """A part that is made only if something uses it.

    Attributes:
        packed: The parts that it is one of.
        index: Which one.
    """

    packed: PackedParts
    index: int


Part: TypeAlias = "ir.Value | PackedPart"


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
            parts = tuple(PackedPart(packed, index) for index in range(len(sizes)))
        return cls(parts, packed, fact)

    def tensors(self) -> list[ir.Value]:
        """Every tensor of a sequence of a known number of them."""
        return list(map(self.tensor, self.parts or ()))

    @staticmethod
    def tensor(part: Part) -> ir.Value:
        """The tensor of a part."""
        return part.packed.part(part.index) if isinstance(part, PackedPart) else part

    def layout(self, place: NodeRef, fact: Sequence | None = None) -> Layout:
        """How to lay out the sequence in one tensor.

        Args:
            place: The node that needs it.
            fact: What is known of every sequence that is to have the layout; the sequence's own
                if None.

        Raises:
            SplitError: TS513 if the tensors may differ in more than one dimension.
        """
        if self.packed is not None:
            return self.packed.layout
        part = (fact or self.fact).part
        if part is None:
            raise refusal("nothing is known of the rank of the sequence's tensors", place, _DECLARE)
        vary = [axis for axis, dim in enumerate(part) if not is_known(dim)]
        if len(vary) > 1:
            raise refusal(
                f"the sequence's tensors may differ in the dimensions {vary}, so that no one tensor"
                " can hold them all",
                place,
                _DECLARE,
            )
        return Layout(vary[0], dropped=False) if vary else Layout(0, dropped=True)

    def in_layout(
        self, layout: Layout, context: Context, point: InsertionPoint, place: NodeRef
    ) -> PackedParts:
        """The sequence laid out in one tensor.

        Args:
            layout: How.
            context: The lowering.
            point: Where to insert the nodes that do it.
            place: The node that needs it.

        Raises:
            SplitError: TS513 if it is laid out in another way, or has no tensors and no known
                shape.
        """
        if self.packed is not None and self.packed.layout == layout:
            return self.packed
        if self.parts is None:
            raise refusal("the sequence's tensors follow each other along another axis", place)
        stem = place.node.name or place.node.op_type
        parts = self.tensors()
        sizes: Numbers | Chunks
        if layout.dropped:
            sizes = Chunks(len(parts), len(parts), 1)
        else:
            sizes = tuple(_length(context, part, layout.axis) for part in parts)
            sizes = context.calculate(point, stem, listed(sizes))
        if parts:
            data = context.build(point, stem, lambda make: _joined(make, parts, layout))
        else:
            shape, element_type = self._empty_shape(layout, place)
            data = context.build(
                point, stem, lambda make: make.empty(shape, layout.axis, element_type)
            )
        dim = len(parts) if layout.dropped else None
        return PackedParts(context, point, data, layout, sizes, stem, dim)

    def _empty_shape(self, layout: Layout, place: NodeRef) -> tuple[list[int], ir.DataType]:
        """The shape of a tensor that holds no tensors at all."""
        part, element_type = self.fact.part, self.fact.element_type
        if part is None or element_type is None:
            raise refusal("an empty sequence has neither shape nor type", place, _DECLARE)
        shape = list(part)
        if layout.dropped:
            shape.insert(layout.axis, 0)
        else:
            shape[layout.axis] = 0
        if not are_known(shape):
            text = f"the shape {part} of an empty sequence's tensors is open"
            raise refusal(text, place, _DECLARE)
        return shape, element_type


_DECLARE = "declare the shapes that are known, for example with infer_shapes"


def _length(context: Context, part: ir.Value, axis: int) -> Number:
    shape = context.tensor(part).shape
    if shape is not None and is_known(shape[axis]):
        return shape[axis]
    return dimension(part, axis)


def _joined(make: Calculation, parts: list[ir.Value], layout: Layout) -> ir.Value:
    held = [make.unsqueeze(part, [layout.axis]) for part in parts] if layout.dropped else parts
    return make.concat(held, layout.axis)


def tensor_fact(fact: Sequence, layout: Layout) -> Tensor:
    """What is known of the tensor that holds a sequence."""
    if fact.part is None:
        return Tensor(fact.element_type)
    shape = [dim if is_known(dim) else None for dim in fact.part]
    if layout.dropped:
        shape.insert(layout.axis, None)
    else:
        shape[layout.axis] = None
    return Tensor(fact.element_type, tuple(shape))
