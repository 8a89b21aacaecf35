"""The plan of a split: which axis, into which lengths, and whether the axis stays."""

from __future__ import annotations

import operator
from bisect import bisect_right
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import accumulate
from types import EllipsisType
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

from tensorsplit.core.dimensions import (
    Dim,
    Shape,
    add,
    are_known,
    as_index,
    is_at_least,
    is_known,
    show_dim,
    show_shape,
    sum_of,
)
from tensorsplit.core.errors import (
    OPERAND_TYPE,
    OPERAND_VALUE,
    UNKNOWN_COUNT,
    SplitError,
    count_of,
    show,
    wrong_type,
)

_MOST_SHOWN = 8

Index: TypeAlias = "tuple[slice | int | EllipsisType, ...]"


if TYPE_CHECKING:
    derived_property = cached_property
else:

    class derived_property(cached_property):  # noqa: N801 - as its base
        """Calculate an attribute once; Python 3.11 takes a lock, which no trace can follow."""

        def __get__(self, instance: object, owner: type | None = None) -> object:
            """Return the attribute."""
            if instance is None:
                return self
            kept = instance.__dict__
            if self.attrname not in kept:
                kept[self.attrname] = self.func(instance)
            return kept[self.attrname]


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
    sizes: tuple[Any, ...]  # for callers, whose shapes are mostly of numbers; and so below
    keepdims: bool = True
    element_types: frozenset[str] | None = field(default=None, repr=False)

    @derived_property
    def offsets(self) -> tuple[Any, ...]:
        """Where each part starts on the axis."""
        if not self.sizes:
            return ()
        rule = operator.add if are_known(self.sizes) else add
        return tuple(accumulate(self.sizes[:-1], rule, initial=0))

    @derived_property
    def output_shapes(self) -> tuple[tuple[Any, ...], ...]:
        """The shape of each part."""
        before, after = self.input_shape[: self.axis], self.input_shape[self.axis + 1 :]
        if not self.keepdims:
            return (before + after,) * len(self.sizes)
        if not are_known(self.sizes):
            return tuple((*before, size, *after) for size in self.sizes)
        shapes = {size: (*before, size, *after) for size in dict.fromkeys(self.sizes)}
        return tuple(map(shapes.__getitem__, self.sizes))  # there may be millions, mostly alike

    @derived_property
    def indices(self) -> tuple[Index, ...]:
        """What to index an array with to get each part; the sizes must be numbers.

        The trailing Ellipsis keeps a 0-d part an array where the axis is dropped from 1-D data.

        Raises:
            SplitError: TS309 if a size is symbolic.
        """
        sizes, starts = sizes_of(self), offsets_of(self)
        head = (slice(None),) * self.axis
        if not self.keepdims:
            return tuple((*head, start, ...) for start in starts)
        return tuple(
            (*head, slice(start, start + size)) for start, size in zip(starts, sizes, strict=True)
        )

    def find(self, index: SupportsIndex) -> tuple[int, int]:
        """Return the number of the part that holds an index of the axis, and the index in it.

        Args:
            index: The index, in [-dimension, dimension-1]; below 0 it counts from the end.

        Returns:
            The number of the part, which is never one of length 0, and the index in the part: 0
            where the parts don't keep the axis.

        Raises:
            SplitError: TS105 if it is not an integer, TS107 if it is out of range,
                TS309 if a size is symbolic.

        Example:
            >>> plan = ts.plan("onnx.Split-18", (6,), [2, 0, 4])
            >>> plan.find(1), plan.find(2), plan.find(-1)
            ((0, 1), (2, 0), (2, 3))
        """
        starts = offsets_of(self)
        dim = starts[-1] + sizes_of(self)[-1] if starts else 0
        found = as_index(index)
        if found is None:
            kind, problem = OPERAND_TYPE, wrong_type(index)
        elif not -dim <= found < dim:
            kind, problem = OPERAND_VALUE, f"it is {show(found)}, but the dimension is {dim}"
        else:
            found %= dim
            number = bisect_right(starts, found) - 1
            return number, found - starts[number]
        fix = f"give an integer in [{-dim}, {dim - 1}]" if dim else "there is no element to find"
        wants = {"index": range(-dim, dim)} if dim else {}
        raise SplitError(kind, problem, fix, operator=self.operator, parameter="index", wants=wants)

    def __repr__(self) -> str:
        sizes = ", ".join(map(show_dim, self.sizes[:_MOST_SHOWN]))
        more = ", ..." if len(self.sizes) > _MOST_SHOWN else ""
        kept = "" if self.keepdims else ", axis dropped"
        return (
            f"<{type(self).__name__} {self.operator}: {show_shape(self.input_shape)} on axis"
            f" {self.axis} into {count_of(len(self.sizes), 'part')} of [{sizes}{more}]{kept}>"
        )

    def __getstate__(self) -> dict[str, object]:
        """Return the pickled state: the fields, and not what was derived from them."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def sizes_of(plan: SplitPlan) -> tuple[int, ...]:
    """Return the sizes of a plan, which are numbers (TS309)."""
    return _numbers(plan, plan.sizes)


def offsets_of(plan: SplitPlan) -> tuple[int, ...]:
    """Return where each part of a plan starts, which are numbers (TS309)."""
    return _numbers(plan, plan.offsets)


def shape_of(plan: SplitPlan) -> tuple[int, ...]:
    """Return the shape of the data, which has no dimension that is not a number (TS309)."""
    return _numbers(plan, plan.input_shape)


def part_shapes(plan: SplitPlan) -> list[tuple[int, ...]]:
    """Return the shape of each part, which has no dimension that is not a number (TS309)."""
    return [_numbers(plan, shape) for shape in plan.output_shapes]


def _numbers(plan: SplitPlan, dims: tuple[Dim, ...]) -> tuple[int, ...]:
    if are_known(dims):
        return dims
    raise SplitError(
        UNKNOWN_COUNT,
        f"the sizes are [{', '.join(map(show_dim, plan.sizes))}]",
        "plan for a shape whose split dimension is a number",
        operator=plan.operator,
        parameter="shape",
    )


def prove(plan: SplitPlan, fix: str) -> None:
    """Refuse a plan of an array of which it is not known whether the parts fit (TS309)."""
    dim, sizes = plan.input_shape[plan.axis], plan.sizes
    if is_known(dim) and are_known(sizes):
        return
    whole = sum_of(sizes)
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
    """A split into equal chunks that are not listed: very many, or an unknown number of them.

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
        """The known shape of every part."""
        before, after = self.input_shape[: self.axis], self.input_shape[self.axis + 1 :]
        return (*before, self.size, *after) if self.keepdims else before + after
