"""The elements of small tensors that follow from shapes and constants, one by one.

So lengths, shapes and bounds that a graph computes are known as far as they can be: some of them
numbers, some of them expressions of the dimensions' names, and some of them not at all (None).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial, reduce
from itertools import chain, islice
from math import prod
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnx_ir as ir

from tensorsplit.core.dimensions import (
    Dim,
    Shape,
    add,
    are_known,
    combine,
    divisor_of,
    is_at_least,
    is_known,
    larger,
    magnitude,
    product_of,
    smaller,
    times,
)
from tensorsplit.model.graph.axes import clamped
from tensorsplit.model.graph.calculation import FLOATS
from tensorsplit.model.graph.facts import Fact, NotKnownError, Tensor, as_tensor
from tensorsplit.model.graph.tensors import Array

Elements: TypeAlias = tuple[Dim, ...]

MAX_ELEMENTS = 1024
"""Computed tensors of more elements are described by their type and shape alone."""

_EXACT = 1 << 10
"""A float is calculated with if it is a fraction whose divisor is at most that."""


@dataclass(frozen=True)
class Node:
    """A node without bodies, and what is known of its inputs; absent ones are None.

    A request for what is not known raises a `NotKnownError`.
    """

    proto: onnx.NodeProto
    inputs: tuple[Fact | None, ...]
    opset: int

    def tensor(self, index: int) -> Tensor:
        """Return the fact about an input; an empty one if it is absent, or of another kind."""
        return as_tensor(self.inputs[index] if index < len(self.inputs) else None)

    def shape(self, index: int) -> Elements:
        """Return the shape of an input."""
        return _known(self.tensor(index).shape)

    def elements(self, index: int) -> Elements:
        """Return the elements of an input of rank 0 or 1, whose number is known."""
        return _known(elements_of(self.tensor(index)))

    def table(self, index: int) -> Array:
        """Return the elements of an input in its shape, of a rank up to 2."""
        fact = self.tensor(index)
        elements = _known(fact.values if fact.values is not None else elements_of(fact))
        if fact.shape is None or not are_known(fact.shape):
            raise NotKnownError
        found = np.empty(len(elements), object)
        found[:] = elements
        return found.reshape(fact.shape)

    def element(self, index: int) -> Dim:
        """Return the one element of an input; None if it is not known."""
        return one_of(elements_of(self.tensor(index)) or (None,))

    def operand(
        self, name: str, index: int, since: int, default: Elements | None = None
    ) -> Elements:
        """Return the elements of an input that is an attribute before an opset, or a default."""
        if self.opset < since:
            given = self.attribute(name, default)
            return tuple(_known(given))
        return self.elements(index) if self.has(index) else _known(default)

    def has(self, index: int) -> bool:
        """Return whether an input is given."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def attribute(self, name: str, default: object = None) -> Any:
        """Return the value of an attribute."""
        for entry in self.proto.attribute:
            if entry.name == name:
                value = onnx.helper.get_attribute_value(entry)
                return value.decode() if isinstance(value, bytes) else value
        return default


def _known(found: Elements | None) -> Elements:
    if found is None:
        raise NotKnownError
    return found


def one_of(elements: Elements) -> Dim:
    """Return the one element of a list."""
    if len(elements) != 1:
        raise NotKnownError
    return elements[0]


def elements_of(fact: Tensor) -> Elements | None:
    """Return the elements of a small tensor of rank 0 or 1, each None where it is not known."""
    if fact.shape is not None and len(fact.shape) > 1:
        return None
    if fact.values is not None or fact.shape is None:
        return fact.values
    count = fact.shape[0] if fact.shape else 1
    return (None,) * count if is_known(count) and count <= MAX_ELEMENTS else None


def constant_array(fact: Fact | None) -> Array | None:
    """Return the elements as an array, where every one is a number."""
    known = as_tensor(fact)
    shape = known.shape
    if known.values is None or known.element_type is None or shape is None or not are_known(shape):
        return None
    if not all(isinstance(entry, (int, float)) for entry in known.values):
        return None
    return np.array(known.values, known.element_type.numpy()).reshape(shape)


def computed(node: Node, output: Tensor) -> Elements | None:
    """Return the elements of the first output of a node of ONNX's own; None if none is known.

    Args:
        node: The node.
        output: The type and shape of that output.
    """
    name = node.proto.op_type
    rule = _MOVED.get(name) or _CALCULATED.get(name)
    if rule is None or output.shape is None or len(output.shape) > (2 if name in _TABLES else 1):
        return None
    count = prod(output.shape) if are_known(output.shape) else None
    if count is None or count > MAX_ELEMENTS:
        return None
    found: Elements = ()
    with suppress(NotKnownError):
        found = tuple(islice(rule(node, output), count + 1))
    if name in _CALCULATED:
        found = tuple(_fitting(entry, output.element_type) for entry in found)
    if len(found) != count or all(entry is None for entry in found):
        return () if count == 0 else None
    return found


