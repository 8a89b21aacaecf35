"""Shapes, operands and operators as they are written on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from tensorsplit.core.dimensions import Shape, as_shape
from tensorsplit.core.errors import UNKNOWN_OPERATOR, USAGE, SplitError, show
from tensorsplit.core.records import NEWEST_OPSET, in_force, operators
from tensorsplit.core.schema import Operator

_NUMBER = re.compile(r"[0-9]{1,40}")
_NAME = re.compile(r"[^\W\d][^\s,=()\[\]]*")
_PIECE = re.compile(r"[0-9]{1,40}|\?|[A-Za-z]|[A-Z]\w*")
_INTEGER = re.compile("[+-]?[0-9]+")
_UNKNOWN = "?"


def parse_shape(word: str) -> Shape:
    """Read a shape: ``7,4``, ``7x4``, ``N,4``, ``?,4`` or ``(7, 4)``.

    Dimensions are numbers, names, or ``?`` for unknown. They are separated by commas, or by ``x``
    (or the multiplication sign) where that leaves only numbers, ``?``, single letters and names
    in capitals: ``Nx4`` has rank 2, ``max_len`` is one name, ``max_len,4`` needs its comma. ``()``
    is the shape of a scalar; a word that is no shape is refused (TS703).
    """
    text = word.strip()
    if text[:1] + text[-1:] in ("()", "[]"):
        text = text[1:-1].strip()
        if not text:
            return ()
    items = _items(text) if "," in text else _pieces(text)
    try:
        return as_shape([_dimension(item, word) for item in items])
    except SplitError as error:
        if error.kind is USAGE:
            raise
        raise _no_shape(word) from None


def _items(text: str) -> list[str]:
    """What stands between the commas, of which the last may be at the end."""
    return [item.strip() for item in text.removesuffix(",").split(",")]


def _pieces(text: str) -> list[str]:
    pieces = [piece.strip() for piece in re.split("[x\N{MULTIPLICATION SIGN}]", text)]
    if all(_PIECE.fullmatch(piece) for piece in pieces):
        return pieces
    if any(_NUMBER.fullmatch(piece) or piece == _UNKNOWN for piece in pieces):
        raise SplitError(
            USAGE,
            f"{show(text)} is a shape that can be read in several ways",
            "write it with commas, such as max_len,4",
            parameter="shape",
        )
    return [text]


def _dimension(item: str, word: str) -> int | str | None:
    if item in (_UNKNOWN, "None"):
        return None
    if _NUMBER.fullmatch(item):
        return int(item)
    if _NAME.fullmatch(item):
        return item
    raise _no_shape(word)


def _no_shape(word: str) -> SplitError:
    return SplitError(
        USAGE,
        f"{show(word)} is no shape",
        "write dimensions from 0 to 2^63-1, names, or ? for unknown, such as 7,4 or 7x4 or N,4",
        parameter="shape",
    )


def is_operand(word: str) -> bool:
    """Whether a word is written as ``name=value``."""
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isidentifier()


def parse_operands(record: Operator, written: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Read operands: ``0``, ``-1,2``, ``[2, 4]`` or ``3.0,4.0``.

    A number alone is a scalar where the version takes one, and else a list of one; with brackets
    or a comma it is always a list. Floats are an array, as only an input can hold them. TS703 for
    an operand that is given twice or is no number.
    """
    values: dict[str, Any] = {}
    for name, text in written:
        if name in values:
            raise SplitError(
                USAGE, "it is given twice", "give it once", operator=record.id, parameter=name
            )
        try:
            values[name] = _value(text, _takes_scalar(record, name))
        except ValueError:
            raise SplitError(
                USAGE,
                f"{show(text)} is no number or list of numbers",
                "write it as 2 or as 2,4",
                operator=record.id,
                parameter=name,
            ) from None
    return values


def _value(text: str, takes_scalar: bool) -> Any:
    inner = text.strip()
    is_list = inner[:1] + inner[-1:] in ("[]", "()")
    if is_list:
        inner = inner[1:-1].strip()
    numbers = (
        []
        if is_list and not inner
        else [int(item) if _INTEGER.fullmatch(item) else float(item) for item in _items(inner)]
    )
    if not is_list and "," not in inner and takes_scalar:
        return numbers[0]
    if any(isinstance(number, float) for number in numbers):
        return np.array(numbers, np.float64)
    return numbers


def _takes_scalar(record: Operator, name: str) -> bool:
    """Whether the operand may be a scalar; an operand that holds no lengths always is one."""
    ranks = [rank for entry in record.lengths if entry.operand == name for rank in entry.rules]
    return 0 in ranks or not ranks


def operator_named(word: str, opset: int | None = None) -> Operator:
    """The operator version that a word means; TS101 if none, TS703 for an identifier with an opset.

    It is an identifier such as ``onnx.Split-13``, or a name such as ``Split`` or
    ``openvino.Split``, which is looked up at the opset, or at the newest one.
    """
    if word not in operators and is_operator(word):
        vendor, _, name = word.rpartition(".")
        opset = NEWEST_OPSET if opset is None else opset
        return in_force(name, opset, vendor=vendor or _vendors(name)[0])
    if opset is not None and word in operators:
        raise SplitError(
            USAGE,
            f"{word} is one version already, but the opset is given as {opset}",
            "give the identifier alone, or a name such as Split with the opset",
            parameter="opset",
        )
    return operators[word]


def is_operator(word: str) -> bool:
    """Whether a word means an operator: an identifier, or a name with or without its vendor."""
    vendor, _, name = word.rpartition(".")
    vendors = _vendors(name)
    return word in operators or (bool(vendors) and vendor in ("", *vendors))


def unknown_operator(word: str) -> SplitError:
    """The refusal of a word that is neither an operator nor a file."""
    return SplitError(
        UNKNOWN_OPERATOR,
        f"{word!r} is neither an operator nor a model file",
        f"use one of {', '.join(operators)}, a name such as Split, or the path of a model",
        parameter="operator",
    )


def _vendors(name: str) -> list[str]:
    return [record.vendor for record in operators.values() if record.name == name]
