"""The tables of a file of rules, as msgspec checks them."""

from __future__ import annotations

from functools import cache
from typing import Annotated, TypeAlias

import msgspec

from tensorsplit.files.divisions import SplitOperands
from tensorsplit.files.formats import RANK_FILE
from tensorsplit.files.sharding import ShardRule
from tensorsplit.files.tensor_rules import FollowRule, RenameRule, SplitRule, TensorRule

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=1 << 20)]
_Patterns: TypeAlias = "str | list[str]"


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tensors: _Patterns

    def rule(self) -> TensorRule:
        raise NotImplementedError


def _check_follow(table: _SplitTable | _ShardTable, kept: set[str]) -> None:
    """Raise a ValueError for a table that sets what the tensor that it follows decides."""
    own = {"block", "packed"}
    kept = {"tensors", "follow", *kept, *own}
    defaults = _defaults(type(table)).items()
    given = [name for name, default in defaults if getattr(table, name) != default]
    if table.follow is None and not own.isdisjoint(given):
        raise ValueError("block and packed go with follow")
    if table.follow is not None and not kept.issuperset(given):
        raise ValueError(f"follow goes without {min(set(given) - kept)}")
    if table.axis is None and not own.isdisjoint(given):
        raise ValueError("block and packed need an axis")


@cache
def _defaults(kind: type[_Table]) -> dict[str, object]:
    """Return the fields of a table with their defaults, which msgspec finds slowly."""
    return {each.name: each.default for each in msgspec.structs.fields(kind)}


def _listed(value: int | list[int] | None) -> list[int] | None:
    return [value] if isinstance(value, int) else value


class _SplitTable(_Table, frozen=True, forbid_unknown_fields=True):
    axis: int | None = None
    split: list[int] | None = None
    num_outputs: int | None = None
    chunk: int | None = None
    operator: str | None = None
    opset: int | None = None
    names: list[str] | None = None
    groups: _Count = 1
    multiple_of: _Count = 1
    follow: str | None = None
    block: _Count = 1
    packed: _Count = 1

    def __post_init__(self) -> None:
        """Refuse fields that contradict each other."""
        _check_follow(self, {"axis", "names"})
        if self.follow is not None and not self.names:
            raise ValueError("follow needs names")

    def rule(self) -> TensorRule:
        if self.follow is not None:
            return FollowRule(self.follow, self.axis, self.block, self.packed, self.names or ())
        values = (self.axis, self.split, self.num_outputs, self.chunk, self.operator, self.opset)
        return SplitRule(SplitOperands(*values), self.names, self.groups, self.multiple_of)


class _ShardTable(_Table, frozen=True, forbid_unknown_fields=True, kw_only=True):
    axis: int | None = None
    ranks: _Count | None = None
    split: Annotated[list[int], msgspec.Meta(min_length=1)] | None = None
    segments: list[int] | None = None
    groups: _Count = 1
    heads: _Count | list[_Count] | None = None
    replicate: bool | list[bool] = False
    name: str = "*"
    multiple_of: _Count = 1
    pad_to: _Count | list[_Count] | None = None
    pad_each_to: _Count | list[_Count] | None = None
    pad_in: _Count | list[_Count] | None = None
    follow: str | None = None
    block: _Count = 1
    packed: _Count = 1

    def __post_init__(self) -> None:
        """Refuse fields that contradict each other."""
        _check_follow(self, {"axis"})
        if self.axis is None and self.follow is None:
            raise ValueError("axis is missing; only what follows another tensor goes without")
        heads = _listed(self.heads)
        is_fused = self.segments is not None or self.groups > 1 or len(heads or ()) > 1
        if self.split is not None and (is_fused or self.replicate):
            raise ValueError("split goes without segments, groups and replicate")
        self._check_padding()
        if self.replicate and heads is None:
            raise ValueError("replicate needs heads")
        if self.replicate is True and is_fused:
            raise ValueError(
                "replicate = true goes without segments and groups; of fused tensors it is a list"
                " of one for each segment, such as [false, true, true]"
            )
        if isinstance(self.replicate, list) and len(self.replicate) != len(heads or ()):
            raise ValueError("replicate is true, or a list of one for each of the heads")
        if heads is not None and self.segments is not None and len(heads) != len(self.segments):
            raise ValueError("heads is a number, or a list of one for each segment")

    def _check_padding(self) -> None:
        """Raise a ValueError for padding that contradicts other fields."""
        if self.pad_in is not None and (self.pad_to is None or self.groups > 1):
            raise ValueError("pad_in goes with pad_to, and without groups")
        if self.pad_to is None and self.pad_each_to is None:
            return
        if self.pad_to is not None and self.pad_each_to is not None:
            raise ValueError("pad_to goes without pad_each_to")
        if self.split is not None:
            raise ValueError("split says what each rank gets, so that nothing is left to pad")
        if self.pad_each_to is not None and self.heads is not None:
            raise ValueError("heads are padded as wholes: say in pad_to how many elements they are")
        pads = _listed(self.pad_to) or _listed(self.pad_each_to) or []
        count = len(self.segments or _listed(self.heads) or [0])
        if not isinstance(self.pad_to or self.pad_each_to, int) and len(pads) != count:
            raise ValueError(
                "pad_to and pad_each_to are a number, or a list of one for each segment"
            )
        if self.pad_in is not None and len(_listed(self.pad_in) or ()) != count:
            raise ValueError("pad_in is a number, or of several segments a list of one for each")

    def count(self) -> int | None:
        """Return the number of ranks that it states; None if it states none."""
        return len(self.split) if self.ranks is None and self.split is not None else self.ranks

    def rule(self) -> TensorRule:
        if self.follow is not None:
            return FollowRule(self.follow, self.axis, self.block, self.packed)
        return ShardRule(
            self.axis or 0,
            0,  # until `RuleSet.for_ranks`, where all rules state the same number
            self.segments,
            self.groups,
            self.name,
            self.multiple_of,
            _listed(self.heads),
            [self.replicate] if isinstance(self.replicate, bool) else self.replicate,
            self.split,
            _listed(self.pad_to),
            _listed(self.pad_each_to),
            _listed(self.pad_in),
        )


class _RenameTable(_Table, frozen=True, forbid_unknown_fields=True, kw_only=True):
    name: str

    def rule(self) -> TensorRule:
        return RenameRule(self.name)


class RuleTables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a file of rules."""

    split: list[_SplitTable] = []
    shard: list[_ShardTable] = []
    rename: list[_RenameTable] = []
    file: str = RANK_FILE
    common: str | None = None
