"""Values from callers, checked for their type whatever they claim to be.

An object may say that it is of another class, as mocks do, and a method of a subclass may do
anything. So a value is judged by its type, and strings become Python's own before they are used.
What a path raises in its ``__fspath__`` is passed on; what raises as it is iterated is refused.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from itertools import islice
from numbers import Real
from typing import Any, TypeGuard, TypeVar

_T = TypeVar("_T")

_MOST_NAMES = 1 << 20


def is_a(value: object, kinds: type[_T] | tuple[type[_T], ...]) -> TypeGuard[_T]:
    """Return whether a value is of a class, or one of some; its ``__class__`` does not count."""
    return issubclass(type(value), kinds)


def is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    """Return whether a value is a mapping, or one that wrapt has put something around.

    TensorFlow does that to the dicts of a module.
    """
    proxy = getattr(sys.modules.get("wrapt"), "ObjectProxy", ())
    return is_a(value, Mapping) or (is_a(value, proxy) and is_a(value.__wrapped__, Mapping))


def as_string(value: object) -> str | None:
    """Return a string of Python's own class, equal to a given one; None for anything else."""
    if type(value) is str:
        return value
    return "".join((value,)) if is_a(value, str) else None  # torch can't compile `str.__str__`


def as_path(value: object) -> str | None:
    """Return a path as a string; None for anything else, such as bytes."""
    if is_a(value, str) or not is_a(value, os.PathLike):
        return as_string(value)
    path = type(value).__fspath__(value)
    return os.fsdecode(bytes(path)) if is_a(path, bytes) else as_string(path)


def as_list(value: object) -> list[Any] | None:
    """Return the items of a list or tuple, whatever iterating it gives; None for anything else."""
    if is_a(value, list):
        return [*list.__iter__(value)]
    return [*tuple.__iter__(value)] if is_a(value, tuple) else None


def as_real(value: object) -> float | None:
    """Return a number as a float, infinite if it is too large; None for booleans and all else."""
    if not is_a(value, Real) or is_a(value, bool):
        return None
    try:
        return float.__float__(value) if is_a(value, float) else float(value)
    except OverflowError:
        return float("inf")


def as_dict(value: object) -> dict[Any, Any] | None:
    """Return a mapping in a new dict, its strings as keys plain; None for anything else.

    That is also what has no end, can't be iterated, or does not hold what it lists.
    """
    if not is_mapping(value):
        return None
    if type(value) is dict and all(type(key) is str for key in value):
        return {**value}
    try:
        keys = {_plain(key): key for key in islice(value, _MOST_NAMES + 1)}
    except Exception:  # noqa: BLE001 - someone else's iteration may raise anything
        return None
    if len(keys) > _MOST_NAMES:
        return None
    try:
        return {name: value[key] for name, key in keys.items()}
    except KeyError:  # it lists what it does not hold
        return None


def as_data(value: object) -> object:
    """Return tables, lists, strings and numbers as Python's own, with all that they hold.

    Anything else is returned as it is. Raises a ValueError for a mapping that can't be listed, and
    a RecursionError.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if is_mapping(value):
        held = as_dict(value)
        if held is None:
            raise ValueError(f"a {type(value).__name__} can't be listed")
        return {key: as_data(each) for key, each in held.items()}
    items = as_list(value)
    if items is not None:
        return [as_data(each) for each in items]
    if is_a(value, int):
        return int.__index__(value)
    return float.__float__(value) if is_a(value, float) else _plain(value)


def _plain(value: object) -> object:
    """Return a string as Python's own, and anything else as it is."""
    text = as_string(value)
    return value if text is None else text
