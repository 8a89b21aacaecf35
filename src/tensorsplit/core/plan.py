"""The plan of a split: which axis, into which lengths, and whether the axis stays."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field, fields
from functools import cached_property, reduce
from itertools import accumulate
from types import EllipsisType
from typing import Any, TypeAlias

from tensorsplit.core.dimensions import (
    Dim,
    Shape,
    add,
    are_known,
    is_at_least,
    is_known,
    show_dim,
    show_shape,
)
from tensorsplit.core.errors import UNKNOWN_COUNT, SplitError, count_of

_MOST_SHOWN = 8

Index: TypeAlias = "tuple[slice | int | EllipsisType, ...]"


@dataclass(frozen=True, repr=False)
class SplitPlan:
    """A validated split of one axis into parts whose number is known.

    Attributes:
        operator: The operator version that it follows, such as ``onnx.Split-18``.
        input_shape: The shape of the data.
        axis: The axis, counted from the front.
        sizes: The length of each part on the axis: integers, or symbolic where ``input_shape`` is.
        keepdims: Whether the parts keep the axis; if not, every size is 1.
        element_types: The element types that the data may have; None for any.
    """

    operator: str
    input_shape: Shape
    axis: int
    sizes: tuple[Dim, ...]
    keepdims: bool = True
    element_types: frozenset[str] | None = field(default=None, repr=False)

    @cached_property
    def offsets(self) -> tuple[Dim, ...]:
        """Where each part starts on the axis."""
        if not self.sizes:
            return ()
        rule = operator.add if are_known(self.sizes) else add
        return tuple(accumulate(self.sizes[:-1], rule, initial=0))

    @cached_property
    def output_shapes(self) -> tuple[Shape, ...]:
        """The shape of each part."""
        before, after = self.input_shape[: self.axis], self.input_shape[self.axis + 1 :]
        if not self.keepdims:
            return (before + after,) * len(self.sizes)
        if not are_known(self.sizes):
            return tuple((*before, size, *after) for size in self.sizes)
        shapes = {size: (*before, size, *after) for size in dict.fromkeys(self.sizes)}
        return tuple(map(shapes.__getitem__, self.sizes))  # there may be millions, mostly alike

    @cached_property
    def indices(self) -> tuple[Index, ...]:
        """What to index an array with to get each part; the sizes must be numbers.

        The trailing Ellipsis keeps a 0-d part an array where the axis is dropped from 1-D data.

        Raises:
            SplitError: TS309 if a size is symbolic.
        """
        if not are_known(self.sizes):
            raise SplitError(
                UNKNOWN_COUNT,
                f"the sizes are [{', '.join(map(show_dim, self.sizes))}]",
                "plan for a shape whose split dimension is a number",
                operator=self.operator,
                parameter="shape",
            )
        head = (slice(None),) * self.axis
        if not self.keepdims:
            return tuple((*head, start, ...) for start in self.offsets)
        return tuple(
            (*head, slice(start, start + size))
            for start, size in zip(self.offsets, self.sizes, strict=True)
        )

    def __repr__(self) -> str:
        sizes = ", ".join(map(show_dim, self.sizes[:_MOST_SHOWN]))
        more = ", ..." if len(self.sizes) > _MOST_SHOWN else ""
        kept = "" if self.keepdims else ", axis dropped"
        return (
            f"<{type(self).__name__} {self.operator}: {show_shape(self.input_shape)} on axis"
            f" {self.axis} into {count_of(len(self.sizes), 'part')} of [{sizes}{more}]{kept}>"
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return the pickled state: the fields, and not what was derived from them."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def prove(plan: SplitPlan, fix: str) -> None:
    """Refuse a plan of an array of which it can't be told whether the parts fit (TS309)."""
    dim, sizes = plan.input_shape[plan.axis], plan.sizes
    if is_known(dim) and are_known(sizes):
        return
    whole = reduce(add, sizes, 0)
    negative = next((size for size in sizes if not is_at_least(size, 0)), None)
    if dim is None:
        problem = f"the length of axis {plan.axis} is not known"
    elif negative is not None:
        problem = f"it can't be proved that the length {show_dim(negative)} is not below 0"
    elif not (is_at_least(whole, dim) and is_at_least(dim, whole)):
        sums = f"lengths which sum to {show_dim(whole)} fit the dimension {show_dim(dim)}"
        problem = f"it can't be proved that {sums}"
    else:
        return
    raise SplitError(UNKNOWN_COUNT, problem, fix, operator=plan.operator, parameter="shape")


@dataclass(frozen=True)
class UncountedPlan:
    """A split into equal chunks whose number depends on a dimension that is not known.

    The count is symbolic, or None; the size is None if the last part may be smaller.
    """

    operator: str
    input_shape: Shape
    axis: int
    count: Dim
    size: Dim
    keepdims: bool = True

    @property
    def part_shape(self) -> Shape:
        """What is known of the shape of every part."""
        before, after = self.input_shape[: self.axis], self.input_shape[self.axis + 1 :]
        return (*before, self.size, *after) if self.keepdims else before + after
