"""Every element type of every operator version, in numbers that are plain and in extreme ones."""

from __future__ import annotations

from collections.abc import Iterator

from tensorsplit.conformance.case import Case
from tensorsplit.conformance.cases.making import ir_case, onnx_case
from tensorsplit.conformance.cases.sentences import rule
from tensorsplit.conformance.cases.versions import OPSETS, SPLITS
from tensorsplit.conformance.data import ALLOWED, WIDE, has_extremes
from tensorsplit.conformance.models.ir_model import IrModel, IrOperand
from tensorsplit.conformance.models.onnx_model import Operand, SplitModel

_SHAPE = (2, 7)
_CUTS = {"uneven": (2, 5), "many": (1, 3, 1, 2)}


def cases() -> Iterator[Case]:
    """The cases of this group."""
    for operator in OPSETS:
        for element_type in ALLOWED[operator]:
            yield from _of_type(operator, element_type)
    for element_type in ALLOWED["openvino.VariadicSplit-1"]:
        yield from _of_ir_type(element_type)


def _decision(element_type: str, extreme: bool) -> str:
    if element_type == "string":
        return "D17"
    return "D16" if extreme and element_type in WIDE else ""


def _of_type(operator: str, element_type: str) -> Iterator[Case]:
    opsets = OPSETS[operator]
    is_split = operator in SPLITS
    for extreme in (False, True)[: 1 + has_extremes(element_type)]:
        for number, (name, sizes) in enumerate(_CUTS.items()):
            has_attribute = is_split and opsets[0] < 13
            model = SplitModel(
                operator=operator,
                opset=opsets[number % len(opsets)],
                element_type=element_type,
                shape=_SHAPE,
                declared=_SHAPE,
                attributes={"axis": 1, **({"split": sizes} if has_attribute else {})},
                operand=None if has_attribute else Operand(sizes, "initializer"),
                outputs=len(sizes) if is_split else 1,
                axis=1,
                sizes=sizes,
                use="" if is_split else "output",
                extreme=extreme,
            )
            yield onnx_case(
                model,
                f"{name}-{'extreme' if extreme else 'plain'}",
                rule(operator, "types"),
                decision=_decision(element_type, extreme),
            )


def _of_ir_type(element_type: str) -> Iterator[Case]:
    for extreme in (False, True)[: 1 + has_extremes(element_type)]:
        tail = "extreme" if extreme else "plain"
        decision = _decision(element_type, extreme)
        for name, sizes in _CUTS.items():
            operator = "openvino.VariadicSplit-1"
            model = IrModel(
                operator=operator,
                element_type=element_type,
                shape=_SHAPE,
                declared=_SHAPE,
                axis=IrOperand(1),
                lengths=IrOperand(sizes),
                outputs=len(sizes),
                cut_axis=1,
                sizes=sizes,
                extreme=extreme,
            )
            yield ir_case(model, f"{name}-{tail}", rule(operator, "any-type"), decision=decision)
        operator = "openvino.Split-1"
        model = IrModel(
            operator=operator,
            element_type=element_type,
            shape=(2, 9),
            declared=(2, 9),
            axis=IrOperand(1),
            num_splits=3,
            outputs=3,
            cut_axis=1,
            sizes=(3, 3, 3),
            extreme=extreme,
        )
        yield ir_case(model, f"equal-{tail}", rule(operator, "any-type"), decision=decision)
