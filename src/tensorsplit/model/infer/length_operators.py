"""The results of the operators that lengths are calculated with.

Integers of 64 bits wrap around, as on engines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from math import prod
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from tensorsplit.model.graph.tensors import Array

MOST_PARTS = 1 << 14
"""More lengths than this are not calculated again and again."""

MOST_ELEMENTS = 1 << 22
"""Longer lists are not calculated; a few nodes can make some that fill all memory.

It is several times as long as a list that is sampled, as lists are joined.
"""


class StopsError(Exception):
    """The running model stops at a node, on every engine; it would continue with an array."""

    def __init__(self, instead: Array) -> None:
        super().__init__()
        self.instead = instead


class MayStopError(StopsError):
    """The running model stops at a node on some engines; others continue with an array.

    OpenVINO takes 0 for an element that is not there.
    """


class UnknownResultError(Exception):
    """The result of a node differs from engine to engine, or is not known here."""


Inputs: TypeAlias = "list[Any]"

Attributes: TypeAlias = Mapping[str, Any]


def _at(inputs: Inputs, index: int) -> Array | None:
    held: Array | None = inputs[index] if index < len(inputs) else None
    return held


def _check_size(*shapes: tuple[int, ...]) -> None:
    """Leave unknown what has too many elements where arrays of these shapes are broadcast."""
    may_be_large = prod(map(prod, shapes)) > MOST_ELEMENTS  # which takes less time to know
    if may_be_large and prod(np.broadcast_shapes(*shapes)) > MOST_ELEMENTS:
        raise UnknownResultError


def _axes(inputs: Inputs, attributes: Attributes, index: int = 1) -> tuple[int, ...] | None:
    held = _at(inputs, index)
    axes = attributes.get("axes") if held is None else tuple(held.tolist())
    return None if axes is None else tuple(axes)


def _divided(inputs: Inputs, _: Attributes) -> Array:
    left, right = inputs
    _check_size(left.shape, right.shape)
    if not np.all(right):
        raise UnknownResultError  # it ends the process of some engines
    made: Array = np.sign(left) * np.sign(right) * (np.abs(left) // np.abs(right))
    return made


def _gathered(inputs: Inputs, attributes: Attributes) -> Array:
    data, places = inputs
    axis = attributes.get("axis", 0) % data.ndim
    _check_size((*data.shape[:axis], *data.shape[axis + 1 :], places.size))
    inside = (places < data.shape[axis]) & (places >= -data.shape[axis])
    if np.all(inside):
        return np.asarray(np.take(data, places, axis))
    nothing = np.zeros((*data.shape[:axis], 1, *data.shape[axis + 1 :]), data.dtype)
    places = np.where(inside, places % max(data.shape[axis], 1), -1)
    raise MayStopError(np.take(np.concatenate([data, nothing], axis), places, axis))


def _sliced(inputs: Inputs, attributes: Attributes) -> Array:
    data: Array = inputs[0]
    starts, ends = (
        attributes[name] if name in attributes else inputs[at].tolist()
        for at, name in ((1, "starts"), (2, "ends"))
    )
    axes = _axes(inputs, attributes, 3) or tuple(range(len(starts)))
    steps = _at(inputs, 4)
    for start, end, axis, step in zip(
        starts, ends, axes, [1] * len(starts) if steps is None else steps.tolist(), strict=True
    ):
        place = axis % data.ndim
        data = data[(*(slice(None),) * place, slice(start, end, step))]
    return data


def _reshaped(inputs: Inputs, attributes: Attributes) -> Array:
    """Return the value of a Reshape, which every engine refuses from no element to some."""
    data, shape = inputs
    wanted = tuple(shape.tolist())
    if attributes.get("allowzero") or 0 in wanted:
        raise UnknownResultError
    if not data.size and prod(wanted) > 0:
        _check_size(wanted)
        raise StopsError(np.zeros(wanted, np.int64))
    made: Array = data.reshape(wanted)
    return made


def _chosen(inputs: Inputs, _: Attributes) -> Array:
    """Return the value of a choice, which every engine refuses of no element and several."""
    largest = max(inputs, key=np.size)
    if largest.size > 1 and any(not each.size for each in inputs):
        raise StopsError(largest)
    condition, left, right = inputs
    _check_size(condition.shape, left.shape, right.shape)
    return np.asarray(np.where(condition, left, right))


def _expanded(inputs: Inputs, _: Attributes) -> Array:
    data, wanted = inputs[0], tuple(inputs[1].tolist())
    _check_size(data.shape, wanted)
    return np.broadcast_to(data, np.broadcast_shapes(data.shape, wanted)).copy()


def _summed(inputs: Inputs, attributes: Attributes) -> Array:
    axes = _axes(inputs, attributes)
    if axes == () or (axes is None and attributes.get("noop_with_empty_axes")):
        raise UnknownResultError
    keepdims = bool(attributes.get("keepdims", 1))
    return np.asarray(np.sum(inputs[0], axis=axes, keepdims=keepdims, dtype=np.int64))


def _cumulated(inputs: Inputs, attributes: Attributes) -> Array:
    if attributes.get("exclusive") or attributes.get("reverse"):
        raise UnknownResultError
    made: Array = np.cumsum(inputs[0], axis=int(inputs[1]), dtype=np.int64)
    return made


def _ranged(inputs: Inputs, _: Attributes) -> Array:
    start, limit, step = map(int, inputs)
    numbers = range(start, limit, step)
    if len(numbers) > MOST_PARTS:
        raise UnknownResultError
    return np.array(numbers, np.int64)


def _cast(inputs: Inputs, attributes: Attributes) -> Array:
    kind = {ir.DataType.INT64: np.int64, ir.DataType.BOOL: np.bool_}.get(attributes["to"])
    if kind is None:
        raise UnknownResultError
    made: Array = inputs[0].astype(kind)
    return made


def _many(function: Callable[[Array, Array], Array]) -> Callable[[Inputs, Attributes], Array]:
    pair = _plainly(function)
    return lambda inputs, attributes: reduce(lambda *both: pair([*both], attributes), inputs)


def _plainly(function: Callable[..., Array]) -> Callable[[Inputs, Attributes], Array]:
    def apply(inputs: Inputs, _: Attributes) -> Array:
        _check_size(*(each.shape for each in inputs))
        return function(*inputs)

    return apply


OPERATORS: Mapping[str, Callable[[Inputs, Attributes], Array]] = {
    "Add": _plainly(np.add),
    "And": _plainly(np.logical_and),
    "Cast": _cast,
    "Concat": lambda inputs, attributes: np.concatenate(inputs, attributes["axis"]),
    "CumSum": _cumulated,
    "Div": _divided,
    "Equal": _plainly(np.equal),
    "Expand": _expanded,
    "Gather": _gathered,
    "Greater": _plainly(np.greater),
    "GreaterOrEqual": _plainly(np.greater_equal),
    "Identity": lambda inputs, _: inputs[0],
    "Less": _plainly(np.less),
    "LessOrEqual": _plainly(np.less_equal),
    "Max": _many(np.maximum),
    "Min": _many(np.minimum),
    "Mul": _plainly(np.multiply),
    "Neg": _plainly(np.negative),
    "Not": _plainly(np.logical_not),
    "Or": _plainly(np.logical_or),
    "Range": _ranged,
    "ReduceSum": _summed,
    "Reshape": _reshaped,
    "Shape": lambda inputs, attributes: np.array(
        inputs[0].shape[attributes.get("start") : attributes.get("end")], np.int64
    ),
    "Slice": _sliced,
    "Squeeze": lambda inputs, attributes: np.squeeze(inputs[0], _axes(inputs, attributes)),
    "Sub": _plainly(np.subtract),
    "Sum": _many(np.add),
    "Unsqueeze": lambda inputs, attributes: np.expand_dims(
        inputs[0], _axes(inputs, attributes) or ()
    ),
    "Where": _chosen,
}
"""What the operators do that lengths are calculated with: int64 wraps around, as on engines."""
