"""Random inputs for a model, of the types and shapes that it declares."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tensorsplit.core.errors import USAGE, SplitError

if TYPE_CHECKING:
    from tensorsplit.model.graph.reading import DeclaredInput

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Shapes: TypeAlias = "Mapping[str, tuple[int, ...]]"

OPEN_DIMENSION = 7
"""What a dimension is that neither the model nor ``--input-shape`` fixes."""

_SEQUENCE_LENGTH = 3
_LARGEST = 100


def read_shapes(written: Sequence[str], declared: Sequence[DeclaredInput]) -> Shapes:
    """Read everything that is given with ``--input-shape``.

    Args:
        written: Each ``NAME:1,3,224`` or ``NAME:1x3x224``; without a name for a model with one
            input.
        declared: The inputs of the model.

    Raises:
        SplitError: TS703 for text that is no shape, or a name that is no input.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    names = [entry.name for entry in declared]
    for word in written:
        name, colon, text = word.rpartition(":")
        if not colon and len(names) == 1:
            name = names[0]
        if name not in names or not re.fullmatch(r"(\d{1,18}([,x]\d{1,18})*)?", text):
            raise SplitError(
                USAGE,
                f"{word!r} gives no input a shape",
                f"write NAME:1,3,224 or NAME:1x3x224, where NAME is one of {', '.join(names)}",
                parameter="input-shape",
            )
        shapes[name] = tuple(int(size) for size in re.split("[,x]", text) if size)
    return shapes


def random_feeds(
    declared: Sequence[DeclaredInput], given: Mapping[str, Any], shapes: Shapes
) -> dict[str, Any]:
    """What is given, and random values for every other input that has no default.

    Args:
        declared: The inputs of the model.
        given: Values by name.
        shapes: Shapes by name, for inputs whose declared shape is open.

    Returns:
        Values by name: small whole numbers, which every engine holds exactly in every type.
    """
    rng = np.random.default_rng(0)
    sizes = dict(_sizes(declared, given, shapes))
    feeds = dict(given)
    for entry in declared:
        if entry.name in feeds or (entry.has_default and entry.name not in shapes):
            continue
        declared_shape = entry.shape or ()
        sized = tuple(_size(dim, sizes) for dim in declared_shape)
        shape = shapes.get(entry.name, sized)
        if entry.kind.startswith("optional"):
            feeds[entry.name] = None
        elif entry.kind == "sequence":
            feeds[entry.name] = [_random(rng, entry, shape) for _ in range(_SEQUENCE_LENGTH)]
        else:
            feeds[entry.name] = _random(rng, entry, shape)
    return feeds


def _sizes(
    declared: Sequence[DeclaredInput], given: Mapping[str, Any], shapes: Shapes
) -> Mapping[str, int]:
    """The length of each named dimension that a given value or shape fixes."""
    sizes: dict[str, int] = {}
    for entry in declared:
        shape: tuple[int, ...] = getattr(given.get(entry.name), "shape", ())
        shape = shapes.get(entry.name, shape)
        for dim, size in zip(entry.shape or (), shape, strict=False):
            if isinstance(dim, str):
                sizes[dim] = size
    return sizes


def _size(dim: int | str | None, sizes: Mapping[str, int]) -> int:
    if isinstance(dim, int):
        return dim
    return OPEN_DIMENSION if dim is None else sizes.get(dim, OPEN_DIMENSION)


def _random(rng: np.random.Generator, entry: DeclaredInput, shape: tuple[int, ...]) -> Array:
    import onnx
    from onnx.helper import tensor_dtype_to_np_dtype

    numbers = rng.integers(1, _LARGEST, shape)
    name = (entry.element_type or "float").upper()
    if name == "STRING":
        texts = [f"s{number}" for number in numbers.reshape(-1).tolist()]
        return np.array(texts, object).reshape(shape)
    dtype = tensor_dtype_to_np_dtype(onnx.TensorProto.DataType.Value(name))
    if dtype == np.bool_:
        return np.asarray(numbers % 2 == 0)
    return np.asarray(numbers).astype(dtype)
