"""The ONNX records: Split-1, 2, 11, 13, 18 and SplitToSequence-11, 24."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tensorsplit.core.rules import ceil, chunk, equal, explicit, ones
from tensorsplit.core.schema import Attribute, Lengths, Operator, Parameter, TypeConstraint

NEWEST_OPSET = 28
"""The newest opset of the ONNX domain that these records were compared with."""

FLOATS = ("float16", "float", "double")
CLASSIC = (
    *("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "float", "double", "string", "bool", "complex64", "complex128"),
)
WITH_BFLOAT16 = (*CLASSIC[:8], "bfloat16", *CLASSIC[8:])


def _typed(name: str, form: str, elements: tuple[str, ...], description: str) -> TypeConstraint:
    types = tuple(form.format(element) for element in elements)
    return TypeConstraint(name, types, frozenset(elements), description=description)


def _data(elements: tuple[str, ...]) -> TypeConstraint:
    return _typed("T", "tensor({})", elements, "the data and the parts")


def _newer(record: Operator, version: int, summary: str, **changes: Any) -> Operator:
    """Derive the next version: what is not named is as before; notes are added."""
    page = record.source.rpartition("-")[0]
    changes["notes"] = {**record.notes, **changes.get("notes", {})}
    source = f"{page}-{version}"
    return replace(record, since_version=version, source=source, summary=summary, **changes)


_AXIS = Attribute("axis", "INT", default=0, description="the axis to split")
_SPLIT_INTS = Attribute("split", "INTS", description="the length of each part")
_NUM_OUTPUTS = Attribute(
    "num_outputs", "INT", description="the number of parts; the last one may be smaller"
)
_DATA = Parameter("input", "T", description="the tensor to split")
_SPLIT_INPUT = Parameter(
    "split", "tensor(int64)", "optional", "the length of each part, each >= 0, summing to the axis"
)
_FROM_ATTRIBUTE = Lengths("split", {1: explicit}, "attribute")
_FROM_INPUT = Lengths("split", {1: explicit}, "input")
_FROM_COUNT = Lengths("num_outputs", {0: ceil}, "attribute")

SPLIT_1 = Operator(
    vendor="onnx",
    name="Split",
    since_version=1,
    domain="",
    source="https://onnx.ai/onnx/operators/onnx__Split.html#split-1",
    summary="Splits a float tensor along an axis. The lengths come from the attribute, or from a"
    " second input of the data's own type, or the parts are equal.",
    attributes=(replace(_AXIS, default=None), _SPLIT_INTS),
    inputs=(_DATA, Parameter("split", "T", "optional", "the length of each part, as floats")),
    outputs=(Parameter("outputs...", "T", "variadic", "the parts, in order"),),
    type_constraints=(_data(FLOATS),),
    lengths=(_FROM_ATTRIBUTE, _FROM_INPUT),
    absent=equal,
    negative_axis=False,
    has_shape_inference=False,
    notes={
        "lengths": "attribute `split`, or second input `split` holding floats; not both",
        "no lengths": "equal parts, one for each output; refused where the dimension is not"
        " divisible",
        "negative axis": "not in the text; counted from the back, with a warning",
    },
)

SPLIT_2 = _newer(
    SPLIT_1,
    2,
    "Splits a tensor along an axis, into the lengths of the attribute `split`, or equally.",
    attributes=(_AXIS, _SPLIT_INTS),
    inputs=(_DATA,),
    outputs=(Parameter("outputs", "T", "variadic", "the parts, in order"),),
    type_constraints=(_data(CLASSIC),),
    lengths=(_FROM_ATTRIBUTE,),
    has_shape_inference=True,
    notes={"lengths": "attribute `split`"},
)

SPLIT_11 = _newer(
    SPLIT_2,
    11,
    "As Split-2; a negative axis counts from the back, and lengths are >= 0.",
    negative_axis=True,
    notes={
        "lengths": "attribute `split`, each >= 0",
        "negative axis": "counts from the back",
    },
)

SPLIT_13 = _newer(
    SPLIT_11,
    13,
    "As Split-11, but the lengths are an optional int64 input, known at run time at the latest.",
    attributes=(_AXIS,),
    inputs=(_DATA, _SPLIT_INPUT),
    type_constraints=(_data(WITH_BFLOAT16),),
    lengths=(_FROM_INPUT,),
    notes={"lengths": "optional input `split`, int64, each >= 0"},
)

SPLIT_18 = _newer(
    SPLIT_13,
    18,
    "As Split-13, but without lengths the number of parts is the attribute `num_outputs`, and the"
    " last part may be smaller.",
    attributes=(_AXIS, _NUM_OUTPUTS),
    lengths=(_FROM_INPUT, _FROM_COUNT),
    absent=None,
    notes={
        "lengths": "input `split` or attribute `num_outputs`, exactly one",
        "no lengths": "`num_outputs` n: parts of ceil(d/n), the last smaller, none below 0",
    },
)


def _of_sequences(elements: tuple[str, ...]) -> tuple[TypeConstraint, ...]:
    return (
        _typed("T", "tensor({})", elements, "the data"),
        _typed("I", "tensor({})", ("int32", "int64"), "the lengths"),
        _typed("S", "seq(tensor({}))", elements, "the parts"),
    )


_KEEPDIMS = Attribute(
    "keepdims",
    "INT",
    default=1,
    description="whether parts of length 1 keep the axis; ignored if `split` is given",
)

SPLIT_TO_SEQUENCE_11 = Operator(
    vendor="onnx",
    name="SplitToSequence",
    since_version=11,
    domain="",
    source="https://onnx.ai/onnx/operators/onnx__SplitToSequence.html#splittosequence-11",
    summary="Splits a tensor into a sequence: chunks of one length, given lengths, or ones.",
    attributes=(_AXIS, _KEEPDIMS),
    inputs=(
        _DATA,
        Parameter(
            "split", "I", "optional", "a scalar is the length of each chunk, a list the lengths"
        ),
    ),
    outputs=(Parameter("output_sequence", "S", description="the parts, in order"),),
    type_constraints=_of_sequences(CLASSIC),
    lengths=(Lengths("split", {0: chunk, 1: explicit}, "input"),),
    absent=ones,
    keepdims="keepdims",
    is_sequence=True,
    notes={
        "lengths": "optional input `split`: a scalar > 0 is the chunk length, a list the"
        " lengths, zeros allowed",
        "no lengths": "parts of length 1; `keepdims` 0 drops the axis",
        "negative axis": "counts from the back",
    },
)

SPLIT_TO_SEQUENCE_24 = _newer(
    SPLIT_TO_SEQUENCE_11,
    24,
    "As SplitToSequence-11, for bfloat16 too.",
    type_constraints=_of_sequences(WITH_BFLOAT16),
)

OPERATORS = (
    *(SPLIT_1, SPLIT_2, SPLIT_11, SPLIT_13, SPLIT_18),
    *(SPLIT_TO_SEQUENCE_11, SPLIT_TO_SEQUENCE_24),
)
