"""Shapes, operands and operators as they are written on the command line."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from tensorsplit.cli.sentences import tr
from tensorsplit.core.dimensions import Shape, as_shape
from tensorsplit.core.errors import USAGE, SplitError, show
from tensorsplit.core.schema import Operator

_DIMENSION = re.compile(r"[0-9]{1,40}|\?|[^\W\d][^\s,=()\[\]]*")
_SEPARABLE = re.compile(r"[0-9]{1,40}|\?|[A-Za-z]|[A-Z]\w*")
_UNNAMED = re.compile(r"[0-9]{1,40}|\?")
_INTEGER = re.compile("[+-]?[0-9]+")
_BYTES = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_DIGITS = 40
_PREFIXES = ("", "k", "m", "g", "t")


def parse_shape(word: str) -> Shape:
    """Read a shape: ``7,4``, ``7x4``, ``N,4``, ``?,4`` or ``(7, 4)``.

    Dimensions are numbers, names, or ``?`` for unknown. They are separated by commas, or by ``x``
    (or the multiplication sign) where that leaves only numbers, ``?``, single letters and names
    in capitals: ``Nx4`` has rank 2, ``max_len`` is one name, ``max_len,4`` needs its comma. ``()``
    is the shape of a scalar; a word that is not a shape is refused (TS703).
    """
    items, _ = _items(word)
    if len(items) == 1 and "," not in word:
        pieces = [piece.strip() for piece in re.split("[x\N{MULTIPLICATION SIGN}]", items[0])]
        if all(map(_SEPARABLE.fullmatch, pieces)):
            items = pieces
        elif any(map(_UNNAMED.fullmatch, pieces)):
            raise SplitError(
                USAGE,
                tr("{word} is a shape that can be read in several ways", word=show(items[0])),
                tr("write it with commas, such as max_len,4"),
                parameter="shape",
            )
    if all(map(_DIMENSION.fullmatch, items)):
        with contextlib.suppress(SplitError):  # a number that is too large
            return as_shape(None if item in ("?", "None") else item for item in items)
    raise SplitError(
        USAGE,
        tr("{word} is not a shape", word=show(word)),
        tr("write dimensions from 0 to 2^63-1, names, or ? for unknown, such as 7,4 or 7x4 or N,4"),
        parameter="shape",
    )


def _items(text: str) -> tuple[list[str], bool]:
    """Return the text between the commas, and whether commas or brackets make it a list."""
    inner = text.strip()
    is_list = inner[:1] + inner[-1:] in ("()", "[]")
    if is_list:
        inner = inner[1:-1].strip()
    if is_list and not inner:
        return [], True
    items = [item.strip() for item in inner.removesuffix(",").split(",")]
    return items, is_list or "," in inner


def parse_bytes(word: str) -> int:
    """Read a size in bytes: ``2GiB``, ``500M``, ``1.5 GB``, ``1048576``; TS703 for others."""
    found = _BYTES.fullmatch(word.strip())
    if found and (found[2] or not found[3]):
        power = _PREFIXES.index(found[2].lower())
        size = int(Fraction(found[1]) * (1024 if found[3] else 1000) ** power)
        if size > 0:
            return size
    raise SplitError(
        USAGE,
        tr("{word} is not a size", word=show(word)),
        tr("write it as 500M, 2GiB or 1048576"),
        parameter="memory",
    )


def parse_lengths(word: str) -> list[int]:
    """Read lengths: ``4096,1024`` or ``[-1, 2]``; TS703 for others."""
    items, _ = _items(word)
    if all(map(_INTEGER.fullmatch, items)) and max(map(len, items), default=0) <= _DIGITS:
        return list(map(int, items))
    raise SplitError(
        USAGE,
        tr("{word} is not a list of lengths", word=show(word)),
        tr("write it as 4096,1024"),
        parameter="split",
    )


def is_operand(word: str) -> bool:
    """Return whether a word is written as ``name=value``."""
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isidentifier()


def parse_operands(record: Operator, written: Iterable[tuple[str, str]]) -> dict[str, object]:
    """Read operands: ``0``, ``-1,2``, ``[2, 4]`` or ``3.0,4.0``.

    A number alone is a scalar where the version takes one, and else a list of one; with brackets
    or a comma it is always a list. Floats are an array, as only an input can hold them. TS703 for
    an operand that is given twice or is not a number.
    """
    values: dict[str, object] = {}
    for name, text in written:
        if name in values:
            raise SplitError(
                USAGE,
                tr("it is given twice"),
                tr("give it once"),
                operator=record.id,
                parameter=name,
            )
        try:
            items, is_list = _items(text)
            numbers = [int(item) if _INTEGER.fullmatch(item) else float(item) for item in items]
            ranks = [r for each in record.lengths if each.operand == name for r in each.rules]
            if not is_list and 0 in (ranks or [0]):  # what holds no lengths is a scalar
                values[name] = numbers[0]
            else:
                floats = any(isinstance(number, float) for number in numbers)
                values[name] = np.array(numbers, np.float64) if floats else numbers
        except (ValueError, OverflowError):
            raise SplitError(
                USAGE,
                tr("{word} is not a number or list of numbers", word=show(text)),
                tr("write it as 2 or as 2,4"),
                operator=record.id,
                parameter=name,
            ) from None
    return values
