"""The elements of small tensors that follow from shapes and constants, one by one.

So lengths, shapes and bounds that a graph computes are known as far as they can be: some of them
numbers, some of them expressions of the dimensions' names, and some of them not at all (None).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial, reduce
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnx_ir as ir

from tensorsplit.core.dimensions import (
    Dim,
    add,
    combine,
    is_at_least,
    is_known,
    larger,
    smaller,
    times,
)
from tensorsplit.model.graph.facts import Fact, Tensor, tensor_of

Elements: TypeAlias = tuple[Dim, ...]

MAX_ELEMENTS = 1024
"""Computed tensors of more elements are described by their type and shape alone."""

_EXACT = 1 << 10
"""A float is calculated with if it is a fraction whose divisor is at most that."""


@dataclass(frozen=True)
class Node:
    """A node without bodies, and what is known of its inputs; absent ones are None."""

    proto: onnx.NodeProto
    inputs: tuple[Fact | None, ...]
    opset: int

    def input(self, index: int) -> Tensor | None:
        """What is known of a tensor; None for one that is absent or of another kind."""
        fact = self.inputs[index] if index < len(self.inputs) else None
        return fact if isinstance(fact, Tensor) else None

    def shape(self, index: int) -> Elements | None:
        """The shape of an input."""
        fact = self.input(index)
        return None if fact is None else fact.shape

    def elements(self, index: int) -> Elements | None:
        """The elements of an input of rank 0 or 1; None where not even their number is known."""
        fact = self.input(index)
        return None if fact is None else elements_of(fact)

    def has(self, index: int) -> bool:
        """Whether an input is given."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def attribute(self, name: str, default: Any = None) -> Any:
        """The value of an attribute."""
        for entry in self.proto.attribute:
            if entry.name == name:
                value = onnx.helper.get_attribute_value(entry)
                return value.decode() if isinstance(value, bytes) else value
        return default


def elements_of(fact: Tensor) -> Elements | None:
    """The elements of a small tensor of rank 0 or 1, each None where nothing is known of it."""
    if fact.values is not None or fact.shape is None or len(fact.shape) > 1:
        return fact.values
    count = fact.shape[0] if fact.shape else 1
    return (None,) * count if is_known(count) and count <= MAX_ELEMENTS else None


def computed(node: Node, output: Tensor) -> Elements | None:
    """The elements of the first output of a node of ONNX's own; None where none of them is known.

    Args:
        node: The node.
        output: The type and shape of that output.
    """
    rule = _RULES.get(node.proto.op_type)
    if rule is None or output.shape is None or len(output.shape) > 1:
        return None
    count = output.shape[0] if output.shape else 1
    if not is_known(count) or count > MAX_ELEMENTS:
        return None
    found = rule(node, output)
    if found is None or len(found) != count or all(entry is None for entry in found):
        return () if count == 0 else None
    return found


def _shape(node: Node, _: Tensor) -> Elements | None:
    shape = node.shape(0)
    return None if shape is None else shape[node.attribute("start") : node.attribute("end")]


def _size(node: Node, _: Tensor) -> Elements | None:
    shape = node.shape(0)
    return None if shape is None else (reduce(times, shape, 1),)


_FLOATS = (ir.DataType.FLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE)
_INTEGERS = (ir.DataType.INT32, ir.DataType.INT64)
"""The integers that are calculated with; in smaller ones lengths wrap."""


def _elementwise(rule: Callable[..., Dim], node: Node, output: Tensor) -> Elements | None:
    """Apply a rule to every element; what does not fit the element type is not known."""
    arrays = [_objects(fact) for fact in node.inputs]
    if not arrays or any(array is None for array in arrays):
        return None
    with np.errstate(all="ignore"):  # NumPy warns of flags that the arithmetic of a rule leaves
        made = np.frompyfunc(rule, len(arrays), 1)(*arrays)
    return tuple(_fitting(entry, output) for entry in np.ravel(np.asarray(made, object)).tolist())


