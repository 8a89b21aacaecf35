"""What rules give to each new tensor, compared with slices and concatenations of NumPy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import msgspec
import numpy as np
import pytest

from tensorsplit.core.errors import SplitError
from tensorsplit.core.plan import offsets_of, sizes_of
from tensorsplit.files.divisions import SplitOperands, located
from tensorsplit.files.formats import Division, NewTensor, Recast, StoredTensor
from tensorsplit.files.rule_files import PatternRule, RuleSet
from tensorsplit.files.rule_tables import RuleTables
from tensorsplit.files.sharding import ShardRule
from tensorsplit.files.tensor_names import check_file_names, check_names, fill
from tensorsplit.files.tensor_rules import FollowRule, RenameRule, SplitRule, TensorRule

Array = np.ndarray[Any, Any]
ZERO = -1
"""What stands for an element of padding, where others are numbered."""


def tensor(length: int, name: str = "t") -> StoredTensor:
    return StoredTensor(name, (2, length), "float", 8 * length)


def numbers(division: Division) -> list[list[int]]:
    """The numbers of the elements of each new tensor, and `ZERO` for each that is padding."""
    plan = division.plan
    assert plan is not None
    held = np.full(sum(sizes_of(plan)), ZERO)
    length = division.tensor.shape[1]
    held[:length] = np.arange(length)
    spans = list(zip(offsets_of(plan), sizes_of(plan), strict=True))
    pieces = [
        [held[a : a + n] for a, n in map(spans.__getitem__, o.parts)] for o in division.outputs
    ]
    return [np.concatenate(each).tolist() for each in pieces]


class CutError(Exception):
    """What was cut must not be."""


def equal(whole: Array, count: int) -> list[Array]:
    """Equal parts."""
    if len(whole) % count:
        raise CutError
    return np.split(whole, count)


def expected(rule: ShardRule, length: int) -> list[list[int]]:
    """The elements of each rank: whole groups, or an equal share of each segment of one."""
    groups = equal(np.arange(length), rule.groups)
    fused = rule.segments or [length]
    if any(each % rule.groups for each in fused):
        raise CutError
    pads = list(rule.pad_to or [1])
    pads = pads * len(fused) if len(pads) == 1 else pads
    segments = []
    for group in groups:
        ends = np.cumsum([each // rule.groups for each in fused])[:-1]
        pieces = np.split(group, ends)
        both = zip(pieces, pads, strict=True)
        segments.append([np.pad(p, (0, -len(p) % pad), constant_values=ZERO) for p, pad in both])
    if rule.groups % rule.ranks == 0:
        few = rule.groups // rule.ranks
        wholes = [np.concatenate(each) for each in segments]
        return [
            np.concatenate(wholes[rank * few : rank * few + few]).tolist()
            for rank in range(rule.ranks)
        ]
    if rule.ranks % rule.groups or (rule.groups > 1 and rule.segments is None):
        raise CutError
    shares = rule.ranks // rule.groups
    found = []
    for rank in range(rule.ranks):
        pieces = [equal(each, shares)[rank % shares] for each in segments[rank // shares]]
        found.append(np.concatenate(pieces).tolist())
    return found


def result(rule: ShardRule, length: int) -> list[list[int]] | str:
    try:
        return numbers(rule.divide(tensor(length), ["t"]))
    except SplitError:
        return "refused"


def outside(rule: ShardRule, length: int) -> list[list[int]] | str:
    try:
        return expected(rule, length)
    except CutError:
        return "refused"


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("groups", [1, 2, 3, 4])
def test_a_rank_gets_whole_groups_or_a_share_of_each_segment_of_one(
    groups: int, ranks: int, padded: bool
) -> None:
    random = np.random.default_rng([groups, ranks, padded])
    fine = 0
    for _ in range(60):
        count = int(random.integers(1, 4))
        unit = groups * (1 if padded else int(random.choice([1, ranks])))
        segments = [int(each) * unit for each in random.integers(1, 5, count)]
        pads = [int(each) for each in random.choice([1, 2, 3, 4, 6], random.choice([1, count]))]
        is_fused = count > 1 or random.integers(2) == 0
        rule = ShardRule(
            1,
            ranks,
            segments if is_fused else None,
            groups,
            pad_to=pads if padded else None,
        )
        found = result(rule, sum(segments))
        assert found == outside(rule, sum(segments)), rule
        fine += found != "refused"
    assert (fine > 0) is (ranks % groups == 0 or groups % ranks == 0)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6, 8])
def test_ranks_of_which_several_have_the_same_head_lie_side_by_side(ranks: int) -> None:
    for query, key, size, is_repeated in product((4, 8, 12), (1, 2, 3, 4), (1, 2), (False, True)):
        if query % key:
            continue
        heads, lengths = [query, key], [query * size, key * size]
        rule = ShardRule(1, ranks, None, heads=heads, replicate=[False, is_repeated])
        parts: list[list[int]] | str = "refused"
        fits = key % ranks == 0 or (is_repeated and ranks % key == 0)
        if query % ranks == 0 and fits:
            first, second = np.split(np.arange(sum(lengths)), [lengths[0]])
            copies = max(ranks // key, 1) if is_repeated else 1
            keys = [each for each in np.split(second, ranks // copies) for _ in range(copies)]
            both = zip(np.split(first, ranks), keys, strict=True)
            parts = [np.concatenate(each).tolist() for each in both]
        assert result(rule, sum(lengths)) == parts, rule
        if parts != "refused":
            held = [len(each) for each in parts]
            assert rule.whole_length(held) == sum(lengths)


@pytest.mark.parametrize("lengths", [(3, 5), (2, 2, 4), (0, 8), (8,)])
def test_lengths_that_differ_are_those_of_the_ranks(lengths: tuple[int, ...]) -> None:
    whole, ends = np.arange(8), np.cumsum(lengths)[:-1]
    rule = ShardRule(1, len(lengths), split=lengths)
    assert result(rule, 8) == [each.tolist() for each in np.split(whole, ends)]
    assert result(ShardRule(1, len(lengths) + 1, split=lengths), 8) == "refused"
    for heads in (1, 2, 4, 8):
        cut = any(each % (8 // heads) for each in lengths)
        kept = result(ShardRule(1, len(lengths), split=lengths, heads=[heads]), 8)
        assert (kept == "refused") is cut
    for multiple in (1, 2, 3, 4):
        cut = any(each % multiple for each in lengths)
        kept = result(ShardRule(1, len(lengths), split=lengths, multiple_of=multiple), 8)
        assert (kept == "refused") is cut


@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("sizes", [(6,), (6, 6), (6, 12, 18), (12, 6)])
def test_each_name_gets_its_part_of_every_group(sizes: tuple[int, ...], groups: int) -> None:
    rule = SplitRule(SplitOperands(1, list(sizes)), groups=groups)
    found = rule.divide(tensor(sum(sizes)), ["t"])
    ends = np.cumsum([each // groups for each in sizes])[:-1]
    pieces = [np.split(each, ends) for each in np.split(np.arange(sum(sizes)), groups)]
    assert numbers(found) == [np.concatenate(each).tolist() for each in zip(*pieces, strict=True)]
    assert [each.shape for each in found.outputs] == [(2, each) for each in sizes]
    assert [each.name for each in found.outputs] == [f"t.{n}" for n in range(len(sizes))]


def followed(leader: Division, packed: int, block: int) -> list[list[int]] | str:
    """The blocks of each part of a tensor; `refused` if one has not all elements of a block."""
    length = leader.tensor.shape[1]
    of_block = [element * packed // block for element in range(length)]
    found = []
    for held in numbers(leader):
        blocks = list(dict.fromkeys(of_block[element] for element in held))
        if sorted(e for e in range(length) if of_block[e] in blocks) != sorted(held):
            return "refused"
        if [of_block[each] for each in held] != [
            b for b in blocks for _ in range(of_block.count(b))
        ]:
            return "refused"
        found.append(blocks)
    return found


@pytest.mark.parametrize("block", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("segments", [None, [8, 4, 4], [6, 6, 4], [2, 14], [12, 3, 1]])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_what_follows_has_the_blocks_of_the_elements_that_a_rank_has(
    ranks: int, segments: Sequence[int] | None, block: int
) -> None:
    if segments and any(each % ranks for each in segments):
        return
    leader = ShardRule(1, ranks, segments).divide(tensor(16), ["t"])
    wanted = followed(leader, 1, block)
    rule = FollowRule("t", 1, block)
    try:
        found: list[list[int]] | str = numbers(
            rule.divide(tensor(-(-16 // block), "s"), [], leader)
        )
    except SplitError:
        found = "refused"
    assert found == wanted


@pytest.mark.parametrize(("length", "block", "packed", "blocks"), [(10, 4, 1, 3), (6, 4, 8, 12)])
def test_as_many_blocks_as_the_elements_fill_or_begin(
    length: int, block: int, packed: int, blocks: int
) -> None:
    leader = ShardRule(1, 1).divide(tensor(length), ["t"])
    rule = FollowRule("t", 1, block, packed)
    assert rule.length(leader) == blocks
    for other in range(1, 20):
        try:
            rule.divide(tensor(other, "s"), [], leader)
            fits = True
        except SplitError:
            fits = False
        assert fits is (other == blocks)


def test_a_tensor_that_gets_another_name_is_as_it_was() -> None:
    (only,) = RenameRule("new.*").divide(tensor(3, "old"), ["x"]).outputs
    assert (only.name, only.shape, only.parts, only.rank) == ("new.x", (2, 3), (), None)


LETTERS = [*map("".join, (p for n in range(6) for p in product("ab", repeat=n)))]
PATTERNS = ["*", "a*", "*a", "a*b", "*a*", "*a*b*", "a*a", "ab", "", "**", "*ab*a", "b*a*b"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_stars_stand_for_what_they_stand_for_in_regular_expressions(pattern: str) -> None:
    compiled = re.compile("(.*)".join(map(re.escape, pattern.split("*"))))
    rule = PatternRule(pattern, RenameRule(""))
    for name in LETTERS:
        found = compiled.fullmatch(name)
        wanted = None if found is None else list(found.groups()) or [name]
        assert rule.matched(name) == wanted
        if found is not None and "*" in pattern:
            assert fill(pattern, wanted or []) == name
            assert fill(f"<{pattern}>", wanted or []) == f"<{name}>"


FIELDS: dict[str, dict[str, Any]] = {
    "shard": {"axis": 1, "ranks": 2, "split": [2, 2], "segments": [4], "groups": 2, "heads": 2}
    | {"replicate": True, "name": "x", "multiple_of": 2, "pad_to": 2, "pad_each_to": 2}
    | {"pad_in": 2, "follow": "w", "block": 2, "packed": 2},
    "split": {"axis": 1, "split": [2, 2], "num_outputs": 2, "chunk": 2, "opset": 18}
    | {"operator": "onnx.Split-18", "names": ["a", "b"], "groups": 2, "multiple_of": 2}
    | {"follow": "w", "block": 2, "packed": 2},
}
NEEDS = {
    "shard": {name: {"axis"} for name in {*FIELDS["shard"]} - {"axis", "follow"}}
    | {"block": {"follow", "axis"}, "packed": {"follow", "axis"}}
    | {"pad_in": {"pad_to"}, "replicate": {"heads"}},
    "split": {"block": {"follow", "axis"}, "packed": {"follow", "axis"}, "follow": {"names"}},
}
OWN = {"axis", "follow", "block", "packed"}
WITHOUT = {
    "shard": {
        "follow": {*FIELDS["shard"]} - OWN,
        "split": {"segments", "groups", "replicate", "pad_to", "pad_each_to"},
        "replicate": {"segments", "groups"},
        "pad_each_to": {"pad_to", "heads"},
        "pad_in": {"groups"},
    },
    "split": {"follow": {*FIELDS["split"]} - OWN - {"names"}},
}
"""What docs/files-checkpoint.md says: which fields need others, and which go without which."""


@pytest.mark.parametrize("kind", FIELDS)
def test_fields_that_need_others_or_go_without_them(kind: str) -> None:
    needs, without = NEEDS[kind], WITHOUT[kind]
    names = list(FIELDS[kind])
    for count in range(5):
        for chosen in map(set, combinations(names, count)):
            fits = all(needs.get(each, set()) <= chosen for each in chosen)
            fits &= all(chosen.isdisjoint(without.get(each, ())) for each in chosen)
            fits &= kind == "split" or not chosen.isdisjoint({"axis", "follow"})
            table = {"tensors": "t", **{each: FIELDS[kind][each] for each in chosen}}
            try:
                msgspec.convert({kind: [table]}, RuleTables)
                is_taken = True
            except msgspec.ValidationError:
                is_taken = False
            assert is_taken is fits, chosen


@pytest.mark.parametrize("count", range(1, 5))
@pytest.mark.parametrize("name", ["heads", "replicate", "pad_to", "pad_each_to", "pad_in"])
def test_lists_have_one_for_each_segment(name: str, count: int) -> None:
    table: dict[str, Any] = {"tensors": "t", "axis": 1, "segments": [4, 4, 4]}
    table |= {"heads": [4, 2, 2]} if name == "replicate" else {}
    table |= {"pad_to": 2} if name == "pad_in" else {}
    table[name] = [True if name == "replicate" else 2] * count
    try:
        msgspec.convert({"shard": [table]}, RuleTables)
        is_taken = True
    except msgspec.ValidationError:
        is_taken = False
    assert is_taken is (count == 3)


def rules_of(*tables: dict[str, Any], ranks: int | None = None) -> RuleSet:
    made = [
        PatternRule(each.pop("tensors"), each.pop("rule"))
        for each in ({**table} for table in tables)
    ]
    return RuleSet(made, ranks)


HALVES = SplitRule(SplitOperands(1, num_outputs=2))


def test_each_tensor_is_divided_by_the_rule_that_matches_it_in_its_order() -> None:
    rules = rules_of(
        {"tensors": "s", "rule": FollowRule("w", 1, 2, names=["s0", "s1"])},
        {"tensors": "w", "rule": HALVES},
        {"tensors": "none*", "rule": HALVES},
        {"tensors": "old", "rule": RenameRule("new")},
        {"tensors": "never", "rule": RenameRule("new")},
    )
    held = {name: tensor(n, name) for name, n in (("s", 4), ("b", 3), ("w", 8), ("old", 2))}
    made, unmatched = rules.divide(held)
    assert [each.tensor.name for each in made] == list(held)
    names = [[output.name for output in each.outputs] for each in made]
    assert names == [["s0", "s1"], ["b"], ["w.0", "w.1"], ["new"]]
    assert [numbers(made[0]), numbers(made[2])] == [
        [[0, 1], [2, 3]],
        [[0, 1, 2, 3], [4, 5, 6, 7]],
    ]
    assert unmatched == ["none*", "never"]
    made, unmatched = rules.divide(held, ["w"])
    names = [[output.name for output in each.outputs] for each in made]
    assert names == [["s"], ["b"], ["w.0", "w.1"], ["old"]]
    assert unmatched == ["s", "none*", "old", "never"]


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ([("w", HALVES), ("*", HALVES)], "both match"),
        ([("s", FollowRule("none", 1, names=["a", "b"])), ("w", HALVES)], "is not there"),
        (
            [(name, FollowRule(other, 1, names=["a", "b"])) for name, other in ("sw", "ws")],
            "follows another one",
        ),
        ([("s", FollowRule("w", 1, names=["a", "b"])), ("w", RenameRule("v"))], "names for 1 part"),
        ([("s", FollowRule("w", 1)), ("w", HALVES)], "no rule"),
        ([("s", FollowRule("w", 1, names=["a"])), ("w", HALVES)], "1 name for 2 parts"),
        ([("w", SplitRule(SplitOperands(1, num_outputs=2), ["a"]))], "1 name for 2 parts"),
        ([("w", SplitRule(SplitOperands(1, [3, 5]), multiple_of=2))], "not a multiple"),
        ([("w", SplitRule(SplitOperands(1, [2, 6]), groups=4))], "not a multiple"),
    ],
)
def test_rules_that_do_not_fit_the_tensors(tables: list[tuple[str, TensorRule]], said: str) -> None:
    held = {"w": tensor(8, "w"), "s": tensor(8, "s")}
    with pytest.raises(SplitError, match=said):
        rules_of(*({"tensors": name, "rule": rule} for name, rule in tables)).divide(held)


@pytest.mark.parametrize("ranks", [None, 2])
def test_what_one_rank_has_of_a_padded_tensor_is_not_divided_among_ranks(ranks: int | None) -> None:
    held = {"w": replace(tensor(8, "w"), unpadded=7)}
    rule = HALVES if ranks is None else ShardRule(1, ranks)
    rules = rules_of({"tensors": "w", "rule": rule}, ranks=ranks)
    if ranks is None:
        assert len(rules.divide(held)[0][0].outputs) == 2
        return
    with pytest.raises(SplitError, match="padded"):
        rules.divide(held)


@pytest.mark.parametrize("ranks", [None, -1, 0, 1, 65_536, 65_537])
@pytest.mark.parametrize("is_sharded", [False, True])
def test_ranks_are_from_1_to_65536_where_rules_divide_among_them(
    ranks: int | None, is_sharded: bool
) -> None:
    table = {"tensors": "w", "rule": ShardRule(1, 2) if is_sharded else HALVES}
    rules = rules_of(table, ranks=ranks)
    fits = ranks in (1, 65_536) if is_sharded else ranks in (None, 0, -1)
    if fits:
        rules.check_ranks()
    else:
        with pytest.raises(SplitError, match=r"TS703.*ranks"):
            rules.check_ranks()
    assert rules.is_for_ranks is is_sharded
    others = rules.for_ranks(3)
    assert others.ranks == 3
    assert [getattr(each.rule, "ranks", None) for each in others.rules] == [
        3 if is_sharded else None
    ]


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_heads_are_padded_as_wholes_and_by_the_same_share(size: int, ranks: int) -> None:
    taken = 0
    for query, key in product((2, 4, 6), repeat=2):
        for pads in product((1, 2, 3, 4, 8, 12), repeat=2):
            lengths = [query * size, key * size]
            rule = ShardRule(1, ranks, heads=[query, key], pad_to=pads)
            padded = [-(-length // pad) * pad for length, pad in zip(lengths, pads, strict=True)]
            heads = [length // size for length in padded]
            fits = not any(length % size for length in padded)
            fits &= not any(count % ranks for count in heads)
            fits &= heads[0] * key == heads[1] * query
            found = result(rule, sum(lengths))
            plain = ShardRule(1, ranks, lengths, pad_to=pads)
            assert found == (outside(plain, sum(lengths)) if fits else "refused"), rule
            taken += fits
    assert taken


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("pad", [1, 2, 3, 4, 5])
def test_stretches_are_padded_each_at_its_end(pad: int, count: int) -> None:
    for length, ranks in product((8, 12), (1, 2, 4)):
        rule = ShardRule(1, ranks, pad_to=[pad], pad_in=[count])
        padded = [
            np.pad(each, (0, -len(each) % pad), constant_values=ZERO)
            for each in (np.split(np.arange(length), count) if length % count == 0 else [])
        ]
        whole = np.concatenate([np.arange(0), *padded])
        fits = length % count == 0 and len(whole) % ranks == 0
        wanted = [each.tolist() for each in np.split(whole, ranks)] if fits else "refused"
        assert result(rule, length) == wanted


@pytest.mark.parametrize("each", [1, 2, 3, 4])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_what_each_rank_gets_is_padded(ranks: int, each: int) -> None:
    for length in range(1, 13):
        rule = ShardRule(1, ranks, pad_each_to=[each])
        share = -(-length // (ranks * each)) * each
        whole = np.pad(np.arange(length), (0, ranks * share - length), constant_values=ZERO)
        made = rule.divide(tensor(length), ["t"])
        assert numbers(made) == whole.reshape(ranks, share).tolist()
        assert {output.unpadded for output in made.outputs} == {length}


@pytest.mark.parametrize("shape", [(2, 8), (2, 4), (8, 2)])
def test_what_follows_without_an_axis_is_of_the_shape_of_the_other_one(
    shape: tuple[int, int],
) -> None:
    follower = StoredTensor("s", shape, "float", 64)
    for rule in (RenameRule("v"), ShardRule(1, 2), ShardRule(0, 2)):
        leader = rule.divide(tensor(8, "w"), ["w"])
        if shape != (2, 8):
            with pytest.raises(SplitError, match="TS719"):
                FollowRule("w", None).divide(follower, [], leader)
            continue
        made = FollowRule("w", None).divide(follower, [], leader)
        assert [(each.name, each.shape, each.parts, each.rank) for each in made.outputs] == [
            ("s", each.shape, each.parts, each.rank) for each in leader.outputs
        ]
        assert (made.plan is None) is (leader.plan is None)


@pytest.mark.parametrize("field", ["groups", "multiple_of", "block"])
@pytest.mark.parametrize("number", [0, 1, 1 << 20, (1 << 20) + 1])
def test_counts_are_from_1_to_1048576(field: str, number: int) -> None:
    table = {"tensors": "t", "axis": 1, field: number}
    table |= {"follow": "w", "names": ["a"]} if field == "block" else {}
    try:
        msgspec.convert({"split": [table]}, RuleTables)
        is_taken = True
    except msgspec.ValidationError:
        is_taken = False
    assert is_taken is (number in (1, 1 << 20))


@pytest.mark.parametrize("name", ["*", "**", "*.*", "x"])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_a_name_has_as_many_stars_as_the_pattern_or_none(name: str, count: int) -> None:
    stars = name.count("*")
    if stars in (0, count):
        expected = name.replace("*", "{}").format(*"abc"[:count])
        assert fill(name, "abc"[:count]) == expected
    else:
        with pytest.raises(SplitError, match=r"TS706.*leaves"):
            fill(name, "abc"[:count])


def change(*outputs: NewTensor) -> Recast:
    whole = Division(tensor(4), None, outputs)
    return Recast(whole, (), whole)


@pytest.mark.parametrize(
    ("names", "is_fine"),
    [
        ([("a", None), ("b", None)], True),
        ([("a", 0), ("a", 1)], True),
        ([("a", 0), ("b", 0)], True),
        ([("a", None), ("a", None)], False),
        ([("a", 0), ("a", 0)], False),
        ([("a", None), ("a", 0)], False),
        ([("a", 0), ("a", None)], False),
        ([("", None)], False),
        ([("a\ud7ff\ue000", None)], True),
        ([("a\ud800", None)], False),
        ([("\udfff", None)], False),
    ],
)
def test_two_tensors_of_one_rank_have_two_names(
    names: list[tuple[str, int | None]], is_fine: bool
) -> None:
    made = [change(NewTensor(name, (2, 4), rank=rank)) for name, rank in names]
    both = [change(*(NewTensor(name, (2, 4), rank=rank) for name, rank in names))]
    for changes in (made, both):
        if is_fine:
            check_names(changes)
        else:
            with pytest.raises(SplitError, match="TS706"):
                check_names(changes)


@pytest.mark.parametrize(
    ("names", "is_fine"),
    [
        (["a", "b"], True),
        (["a.b", "..."], True),
        (["a", "a"], False),
        ([""], False),
        (["."], False),
        ([".."], False),
        (["a/b"], False),
        (["a\\b"], False),
        (["a" * 240], True),
        (["a" * 241], False),
        (["é" * 120], True),
        (["é" * 121], False),
    ],
)
def test_names_of_files(names: list[str], is_fine: bool) -> None:
    if is_fine:
        check_file_names(names)
    else:
        with pytest.raises(SplitError, match="TS706"):
            check_file_names(names)


def placed(count: int, padded: int, stretches: int) -> list[int]:
    """Where each head is in the padded whole, of stretches that are padded each at its end."""
    few, many = count // stretches, padded // stretches
    return [head // few * many + head % few for head in range(count)]


@pytest.mark.parametrize(("query", "key"), [(4, 2), (4, 4), (6, 2), (6, 3), (2, 4), (8, 1)])
def test_padded_heads_belong_to_each_other_as_before(query: int, key: int) -> None:
    """A query head belongs to the key that lies at the same share of all keys."""
    taken = 0
    for pads in product((1, 2, 3, 4, 6, 8), repeat=2):
        for stretches in product((1, 2, 3, 4), repeat=2):
            heads = [query, key]
            if any(each % count for each, count in zip(heads, stretches, strict=True)):
                continue
            rule = ShardRule(1, 1, heads=heads, pad_to=pads, pad_in=stretches)
            found = result(rule, query + key)
            both = list(zip(heads, pads, stretches, strict=True))
            spans = [-(-each // count // pad) * pad * count for each, pad, count in both]
            if found == "refused":
                continue
            places = [
                placed(each, span, count)
                for each, span, count in zip(heads, spans, stretches, strict=True)
            ]
            for head, place in enumerate(places[0]):
                owner = places[1][head * key // query]
                assert place * spans[1] // spans[0] == owner or query < key, rule
            taken += 1
    assert taken >= 4


@pytest.mark.parametrize(
    ("heads", "pads", "stretches", "is_taken"),
    [
        ([4, 2], [8, 4], [1, 1], True),  # twice as many of both
        ([4, 2], [4, 2], [2, 2], True),
        ([4, 2], [4, 4], [2, 1], False),
        ([4, 2], [4, 2], [2, 1], True),  # the queries of each key, of which none is added
        ([6, 2], [4, 2], [2, 1], True),
        ([6, 2], [8, 2], [1, 1], False),
        ([6, 3], [4, 1], [3, 1], True),
        ([6, 3], [4, 1], [1, 1], False),
        ([6, 3], [4, 1], [2, 1], False),
        ([2, 4], [1, 3], [1, 2], True),
        ([2, 4], [1, 6], [1, 1], False),
        ([6, 2, 2], [4, 2, 2], [2, 1, 1], True),
        ([6, 2, 2], [4, 2, 4], [2, 1, 1], False),
        ([6, 2, 2], [8, 2, 2], [1, 1, 1], False),
    ],
)
@pytest.mark.parametrize("size", [1, 3])
def test_which_heads_are_padded(
    heads: list[int], pads: list[int], stretches: list[int], is_taken: bool, size: int
) -> None:
    pad_to = [each * size for each in pads]
    rule = ShardRule(1, 1, heads=heads, pad_to=pad_to, pad_in=stretches)
    assert (result(rule, sum(heads) * size) != "refused") is is_taken


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("pad", [1, 2, 3, 4])
def test_where_a_group_is_a_head_that_is_padded(pad: int, ranks: int) -> None:
    """As of BLOOM: the query, the key and the value of a head are one group."""
    for size in (1, 2, 3):
        lengths = [4 * size] * 3
        rule = ShardRule(1, ranks, lengths, 4, heads=[4] * 3, pad_to=[pad])
        plain = ShardRule(1, ranks, lengths, 4, pad_to=[pad])
        assert result(rule, 12 * size) == outside(plain, 12 * size) != "refused"


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (ShardRule(1, 4, heads=[2]), "4 ranks would cut 2 heads$"),
        (ShardRule(1, 3, heads=[4]), "3 ranks would cut 4 heads$"),
        (ShardRule(1, 3, heads=[4], pad_to=[16]), "3 ranks would cut 8 heads; those of the pad"),
        (ShardRule(1, 1, heads=[4], pad_in=[3], pad_to=[4]), "is not a multiple of 3$"),
        (ShardRule(1, 1, heads=[2], pad_in=[4], pad_to=[4]), "4 stretches would cut 2 heads$"),
        (ShardRule(1, 1, heads=[2], pad_to=[9]), "the padded length 9 would cut a head of 4$"),
        (ShardRule(1, 1, heads=[1], pad_to=[12]), "the padded length 12 would cut a head of 8$"),
        (ShardRule(1, 1, heads=[7, 1], pad_to=[1, 2]), "would not belong to each other as before"),
    ],
)
def test_why_heads_are_cut(rule: ShardRule, said: str) -> None:
    with pytest.raises(SplitError) as refused:
        rule.divide(tensor(8), ["t"])
    assert re.search(said, refused.value.problem)
    for _ in range(2):  # and again, as of rules that call each other
        with pytest.raises(SplitError), located("t"), located("t"):
            raise refused.value
        assert refused.value.problem.count("tensor t: ") == 1


@pytest.mark.parametrize("name", ["pad_to", "pad_each_to", "heads", "pad_in", "replicate"])
def test_one_number_is_for_all_segments_where_it_says_so(name: str) -> None:
    table: dict[str, Any] = {"tensors": "t", "axis": 1, "segments": [4, 4, 4], name: 2}
    table |= {"pad_to": 2} if name == "pad_in" else {}
    table |= {"heads": [2, 2, 2], name: True} if name == "replicate" else {}
    try:
        msgspec.convert({"shard": [table]}, RuleTables)
        is_taken = True
    except msgspec.ValidationError:
        is_taken = False
    assert is_taken is (name in ("pad_to", "pad_each_to"))


def test_a_rule_without_lengths_takes_those_of_the_parts() -> None:
    plain = SplitRule(SplitOperands(1), ["a", "b"])
    assert numbers(plain.for_parts([3, 5]).divide(tensor(8), [])) == [[0, 1, 2], [3, 4, 5, 6, 7]]
    for operands in (
        SplitOperands(1, [4, 4]),
        SplitOperands(1, num_outputs=2),
        SplitOperands(1, chunk=4),
    ):
        rule = SplitRule(operands, ["a", "b"])
        made = rule.for_parts([3, 5]).divide(tensor(8), [])
        assert numbers(made) == [[0, 1, 2, 3], [4, 5, 6, 7]]


LAYOUTS = (
    *(ShardRule(1, 2), ShardRule(1, 2, [8, 4]), ShardRule(1, 2, [4, 8]), ShardRule(1, 2, [6, 6])),
    *(ShardRule(1, 2, split=[6, 6]), ShardRule(1, 2, split=[4, 8]), ShardRule(1, 2, split=[0, 12])),
    *(ShardRule(1, 2, [6, 6], 2), ShardRule(1, 2, groups=2), ShardRule(1, 1), ShardRule(1, 4)),
    ShardRule(1, 2, heads=[4, 1, 1], replicate=[False, True, True]),
)


def test_the_note_of_what_a_rank_has_is_the_same_for_the_same_elements_only() -> None:
    """And none is needed of a rank that has all, or nothing."""
    notes: dict[tuple[int, ...], set[str]] = {}
    for rule in LAYOUTS:
        made = rule.divide(tensor(12), ["t"])
        for held, output in zip(numbers(made), made.outputs, strict=True):
            assert (output.layout == "") is (len(held) in (0, 12))
            if held:
                notes.setdefault(tuple(held), set()).add(output.layout)
    assert all(len(each) == 1 for each in notes.values())
    assert len({note for each in notes.values() for note in each}) == len(notes)
    other = ShardRule(0, 2).divide(StoredTensor("t", (12, 2), "float", 96), ["t"])
    assert {each.layout for each in other.outputs}.isdisjoint(set().union(*notes.values()))


def test_notes_in_files_that_were_written_before_are_understood() -> None:
    made = ShardRule(1, 2, [8, 4]).divide(tensor(12), ["t"])
    assert [each.layout for each in made.outputs] == NOTES


NOTES = ["60eda7fe8e69bc42", "73f2b14ba20648f6"]
"""What files hold that were written until today."""


@pytest.mark.parametrize(
    ("segments", "ranks", "blocks"),
    [
        ([10], 2, [[0, 1], [2, ZERO]]),
        ([8, 6], 2, [[0, 2], [1, 3]]),
        ([12, 6], 2, [[0, 1, 3], [2, ZERO, 4]]),  # the last two are with padding a block
        ([12, 4], 2, [[0, 1, 3], [2, ZERO, ZERO]]),
        ([6, 8], 2, "refused"),  # a block would be of both segments
    ],
)
def test_what_follows_is_padded_where_the_other_one_is(
    segments: list[int], ranks: int, blocks: list[list[int]] | str
) -> None:
    length = sum(segments)
    leader = ShardRule(1, ranks, segments, pad_to=[8]).divide(tensor(length), ["t"])
    follower = tensor(-(-length // 4), "s")
    try:
        made = FollowRule("t", 1, 4).divide(follower, [], leader)
    except SplitError:
        assert blocks == "refused"
        return
    assert numbers(made) == blocks
    assert {each.unpadded for each in made.outputs} == {follower.shape[1]}
