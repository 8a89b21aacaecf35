"""The layers that calculate numbers: what each operation of a formula is in an IR."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from tensorsplit.core.records.openvino import ELEMENT_TYPES

LayerOperand: TypeAlias = "int | tuple[int, ...] | LayerType"
"""An operand of the operation by its position, a list of constants, or a layer of its own."""

_FAR = (1 << 31) - 1

_OTHERWISE = {"boolean": "BOOL", "u1": "BIN", "f16": "FP16", "f32": "FP32", "f64": "FP64"}

PRECISIONS: Mapping[str, str] = MappingProxyType(
    {name: _OTHERWISE.get(name, name.upper()) for name in ELEMENT_TYPES}
)
"""How ports name each of OpenVINO's element types."""


class LayerType(NamedTuple):
    """A kind of layer, and what feeds it.

    Attributes:
        type: Its type, such as ``Add``.
        version: The opset that it is of.
        operands: What feeds its inputs, in order.
        attributes: Those of its ``<data>`` element, as text.
        precision: The element type of its outputs, as ports name it; empty if it is not known.
    """

    type: str
    version: str
    operands: tuple[LayerOperand, ...]
    attributes: Mapping[str, str] = MappingProxyType({})
    precision: str = "I64"


def _elementwise(
    type: str, precision: str = "I64", operands: tuple[LayerOperand, ...] = (0, 1)
) -> LayerType:
    return LayerType(type, "opset1", operands, {"auto_broadcast": "numpy"}, precision)


def _scalar(operand: LayerOperand) -> LayerType:
    return LayerType("Squeeze", "opset1", (operand, (0,)))


def _slice(start: LayerOperand, end: LayerOperand) -> LayerType:
    return LayerType("Slice", "opset8", (0, start, end, (1,)))


def _gather(data: LayerOperand, axis: LayerOperand, precision: str = "I64") -> LayerType:
    return LayerType("Gather", "opset8", (data, 1, axis), {"batch_dims": "0"}, precision)


def _quotient(dividend: LayerOperand, precision: str) -> LayerType:
    attributes = {"auto_broadcast": "numpy", "m_pythondiv": "false"}
    return LayerType("Divide", "opset1", (dividend, 1), attributes, precision)


def converted(element_type: str) -> LayerType:
    """Return a layer that converts a tensor to an element type."""
    given = {"destination_type": element_type}
    return LayerType("Convert", "opset1", (0,), given, PRECISIONS[element_type])


_INT64 = converted("i64")
_FORWARD = {"exclusive": "false", "reverse": "false"}
_SHAPE = LayerType("ShapeOf", "opset3", (0,), {"output_type": "i64"})

LAYER_TYPES: Mapping[str, LayerType] = MappingProxyType(
    {
        "add": _elementwise("Add"),
        "subtract": _elementwise("Subtract"),
        "multiply": _elementwise("Multiply"),
        "near_quotient": _quotient(0, "I64"),
        "minimum": _elementwise("Minimum"),
        "maximum": _elementwise("Maximum"),
        "less": _elementwise("Less", "BOOL"),
        "equal": _elementwise("Equal", "BOOL"),
        "both": _elementwise("LogicalAnd", "BOOL"),
        "choose": _elementwise("Select", operands=(0, 1, 2)),
        "one_if": _INT64,
        "near_total": LayerType("ReduceSum", "opset1", (0, (0,)), {"keep_dims": "true"}),
        "sums": LayerType("CumSum", "opset3", (0, _scalar((0,))), _FORWARD),
        "pick": _gather(0, (0,)),
        "head": _slice((0,), 1),
        "tail": _slice(1, (_FAR,)),
        "shaped": LayerType("Reshape", "opset1", (0, 1), {"special_zero": "false"}),
        "size_of": _SHAPE,
        "dimension": _gather(_SHAPE, (0,)),
        "shape": _SHAPE,
        "int64": _INT64,
        "range": LayerType(
            "Range",
            "opset4",
            (
                0,
                _elementwise("Select", operands=(_elementwise("Less", "BOOL"), 1, 0)),
                _scalar((1,)),
            ),
            {"output_type": "i64"},
        ),
        "scalar": _scalar(0),
        "taken": _gather(0, 2, "STRING"),
    }
)
"""What makes each operation of a formula.

Beside those of formulas there are ``shape`` of a tensor, ``int64`` of integers of any type, the
``range`` from one scalar to another, which is empty if that is lower, the ``scalar`` of a number,
and what is ``taken`` out of strings, at positions, on an axis.
"""

JOINED = LayerType("Concat", "opset1", (), {"axis": "0"})
"""What joins any number of lists."""

RESULT = LayerType("Result", "opset1", ())
"""What gives a tensor out of a graph."""

VARIADIC_SPLIT = LayerType("VariadicSplit", "opset1", ())
"""What splits a tensor, on an axis, into lengths; its outputs are of the data's type."""


def turned(precision: str) -> LayerType:
    """Return layers that swap the first two axes of a tensor of rank 3, by way of rank 4."""
    one_more = LayerType("Unsqueeze", "opset1", (0, (3,)), precision=precision)
    moved = LayerType("Transpose", "opset1", (one_more, (1, 0, 2, 3)), precision=precision)
    return LayerType("Squeeze", "opset1", (moved, (3,)), precision=precision)


def negative(precision: str) -> LayerType:
    """Return a layer that gives the negative of a tensor."""
    return LayerType("Negative", "opset1", (0,), precision=precision)