def _objects(fact: Fact | None) -> np.ndarray[Any, Any] | None:
    """The elements as an array of objects, fractions for floats."""
    known = tensor_of(fact)
    elements = elements_of(known)
    if elements is None or known.shape is None:
        return None
    found = np.empty(len(elements), object)
    found[:] = [_exact(entry) if isinstance(entry, float) else entry for entry in elements]
    return found.reshape(known.shape)


def _exact(number: float) -> int | Fraction | None:
    """A float as a fraction, if it is a simple one."""
    if not np.isfinite(number):
        return None
    found = Fraction(number)
    if found.denominator == 1:
        return found.numerator
    return found if found.denominator <= _EXACT else None


def _fitting(entry: Dim, output: Tensor) -> Dim:
    if isinstance(entry, Fraction):
        return float(entry) if output.element_type in _FLOATS else None
    if isinstance(entry, bool):
        entry = int(entry)
    if output.element_type in _INTEGERS:
        limit = np.iinfo(np.int32 if output.element_type == ir.DataType.INT32 else np.int64)
        return None if is_known(entry) and not limit.min <= entry <= limit.max else entry
    if output.element_type in _FLOATS:  # counts up to 2^11 are exact in all of them
        return None if is_known(entry) and abs(entry) > 2 * _EXACT else entry
    return entry if output.element_type == ir.DataType.BOOL else None


def _product(left: Dim, right: Dim) -> Dim:
    if left == 0 or right == 0:
        return 0
    for number, other in ((left, right), (right, left)):
        if isinstance(number, Fraction):
            return _quotient(_product(number.numerator, other), number.denominator)
    return times(left, right)


def _quotient(left: Dim, right: Dim) -> Dim:
    """Division without rounding, by a number."""
    if isinstance(right, Fraction):
        return _quotient(_product(left, right.denominator), right.numerator)
    if left is None or not is_known(right) or right == 0:
        return None
    if is_known(left) or isinstance(left, Fraction):
        found = Fraction(left) / right
        return found.numerator if found.denominator == 1 else found
    return combine(operator.truediv, left, right)


def _difference(left: Dim, right: Dim) -> Dim:
    return _sum(left, _product(-1, right))


def _sum(left: Dim, right: Dim) -> Dim:
    if isinstance(left, Fraction) or isinstance(right, Fraction):
        if not all(is_known(dim) or isinstance(dim, Fraction) for dim in (left, right)):
            return None
        return _quotient(left + right, 1)
    return add(left, right)


def _divide(node: Node, output: Tensor) -> Elements | None:
    return _elementwise(
        _quotient if output.element_type in _FLOATS else _divide_integers, node, output
    )


def _divide_integers(left: Dim, right: Dim) -> Dim:
    """Integer division truncates in ONNX; lengths are not negative, so it rounds down as well."""
    if left is None or not is_known(right) or right == 0:
        return None
    if is_known(left):
        return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    if right < 0 or not is_at_least(left, 0):
        return None
    return combine(operator.floordiv, left, right)


def _remainder(left: Dim, right: Dim) -> Dim:
    if not is_known(left) or not is_known(right) or left < 0 or right <= 0:
        return None
    return left % right


def _cast(node: Node, output: Tensor) -> Elements | None:
    is_bool = output.element_type == ir.DataType.BOOL
    return _elementwise(_is_not_zero if is_bool else _truncated(output), node, output)


def _is_not_zero(entry: Dim) -> Dim:
    return None if (equal := _compare(entry, 0)) is None else int(equal != 0)


def _truncated(output: Tensor) -> Callable[[Dim], Dim]:
    return (lambda entry: entry) if output.element_type in _FLOATS else _whole


def _whole(entry: Dim) -> Dim:
    """The whole number towards 0."""
    if isinstance(entry, Fraction):
        return int(entry)
    return _floor(entry) if entry is None or is_known(entry) or is_at_least(entry, 0) else None


def _floor(entry: Dim) -> Dim:
    return (
        entry // 1 if isinstance(entry, (int, Fraction)) else combine(operator.floordiv, entry, 1)
    )


def _ceiling(entry: Dim) -> Dim:
    return _product(-1, _floor(_product(-1, entry)))


