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


def turns_a_factor(equation: str) -> bool:
    """Return whether a factor after the first has not its axes in the order of a matrix product.

    That is: axes that the product keeps and those before have, too; axes that are summed; its own.
    """
    operands, result = terms_of(equation) or ([], None)
    labels = [term.head + term.ellipsis[:1] + term.tail for term in operands]
    every = "".join(labels)
    once = {label for label in every if every.count(label) == 1}
    kept = once if result is None else {*result.head, *result.ellipsis, *result.tail}
    for place, own in enumerate(labels[1:], 1):
        before, later = "".join(labels[:place]), kept | {*"".join(labels[place + 1 :])}
        order = [2 if label not in before else int(label not in later) for label in own]
        if order != sorted(order):
            return True
    return False
