"""The OpenVINO records: VariadicSplit-1 and Split-1."""

from __future__ import annotations

from tensorsplit.core.rules import equal, remainder
from tensorsplit.core.schema import Attribute, Lengths, Operator, Parameter, TypeConstraint

DOMAIN = "org.openvinotoolkit"
"""The domain under which ONNX models hold OpenVINO's own operators."""

ELEMENT_TYPES = {
    "boolean": "bool",
    "bf16": "bfloat16",
    "f16": "float16",
    "f32": "float",
    "f64": "double",
    "f4e2m1": "float4e2m1",
    "f8e4m3": "float8e4m3fn",
    "f8e5m2": "float8e5m2",
    "f8e8m0": "float8e8m0",
    "nf4": "nf4",
    "string": "string",
    "i4": "int4",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u1": "uint1",
    "u2": "uint2",
    "u3": "uint3",
    "u4": "uint4",
    "u6": "uint6",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
}
"""OpenVINO's element types, and what this package calls them."""

_INTEGERS = {
    name: element
    for name, element in ELEMENT_TYPES.items()
    if name[0] in "iu" and name[1:].isdigit()
}
_ANY = TypeConstraint(
    "T1",
    tuple(ELEMENT_TYPES),
    frozenset(ELEMENT_TYPES.values()),
    any=True,
    description="any type the engine supports",
)
_INTEGER = TypeConstraint(
    "T2", tuple(_INTEGERS), frozenset(_INTEGERS.values()), description="any integer type"
)
_PAGES = (
    "https://docs.openvino.ai/2025/documentation/openvino-ir-format/operation-sets/"
    "operation-specs/movement"
)
_DATA = Parameter("data", "T1", description="the tensor to split")
_PARTS = (Parameter("outputs", "T1", "variadic", "the parts, in order"),)

VARIADIC_SPLIT_1 = Operator(
    vendor="openvino",
    name="VariadicSplit",
    since_version=1,
    domain="opset1",
    category="Data movement",
    source=f"{_PAGES}/variadic-split-1.html",
    summary="Splits a tensor along an axis into given lengths, one of which may be the remainder.",
    inputs=(
        _DATA,
        Parameter("axis", "T2", description="the axis: a scalar, or one element in a list"),
        Parameter(
            "split_lengths", "T2", description="the length of each part; one may be -1, the rest"
        ),
    ),
    outputs=_PARTS,
    type_constraints=(_ANY, _INTEGER),
    axis_default=None,
    axis_ranks=(0, 1),
    lengths=(Lengths("split_lengths", {1: remainder}, "input"),),
    notes={
        "lengths": "input `split_lengths`, any integer type; one -1 stands for the remainder",
        "no lengths": "refused",
        "negative axis": "counts from the back",
    },
)

SPLIT_1 = Operator(
    vendor="openvino",
    name="Split",
    since_version=1,
    domain="opset1",
    category="Data movement",
    source=f"{_PAGES}/split-1.html",
    summary="Splits a tensor along an axis into a number of equal parts.",
    attributes=(
        Attribute("num_splits", "INT", required=True, description="the number of equal parts"),
    ),
    inputs=(_DATA, Parameter("axis", "T2", description="the axis: a scalar")),
    outputs=_PARTS,
    type_constraints=(_ANY, _INTEGER),
    axis_default=None,
    lengths=(Lengths("num_splits", {0: equal}, "attribute"),),
    notes={
        "lengths": "attribute `num_splits`, which must divide the dimension",
        "no lengths": "refused",
        "negative axis": "counts from the back",
    },
)

OPERATORS = (VARIADIC_SPLIT_1, SPLIT_1)
