"""Which new tensors become of a stored one: operands into a plan, and the names of the parts."""

from __future__ import annotations

import contextlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import accumulate, combinations, pairwise, repeat, starmap
from typing import Any, SupportsIndex, TypeAlias

from tensorsplit.arrays.arguments import bind_values
from tensorsplit.arrays.prepared import counted
from tensorsplit.arrays.typed import Lengths
from tensorsplit.core.errors import (
    BLOCK_CUT,
    HEAD_CUT,
    NOT_DIVISIBLE,
    NOT_PARTS,
    OTHER_RANKS,
    PART_NAMES,
    TOO_MANY_PARTS,
    USAGE,
    SplitError,
    count_of,
    short_name,
    show,
)
from tensorsplit.core.plan import SplitPlan, sizes_of
from tensorsplit.core.records import NEWEST_OPSET, in_force, operators
from tensorsplit.core.resolve import check_element_type
from tensorsplit.core.resolve import plan as plan_intent
from tensorsplit.core.schema import Operator
from tensorsplit.files.formats import Division, NewTensor, Recast, StoredTensor
from tensorsplit.storage.outputs import encoded_name

_LONGEST_NAME = 240
_MOST_PARTS = 1 << 21
_FOR_RANKS = "choose a number of ranks that divides it, or pad it with pad_to or pad_each_to"
_EQUAL = "openvino.Split-1"  # parts of one length, of any element type


