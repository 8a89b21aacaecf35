"""Each way to say the lengths, in each place, for each class of shapes; all else is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tensorsplit.conformance.case import SHAPE_CLASSES, Case
from tensorsplit.conformance.cases.making import common_type, draw, onnx_case
from tensorsplit.conformance.cases.sentences import rule
from tensorsplit.conformance.cases.shapes import Shaped, drawn_axis, drawn_rank, shaped
from tensorsplit.conformance.cases.stated import Stated
from tensorsplit.conformance.cases.uses import drawn_use, spell_option
from tensorsplit.conformance.cases.versions import OPSETS, SEQUENCES
from tensorsplit.conformance.cases.wordings import WORDINGS, Wording, drawn_cut
from tensorsplit.conformance.models.onnx_model import SplitModel

PLACES = ((), ("if",), ("loop",), ("scan",), ("function",))
"""Where a split node is."""

NESTED = (
    *(("if", "loop"), ("loop", "if"), ("scan", "if"), ("if", "function")),
    *(("function", "if"), ("loop", "function"), ("function", "loop")),
)
"""Where it is, from the outside to the inside, if it is inside of two."""

_SINCE = {"scan": 9}


def cases() -> Iterator[Case]:
    """The cases of this group."""
    for operator in OPSETS:
        for wording in WORDINGS[operator]:
            key = f"{operator} {wording.name} {wording.spelling}"
            nested = [(places, draw(f"{places} {key}", SHAPE_CLASSES)) for places in NESTED]
            for places, shape_class in (*product(PLACES, SHAPE_CLASSES), *nested):
                case = _case(operator, wording, places, shape_class)
                if case is not None:
                    yield case


def _case(
    operator: str, wording: Wording, places: tuple[str, ...], shape_class: str
) -> Case | None:
    key = f"{operator} {wording.name} {wording.spelling} {places} {shape_class}"
    opset = drawn_opset(operator, places, key)
    if opset is None:
        return None
    rank = drawn_rank(shape_class, key)
    of_nothing = shape_class == "zero-size" and bool(draw(f"nothing {key}", (0, 1)))
    if "scan" in places:  # nothing can be done there with a sequence of no parts
        of_nothing = of_nothing and any(cut.sizes for cut in wording.of_nothing)
    cut = drawn_cut(wording, key, of_nothing and bool(wording.of_nothing))
    around = shaped(cut.dim, rank, drawn_axis(rank, key), shape_class, key)
    return wording_case(
        operator, wording, cut, around, key, opset=opset, places=places, shape_class=shape_class
    )


def drawn_opset(operator: str, places: tuple[str, ...], key: str) -> int | None:
    """An opset that has the operator version and the places; None if none has."""
    least = max((_SINCE.get(place, 1) for place in places), default=1)
    fitting = [opset for opset in OPSETS[operator] if opset >= least]
    return draw(f"opset {key}", fitting) if fitting else None


def wording_case(
    operator: str,
    wording: Wording,
    cut: Stated,
    around: Shaped,
    key: str,
    *,
    opset: int,
    places: tuple[str, ...] = (),
    shape_class: str = "static",
    element_type: str = "",
    group: str = "",
) -> Case:
    """A case of a cut that is said in a way; what is done with a sequence is drawn.

    Args:
        operator: The operator version.
        wording: How it is said.
        cut: What is cut.
        around: The shape and the axis.
        key: What is drawn by.
        opset: The opset.
        places: Where the node is.
        shape_class: What is declared of the shape.
        element_type: The element type; drawn if it is not given.
        group: What the name begins with, if other groups have the like.
    """
    element_type = element_type or common_type(operator, key)
    is_sequence = operator in SEQUENCES
    says = wording.says(cut, element_type)
    says["attributes"] |= around.attributes
    use, option = "", None
    if is_sequence and element_type == "bfloat16":  # there are no operators on such sequences
        use = "output"
    elif is_sequence:
        use, option = drawn_use(cut, says["keepdims"], places, opset, key)
    may_refer = places[-1:] == ("function",) and bool(says["attributes"])
    by_reference = may_refer and draw(f"reference {key}", (False, True))
    model = SplitModel(
        operator=operator,
        opset=opset,
        element_type=element_type,
        shape=around.shape,
        declared=around.declared,
        outputs=1 if is_sequence else len(cut.sizes),
        axis=around.axis,
        places=places,
        use=use,
        option=option,
        by_reference=by_reference,
        **says,
    )
    name = f"{group}{wording.spell(cut)}-axis{around.axis}".replace("axis-", "axism")
    return onnx_case(
        model,
        name + spell_option(option) + "-reference" * by_reference,
        rule(operator, *wording.rules, *_sentences(around.axis, use, places)),
        shape_class=shape_class,
        spelling=wording.spelling,
        decision=decision_of(operator, wording, cut, around.axis),
    )


def _sentences(axis: int, use: str, places: tuple[str, ...]) -> Iterator[str]:
    """Further sentences that a case is about, by their short names."""
    yield "negative-axis" if axis < 0 else "axis" if axis else "default-axis"
    if use:
        yield use
    if places:
        yield "function" if places[0] == "function" else "subgraph"


_UNSAID_NEGATIVE = ("onnx.Split-1", "onnx.Split-2")
"""The pages of these versions do not say what a negative axis is."""


def decision_of(operator: str, wording: Wording, cut: Stated, axis: int) -> str:
    """The decision that a cut depends on; empty if the page leaves nothing open."""
    if wording.decision:
        return wording.decision
    if axis < 0 and operator in _UNSAID_NEGATIVE:
        return "D13"
    if cut.dim == 0 and isinstance(cut.said, int):
        return "D2"
    if operator in SEQUENCES and isinstance(cut.said, tuple):
        return "D11" if len(cut.said) == 1 else "D9" if 0 in cut.said else ""
    return ""
