"""Types and shapes through the operators on sequences of tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx_ir as ir

from tensorsplit.core.dimensions import Dim, add, is_known, times
from tensorsplit.core.errors import SEQUENCE_INDEX, SplitError, count_of
from tensorsplit.model.graph.facts import (
    ABSENT,
    UNKNOWN,
    Fact,
    Sequence,
    Tensor,
    join_shapes,
    of_parts,
    tensor_of,
)
from tensorsplit.model.graph.tensors import element_type_of


def _at(_: ir.Node, inputs: list[Fact]) -> list[Fact] | None:
    sequence = _sequence(inputs)
    if sequence is None:
        return None
    index = _position(inputs, 1)
    shape = sequence.part
    if sequence.parts is not None and index is not None:
        if not -len(sequence.parts) <= index < len(sequence.parts):
            return [Tensor(sequence.element_type)]
        shape = sequence.parts[index]
    return [Tensor(sequence.element_type, shape)]


def _length(_: ir.Node, inputs: list[Fact]) -> list[Fact]:
    sequence = _sequence(inputs)
    values = None if sequence is None or sequence.count is None else (sequence.count,)
    return [Tensor(ir.DataType.INT64, (), values)]


def _insert(node: ir.Node, inputs: list[Fact]) -> list[Fact] | None:
    sequence = _sequence(inputs)
    tensor = inputs[1] if len(inputs) > 1 else UNKNOWN
    if sequence is None or not isinstance(tensor, Tensor):
        return None
    at_end = len(node.inputs) < 3 or node.inputs[2] is None
    position = None if at_end else _position(inputs, 2)
    element_type = sequence.element_type or tensor.element_type
    if sequence.parts is not None and (at_end or position is not None):
        parts = list(sequence.parts)
        parts.insert(len(parts) if position is None else position, tensor.shape)
        return [of_parts(element_type, parts)]
    common = tensor.shape if sequence.count == 0 else join_shapes(sequence.part, tensor.shape)
    return [Sequence(element_type, common, add(sequence.count, 1))]


def _erase(node: ir.Node, inputs: list[Fact]) -> list[Fact] | None:
    sequence = _sequence(inputs)
    if sequence is None:
        return None
    at_end = len(node.inputs) < 2 or node.inputs[1] is None
    position = -1 if at_end else _position(inputs, 1)
    if sequence.parts and position is not None:
        parts = list(sequence.parts)
        if -len(parts) <= position < len(parts):
            del parts[position]
            return [of_parts(sequence.element_type, parts, sequence.part)]
    return [Sequence(sequence.element_type, sequence.part, add(sequence.count, -1))]


def _construct(_: ir.Node, inputs: list[Fact]) -> list[Fact] | None:
    tensors = [fact for fact in inputs if isinstance(fact, Tensor)]
    if len(tensors) != len(inputs) or not tensors:
        return None
    known = (fact.element_type for fact in tensors if fact.element_type is not None)
    return [of_parts(next(known, None), [fact.shape for fact in tensors])]


def _empty(node: ir.Node, _: list[Fact]) -> list[Fact]:
    number = integer(node, "dtype", ir.DataType.FLOAT)
    return [of_parts(None if number is None else element_type_of(number), [])]


def _concat(node: ir.Node, inputs: list[Fact]) -> list[Fact] | None:
    sequence = _sequence(inputs)
    axis, new_axis = integer(node, "axis", None), integer(node, "new_axis", 0)
    if sequence is None:
        return None
    if sequence.part is None or axis is None or new_axis is None or sequence.count == 0:
        return [Tensor(sequence.element_type)]
    rank = len(sequence.part) + (1 if new_axis else 0)
    if not -rank <= axis < rank:
        return [Tensor(sequence.element_type)]
    axis %= rank
    before, after = sequence.part[:axis], sequence.part[axis if new_axis else axis + 1 :]
    length = sequence.count if new_axis else _total(sequence, axis)
    return [Tensor(sequence.element_type, (*before, length, *after))]


def _total(sequence: Sequence, axis: int) -> Dim:
    """The sum of a dimension over the tensors."""
    if sequence.parts is None:
        return times(sequence.count, sequence.part[axis] if sequence.part else None)
    total: Dim = 0
    for shape in sequence.parts:
        total = add(total, shape[axis] if shape is not None else None)
    return total


def _identity(_: ir.Node, inputs: list[Fact]) -> list[Fact] | None:
    return inputs[:1] if inputs and inputs[0] != UNKNOWN else None


POSITIONS: Mapping[str, int] = {"SequenceAt": 1, "SequenceErase": 1, "SequenceInsert": 2}
"""The operators that take a position in a sequence, and which input it is."""


def check_position(node: ir.Node, inputs: list[Fact]) -> bool:
    """Whether the position that a node takes, if any, is known to lie in the sequence (D19).

    Raises:
        SplitError: TS511 for a position that is known to lie outside.
    """
    place, sequence = POSITIONS.get(node.op_type), _sequence(inputs)
    if place is None:
        return True
    is_given = place < len(inputs) and node.inputs[place] is not None
    is_given = is_given and inputs[place] is not ABSENT
    if node.op_type == "SequenceInsert" and not is_given:
        return True
    position = _position(inputs, place) if is_given else -1
    if sequence is None or not is_known(sequence.count) or position is None:
        return False
    count: int = sequence.count
    extra = int(node.op_type == "SequenceInsert")
    if not -count <= position < count + extra:
        raise SplitError(
            SEQUENCE_INDEX,
            f"the position is {position}, but the sequence has {count_of(count, 'tensor')}",
            f"give a position in [{-count}, {count + extra - 1}]" if count + extra else "",
            operator=f"onnx.{node.op_type}",
            parameter="position",
        )
    return True


def _sequence(inputs: list[Fact]) -> Sequence | None:
    return inputs[0] if inputs and isinstance(inputs[0], Sequence) else None


def _position(inputs: list[Fact], index: int) -> int | None:
    fact = inputs[index] if len(inputs) > index else UNKNOWN
    constant = tensor_of(fact).constant
    return constant[0] if constant and len(constant) == 1 and is_known(constant[0]) else None


def integer(node: ir.Node, name: str, default: int | None) -> int | None:
    """An attribute of a node; None where it is not an integer, or only calls of a function tell."""
    attribute = node.attributes.get(name)
    if attribute is None:
        return default
    if attribute.is_ref() or attribute.type != ir.AttributeType.INT:
        return None
    return attribute.as_int()


RULES: Mapping[str, Callable[[ir.Node, list[Fact]], list[Fact] | None]] = {
    "SequenceAt": _at,
    "SequenceLength": _length,
    "SequenceInsert": _insert,
    "SequenceErase": _erase,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "ConcatFromSequence": _concat,
    "Identity": _identity,
}
"""What each operator gives; None where nothing can be said and onnx's own inference may try."""
