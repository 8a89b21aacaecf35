"""Split nodes of a model: from a node and what is known of its inputs to what it asks for.

Static checks and execution both come through here, so that they can't disagree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from onnx import AttributeProto, NodeProto

from tensorsplit import arrays
from tensorsplit.arrays import numpy as numpy_arrays
from tensorsplit.arrays.prepared import counted
from tensorsplit.core.errors import (
    MALFORMED_MODEL,
    MISSING_OPERAND,
    NOT_AN_ARRAY,
    OPERAND_TYPE,
    OUTPUT_COUNT,
    UNKNOWN_OPERAND,
    SplitError,
)
from tensorsplit.core.operands import Operand
from tensorsplit.core.records import in_force, operators
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.core.resolve import Intent, bind, check_element_type, plan
from tensorsplit.core.schema import Operator
from tensorsplit.model.graph.naming import short_name
from tensorsplit.model.graph.walk import domain_name

FAMILY = frozenset(record.name for record in operators.values() if record.vendor == "onnx")
"""The operator types of ONNX's own domain that this package defines."""

VENDOR_SPLIT = operators["openvino.VariadicSplit-1"]
"""The operator of OpenVINO that ONNX models may hold, in OpenVINO's domain."""

Known: TypeAlias = "np.ndarray[Any, Any] | Operand | list[Any] | None"
"""What is known of an input: a run-time value, an `Operand`, or None for one that is absent."""

UNKNOWN = Operand(None, None, None, "input")
"""An input of which nothing is known yet."""


class Call(NamedTuple):
    """What a split node gives to its operator version: the arguments of `resolve.bind`."""

    operator: Operator
    operands: list[tuple[str, Operand]]
    outputs: int


def is_split(node: NodeProto) -> bool:
    """Whether the node is one of the operators of this package."""
    if domain_name(node.domain) == "":
        return node.op_type in FAMILY
    return node.op_type == VENDOR_SPLIT.name and node.domain == DOMAIN


def call_of(
    node: NodeProto,
    opset: int,
    inputs: Sequence[Known] | None = None,
    linked: Mapping[str, Any] | None = None,
) -> Call:
    """What a split node gives to its operator version.

    Args:
        node: The node.
        opset: The opset of the node's domain where it stands.
        inputs: What is known of each input, in the node's order; None where nothing is known of
            any. The first one, the data, is no operand and only has to be there.
        linked: Values, integers or lists of them, of the attributes that stand for an attribute
            of the function that the node belongs to.

    Raises:
        SplitError: TS101 if the operator does not exist at the opset, TS102, TS103, TS105,
            TS305, TS502 for attributes, inputs and outputs that the version does not have.
    """
    vendor = VENDOR_SPLIT.vendor if node.domain == DOMAIN else "onnx"
    record = in_force(node.op_type, opset, vendor=vendor)
    try:
        operands = [*_attributes(node, linked or {}), *_inputs(node, record, inputs)]
        if len(node.output) > 1 and record.outputs[0].option != "variadic":
            raise SplitError(
                OUTPUT_COUNT,
                f"the node has {len(node.output)} outputs",
                "give it one output, the sequence",
                parameter=record.outputs[0].name,
            )
    except SplitError as error:
        raise error.located(operator=record.id) from None
    return Call(record, operands, len(node.output))


def bind_node(
    node: NodeProto,
    opset: int,
    inputs: Sequence[Known] | None = None,
    linked: Mapping[str, Any] | None = None,
) -> Intent:
    """What a split node asks for, as far as it can be told without its data.

    Args:
        node: The node.
        opset: The opset of the node's domain where it stands.
        inputs: As for `call_of`.
        linked: As for `call_of`.

    Raises:
        SplitError: TS101 to TS107, TS305, TS502.
    """
    return bind(*call_of(node, opset, inputs, linked))


