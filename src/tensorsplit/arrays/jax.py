"""Splitting arrays of JAX, traced ones too."""

from __future__ import annotations

from typing import Any, TypeAlias

import jax
from jax import lax

from tensorsplit.arrays.buffers import refuse_out
from tensorsplit.arrays.numpy import check_few, standard_name
from tensorsplit.core.dimensions import Shape
from tensorsplit.core.errors import OPERAND_TYPE, SplitError
from tensorsplit.core.plan import SplitPlan

Array: TypeAlias = Any

unknown = "export with constraints that settle it, such as 'b >= 2' or 'mod(b, 3) == 0'"
pooled = copies_into = refuse_out


def is_array(value: object) -> bool:
    """Return whether the value is an array, or a tracer that stands for one."""
    return isinstance(value, jax.Array)


def check(array: Array) -> None:
    """Accept every array of JAX."""


def element_type(array: Array) -> str:
    """Return the name of the element type, as in the schemas of ONNX; JAX's for keys."""
    return standard_name(array.dtype.name)


def shape(array: Array) -> Shape:
    """Return the shape; under `jax.export`, dimensions may be symbolic."""
    return tuple(array.shape)


def operand_parts(value: Array, name: str) -> tuple[tuple[Any, ...], int, str]:
    """Return the elements in order as Python numbers, the rank, and the element type."""
    check_few(value.size, name)
    element = element_type(value)
    if isinstance(value, jax.core.Tracer) or jax.dtypes.issubdtype(
        value.dtype, jax.dtypes.extended
    ):
        kind = "traced" if isinstance(value, jax.core.Tracer) else f"of type {element}"
        raise SplitError(
            OPERAND_TYPE,
            f"it is {kind}, and no numbers are known of it",
            "give integers, or a static argument (`static_argnums`)",
            parameter=name,
        )
    return tuple(value.ravel().tolist()), value.ndim, element


def views(array: Array, plan: SplitPlan) -> list[Array]:
    """Return the parts as arrays of their own, as JAX has no views."""
    if not plan.sizes:
        return []
    parts = lax.split(array, plan.sizes, plan.axis)
    return list(parts) if plan.keepdims else [lax.squeeze(part, (plan.axis,)) for part in parts]


copies = views
