"""Operators on sequences and optionals.

onnx's reference inserts at a wrong place at the end of a sequence, has no error of its own for a
position out of range (D19), and takes an empty optional for one that holds something.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tensorsplit.arrays.numpy import element_type
from tensorsplit.core.arithmetic import position
from tensorsplit.core.errors import OPERAND_TYPE, SplitError
from tensorsplit.model.run.program import Values, described, node_failed


def _sequence_at(sequence: Any, index: object) -> Any:
    """Return the tensor at a position (SequenceAt); negative positions count from the back."""
    return _tensors(sequence)[_place(index, len(sequence), len(sequence) - 1)]


def _sequence_erase(sequence: Any, index: object = None) -> Any:
    """Return a sequence without the tensor at a position (SequenceErase), by default the last."""
    last = len(_tensors(sequence)) - 1
    place = _place(np.array(last) if index is None else index, len(sequence), last)
    return sequence[:place] + sequence[place + 1 :]


def _sequence_insert(sequence: Any, tensor: object, index: object = None) -> Any:
    """Return a sequence with a tensor before a position (SequenceInsert), by default at the end."""
    if not isinstance(tensor, np.ndarray):
        raise node_failed("what is to be inserted is not a tensor", "give a tensor")
    if _tensors(sequence) and element_type(sequence[0]) != element_type(tensor):
        raise node_failed(
            f"a tensor of {element_type(tensor)} can't join one of {element_type(sequence[0])}",
            "give a tensor of the sequence's own type",
        )
    count = len(sequence)
    place = _place(np.array(count) if index is None else index, count, count)
    return [*sequence[:place], tensor, *sequence[place:]]


def _optional_get_element(value: object) -> object:
    """Return the content of an optional (OptionalGetElement)."""
    if value is None:
        raise node_failed("the optional is empty", "ask OptionalHasElement first")
    return value


def _tensors(value: object) -> Values:
    if not isinstance(value, list):
        raise node_failed("the input is not a sequence", "give a sequence of tensors")
    return value


def _place(value: Any, count: int, last: int) -> int:
    """Return a position in [-count, last], counted from the front."""
    is_index = isinstance(value, np.ndarray) and value.dtype in (np.int32, np.int64)
    if not is_index or value.size != 1:
        problem, fix = f"it is {described(value)}", "give a scalar of int32 or int64"
        raise SplitError(OPERAND_TYPE, problem, fix, parameter="position")
    found: Any = position(value.item(), count, last)
    return int(found)


SEQUENCES: Mapping[str, Callable[..., object]] = {
    "SequenceAt": _sequence_at,
    "SequenceErase": _sequence_erase,
    "SequenceInsert": _sequence_insert,
    "Optional": lambda value=None: value,
    "OptionalHasElement": lambda value=None: np.array(value is not None),
    "OptionalGetElement": _optional_get_element,
}
