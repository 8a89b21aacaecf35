"""Types and shapes through the operators on sequences of tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import onnx_ir as ir

from tensorsplit.core.arithmetic import position
from tensorsplit.core.dimensions import Dim, Shape, add, is_known, sum_of, times
from tensorsplit.model.graph.facts import (
    ABSENT,
    UNKNOWN,
    Fact,
    NotKnownError,
    SequenceFact,
    Tensor,
    as_tensor,
    join_shapes,
    of_parts,
)
from tensorsplit.model.graph.nodes import attribute_of
from tensorsplit.model.graph.tensors import element_type_of

_Kind = TypeVar("_Kind", Tensor, SequenceFact)


def _input(inputs: list[Fact], index: int, kind: type[_Kind]) -> _Kind:
    found = inputs[index] if index < len(inputs) else UNKNOWN
    if not isinstance(found, kind):
        raise NotKnownError
    return found


def _tensor(inputs: list[Fact], index: int) -> Tensor:
    """Return the fact about a tensor, perhaps an empty one."""
    is_unknown = index < len(inputs) and inputs[index] == UNKNOWN
    return Tensor() if is_unknown else _input(inputs, index, Tensor)


def _at(node: ir.Node, inputs: list[Fact]) -> Fact:
    sequence = _input(inputs, 0, SequenceFact)
    position, parts = _position(node, inputs, sequence.count), sequence.parts
    if parts is None or position is None:
        return sequence.tensor
    is_inside = -len(parts) <= position < len(parts)
    return Tensor(sequence.element_type, parts[position] if is_inside else None)


def _length(_: ir.Node, inputs: list[Fact]) -> Fact:
    count = inputs[0].count if inputs and isinstance(inputs[0], SequenceFact) else None
    return Tensor(ir.DataType.INT64, (), None if count is None else (count,))


def _insert(node: ir.Node, inputs: list[Fact]) -> Fact:
    sequence, tensor = _input(inputs, 0, SequenceFact), _tensor(inputs, 1)
    position = _position(node, inputs, sequence.count)
    element_type = sequence.element_type or tensor.element_type
    if sequence.parts is not None and position is not None:
        parts = list(sequence.parts)
        parts.insert(position, tensor.shape)
        return of_parts(element_type, parts)
    common = tensor.shape if sequence.count == 0 else join_shapes(sequence.part, tensor.shape)
    return SequenceFact(element_type, common, add(sequence.count, 1))


def _erase(node: ir.Node, inputs: list[Fact]) -> Fact:
    sequence = _input(inputs, 0, SequenceFact)
    position, parts = _position(node, inputs, sequence.count), list(sequence.parts or ())
    if position is not None and -len(parts) <= position < len(parts):
        del parts[position]
        return of_parts(sequence.element_type, parts, sequence.part)
    return SequenceFact(sequence.element_type, sequence.part, add(sequence.count, -1))


def _construct(_: ir.Node, inputs: list[Fact]) -> Fact:
    tensors = [_tensor(inputs, index) for index in range(len(inputs) or 1)]
    known = (fact.element_type for fact in tensors if fact.element_type is not None)
    return of_parts(next(known, None), [fact.shape for fact in tensors])


def _empty(node: ir.Node, _: list[Fact]) -> Fact:
    number = attribute_of(node, "dtype", ir.AttributeType.INT, ir.DataType.FLOAT)
    return of_parts(None if number is None else element_type_of(number), [])


def _concat(node: ir.Node, inputs: list[Fact]) -> Fact:
    sequence = _input(inputs, 0, SequenceFact)
    axis = attribute_of(node, "axis", ir.AttributeType.INT)
    new_axis = attribute_of(node, "new_axis", ir.AttributeType.INT, 0)
    shape, made = sequence.part, Tensor(sequence.element_type)
    if shape is None or axis is None or new_axis is None or sequence.count == 0:
        return made
    rank = len(shape) + bool(new_axis)
    if not -rank <= axis < rank:
        return made
    axis %= rank
    after = shape[axis if new_axis else axis + 1 :]
    length = sequence.count if new_axis else _total(sequence, shape, axis)
    return Tensor(sequence.element_type, (*shape[:axis], length, *after))


def _total(sequence: SequenceFact, shape: Shape, axis: int) -> Dim:
    """Return the sum of a dimension over the tensors."""
    if sequence.parts is None:
        return times(sequence.count, shape[axis])
    return sum_of(None if part is None else part[axis] for part in sequence.parts)


def _identity(_: ir.Node, inputs: list[Fact]) -> Fact:
    if not inputs or inputs[0] == UNKNOWN:
        raise NotKnownError
    return inputs[0]


POSITIONS: Mapping[str, int] = {"SequenceAt": 1, "SequenceErase": 1, "SequenceInsert": 2}
"""The operators that take a position in a sequence, and which input it is."""


def check_position(node: ir.Node, inputs: list[Fact]) -> bool:
    """Return whether the position that a node takes, if any, is known to lie in the sequence (D19).

    Raises:
        SplitError: TS511 for a position that is known to lie outside.
    """
    if node.op_type not in POSITIONS:
        return True
    is_insert = node.op_type == "SequenceInsert"
    if is_insert and not _is_given(node, inputs):
        return True
    count: Dim = inputs[0].count if inputs and isinstance(inputs[0], SequenceFact) else None
    index = _position(node, inputs, count)
    if index is None or not is_known(count):
        return False
    position(index, count, count - 1 + is_insert, operator=f"onnx.{node.op_type}")
    return True


def _is_given(node: ir.Node, inputs: list[Fact]) -> bool:
    """Return whether a node is given a position."""
    place = POSITIONS[node.op_type]
    given = node.inputs[place] if place < len(inputs) else None
    return given is not None and inputs[place] is not ABSENT


def _position(node: ir.Node, inputs: list[Fact], count: Dim) -> int | None:
    """Return the position that a node takes, if it is known: by default the end of a sequence."""
    found: Dim = count if node.op_type == "SequenceInsert" else -1
    if _is_given(node, inputs):
        constant = as_tensor(inputs[POSITIONS[node.op_type]]).constant
        found = constant[0] if constant and len(constant) == 1 else None
    return found if is_known(found) else None


RULES: Mapping[str, Callable[[ir.Node, list[Fact]], Fact]] = {
    "SequenceAt": _at,
    "SequenceLength": _length,
    "SequenceInsert": _insert,
    "SequenceErase": _erase,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "ConcatFromSequence": _concat,
    "Identity": _identity,
}
"""What each operator gives; onnx's own inference may try where nothing is known."""
