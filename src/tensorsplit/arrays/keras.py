"""Splitting the symbolic tensors of Keras 3, of which functional models are made."""

from __future__ import annotations

from keras import KerasTensor, ops

from tensorsplit.arrays.numpy import standard_name
from tensorsplit.arrays.typed import Array
from tensorsplit.core.dimensions import Shape
from tensorsplit.core.errors import NOT_AN_ARRAY, OPERAND_TYPE, SplitError
from tensorsplit.core.plan import SplitPlan, offsets_of

unknown = "give the dimension in `keras.Input`, or split where it is known"


def is_array(value: object) -> bool:
    """Return whether the value is a symbolic tensor; eager ones are those of Keras's backend."""
    return isinstance(value, KerasTensor)


def check(array: Array) -> bool:
    """Refuse sparse and ragged tensors (TS204); returns True, for both are of the same class."""
    for kind in ("sparse", "ragged"):
        if getattr(array, kind, False):
            problem, fix = f"the tensor is {kind}", "split a dense one"
            raise SplitError(NOT_AN_ARRAY, problem, fix)
    return True


def element_type(array: Array) -> str:
    """Return the name of the element type, as in the schemas of ONNX."""
    return standard_name(array.dtype)


def shape(array: Array) -> Shape:
    """Return the shape, with None for what is not known before the model runs."""
    return tuple(array.shape)


def operand_parts(value: Array, name: str) -> tuple[tuple[float, ...], int, str]:
    """Refuse operands that the model calculates (TS105)."""
    problem = f"it is symbolic, of shape {value.shape}, and no numbers are known of it"
    raise SplitError(OPERAND_TYPE, problem, "give integers", parameter=name)


def views(array: Array, plan: SplitPlan) -> list[Array]:
    """Return the outputs of one operation ``split``; a dropped axis is squeezed out of each."""
    if len(plan.sizes) <= 1:
        parts = [array] * len(plan.sizes)
    else:
        parts = ops.split(array, list(offsets_of(plan)[1:]), axis=plan.axis)
    return parts if plan.keepdims else [ops.squeeze(part, plan.axis) for part in parts]


copies = views


def kind(array: Array) -> tuple[object, ...]:
    """Return the element type."""
    return (array.dtype,)


def joined(parts: list[Array], plan: SplitPlan) -> Array:
    """Return the output of one ``concatenate``, or ``stack`` where an axis was dropped."""
    join = ops.concatenate if plan.keepdims else ops.stack
    return join(parts, axis=plan.axis)