@dataclass(frozen=True, slots=True)
class SplitOperands:
    """A split, as a caller or a rule writes it.

    Attributes:
        axis: The axis; None for the default of the operator version.
        split: The length of each part.
        num_outputs: How many parts.
        chunk: The length of each part but perhaps the last.
        operator: The identifier of an operator version; None for Split, or SplitToSequence where
            chunks are asked for.
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
        """Describe what becomes of a tensor; `matched` is what the pattern's ``*`` stand for.

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
            sizes = _divided(sizes_of(plan), self.groups, "groups")
            plan = replace(plan, sizes=tuple(sizes) * self.groups)
        _check_multiples(plan, self.multiple_of)
        filled = [fill(name, matched) for name in names]
        return _division(tensor, plan, parts, zip(filled, repeat(None)))

    def for_parts(self, lengths: Sequence[int]) -> SplitRule:
        """Return the rule for parts of these lengths: where it says none, it takes them as such."""
        operands = self.operands
        if (operands.split, operands.num_outputs, operands.chunk) != (None, None, None):
            return self
        return replace(self, operands=replace(operands, split=lengths))


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
        """Describe what each rank gets of a tensor, in the order in which it lies there."""
        if self.split is None:
            plan, parts, spans = self._in_pieces(tensor)
        else:
            plan, spans = self._one_each(tensor, self.split), []
            parts = [[each] for each in range(self.ranks)]
        _check_multiples(plan, self.multiple_of)
        plan, parts = _padding_last(plan, parts, spans)
        name = fill(self.name, matched) if self.name != "*" else tensor.name
        division = _division(tensor, plan, parts, zip(repeat(name), range(self.ranks)))
        return _noted(division, tensor.shape[plan.axis]) if self.pads else division

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
            (size,) = _divided([sum(sizes_of(plan))], heads, "heads")
            for rank, length in enumerate(sizes_of(plan)):
                if size and length % size:
                    problem = f"the length {length} of rank {rank} would cut one of {heads} heads"
                    fix = f"give multiples of {size}"
                    raise SplitError(HEAD_CUT, problem, fix, parameter="heads")
        return plan

    def _in_pieces(
        self, tensor: StoredTensor
    ) -> tuple[SplitPlan, list[list[int]], list[tuple[int, int]]]:
        """Plan equal shares of each segment, and say which of these each rank gets.

        Also says how long each stretch of each segment is, without padding and with it.
        """
        plan = self._fused(tensor)
        lengths = _divided(sizes_of(plan), self.groups, "groups")  # of a group
        shares, is_by_group = 1, self.groups % self.ranks == 0
        if not is_by_group:
            (shares,) = _divided([self.ranks], self.groups, "groups")
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
            for size in _divided([piece], count, "ranks", _FOR_RANKS) * count
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
            (length,) = _divided([segment], count, "pad_in")
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
            (head,) = _divided([segment * self.groups], heads, "heads")
            if padded == length or heads == self.groups:  # where a group is a head, that is padded
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
        (head,) = _divided(sizes_of(plan), sum(self.heads), "heads")
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
        """Describe what becomes of a tensor, as of the one that it follows.

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
        division = _division(
            tensor,
            self._plan(tensor, leader),
            [each.parts for each in leader.outputs],
            [
                (name, each.rank)
                for name, each in zip(names or repeat(tensor.name), leader.outputs, strict=False)
            ],
        )
        return _noted(division, self.length(leader)) if leader.is_padded else division

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
    return Recast(carried(whole, whole.name), (whole,), division)


def fill(name: str, matched: Sequence[str]) -> str:
    """Return a name with what each ``*`` stands for (TS706 if there are more or fewer)."""
    pieces = name.split("*")
    if len(pieces) == 1:
        return name
    if len(pieces) != len(matched) + 1:
        raise SplitError(
            PART_NAMES,
            f"{show(name)} holds {len(pieces) - 1} *, and the pattern leaves {len(matched)} open",
            "give as many",
            parameter="names",
        )
    return pieces[0] + "".join(map("".join, zip(matched, pieces[1:], strict=True)))


def _division(
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


def _noted(division: Division, length: int) -> Division:
    """Return a division whose parts say how long the whole was before it was padded."""
    outputs = (replace(each, unpadded=length) for each in division.outputs)
    return replace(division, outputs=tuple(outputs))


def _never_cut(outputs: Iterable[NewTensor]) -> set[int]:
    """Return before which parts of a plan nothing is cut: what has one has both, side by side."""
    orders = [each.parts for each in outputs]
    held = Counter(part for order in orders for part in order)
    beside = Counter(b for order in orders for a, b in pairwise(order) if b == a + 1)
    return {part for part, times in beside.items() if times == held[part] == held[part - 1]}


def _layout(plan: SplitPlan, numbers: Sequence[int]) -> str:
    """Return what is the same for rules that give a rank the same elements; empty for all."""
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


def _divided(
    sizes: Iterable[int], count: int, parameter: str, fix: str = "choose others"
) -> list[int]:
    """Return each length divided by a count; TS303 if one can't be."""
    for size in sizes:
        if size % count:
            problem = f"the length {size} is not a multiple of {count}"
            raise SplitError(NOT_DIVISIBLE, problem, fix, parameter=parameter)
    return [size // count for size in sizes]


def _check_multiples(plan: SplitPlan, block: int) -> None:
    """Refuse (TS303) lengths that are not whole blocks."""
    for size in sizes_of(plan):
        if size % block:
            problem = f"a part of length {size} is not a multiple of {block}"
            raise SplitError(NOT_DIVISIBLE, problem, "choose others", parameter="multiple_of")


def check_names(changes: Iterable[Recast]) -> None:
    """Refuse (TS706) names that no format can write, and two tensors of one name for a rank."""
    ranks: dict[str, set[int | None]] = {}
    for output in (output for change in changes for output in change.after.outputs):
        name, taken = output.name, ranks.setdefault(output.name, set())
        if not name or any("\ud800" <= char <= "\udfff" for char in name):
            problem, fix = f"{show(name)} is not a name", "give one in UTF-8"
        elif taken and (output.rank is None or not taken.isdisjoint((output.rank, None))):
            problem = f"two tensors would be called {show(name)}"
            fix = "give each a name of its own; * stands for the name of the tensor"
        else:
            taken.add(output.rank)
            continue
        raise SplitError(PART_NAMES, problem, fix, parameter="names")


def check_file_names(names: Iterable[str]) -> None:
    """Refuse (TS706) names that are not those of different files in one folder."""
    for name, count in Counter(names).items():
        octets = None if name in ("", ".", "..") or "/" in name else encoded_name(name)
        if octets is None or "\\" in name or len(octets) > _LONGEST_NAME:
            problem = f"{show(name)} can't be the name of a file"
            fix = f"give names without slashes, of at most {_LONGEST_NAME} bytes"
        elif count > 1:
            problem = f"{count} files would be called {show(name)}"
            fix = "give each a name of its own"
        else:
            continue
        raise SplitError(PART_NAMES, problem, fix, parameter="names")
