"""Splitting tables and columns of pandas, Polars and pyarrow along their rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorsplit.arrays import numpy as numpy_arrays
from tensorsplit.arrays.typed import Array as Table
from tensorsplit.core.dimensions import Shape
from tensorsplit.core.errors import AXIS_RANGE, OPERAND_TYPE, OPERAND_VALUE, PART_TYPE, SplitError
from tensorsplit.core.plan import SplitPlan, offsets_of, sizes_of

unknown: str | None = None
"""The number of rows is known."""


@dataclass(frozen=True)
class _Kind:
    """A library's functions on its tables, or on its columns.

    Attributes:
        rows: Returns the rows from one on, as many as are given, without a copy.
        columns: Returns what parts of one table have in common: names and types of columns.
        join: Joins parts, given the library.
        copy: Returns a copy; None where nothing can be written to, so that nobody needs one.
    """

    rows: Callable[[Table, int, int], Table]
    columns: Callable[[Table], Hashable]
    join: Callable[[Any, list[Table]], Table]
    copy: Callable[[Table], Table] | None = None


def _located(table: Table, start: int, count: int) -> Table:
    return table.iloc[start : start + count]


def _sliced(table: Table, start: int, count: int) -> Table:
    return table.slice(start, count)


_KINDS = {
    "pandas.DataFrame": _Kind(
        rows=_located,
        columns=lambda table: tuple(zip(map(repr, table.columns), table.dtypes, strict=True)),
        join=lambda pandas, parts: pandas.concat(parts),
        copy=lambda table: table.copy(),
    ),
    "pandas.Series": _Kind(
        rows=_located,
        columns=lambda column: (column.name, column.dtype),
        join=lambda pandas, parts: pandas.concat(parts),
        copy=lambda column: column.copy(),
    ),
    "polars.DataFrame": _Kind(
        rows=_sliced,
        columns=lambda table: tuple(table.schema.items()),
        join=lambda polars, parts: polars.concat(parts),
    ),
    "polars.Series": _Kind(
        rows=_sliced,
        columns=lambda column: (column.name, column.dtype),
        join=lambda polars, parts: polars.concat(parts),
    ),
    "pyarrow.Table": _Kind(
        rows=_sliced,
        columns=lambda table: table.schema.remove_metadata(),
        join=lambda pyarrow, parts: pyarrow.concat_tables(parts),
    ),
    "pyarrow.RecordBatch": _Kind(
        rows=_sliced,
        columns=lambda table: table.schema.remove_metadata(),
        join=lambda pyarrow, parts: pyarrow.concat_batches(parts),
    ),
    "pyarrow.Array": _Kind(
        rows=_sliced,
        columns=lambda column: column.type,
        join=lambda pyarrow, parts: pyarrow.concat_arrays(parts),
    ),
    "pyarrow.ChunkedArray": _Kind(
        rows=_sliced,
        columns=lambda column: column.type,
        join=lambda pyarrow, parts: pyarrow.chunked_array(
            [chunk for part in parts for chunk in part.chunks], type=parts[0].type
        ),
    ),
}
"""The kinds of tables, by the library and the name of the class."""


def _find(table: object) -> tuple[str, _Kind] | None:
    """Return the name of the library of a table, and its kind; None for what is not a table."""
    for each in type(table).__mro__:
        root = each.__module__.partition(".")[0]
        kind = _KINDS.get(f"{root}.{each.__name__}")
        if kind is not None:
            return root, kind
    return None


def _known(table: Table) -> tuple[str, _Kind]:
    found = _find(table)
    assert found is not None  # noqa: S101 - only what `is_array` accepts comes here
    return found


def is_array(value: object) -> bool:
    """Return whether the value is a table or a column."""
    return _find(value) is not None


def check(table: Table) -> None:
    """Accept every table."""


def element_type(table: Table) -> str:
    """Return the name of the element type of a column, as in the schemas of ONNX.

    Rows of other columns, and of tables, are objects; those count as strings, as in NumPy.
    """
    dtype = getattr(table, "dtype", None)
    if hasattr(type(table), "columns") or not isinstance(dtype, np.dtype):
        return "string"
    return numpy_arrays.element_type(table)


def shape(table: Table) -> Shape:
    """Return the number of rows, and of a table that of its columns."""
    return tuple(getattr(table, "shape", None) or (len(table),))


def operand_parts(value: Table, name: str) -> tuple[tuple[float, ...], int, str]:
    """Refuse lengths in a table (TS105)."""
    problem = f"it is of type {type(value).__name__}"
    raise SplitError(OPERAND_TYPE, problem, "pass its `to_numpy()`", parameter=name)


def views(table: Table, plan: SplitPlan) -> list[Table]:
    """Return the rows of each part, without a copy; no other axis is split (TS203, TS107)."""
    _check_rows(type(table).__name__, plan)
    rows = _known(table)[1].rows
    return [rows(table, *part) for part in zip(offsets_of(plan), sizes_of(plan), strict=True)]


def copies(table: Table, plan: SplitPlan) -> list[Table]:
    """Return copies of the parts; tables that can't be written to share their memory."""
    copy = _known(table)[1].copy
    parts = views(table, plan)
    return parts if copy is None else list(map(copy, parts))


def kind(table: Table) -> tuple[object, ...]:
    """Return the class, and the names and types of the columns."""
    return type(table).__name__, _known(table)[1].columns(table)


def joined(parts: list[Table], plan: SplitPlan) -> Table:
    """Return the parts as one table, by the library's own concatenation (TS313 if it can't).

    pyarrow drops the rows of tables without columns, and pandas sets columns side by side that
    are written alike and are not equal.
    """
    name = type(parts[0]).__name__
    _check_rows(name, plan)
    library, known = _known(parts[0])
    whole = known.join(sys.modules[library], parts)
    if shape(whole) != plan.input_shape:
        problem = (
            f"{library} makes a {name} of shape {shape(whole)} of them, which has to be of"
            f" {plan.input_shape}"
        )
        fix = "give parts with columns, and with the same ones"
        raise SplitError(PART_TYPE, problem, fix, operator=plan.operator, parameter="parts")
    return whole


def _check_rows(name: str, plan: SplitPlan) -> None:
    if plan.axis != 0:
        problem = f"a {name} is split along its rows, and the axis is {plan.axis}"
        fix = "give axis 0, or select columns by the library"
        raise SplitError(AXIS_RANGE, problem, fix, operator=plan.operator, parameter="axis")
    if not plan.keepdims:
        problem = f"a row alone is not a {name}"
        fix = "keep the axis (keepdims=1)"
        raise SplitError(OPERAND_VALUE, problem, fix, operator=plan.operator, parameter="keepdims")
