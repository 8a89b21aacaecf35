"""The rules by which stored tensors are split, renamed, or divided where others are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise, repeat
from typing import TypeAlias

from tensorsplit.core.errors import (
    BLOCK_CUT,
    PART_NAMES,
    USAGE,
    SplitError,
    count_of,
    short_name,
    show,
)
from tensorsplit.core.plan import SplitPlan, sizes_of
from tensorsplit.files.divisions import (
    SplitOperands,
    carried,
    check_multiples,
    check_part_count,
    divided,
    division_of,
    with_unpadded,
)
from tensorsplit.files.formats import Division, NewTensor, StoredTensor
from tensorsplit.files.sharding import ShardRule
from tensorsplit.files.tensor_names import fill


@dataclass(frozen=True, slots=True)
class SplitRule:
    """Tensors that are split, each part under a name of its own.

    Attributes:
        operands: The split.
        names: The names of the parts, in which ``*`` stands for what the one of the pattern stands
            for, or the tensor's whole name where the pattern has none; None to number them.
        groups: How many times the parts are repeated on the axis, one after the other: each new
            tensor is made of its part of every group.
        multiple_of: What the length of each part in each group must be a multiple of.
    """

    operands: SplitOperands
    names: Sequence[str] | None = None
    groups: int = 1
    multiple_of: int = 1

    def divide(self, tensor: StoredTensor, matched: Sequence[str]) -> Division:
        """Describe the division of a tensor; `matched` are the texts that the ``*`` stand for.

        Refuses (TS703) a sequence of no parts, of which nothing could be merged again.
        """
        plan = self.operands.plan(tensor)
        count = len(plan.sizes)
        if not count:
            problem = f"its dimension {plan.axis} is 0, which gives no parts"
            raise SplitError(USAGE, problem, "give the length 0, for one part", parameter="split")
        check_part_count(count)
        names = self.names
        if names is None:
            width = len(str(max(count - 1, 0)))
            names = [f"*.{number:0{width}}" for number in range(count)]
            matched = [tensor.name]
        if len(names) != count:
            raise SplitError(
                PART_NAMES,
                f"{count_of(len(names), 'name')} for {count_of(count, 'part')}",
                "give one for each part",
                parameter="names",
            )
        parts = [range(number, count * self.groups, count) for number in range(count)]
        if self.groups > 1:
            sizes = divided(sizes_of(plan), self.groups, "groups")
            plan = replace(plan, sizes=tuple(sizes) * self.groups)
        check_multiples(plan, self.multiple_of)
        filled = [fill(name, matched) for name in names]
        return division_of(tensor, plan, parts, zip(filled, repeat(None)))

    def for_parts(self, lengths: Sequence[int]) -> SplitRule:
        """Return the rule for parts of these lengths; if it gives none, it takes them as such."""
        operands = self.operands
        if (operands.split, operands.num_outputs, operands.chunk) != (None, None, None):
            return self
        return replace(self, operands=replace(operands, split=lengths))


@dataclass(frozen=True, slots=True)
class RenameRule:
    """Tensors that only get another name."""

    name: str

    def divide(self, tensor: StoredTensor, matched: Sequence[str]) -> Division:
        """Return the tensor as it is, under its new name."""
        return carried(tensor, fill(self.name, matched))


@dataclass(frozen=True, slots=True)
class FollowRule:
    """Tensors that are divided where another one is, as the scales of a quantised weight are.

    Attributes:
        leader: The name of the tensor that they follow, in which ``*`` stands for what the one of
            the pattern stands for.
        axis: Their axis; None for tensors of the same shape, which are divided as that one is, or
            whole where it is.
        block: How many elements of the weight one of theirs stands for, on that axis.
        packed: How many elements of the weight one of the followed tensor's holds.
        names: The names of the parts; empty where they are those of ranks.
    """

    leader: str
    axis: int | None
    block: int = 1
    packed: int = 1
    names: Sequence[str] = ()

    def length(self, leader: Division) -> int:
        """Return how long a tensor is that follows another one, whose last block may be smaller.

        Raises:
            SplitError: TS703 if the other one is not divided.
        """
        return self._blocks(leader.tensor.shape[self._plan_of(leader).axis])

    def carries(self, leader: Division) -> bool:
        """Return whether a tensor that follows another one is whole, as that one is."""
        return self.axis is None and not self.names and leader.plan is None

    def axis_of(self, leader: Division) -> int:
        """Return the axis on which a tensor is divided that follows another one."""
        return self._plan_of(leader).axis if self.axis is None else self.axis

    def divide(self, tensor: StoredTensor, matched: Sequence[str], leader: Division) -> Division:
        """Describe the division of a tensor, as of the one that it follows.

        Raises:
            SplitError: TS719 if a block would be cut, or the tensor has not one element for each;
                TS703 if the other one is not divided.
        """
        if self.axis is None and tensor.shape != leader.tensor.shape:
            problem = (
                f"it is of shape {show(tensor.shape)}, and"
                f" {short_name(leader.tensor.name)} of {show(leader.tensor.shape)}"
            )
            fix = "give its axis, or no rule: every rank gets what no rule names"
            raise SplitError(BLOCK_CUT, problem, fix, parameter="follow")
        if self.carries(leader):
            return carried(tensor, tensor.name)
        names = [fill(each, matched) for each in self.names]
        if self.names and len(names) != len(leader.outputs):
            parts = count_of(len(leader.outputs), "part")
            problem = f"{count_of(len(names), 'name')} for {parts}"
            raise SplitError(PART_NAMES, problem, "give one for each part", parameter="names")
        division = division_of(
            tensor,
            self._plan(tensor, leader),
            [each.parts for each in leader.outputs],
            [
                (name, each.rank)
                for name, each in zip(names or repeat(tensor.name), leader.outputs, strict=False)
            ],
        )
        return with_unpadded(division, self.length(leader)) if leader.is_padded else division

    def _plan_of(self, leader: Division) -> SplitPlan:
        if leader.plan is None or (leader.outputs[0].rank is None) != bool(self.names):
            problem = f"no rule of this kind divides {short_name(leader.tensor.name)}"
            fix = "follow a tensor that a rule divides, of [[split]] or [[shard]] as this one"
            raise SplitError(USAGE, problem, fix, parameter="follow")
        return leader.plan

    def _plan(self, tensor: StoredTensor, leader: Division) -> SplitPlan:
        """Plan a part for each of the other one, those of its padding too (TS719)."""
        plan, rank, axis = self._plan_of(leader), len(tensor.shape), self.axis_of(leader)
        length, whole = leader.tensor.shape[plan.axis], self.length(leader)
        name = short_name(leader.tensor.name)
        if -rank <= axis < rank and tensor.shape[axis] != whole:
            problem = (
                f"its dimension {axis} is {tensor.shape[axis]}, and"
                f" {name} of {length * self.packed} elements has"
                f" {count_of(whole, 'block')} of {self.block}"
            )
            fix = "give block and packed as they are"
            raise SplitError(BLOCK_CUT, problem, fix, parameter="block")
        ends = [0, *accumulate(sizes_of(plan))]
        inner = _never_cut(leader.outputs)
        for number, end in enumerate(ends):
            is_last = end == length == ends[-1]
            if end * self.packed % self.block and not is_last and number not in inner:
                problem = (
                    f"a part of {name} would end at its element"
                    f" {end * self.packed}, within a block of {self.block}"
                )
                fix = "choose ranks, heads or lengths that give whole blocks"
                raise SplitError(BLOCK_CUT, problem, fix, parameter="block")
        sizes = [end - start for start, end in pairwise(map(self._blocks, ends))]
        count = sum(end <= length for end in ends[1:])
        made = SplitOperands(axis, sizes[:count]).plan(tensor)
        return replace(made, sizes=(*made.sizes, *sizes[count:]))

    def _blocks(self, length: int) -> int:
        """Return in how many blocks so many elements of the followed tensor are."""
        return -(-length * self.packed // self.block)


TensorRule: TypeAlias = SplitRule | ShardRule | FollowRule | RenameRule


def _never_cut(outputs: Iterable[NewTensor]) -> set[int]:
    """Return before which parts of a plan nothing is cut: what has one has both, side by side."""
    orders = [each.parts for each in outputs]
    held = Counter(part for order in orders for part in order)
    beside = Counter(b for order in orders for a, b in pairwise(order) if b == a + 1)
    return {part for part, times in beside.items() if times == held[part] == held[part - 1]}
