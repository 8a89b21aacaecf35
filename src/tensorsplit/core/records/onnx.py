"""The ONNX records: Split-1, 2, 11, 13, 18 and SplitToSequence-11, 24."""

from __future__ import annotations

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


def _tensors(name: str, elements: tuple[str, ...], description: str) -> TypeConstraint:
    types = tuple(f"tensor({element})" for element in elements)
    return TypeConstraint(name, types, frozenset(elements), description=description)


def _sequences(name: str, elements: tuple[str, ...], description: str) -> TypeConstraint:
    types = tuple(f"seq(tensor({element}))" for element in elements)
    return TypeConstraint(name, types, frozenset(elements), description=description)


def _split(
    version: int,
    elements: tuple[str, ...],
    summary: str,
    *,
    attributes: tuple[Attribute, ...],
    lengths: tuple[Lengths, ...],
    split_input: Parameter | None = None,
    **facts: object,
) -> Operator:
    data = Parameter("input", "T", description="the tensor to split")
    return Operator(
        vendor="onnx",
        name="Split",
        since_version=version,
        domain="",
        source=f"https://onnx.ai/onnx/operators/onnx__Split.html#split-{version}",
        summary=summary,
        attributes=attributes,
        inputs=(data, split_input) if split_input else (data,),
        outputs=(
            Parameter(
                "outputs..." if version == 1 else "outputs", "T", "variadic", "the parts, in order"
            ),
        ),
        type_constraints=(_tensors("T", elements, "the data and the parts"),),
        lengths=lengths,
        **facts,  # type: ignore[arg-type]
    )


def _axis(default: int | None = 0) -> Attribute:
    return Attribute("axis", "INT", default=default, description="the axis to split")


_SPLIT_INTS = Attribute("split", "INTS", description="the length of each part")
_NUM_OUTPUTS = Attribute(
    "num_outputs", "INT", description="the number of parts; the last one may be smaller"
)
_SPLIT_INPUT = Parameter(
    "split", "tensor(int64)", "optional", "the length of each part, each >= 0, summing to the axis"
)
_FROM_ATTRIBUTE = Lengths("split", {1: explicit}, "attribute")
_FROM_INPUT = Lengths("split", {1: explicit}, "input")
_FROM_COUNT = Lengths("num_outputs", {0: ceil}, "attribute")
_EQUAL = "equal parts, one for each output; refused where the dimension is not divisible"

SPLIT_1 = _split(
    1,
    FLOATS,
    "Splits a float tensor along an axis. The lengths come from the attribute, or from a second"
    " input of the data's own type, or the parts are equal.",
    attributes=(_axis(None), _SPLIT_INTS),
    split_input=Parameter("split", "T", "optional", "the length of each part, as floats"),
    lengths=(_FROM_ATTRIBUTE, _FROM_INPUT),
    absent=equal,
    negative_axis=False,
    has_shape_inference=False,
    notes={
        "lengths": "attribute `split`, or second input `split` holding floats; not both",
        "no lengths": _EQUAL,
        "negative axis": "not in the text; counted from the back, with a warning",
    },
)

SPLIT_2 = _split(
    2,
    CLASSIC,
    "Splits a tensor along an axis, into the lengths of the attribute `split`, or equally.",
    attributes=(_axis(), _SPLIT_INTS),
    lengths=(_FROM_ATTRIBUTE,),
    absent=equal,
    negative_axis=False,
    notes={
        "lengths": "attribute `split`",
        "no lengths": _EQUAL,
        "negative axis": "not in the text; counted from the back, with a warning",
    },
)

SPLIT_11 = _split(
    11,
    CLASSIC,
    "As Split-2; a negative axis counts from the back, and lengths are >= 0.",
    attributes=(_axis(), _SPLIT_INTS),
    lengths=(_FROM_ATTRIBUTE,),
    absent=equal,
    notes={
        "lengths": "attribute `split`, each >= 0",
        "no lengths": _EQUAL,
        "negative axis": "counts from the back",
    },
)

SPLIT_13 = _split(
    13,
    WITH_BFLOAT16,
    "As Split-11, but the lengths are an optional int64 input, known at run time at the latest.",
    attributes=(_axis(),),
    split_input=_SPLIT_INPUT,
    lengths=(_FROM_INPUT,),
    absent=equal,
    notes={
        "lengths": "optional input `split`, int64, each >= 0",
        "no lengths": _EQUAL,
        "negative axis": "counts from the back",
    },
)

SPLIT_18 = _split(
    18,
    WITH_BFLOAT16,
    "As Split-13, but without lengths the number of parts is the attribute `num_outputs`, and the"
    " last part may be smaller.",
    attributes=(_axis(), _NUM_OUTPUTS),
    split_input=_SPLIT_INPUT,
    lengths=(_FROM_INPUT, _FROM_COUNT),
    notes={
        "lengths": "input `split` or attribute `num_outputs`, exactly one",
        "no lengths": "`num_outputs` n: parts of ceil(d/n), the last smaller, none below 0",
        "negative axis": "counts from the back",
    },
)


def _split_to_sequence(version: int, elements: tuple[str, ...], summary: str) -> Operator:
    return Operator(
        vendor="onnx",
        name="SplitToSequence",
        since_version=version,
        domain="",
        source="https://onnx.ai/onnx/operators/onnx__SplitToSequence.html"
        f"#splittosequence-{version}",
        summary=summary,
        attributes=(
            _axis(),
            Attribute(
                "keepdims",
                "INT",
                default=1,
                description="whether parts of length 1 keep the axis; ignored if `split` is given",
            ),
        ),
        inputs=(
            Parameter("input", "T", description="the tensor to split"),
            Parameter(
                "split", "I", "optional", "a scalar is the length of each chunk, a list the lengths"
            ),
        ),
        outputs=(Parameter("output_sequence", "S", description="the parts, in order"),),
        type_constraints=(
            _tensors("T", elements, "the data"),
            _tensors("I", ("int32", "int64"), "the lengths"),
            _sequences("S", elements, "the parts"),
        ),
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


SPLIT_TO_SEQUENCE_11 = _split_to_sequence(
    11, CLASSIC, "Splits a tensor into a sequence: chunks of one length, given lengths, or ones."
)
SPLIT_TO_SEQUENCE_24 = _split_to_sequence(
    24, WITH_BFLOAT16, "As SplitToSequence-11, for bfloat16 too."
)

OPERATORS = (
    *(SPLIT_1, SPLIT_2, SPLIT_11, SPLIT_13, SPLIT_18),
    *(SPLIT_TO_SEQUENCE_11, SPLIT_TO_SEQUENCE_24),
)
