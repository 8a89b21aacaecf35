"""Dimensions: integers, symbolic expressions, or None where nothing is known.

Symbolic dimensions are onnx-ir's (SymPy underneath), or of a library that traces arrays, which then
does the arithmetic and decides what holds. None is imported until a name takes part in arithmetic,
so that shapes made of integers cost nothing.
"""

from __future__ import annotations

import operator
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from math import floor, prod
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard

from tensorsplit.core.errors import BAD_SHAPE, SplitError, printable, short_name, show, show_int
from tensorsplit.core.extras import needs
from tensorsplit.core.given import as_string, is_a

if TYPE_CHECKING:
    import onnx_ir as ir
    from typing_extensions import TypeIs


class _Calculates(Protocol):
    def __add__(self, other: int, /) -> object: ...
    def __sub__(self, other: int, /) -> object: ...
    def __mul__(self, other: int, /) -> object: ...
    def __floordiv__(self, other: int, /) -> object: ...


class Expression(_Calculates, Protocol):
    """A dimension made of names: ``onnx_ir.SymbolicDim``, or an expression of SymPy."""

    @property
    def free_symbols(self) -> object:
        """The names in it."""


class Traced(_Calculates, Protocol):
    """A number of a library that traces: ``torch.SymInt``, or a dimension of ``jax.export``.

    Among the elements of a tensor fractions are such numbers too.
    """

    def __ge__(self, other: int, /) -> object: ...


Dim: TypeAlias = int | str | Expression | Traced | None
"""A number, a name, an expression, a number of a trace, or None for unknown."""

Shape: TypeAlias = tuple[Dim, ...]

MAX_DIM = (1 << 63) - 1
"""No dimension is longer; ONNX and OpenVINO have them as int64."""

_INT = frozenset({int})
_MAX_RANK = 4096
_MAX_EXPRESSION = 200
"""A longer expression gets a name of its own, so that lengths of lengths of ... stay short."""
_FEW = 8
_TRACED = (("torch", "SymInt"),)
"""The types of the numbers of libraries that trace; they may refuse to be hashed."""
_NUMBER = re.compile("-?[0-9]{1,40}")
_FLOOR = re.compile(r"((?:^|(?<=\()|(?<=, ))-?| [-+] )((?:[\w.]+\*)*)floor\(")
_FLIPPED = {"": "-", "-": "", " + ": " - ", " - ": " + "}
_SYMPY_FUNCTION = re.compile(r"\b(Max|Min)(?=\()")
_IDENTIFIER = re.compile(r"([^\W\d][\w.]*)(\s*\()?")
_EXPRESSION_NAME = re.compile("dim_[0-9a-f]{12}")
"""The names that stand for expressions, which may be below 0 where they are not dimensions."""
_MOST_SHOWN = 12


def as_shape(shape: Iterable[object]) -> Shape:
    """Check a shape; known dimensions become ``int`` and unknown ones None (TS205)."""
    if is_a(shape, (str, bytes, bytearray, Mapping, Set)):
        raise _bad_shape(shape)
    try:
        items = tuple(islice(shape, _MAX_RANK + 1))
    except Exception:  # noqa: BLE001 - someone else's iteration may raise anything
        raise _bad_shape(shape) from None
    if len(items) > _MAX_RANK:
        raise _bad_shape(shape)
    return tuple(_as_dim(item, items) for item in items)


def _as_dim(item: object, shape: tuple[object, ...]) -> Dim:
    dim: Dim
    if item is None:
        return None
    if name := as_string(item):
        dim = _simplest(name)
    elif is_traced(item):
        return item
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
    """Return an integer of any kind as ``int``; None for anything else, booleans too."""
    if is_a(value, bool):
        return None
    try:
        return int(operator.index(value))  # type: ignore[arg-type]  # it refuses what has no __index__
    except Exception:  # noqa: BLE001 - someone else's __index__ may raise anything
        return None


