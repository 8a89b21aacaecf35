"""Python values as operands: what a caller writes, read exactly and without guessing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tensorsplit.arrays import ArrayLibrary, conversion, find_library
from tensorsplit.arrays import numpy as numpy_arrays
from tensorsplit.arrays.buffers import snapshot
from tensorsplit.core.dimensions import as_index, is_symbolic
from tensorsplit.core.errors import OPERAND_TYPE, TOO_MANY_PARTS, UNKNOWN_COUNT, SplitError, show
from tensorsplit.core.given import is_a
from tensorsplit.core.operands import Operand
from tensorsplit.core.resolve import Intent, bind
from tensorsplit.core.rules import MAX_PARTS
from tensorsplit.core.schema import Operator


def bind_values(
    record: Operator, values: Mapping[str, object], library: ArrayLibrary | None = None
) -> Intent:
    """Bind Python values to the operands of an operator version (TS102 to TS107, TS305).

    The values are integers, sequences of integers, or arrays; None stands for absent, but is
    refused for an axis that has a default (TS105). An array is the input where the version has an
    input of that name; integers, in whatever container, have no element type of their own and fit
    every integer type. ``num_outputs`` may be given to any version that splits into as many equal
    parts as its node has outputs; where it is not an attribute, it is that number. Arrays are of
    NumPy, or of the library of the data if one is given (TS105).
    """
    outputs = None
    operands = []
    try:
        for name, value in values.items():
            if value is None and (name != record.axis or record.axis_default is None):
                continue
            if name == "num_outputs" and record.absent is not None and not record.is_sequence:
                outputs = _integer(name, value, library)
            else:
                operands.append((name, _operand(record, name, value, library)))
    except SplitError as error:
        raise error.located(operator=record.id) from None
    return bind(record, operands, outputs)


def _operand(record: Operator, name: str, value: Any, expected: ArrayLibrary | None) -> Operand:
    is_flag = is_a(value, (bool, np.bool_)) and name == record.keepdims
    if type(value) is int or is_flag:
        return Operand((int(value),), 0)
    listed = value if type(value) in (tuple, range) else snapshot(value)
    if is_a(listed, (list, tuple, range)):
        return _from_items(name, listed, expected)
    found = _from_array(name, value, expected)
    if found is not None:
        values, rank, element_type = found
        source = "input" if record.input(name) else None
        return Operand(values, rank, None if _is_integer(element_type) else element_type, source)
    if is_a(value, float):
        return Operand((float.__float__(value),), 0, "float")
    is_several = is_a(value, Iterable) and not is_a(value, (str, bytes))
    ranks = {rank for entry in record.lengths if entry.operand == name for rank in entry.rules}
    is_listed = 1 in ranks and (is_several or 0 not in ranks)
    wanted = "give a list of integers" if is_listed else "give an integer"
    return Operand((_integer(name, value, expected, wanted),), 0)


def _from_array(
    name: str, value: object, expected: ArrayLibrary | None
) -> tuple[tuple[float, ...], int, str] | None:
    """Return elements, rank and element type of an array, which is of the expected library."""
    library = find_library(value)
    if library is None:
        return None
    if expected not in (None, library) and library is not numpy_arrays:
        raise SplitError(
            OPERAND_TYPE,
            f"it is of type {type(value).__name__}, of another library than the data",
            "give integers, or an array of NumPy or of the library of the data",
            parameter=name,
        )
    return library.operand_parts(value, name)


def _is_integer(element_type: str) -> bool:
    return element_type.lstrip("u").startswith("int")


def _from_items(name: str, items: Any, expected: ArrayLibrary | None) -> Operand:
    if items[MAX_PARTS:]:  # len() fails for a range that is longer than memory
        raise SplitError(
            TOO_MANY_PARTS,
            f"it is {show(items)}, of more than {MAX_PARTS} elements",
            "give fewer",
            parameter=name,
        )
    if any(is_a(item, (list, tuple)) for item in items):
        return Operand(tuple(items), 2)
    if any(is_a(item, float) for item in items):
        return Operand(tuple(items), 1, "float")
    return Operand(tuple(_length(name, item, expected) for item in items), 1)


def _length(name: str, item: object, expected: ArrayLibrary | None) -> Any:
    return item if type(item) is int or is_symbolic(item) else _integer(name, item, expected)


def _integer(
    name: str, value: object, expected: ArrayLibrary | None, wanted: str = "give integers"
) -> int:
    if is_symbolic(value):
        raise SplitError(
            UNKNOWN_COUNT, "it is known only when the trace runs", "give a number", parameter=name
        )
    fix = None
    if not is_a(value, (int, np.generic)):
        found = _from_array(name, value, expected)  # its own index would compute lazy ones
        if found is None:
            fix = conversion(value)
        elif found[1] == 0 and _is_integer(found[2]):
            (value,) = found[0]
    index = as_index(value)
    if index is not None:
        return index
    raise SplitError(
        OPERAND_TYPE,
        f"it is {'' if fix else f'{show(value)} '}of type {type(value).__name__}",
        fix or wanted,
        parameter=name,
    )
