"""What can be done with the sequence of a cut."""

from __future__ import annotations

from typing import Any

from tensorsplit.conformance.cases.making import draw
from tensorsplit.conformance.cases.stated import Stated

SEQUENCE_OUTPUTS = ("output", "SequenceInsert", "SequenceErase", "SequenceMap")
"""The uses of which a sequence comes out."""

_SINCE = {"SequenceMap": 17}


def options(use: str, cut: Stated, keepdims: bool) -> list[Any]:
    """What a use may be told, such as positions; nothing where it can't be used on the cut.

    Args:
        use: The use.
        cut: What is cut.
        keepdims: Whether the parts keep the axis.
    """
    count = len(cut.sizes)
    if not count:
        return [None] if use in ("output", "SequenceLength", "SequenceMap") else []
    ends = tuple(sorted({0, count - 1, -1, -count}))
    can_stack = len(set(cut.sizes)) == 1
    told: dict[str, list[Any]] = {
        "SequenceAt": [(ends, True), (ends, False), (tuple(range(min(count, 9))), False)],
        "ConcatFromSequence": [*[0] * keepdims, *[1] * can_stack],
        "Loop": [None] * keepdims,
        "SequenceInsert": [None, ((0,), False), ((count,), False), ((-1,), True)],
        "SequenceErase": [None, ((0,), False), ((count - 1,), True), ((-1,), False)],
    }
    return told.get(use, [None])


def usable(use: str, places: tuple[str, ...], opset: int) -> bool:
    """Whether a use can stand in a place at an opset.

    No sequence comes out of a Loop or Scan here: a Loop would need one to begin with. And a body
    that does nothing with a slice but count its parts tells more of Scan than of the split.
    """
    if use == "SequenceLength" and "scan" in places:
        return False
    if opset < _SINCE.get(use, 11):
        return False
    if use not in SEQUENCE_OUTPUTS or not set(places) - {"function"}:
        return True
    return set(places) <= {"if", "function"} and opset >= 13


def drawn_use(
    cut: Stated, keepdims: bool, places: tuple[str, ...], opset: int, key: str
) -> tuple[str, Any]:
    """A use and what it is told."""
    uses = (
        *("output", "SequenceAt", "SequenceLength", "SequenceInsert", "SequenceErase"),
        *("ConcatFromSequence", "Loop", "SequenceMap"),
    )
    fitting = [
        (use, option)
        for use in uses
        if usable(use, places, opset)
        for option in options(use, cut, keepdims)
    ]
    chosen = draw(f"use {key}", sorted({use for use, _ in fitting}))
    return draw(f"option {key}", [entry for entry in fitting if entry[0] == chosen])


def spell_option(option: Any) -> str:
    """What a use is told, as a part of an id."""
    if isinstance(option, tuple):
        positions, is_runtime = option
        text = ".".join(str(position).replace("-", "m") for position in positions)
        return f"-at{text}{'-runtime' if is_runtime else ''}"
    return "" if option is None else f"-{option}".replace("--", "-m")
