"""New nodes: formulas as ONNX nodes, and the nodes that split tensors by them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import onnx_ir as ir

from tensorsplit.core.arithmetic import (
    Formula,
    Number,
    Numbers,
    bounds,
    choose,
    dimension,
    fitting,
    maximum,
    pick,
    rounded_up,
    value,
)
from tensorsplit.core.dimensions import are_known, is_known
from tensorsplit.core.errors import CANNOT_EXPRESS, SplitError
from tensorsplit.core.maker import Maker
from tensorsplit.core.records.onnx import WITH_BFLOAT16
from tensorsplit.model.graph.building import Names

FIRST_WITH_LENGTHS_AS_INPUT = 13
"""From here on Split takes its lengths as an input."""

FIRST_WITH_BOUNDS_AS_INPUTS = 10
"""From here on Slice takes its bounds as inputs."""

FIRST_WITH_INTEGERS_COMPARED = 9
"""From here on Less and Greater take integers."""

FIRST_WITH_SUMS = 11
"""From here on CumSum adds up the elements of a list."""

FIRST_WITH_RANGE = 11
"""From here on Range counts up, by which elements are taken one by one."""

_FIRST_WITH_NUMBERED_ELEMENTS = 9
"""From here on the elements of a tensor of ones can be numbered, as Range does it later."""

_FIRST_WITH_NUMBERED_TYPES = 6
_FIRST_WITH_INTEGER_MAX = 12
_FIRST_WITH_AXES_AS_INPUT = 13
FIRST_WITH_EMPTY_SHAPES = 14
_FIRST_WITH_AXES_TO_MULTIPLY = 18

FIRST_WITH_ANY_CONSTANT = 9
"""From here on a Constant holds any element type, and before only `FLOATS`."""

_MOST_LISTED = 1 << 16
"""A constant lists so many numbers, and no more: more are calculated."""

FLOATS = (ir.DataType.FLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE)

EQUAL_BEFORE_11 = (ir.DataType.BOOL, ir.DataType.INT32, ir.DataType.INT64)
"""The element types that Equal takes before opset 11, where it takes all numbers."""

TO_THE_END = (1 << 31) - 1
"""An end of a slice that lies beyond every dimension; exporters write this, or more."""

_NODES = {
    "add": "Add",
    "subtract": "Sub",
    "multiply": "Mul",
    "divide": "Div",
    "near_quotient": "Div",
    "less": "Less",
    "equal": "Equal",
    "both": "And",
    "choose": "Where",
    "size_of": "Shape",
    "pick": "Gather",
}
"""The operations that are one node."""


class Calculation(Maker[ir.Value]):
    """Makes nodes of ONNX's own domain that calculate numbers, and split tensors by them.

    They are collected in order for others to insert into a scope of the opset; new names start with
    the stem. It has guards if one of the nodes stops the running model where lengths do not fit.
    """

    def __init__(
        self, names: Names, opset: int, stem: str, *, rounds_integers: bool = False
    ) -> None:
        super().__init__()
        self.rounds_integers = rounds_integers
        self.names, self.opset, self.stem = names, opset, stem
        self.nodes: list[ir.Node] = []
        self.has_guards = False

    def inner(self) -> Calculation:
        """Return another one for the same engine, for a body."""
        return Calculation(self.names, self.opset, self.stem, rounds_integers=self.rounds_integers)

    def op(
        self,
        op_type: str,
        inputs: Iterable[ir.Value | None],
        attributes: Mapping[str, Any] | None = None,
        outputs: Sequence[ir.Value] | None = None,
    ) -> ir.Value:
        """Add a node with attributes given as Python values; returns its first output.

        It has the outputs given, or a new one.
        """
        if outputs is None:
            outputs = [self.new(op_type.lower())]
        node = ir.Node(
            "",
            op_type,
            list(inputs),
            ir.convenience.convert_attributes(dict(attributes or {})),
            outputs=outputs,
            name=self.names.fresh(f"{self.stem}_{op_type}"),
        )
        self.add(node)
        return outputs[0]

    def ops(
        self,
        op_type: str,
        inputs: Iterable[ir.Value | None],
        attributes: Mapping[str, object],
        ends: Iterable[str],
    ) -> list[ir.Value]:
        """Add a node with several outputs, whose names end so; returns them."""
        made = [self.new(end) for end in ends]
        self.op(op_type, inputs, attributes, made)
        return made

    def new(self, end: str, kind: ir.DataType | None = None, shape: Any = None) -> ir.Value:
        """Return a value that no node makes yet, whose name ends so."""
        return ir.val(self.names.fresh(f"{self.stem}_{end}"), kind, shape)

    def add(self, node: ir.Node) -> None:
        """Collect a node that was made."""
        self.nodes.append(node)

    def constant(self, value: object, dtype: Any = np.int64) -> ir.Value:
        """Add a Constant node; returns its output, whose value is known to later readers too."""
        array = np.array(value, dtype)
        if self.opset < FIRST_WITH_ANY_CONSTANT and array.dtype.kind in "ib":
            held = self.constant(value, np.float64)
            return self._cast(held, ir.DataType.from_numpy(array.dtype))
        # Given in full: what onnx-ir finds out for itself costs more than the node
        shape, element = ir.Shape(array.shape), ir.DataType.from_numpy(array.dtype)
        tensor = ir.Tensor(array, element, shape=shape)
        attribute = ir.Attr("value", ir.AttributeType.TENSOR, tensor)
        output = self.op("Constant", [], {"value": attribute})
        output.shape, output.type = ir.Shape(array.shape), ir.TensorType(element)
        return output

    def _cast(self, held: ir.Value, element_type: ir.DataType) -> ir.Value:
        is_named = self.opset < _FIRST_WITH_NUMBERED_TYPES
        to = element_type.name if is_named else int(element_type)
        return self.op("Cast", [held], {"to": to})

    def constant_list(self, values: Iterable[int]) -> ir.Value:
        """Return integers as int64 of rank 1.

        None at all is a slice of nothing: OpenVINO's import reads an empty constant as a scalar.
        """
        listed = list(values)
        if listed:
            return self.constant(listed)
        zero = self.make(0)
        if self.opset < FIRST_WITH_BOUNDS_AS_INPUTS:
            return self.slice(zero, 0, 0, 0)
        return self.op("Slice", [zero, zero, zero])

    def apply(self, operation: str, operands: list[ir.Value]) -> ir.Value:
        """Return the node of an operation; see `Maker.apply`."""
        if operation in _NODES:
            return self.op(_NODES[operation], operands)
        made: ir.Value = getattr(self, f"_{operation}")(*operands)
        return made

    def _minimum(self, left: ir.Value, right: ir.Value) -> ir.Value:
        if self.opset >= _FIRST_WITH_INTEGER_MAX:
            return self.op("Min", [left, right])
        return self._one_of(left, right, value(left), value(right))

    def _maximum(self, left: ir.Value, right: ir.Value) -> ir.Value:
        if self.opset >= _FIRST_WITH_INTEGER_MAX:
            return self.op("Max", [left, right])
        return self._one_of(left, right, value(right), value(left))

    def _one_of(self, left: ir.Value, right: ir.Value, yes: Number, no: Number) -> ir.Value:
        """Return one of two numbers if the left one is smaller, else the other."""
        return self.make(choose(Formula("less", value(left), value(right)), yes, no))

    def _one_if(self, condition: ir.Value) -> ir.Value:
        return self.op("Cast", [condition], {"to": int(ir.DataType.INT64)})

    def _total(self, numbers: ir.Value) -> ir.Value:
        return self.total(numbers, 0)

    def total(self, numbers: ir.Value, axis: int) -> ir.Value:
        """Return the sums along an axis, which then has length 1."""
        if self.opset >= _FIRST_WITH_AXES_AS_INPUT:
            return self.op("ReduceSum", [numbers, self.make(axis)], {"keepdims": 1})
        return self.op("ReduceSum", [numbers], {"axes": [axis], "keepdims": 1})

    _near_total = _total

    def _sums(self, numbers: ir.Value) -> ir.Value:
        if self.opset < FIRST_WITH_SUMS:
            raise SplitError(
                CANNOT_EXPRESS,
                f"not expressible at opset {self.opset}: many lengths are added up at run time, and"
                f" CumSum is there from {FIRST_WITH_SUMS} on",
                f"convert to opset {FIRST_WITH_SUMS} or newer",
            )
        return self.op("CumSum", [numbers, self.constant(0)])

    def _joined(self, *lists: ir.Value) -> ir.Value:
        return self.concat(lists, 0)

    def _head(self, numbers: ir.Value, count: ir.Value) -> ir.Value:
        return self.op("Slice", [numbers, self.make(0), count])

    def _tail(self, numbers: ir.Value, start: ir.Value) -> ir.Value:
        return self.op("Slice", [numbers, start, self.make(TO_THE_END)])

    def _shaped(self, numbers: ir.Value, count: ir.Value) -> ir.Value:
        self.has_guards = True
        return self.op("Reshape", [numbers, count])

    def _dimension(self, data: ir.Value, axis: ir.Value) -> ir.Value:
        return self.op("Gather", [self.op("Shape", [data]), axis])

    def scalar(self, number: Number) -> ir.Value:
        """Return a number as a value of rank 0."""
        if isinstance(number, int):
            return self.constant(number)
        return self.squeeze(self.make(number), [0])

    def number(self, held: ir.Value, dtype: ir.DataType | None) -> Number:
        """Return a value of any shape that holds one integer as a number."""
        return value(self.op("Reshape", [self.int64(held, dtype), self.make(1)]))

    def int64(self, held: ir.Value, dtype: ir.DataType | None) -> ir.Value:
        """Return integers of any type as int64."""
        if dtype == ir.DataType.INT64:
            return held
        return self.op("Cast", [held], {"to": int(ir.DataType.INT64)})

    def parts(
        self,
        data: ir.Value,
        axis: Number,
        dim: Number,
        lengths: Numbers,
        count: int,
        *,
        checks_sum: bool,
        by_index: bool = False,
    ) -> list[ir.Value]:
        """Split a tensor on an axis of length `dim`; the running model stops on wrong lengths.

        `checks_sum` says whether Split nodes refuse lengths with a wrong sum, `by_index` whether to
        take the elements one by one.

        Raises:
            SplitError: TS310 before opset 10, where lengths and bounds are attributes.
        """
        constant = lengths if isinstance(lengths, tuple) and are_known(lengths) else None
        as_attribute = constant is not None and (checks_sum or is_known(dim))
        has_split = self.opset >= FIRST_WITH_LENGTHS_AS_INPUT or as_attribute
        if by_index or not is_known(axis) or not has_split:
            return self.slices(data, axis, dim, lengths, count, by_index=by_index)
        inputs, attributes = [data], dict[str, object]({"axis": axis})
        if self.opset >= FIRST_WITH_LENGTHS_AS_INPUT:
            inputs.append(self.make(fitting(dim, lengths, count, checks_sum=checks_sum)))
        else:
            attributes["split"] = list(constant or ())
        return self.ops("Split", inputs, attributes, ["part"] * count)

    def slices(
        self,
        data: ir.Value,
        axis: Number,
        dim: Number,
        lengths: Numbers,
        count: int,
        *,
        by_index: bool = False,
        are_checked: bool = False,
    ) -> list[ir.Value]:
        """Do as `parts`, with a Slice for each, which stops the model if the lengths do not fit.

        `are_checked` says whether the nodes that calculate the lengths do so already.

        Raises:
            SplitError: TS310 before opset 10.
        """
        limits = bounds(dim, lengths, count, are_checked=are_checked)
        if self.opset < FIRST_WITH_BOUNDS_AS_INPUTS and not all(map(are_known, limits)):
            raise _unknown_before_running(self.opset, are_given=isinstance(lengths, Formula))
        return [self.slice(data, start, end, axis, by_index=by_index) for start, end in limits]

    def slice(
        self,
        data: ir.Value,
        start: Number,
        end: Number,
        axis: Number,
        step: Number = 1,
        *,
        by_index: bool = False,
    ) -> ir.Value:
        """Return the elements of a tensor from one position to before another.

        An end beyond the dimension means to the end, unless the elements are taken one by one
        (`by_index`), for types that an engine can't slice. Before opset 10 there are no steps.
        """
        if by_index:
            indices = self.range(start, end, step)
            return self.op("Gather", [data, indices], {"axis": axis})
        if self.opset < FIRST_WITH_BOUNDS_AS_INPUTS:
            limits = {"starts": [start], "ends": [end], "axes": [axis]}
            return self.op("Slice", [data], limits)
        steps = () if is_known(step) and step == 1 else (step,)
        return self.op("Slice", [data, *map(self.make, (start, end, axis, *steps))])

    def range(self, start: Number, end: Number, step: Number = 1) -> ir.Value:
        """Return the numbers from one to before another.

        Raises:
            SplitError: TS310 before opset 9 where they are not a constant; before 11 also for a
                step that is not known.
        """
        constant = few_numbers(start, end, step)
        if constant is not None:
            return self.make(tuple(constant))
        if self.opset >= FIRST_WITH_RANGE:
            return self.op("Range", [self.scalar(number) for number in (start, end, step)])
        if self.opset < _FIRST_WITH_NUMBERED_ELEMENTS or not is_known(step):
            first = _FIRST_WITH_NUMBERED_ELEMENTS
            raise SplitError(
                CANNOT_EXPRESS,
                f"not expressible at opset {self.opset}: how many elements there are is known only"
                f" at run time, or too many for a constant, and elements are numbered from {first}"
                " on",
                f"convert to opset {first} or newer, or declare the dimensions as numbers",
            )
        way = end - start if step > 0 else start - end
        steps = maximum(way, 0) if abs(step) == 1 else rounded_up(maximum(way, 0), abs(step))
        ones = self.op("ConstantOfShape", [self.make(steps)], {"value": ir.tensor([1])})
        numbers = value(self.squeeze(self.op("NonZero", [ones]), [0]))
        return self.make(numbers * step + start)

    def take(self, data: ir.Value, index: Number, axis: int) -> ir.Value:
        """Return the element at a position, without the axis."""
        return self.op("Gather", [data, self.scalar(index)], {"axis": axis})

    def concat(self, values: Sequence[ir.Value], axis: int) -> ir.Value:
        """Return tensors one after the other; a single one is given back as it is."""
        return values[0] if len(values) == 1 else self.op("Concat", values, {"axis": axis})

    def moved(self, data: ir.Value, rank: int, start: int, end: int) -> ir.Value:
        """Return a tensor of a rank with one axis moved."""
        order = [axis for axis in range(rank) if axis != start % rank]
        order.insert(end, start % rank)
        if order == list(range(rank)):
            return data
        return self.op("Transpose", [data], {"perm": order})

    def elements(self, data: ir.Value) -> ir.Value:
        """Return the elements of a tensor as a list."""
        return self.op("Reshape", [data, self.make(-1)])

    def products(self, table: ir.Value) -> Formula:
        """Return the product of each row of a table."""
        if self.opset >= _FIRST_WITH_AXES_TO_MULTIPLY:
            return value(self.op("ReduceProd", [table, self.make(1)], {"keepdims": 0}))
        return value(self.op("ReduceProd", [table], {"axes": [1], "keepdims": 0}))

    def in_shape(
        self,
        elements: ir.Value,
        shape: ir.Value,
        rank: int,
        element_type: ir.DataType | None,
        *,
        by_index: bool = False,
    ) -> ir.Value:
        """Return a list of elements as a tensor of a shape of known rank that it fits.

        Before opset 14 a Reshape can't make a dimension of 0 wherever it is: there what is missing
        is filled up, and the result cut.
        """
        if self.opset >= FIRST_WITH_EMPTY_SHAPES:
            return self.op("Reshape", [elements, shape], {"allowzero": 1})
        if element_type is None:
            raise SplitError(
                CANNOT_EXPRESS,
                f"a tensor of an unknown element type can't be made empty at opset {self.opset}",
                f"convert to opset {FIRST_WITH_EMPTY_SHAPES} or newer, or declare the type",
            )
        whole = self.make(maximum(value(shape), 1))
        count = pick(self.products(self.unsqueeze(whole, [0])), 0)
        missing = self.range(0, count - dimension(elements, 0))
        zeros = self.op("Mul", [missing, self.make(0)])
        filling = self.op("Gather", [self.filled([1], element_type), zeros])
        made = self.op("Reshape", [self.concat([elements, filling], 0), whole])
        for axis in range(rank):
            made = self.slice(made, 0, pick(value(shape), axis), axis, by_index=by_index)
        return made

    def squeeze(self, value: ir.Value, axes: Sequence[int]) -> ir.Value:
        """Return a tensor without axes of length 1."""
        return self._with_axes("Squeeze", value, axes)

    def unsqueeze(self, value: ir.Value, axes: Sequence[int]) -> ir.Value:
        """Return a tensor with more axes of length 1."""
        return self._with_axes("Unsqueeze", value, axes)

    def _with_axes(self, op_type: str, value: ir.Value, axes: Sequence[int]) -> ir.Value:
        if self.opset >= _FIRST_WITH_AXES_AS_INPUT:
            return self.op(op_type, [value, self.make(tuple(axes))])
        return self.op(op_type, [value], {"axes": list(axes)})

    def empty(self, shape: Sequence[int], element_type: ir.DataType) -> ir.Value:
        """Return a tensor without elements, because its length on an axis, or on several, is 0.

        It is a slice of nothing out of one element: OpenVINO's import takes an empty constant that
        a Loop starts with for a sequence, and then fails. Types that Slice does not take are cast
        from float.
        """
        if element_type.name.lower() not in WITH_BFLOAT16:
            return self._cast(self.empty(shape, ir.DataType.FLOAT), element_type)
        without = [place for place, size in enumerate(shape) if size == 0]
        nothing = self.filled([size or 1 for size in shape], element_type)
        for place in without:
            nothing = self.slice(nothing, 0, 0, place, by_index=element_type == ir.DataType.STRING)
        return nothing

    def filled(self, shape: list[int], element_type: ir.DataType) -> ir.Value:
        """Return a constant of zeros, or of empty strings.

        Raises:
            SplitError: TS310 for strings before opset 9, where constants are floats.
        """
        if self.opset < FIRST_WITH_ANY_CONSTANT and element_type not in FLOATS:
            if element_type == ir.DataType.STRING:
                first = FIRST_WITH_ANY_CONSTANT
                problem = f"not expressible at opset {self.opset}: a constant of strings"
                raise SplitError(CANNOT_EXPRESS, problem, f"convert to opset {first} or newer")
            return self._cast(self.filled(shape, ir.DataType.FLOAT), element_type)
        if element_type == ir.DataType.STRING:
            held: ir.TensorProtocol = ir.StringTensor([b""] * prod(shape), shape=ir.Shape(shape))
        else:
            held = ir.tensor(np.zeros(shape, element_type.numpy()), dtype=element_type)
        return self.op("Constant", [], {"value": held})


def few_numbers(start: Number, end: Number, step: Number) -> range | None:
    """Return the numbers from one to before another, if they are known and fit into a constant."""
    if not (is_known(start) and is_known(end) and is_known(step)):
        return None
    found = range(start, end, step)
    return found if not found[_MOST_LISTED:] else None


def _unknown_before_running(opset: int, *, are_given: bool) -> SplitError:
    """Return the refusal of parts that are Slice nodes without bounds as inputs.

    The lengths are given, or follow from the dimension, which is not known either.
    """
    first = FIRST_WITH_BOUNDS_AS_INPUTS
    if are_given:
        problem = "the lengths are known only at run time"
        fix = (
            "give the lengths as a constant; where they are calculated from dimensions, it is"
            " enough to declare those as numbers"
        )
    else:
        problem = "the lengths follow from the dimension, which is known only at run time"
        fix = "declare that dimension as a number"
    return SplitError(
        CANNOT_EXPRESS,
        f"not expressible at opset {opset}: {problem}, and Split takes lengths as an attribute, and"
        f" so does Slice its bounds before {first}",
        f"convert to opset {first} or newer, or {fix}",
    )