_INTEGERS = {ir.DataType.INT32: 1 << 31, ir.DataType.INT64: 1 << 63}
"""The integers that are calculated with, and how far they go; in smaller ones lengths wrap."""

WHOLE = frozenset(_INTEGERS)
"""The types of the integers that are calculated with."""

_LARGEST_NAMED = {ir.DataType.INT32: 1 << 24, ir.DataType.INT64: 1 << 15}
"""What a name may stand for without an expression wrapping: one alone, or the product of four."""


def _fitting(entry: Dim, kind: ir.DataType | None) -> Dim:
    """Return a calculated element, if it is known to fit the type; else None."""
    if isinstance(entry, Fraction):
        return float(entry) if kind in FLOATS else None
    if kind in FLOATS:  # counts up to 2^11 are exact in all of them, names up to 2^24 not in all
        is_exact = abs(entry) <= 2 * _EXACT if isinstance(entry, int) else kind != FLOATS[0]
        return entry if is_exact else None
    if kind in _INTEGERS:
        limit = _INTEGERS[kind]
        if not isinstance(entry, int):
            return entry if magnitude(entry, _LARGEST_NAMED[kind]) < limit else None
        return entry if -limit <= entry < limit else None
    return entry if kind == ir.DataType.BOOL else None


_ROUNDING = ("Cast", "Ceil", "Floor")
"""The operators that take a quotient of names as floats give it, which is not exact."""


def _elementwise(rule: Callable[..., Dim], node: Node, _: Tensor) -> list[Dim]:
    """Apply a rule to every element."""
    rounds = node.proto.op_type in _ROUNDING
    arrays = [_objects(node.tensor(index), rounds=rounds) for index in range(len(node.inputs))]
    with np.errstate(all="ignore"):  # NumPy warns of flags that the arithmetic of a rule leaves
        made = np.frompyfunc(rule, len(arrays), 1)(*arrays)
    return np.ravel(np.asarray(made, object)).tolist()


def _objects(known: Tensor, *, rounds: bool) -> Array:
    """Return the elements as an array of objects, to calculate with."""
    elements = _known(elements_of(known))
    if known.element_type in FLOATS and not rounds:
        elements = tuple(entry if _is_binary(entry) else None for entry in elements)
    found = np.empty(len(elements), object)
    found[:] = list(map(_exact, elements))
    return found.reshape(() if known.shape == () else (-1,))


def _is_binary(entry: Dim) -> bool:
    """Return whether floats give an expression exactly: its divisor is a power of two."""
    return isinstance(entry, float) or divisor_of(entry).bit_count() == 1


def _exact(entry: Dim) -> Dim:
    """Return an element to calculate with: a float as a fraction, if it is a simple one."""
    if not isinstance(entry, float):
        return entry
    found = Fraction(entry) if np.isfinite(entry) else None
    return _simplest(found) if found is not None and found.denominator <= _EXACT else None


def _simplest(number: int | Fraction) -> int | Fraction:
    return number.numerator if number.denominator == 1 else number


_NUMBERS = (int, Fraction)


def _of_two(
    of_numbers: Callable[[Any, Any], Any], of_dimensions: Callable[[Dim, Dim], Dim]
) -> Callable[[Dim, Dim], Dim]:
    """Return a rule of two dimensions where either may be a fraction, which needs numbers."""

    def rule(left: Dim, right: Dim) -> Dim:
        if not isinstance(left, Fraction) and not isinstance(right, Fraction):
            return of_dimensions(left, right)
        are_numbers = isinstance(left, _NUMBERS) and isinstance(right, _NUMBERS)
        return _simplest(of_numbers(left, right)) if are_numbers else None

    return rule


_sum = _of_two(operator.add, add)
_difference = _of_two(operator.sub, partial(combine, operator.sub))


def _product(left: Dim, right: Dim) -> Dim:
    if left == 0 or right == 0:
        return 0
    for number, other in ((left, right), (right, left)):
        if isinstance(number, Fraction):
            return _quotient(_product(number.numerator, other), number.denominator)
    return times(left, right)