def cut(
    node: NodeProto,
    opset: int,
    inputs: Sequence[Known],
    linked: Mapping[str, Any] | None = None,
) -> list[Any]:
    """Run a split node.

    Args:
        node: The node.
        opset: The opset of the node's domain where it stands.
        inputs: The value of each input; None for one that is absent.
        linked: As for `call_of`.

    Returns:
        The value of each output: views of the data, or one list of them for a sequence.

    Raises:
        SplitError: TS101 to TS309, TS502.
    """
    intent = bind_node(node, opset, inputs, linked)
    record = intent.operator
    data = inputs[0]
    if not isinstance(data, np.ndarray):
        raise SplitError(
            NOT_AN_ARRAY,
            f"it is {_kind(data)}",
            "give a tensor",
            operator=record.id,
            parameter=record.inputs[0].name,
        )
    made = counted(plan(intent, data.shape))
    check_element_type(
        record.id, numpy_arrays.element_type(data), made.element_types, record.inputs[0].name
    )
    parts = arrays.execute(made, data, numpy_arrays)
    return [parts] if record.is_sequence else parts


def _attributes(node: NodeProto, linked: Mapping[str, Any]) -> list[tuple[str, Operand]]:
    operands: list[tuple[str, Operand]] = []
    for attribute in node.attribute:
        if attribute.name in dict(operands):
            raise SplitError(
                MALFORMED_MODEL,
                "the node has this attribute more than once",
                "give it once",
                parameter=short_name(attribute.name),
            )
        operands.append((short_name(attribute.name), _attribute(attribute, linked)))
    return operands


def _attribute(attribute: AttributeProto, linked: Mapping[str, Any]) -> Operand:
    if attribute.ref_attr_name:
        value = linked.get(attribute.name)
    elif attribute.type == AttributeProto.INT:
        value = attribute.i
    elif attribute.type == AttributeProto.INTS:
        value = list(attribute.ints)
    else:
        value = AttributeProto.AttributeType.Name(attribute.type)
    if type(value) is int:
        return Operand((value,), 0, None, "attribute")
    if isinstance(value, (list, tuple)) and all(type(item) is int for item in value):
        return Operand(tuple(value), 1, None, "attribute")
    raise SplitError(
        OPERAND_TYPE,
        f"the attribute is {str(value)[:80]}",
        "give it as INT or INTS",
        parameter=short_name(attribute.name),
    )


def _inputs(
    node: NodeProto, record: Operator, inputs: Sequence[Known] | None
) -> list[tuple[str, Operand]]:
    known = [UNKNOWN] * len(node.input) if inputs is None else list(inputs)
    present = [
        bool(name) and value is not None for name, value in zip(node.input, known, strict=True)
    ]
    if not present or not present[0]:
        raise SplitError(
            MISSING_OPERAND,
            "the node has no data",
            "give it a tensor",
            parameter=record.inputs[0].name,
        )
    if any(present[len(record.inputs) :]):
        ways = [f"{entry.spelling} '{entry.operand}'" for entry in record.lengths]
        raise SplitError(
            UNKNOWN_OPERAND,
            f"the node has {len(node.input)} inputs, but this version takes"
            f" {', '.join(repr(entry.name) for entry in record.inputs)}",
            f"give the lengths as {' or '.join(ways)}",
            parameter=record.lengths[0].operand,
        )
    return [
        (entry.name, _operand(entry.name, value))
        for entry, value, given in zip(record.inputs[1:], known[1:], present[1:], strict=False)
        if given
    ]


def _operand(name: str, value: Known) -> Operand:
    if isinstance(value, Operand):
        return value
    if not isinstance(value, np.ndarray):
        raise SplitError(
            OPERAND_TYPE, f"it is {_kind(value)}", "give a tensor of integers", parameter=name
        )
    values, rank, element_type = numpy_arrays.operand_parts(value, name)
    return Operand(values, rank, element_type, "input")


def _kind(value: object) -> str:
    return "a sequence" if isinstance(value, list) else f"a {type(value).__name__}"
