"""Split nodes of a model: from a node and what is known of its inputs to what it asks for.

Static checks and execution both bind here, so that they can't disagree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Listed
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from tensorsplit import arrays
from tensorsplit.arrays import numpy as numpy_arrays
from tensorsplit.arrays.prepared import counted
from tensorsplit.core import resolve
from tensorsplit.core.errors import (
    MISSING_OPERAND,
    NOT_AN_ARRAY,
    OPERAND_TYPE,
    OUTPUT_COUNT,
    UNKNOWN_OPERAND,
    SplitError,
    short_name,
)
from tensorsplit.core.operands import Operand
from tensorsplit.core.resolve import Intent, check_element_type, plan
from tensorsplit.core.schema import Operator
from tensorsplit.model.graph.facts import ABSENT, Fact, Other, Sequence, Tensor
from tensorsplit.model.graph.nodes import constant, record_of

Known: TypeAlias = "Fact | np.ndarray[Any, Any] | Operand | list[Any] | None"
"""What is known of an input: a fact, an array, an operand, or None for one that is absent."""

UNKNOWN = Operand(None, None, None, "input")
"""An input of which nothing is known yet."""


def bind(
    node: ir.Node,
    opset: int,
    inputs: Listed[Known] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> Intent:
    """What a split node asks for, as far as it can be told without its data.

    An attribute of the node that refers to one of the function around it has the value that the
    call gives; it is absent where neither the call nor a default gives one, and known only at run
    time where the calls are not known.

    Args:
        node: The node.
        opset: The opset of ONNX's own domain there.
        inputs: What is known of each input. None for what the constants and the declared types of
            the model tell.
        attributes: The attributes of the function around the node in one call, defaults among
            them; empty outside of functions, None if the calls are not known.

    Raises:
        SplitError: TS101 to TS107, TS305, TS502.
    """
    known: list[Known]
    if inputs is None:
        known = [None if value is None else operand(value) for value in node.inputs[1:]]
        known = [UNKNOWN if value is not None else None for value in node.inputs[:1]] + known
    else:
        known = [
            None if value is None or given is ABSENT else given
            for value, given in zip(node.inputs, inputs, strict=True)
        ]
    record, count = record_of(node, opset), len(node.outputs)
    try:
        operands = list(_attributes(node, attributes)) + _inputs(record, known)
        if count > 1 and record.outputs[0].option != "variadic":
            raise SplitError(
                OUTPUT_COUNT,
                f"the node has {count} outputs",
                "give it one output, the sequence",
                parameter=record.outputs[0].name,
            )
    except SplitError as error:
        raise error.located(operator=record.id) from None
    return _bind_once(record, tuple(operands), count)


_bind_once = lru_cache(maxsize=256)(resolve.bind)
"""A model repeats the same few splits, and each is bound several times."""


def operand(value: ir.Value) -> Known:
    """What is known of an input: its value if constant, else its declared rank and type."""
    known = constant(value)
    if known is not None:
        return known
    if isinstance(value.type, ir.SequenceType):
        return []
    rank = None if value.shape is None else value.shape.rank()
    element_type = None if value.dtype is None else value.dtype.name.lower()
    return Operand(None, rank, element_type, "input")


def _attributes(node: ir.Node, function: Mapping[str, Any] | None) -> Iterator[tuple[str, Operand]]:
    for name, attribute in node.attributes.items():
        if not attribute.is_ref():
            is_integer = attribute.type.name in _RANKS
            yield _attribute(name, attribute.value if is_integer else attribute.type.name)
        elif function is None:
            yield _attribute(name, open_attribute(attribute))
        elif attribute.ref_attr_name in function:
            yield _attribute(name, function[attribute.ref_attr_name or ""])


def open_attribute(attribute: ir.Attr) -> Any:
    """What a node gives by an attribute that refers to one of unknown calls."""
    rank = _RANKS.get(attribute.type.name)
    return attribute.type.name if rank is None else Operand(None, rank, None, "attribute")


_RANKS = {"INT": 0, "INTS": 1}


def _attribute(name: str, value: Any) -> tuple[str, Operand]:
    name = short_name(name)
    if isinstance(value, Operand):
        return name, value
    if type(value) is int:
        return name, Operand((value,), 0, None, "attribute")
    if isinstance(value, (list, tuple)) and all(type(item) is int for item in value):
        return name, Operand(tuple(value), 1, None, "attribute")
    raise SplitError(
        OPERAND_TYPE,
        f"the attribute is {str(value)[:80]}",
        "give it as INT or INTS",
        parameter=name,
    )


def _inputs(record: Operator, inputs: Listed[Known]) -> list[tuple[str, Operand]]:
    if not inputs or inputs[0] is None:
        raise SplitError(
            MISSING_OPERAND,
            "the node has no data",
            "give it a tensor",
            parameter=record.inputs[0].name,
        )
    if any(value is not None for value in inputs[len(record.inputs) :]):
        ways = [f"{entry.kind} '{entry.operand}'" for entry in record.lengths]
        raise SplitError(
            UNKNOWN_OPERAND,
            f"the node has {len(inputs)} inputs, but this version takes"
            f" {', '.join(repr(entry.name) for entry in record.inputs)}",
            f"give the lengths as {' or '.join(ways)}",
            parameter=record.lengths[0].operand,
        )
    return [
        (entry.name, _operand(entry.name, value))
        for entry, value in zip(record.inputs[1:], inputs[1:], strict=False)
        if value is not None
    ]


def _operand(name: str, value: Known) -> Operand:
    if isinstance(value, Operand):
        return value
    if isinstance(value, Tensor):
        rank = None if value.shape is None else len(value.shape)
        element_type = None if value.element_type is None else value.element_type.name.lower()
        return Operand(value.values, rank, element_type, "input")
    if isinstance(value, Other):
        return UNKNOWN
    if not isinstance(value, np.ndarray):
        raise SplitError(
            OPERAND_TYPE, f"it is {_kind(value)}", "give a tensor of integers", parameter=name
        )
    values, rank, element_type = numpy_arrays.operand_parts(value, name)
    return Operand(values, rank, element_type, "input")


def _kind(value: object) -> str:
    is_sequence = isinstance(value, (list, Sequence))
    return "a sequence" if is_sequence else f"a {type(value).__name__}"


def execute(intent: Intent, data: Any) -> list[Any]:
    """The outputs of a node: views of the data, or one list of them for a sequence.

    Raises:
        SplitError: TS201 to TS309.
    """
    record = intent.operator
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