def _quotient(left: Dim, right: Dim) -> Dim:
    """Divide without rounding, by a number."""
    if isinstance(right, Fraction):
        return _quotient(_product(left, right.denominator), right.numerator)
    if left is None or right == 0 or not isinstance(right, int):
        return None
    if isinstance(left, _NUMBERS):
        return _simplest(Fraction(left) / right)
    return combine(operator.truediv, left, right)


def _divide(node: Node, output: Tensor) -> list[Dim]:
    """Divide integers as ONNX does, which truncates."""
    is_whole = output.element_type not in FLOATS
    rule = (lambda left, right: _whole(_quotient(left, right))) if is_whole else _quotient
    return _elementwise(rule, node, output)


def _remainder(left: Dim, right: Dim) -> Dim:
    if not is_known(left) or not is_known(right) or left < 0 or right <= 0:
        return None
    return left % right


def _cast(node: Node, output: Tensor) -> list[Dim]:
    rule: Callable[[Dim], Dim] = _whole
    if output.element_type == ir.DataType.BOOL:
        rule = partial(_comparison(operator.ne), 0)
    elif output.element_type in FLOATS:
        rule = _same
    return _elementwise(rule, node, output)


def _same(entry: Dim) -> Dim:
    return entry


def _whole(entry: Dim) -> Dim:
    """Return the whole number towards 0."""
    if isinstance(entry, _NUMBERS):
        return int(entry)
    return _floor(entry) if is_at_least(entry, 0) else None


def _floor(entry: Dim) -> Dim:
    return entry // 1 if isinstance(entry, Fraction) else combine(operator.floordiv, entry, 1)


def _sign(left: Dim, right: Dim) -> int | None:
    """Return -1, 0 or 1 as the left one is always less, equal or greater; None if that depends."""
    difference = _difference(left, right)
    if isinstance(difference, _NUMBERS):
        return int(difference > 0) - int(difference < 0)
    if is_at_least(difference, 1):
        return 1
    return -1 if is_at_least(-1, difference) else None


def _comparison(holds: Callable[[int, int], bool]) -> Callable[[Dim, Dim], Dim]:
    def rule(left: Dim, right: Dim) -> Dim:
        found = _sign(left, right)
        return None if found is None else int(holds(found, 0))

    return rule


def _and(left: Dim, right: Dim) -> Dim:
    if 0 in (left, right):
        return 0
    return None if left is None or right is None else 1


def _not(entry: Dim) -> Dim:
    return None if entry is None else int(not entry)


def _where(condition: Dim, left: Dim, right: Dim) -> Dim:
    if condition is None:
        return left if _sign(left, right) == 0 else None
    return left if condition else right


def _absolute(entry: Dim) -> Dim:
    if isinstance(entry, int):
        return abs(entry)
    if isinstance(entry, Fraction):
        return abs(entry)
    return entry if is_at_least(entry, 0) else None


def _reduce(rule: Callable[[Dim, Dim], Dim], start: Elements, node: Node, _: Tensor) -> Elements:
    """Reduce all elements to one; an output of one element has all axes reduced, or none."""
    entries = (*start, *map(_exact, node.elements(0)))
    if not entries:
        raise NotKnownError
    return (reduce(rule, entries),)


def _clip(node: Node, _: Tensor) -> Elements:
    entries = node.elements(0)
    if node.opset < 11:
        raise NotKnownError
    for index, rule in ((1, _largest), (2, _smallest)):
        if node.has(index):
            limit = node.element(index)
            entries = tuple(rule(_exact(entry), _exact(limit)) for entry in entries)
    return entries


def _constant_of_shape(node: Node, output: Tensor) -> Elements:
    value = node.attribute("value")
    entry = 0.0 if value is None else onnx.numpy_helper.to_array(value).ravel()[0].item()
    entry = int(entry) if isinstance(entry, bool) else entry
    return (_exact(entry),) * (_length(output.shape) if output.shape else 1)


def _length(shape: Shape) -> int:
    length = shape[0]
    if not is_known(length):
        raise NotKnownError
    return length


def _range(node: Node, _: Tensor) -> range:
    numbers = tuple(map(node.element, range(3)))
    if not are_known(numbers) or not numbers[2]:
        raise NotKnownError
    return range(*numbers)


def _many(rule: Callable[[Dim, Dim], Dim]) -> Callable[..., Dim]:
    return lambda *entries: reduce(rule, entries)


def _gather(node: Node, _: Tensor) -> Elements:
    entries, places = node.elements(0), node.elements(1)
    count = len(entries)
    return tuple(
        entries[place] if is_known(place) and -count <= place < count else None for place in places
    )


