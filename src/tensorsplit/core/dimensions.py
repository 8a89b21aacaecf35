"""Dimensions: integers, symbolic expressions, or None where nothing is known.

Symbolic dimensions are onnx-ir's (SymPy underneath). Neither is imported until a name takes part
in arithmetic, so that shapes made of integers cost nothing.
"""

from __future__ import annotations

import operator
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Set
from itertools import islice
from typing import Any, TypeAlias

from tensorsplit.core.errors import BAD_SHAPE, SplitError, show

Dim: TypeAlias = Any
"""``int``, ``str`` (a name), ``onnx_ir.SymbolicDim``, a SymPy expression, or None for unknown."""

Shape: TypeAlias = tuple[Dim, ...]

MAX_DIM = (1 << 63) - 1
"""No dimension is longer; ONNX and OpenVINO have them as int64."""

_INT = frozenset({int})
_MAX_RANK = 4096
_MAX_EXPRESSION = 200
_NUMBER = re.compile("-?[0-9]{1,40}")


def as_shape(shape: Iterable[object]) -> Shape:
    """A checked shape, in which known dimensions are ``int`` and unknown ones None (TS205)."""
    if isinstance(shape, (str, bytes, bytearray, Mapping, Set)):
        raise _bad_shape(shape)
    try:
        items = tuple(islice(shape, _MAX_RANK + 1))
    except Exception:  # noqa: BLE001 - someone else's iteration may raise anything
        raise _bad_shape(shape) from None
    if len(items) > _MAX_RANK:
        raise _bad_shape(shape)
    return tuple(_as_dim(item, items) for item in items)


def _as_dim(item: object, shape: Shape) -> Dim:
    dim: Dim
    if item is None:
        return None
    if isinstance(item, str) and item:
        dim = _simplest(str.__str__(item))
    elif is_expression(item):
        dim = _simplest(item)
        if dim is None:
            return None
    else:
        dim = as_index(item)
    is_other_number = not isinstance(dim, str) and getattr(dim, "is_number", False)  # as infinity
    if dim is None or (is_known(dim) and not 0 <= dim <= MAX_DIM) or is_other_number:
        raise _bad_shape(shape)
    return dim


def as_index(value: object) -> int | None:
    """An integer of any kind as ``int``; None for what is no integer, as booleans are not."""
    if isinstance(value, bool):
        return None
    try:
        return int(operator.index(value))  # type: ignore[arg-type]  # it refuses what has no __index__
    except Exception:  # noqa: BLE001 - someone else's __index__ may raise anything
        return None


def _bad_shape(shape: object) -> SplitError:
    return SplitError(
        BAD_SHAPE,
        f"{show(shape)} is no shape",
        "give a sequence of dimensions: integers from 0 to 2^63-1, names, expressions, or None",
        parameter="shape",
    )


def is_expression(item: object) -> bool:
    """Whether ``item`` is an onnx-ir or SymPy dimension; imports neither."""
    return _is_symbolic_dim(item) or isinstance(item, getattr(sys.modules.get("sympy"), "Expr", ()))


def _is_symbolic_dim(item: object) -> bool:
    return isinstance(item, getattr(sys.modules.get("onnx_ir"), "SymbolicDim", ()))


def is_known(dim: Dim) -> bool:
    """Whether the dimension is a number."""
    return type(dim) is int


def are_known(dims: Iterable[Dim]) -> bool:
    """Whether all dimensions are numbers."""
    return _INT.issuperset(map(type, dims))


def combine(rule: Callable[[Dim, Dim], Dim], left: Dim, right: Dim) -> Dim:
    """Apply arithmetic written with ``+ - * //``, which divides by numbers only, to two dimensions.

    The result is an ``int`` if it is a number, None if a dimension is unknown, else an expression
    of the kind that came in (a name becomes an ``onnx_ir.SymbolicDim``).
    """
    if left is None or right is None:
        return None
    if is_known(left) and is_known(right):
        return rule(left, right)
    pair = [_symbol(d) if isinstance(d, str) or _is_symbolic_dim(d) else d for d in (left, right)]
    if any(map(_is_symbolic_dim, pair)):
        import onnx_ir

        pair = [d if is_known(d) or _is_symbolic_dim(d) else onnx_ir.SymbolicDim(d) for d in pair]
    return _simplest(rule(*pair))


def add(left: Dim, right: Dim) -> Dim:
    """The sum of two dimensions of any kind; None if either is unknown."""
    return combine(operator.add, left, right)


def times(left: Dim, right: Dim) -> Dim:
    """The product of two dimensions of any kind; None if either is unknown."""
    return combine(operator.mul, left, right)


def _symbol(dim: Dim) -> Dim:
    """A name as something to calculate with; opaque if its text is not a usable expression."""
    import onnx_ir
    import sympy

    text = dim if isinstance(dim, str) else dim.value
    if len(text) <= _MAX_EXPRESSION and "**" not in text:  # 9**9**9 would take for ever
        symbol = onnx_ir.SymbolicDim(dim) if isinstance(dim, str) else dim
        try:
            if symbol.free_symbols():
                return symbol
        except Exception:  # noqa: BLE001, S110 - any text may be a name, such as "/x/y_dim_0"
            pass
    return onnx_ir.SymbolicDim(sympy.Symbol(text, integer=True))


def _simplest(dim: Dim) -> Dim:
    """A number as ``int``, an unknown as None, everything else as it is."""
    if type(dim) is int:
        return dim
    value = getattr(dim, "value", dim)
    if value is None:
        return None
    if isinstance(value, str):
        return int(value) if _NUMBER.fullmatch(value) else dim
    return int(dim) if dim.is_Integer else dim