def _compare(left: Dim, right: Dim) -> int | None:
    """-1, 0 or 1 as the left one is always less, equal or greater; None where that depends."""
    if left is None or right is None:
        return None
    if all(isinstance(dim, (int, Fraction)) for dim in (left, right)):
        return int(left > right) - int(left < right)
    if isinstance(left, Fraction) or isinstance(right, Fraction):
        return None
    if combine(operator.sub, left, right) == 0:
        return 0
    if is_at_least(left, add(right, 1)):
        return 1
    return -1 if is_at_least(right, add(left, 1)) else None


def _comparison(holds: Callable[[int], bool]) -> Callable[[Dim, Dim], Dim]:
    def rule(left: Dim, right: Dim) -> Dim:
        found = _compare(left, right)
        return None if found is None else int(holds(found))

    return rule


def _and(left: Dim, right: Dim) -> Dim:
    if 0 in (left, right):
        return 0
    return None if left is None or right is None else 1


def _or(left: Dim, right: Dim) -> Dim:
    return _not(_and(_not(left), _not(right)))


def _not(entry: Dim) -> Dim:
    return None if entry is None else int(not entry)


def _where(condition: Dim, left: Dim, right: Dim) -> Dim:
    if condition is None:
        return left if left is not None and _compare(left, right) == 0 else None
    return left if condition else right


def _absolute(entry: Dim) -> Dim:
    if isinstance(entry, (int, Fraction)):
        return abs(entry)
    return entry if entry is not None and is_at_least(entry, 0) else None


def _many(rule: Callable[[Dim, Dim], Dim]) -> Callable[..., Dim]:
    return lambda *entries: reduce(rule, entries)


def _of_two(rule: Callable[[Dim, Dim], Dim]) -> Callable[[Dim, Dim], Dim]:
    """A rule for dimensions where one may be a fraction, which only goes with numbers."""

    def checked(left: Dim, right: Dim) -> Dim:
        if isinstance(left, Fraction) or isinstance(right, Fraction):
            return None
        return rule(left, right)

    return checked


_ELEMENTWISE: Mapping[str, Callable[..., Dim]] = {
    "Abs": _absolute,
    "Add": _sum,
    "And": _and,
    "Ceil": _ceiling,
    "Equal": _comparison(lambda sign: sign == 0),
    "Floor": _floor,
    "Greater": _comparison(lambda sign: sign > 0),
    "GreaterOrEqual": _comparison(lambda sign: sign >= 0),
    "Less": _comparison(lambda sign: sign < 0),
    "LessOrEqual": _comparison(lambda sign: sign <= 0),
    "Max": _many(_of_two(larger)),
    "Min": _many(_of_two(smaller)),
    "Mod": _remainder,
    "Mul": _product,
    "Neg": partial(_product, -1),
    "Not": _not,
    "Or": _or,
    "Sub": _difference,
    "Sum": _many(_sum),
    "Where": _where,
}

_REDUCED: Mapping[str, tuple[Callable[[Dim, Dim], Dim], tuple[Dim, ...]]] = {
    "ReduceMax": (_of_two(larger), ()),
    "ReduceMin": (_of_two(smaller), ()),
    "ReduceProd": (_product, (1,)),
    "ReduceSum": (_sum, (0,)),
}
"""How two elements are reduced to one, and what none are."""


def _reduce(node: Node, output: Tensor) -> Elements | None:
    """One element of all; an output of one element has all axes reduced."""
    elements = node.elements(0)
    rule, empty = _REDUCED[node.proto.op_type]
    if elements is None or output.shape not in ((), (1,)):
        return None
    axes = node.attribute("axes") or node.elements(1)
    if not axes and node.attribute("noop_with_empty_axes", 0):
        return None
    entries = [_exact(entry) if isinstance(entry, float) else entry for entry in elements]
    if not entries and not empty:
        return None
    return (_fitting(reduce(rule, [*empty, *entries]), output),)


def _same(node: Node, _: Tensor) -> Elements | None:
    return node.elements(0)


