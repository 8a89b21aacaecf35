"""One thin file for each array library, and the choice between them.

A library is used only if the array that came in is one of its own: nothing is imported here but
NumPy, and a caller who passes another library's array has imported that library already.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from tensorsplit.arrays import numpy as numpy_arrays
from tensorsplit.arrays.pool import BufferPool
from tensorsplit.core.errors import NOT_AN_ARRAY, OPERAND_TYPE, SplitError, show
from tensorsplit.core.plan import SplitPlan


class ArrayLibrary(Protocol):
    """What the file of each library defines."""

    def is_array(self, value: object) -> bool:
        """Whether the value is an array of this library."""

    def element_type(self, array: Any) -> str:
        """The name of the element type, as in the schemas of ONNX."""

    def operand_parts(self, value: Any, name: str) -> tuple[tuple[Any, ...], int, str]:
        """The elements in order, the rank and the element type of an operand."""

    def views(self, array: Any, plan: SplitPlan) -> list[Any]:
        """The parts, as views where the library has them."""

    def copies(self, array: Any, plan: SplitPlan) -> list[Any]:
        """The parts as new contiguous arrays."""

    def pooled(self, array: Any, plan: SplitPlan, pool: BufferPool) -> list[Any]:
        """The parts as contiguous arrays in the memory of a pool."""

    def copies_into(self, array: Any, plan: SplitPlan, out: Sequence[Any]) -> list[Any]:
        """The parts written into buffers."""


LIBRARIES: tuple[ArrayLibrary, ...] = (numpy_arrays,)
_by_type: dict[type, ArrayLibrary] = {}


def find_library(value: object) -> ArrayLibrary | None:
    """The library that the value is an array of, or None."""
    kind = type(value)
    library = _by_type.get(kind)
    if library is None:
        library = next((entry for entry in LIBRARIES if entry.is_array(value)), None)
        if library is not None and len(_by_type) < 1024:
            _by_type[kind] = library
    return library


def library_of(value: object, operator: str, parameter: str) -> ArrayLibrary:
    """The library that the data of an operator version is an array of (TS204 if of none)."""
    library = find_library(value)
    if library is None:
        raise SplitError(
            NOT_AN_ARRAY,
            f"it is {show(value)} of type {type(value).__name__}",
            "give a NumPy array",
            operator=operator,
            parameter=parameter,
        )
    return library


def execute(
    plan: SplitPlan,
    array: Any,
    library: ArrayLibrary,
    copy: object = False,
    out: Sequence[Any] | BufferPool | None = None,
) -> list[Any]:
    """Split an array of a library by a plan made for its shape: views, copies, or the buffers.

    TS105 is for a `copy` that is neither true nor false, TS401 to TS405 for `out`.
    """
    if copy is not True and copy is not False:
        copy = _flag(copy, plan)
    if isinstance(out, BufferPool):
        return library.pooled(array, plan, out)
    if out is not None:
        return library.copies_into(array, plan, out)
    return library.copies(array, plan) if copy else library.views(array, plan)


def _flag(copy: object, plan: SplitPlan) -> bool:
    if isinstance(copy, (int, np.bool_)) and copy in (0, 1):
        return bool(copy)
    raise SplitError(
        OPERAND_TYPE,
        f"it is {show(copy)} of type {type(copy).__name__}",
        "give True or False",
        operator=plan.operator,
        parameter="copy",
    )
