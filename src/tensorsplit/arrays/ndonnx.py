"""Splitting arrays of ndonnx and variables of Spox: a node Split of the model that they build."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
import spox
from spox.opset.ai.onnx import v18

from tensorsplit.arrays import numpy as numpy_arrays
from tensorsplit.arrays.typed import Array
from tensorsplit.core.dimensions import Shape, as_shape
from tensorsplit.core.emit import check_concat, emit_split
from tensorsplit.core.errors import NOT_AN_ARRAY, OPERAND_TYPE, SplitError
from tensorsplit.core.plan import SplitPlan

unknown: str | None = None
"""A node decides when it runs."""

_OPSET = 18


def is_array(value: object) -> bool:
    """Return whether the value is an array of ndonnx, or a variable."""
    return isinstance(value, spox.Var) or _is_ndonnx(value)


def _is_ndonnx(value: object) -> bool:
    return isinstance(value, getattr(sys.modules.get("ndonnx"), "Array", ()))


def check(array: Array) -> None:
    """Refuse anything but one tensor of a known rank (TS204)."""
    try:
        kind = _variable(array).type
    except TypeError:
        fix = "split each part of its `disassemble()`"
        problem = f"arrays of {array.dtype} are not one tensor of the same element type"
        raise SplitError(NOT_AN_ARRAY, problem, fix) from None
    if not isinstance(kind, spox.Tensor) or kind.shape is None:
        raise SplitError(
            NOT_AN_ARRAY, "it is not known to be a tensor of some rank", "call `split` of Spox"
        )


def _variable(array: Array) -> Any:
    """Return the variable of Spox that an array of ndonnx holds; others are one."""
    return array.unwrap_spox() if _is_ndonnx(array) else array


def element_type(array: Array) -> str:
    """Return the name of the element type, as in the schemas of ONNX."""
    return numpy_arrays.element_type(_variable(array).type)


def shape(array: Array) -> Shape:
    """Return the shape, with its names."""
    return as_shape(_variable(array).type.shape)


def operand_parts(value: Array, name: str) -> tuple[tuple[float, ...], int, str]:
    """Return the elements of a constant in order as Python numbers, the rank, the element type."""
    try:
        known = value.unwrap_numpy()
    except (AttributeError, ValueError):
        raise SplitError(
            OPERAND_TYPE,
            "it is a value that the model calculates",
            "give integers, or call `split` of Spox",
            parameter=name,
        ) from None
    return numpy_arrays.operand_parts(known, name)


def views(array: Array, plan: Any) -> list[Array]:
    """Return the outputs of one equal node Split (TS310); a dropped axis is squeezed out."""
    if not plan.sizes:
        return []
    dim = plan.input_shape[plan.axis]
    attributes, lengths = emit_split(plan.intent, _OPSET, dim, element_type(array))
    given = None if lengths is None else v18.const(np.array(lengths, np.int64))
    parts: Iterable[Any] = v18.split(_variable(array), given, axis=plan.axis, **attributes)
    if not plan.keepdims:
        axes = v18.const(np.array([plan.axis], np.int64))
        parts = [v18.squeeze(part, axes) for part in parts]
    if not _is_ndonnx(array):
        return list(parts)
    return list(map(sys.modules["ndonnx"].asarray, parts))


copies = views


def kind(array: Array) -> tuple[object, ...]:
    """Return the element type."""
    return (_variable(array).type.dtype,)


def joined(parts: list[Array], plan: SplitPlan) -> Array:
    """Return the output of one node Concat (TS310); a node Unsqueeze gives a dropped axis back."""
    check_concat(_OPSET, element_type(parts[0]), plan.operator)
    inputs = list(map(_variable, parts))
    if not plan.keepdims:
        axes = v18.const(np.array([plan.axis], np.int64))
        inputs = [v18.unsqueeze(each, axes) for each in inputs]
    whole = v18.concat(inputs, axis=plan.axis)
    return sys.modules["ndonnx"].asarray(whole) if _is_ndonnx(parts[0]) else whole
