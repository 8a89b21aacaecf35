"""The types of every library's arrays, and of their parts, for type checkers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, SupportsIndex, TypeAlias, TypedDict, TypeVar

import numpy as np

from tensorsplit.arrays.pool import BufferPool
from tensorsplit.core.dimensions import Expression

Array: TypeAlias = Any
"""An array of a library that has no types, or whose types this package can't import."""


class _Array(Protocol):
    """An array of any library."""

    @property
    def dtype(self) -> Any: ...
    @property
    def shape(self) -> Any: ...


class _Variable(Protocol):
    """A variable of Spox."""

    def unwrap_tensor(self) -> object: ...


class _Exported(Protocol):
    """A dimension of ``jax.export``."""

    def get_vars(self) -> object: ...


class _Shape(Protocol):
    """A shape of onnx-ir."""

    @property
    def dims(self) -> Sequence[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


Dimension: TypeAlias = SupportsIndex | str | Expression | _Exported | None
"""A dimension of a shape: an integer, a name, an expression, or None for unknown."""

GivenShape: TypeAlias = Sequence[Dimension] | Iterator[Dimension] | _Shape
"""The shape of data: not the data, which can be iterated too."""

ArrayT = TypeVar("ArrayT", bound=_Array | _Variable)
"""Parts are of the type of the array."""

PartT_co = TypeVar("PartT_co", covariant=True)


class TensorOf(Protocol[PartT_co]):
    """A tensor of PyTorch, whose parts may be of another type: those of a Parameter are."""

    def split_with_sizes(self, split_sizes: Any, dim: Any = 0) -> Sequence[PartT_co]:
        """Return the parts of these lengths."""


Lengths: TypeAlias = Sequence[SupportsIndex] | _Array | _Variable
"""The lengths of the parts: integers, or an array of them."""

Named: TypeAlias = Mapping[str, SupportsIndex]
"""The lengths of parts with names."""

Axis: TypeAlias = SupportsIndex | Sequence[SupportsIndex] | _Array
"""An axis that is an input: a scalar, or one element."""

Flag: TypeAlias = bool | np.bool_
"""True or False."""

KeepDims: TypeAlias = SupportsIndex | np.bool_
"""0 drops the axis of the split; 1 keeps it."""

Like: TypeAlias = _Array | _Variable | None
"""An array like the whole that parts are joined to."""

Out: TypeAlias = Sequence[_Array] | BufferPool | None
"""What the parts are written to."""

NamedOut: TypeAlias = Mapping[str, _Array] | Out
"""What parts with names are written to."""

OutWhole: TypeAlias = _Array | BufferPool | None
"""What joined parts are written to."""


class Operands(TypedDict, total=False):
    """The operands that only some operators have."""

    axis: Axis
    keepdims: KeepDims
    split_lengths: Lengths
    num_splits: SupportsIndex


DialectOperand: TypeAlias = Lengths | SupportsIndex | None
"""What a dialect is given beside the array."""
