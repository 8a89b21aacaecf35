"""Split nodes of a model: from a node and facts about its inputs to its intent.

Static checks and execution both bind here, so that they can't disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from tensorsplit import arrays
from tensorsplit.arrays import numpy as numpy_arrays
from tensorsplit.arrays.prepared import counted
from tensorsplit.core import resolve
from tensorsplit.core.dimensions import is_known
from tensorsplit.core.errors import (
    MISSING_OPERAND,
    NOT_AN_ARRAY,
    OPERAND_TYPE,
    OUTPUT_COUNT,
    UNKNOWN_OPERAND,
    SplitError,
    short_name,
    show,
)
from tensorsplit.core.operands import Operand
from tensorsplit.core.resolve import Intent, check_element_type, plan
from tensorsplit.core.schema import Operator
from tensorsplit.model.graph.calls import Attributes
from tensorsplit.model.graph.facts import (
    ABSENT,
    UNKNOWN,
    Fact,
    Other,
    SequenceFact,
    Tensor,
    declared,
)
from tensorsplit.model.graph.held_tensors import check_constant, constant
from tensorsplit.model.graph.split_records import record_of
from tensorsplit.model.graph.tensors import Array

Known: TypeAlias = "Fact | Array | list[Any] | None"
"""What is known of an input: a fact, an array, the list of a sequence, or None if it is absent."""


def bind(
    node: ir.Node,
    opset: int,
    inputs: Sequence[Known] | None = None,
    attributes: Attributes | None = None,
) -> Intent:
    """Return the intent of a split node, as far as it is known without its data.

    Args:
        node: The node.
        opset: The opset of ONNX's own domain there.
        inputs: What is known of each input. None for what the constants and the declared types of
            the model tell.
        attributes: Its attributes in one call of the function around it, from `attributes_of`. None
            for those that it has; one that refers to the function's is known only at run time.

    Raises:
        SplitError: TS101 to TS107, TS305, TS502.
    """
    known: list[Known]
    if inputs is None:
        known = [None if value is None else UNKNOWN for value in node.inputs[:1]]
        known += [None if value is None else _declared(value) for value in node.inputs[1:]]
    else:
        known = [
            None if value is None or given is ABSENT else given
            for value, given in zip(node.inputs, inputs, strict=True)
        ]
    record, count = record_of(node, opset), len(node.outputs)
    try:
        given = node.attributes if attributes is None else attributes
        operands = [(short_name(name), _attribute(name, held)) for name, held in given.items()]
        operands += _inputs(record, known)
        if count > 1 and record.outputs[0].option != "variadic":
            raise SplitError(
                OUTPUT_COUNT,
                f"the node has {count} outputs",
                "give it one output, the sequence",
                parameter=record.outputs[0].name,
            )
        intent = _bind_once(record, tuple(operands), count)
        names = [entry.name for entry in record.inputs]
        if intent.given is None and intent.source in names[: len(known)] and not record.is_sequence:
            position = names.index(intent.source)
            lengths = known[position]
            if isinstance(lengths, Tensor) and lengths.shape and is_known(lengths.shape[0]):
                try:
                    resolve.check_count(lengths.shape[0], intent)
                except SplitError:
                    check_constant(node.inputs[position])  # that comes first
                    raise
    except SplitError as error:
        raise error.located(operator=record.id) from None
    return intent


_bind_once = lru_cache(maxsize=256)(resolve.bind)
"""A model repeats the same few splits, and each is bound several times."""


def _declared(value: ir.Value) -> Known:
    """Return the fact about an input: its value if constant, else its declared type."""
    known = constant(value)
    return declared(value) if known is None else known


_RANKS = {ir.AttributeType.INT: 0, ir.AttributeType.INTS: 1}


def _attribute(name: str, attribute: ir.Attr) -> Operand:
    rank, value = _RANKS.get(attribute.type), attribute.value
    if rank is not None and attribute.is_ref():
        return Operand(None, rank, None, "attribute")
    values = (value,) if rank == 0 else tuple(value) if rank else ("",)
    if all(type(item) is int for item in values):
        return Operand(values, rank, None, "attribute")
    seen = attribute.type.name if rank is None else show(value)
    fix = "give it as INT or INTS"
    raise SplitError(OPERAND_TYPE, f"the attribute is {seen}", fix, parameter=short_name(name))


def _inputs(record: Operator, inputs: Sequence[Known]) -> list[tuple[str, Operand]]:
    if not inputs or inputs[0] is None:
        raise SplitError(
            MISSING_OPERAND,
            "the node has no data",
            "give it a tensor",
            parameter=record.inputs[0].name,
        )
    if len(inputs) > len(record.inputs):  # blank ones count, for onnx and engines
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
    if isinstance(value, Tensor):
        rank = None if value.shape is None else len(value.shape)
        element_type = None if value.element_type is None else value.element_type.name.lower()
        return Operand(value.values, rank, element_type, "input")
    if isinstance(value, Other):
        return Operand(None, None, None, "input")
    if not isinstance(value, np.ndarray):
        raise SplitError(
            OPERAND_TYPE, f"it is {_kind(value)}", "give a tensor of integers", parameter=name
        )
    values, rank, element_type = numpy_arrays.operand_parts(value, name)
    return Operand(values, rank, element_type, "input")


def _kind(value: object) -> str:
    is_sequence = isinstance(value, (list, SequenceFact))
    return "a sequence" if is_sequence else f"a {type(value).__name__}"


def execute(intent: Intent, data: object) -> list[Any]:
    """Return the outputs of a node: views of the data, or one list of them for a sequence.

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
