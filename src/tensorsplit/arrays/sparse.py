"""Splitting sparse arrays and matrices of SciPy in the two formats that slice: CSR and CSC."""

from __future__ import annotations

import sys

from tensorsplit.arrays import numpy as numpy_arrays
from tensorsplit.arrays.typed import Array
from tensorsplit.core.dimensions import Shape
from tensorsplit.core.errors import NOT_AN_ARRAY, OPERAND_TYPE, OPERAND_VALUE, SplitError
from tensorsplit.core.plan import SplitPlan

unknown: str | None = None
"""Shapes are known."""

element_type = numpy_arrays.element_type


def is_array(value: object) -> bool:
    """Return whether the value is a sparse array or matrix."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(value))


def check(array: Array) -> None:
    """Refuse other formats, and arrays that are not 2-D (TS204)."""
    if array.format not in ("csr", "csc") or array.ndim != 2:
        problem = f"it is a sparse array of the format {array.format} and rank {array.ndim}"
        fix = "pass its `tocsr()` or `toarray()`" if array.ndim == 2 else "pass its `toarray()`"
        raise SplitError(NOT_AN_ARRAY, problem, fix)


def shape(array: Array) -> Shape:
    """Return the shape."""
    return tuple(map(int, array.shape))


def operand_parts(value: Array, name: str) -> tuple[tuple[float, ...], int, str]:
    """Refuse lengths in a sparse array (TS105)."""
    problem = f"it is of type {type(value).__name__}"
    raise SplitError(OPERAND_TYPE, problem, "pass its `toarray()`", parameter=name)


def views(array: Array, plan: SplitPlan) -> list[Array]:
    """Return the parts in the same format, as SciPy slices; none drops the axis (TS107)."""
    _check_axis_kept(plan)
    return [array[index] for index in plan.indices]


def copies(array: Array, plan: SplitPlan) -> list[Array]:
    """Return the parts as new arrays of the same format."""
    return [part.copy() for part in views(array, plan)]


def kind(array: Array) -> tuple[object, ...]:
    """Return the element type, and the format."""
    return array.dtype, array.format


def joined(parts: list[Array], plan: SplitPlan) -> Array:
    """Return the parts as one new array of the same format."""
    _check_axis_kept(plan)
    sparse = sys.modules["scipy.sparse"]
    stack = sparse.hstack if plan.axis else sparse.vstack
    return stack(parts, format=parts[0].format, dtype=parts[0].dtype)


def _check_axis_kept(plan: SplitPlan) -> None:
    if not plan.keepdims:
        problem, fix = "sparse arrays are 2-D", "keep the axis (keepdims=1)"
        raise SplitError(OPERAND_VALUE, problem, fix, operator=plan.operator, parameter="keepdims")
