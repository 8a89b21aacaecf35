"""What is done with a sequence: each use, with each kind of cut, told each thing it can be told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tensorsplit.conformance.case import USES, Case
from tensorsplit.conformance.cases.making import common_type, draw, onnx_case
from tensorsplit.conformance.cases.matrix import decision_of
from tensorsplit.conformance.cases.sentences import rule
from tensorsplit.conformance.cases.shapes import drawn_axis, shaped
from tensorsplit.conformance.cases.stated import Stated
from tensorsplit.conformance.cases.uses import options, spell_option, usable
from tensorsplit.conformance.cases.versions import OPSETS, SEQUENCES
from tensorsplit.conformance.cases.wordings import WORDINGS, Wording
from tensorsplit.conformance.models.onnx_model import SplitModel

_PLACES: tuple[tuple[str, ...], ...] = ((), ("if",))
_CUTS = {
    "lengths": (Stated(6, (2, 4), (2, 4)), Stated(6, (3, 3), (3, 3)), Stated(5, (5,), (5,))),
    "chunks": (Stated(5, 2, (2, 2, 1)), Stated(6, 2, (2, 2, 2)), Stated(0, 2, ())),
    "ones": (Stated(3, None, (1, 1, 1)), Stated(0, None, ())),
    "lengths-keepdims0": (Stated(3, (1, 1, 1), (1, 1, 1)), Stated(6, (2, 4), (2, 4))),
    "chunks-keepdims0": (Stated(3, 1, (1, 1, 1)), Stated(4, 2, (2, 2))),
    "ones-keepdims0": (Stated(3, None, (1, 1, 1)), Stated(1, None, (1,))),
}
_SPELLINGS = ("initializer", "runtime", "absent")


def cases() -> Iterator[Case]:
    """The cases of this group."""
    for operator in SEQUENCES:
        for wording in WORDINGS[operator]:
            if wording.spelling not in _SPELLINGS:
                continue
            for cut in _CUTS.get(wording.name, ()):
                yield from _used(operator, wording, cut)


def _used(operator: str, wording: Wording, cut: Stated) -> Iterator[Case]:
    keepdims = wording.says(cut, "float")["keepdims"]
    for use in USES[1:]:
        for option in options(use, cut, keepdims):
            key = f"{operator} {wording.name} {wording.spelling} {cut} {use} {option}"
            opset = draw(f"opset {key}", OPSETS[operator])
            if not usable(use, (), opset):
                opset = OPSETS[operator][-1]
            yield _case(operator, wording, cut, (use, option), opset)


def _case(operator: str, wording: Wording, cut: Stated, used: tuple[str, Any], opset: int) -> Case:
    use, option = used
    key = f"{operator} {wording.name} {wording.spelling} {cut} {use} {option}"
    rank = draw(f"rank {key}", (1, 2, 3))
    shape_class = draw(f"class {key}", ("static", "dynamic-axis")) if cut.dim else "zero-size"
    around = shaped(cut.dim, rank, drawn_axis(rank, key), shape_class, key)
    element_type = common_type(operator, key)
    says = wording.says(cut, element_type)
    says["attributes"] |= around.attributes
    model = SplitModel(
        operator=operator,
        opset=opset,
        element_type=element_type,
        shape=around.shape,
        declared=around.declared,
        axis=around.axis,
        places=draw(f"place {key}", [p for p in _PLACES if usable(use, p, opset)]),
        use=use,
        option=option,
        **says,
    )
    name = f"use-{wording.spell(cut)}-axis{around.axis}".replace("axis-", "axism")
    return onnx_case(
        model,
        name + spell_option(option),
        rule(operator, *wording.rules, use),
        shape_class=shape_class,
        spelling=wording.spelling,
        decision=decision_of(operator, wording, cut, around.axis),
    )
