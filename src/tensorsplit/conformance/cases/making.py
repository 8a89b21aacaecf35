"""Cases from what their models say."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

from tensorsplit.conformance.case import PARTS, REFUSAL, Case, Cut
from tensorsplit.conformance.cases.versions import COMMON, COMMON_IN_SEQUENCES, SPLITS
from tensorsplit.conformance.data import ALLOWED
from tensorsplit.conformance.models.ir_model import IrModel
from tensorsplit.conformance.models.ir_model import build as build_ir
from tensorsplit.conformance.models.onnx_model import SplitModel
from tensorsplit.conformance.models.splits import build as build_onnx

_T = TypeVar("_T")


def onnx_case(
    model: SplitModel,
    name: str,
    rule: str,
    *,
    shape_class: str = "static",
    spelling: str = "",
    decision: str = "",
) -> Case:
    """A case of an ONNX model.

    Args:
        model: What the model says.
        name: The last part of the id; it tells the case from others that say the same.
        rule: What is tested.
        shape_class: What is declared of the shape.
        spelling: How the lengths are said, if not as the operand is spelled.
        decision: The decision that it is about.
    """
    spelling = spelling or (model.operand.spelling if model.operand else "attribute")
    place = ".".join(model.places) or "graph"
    use = f"/{model.use}" if model.use else ""
    rank = len(model.shape)
    return Case(
        id=f"{model.operator}/{model.element_type}/{shape_class}-r{rank}/{spelling}/{place}{use}/"
        f"{name}-o{model.opset}",
        operator=model.operator,
        element_type=model.element_type,
        shape_class=shape_class,
        rank=rank,
        spelling=spelling,
        place=model.places[0] if model.places else "graph",
        use=model.use,
        rule=rule,
        decision=decision,
        expects=REFUSAL if model.sizes is None else PARTS,
        cut=None
        if model.sizes is None
        else Cut(model.shape, model.axis, model.sizes, model.keepdims),
        model_format="onnx",
        opset=model.opset,
        recipe=partial(build_onnx, model),
    )


def ir_case(
    model: IrModel,
    name: str,
    rule: str,
    *,
    shape_class: str = "static",
    decision: str = "",
) -> Case:
    """A case of an OpenVINO IR.

    Args:
        model: What the model says.
        name: The last part of the id; it tells the case from others that say the same.
        rule: What is tested.
        shape_class: What is declared of the shape.
        decision: The decision that it is about.
    """
    spelling = model.lengths.spelling if model.lengths else "attribute"
    rank = len(model.shape)
    return Case(
        id=f"{model.operator}/{model.element_type}/{shape_class}-r{rank}/{spelling}/graph/{name}",
        operator=model.operator,
        element_type=model.element_type,
        shape_class=shape_class,
        rank=rank,
        spelling=spelling,
        place="graph",
        use="",
        rule=rule,
        decision=decision,
        expects=REFUSAL if model.sizes is None else PARTS,
        cut=None if model.sizes is None else Cut(model.shape, model.cut_axis, model.sizes),
        model_format="ir",
        opset=1,
        recipe=partial(build_ir, model),
    )


def draw(key: str, options: Sequence[_T]) -> _T:
    """One of the options, always the same for a key, whatever other cases there are.

    What is drawn is part of the id as far as it matters, so that an id that is gone after a change
    of the options is no other case under the same name.
    """
    return options[zlib.crc32(key.encode()) % len(options)]


def common_type(operator: str, key: str) -> str:
    """An element type that the operator version and most engines have."""
    common = COMMON if operator in SPLITS else COMMON_IN_SEQUENCES
    return draw(f"type {key}", [name for name in common if name in ALLOWED[operator]])


def spell_lengths(lengths: Sequence[Any]) -> str:
    """Lengths as a part of an id; many equal ones are counted."""
    text = ".".join(f"{length}".replace("-", "m") for length in lengths)
    return text if len(text) <= 16 else f"{len(lengths)}parts"
