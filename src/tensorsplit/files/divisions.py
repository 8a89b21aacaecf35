"""Divisions of stored tensors: operands become a plan, and its parts new tensors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import accumulate
from typing import Any, SupportsIndex

from tensorsplit.arrays.arguments import bind_values
from tensorsplit.arrays.prepared import counted
from tensorsplit.arrays.typed import Lengths
from tensorsplit.core.errors import NOT_DIVISIBLE, TOO_MANY_PARTS, SplitError, short_name
from tensorsplit.core.plan import SplitPlan, sizes_of
from tensorsplit.core.records import NEWEST_OPSET, in_force, operators
from tensorsplit.core.resolve import check_element_type
from tensorsplit.core.resolve import plan as plan_intent
from tensorsplit.core.schema import Operator
from tensorsplit.files.formats import Division, NewTensor, Recast, StoredTensor

_MOST_PARTS = 1 << 21


@dataclass(frozen=True, slots=True)
class SplitOperands:
    """A split, as a caller or a rule writes it.

    Attributes:
        axis: The axis; None for the default of the operator version.
        split: The length of each part.
        num_outputs: How many parts.
        chunk: The length of each part but perhaps the last.
        operator: The identifier of an operator version; None for Split, or SplitToSequence where
            chunks are requested.
        opset: The opset that selects the version where no operator is named.
    """

    axis: SupportsIndex | None = None
    split: Lengths | None = None
    num_outputs: SupportsIndex | None = None
    chunk: SupportsIndex | None = None
    operator: str | None = None
    opset: SupportsIndex | None = None
    _made: dict[tuple[tuple[int, ...], str], SplitPlan] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def plan(self, tensor: StoredTensor) -> SplitPlan:
        """Return the plan for a tensor (TS101 to TS309), one for all that are alike.

        Bits are bits: a version that was not requested by name or opset takes any element type.
        """
        key = tensor.shape, tensor.element_type
        if key not in self._made:
            self._made[key] = self._planned(tensor)
        return self._made[key]

    def _planned(self, tensor: StoredTensor) -> SplitPlan:
        record = self._record()
        lists = [each.operand for each in record.lengths if 1 in each.rules]
        counts = [each.operand for each in record.lengths if 1 not in each.rules]
        values: dict[str, Any] = {} if self.axis is None else {record.axis: self.axis}
        for names, otherwise, value in (
            (lists, "split", self.split),
            (counts, "num_outputs", self.num_outputs),
            (lists, "split", self.chunk),
        ):
            if value is not None:
                values[names[0] if names else otherwise] = value
        made = counted(plan_intent(bind_values(record, values), tensor.shape))
        if self.operator is not None or self.opset is not None:
            data = record.inputs[0].name
            check_element_type(record.id, tensor.element_type, made.element_types, data)
        return made

    def _record(self) -> Operator:
        if self.operator is not None:
            return operators[self.operator]
        name = "Split" if self.chunk is None else "SplitToSequence"
        return in_force(name, NEWEST_OPSET if self.opset is None else self.opset)


def check_part_count(count: int) -> None:
    """Refuse (TS308) more parts, of all tensors together, than memory should be given to."""
    if count > _MOST_PARTS:
        problem = f"there would be more than {_MOST_PARTS} parts of all tensors together"
        raise SplitError(
            TOO_MANY_PARTS, problem, "make fewer parts, or split fewer tensors at once"
        )


@contextlib.contextmanager
def located(name: str) -> Iterator[None]:
    """Name the tensor in what is raised for it."""
    try:
        yield
    except SplitError as error:
        before = f"tensor {short_name(name)}: "
        if not error.problem.startswith(before):
            error.problem = before + error.problem
        raise


def carried(tensor: StoredTensor, name: str) -> Division:
    """Return a tensor that is one part, which is the whole, perhaps under another name."""
    output = NewTensor(name, tensor.shape, unpadded=tensor.unpadded, layout=tensor.layout)
    return Division(tensor, None, (output,))


def change_of(division: Division) -> Recast:
    """Return the change of a stored whole into its parts."""
    whole = division.tensor
    before = carried(whole, whole.name)
    if before == division:  # of thousands of tensors, most are carried over
        before = division
    return Recast(before, (whole,), division)


def division_of(
    tensor: StoredTensor,
    plan: SplitPlan,
    parts: Iterable[Sequence[int]],
    names: Iterable[tuple[str, int | None]],
) -> Division:
    """Describe new tensors, each made of parts of a plan.

    Parts of what a rank has keep the notes of it, so that they can be merged into it again.
    """
    shapes: Any = plan.output_shapes
    outputs = []
    for numbers, (name, rank) in zip(parts, names, strict=False):
        shape = shapes[numbers[0]]
        if len(numbers) > 1:
            length = sum(shapes[number][plan.axis] for number in numbers)
            shape = (*shape[: plan.axis], length, *shape[plan.axis + 1 :])
        layout = tensor.layout if rank is None else _layout(plan, numbers)
        outputs.append(NewTensor(name, shape, tuple(numbers), rank, tensor.unpadded, layout))
    return Division(tensor, plan, tuple(outputs))


def with_unpadded(division: Division, length: int) -> Division:
    """Return a division whose parts record how long the whole was before it was padded."""
    outputs = (replace(each, unpadded=length) for each in division.outputs)
    return replace(division, outputs=tuple(outputs))


def _layout(plan: SplitPlan, numbers: Sequence[int]) -> str:
    """Return a key that is equal for rules that give a rank the same elements; empty for all."""
    ends = [0, *accumulate(sizes_of(plan))]
    ranges: list[list[int]] = []
    for number in numbers:
        start, end = ends[number : number + 2]
        if ranges and ranges[-1][1] == start:
            ranges[-1][1] = end
        elif start < end:
            ranges.append([start, end])
    if ranges in ([], [[0, ends[-1]]]):
        return ""
    return blake2b(repr((plan.axis, ranges)).encode(), digest_size=8).hexdigest()


def divided(
    sizes: Iterable[int], count: int, parameter: str, fix: str = "choose others"
) -> list[int]:
    """Return each length divided by a count; TS303 if one can't be."""
    for size in sizes:
        if size % count:
            problem = f"the length {size} is not a multiple of {count}"
            raise SplitError(NOT_DIVISIBLE, problem, fix, parameter=parameter)
    return [size // count for size in sizes]


def check_multiples(plan: SplitPlan, block: int) -> None:
    """Refuse (TS303) lengths that are not whole blocks."""
    for size in sizes_of(plan):
        if size % block:
            problem = f"a part of length {size} is not a multiple of {block}"
            raise SplitError(NOT_DIVISIBLE, problem, "choose others", parameter="multiple_of")