def _concat(node: Node, _: Tensor) -> Elements | None:
    lists = [node.elements(index) for index in range(len(node.inputs))]
    known = [entries for entries in lists if entries is not None]
    return tuple(chain(*known)) if len(known) == len(lists) else None


def _gather(node: Node, _: Tensor) -> Elements | None:
    entries, places = node.elements(0), node.elements(1)
    if entries is None or places is None:
        return None
    count = len(entries)
    return tuple(
        entries[place] if is_known(place) and -count <= place < count else None for place in places
    )


def _slice(node: Node, _: Tensor) -> Elements | None:
    entries = node.elements(0)
    steps: Elements | None = (1,)
    if node.opset < 10:
        starts, ends = node.attribute("starts"), node.attribute("ends")
    else:
        starts, ends = node.elements(1), node.elements(2)
        steps = node.elements(4) if node.has(4) else steps
    bounds = (starts, ends, steps)
    if entries is None or any(bound is None or len(bound) != 1 for bound in bounds):
        return None
    start, end, step = (bound[0] for bound in bounds if bound is not None)
    if not (is_known(start) and is_known(end) and is_known(step)) or step == 0:
        return None
    if step > 0:
        return entries[start:end:step]
    first, last = start, end  # Python takes what lies before the front for the back
    first = min(first + len(entries) if first < 0 else first, len(entries) - 1)
    last = max(last + len(entries) if last < 0 else last, -1)
    return tuple(entries[place] for place in range(first, last, step) if place >= 0)


def _repeated(node: Node, output: Tensor) -> Elements | None:
    """The elements again and again; how often the length of the output tells."""
    entries = node.elements(0)
    if not entries or not output.shape:
        return entries
    count: int = output.shape[0] // len(entries)
    return entries * count


def _constant_of_shape(node: Node, output: Tensor) -> Elements | None:
    value = node.attribute("value")
    entry = 0.0 if value is None else onnx.numpy_helper.to_array(value).ravel()[0].item()
    exact = _exact(entry) if isinstance(entry, float) else entry
    return (_fitting(exact, output),) * (output.shape[0] if output.shape else 1)


def _range(node: Node, output: Tensor) -> Elements | None:
    bounds = [node.elements(index) for index in range(3)]
    numbers = [bound[0] for bound in bounds if bound and is_known(bound[0])]
    if len(numbers) != len(bounds) or not numbers[2]:
        return None
    found = range(*numbers)
    return tuple(_fitting(entry, output) for entry in found) if len(found) <= MAX_ELEMENTS else None


def _clip(node: Node, output: Tensor) -> Elements | None:
    bounds = [node.elements(index) for index in (1, 2)]
    given = [node.has(index) for index in (1, 2)]
    entries = node.elements(0)
    if entries is None or node.opset < 11 or output.element_type not in _INTEGERS:
        return None
    for bound, is_given, rule in zip(bounds, given, (larger, smaller), strict=True):
        if is_given:
            limit = bound[0] if bound else None
            entries = tuple(rule(entry, limit) for entry in entries)
    return entries


def constant_array(fact: Fact | None) -> np.ndarray[Any, Any] | None:
    """The elements as an array, where every one is a number."""
    known = tensor_of(fact)
    if known.values is None or known.element_type is None or known.shape is None:
        return None
    if not all(isinstance(entry, (int, float)) for entry in known.values):
        return None
    return np.array(known.values, known.element_type.numpy()).reshape(known.shape)


_Rule: TypeAlias = Callable[[Node, Tensor], "Elements | None"]

_RULES: Mapping[str, _Rule] = {
    "Cast": _cast,
    "Clip": _clip,
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "Div": _divide,
    "Gather": _gather,
    "Range": _range,
    "Shape": _shape,
    "Size": _size,
    "Slice": _slice,
    **dict.fromkeys(("Expand", "Tile"), _repeated),
    **dict.fromkeys(("Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"), _same),
    **{name: partial(_elementwise, rule) for name, rule in _ELEMENTWISE.items()},
    **dict.fromkeys(_REDUCED, _reduce),
}
"""How the elements of an output follow, by operator."""
