"""The inputs that a model declares, and the values fed to them, checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import onnx_ir as ir

from tensorsplit.arrays.buffers import is_masked_array
from tensorsplit.arrays.numpy import element_type, is_array
from tensorsplit.core.dimensions import show_shape
from tensorsplit.core.errors import (
    INPUT_SHAPE,
    INPUT_TYPE,
    MISSING_INPUT,
    UNKNOWN_INPUT,
    USAGE,
    Kind,
    SplitError,
    short_name,
    show,
)
from tensorsplit.core.given import as_dict, as_list, is_a

Range: TypeAlias = "tuple[int, int | None]"
"""The least and the largest length of a dimension; None where there is no largest."""

FED_AS = {
    "tensor": "{}",
    "sequence": "list of arrays, each a {}",
    "optional": "{}, or None",
    "optional sequence": "list of arrays, each a {}, or None",
}
"""The value that is fed, by kind of input."""


class DeclaredInput(NamedTuple):
    """One input of a model, as the model declares it; what is not declared is None.

    Attributes:
        kind: One of `FED_AS`, or ``other`` for what is passed on unchecked, such as a map.
        aliases: Other names of it.
        ranges: In an OpenVINO IR, the least and the largest length of each dimension.
    """

    name: str
    element_type: str | None
    shape: tuple[int | str | None, ...] | None
    kind: str = "tensor"
    has_default: bool = False
    aliases: tuple[str, ...] = ()
    ranges: tuple[Range, ...] | None = None

    def __str__(self) -> str:
        element_type = self.element_type or "any element type"
        tensor = f"tensor of {element_type}"
        if self.shape is not None:
            ranges = self.ranges or ((0, None),) * len(self.shape)
            dims = tuple(_bounds(*pair) for pair in zip(self.shape, ranges, strict=True))
            tensor = f"tensor of {element_type} and shape {show_shape(dims)}"
        return FED_AS.get(self.kind, "value").format(tensor)


def _bounds(dim: int | str | None, bounds: Range) -> int | str | None:
    """Return a dimension for a message: its bounds, such as ``1..8``, where it has some."""
    low, high = bounds
    if dim is not None or (low, high) == (0, None):
        return dim
    return f"{low}..{'' if high is None else high}"


def check_feeds(declared: Sequence[DeclaredInput], feeds: Mapping[str, object]) -> dict[str, Any]:
    """Check the values that are fed against the declared inputs, before anything runs.

    Returns the values by name: plain arrays in the machine's byte order (the bytes of each element
    are those that came in), lists of them for sequences, None for an empty optional.

    Raises:
        SplitError: TS505 for an input that is missing, TS506 for one that the model does not
            have, TS507 and TS508 for a shape or element type that it does not declare.
    """
    given = as_mapping(feeds)
    names = {alias: entry.name for entry in reversed(declared) for alias in entry.aliases}
    names |= {entry.name: entry.name for entry in declared}
    fed: dict[str, object] = {}
    for key, value in given.items():
        if key not in names:
            problem = f"the model has no input {show(key)}"
            known = ", ".join(show(entry.name) for entry in declared[:12])
            fix = f"its inputs are {known or 'none'}"
        elif names[key] in fed:
            twice = f"the input {show(names[key])}, which is given twice"
            problem, fix = f"{show(key)} is another name of {twice}", "give it once"
        else:
            fed[names[key]] = value
            continue
        raise SplitError(UNKNOWN_INPUT, problem, fix, parameter=short_name(key))
    for entry in declared:
        if entry.name not in fed and not entry.has_default:
            raise _misfit(MISSING_INPUT, entry, "it was not fed")
    return {e.name: _check(e, fed[e.name]) for e in declared if e.name in fed}


def as_mapping(feeds: object) -> dict[Any, Any]:
    """Return the feeds in a new dict (TS703 if they are not a mapping)."""
    given = as_dict(feeds)
    if given is None:
        problem = f"it is of type {type(feeds).__name__}"
        fix = "give a mapping from input names to arrays"
        raise SplitError(USAGE, problem, fix, parameter="inputs")
    return given


def _check(entry: DeclaredInput, value: object) -> object:
    if entry.kind == "other" or (value is None and entry.kind.startswith("optional")):
        return value
    if entry.kind.endswith("sequence"):
        items = as_list(value)
        if items is None:
            raise _misfit(INPUT_TYPE, entry, f"it is of type {type(value).__name__}")
        return [_tensor(entry, item, f"element {i} ") for i, item in enumerate(items)]
    return _tensor(entry, value, "it ")


def _tensor(entry: DeclaredInput, value: Any, subject: str) -> np.ndarray:
    if not is_array(value):
        raise _misfit(INPUT_TYPE, entry, f"{subject}is of type {type(value).__name__}")
    if is_masked_array(value):
        raise _misfit(INPUT_TYPE, entry, f"{subject}is a masked array, whose mask would be lost")
    array: np.ndarray = value
    if type(value) is not np.ndarray:  # attributes of a subclass may lie
        is_other = is_a(value, np.ndarray)
        array = np.ndarray.view(value, np.ndarray) if is_other else np.asarray(value)
    if not array.dtype.isnative:  # as bytes: no float is ever converted
        array = array.byteswap().view(array.dtype.newbyteorder("="))
    seen = element_type(array)
    if entry.element_type is not None and seen != entry.element_type:
        raise _misfit(INPUT_TYPE, entry, f"{subject}has element type {seen}")
    if entry.element_type is None and seen.upper() not in ir.DataType.__members__:
        problem = f"{subject}has element type {seen}, which ONNX does not have"
        raise _misfit(INPUT_TYPE, entry, problem)
    if array.dtype == object and not all(is_a(item, (str, bytes)) for item in array.flat):
        raise _misfit(INPUT_TYPE, entry, f"{subject}holds objects that are not strings")
    if not fits(entry, array.shape):
        raise _misfit(INPUT_SHAPE, entry, f"{subject}has shape {show_shape(array.shape)}")
    return array


def fits(entry: DeclaredInput, shape: tuple[int, ...]) -> bool:
    """Return whether a tensor of a shape is one that is declared."""
    if entry.shape is None:
        return True
    if len(entry.shape) != len(shape):
        return False
    dims = zip(entry.shape, shape, entry.ranges or ((0, None),) * len(shape), strict=True)
    return all(
        low <= size and (high is None or size <= high) and (not isinstance(dim, int) or dim == size)
        for dim, size, (low, high) in dims
    )


def _misfit(kind: Kind, entry: DeclaredInput, problem: str) -> SplitError:
    return SplitError(kind, problem, f"feed a {entry}", parameter=short_name(entry.name))
