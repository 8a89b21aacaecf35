"""Cases from the statements of their models, and sampled shapes, axes, types and uses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from tensorsplit.conformance.case import PARTS, PLACES, REFUSAL, USES, Built, Case, CaseSplit
from tensorsplit.conformance.cases.split_encodings import OPSETS, SEQUENCES, Stated, rule, sample
from tensorsplit.conformance.data import WIDE, has_extremes
from tensorsplit.conformance.models.ir_model import build as build_ir
from tensorsplit.conformance.models.onnx_graphs import build as build_onnx
from tensorsplit.conformance.models.onnx_model import Fields, SplitModel

BODIES: tuple[tuple[str, ...], ...] = ((), *((place,) for place in PLACES[1:]))
"""Where a split node is."""

SIMPLE_USES = {"output": None, "SequenceLength": None, "ConcatFromSequence": 0}
"""What can be done with most sequences, each with its arguments."""

_OTHERS = (2, 1, 3, 2, 1, 4)
"""Lengths of the other dimensions, in turn; all different ones would make large data."""

_SINCE = {"scan": 9, "SequenceMap": 17}
_SEQUENCE_OUTPUTS = ("output", "SequenceInsert", "SequenceErase", "SequenceMap")


def case_of(
    operator: str,
    name: str,
    *rules: str,
    shape_class: str = "",
    form: str = "",
    decision: str = "",
    legal: Fields | None = None,
    **fields: Any,
) -> Case:
    """Build the case of a `SplitModel` with these fields; `legal` are other legal feeds.

    By default, it declares the shape that is fed, has an output for each part, and says
    its lengths in the form of the operand; a dimension that is not declared is that of the axis.
    """
    given = {"declared": fields["shape"], "outputs": len(fields.get("sizes") or ()), **fields}
    given |= {"outputs": 1} if operator in SEQUENCES else {}
    model = SplitModel(operator=operator, **given)
    is_ir = operator.startswith("openvino.")
    recipe = partial(build_ir if is_ir else build_onnx, model)
    if legal is not None:
        recipe = partial(_build_both, replace(model, **legal), model)
    is_static = all(isinstance(dim, int) for dim in model.declared)
    shape_class = shape_class or ("static" if is_static else "dynamic-axis")
    form = form or (model.operand.form if model.operand else "attribute")
    place = ".".join(model.places) or "graph"
    use = f"/{model.use}" if model.use else ""
    rank = len(model.shape)
    cut = None
    if model.sizes is not None:
        cut = CaseSplit(model.shape, model.axis, model.sizes, model.keepdims)
    return Case(
        id=f"{operator}/{model.element_type}/{shape_class}-r{rank}/{form}/{place}{use}/"
        + (name if is_ir else f"{name}-o{model.opset}"),
        operator=operator,
        element_type=model.element_type,
        shape_class=shape_class,
        rank=rank,
        spelling=form,
        place=model.places[0] if model.places else "graph",
        use=model.use,
        rule=rule(operator, *rules),
        decision=decision,
        expects=PARTS if cut else REFUSAL,
        cut=cut,
        model_format="ir" if is_ir else "onnx",
        opset=model.opset,
        recipe=recipe,
    )


def _build_both(legal: SplitModel, illegal: SplitModel, rng: np.random.Generator) -> Built:
    right, wrong = build_onnx(legal, rng), build_onnx(illegal, rng)
    if right.model != wrong.model or right.expected is None:
        raise ValueError("what is fed changes the model: the case is wrong")
    return replace(wrong, legal=(right.inputs, right.expected))


def decision_of_type(element_type: str, extreme: bool = False) -> str:
    """Return the decision that is about an element type."""
    if element_type == "string":
        return "D17"
    return "D16" if extreme and element_type in WIDE else ""


def kinds_of_data(element_type: str) -> Iterator[tuple[str, Fields]]:
    """Yield a name and fields for plain elements and, where the type has such, extreme ones."""
    for extreme in (False, True)[: 1 + has_extremes(element_type)]:
        decision = decision_of_type(element_type, extreme)
        fields = {"element_type": element_type, "extreme": extreme, "decision": decision}
        yield "extreme" if extreme else "plain", fields


def opsets_with(operator: str, places: tuple[str, ...]) -> list[int]:
    """Return the opsets that have the operator version and the places."""
    least = max((_SINCE.get(place, 1) for place in places), default=1)
    return [opset for opset in OPSETS[operator] if opset >= least]


def bodies_of(operator: str) -> list[tuple[str, ...]]:
    """Return where a node of an operator version can be, the main graph first."""
    return [places for places in BODIES if opsets_with(operator, places)]


def sampled_opset(operator: str, places: tuple[str, ...], key: str) -> int:
    """Sample one of the opsets that have the operator version and the places."""
    return sample(f"opset {key}", opsets_with(operator, places))


def shaped(dim: int, rank: int, axis: int, shape_class: str, key: str) -> Fields:
    """Return the fields of a `SplitModel` for a dimension on an axis, which may be negative.

    With the class ``zero-size`` another dimension is 0, unless the one that is split is.
    """
    place = axis % rank
    turn = sample(f"others {key}", range(len(_OTHERS)))
    shape = [_OTHERS[(turn + number) % len(_OTHERS)] for number in range(rank)]
    shape[place] = dim
    declared: list[int | str | None] = list(shape)
    others = [number for number in range(rank) if number != place]
    if shape_class == "zero-size" and dim:
        shape[sample(f"zero {key}", others)] = 0
        declared = list(shape)
    elif shape_class == "dynamic-axis":
        declared[place] = sample(f"name {key}", ("N", None))
    elif shape_class == "dynamic-other":
        for number in others:
            declared[number] = f"M{number}"
    return {"shape": tuple(shape), "declared": tuple(declared), "axis": axis}


def sampled_rank(shape_class: str, key: str) -> int:
    """Return a rank from 1 to 6, or from 2 where there has to be another dimension."""
    least = 2 if shape_class in ("dynamic-other", "zero-size") else 1
    return sample(f"rank {key}", range(least, 7))


def options(use: str, split: Stated, keepdims: bool) -> list[Any]:
    """Return the options of a use of a sequence, such as positions; none if it can't be used."""
    count = len(split.sizes)
    if not count:
        return [None] if use in ("output", "SequenceLength", "SequenceMap") else []
    ends = tuple(sorted({0, count - 1, -1, -count}))
    can_stack = len(set(split.sizes)) == 1
    fitting: dict[str, list[object]] = {
        "SequenceAt": [(ends, True), (ends, False), (tuple(range(min(count, 9))), False)],
        "ConcatFromSequence": [*[0] * keepdims, *[1] * can_stack],
        "Loop": [None] * keepdims,
        "SequenceInsert": [None, ((0,), False), ((count,), False), ((-1,), True)],
        "SequenceErase": [None, ((0,), False), ((count - 1,), True), ((-1,), False)],
    }
    return fitting.get(use, [None])


