"""The equation of an Einsum, read as its terms."""

from __future__ import annotations

import re
from typing import NamedTuple

_TERM = re.compile(r"([A-Za-z]*)(\.\.\.)?([A-Za-z]*)")


class EinsumTerm(NamedTuple):
    """The axes of a tensor: a letter for each, and an ellipsis for any number of them."""

    head: str
    ellipsis: str
    tail: str


def terms_of(equation: str) -> tuple[list[EinsumTerm], EinsumTerm | None] | None:
    """Return the terms of the operands and, if it is given, that of the result.

    None is returned for what is not an equation. ONNX's inference, with which ONNX Runtime loads a
    model, never ends on one with a point that is not of an ellipsis.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    matches = [_TERM.fullmatch(text) for text in (*left.split(","), right)]
    terms = [EinsumTerm(*match.groups("")) for match in matches if match is not None]
    if len(terms) < len(matches):
        return None
    return terms[:-1], terms[-1] if arrow else None


def moves_nothing(equation: str) -> bool:
    """Return whether the result is the only operand, axis by axis."""
    operands, result = terms_of(equation) or ([], None)
    if len(operands) != 1:
        return False
    (own,) = operands
    letters = own.head + own.tail
    if result is None:  # the letters come in their order, and after an ellipsis
        result = EinsumTerm("", own.ellipsis, "".join(sorted(letters)))
        own = own if own.ellipsis else EinsumTerm("", "", letters)
    return own == result and len({*letters}) == len(letters)


def moves_one_axis(equation: str) -> bool:
    """Return whether one axis of an operand has to move for the axes to be in order.

    The order is that in which the equation names them, an ellipsis before all.
    """
    operands, _ = terms_of(equation) or ([], None)
    labels = [term.head + term.ellipsis[:1] + term.tail for term in operands]
    order = [*dict.fromkeys("." + "".join(labels))]
    return any(
        _is_one_moved([order.index(label) for label in dict.fromkeys(own)]) for own in labels
    )


def _is_one_moved(places: list[int]) -> bool:
    """Return whether some numbers are in order but for one."""
    others = (places[:at] + places[at + 1 :] for at in range(len(places)))
    return places != sorted(places) and any(each == sorted(each) for each in others)
