"""The parts of a tensor for each rank of tensor parallelism: equal shares, whole heads, padding."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, combinations, repeat, starmap
from typing import TypeAlias

from tensorsplit.core.errors import (
    HEAD_CUT,
    NOT_DIVISIBLE,
    NOT_PARTS,
    OTHER_RANKS,
    USAGE,
    SplitError,
    count_of,
    show,
)
from tensorsplit.core.plan import SplitPlan, sizes_of
from tensorsplit.files.divisions import (
    SplitOperands,
    check_multiples,
    divided,
    division_of,
    with_unpadded,
)
from tensorsplit.files.formats import Division, StoredTensor
from tensorsplit.files.tensor_names import fill

_FIX_OF_RANKS = "choose a number of ranks that divides it, or pad it with pad_to or pad_each_to"


_EQUAL = "openvino.Split-1"  # parts of one length, of any element type


@dataclass(frozen=True, slots=True)
class ShardRule:
    """Tensors that are divided among the ranks of tensor parallelism.

    Attributes:
        axis: The axis.
        ranks: How many ranks there are.
        segments: The lengths of the tensors that were fused, of each of which every rank gets its
            part; None for one, or for what their heads give.
        groups: How many times they are repeated on the axis, one after the other, each time a
            share of them. A rank gets whole groups, or its part of one.
        name: What the tensor is called in each rank.
        multiple_of: What the length of each piece that a rank gets must be a multiple of.
        heads: Of how many attention heads the tensor is, or each segment; a rank gets whole ones.
        replicate: Whether several ranks get the same head where there are fewer of them than ranks,
            or for each segment, whether they do.
        split: The length that each rank gets; None for equal ones.
        pad_to: What the length of each segment, in each group, is padded with zeros to a multiple
            of before it is divided: one number for all segments, or one for each; None for no
            padding.
        pad_each_to: The same, for what each rank gets of it.
        pad_in: In how many stretches of one length each segment is padded, each at its end; None
            for one.
    """

    axis: int
    ranks: int
    segments: Sequence[int] | None = None
    groups: int = 1
    name: str = "*"
    multiple_of: int = 1
    heads: Sequence[int] | None = None
    replicate: Sequence[bool] = ()
    split: Sequence[int] | None = None
    pad_to: Sequence[int] | None = None
    pad_each_to: Sequence[int] | None = None
    pad_in: Sequence[int] | None = None

    @property
    def pads(self) -> bool:
        """Whether tensors are padded."""
        return self.pad_to is not None or self.pad_each_to is not None

    def divide(self, tensor: StoredTensor, matched: Sequence[str]) -> Division:
        """Describe the parts of a tensor for each rank, in the order in which they lie there."""
        if self.split is None:
            plan, parts, spans = self._in_pieces(tensor)
        else:
            plan, spans = self._one_each(tensor, self.split), []
            parts = [[each] for each in range(self.ranks)]
        check_multiples(plan, self.multiple_of)
        plan, parts = _padding_last(plan, parts, spans)
        name = fill(self.name, matched) if self.name != "*" else tensor.name
        division = division_of(tensor, plan, parts, zip(repeat(name), range(self.ranks)))
        return with_unpadded(division, tensor.shape[plan.axis]) if self.pads else division

    def whole_length(self, lengths: Sequence[int]) -> int:
        """Return the length of the tensor of which each rank has this length (TS713)."""
        heads = self.heads or ()
        copies = self._copies(heads)
        if max(copies) == 1:
            return sum(lengths)
        if len(set(lengths)) > 1:
            problem = f"ranks hold {show(list(lengths))} of it, and the rule gives all the same"
            raise SplitError(NOT_PARTS, problem, "give all parts", parameter="source")
        if self.segments is not None:
            return sum(self.segments)
        held = sum(each * count for each, count in zip(heads, copies, strict=True))
        return sum(lengths) * sum(heads) // held

    def _copies(self, heads: Sequence[int]) -> list[int]:
        """Return for each segment how many ranks, one after the other, get the same of it."""
        if not any(self.replicate):
            return [1] * len(heads or self.segments or (1,))
        copies = []
        for held, is_repeated in zip(heads, self.replicate, strict=True):
            count, rest = divmod(self.ranks, held)
            copies.append(max(count, 1) if is_repeated and not rest else 1)
        return copies

    def _one_each(self, tensor: StoredTensor, split: Sequence[int]) -> SplitPlan:
        """Plan a part of the given length for each rank (TS714, TS715)."""
        if len(split) != self.ranks:
            raise SplitError(
                OTHER_RANKS,
                f"{show(list(split))} are the lengths of {count_of(len(split), 'rank')},"
                f" and there are {self.ranks}",
                "give a length for each rank, or none for equal ones",
                parameter="split",
            )
        plan = SplitOperands(self.axis, split).plan(tensor)
        for heads in self.heads or ():
            (size,) = divided([sum(sizes_of(plan))], heads, "heads")
            for rank, length in enumerate(sizes_of(plan)):
                if size and length % size:
                    problem = f"the length {length} of rank {rank} would cut one of {heads} heads"
                    fix = f"give multiples of {size}"
                    raise SplitError(HEAD_CUT, problem, fix, parameter="heads")
        return plan

    def _in_pieces(
        self, tensor: StoredTensor
    ) -> tuple[SplitPlan, list[list[int]], list[tuple[int, int]]]:
        """Plan equal shares of each segment, and which of these each rank gets.

        Returns also how long each stretch of each segment is, without padding and with it.
        """
        plan = self._fused(tensor)
        lengths = divided(sizes_of(plan), self.groups, "groups")  # of a group
        shares, is_by_group = 1, self.groups % self.ranks == 0
        if not is_by_group:
            (shares,) = divided([self.ranks], self.groups, "groups")
        stretches = self.pad_in or [1] * len(lengths)
        spans = self._padded(lengths, shares, stretches)
        pieces = [padded * count for (_, padded), count in zip(spans, stretches, strict=True)]
        heads = self._padded_heads(lengths, spans, stretches)
        copies = self._copies(heads)
        self._check_heads(heads, copies)
        if is_by_group:
            pieces = [sum(pieces) * (self.groups // self.ranks)]
        elif self.groups > 1 and self.segments is None and len(pieces) == 1:
            problem = f"{self.ranks} ranks would cut {self.groups} groups"
            fix = "list in segments what they consist of"
            raise SplitError(NOT_DIVISIBLE, problem, fix, parameter="groups")
        counts = [shares // each for each in copies[: len(pieces)]]
        sizes = [
            size
            for piece, count in zip(pieces, counts, strict=True)
            for size in divided([piece], count, "ranks", _FIX_OF_RANKS) * count
        ]
        step = len(sizes)  # the parts from one group, or rank, to the next
        starts = [0, *accumulate(counts)][:-1]
        parts = []
        for rank in range(self.ranks):
            group, share = divmod(rank, shares)
            places = zip(starts, copies, strict=False)
            parts.append([group * step + start + share // each for start, each in places])
        repeated = zip(spans, stretches, strict=True)
        spans = [span for span, count in repeated for _ in range(count)] * self.groups
        return replace(plan, sizes=tuple(sizes) * (self.ranks // shares)), parts, spans

    def _padded(
        self, lengths: Sequence[int], shares: int, stretches: Sequence[int]
    ) -> list[tuple[int, int]]:
        """Return how long a stretch of each segment is, without padding and with it."""
        blocks = self.pad_to or [each * shares for each in self.pad_each_to or ()] or [1]
        if len(blocks) == 1:
            blocks = [*blocks] * len(lengths)
        spans = []
        for segment, block, count in zip(lengths, blocks, stretches, strict=True):
            (length,) = divided([segment], count, "pad_in")
            spans.append((length, -(-length // block) * block))
        return spans

    def _padded_heads(
        self,
        lengths: Sequence[int],
        spans: Sequence[tuple[int, int]],
        stretches: Sequence[int],
    ) -> list[int]:
        """Return how many heads each segment has with its padding (TS703, TS714)."""
        found = []
        for segment, (length, padded), count, heads in zip(
            lengths, spans, stretches, self.heads or (), strict=False
        ):
            (head,) = divided([segment * self.groups], heads, "heads")
            # where a group is a head, that is padded
            if padded == length or heads == self.groups > 1:
                found.append(heads)
                continue
            if length % head:
                problem = f"{count} stretches would cut {count_of(heads, 'head')}"
                fix = "choose a number that divides the heads"
                raise SplitError(HEAD_CUT, problem, fix, parameter="pad_in")
            if padded % head:
                problem = f"the padded length {padded} would cut a head of {head}"
                fix = f"pad to a multiple of {head}"
                raise SplitError(HEAD_CUT, problem, fix, parameter="pad_to")
            found.append(padded * count // head * self.groups)
        whole = self.heads or ()
        # A key that is alone in its group belongs to every query head there.
        known = [
            each
            for each in zip(found, whole, stretches, strict=False)
            if each[1] != self.groups or self.groups == 1
        ]
        if not all(starmap(_belong_as_before, combinations(known, 2))):
            problem = (
                f"padded to {show(found)}, the heads {show(list(whole))} would not belong to"
                " each other as before"
            )
            fix = (
                "pad all segments by the same share of their heads, or by pad_in the query heads"
                " of each key"
            )
            raise SplitError(USAGE, problem, fix, parameter="pad_to")
        return found

    def _fused(self, tensor: StoredTensor) -> SplitPlan:
        """Plan the segments: of the given lengths, or by their heads, all of one length."""
        whole = SplitOperands(self.axis, num_outputs=1, operator=_EQUAL)
        if self.segments is not None:
            return SplitOperands(self.axis, self.segments).plan(tensor)
        plan = whole.plan(tensor)
        if self.heads is None or len(self.heads) == 1:
            return plan
        (head,) = divided(sizes_of(plan), sum(self.heads), "heads")
        return SplitOperands(self.axis, [head * each for each in self.heads]).plan(tensor)

    def _check_heads(self, whole: Sequence[int], copies: Sequence[int]) -> None:
        """Refuse (TS714) ranks, or groups, that would cut heads."""
        is_by_group = self.groups % self.ranks == 0
        for heads, copied, before in zip(whole, copies, self.heads or (), strict=False):
            is_grouped = is_by_group or copied > 1
            count, what = (self.groups, "group") if is_grouped else (self.ranks, "rank")
            if heads % count:
                problem = f"{count_of(count, what)} would cut {count_of(heads, 'head')}"
                if heads != before:
                    problem = f"{problem}; those of the padding are counted"
                fix = "choose a number that divides the heads"
                if heads < count and not any(self.replicate):
                    fix = f"{fix}; or say replicate, if these are heads of keys or values"
                raise SplitError(HEAD_CUT, problem, fix, parameter="heads")


_Heads: TypeAlias = tuple[int, int, int]
"""The heads of a segment with their padding and without it, and in how many stretches it is."""


def _belong_as_before(one: _Heads, other: _Heads) -> bool:
    """Return whether heads that are padded belong to the same ones of another segment as before."""
    if one[0] * other[1] == other[0] * one[1]:
        return one[2] == other[2] or one[0] == one[1]
    return any(a[0] == a[1] and b[2] % a[1] == 0 for a, b in ((one, other), (other, one)))


def _padding_last(
    plan: SplitPlan, parts: list[list[int]], spans: Sequence[tuple[int, int]]
) -> tuple[SplitPlan, list[list[int]]]:
    """Put all padding after the whole: return that plan, and the same parts by its numbers.

    That of the last segment comes first, because it may fill a block that the whole ends in.

    Args:
        plan: The plan of the padded whole.
        parts: Which of its parts each rank gets.
        spans: How long each segment is in order, without padding and with it.
    """
    if all(length == padded for length, padded in spans):
        return plan, parts
    bounds = [0, *accumulate(size for a, b in spans for size in (a, b - a))]
    ends = [0, *accumulate(sizes_of(plan))]
    cuts = sorted({*bounds, *ends})

    def kind(piece: int) -> int:
        bound = bisect_right(bounds, cuts[piece])
        return 0 if bound % 2 else 1 if bound == len(bounds) - 1 else 2

    order = sorted(range(len(cuts) - 1), key=kind)
    numbers = {each: number for number, each in enumerate(order)}

    def pieces(part: int) -> list[int]:
        first, last = (bisect_left(cuts, end) for end in ends[part : part + 2])
        return [numbers[each] for each in range(first, last)]

    sizes = tuple(cuts[each + 1] - cuts[each] for each in order)
    moved = [[piece for part in some for piece in pieces(part)] for some in parts]
    return replace(plan, sizes=sizes), moved