def usable(use: str, places: tuple[str, ...], opset: int) -> bool:
    """Return whether a use can stand in a place at an opset.

    No sequence comes out of a Loop or Scan here: a Loop would need one to begin with. And a body
    that does nothing with a slice but count its parts tells more of Scan than of the split.
    """
    if use == "SequenceLength" and "scan" in places:
        return False
    if opset < _SINCE.get(use, 11):
        return False
    if use not in _SEQUENCE_OUTPUTS or not set(places) - {"function"}:
        return True
    return set(places) <= {"if", "function"} and opset >= 13


def sampled_simple_use(
    operator: str, places: tuple[str, ...], opset: int, key: str
) -> tuple[str, object]:
    """Sample a simple use and its option; none for operators without a sequence."""
    if operator not in SEQUENCES:
        return "", None
    use = sample(f"use {key}", [use for use in SIMPLE_USES if usable(use, places, opset)])
    return use, SIMPLE_USES[use]


def sampled_use(
    split: Stated, keepdims: bool, places: tuple[str, ...], opset: int, key: str
) -> tuple[str, Any]:
    """Sample a use and its arguments."""
    fitting = [
        (use, option)
        for use in USES[1:]
        if usable(use, places, opset)
        for option in options(use, split, keepdims)
    ]
    chosen = sample(f"use {key}", sorted({use for use, _ in fitting}))
    return sample(f"option {key}", [entry for entry in fitting if entry[0] == chosen])


def option_text(option: object) -> str:
    """Return the option of a use as a part of an id."""
    if isinstance(option, tuple):
        positions, is_runtime = option
        text = ".".join(str(position).replace("-", "m") for position in positions)
        return f"-at{text}{'-runtime' if is_runtime else ''}"
    return "" if option is None else f"-{option}".replace("--", "-m")