def negative_float() -> LayerType:
    """Return layers that give the negative of a tensor as float32."""
    return LayerType("Negative", "opset1", (converted("f32"),), precision=PRECISIONS["f32"])


def absolute(precision: str) -> LayerType:
    """Return layers that give the larger one of a number and its negative."""
    return _elementwise("Maximum", precision, (0, negative(precision)))


def without_difference(precision: str) -> LayerType:
    """Return layers that compare two numbers by their difference."""
    between, zero = (_elementwise("Subtract", precision, pair) for pair in ((0, 1), (1, 1)))
    return _elementwise("Equal", "BOOL", (between, zero))


def exact_quotient(precision: str) -> LayerType:
    """Return layers that give a quotient of integers, rounded toward zero.

    It divides what leaves no rest, which is right however quotients are rounded.
    """
    rest = _elementwise("Mod", precision)
    return _quotient(_elementwise("Subtract", precision, (0, rest)), precision)


def limit_of_range(precision: str) -> LayerType:
    """Return layers that give the limit of a range; of one that is empty, its start."""
    is_upward = _elementwise("Less", "BOOL", (_elementwise("Subtract", precision, (2, 2)), 2))
    ends = _elementwise("Less", "BOOL", (0, 1)), _elementwise("Less", "BOOL", (1, 0))
    is_inside = _elementwise("Select", "BOOL", (is_upward, *ends))
    return _elementwise("Select", precision, (is_inside, 1, 0))


def repeated(precision: str, first: int, count: int, rank: int) -> LayerType:
    """Return layers that repeat a tensor along some of its axes, by counts of int64 for all."""
    places = tuple(range(first, first + count))
    taken = LayerType("Gather", "opset8", (1, places, (0,)), {"batch_dims": "0"})
    ones = [(1,) * first, (1,) * (rank - first - count)]
    parts: list[LayerOperand] = [each for each in ones if each]
    parts.insert(bool(first), taken)
    return LayerType("Tile", "opset1", (0, JOINED._replace(operands=tuple(parts))), {}, precision)


def copy_of(precision: str) -> LayerType:
    """Return a layer that gives a tensor once more: the larger one of it and itself."""
    return _elementwise("Maximum", precision, (0, 0))


def truth(*, of: bool) -> LayerType:
    """Return a layer that gives true, or false, as a scalar."""
    return converted("boolean")._replace(operands=(_scalar((int(of),)),))


def with_nothing() -> LayerType:
    """Return layers that add a number less itself to others, which the engine can't know then."""
    return _elementwise("Add", operands=(0, _elementwise("Subtract", operands=(1, 1))))


def of_hidden_lengths(precision: str, known: tuple[int, ...]) -> LayerType:
    """Return layers that give a tensor of the same shape, of which the engine knows no length.

    Those that are `known` are given again, with 0 for the others, if there are any.
    """
    columns = LayerType("Unsqueeze", "opset1", (_SHAPE, (1,)))
    sums = LayerType("CumSum", "opset3", (columns, _scalar((1,))), _FORWARD)
    shape = LayerType("Squeeze", "opset1", (sums, (1,)))
    hidden = LayerType("Reshape", "opset1", (0, shape), {"special_zero": "false"}, precision)
    if not known:
        return hidden
    return LayerType("Reshape", "opset1", (hidden, known), {"special_zero": "true"}, precision)


class DeclaredTensor(NamedTuple):
    """A tensor as a Parameter or Const declares it.

    Attributes:
        element_type: Its element type, as OpenVINO names it.
        shape: Its dimensions, with commas between.
        precision: The element type as ports name it.
    """

    element_type: str
    shape: str
    precision: str


def one_round(kind: DeclaredTensor, offset: int) -> str:
    """Return the content of a Loop that carries a tensor by an Identity.

    The condition is a byte of 1 at an offset in the data.
    """
    output = f'<output><port id="{{}}" precision="{kind.precision}" /></output>'
    layers = (
        '<layer id="0" name="given" type="Parameter" version="opset1">'
        f'<data shape="{kind.shape}" element_type="{kind.element_type}" />'
        f"{output.format(0)}</layer>"
        '<layer id="1" name="same" type="Identity" version="opset16">'
        f'<input><port id="0" /></input>{output.format(1)}</layer>'
        '<layer id="2" name="going" type="Const" version="opset1">'
        f'<data element_type="boolean" shape="" offset="{offset}" size="1" />'
        '<output><port id="0" precision="BOOL" /></output></layer>'
        '<layer id="3" name="passed" type="Result" version="opset1">'
        '<input><port id="0" /></input></layer>'
        '<layer id="4" name="condition" type="Result" version="opset1">'
        '<input><port id="0" /></input></layer>'
    )
    ends = ((0, 0, 1), (1, 1, 3), (2, 0, 4))
    edges = "".join(
        f'<edge from-layer="{start}" from-port="{port}" to-layer="{end}" to-port="0" />'
        for start, port, end in ends
    )
    return (
        '<port_map><input external_port_id="2" internal_layer_id="0" />'
        '<output external_port_id="3" internal_layer_id="3" />'
        '<output external_port_id="-1" internal_layer_id="4" purpose="execution_condition" />'
        '</port_map><back_edges><edge from-layer="3" to-layer="0" /></back_edges>'
        f"<body><layers>{layers}</layers><edges>{edges}</edges></body>"
    )
