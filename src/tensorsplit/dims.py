"""Dimensions: integers, symbolic expressions, or None where nothing is known.

Symbolic dimensions are onnx-ir's (SymPy underneath). Neither is imported until a name takes part
in arithmetic, so that shapes made of integers cost nothing.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from tensorsplit.errors import BAD_SHAPE, SplitError

Dim: TypeAlias = Any
"""``int``, ``str`` (a name), ``onnx_ir.SymbolicDim``, a SymPy expression, or None for unknown."""

Shape: TypeAlias = tuple[Dim, ...]


def as_shape(shape: Iterable[object]) -> Shape:
    """Check a shape and normalise its dimensions.

    Args:
        shape: Dimensions in order; integers must be >= 0.

    Returns:
        A tuple in which every known dimension is a Python ``int`` and every unknown one None.

    Raises:
        SplitError: TS205 for something that is not a shape.
    """
    if isinstance(shape, (str, bytes)):
        raise _bad_shape(shape)
    try:
        items = tuple(shape)
    except TypeError:
        raise _bad_shape(shape) from None
    return tuple(_as_dim(item, items) for item in items)


def _as_dim(item: object, shape: Shape) -> Dim:
    if type(item) is int:
        dim = item
    elif item is None or (isinstance(item, str) and item):
        return item
    elif is_expression(item):
        return _simplest(item)
    elif isinstance(item, bool) or not hasattr(item, "__index__"):
        raise _bad_shape(shape)
    else:
        dim = operator.index(item)
    if not 0 <= dim < 1 << 63:
        raise _bad_shape(shape)
    return dim


def _bad_shape(shape: object) -> SplitError:
    return SplitError(
        BAD_SHAPE,
        f"{_text(shape)} is no shape",
        "give a sequence of dimensions: integers from 0 to 2^63-1, names, expressions, or None",
        parameter="shape",
    )


def _text(shape: object) -> str:
    try:
        return repr(shape)
    except ValueError:  # an integer of more digits than Python prints
        return "what was given"


def is_expression(item: object) -> bool:
    """Whether ``item`` is an onnx-ir or SymPy dimension; imports neither."""
    onnx_ir, sympy = sys.modules.get("onnx_ir"), sys.modules.get("sympy")
    return (onnx_ir is not None and isinstance(item, onnx_ir.SymbolicDim)) or (
        sympy is not None and isinstance(item, sympy.Expr)
    )


def is_known(dim: Dim) -> bool:
    """Whether the dimension is a number."""
    return type(dim) is int


def compute(rule: Callable[[Dim], Dim], dim: Dim) -> Dim:
    """Apply arithmetic written with ``+ - * //`` to a dimension of any kind.

    Args:
        rule: A function of the dimension.
        dim: The dimension.

    Returns:
        An ``int`` if the result is a number, None if ``dim`` is unknown, else an expression of
        the kind that came in (a name becomes an ``onnx_ir.SymbolicDim``).
    """
    if dim is None:
        return None
    return _simplest(rule(_symbol(dim) if isinstance(dim, str) else dim))


def _symbol(name: str) -> Dim:
    import onnx_ir
    import sympy

    dim = onnx_ir.SymbolicDim(name)
    try:
        dim + 0
    except ValueError:  # not an expression, such as "/x/y_dim_0": an opaque symbol
        return onnx_ir.SymbolicDim(sympy.Symbol(name, integer=True))
    return dim


def _simplest(dim: Dim) -> Dim:
    """A number as ``int``, an unknown as None, everything else as it is."""
    if type(dim) is int:
        return dim
    value = getattr(dim, "value", dim)
    if value is None:
        return None
    if isinstance(value, str):
        return int(value) if value.lstrip("-").isdigit() else dim
    return int(dim) if dim.is_Integer else dim
