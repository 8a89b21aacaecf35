"""Index arithmetic in a graph: on Python's integers while it can, on nodes where it must.

A number is an ``int``, or a value that holds one int64 in a tensor of shape [1].
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from tensorsplit.model.graph.building import Builder, Names

Number: TypeAlias = "int | ir.Value"


class Arithmetic(Builder):
    """A builder that calculates with numbers and cuts tensors by them."""

    def __init__(self, names: Names, opset: int, stem: str) -> None:
        super().__init__(names, opset, stem)
        self._numbers: dict[tuple[int, ...], ir.Value] = {}

    def numbers(self, values: Iterable[int]) -> ir.Value:
        """A list of integers as a constant; the same one for the same list."""
        key = tuple(values)
        if key not in self._numbers:
            self._numbers[key] = self.constant(list(key), np.int64)
        return self._numbers[key]

    def tensor(self, number: Number) -> ir.Value:
        """A number as a value of shape [1]."""
        return self.numbers([number]) if isinstance(number, int) else number

    def listed(self, numbers: Iterable[Number]) -> ir.Value:
        """Numbers as one 1-D value."""
        entries = list(numbers)
        known = [entry for entry in entries if isinstance(entry, int)]
        if len(known) == len(entries):
            return self.numbers(known)
        return self.concat([self.tensor(entry) for entry in entries], 0)

    def empty(self, shape: Sequence[int], axis: int, element_type: ir.DataType) -> ir.Value:
        """A tensor without elements, because its length on an axis is 0.

        It is a slice of nothing out of one element: OpenVINO's import takes an empty constant that
        a Loop starts with for a sequence, and then fails.
        """
        one = [1 if place == axis else size for place, size in enumerate(shape)]
        if element_type == ir.DataType.STRING:
            held: ir.TensorProtocol = ir.StringTensor([b""] * prod(one), shape=ir.Shape(one))
        else:
            held = ir.tensor(np.zeros(one, element_type.numpy()), dtype=element_type)
        nothing = self.op("Constant", [], {"value": held})
        return self.slice(nothing, 0, 0, axis, by_index=element_type == ir.DataType.STRING)

    def scalar(self, number: Number) -> ir.Value:
        """A number as a value of rank 0."""
        if isinstance(number, int):
            return self.constant(number, np.int64)
        return self.squeeze(number, [0])

    def number(self, value: ir.Value, is_int64: bool) -> ir.Value:
        """An operand of any shape that holds one integer as a number."""
        wide = value if is_int64 else self.op("Cast", [value], {"to": int(ir.DataType.INT64)})
        return self.op("Reshape", [wide, self.numbers([1])])

    def add(self, left: Number, right: Number) -> Number:
        """The sum."""
        if isinstance(left, int) and isinstance(right, int):
            return left + right
        if 0 in (_known(left), _known(right)):
            return right if _known(left) == 0 else left
        return self.op("Add", [self.tensor(left), self.tensor(right)])

    def subtract(self, left: Number, right: Number) -> Number:
        """The difference."""
        if isinstance(left, int) and isinstance(right, int):
            return left - right
        if _known(right) == 0:
            return left
        return self.op("Sub", [self.tensor(left), self.tensor(right)])

    def multiply(self, left: Number, right: Number) -> Number:
        """The product."""
        if isinstance(left, int) and isinstance(right, int):
            return left * right
        if 1 in (_known(left), _known(right)):
            return right if _known(left) == 1 else left
        return self.op("Mul", [self.tensor(left), self.tensor(right)])

    def divide_up(self, left: Number, right: Number) -> Number:
        """The quotient of a number >= 0 by one > 0, rounded up; nothing overflows on the way."""
        if isinstance(left, int) and isinstance(right, int):
            return -(-left // right)
        if _known(right) == 1:
            return left
        whole = self.op("Div", [self.tensor(left), self.tensor(right)])
        rest = self.subtract(left, self.multiply(whole, right))
        more = self.where(self.less(0, rest), 1, 0)
        return self.add(whole, more)

    def less(self, left: Number, right: Number) -> ir.Value:
        """Whether the first number is less than the second one, as a boolean of shape [1]."""
        return self.op("Less", [self.tensor(left), self.tensor(right)])

    def where(self, condition: ir.Value, yes: Number, no: Number) -> ir.Value:
        """One of two numbers."""
        return self.op("Where", [condition, self.tensor(yes), self.tensor(no)])

    def not_below_zero(self, numbers: ir.Value) -> ir.Value:
        """Numbers with 0 in the place of negative ones.

        Of lengths, this makes the sum wrong, which engines refuse; some of them read outside of
        the data where a length is negative.
        """
        zero = self.numbers([0])
        return self.op("Where", [self.op("Less", [numbers, zero]), zero, numbers])

    def guarded(self, number: Number, condition: ir.Value) -> ir.Value:
        """The number if the condition holds; if not, the engine fails at this place.

        Taking none of the elements leaves an empty tensor, which can't be reshaped to one
        element. An index out of range would do too, but not every engine refuses those.
        """
        kept = self.where(condition, 1, 0)
        taken = self.op("Slice", [self.tensor(number), self.numbers([0]), kept])
        return self.op("Reshape", [taken, self.numbers([1])])

    def total(self, numbers: ir.Value) -> ir.Value:
        """The sum of a 1-D value; 0 if it is empty."""
        if self.opset >= 13:
            return self.op("ReduceSum", [numbers, self.numbers([0])], {"keepdims": 1})
        return self.op("ReduceSum", [numbers], {"axes": [0], "keepdims": 1})

    def sure_lengths(self, lengths: ir.Value, dimension: ir.Value) -> ir.Value:
        """Lengths; the engine fails unless they are >= 0 and sum to the dimension."""
        whole = self.total(lengths)
        size = self.total(self.op("Abs", [lengths]))
        equal = [self.op("Equal", [number, dimension]) for number in (whole, size)]
        nothing = self.subtract(self.guarded(whole, self.op("And", equal)), whole)
        return self.op("Add", [lengths, self.tensor(nothing)])

    def position(self, index: Number, count: Number, last: Number) -> Number:
        """A position counted from the front; the engine fails if it is out of range.

        Args:
            index: The position; negative ones count from the back.
            count: What a negative one is added to.
            last: The largest position allowed.
        """
        if isinstance(index, int):
            found = self.add(index, count) if index < 0 else index
        else:
            found = self.where(self.less(index, 0), self.add(index, count), index)
        if isinstance(found, int) and isinstance(last, int):
            return found  # whoever knows both refuses
        good = self.op("Not", [self.less(last, found)])
        if isinstance(index, int) and index >= 0:
            return self.guarded(found, good)
        not_negative = self.op("Not", [self.less(found, 0)])
        return self.guarded(found, self.op("And", [good, not_negative]))

    def dimension(self, value: ir.Value, axis: int) -> ir.Value:
        """A dimension of a tensor."""
        return self.op("Gather", [self.op("Shape", [value]), self.numbers([axis])])

    def pick(self, numbers: ir.Value, index: Number) -> ir.Value:
        """The number at a position, which is in range, of a 1-D value."""
        return self.op("Gather", [numbers, self.tensor(index)])

    def slice(
        self, data: ir.Value, start: Number, end: Number, axis: int, by_index: bool = False
    ) -> ir.Value:
        """A piece of a tensor.

        Args:
            data: The tensor.
            start: Where the piece starts.
            end: Where it ends; more than the dimension means to the end, unless `by_index`.
            axis: The axis.
            by_index: Whether to take the elements one by one, for types that the engine can't
                slice.
        """
        if not by_index:
            ends = [self.tensor(start), self.tensor(end), self.numbers([axis])]
            return self.op("Slice", [data, *ends])
        if isinstance(start, int) and isinstance(end, int):
            indices = self.numbers(range(start, end)) if start < end else self._no_numbers()
        else:
            indices = self.range(start, end, 1)
        return self.op("Gather", [data, indices], {"axis": axis})

    def _no_numbers(self) -> ir.Value:
        """An empty list; OpenVINO's import takes an empty constant for a scalar."""
        if self.opset >= 10:
            return self.op("Slice", [self.numbers([0])] * 3)
        return self.op("Slice", [self.numbers([0])], {"starts": [0], "ends": [0]})

    def range(self, start: Number, end: Number, step: Number) -> ir.Value:
        """Numbers from one to below another."""
        return self.op("Range", [self.scalar(start), self.scalar(end), self.scalar(step)])

    def take(self, data: ir.Value, index: Number, axis: int) -> ir.Value:
        """What stands at a position, without the axis."""
        return self.op("Gather", [data, self.scalar(index)], {"axis": axis})

    def concat(self, values: Sequence[ir.Value], axis: int) -> ir.Value:
        """Tensors one behind the other; a single one is given back as it is."""
        return values[0] if len(values) == 1 else self.op("Concat", values, {"axis": axis})

    def squeeze(self, value: ir.Value, axes: Sequence[int]) -> ir.Value:
        """A tensor without axes of length 1."""
        return self._with_axes("Squeeze", value, axes)

    def unsqueeze(self, value: ir.Value, axes: Sequence[int]) -> ir.Value:
        """A tensor with more axes of length 1."""
        return self._with_axes("Unsqueeze", value, axes)

    def _with_axes(self, op_type: str, value: ir.Value, axes: Sequence[int]) -> ir.Value:
        if self.opset >= 13:
            return self.op(op_type, [value, self.numbers(axes)])
        return self.op(op_type, [value], {"axes": list(axes)})


def _known(number: Number) -> int | None:
    return number if isinstance(number, int) else None


Make: TypeAlias = Callable[[Arithmetic], ir.Value]
"""Makes a value with nodes."""
