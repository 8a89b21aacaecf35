"""Facts: what is known about a value of a model before it runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

import onnx_ir as ir

from tensorsplit.core.dimensions import Dim, Shape, are_known, is_known

MAX_LISTED_PARTS = 4096
"""Sequences of more parts than this are described by their common part alone."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor; what is not known is None.

    Attributes:
        shape: None if not even the rank is known; unknown dimensions are None.
        values: The elements in order, for small tensors of rank 0 or 1 that are constant or follow
            from shapes, and for tables made of them: integers, floats, expressions, or None for
            those not known.
    """

    element_type: ir.DataType | None = None
    shape: Shape | None = None
    values: tuple[Dim, ...] | None = None

    @property
    def constant(self) -> tuple[int, ...] | None:
        """The elements, if every one is a number."""
        if self.values is not None and are_known(self.values):
            return self.values
        return None

    @property
    def integers(self) -> tuple[Dim, ...] | None:
        """The elements in order; None for a float, too."""
        if self.values is None:
            return None
        return tuple(None if isinstance(each, float) else each for each in self.values)

    @property
    def integer(self) -> Dim:
        """The only element; None for several, and for a float."""
        found = self.integers
        return found[0] if found is not None and len(found) == 1 else None


@dataclass(frozen=True, slots=True)
class SequenceFact:
    """A sequence of tensors; what is not known is None.

    Attributes:
        part: What is known of the shape of every tensor.
        count: How many tensors there are.
        parts: The shape of each tensor, where each one's is known.
    """

    element_type: ir.DataType | None = None
    part: Shape | None = None
    count: Dim = None
    parts: tuple[Shape | None, ...] | None = None

    @property
    def tensor(self) -> Tensor:
        """The fact that holds for every tensor."""
        return Tensor(self.element_type, self.part)


@dataclass(frozen=True, slots=True)
class Other:
    """A value of another kind (optional, map, sparse tensor), with its declared type.

    It is absent if it is an input of a function that the call leaves out.

    Attributes:
        shape: The shape of the tensor, or of every tensor, in it.
    """

    type: ir.TypeProtocol | None = None
    shape: Shape | None = None
    is_absent: bool = False


Fact: TypeAlias = "Tensor | SequenceFact | Other"


class NotKnownError(Exception):
    """A rule of inference asks for something that is not known."""


UNKNOWN = Other()

ABSENT = Other(is_absent=True)


def as_tensor(fact: Fact | None) -> Tensor:
    """Return the fact about a tensor; an empty one for a value of another kind."""
    return fact if isinstance(fact, Tensor) else Tensor()


def without_elements(fact: Fact) -> Fact:
    """Return the same fact without its elements."""
    if isinstance(fact, Tensor) and fact.values is not None:
        return replace(fact, values=None)
    return fact


def declared(value: ir.Value) -> Fact:
    """Return the fact that the model declares about a value.

    Names that onnx invented, and a tool wrote into the model, say nothing: the tensors of a
    sequence share one, whatever their shapes are.
    """
    fact = fact_of(value.type, value.shape)
    if isinstance(fact, Other):
        return fact
    dims = fact.shape if isinstance(fact, Tensor) else fact.part
    if dims is None or not any(map(_is_invented, dims)) or value.is_graph_input():
        return fact
    known = tuple(None if _is_invented(dim) else dim for dim in dims)
    return replace(fact, shape=known) if isinstance(fact, Tensor) else replace(fact, part=known)


def _is_invented(dim: object) -> bool:
    return type(dim) is str and dim.startswith("unk__") and dim[len("unk__") :].isdecimal()


def fact_of(kind: ir.TypeProtocol | None, shape: ir.Shape | None) -> Fact:
    """Return the fact of a type and a shape; exporters write -1, too, for open dimensions."""
    dims = None
    if kind is None and shape is None:
        return UNKNOWN
    if shape is not None:
        dims = tuple(
            (dim if dim >= 0 else None) if isinstance(dim, int) else (dim.value or None)
            for dim in shape
        )
    if kind is None or isinstance(kind, ir.TensorType):
        return Tensor((kind and kind.dtype) or None, dims)
    if isinstance(kind, ir.SequenceType) and isinstance(kind.elem_type, ir.TensorType):
        return SequenceFact(kind.dtype or None, dims)
    return Other(kind, dims)


def of_parts(
    element_type: ir.DataType | None,
    parts: Iterable[Shape | None],
    part: Shape | None = None,
    count: int | None = None,
) -> SequenceFact:
    """Return a sequence whose tensors' shapes are known one by one; of none, ``part``.

    With a count, so many tensors have these shapes, some of them the same.
    """
    listed = tuple(parts)
    common = listed[0] if listed else part
    for shape in dict.fromkeys(listed):
        common = join_shapes(common, shape)
    count = len(listed) if count is None else count
    kept = listed if count <= MAX_LISTED_PARTS else None
    return SequenceFact(element_type, common, count, kept)


def join(left: Fact, right: Fact) -> Fact:
    """Return the fact that holds for a value that is either of two."""
    if left == right:
        return left
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        return Tensor(
            _same_type(left.element_type, right.element_type), join_shapes(left.shape, right.shape)
        )
    if isinstance(left, SequenceFact) and isinstance(right, SequenceFact):
        element_type = _same_type(left.element_type, right.element_type)
        part = join_shapes(left.part, right.part)
        for one, other in ((left, right), (right, left)):
            if one.count == 0 and one.part is None:  # nothing, of which nothing is known
                part = other.part
        return SequenceFact(element_type, part, _same_dim(left.count, right.count))
    if isinstance(left, Other) and isinstance(right, Other) and left.type == right.type:
        return Other(left.type, join_shapes(left.shape, right.shape))
    return UNKNOWN


def kind_only(fact: Fact) -> Fact:
    """Return the same fact without its shape and its elements."""
    if isinstance(fact, Tensor):
        return Tensor(fact.element_type)
    if isinstance(fact, SequenceFact):
        return SequenceFact(fact.element_type)
    return replace(fact, shape=None)


def merge_declared(found: Fact, declared: Fact) -> Fact:
    """Return the inferred fact, and the declared dimensions where no number was inferred."""
    if declared is UNKNOWN:
        return found
    if isinstance(found, Tensor) and isinstance(declared, Tensor):
        shape = _fill(found.shape, declared.shape)
        return Tensor(found.element_type or declared.element_type, shape, found.values)
    if isinstance(found, SequenceFact) and isinstance(declared, SequenceFact):
        part = _fill(found.part, declared.part)
        return SequenceFact(
            found.element_type or declared.element_type, part, found.count, found.parts
        )
    if isinstance(found, Other) and isinstance(declared, Other) and found.type == declared.type:
        return Other(found.type, _fill(found.shape, declared.shape), found.is_absent)
    return declared if found == UNKNOWN else found


def _fill(found: Shape | None, declared: Shape | None) -> Shape | None:
    if found is None:
        return declared
    if declared is None or len(declared) != len(found):
        return found
    pairs = zip(found, declared, strict=True)
    return tuple(b if a is None or (is_known(b) and not is_known(a)) else a for a, b in pairs)


def join_shapes(left: Shape | None, right: Shape | None) -> Shape | None:
    """Return the shape that holds for either of two: unequal dimensions are not known."""
    if left is None or right is None or len(left) != len(right):
        return None
    return tuple(_same_dim(a, b) for a, b in zip(left, right, strict=True))


def _same_type(left: ir.DataType | None, right: ir.DataType | None) -> ir.DataType | None:
    return left if left == right else None


def _same_dim(left: Dim, right: Dim) -> Dim:
    """Return the value if both are it; text and expression of the same name are the same."""
    if left is right or (type(left) is type(right) and left == right):
        return left
    if left is None or right is None or is_known(left) or is_known(right):
        return None
    return left if str(left) == str(right) else None
