"""The operators that OpenVINO's import leaves to this package, each with its conversion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from openvino.frontend.onnx import ConversionExtension

from tensorsplit.core.records import operators
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.core.resolve import bind
from tensorsplit.openvino.given_nodes import read
from tensorsplit.openvino.node_maker import Value
from tensorsplit.openvino.sequence_conversions import (
    concat_from_sequence,
    sequence_at,
    sequence_length,
    split_to_sequence,
)
from tensorsplit.openvino.split_conversions import parts, uncounted_parts

Conversion: TypeAlias = Callable[[Any], list[Value]]


def conversions() -> list[Any]:
    """An extension for each operator."""
    made = [ConversionExtension(name, convert) for name, convert in _SEQUENCES.items()]
    records = operators.values()
    names = {
        record.name for record in records if record.vendor == "onnx" and not record.is_sequence
    }
    made += [ConversionExtension(name, _split(name, "onnx")) for name in sorted(names)]
    made += [
        ConversionExtension(record.name, DOMAIN, _split(record.name, record.vendor))
        for record in records
        if record.vendor == "openvino"
    ]
    return made


_SEQUENCES = {
    "SplitToSequence": split_to_sequence,
    "SequenceAt": sequence_at,
    "SequenceLength": sequence_length,
    "ConcatFromSequence": concat_from_sequence,
}


def _split(name: str, vendor: str) -> Conversion:
    def convert(context: Any) -> list[Value]:
        given = read(context, name, vendor)
        operator = given.operator
        lengths = next(
            (given.values[e.operand] for e in operator.lengths if e.operand in given.values), None
        )
        if not given.is_counted or (lengths is not None and _is_uncounted(lengths)):
            return uncounted_parts(given, lengths)
        intent = bind(operator, given.operands)
        return parts(intent, given.data, given.values.get(operator.axis), lengths)

    return convert


def _is_uncounted(lengths: Value) -> bool:
    shape = lengths.get_partial_shape()
    return shape.rank.is_dynamic or (len(shape) == 1 and shape[0].is_dynamic)
