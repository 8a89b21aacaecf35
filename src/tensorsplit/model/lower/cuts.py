"""A sequence that is nothing but consecutive pieces of one tensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import onnx_ir as ir

from tensorsplit.model.graph.facts import Tensor
from tensorsplit.model.lower.arithmetic import Arithmetic, Number
from tensorsplit.model.lower.context import Context, Home

Lengths: TypeAlias = "tuple[int, ...] | ir.Value"

_T = TypeVar("_T")

MAX_PIECES = 4096
"""Sequences of more parts are cut one part at a time, and not by one node with so many outputs."""


@dataclass(frozen=True, slots=True)
class Form:
    """How a sequence is laid out in one tensor.

    Attributes:
        axis: The axis along which the parts follow each other, from the front where known.
        dropped: Whether the parts lack the axis, and each is one step along it.
    """

    axis: int
    dropped: bool


@dataclass
class Cut:
    """Consecutive pieces of one tensor.

    Attributes:
        context: The lowering.
        home: Where nodes that all uses share are put; it comes before all of them.
        data: The tensor.
        form: How the pieces lie in it.
        chunk: The length of every piece but perhaps the last; None if `lengths` says it.
        lengths: The length of each piece, where they are not chunks.
        dim: The dimension, if it is a number.
        stem: What the names of new nodes start with.
    """

    context: Context
    home: Home
    data: ir.Value
    form: Form
    chunk: Number | None
    lengths: Lengths | None
    dim: int | None
    stem: str
    _made: dict[str, Number] = field(default_factory=dict)
    _pieces: list[ir.Value] = field(default_factory=list)

    @property
    def sizes(self) -> tuple[int, ...] | None:
        """The length of each piece, if all are known and there are not too many."""
        if isinstance(self.lengths, tuple):
            found = self.lengths
        elif self.dim is None or not isinstance(self.chunk, int) or self.chunk < 1:
            return None
        else:
            if self.dim > self.chunk * MAX_PIECES:
                return None
            whole, rest = divmod(self.dim, self.chunk)
            found = (self.chunk,) * whole + ((rest,) if rest else ())
        return found if len(found) <= MAX_PIECES else None

    def piece(self, index: int) -> ir.Value:
        """One of the pieces of a cut whose sizes are known; all come from one node."""
        sizes = self.sizes
        assert sizes is not None  # noqa: S101 - the caller looked
        if not self._pieces:
            self._pieces = self._at_home(lambda make: self._cut(make, sizes))
        if not self.form.dropped:
            return self._pieces[index]
        axis = self.form.axis
        squeezed = self._number(
            f"squeezed {index}", lambda make: make.squeeze(self._pieces[index], [axis])
        )
        assert isinstance(squeezed, ir.Value)  # noqa: S101 - squeeze gives no integer
        return squeezed

    def _cut(self, make: Arithmetic, sizes: tuple[int, ...]) -> list[ir.Value]:
        axis = self.form.axis
        known = self.context.tensor(self.data)
        shapes = [_with(known, axis, size) for size in sizes]
        if self.context.takes_by_index(self.data):
            start, pieces = 0, []
            for size in sizes:
                pieces.append(make.slice(self.data, start, start + size, axis, by_index=True))
                start += size
        else:
            pieces = split(make, self.data, axis, list(sizes))
        for piece, fact in zip(pieces, shapes, strict=True):
            self.context.know(piece, fact)
        return pieces

    def count(self) -> Number:
        """How many pieces there are."""
        if isinstance(self.lengths, tuple):
            return len(self.lengths)
        lengths, chunk = self.lengths, self.chunk
        if lengths is not None:
            return self._number("count", lambda make: make.op("Shape", [lengths]))
        assert chunk is not None  # noqa: S101 - one of the two is there
        return self._number("count", lambda make: make.divide_up(self.length(), chunk))

    def at(self, make: Arithmetic, index: Number) -> ir.Value:
        """One piece; the engine fails where the index is out of range."""
        count = self.count()
        place = make.position(index, count, make.subtract(count, 1))
        if self.form.dropped:
            return make.take(self.data, place, self.form.axis)
        start, end = self.bounds(make, place)
        by_index = self.context.takes_by_index(self.data)
        if by_index and self.chunk is not None:
            length = self.length()
            end = make.where(make.less(end, length), end, length)
        return make.slice(self.data, start, end, self.form.axis, by_index)

    def bounds(self, make: Arithmetic, place: Number) -> tuple[Number, Number]:
        """Where a piece starts and ends; the end of the last chunk may lie behind the data's."""
        step = self._step()
        if step is not None:
            start = make.multiply(place, step)
            return start, make.add(start, step)
        lengths = self.lengths_value()
        ends = self._number("ends", lambda make: make.op("CumSum", [lengths, make.constant(0)]))
        assert isinstance(ends, ir.Value)  # noqa: S101 - an operator gives no integer
        end = make.pick(ends, place)
        return make.subtract(end, make.pick(lengths, place)), end

    def _step(self) -> Number | None:
        """The length of every piece but perhaps the last, if there is such a length.

        A single piece has one as well. Looked up in a list of one, its length would not depend on
        the position for OpenVINO, which then leaves out that the position may be out of range.
        """
        if isinstance(self.lengths, tuple):
            return self.lengths[0] if len(set(self.lengths)) == 1 else None
        if self.lengths is not None:
            return self.lengths if self.context.tensor(self.lengths).shape == (1,) else None
        return self.chunk

    def starts(self, make: Arithmetic, place: Number) -> Number:
        """Where the piece at a position starts, or where the data ends for one behind the last."""
        if self.chunk is not None:
            start = make.multiply(place, self.chunk)
            length = self.length()
            return make.where(make.less(start, length), start, length)
        zero = make.numbers([0])
        before = make.op("Slice", [self.lengths_value(), zero, make.tensor(place)])
        return make.total(before)

    def length(self) -> Number:
        """The dimension."""
        if self.dim is not None:
            return self.dim
        return self._number("length", lambda make: make.dimension(self.data, self.form.axis))

    def lengths_value(self) -> ir.Value:
        """The length of each piece as a value."""
        made = self._number("lengths", self._lengths)
        assert isinstance(made, ir.Value)  # noqa: S101 - see below
        return made

    def _lengths(self, make: Arithmetic) -> ir.Value:
        if isinstance(self.lengths, ir.Value):
            return self.lengths
        sizes = self.sizes
        if sizes is not None:
            return make.numbers(sizes)
        length, chunk = self.length(), self.chunk
        assert chunk is not None  # noqa: S101 - one of the two is there
        starts = make.range(0, length, chunk)
        rest = make.op("Sub", [make.tensor(length), starts])
        chunks = make.tensor(chunk)
        return make.op("Where", [make.op("Less", [rest, chunks]), rest, chunks])

    def _number(self, key: str, make: Callable[[Arithmetic], Number]) -> Number:
        if key not in self._made:
            self._made[key] = self._at_home(make)
        return self._made[key]

    def _at_home(self, make: Callable[[Arithmetic], _T]) -> _T:
        return self.context.build(self.home, self.stem, make)


def split(make: Arithmetic, data: ir.Value, axis: int, sizes: list[int]) -> list[ir.Value]:
    """A Split node with explicit lengths, in the spelling of the opset."""
    values = [ir.Value(name=make.names.fresh(f"{make.stem}_part")) for _ in sizes]
    if make.opset >= 13:
        make.op("Split", [data, make.numbers(sizes)], {"axis": axis}, values)
    else:
        make.op("Split", [data], {"axis": axis, "split": sizes}, values)
    return values


def _with(known: Tensor, axis: int, size: int) -> Tensor:
    """What is known of a tensor with another length on an axis."""
    if known.shape is None:
        return Tensor(known.element_type)
    shape = list(known.shape)
    shape[axis] = size
    return Tensor(known.element_type, tuple(shape))