def _bad_shape(shape: object) -> SplitError:
    return SplitError(
        BAD_SHAPE,
        f"{show(shape)} is not a shape",
        "give a sequence of dimensions: integers from 0 to 2^63-1, names, expressions, or None",
        parameter="shape",
    )


def is_traced(item: object) -> TypeGuard[Traced]:
    """Return whether it stands for a number that a library knows when it runs; imports none."""
    return any(is_a(item, getattr(sys.modules.get(m), n, ())) for m, n in _TRACED)


def decide(condition: object) -> bool | None:
    """Return whether a condition on traced numbers holds; None where the library leaves it open.

    The library may then trace for numbers alone of which the same is true.
    """
    try:
        return bool(condition)
    except Exception:  # noqa: BLE001 - each library has an exception of its own
        return None


def is_expression(item: object) -> TypeGuard[Expression | Traced]:
    """Return whether ``item`` is a dimension of onnx-ir, SymPy or JAX; imports none of them."""
    is_sympy = is_a(item, getattr(sys.modules.get("sympy"), "Expr", ()))
    return is_sympy or _is_symbolic_dim(item) or _is_exported(item)


def is_symbolic(item: object) -> bool:
    """Return whether it is a number of a library that traces arrays; imports none."""
    return is_traced(item) or _is_exported(item)


def _is_exported(item: object) -> TypeGuard[Traced]:
    """Return whether it is a dimension of `jax.export`, which knows its caller's constraints."""
    export = sys.modules.get("jax.export")
    return export is not None and bool(export.is_symbolic_dim(item))


def _is_symbolic_dim(item: object) -> TypeGuard[ir.SymbolicDim]:
    return is_a(item, getattr(sys.modules.get("onnx_ir"), "SymbolicDim", ()))


def is_known(dim: object) -> TypeIs[int]:
    """Return whether the dimension is a number."""
    return type(dim) is int


def are_known(dims: Iterable[object]) -> TypeGuard[tuple[int, ...]]:
    """Return whether all dimensions are numbers."""
    return _INT.issuperset(map(type, dims))


def may_be_same(one: Shape | None, other: Shape | None) -> bool:
    """Return whether two shapes may be the same, as far as they are known."""
    if one is None or other is None:
        return True
    pairs = zip(one, other, strict=False)
    differ = any(is_known(a) and is_known(b) and a != b for a, b in pairs)
    return len(one) == len(other) and not differ


def same_shape(one: Shape | None, other: Shape | None) -> bool:
    """Return whether two shapes are surely the same."""
    if one is None or other is None or len(one) != len(other) or None in (*one, *other):
        return False
    return list(map(str, one)) == list(map(str, other))


def show_dim(dim: Dim) -> str:
    """Return a dimension for a reader: ``ceil(N/3)`` where the arithmetic has ``-floor(-N/3)``.

    A name that is longer than an expression gets stays as it is.
    """
    if dim is None:
        return "?"
    if is_known(dim):
        return show_int(dim)
    text = text_of(dim)
    return printable(_with_ceil(text) if len(text) <= _MAX_EXPRESSION else text)


def text_of(dim: Dim) -> str:
    """Return a dimension as a model has it: ``max(0, N)`` where SymPy writes ``Max(0, N)``."""
    text = str(getattr(dim, "value", dim))
    return _SYMPY_FUNCTION.sub(lambda found: found[0].lower(), text)


def _with_ceil(text: str) -> str:
    """Write ``floor`` of what is below 0 as ``ceil``, from the inside outwards."""
    for found in reversed(list(_FLOOR.finditer(text))):  # the last one has none inside
        (sign, factor), end = found.groups(), _closing(text, found.end())
        terms = _terms(text[found.end() : end])
        signs = {sign for sign, term in terms if re.search("[^\\W\\d]", term)}
        is_below = signs == {"-"} or ("-" in sign and "-" in signs)
        if is_below and not text.startswith(")**", end):
            flipped = [("", term) for sign, term in terms if sign]
            flipped += [("-", term) for sign, term in terms if not sign]
            inside = "".join(
                f"{' - ' if sign else ' + '}{term}" if at else f"{sign}{term}"
                for at, (sign, term) in enumerate(flipped)
            )
            start = text[: found.start()]
            text = f"{start}{_FLIPPED[sign]}{factor}ceil({inside}{text[end:]}"
    return text


