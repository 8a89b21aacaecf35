"""One thin file for each array library, and the choice between them.

A library is used only if the array that came in is one of its own: nothing is imported here but
NumPy, and whoever passes another library's array has imported that library already.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Protocol

from tensorsplit.arrays import numpy as numpy_arrays
from tensorsplit.errors import NOT_AN_ARRAY, SplitError
from tensorsplit.plan import SplitPlan


class ArrayLibrary(Protocol):
    """What a file of this folder defines."""

    def is_array(self, value: object) -> bool:
        """Whether the value is an array of this library."""

    def element_type(self, array: Any) -> str:
        """The element type in the package's spelling."""

    def fingerprint(self, value: Any) -> Hashable:
        """What tells one small array from another; TypeError for one too large to be worth it."""

    def operand_parts(self, value: Any) -> tuple[tuple[Any, ...], int, str]:
        """The elements in order, the rank and the element type of an array."""

    def views(self, array: Any, plan: SplitPlan) -> list[Any]:
        """The parts, as views where the library has them."""

    def copies(self, array: Any, plan: SplitPlan) -> list[Any]:
        """The parts as new contiguous arrays."""

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


def library_of(value: object, parameter: str = "input") -> ArrayLibrary:
    """The library that the value is an array of.

    Raises:
        SplitError: TS204 if it is an array of none.
    """
    library = find_library(value)
    if library is None:
        raise SplitError(
            NOT_AN_ARRAY,
            f"it is a {type(value).__name__}",
            "give a NumPy array",
            parameter=parameter,
        )
    return library


def execute(
    plan: SplitPlan,
    array: Any,
    library: ArrayLibrary,
    copy: bool = False,
    out: Sequence[Any] | None = None,
) -> list[Any]:
    """Cut an array along a plan made for its shape.

    Args:
        plan: The plan.
        array: The array, of the shape that the plan was made for.
        library: The library of the array.
        copy: Whether to return new contiguous arrays and not views.
        out: Buffers to write the parts to; implies a copy.

    Returns:
        A list of arrays of the same library: views, or copies, or the buffers.
    """
    if out is not None:
        return library.copies_into(array, plan, out)
    return library.copies(array, plan) if copy else library.views(array, plan)
