"""Sequence and optional operators whose reference implementation is not exact.

The reference inserts at a wrong place at the end of a sequence, has no error of its own for a
position out of range (D19), and takes an optional that holds nothing for one that holds something.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorsplit.arrays.numpy import element_type
from tensorsplit.core.errors import NODE_FAILED, OPERAND_TYPE, SEQUENCE_INDEX, SplitError


def sequence_at(inputs: Sequence[Any]) -> Any:
    """SequenceAt: the tensor at a position; negative positions count from the back."""
    sequence = _sequence(inputs[0])
    return sequence[_position(inputs[1], len(sequence), len(sequence) - 1)]


def sequence_erase(inputs: Sequence[Any]) -> Any:
    """SequenceErase: the sequence without the tensor at a position, by default the last."""
    sequence = _sequence(inputs[0])
    given = inputs[1] if len(inputs) > 1 else None
    place = _position(np.array(-1) if given is None else given, len(sequence), len(sequence) - 1)
    return sequence[:place] + sequence[place + 1 :]


def sequence_insert(inputs: Sequence[Any]) -> Any:
    """SequenceInsert: the sequence with a tensor before a position, by default at the end."""
    sequence, tensor = _sequence(inputs[0]), inputs[1]
    if not isinstance(tensor, np.ndarray):
        raise SplitError(NODE_FAILED, "what is to be inserted is no tensor", "give a tensor")
    if sequence and element_type(sequence[0]) != element_type(tensor):
        raise SplitError(
            NODE_FAILED,
            f"a tensor of {element_type(tensor)} can't join one of {element_type(sequence[0])}",
            "give a tensor of the sequence's own type",
        )
    given = inputs[2] if len(inputs) > 2 else None
    count = len(sequence)
    place = count if given is None else _position(given, count, count)
    return [*sequence[:place], tensor, *sequence[place:]]


def optional(inputs: Sequence[Any]) -> Any:
    """Optional: its element, or an empty optional, which is None here."""
    return inputs[0] if inputs else None


def optional_has_element(inputs: Sequence[Any]) -> Any:
    """OptionalHasElement: whether the optional holds anything."""
    return np.array(bool(inputs) and inputs[0] is not None)


def optional_get_element(inputs: Sequence[Any]) -> Any:
    """OptionalGetElement: what the optional holds."""
    if inputs[0] is None:
        raise SplitError(NODE_FAILED, "the optional is empty", "ask OptionalHasElement first")
    return inputs[0]


def _sequence(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise SplitError(NODE_FAILED, "the input is no sequence", "give a sequence of tensors")
    return value


def _position(value: Any, count: int, last: int) -> int:
    """A position in [-count, last], counted from the front."""
    is_index = isinstance(value, np.ndarray) and value.dtype in (np.int32, np.int64)
    if not is_index or value.size != 1:
        seen = f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else "no tensor"
        raise SplitError(
            OPERAND_TYPE, f"it is {seen}", "give a scalar of int32 or int64", parameter="position"
        )
    place: int = value.item()
    if not -count <= place <= last:
        raise SplitError(
            SEQUENCE_INDEX,
            f"it is {place}, but the sequence has {count} tensors",
            f"give a position in [{-count}, {last}]" if last >= -count else "fill the sequence",
            parameter="position",
        )
    return place + count if place < 0 else place
