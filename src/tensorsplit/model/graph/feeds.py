"""Model inputs: what a graph declares, and whether what is fed to it fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tensorsplit.arrays.numpy import element_type, is_array
from tensorsplit.core.errors import (
    INPUT_SHAPE,
    INPUT_TYPE,
    MISSING_INPUT,
    UNKNOWN_INPUT,
    USAGE,
    Kind,
    SplitError,
    show,
)
from tensorsplit.model.graph.naming import short_name


class DeclaredInput(NamedTuple):
    """One input of a model, as the model declares it.

    Attributes:
        name: The input's name.
        element_type: The element type in the package's spelling; None if none is declared.
        shape: The dimensions, each an integer, a name, or None; None if no rank is declared.
        kind: ``tensor``, ``sequence`` (of tensors), ``optional`` (tensor), ``optional sequence``,
            or ``other`` for what is passed on unchecked, such as a map.
        has_default: Whether the model holds a value that is used if the input is not fed.
    """

    name: str
    element_type: str | None
    shape: tuple[int | str | None, ...] | None
    kind: str = "tensor"
    has_default: bool = False

    def __str__(self) -> str:
        element = self.element_type or "any element type"
        tensor = f"tensor of {element}"
        if self.shape is not None:
            tensor += f" and shape {show_shape(self.shape)}"
        if self.kind == "tensor":
            return tensor
        return {
            "sequence": f"list of arrays, each a {tensor}",
            "optional": f"{tensor}, or None",
            "optional sequence": f"list of arrays, each a {tensor}, or None",
        }.get(self.kind, "value")


def check_feeds(declared: Sequence[DeclaredInput], feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Check what is fed against what is declared, before anything runs.

    Args:
        declared: The inputs of the model.
        feeds: Values by input name: NumPy arrays for tensors, lists of them for sequences, None
            for an empty optional.

    Returns:
        The values that were fed, by name: plain arrays in the machine's byte order (the bytes of
        each element are those that came in), lists of them, or None.

    Raises:
        SplitError: TS505 for an input that is missing, TS506 for one that the model does not
            have, TS507 and TS508 for a shape or element type that it does not declare.
    """
    if not isinstance(feeds, Mapping):
        raise SplitError(
            USAGE,
            f"the inputs are a {type(feeds).__name__}",
            "give a mapping from input names to arrays",
            parameter="inputs",
        )
    names = [entry.name for entry in declared]
    for name in feeds:
        if name not in names:
            raise SplitError(
                UNKNOWN_INPUT,
                f"the model has no input {show(name)}",
                f"its inputs are {', '.join(map(show, names[:12])) or 'none'}",
                parameter=short_name(str(name)),
            )
    for entry in declared:
        if entry.name not in feeds and not entry.has_default:
            raise SplitError(
                MISSING_INPUT, "it was not fed", f"feed a {entry}", parameter=short_name(entry.name)
            )
    return {
        entry.name: _check(entry, feeds[entry.name]) for entry in declared if entry.name in feeds
    }


def _check(entry: DeclaredInput, value: Any) -> Any:
    if entry.kind == "other" or (value is None and entry.kind.startswith("optional")):
        return value
    if entry.kind.endswith("sequence"):
        if not isinstance(value, (list, tuple)):
            raise _misfit(INPUT_TYPE, entry, f"it is a {type(value).__name__}")
        return [_tensor(entry, item, f"element {i} ") for i, item in enumerate(value)]
    return _tensor(entry, value, "it ")


def _tensor(entry: DeclaredInput, value: Any, subject: str) -> np.ndarray[Any, Any]:
    if not is_array(value):
        raise _misfit(INPUT_TYPE, entry, f"{subject}is a {type(value).__name__}")
    if isinstance(value, np.ma.MaskedArray):
        raise _misfit(INPUT_TYPE, entry, f"{subject}is a masked array, whose mask would be lost")
    array = native(np.asarray(value))
    seen = element_type(array)
    if entry.element_type is not None and seen != entry.element_type:
        raise _misfit(INPUT_TYPE, entry, f"{subject}has element type {seen}")
    if array.dtype == object and not all(isinstance(item, (str, bytes)) for item in array.flat):
        raise _misfit(INPUT_TYPE, entry, f"{subject}holds objects that are no strings")
    if entry.shape is not None and not _fits(entry.shape, array.shape):
        raise _misfit(INPUT_SHAPE, entry, f"{subject}has shape {show_shape(array.shape)}")
    return array


def native(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array in the machine's byte order; equal values, and no float is ever converted."""
    if array.dtype.isnative:
        return array
    return array.byteswap().view(array.dtype.newbyteorder("="))


def _fits(declared: tuple[int | str | None, ...], shape: tuple[int, ...]) -> bool:
    return len(declared) == len(shape) and all(
        not isinstance(dim, int) or dim == seen for dim, seen in zip(declared, shape, strict=True)
    )


def show_shape(shape: Sequence[int | str | None]) -> str:
    """A shape as text, with ``?`` for a dimension of which nothing is declared."""
    dims = ["?" if dim is None else short_name(str(dim)) for dim in shape[:12]]
    dims += ["..."] if len(shape) > 12 else []
    return f"({', '.join(dims)}{',' if len(dims) == 1 else ''})"


def _misfit(kind: Kind, entry: DeclaredInput, problem: str) -> SplitError:
    return SplitError(kind, problem, f"feed a {entry}", parameter=short_name(entry.name))
