"""Operators as they are written on the command line: identifiers, or names with an opset."""

from __future__ import annotations

from tensorsplit.core.errors import UNKNOWN_OPERATOR, USAGE, SplitError
from tensorsplit.core.records import NEWEST_OPSET, in_force, operators
from tensorsplit.core.schema import Operator


def operator_named(word: str, opset: int | None = None) -> Operator:
    """The operator version that a word means.

    Args:
        word: An identifier such as ``onnx.Split-13``, or a name such as ``Split`` or
            ``openvino.Split``.
        opset: The opset at which a name is looked up; the newest one if None.

    Raises:
        SplitError: TS101 for a word that means none; TS703 for an identifier with an opset.
    """
    if is_name(word):
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


def is_name(word: str) -> bool:
    """Whether a word is an operator's name, with or without its vendor."""
    vendor, _, name = word.rpartition(".")
    vendors = _vendors(name)
    return vendor in vendors or (not vendor and bool(vendors))


def is_operator(word: str) -> bool:
    """Whether a word means an operator, and no file."""
    return word in operators or is_name(word)


def unknown(word: str) -> SplitError:
    """The refusal of a word that is neither an operator nor a file."""
    return SplitError(
        UNKNOWN_OPERATOR,
        f"{word!r} is neither an operator nor a model file",
        f"use one of {', '.join(operators)}, a name such as Split, or the path of a model",
        parameter="operator",
    )


def _vendors(name: str) -> list[str]:
    return [record.vendor for record in operators.values() if record.name == name]