def slice_bounds(node: Node) -> list[tuple[Dim, Dim, Dim, Dim]]:
    """Return the start, end, axis and step of each axis that a Slice cuts."""
    starts, ends = node.operand("starts", 1, 10), node.operand("ends", 2, 10)
    axes = node.operand("axes", 3, 10, tuple(range(len(starts))))
    steps = node.elements(4) if node.has(4) else (1,) * len(starts)
    return list(zip(starts, ends, axes, steps, strict=True))


def _slice(node: Node, _: Tensor) -> Elements:
    bounds = slice_bounds(node)
    entries = node.table(0)
    taken = [slice(None)] * entries.ndim
    for start, end, axis, step in bounds:
        if not (is_known(start) and is_known(end) and is_known(axis) and is_known(step) and step):
            raise NotKnownError
        taken[axis] = clamped(start, end, step, entries.shape[axis])
    return tuple(entries[tuple(taken)].ravel().tolist())


def _padded(node: Node, _: Tensor) -> Elements:
    pads = node.operand("pads", 1, 11)
    if node.attribute("mode", "constant") != "constant":
        raise NotKnownError
    if len(pads) != 2 or not are_known(pads) or max(pads) > MAX_ELEMENTS:
        raise NotKnownError
    value = node.element(2) if node.has(2) else _exact(node.attribute("value", 0))
    before, after = ((value,) * int(max(pad, 0)) for pad in pads)
    entries, end = node.elements(0), min(pads[1], 0) or None
    return (*before, *entries[-min(pads[0], 0) : end], *after)


def _transposed(node: Node, _: Tensor) -> Elements:
    return tuple(node.table(0).transpose(node.attribute("perm")).ravel().tolist())


def _repeated(node: Node, output: Tensor) -> Elements:
    """Return the elements, repeated to the length of the output."""
    entries = node.elements(0)
    return (
        entries * (_length(output.shape) // len(entries)) if entries and output.shape else entries
    )


_largest, _smallest = _of_two(max, larger), _of_two(min, smaller)

_ELEMENTWISE: Mapping[str, Callable[..., Dim]] = {
    "Abs": _absolute,
    "Add": _sum,
    "And": _and,
    "Ceil": lambda entry: _product(-1, _floor(_product(-1, entry))),
    "Equal": _comparison(operator.eq),
    "Floor": _floor,
    "Greater": _comparison(operator.gt),
    "GreaterOrEqual": _comparison(operator.ge),
    "Less": _comparison(operator.lt),
    "LessOrEqual": _comparison(operator.le),
    "Max": _many(_largest),
    "Min": _many(_smallest),
    "Mod": _remainder,
    "Mul": _product,
    "Neg": partial(_product, -1),
    "Not": _not,
    "Or": lambda left, right: _not(_and(_not(left), _not(right))),
    "Sub": _difference,
    "Sum": _many(_sum),
    "Where": _where,
}

_Calculate: TypeAlias = Callable[[Node, Tensor], Iterable[Dim]]

_CALCULATED: Mapping[str, _Calculate] = {
    "Cast": _cast,
    "Clip": _clip,
    "ConstantOfShape": _constant_of_shape,
    "Div": _divide,
    "Range": _range,
    "ReduceMax": partial(_reduce, _largest, ()),
    "ReduceMin": partial(_reduce, _smallest, ()),
    "ReduceProd": partial(_reduce, _product, (1,)),
    "ReduceSum": partial(_reduce, _sum, (0,)),
    "Shape": lambda node, _: node.shape(0)[node.attribute("start") : node.attribute("end")],
    "Size": lambda node, _: (product_of(node.shape(0)),),
    **{name: partial(_elementwise, rule) for name, rule in _ELEMENTWISE.items()},
}
"""How the elements of an output are calculated, by operator."""

_MOVED: Mapping[str, _Calculate] = {
    "Concat": lambda node, _: chain(*map(node.elements, range(len(node.inputs)))),
    "Gather": _gather,
    "Pad": _padded,
    "Slice": _slice,
    **dict.fromkeys(("Expand", "Tile"), _repeated),
    "Reshape": lambda node, _: node.table(0).ravel().tolist(),
    "Transpose": _transposed,
    **dict.fromkeys(("Identity", "Squeeze", "Unsqueeze"), lambda node, _: node.elements(0)),
}
"""Which elements of the inputs those of an output are, by operator."""

_TABLES = ("Reshape", "Slice", "Transpose")
"""Operators whose output may have two axes: PyTorch turns the pads of a Pad around in a table."""