def _closing(text: str, start: int) -> int:
    """Return where the parenthesis ends that begins before a place."""
    depth = 1
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if not depth:
            return at
    return len(text)


def _terms(text: str) -> list[tuple[str, str]]:
    """Return the terms of a sum, each after its sign: "-", or nothing."""
    found, depth, start = [], 0, 0
    sign = "-" if text.startswith("-") else ""
    for at in range(len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if not depth and text[at : at + 3] in (" + ", " - "):
            found.append((sign, text[start:at].removeprefix("-")))
            sign, start = text[at + 1].replace("+", ""), at + 3
    return [*found, (sign, text[start:].removeprefix("-"))]


def show_shape(shape: Iterable[Dim] | None) -> str:
    """Format a shape, with ``?`` for a dimension that is not known; of a long one the beginning."""
    if shape is None:
        return "unknown"
    dims = [short_name(show_dim(dim)) for dim in islice(shape, _MOST_SHOWN + 1)]
    dims = [*dims[:_MOST_SHOWN], "..."] if len(dims) > _MOST_SHOWN else dims
    return f"({', '.join(dims)}{',' if len(dims) == 1 else ''})"


def combine(rule: Callable[..., Dim], left: Dim, right: Dim) -> Dim:
    """Apply arithmetic written with ``+ - * //``, which divides by numbers only, to two dimensions.

    The result is an ``int`` if it is a number, None if a dimension is unknown, else an expression
    of the kind that came in (a name becomes an ``onnx_ir.SymbolicDim``); one of more than 200
    characters becomes a name, the same for the same expression.
    """
    if left is None or right is None:
        return None
    if is_known(left) and is_known(right):
        return rule(left, right)
    if is_symbolic(left) or is_symbolic(right):
        are_numbers = all(is_known(dim) or is_symbolic(dim) for dim in (left, right))
        return rule(left, right) if are_numbers else None
    pair = [_symbol(d) if isinstance(d, str) or _is_symbolic_dim(d) else d for d in (left, right)]
    if any(map(_is_symbolic_dim, pair)):
        import onnx_ir

        pair = [d if is_known(d) or _is_symbolic_dim(d) else onnx_ir.SymbolicDim(d) for d in pair]
    return _short(_simplest(rule(*pair)))


def sum_of(dims: Iterable[Dim]) -> Dim:
    """Return the sum of dimensions of any kind; None if one is unknown."""
    found: Dim = 0
    for dim in dims:
        found = add(found, dim)
    return found


def product_of(dims: Iterable[Dim]) -> Dim:
    """Return the product of dimensions of any kind; None if one is unknown."""
    found: Dim = 1
    for dim in dims:
        found = times(found, dim)
    return found


def add(left: Dim, right: Dim) -> Dim:
    """Return the sum of two dimensions of any kind; None if either is unknown."""
    return combine(operator.add, left, right)


def times(left: Dim, right: Dim) -> Dim:
    """Return the product of two dimensions of any kind; None if either is unknown."""
    return combine(operator.mul, left, right)


def quotient(dividends: Iterable[Dim], divisors: Iterable[Dim]) -> Dim:
    """Return the product of some dimensions by that of others, which divides it and is not 0.

    None where either is unknown, or where the quotient still has a name in its divisor.
    """
    dividend, divisor = product_of(dividends), product_of(divisors)
    if dividend is None or divisor is None or divisor == 0:
        return None
    if is_known(dividend) and is_known(divisor):
        return dividend // divisor
    import sympy

    found = _expression(dividend) / _expression(divisor)
    if sympy.denom(found).free_symbols:
        found = sympy.cancel(found)
    return None if sympy.denom(found).free_symbols else _dim_of(sympy.floor(found))


def larger(left: Dim, right: Dim) -> Dim:
    """Return the larger of two dimensions; None if either is unknown."""
    return _one_of(left, right, "Max")


def smaller(left: Dim, right: Dim) -> Dim:
    """Return the smaller of two dimensions; None if either is unknown."""
    return _one_of(left, right, "Min")


def _one_of(left: Dim, right: Dim, name: str) -> Dim:
    """Return the larger or the smaller of two dimensions, by what SymPy calls it."""
    if left is None or right is None:
        return None
    for high, low in ((left, right), (right, left)):
        if is_at_least(high, low):
            return high if name == "Max" else low
    import sympy

    choose, pair = getattr(sympy, name), (_expression(left), _expression(right))
    # SymPy takes long to compare them again: only of these it may know more than `is_at_least`.
    is_simplified = any(each.is_Function or each.has(sympy.floor) for each in pair)
    return _dim_of(choose(*pair, evaluate=is_simplified))


def is_at_least(left: Dim, right: Dim) -> bool:
    """Return whether one number is never below another, where a name is any number from 0 on."""
    difference = combine(operator.sub, left, right)
    if difference is None or is_known(difference):
        return difference is not None and difference >= 0
    if _is_exported(difference):
        return _holds(difference)
    found = _expression(difference)
    if _may_be_below_0(found):  # SymPy takes a thousand times as long
        return False
    natural = {symbol: _natural(symbol.name) for symbol in found.free_symbols}
    if any(symbol != same for symbol, same in natural.items()):
        found = found.xreplace(natural)
    return found.is_nonnegative is True


def _may_be_below_0(expression: Any) -> bool:
    """Return whether an expression is below 0 where its names are 0, or some large numbers."""
    names = sorted(symbol.name for symbol in expression.free_symbols)
    large = {name: 1 << (40 + place) for place, name in enumerate(names[:_FEW])}
    reverse = dict(zip(large, reversed(large.values()), strict=True))
    found = (_number(expression, sizes) for sizes in ({}, large, reverse))
    return any(number is not None and number < 0 for number in found)


def _number(part: Any, sizes: Mapping[str, int]) -> Fraction | None:
    """Return what an expression is where its names are numbers, 0 if not given; None if open."""
    if part.is_Symbol:
        return Fraction(sizes.get(part.name, 0))
    if part.is_Rational:
        return Fraction(part.p, part.q)
    calculate = _CALCULATED.get(type(part).__name__)
    numbers = [number for each in part.args if (number := _number(each, sizes)) is not None]
    return None if calculate is None or len(numbers) < len(part.args) else calculate(numbers)


_CALCULATED: Mapping[str, Callable[[list[Fraction]], Fraction]] = {
    "Add": lambda numbers: sum(numbers, Fraction(0)),
    "Mul": lambda numbers: prod(numbers, start=Fraction(1)),
    "Max": max,
    "Min": min,
    "floor": lambda numbers: Fraction(floor(numbers[0])),
}
"""How the numbers of an expression of SymPy are calculated, by the type of its part."""


def names_in(dim: Dim) -> frozenset[str]:
    """Return the names that a dimension of a model is made of; any text may be one name."""
    if dim is None or is_known(dim):
        return frozenset()
    return frozenset(symbol.name for symbol in _expression(dim).free_symbols)


def magnitude(dim: Dim, largest: int) -> int:
    """Return a bound of a dimension and its parts, where each of its names has this bound."""

    def of(part: Any) -> int:
        if part.is_Symbol:
            return largest
        if part.is_number:
            return int(sympy.ceiling(abs(part)))
        if part.is_Pow and part.exp.is_Integer:
            return int(of(part.base) ** abs(int(part.exp)))
        found: list[int] = list(map(of, part.args))
        return prod(found) if part.is_Mul else sum(found)

    if dim is None or is_known(dim):
        return 0 if dim is None else int(abs(dim))
    import sympy

    return of(_expression(dim))


def divisor_of(dim: Dim) -> int:
    """Return the number by which a whole expression is divided to give one; 1 for others."""
    if dim is None or is_known(dim):
        return 1
    import sympy

    found = sympy.denom(sympy.together(_expression(dim)))
    return int(found) if found.is_Integer else 1


def _holds(difference: Traced) -> bool:
    """Return whether a library's dimension is known not to be below 0; it raises where open."""
    try:
        return bool(difference >= 0)
    except Exception:  # noqa: BLE001 - of a class of the library, which may not be imported
        return False


def _expression(dim: Dim) -> Any:
    """Return a dimension that is not unknown in SymPy."""
    import sympy

    if is_known(dim):
        return sympy.Integer(dim)
    if isinstance(dim, str) or _is_symbolic_dim(dim):
        return _symbol(dim)._expr  # noqa: SLF001 - onnx-ir tells it in no other way
    return dim


def _dim_of(expression: object) -> Dim:
    import onnx_ir

    return _short(_simplest(onnx_ir.SymbolicDim(expression)))


def _short(dim: Dim) -> Dim:
    """Return the same, or a name for it if it is too long."""
    if type(dim) is int or dim is None or len(str(dim)) <= _MAX_EXPRESSION:
        return dim
    made: Any = dim._expr if _is_symbolic_dim(dim) else dim  # noqa: SLF001 - as above
    if made.count_ops() <= _FEW:  # it is the names that are long
        return dim
    from hashlib import blake2s

    import onnx_ir
    import sympy

    name = "dim_" + blake2s(str(dim).encode(), digest_size=6).hexdigest()
    return onnx_ir.SymbolicDim(name) if _is_symbolic_dim(dim) else sympy.Symbol(name, integer=True)


def _natural(name: str) -> Any:
    """Return a name in SymPy: any number from 0 on, but that of an expression may be below."""
    import sympy

    sign = {} if _EXPRESSION_NAME.fullmatch(name) else {"nonnegative": True}
    return sympy.Symbol(name, integer=True, **sign)


def _symbol(dim: str | ir.SymbolicDim) -> ir.SymbolicDim:
    """Make a symbol of a name; an opaque one if its text is not a usable expression."""
    with needs("models"):
        import onnx_ir

    if isinstance(dim, str):
        return onnx_ir.SymbolicDim(_parsed(dim))
    made = getattr(dim, "_expr_cache", None)  # None where only a text was given
    symbols = frozenset() if made is None else made.free_symbols
    if symbols and symbols == {_natural(symbol.name) for symbol in symbols}:
        return dim
    return onnx_ir.SymbolicDim(_parsed(str(dim.value)))


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Any:
    """Return a name, or an expression of names, in SymPy.

    onnx-ir treats each name as a number from 1 on, and simplifies by that. So it reads ``N - 1``
    for N, and ``N + 1`` replaces N in what it made.
    """
    import onnx_ir

    if len(text) <= _MAX_EXPRESSION and "**" not in text:  # 9**9**9 would take for ever
        with suppress(Exception):  # any text may be a name, such as "/x/y_dim_0"
            less = _IDENTIFIER.sub(lambda name: name[0] if name[2] else f"({name[0]} - 1)", text)
            read: Any = onnx_ir.SymbolicDim(less)._expr  # noqa: SLF001 - as above
            names = {symbol: _natural(symbol.name) + 1 for symbol in read.free_symbols}
            if names:
                return read.xreplace(names)
    return _natural(text)


def _simplest(dim: Dim) -> Dim:
    """Return a number as ``int``, an unknown as None, everything else as it is."""
    if type(dim) is int or _is_exported(dim):
        return dim
    value: Any = getattr(dim, "value", dim)
    if value is None:
        return None
    if isinstance(value, str):
        return int(value) if _NUMBER.fullmatch(value) else dim
    return int(value) if value.is_Integer else dim
