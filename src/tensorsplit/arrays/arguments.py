"""Python values as operands: what a caller writes, read exactly and without guessing."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from marshal import dumps
from typing import Any

import numpy as np

from tensorsplit import native
from tensorsplit.arrays import find_library
from tensorsplit.core.dimensions import as_index
from tensorsplit.core.errors import OPERAND_TYPE, TOO_MANY_PARTS, SplitError, show
from tensorsplit.core.operands import Operand
from tensorsplit.core.resolve import Intent, bind
from tensorsplit.core.rules import MAX_PARTS
from tensorsplit.core.schema import Operator

_INTEGERS = frozenset({int, *(np.dtype(code).type for code in "bhilqBHILQ")})
"""Types whose values never change and say all there is to know."""


def bind_values(record: Operator, values: Mapping[str, Any]) -> Intent:
    """Bind Python values to the operands of an operator version.

    Args:
        record: The operator version.
        values: By the names of the standard: integers, sequences of integers, or arrays; None
            stands for absent. An array is the input where the version has an input of that name;
            integers, in whatever container, have no element type of their own and fit every
            integer type. ``num_outputs`` may be given to any version that cuts into as many equal
            parts as its node has outputs; where it is no attribute, it is that number.

    Returns:
        What is asked for.

    Raises:
        SplitError: TS102 to TS107, TS305.
    """
    outputs = None
    operands = []
    try:
        for name, value in values.items():
            if value is None:
                continue
            if name == "num_outputs" and counts_outputs(record):
                outputs = _integer(name, value)
            else:
                operands.append((name, _operand(record, name, value)))
    except SplitError as error:
        raise error.located(operator=record.id) from None
    return bind(record, operands, outputs)


def counts_outputs(record: Operator) -> bool:
    """Whether the number of outputs of its node decides the parts when no lengths are given."""
    return record.absent is not None and not record.is_sequence


def identify(data: Any, arguments: tuple[Any, ...]) -> Hashable | None:
    """What a call can be remembered by: equal for two of one function only if they mean the same.

    Args:
        data: The tensor, of which the shape and the element type count.
        arguments: The operands, which nobody else can change; the first one gives the lengths.

    Returns:
        What `spell` gives, wherever nothing else is spelled so. None for a call that must not be
        remembered, as it can't be told from others.
    """
    try:
        key: Hashable = None
        if native.kernel is not None or _is_plain_call(arguments):
            key = spell(data, arguments)
        if key is None:
            key = (data.shape, data.dtype, *map(_fingerprint, arguments))
        hash(key)
    except (AttributeError, MemoryError, TypeError, ValueError):
        return None
    return key


def _spell(data: Any, arguments: tuple[Any, ...]) -> Hashable | None:
    """What the kernel's `spell` does; but things that are no plain operands may be spelled alike.

    ``marshal`` spells the arguments out with their types, so that True is not 1, nor is 1.0. Of an
    array, or whatever else has a buffer, it spells the bytes only. Version 2 of its format has one
    spelling for each value.
    """
    if type(data) is not np.ndarray:
        return None
    spelled, lengths = dumps(arguments, 2), arguments[0]
    if type(lengths) is np.ndarray:
        return spelled, data.shape, data.dtype, lengths.shape, lengths.dtype
    return spelled, data.shape, data.dtype


spell: Callable[[Any, tuple[Any, ...]], Hashable | None] = (
    _spell if native.kernel is None else native.kernel.spell
)
"""What tells a call from others in the shortest time; of use only to look for what `identify` gave.

None, or a TypeError or ValueError, for what it can't spell.
"""


def _is_plain_call(arguments: tuple[Any, ...]) -> bool:
    """Whether nothing else is spelled as this call is."""
    lengths, *others = arguments
    is_integer_array = type(lengths) is np.ndarray and lengths.dtype.kind in "iu"
    return all(map(_is_plain, others)) and (is_integer_array or _is_plain(lengths))


def _is_plain(value: Any) -> bool:
    if type(value) in (list, tuple):
        return all(type(item) is int for item in value)
    return value is None or type(value) is int


def _fingerprint(value: Any) -> Any:
    """A hashable stand-in that differs wherever two values, or their types, differ.

    Raises:
        TypeError: For a value that is no operand, may change unseen, or is too large to be worth
            remembering.
    """
    kind = type(value)
    if kind is int or value is None:
        return value
    if kind is list or kind is tuple:
        items = tuple(value)
        kinds = tuple(map(type, items))
        if kinds.count(int) == len(kinds):
            return items
        if _INTEGERS.issuperset(kinds):
            return items, kinds
    elif kind is bool:
        return kind, value
    else:
        library = find_library(value)
        if library is not None:
            return library.fingerprint(value)
    raise TypeError("no fingerprint")


def _operand(record: Operator, name: str, value: Any) -> Operand:
    if type(value) is int:
        return Operand((value,), 0)
    if isinstance(value, (list, tuple, range)):
        return _from_items(name, value)
    library = find_library(value)
    if library is not None:
        values, rank, element_type = library.operand_parts(value, name)
        integers = element_type.lstrip("u").startswith("int")
        spelling = "input" if record.input(name) else None
        return Operand(values, rank, None if integers else element_type, spelling)
    if isinstance(value, float):
        return Operand((value,), 0, "float")
    if isinstance(value, bool) and name == record.keepdims:
        value = int(value)
    return Operand((_integer(name, value),), 0)


def _from_items(name: str, items: Any) -> Operand:
    if items[MAX_PARTS:]:  # len() fails for a range that is longer than memory
        raise SplitError(
            TOO_MANY_PARTS,
            f"it is {show(items)}, of more than {MAX_PARTS} elements",
            "give fewer",
            parameter=name,
        )
    if any(isinstance(item, (list, tuple)) for item in items):
        return Operand(tuple(items), 2)
    if any(isinstance(item, float) for item in items):
        return Operand(tuple(items), 1, "float")
    return Operand(tuple(item if type(item) is int else _integer(name, item) for item in items), 1)


def _integer(name: str, value: Any) -> int:
    index = as_index(value)
    if index is not None:
        return index
    raise SplitError(
        OPERAND_TYPE,
        f"it is {show(value)} of type {type(value).__name__}",
        "give integers",
        parameter=name,
    )
