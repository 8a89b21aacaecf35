"""Arithmetic of lengths in an OpenVINO model that is being made."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import openvino
from openvino import opset8 as ops

Value: TypeAlias = Any
"""An ``openvino.Output``."""


class Length:
    """An integer that only the running model knows; the length rules calculate with it.

    Attributes:
        value: What holds it: int64 of shape [1].
    """

    is_Integer = False  # noqa: N815 - by this name `dims.compute` asks whether it is a number

    def __init__(self, value: Value) -> None:
        self.tensor = value

    def __add__(self, other: Number) -> Length:
        return Length(ops.add(self.tensor, tensor(other)).output(0))

    def __sub__(self, other: Number) -> Length:
        return Length(ops.subtract(self.tensor, tensor(other)).output(0))

    def __mul__(self, other: Number) -> Length:
        return Length(ops.multiply(self.tensor, tensor(other)).output(0))

    def __neg__(self) -> Length:
        return Length(ops.subtract(tensor(0), self.tensor).output(0))

    def __floordiv__(self, other: Number) -> Length:
        """The quotient by a number > 0, rounded down.

        OpenVINO's CPU plugin rounds towards 0, though the operator's page says otherwise.
        """
        quotient = Length(ops.divide(self.tensor, tensor(other)).output(0))
        rest = self - quotient * other
        return quotient - choose(less(rest, 0), 1, 0)


Number: TypeAlias = "int | Length"


def constant(values: int | Iterable[int]) -> Value:
    """Integers as int64: one of rank 0, or a list."""
    held = values if isinstance(values, int) else list(values)
    return ops.constant(np.array(held, np.int64)).output(0)


def tensor(number: Number) -> Value:
    """A number as int64 of shape [1]."""
    return constant([number]) if isinstance(number, int) else number.tensor


def scalar(number: Number) -> Value:
    """A number as int64 of rank 0."""
    if isinstance(number, int):
        return constant(number)
    return ops.squeeze(number.tensor, constant([0])).output(0)


def number(value: Value) -> Length:
    """A value of any shape that holds one integer."""
    return Length(ops.reshape(as_int64(value), constant([1]), False).output(0))


def as_int64(value: Value) -> Value:
    """Integers of any type as int64."""
    if value.get_element_type() == openvino.Type.i64:
        return value
    return ops.convert(value, "i64").output(0)


def listed(numbers: Iterable[Number]) -> Value:
    """Numbers as a list."""
    entries = list(numbers)
    known = [entry for entry in entries if isinstance(entry, int)]
    if len(known) == len(entries):
        return constant(known)
    return ops.concat([tensor(entry) for entry in entries], 0).output(0)


def dimension(data: Value, axis: Value) -> Length:
    """The dimension that an axis, given as a value, has at run time."""
    shape = ops.shape_of(data, "i64")
    return number(ops.gather(shape, axis, constant(0)).output(0))


def less(left: Number, right: Number) -> Value:
    """Whether a number is less than another one."""
    return ops.less(tensor(left), tensor(right)).output(0)


def choose(condition: Value, yes: Number, no: Number) -> Length:
    """One of two numbers."""
    return Length(ops.select(condition, tensor(yes), tensor(no)).output(0))


def not_below_zero(lengths: Value) -> Value:
    """Lengths with 0 in the place of negative ones.

    That makes their sum wrong, which OpenVINO refuses. A negative length it takes for a remainder
    and reads outside of the data (D7).
    """
    return ops.maximum(lengths, constant(0)).output(0)


def total(lengths: Value) -> Length:
    """The sum of a list."""
    return Length(ops.reduce_sum(lengths, constant([0]), True).output(0))


def guarded(value: Length, condition: Value) -> Length:
    """The number if a condition holds; if not, the running model stops here.

    Nothing is taken then, and an empty tensor can't be reshaped to one element.
    """
    kept = choose(condition, 1, 0)
    taken = ops.slice(value.tensor, constant([0]), kept.tensor, constant([1]))
    return Length(ops.reshape(taken, constant([1]), False).output(0))


def position(index: Number, count: Number) -> Length:
    """A position counted from the front; the running model stops if it is out of range (D19)."""
    given = index if isinstance(index, Length) else Length(tensor(index))
    found = choose(less(given, 0), given + count, given)
    inside = ops.logical_and(ops.logical_not(less(found, 0)), less(found, count))
    return guarded(found, inside.output(0))


def piece(data: Value, start: Number, end: Number, axis: Value) -> Value:
    """The elements from one position to below another along an axis.

    Strings are taken one by one: OpenVINO cuts them wrongly (D17).
    """
    if data.get_element_type() == openvino.Type.string:
        indices = ops.range(scalar(start), scalar(end), constant(1), "i64")
        return ops.gather(data, indices, axis).output(0)
    bounds = [tensor(start), tensor(end), constant([1])]
    return ops.slice(data, *bounds, ops.reshape(axis, constant([1]), False)).output(0)


def itself(value: Value) -> Value:
    """A tensor as the output of another node, for the import renames what a conversion returns."""
    return ops.concat([value], 0).output(0)
