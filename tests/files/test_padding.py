"""Dimensions that are padded before ranks divide them, and are as long as before when merged."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tensorsplit as ts
from tests.files.checkpoints import load
from tests.files.test_follow import check_all_ways
from tests.files.test_ranks import bits, check, rank_file

numpy_files = pytest.importorskip("safetensors.numpy")
safetensors = pytest.importorskip("safetensors")
UNPADDED = "tensorsplit.unpadded"


def padded(whole: np.ndarray, axis: int, block: int) -> np.ndarray:
    more = -whole.shape[axis] % block
    return np.pad(whole, [(0, more if each == axis else 0) for each in range(whole.ndim)])


def metadata(path: Path) -> dict[str, str]:
    with safetensors.safe_open(path, "numpy") as file:
        return dict(file.metadata() or {})


@pytest.mark.usefixtures("ways")
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("length", "block"), [(13, 16), (16, 16), (5, 16), (33, 8), (1, 24)])
def test_padding_comes_and_goes(tmp_path: Path, axis: int, length: int, block: int) -> None:
    shape = (length, 5) if axis == 0 else (7, length)
    tensors = {"lm_head.weight": bits(*shape), "norm": bits(3)}
    numpy_files.save_file(tensors, tmp_path / "m.safetensors", metadata={"format": "pt"})
    rules = {"shard": [{"tensors": "lm_head.*", "axis": axis, "pad_to": block}]}

    def check_ranks(folder: Path, ranks: int) -> None:
        parts = np.split(padded(tensors["lm_head.weight"], axis, block), ranks, axis)
        for rank, part in enumerate(parts):
            file = rank_file(folder, rank, ranks)
            check(load(file), {"lm_head.weight": part, "norm": tensors["norm"]})
            said = metadata(file)
            assert json.loads(said.pop(UNPADDED)) == {"lm_head.weight": length}
            assert said.keys() == {"format", "tensorsplit.layouts"}

    for ranks in (2, 4, 8):
        out = tmp_path / str(ranks)
        ts.files.split(tmp_path / "m.safetensors", out, rules=rules, ranks=ranks, verify=True)
        check_ranks(out, ranks)
        back = tmp_path / f"{ranks}.safetensors"
        ts.files.merge(out, back, rules=rules, verify=True)
        check(load(back), tensors)
        assert metadata(back) == {"format": "pt"}
    for before, after in itertools.permutations((2, 4, 8), 2):
        out = tmp_path / f"{before} to {after}"
        source = tmp_path / str(before)
        ts.files.reshard(source, out, rules=rules, ranks=(before, after), verify=True)
        check_ranks(out, after)


class Layout(NamedTuple):
    """Segments in groups, as a rule and by hand."""

    rule: dict[str, Any]
    lengths: tuple[int, ...]
    blocks: tuple[int, ...]
    groups: int = 1
    shared: tuple[int, ...] = ()  # into how many parts each is divided at most
    most_ranks: int = 8
    stretches: tuple[int, ...] = ()  # in how many of them each is padded


LAYOUTS = {
    "segments": Layout({"segments": [11, 5], "pad_to": 8}, (11, 5), (8, 8)),
    "padded differently": Layout({"segments": [11, 5], "pad_to": [8, 16]}, (11, 5), (8, 16)),
    "one is whole": Layout({"segments": [11, 8, 3], "pad_to": 8}, (11, 8, 3), (8, 8, 8)),
    "none is padded": Layout({"segments": [16, 8], "pad_to": 8}, (16, 8), (8, 8)),
    "an empty one": Layout({"segments": [0, 13], "pad_to": 8}, (0, 13), (8, 8)),
    "groups": Layout({"groups": 8, "pad_to": 4}, (24,), (4,), 8),
    "groups of segments": Layout(
        {"groups": 2, "segments": [10, 6], "pad_to": 8}, (10, 6), (8, 8), 2
    ),
    "each head in itself": Layout({"groups": 4, "heads": 4, "pad_to": 8}, (20,), (8,), 4, (), 4),
    "heads": Layout({"heads": 6, "pad_to": 24}, (18,), (24,)),
    "heads of a group": Layout(
        {"heads": [14], "groups": 2, "segments": [28], "pad_to": 16}, (28,), (16,), 2
    ),
    "fused heads": Layout(
        {"heads": [12, 6, 6], "pad_to": [32, 16, 16]}, (24, 12, 12), (32, 16, 16)
    ),
    "shared heads": Layout(
        {"heads": [6, 3, 3], "pad_to": [16, 8, 8], "replicate": [False, True, True]},
        *((12, 6, 6), (16, 8, 8), 1, (8, 4, 4)),
    ),
    "one key in each group": Layout(
        {"heads": [6, 2, 2], "groups": 2, "pad_to": [8, 1, 1], "replicate": [False, True, True]},
        *((12, 4, 4), (8, 1, 1), 2, (4, 1, 1)),
    ),
    "query heads of each key": Layout(
        {
            "heads": [6, 2, 2],
            "pad_to": [8, 1, 1],
            "pad_in": [2, 1, 1],
            "replicate": [False, True, True],
        },
        *((12, 4, 4), (8, 1, 1), 1, (8, 2, 2)),
        stretches=(2, 1, 1),
    ),
    "stretches": Layout(
        {"segments": [15, 8], "pad_to": 8, "pad_in": [3, 2]}, (15, 8), (8, 8), stretches=(3, 2)
    ),
    "one segment in stretches": Layout(
        {"heads": 6, "pad_to": 8, "pad_in": 2}, (12,), (8,), stretches=(2,)
    ),
    "one key for all": Layout(
        {"heads": [7, 1], "pad_to": [16, 1], "replicate": [False, True]},
        (14, 2),
        (16, 1),
        1,
        (8, 1),
    ),
}


def by_hand(whole: np.ndarray, layout: Layout, rank: int, ranks: int) -> np.ndarray:
    """What a plain loop gives to a rank of rows: its share of each segment of its groups."""
    groups, place = layout.groups, 0
    padded_groups = []
    for _ in range(groups):
        pieces = []
        stretches = layout.stretches or [1] * len(layout.lengths)
        for length, block, count in zip(layout.lengths, layout.blocks, stretches, strict=True):
            piece = whole[place : place + length // groups]
            pieces.append(
                np.concatenate([padded(each, 0, block) for each in np.split(piece, count)])
            )
            place += length // groups
        padded_groups.append(pieces)
    assert place == len(whole)
    if groups >= ranks:
        own = padded_groups[rank * groups // ranks : (rank + 1) * groups // ranks]
        return np.concatenate([piece for pieces in own for piece in pieces])
    count = ranks // groups
    group, share = divmod(rank, count)
    most = layout.shared or [count] * len(layout.lengths)
    parts = []
    for piece, held in zip(padded_groups[group], most, strict=True):
        shares = min(count, held)
        parts.append(np.split(piece, shares)[share * shares // count])
    return np.concatenate(parts)


@pytest.mark.usefixtures("ways")
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", LAYOUTS)
def test_each_segment_of_each_group_is_padded(tmp_path: Path, name: str, axis: int) -> None:
    layout = LAYOUTS[name]
    rows = bits(sum(layout.lengths), 3)
    whole = rows if axis == 0 else np.ascontiguousarray(rows.T)
    numpy_files.save_file({"x": whole}, tmp_path / "m.safetensors")
    rules = {"shard": [{"tensors": "x", "axis": axis, **layout.rule}]}
    counts = [count for count in (1, 2, 4, 8) if count <= layout.most_ranks]

    def check_ranks(folder: Path, ranks: int) -> None:
        for rank in range(ranks):
            part = by_hand(rows, layout, rank, ranks)
            file = rank_file(folder, rank, ranks)
            check(load(file), {"x": part if axis == 0 else part.T})
            assert json.loads(metadata(file)[UNPADDED]) == {"x": len(rows)}

    for ranks in counts:
        out = tmp_path / str(ranks)
        ts.files.split(tmp_path / "m.safetensors", out, rules=rules, ranks=ranks, verify=True)
        check_ranks(out, ranks)
        back = tmp_path / f"{ranks}.safetensors"
        ts.files.merge(out, back, rules=rules, verify=True)
        check(load(back), {"x": whole})
        assert not metadata(back)
    for before, after in itertools.permutations(counts, 2):
        out = tmp_path / f"{before} to {after}"
        source = tmp_path / str(before)
        ts.files.reshard(source, out, rules=rules, ranks=(before, after), verify=True)
        check_ranks(out, after)


@pytest.mark.parametrize(("rule", "lengths"), [({}, [13]), ({"segments": [9, 4]}, [9, 4])])
@pytest.mark.parametrize("block", [3, [3]])
def test_what_each_rank_gets_is_padded(
    tmp_path: Path, rule: dict[str, Any], lengths: list[int], block: Any
) -> None:
    whole = bits(13, 2)
    numpy_files.save_file({"x": whole}, tmp_path / "m.safetensors")
    if isinstance(block, list):
        block = block * len(lengths)
    rules = {"shard": [{"tensors": "x", "axis": 0, "pad_each_to": block, **rule}]}
    for ranks in (1, 2, 4):
        out = tmp_path / str(ranks)
        ts.files.split(tmp_path / "m.safetensors", out, rules=rules, ranks=ranks)
        layout = Layout({}, tuple(lengths), (3 * ranks,) * len(lengths))
        for rank in range(ranks):
            check(load(rank_file(out, rank, ranks)), {"x": by_hand(whole, layout, rank, ranks)})
        ts.files.merge(out, tmp_path / f"{ranks}.safetensors", rules=rules)
        check(load(tmp_path / f"{ranks}.safetensors"), {"x": whole})


def test_a_tensor_without_elements_comes_back_as_it_was(tmp_path: Path) -> None:
    tensors = {"x": bits(0, 5), "y": bits(3, 5)}
    numpy_files.save_file(tensors, tmp_path / "m.safetensors")
    rules = {"shard": [{"tensors": "*", "axis": 0, "pad_to": 4}]}
    ts.files.split(tmp_path / "m.safetensors", tmp_path / "out", rules=rules, ranks=2)
    said = metadata(rank_file(tmp_path / "out", 0, 2))
    assert json.loads(said[UNPADDED]) == {"x": 0, "y": 3}
    ts.files.merge(tmp_path / "out", tmp_path / "back.safetensors", rules=rules)
    check(load(tmp_path / "back.safetensors"), tensors)


def test_other_rules_pad_the_same_whole(tmp_path: Path) -> None:
    rows = bits(16, 3)
    numpy_files.save_file({"x": rows}, tmp_path / "m.safetensors")
    one, other = (
        {"shard": [{"tensors": "x", "axis": 0, **rule}]}
        for rule in (LAYOUTS["segments"].rule, {"heads": 4, "pad_to": 24})
    )
    four, two = tmp_path / "4", tmp_path / "2"
    ts.files.split(tmp_path / "m.safetensors", four, rules=one, ranks=4)
    ts.files.reshard(four, two, rules=one, to_rules=other, ranks=(4, 2))
    for rank in range(2):
        expected = by_hand(rows, Layout({}, (16,), (24,)), rank, 2)
        check(load(rank_file(two, rank, 2)), {"x": expected})
    for segments in ([10, 6], [5, 11]):
        rules = {"shard": [one["shard"][0] | {"segments": segments}]}
        with pytest.raises(ts.SplitError, match=r"TS713.*otherwise than the rules say"):
            ts.files.merge(four, tmp_path / "back.safetensors", rules=rules)


@pytest.fixture
def ranks(tmp_path: Path) -> Path:
    numpy_files.save_file({"x": bits(13, 3)}, tmp_path / "m.safetensors")
    rules = {"shard": [{"tensors": "x", "axis": 0, "pad_to": 16}]}
    ts.files.split(tmp_path / "m.safetensors", tmp_path / "out", rules=rules, ranks=4)
    return tmp_path / "out"


@pytest.mark.parametrize(
    ("pad_to", "said"),
    [
        (None, "TS713.*x: it was padded, and no rule says pad_to"),
        (14, "TS713|TS303"),
        (32, r"TS713.*x is of shape \(4, 3\), and the rule makes \(8, 3\)"),
    ],
)
def test_other_rules_do_not_take_padding_off(ranks: Path, pad_to: int | None, said: str) -> None:
    rules = {"shard": [{"tensors": "x", "axis": 0, "pad_to": pad_to}]}
    with pytest.raises(ts.SplitError, match=said):
        ts.files.merge(ranks, ranks.with_name("back.safetensors"), rules=rules)
    assert not ranks.with_name("back.safetensors").exists()


def test_files_that_do_not_say_how_long_it_was(ranks: Path) -> None:
    rules = {"shard": [{"tensors": "x", "axis": 0, "pad_to": 16}]}
    file = rank_file(ranks, 2, 4)
    found = {name: np.array(each) for name, each in load(file).items()}
    for said in (None, {UNPADDED: '{"x": 14}'}):
        numpy_files.save_file(found, file, metadata=said)
        with pytest.raises(ts.SplitError, match=r"TS713.*do not say alike how long it was"):
            ts.files.merge(ranks, ranks.with_name("back.safetensors"), rules=rules)
    for text in ("[]", '{"x": -1}', '{"x": "4"}', "{"):
        numpy_files.save_file(found, file, metadata={UNPADDED: text})
        with pytest.raises(ts.SplitError, match="TS705"):
            ts.files.merge(ranks, ranks.with_name("back.safetensors"), rules=rules)


@pytest.mark.parametrize("place", [(1, 0), (3, 2)])
def test_padding_that_is_not_zeros_is_not_dropped(ranks: Path, place: tuple[int, int]) -> None:
    rules = {"shard": [{"tensors": "x", "axis": 0, "pad_to": 16}]}
    file = rank_file(ranks, 3, 4)
    said = metadata(file)
    found = np.array(load(file)["x"])
    found.view(np.uint32)[place] ^= 1 << 31
    numpy_files.save_file({"x": found}, file, metadata=said)
    refused = r"TS713.*padding of x in .*rank-3-of-4.*not all"
    back, two = ranks.with_name("back.safetensors"), ranks.with_name("two")
    with pytest.raises(ts.SplitError, match=refused):
        ts.files.merge(ranks, back, rules=rules)
    with pytest.raises(ts.SplitError, match=refused):
        ts.files.reshard(ranks, two, rules=rules, ranks=(4, 2))
    assert not back.exists()
    assert not two.exists()


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"pad_to": 9}, "TS303.*18 is not a multiple of 4"),
        ({"pad_to": 0}, "TS703"),
        ({"pad_to": 16, "axis": 2}, "TS2"),
        ({"pad_to": 16, "groups": 2}, "TS303.*4 ranks would cut 2 groups"),
        ({"pad_to": 16, "multiple_of": 6}, "TS303.*a part of length 4 is not a multiple of 6"),
        ({"pad_to": 16, "split": [3] * 4}, "nothing is left to pad"),
        ({"pad_to": 16, "pad_each_to": 4}, "TS703.*pad_to goes without pad_each_to"),
        ({"pad_each_to": 2, "heads": 4}, "TS703.*heads are padded as wholes: say in pad_to"),
        ({"pad_to": [16, 16]}, "TS703.*a list of one for each segment"),
        ({"pad_to": [], "segments": [6, 6]}, "TS703.*a list of one for each segment"),
        ({"pad_to": [16], "heads": [2, 1, 1]}, "TS703.*a list of one for each segment"),
        ({"pad_to": 16, "heads": 5}, "TS303.*12 is not a multiple of 5"),
        ({"pad_to": 20, "heads": 4}, "TS714.*the padded length 20 would cut a head of 3; pad to a"),
        ({"pad_to": 15, "heads": 4}, "TS714.*4 ranks would cut 5 heads; those of the padding"),
        ({"pad_to": 18, "heads": 2}, "TS714.*4 ranks would cut 3 heads; .*or say replicate"),
        ({"pad_to": 18, "heads": 2, "replicate": True}, "TS714.*number that divides the heads$"),
        (
            {"pad_to": [8, 1, 1], "heads": [6, 3, 3], "replicate": [False, True, True]},
            r"TS703.*padded to \[8, 3, 3\]",
        ),
        (
            {"pad_to": [8, 1, 1], "heads": [6, 3, 3]},
            r"TS703.*heads \[6, 3, 3\] would not belong to",
        ),
        ({"pad_to": 8, "heads": [8, 2, 2]}, "by pad_in the query heads of each key"),
        (
            {"pad_to": [4, 1, 1], "heads": [6, 3, 3], "pad_in": [2, 1, 1]},
            "TS703.*would not belong to",
        ),
        ({"pad_to": 4, "heads": [6, 3, 3], "pad_in": [2, 1, 1]}, "TS703.*would not belong to"),
        ({"pad_in": 2}, "TS703.*pad_in goes with pad_to"),
        ({"pad_to": 8, "pad_in": 2, "groups": 2}, "TS703.*pad_in goes .* without groups"),
        ({"pad_to": 8, "pad_in": [2, 1]}, "TS703.*pad_in is a number"),
        ({"pad_to": 8, "pad_in": 5}, "TS303.*pad_in.*12 is not a multiple of 5"),
        ({"pad_to": 6, "pad_in": 3, "heads": 4}, "TS714.*3 stretches would cut 4 heads"),
    ],
)
def test_rules_that_do_not_pad(tmp_path: Path, rule: dict[str, Any], said: str) -> None:
    numpy_files.save_file({"x": bits(12, 3)}, tmp_path / "m.safetensors")
    rules = {"shard": [{"tensors": "x", "axis": 0, "ranks": 4, **rule}]}
    with pytest.raises(ts.SplitError, match=said):
        ts.files.split(tmp_path / "m.safetensors", tmp_path / "out", rules=rules)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("rule", "lengths"),
    [
        (
            {"pad_each_to": 4, "groups": 2, "segments": [12]},
            [4, 4, 4, 4],
        ),  # 6 of a group are 3 and 3, then 4 and 4
        ({"pad_to": [2, 1], "heads": [6, 6], "pad_in": [3, 1], "ranks": 2}, [6, 6]),
    ],
)
def test_padding_of_a_share_and_padding_that_is_not_needed(
    tmp_path: Path, rule: dict[str, Any], lengths: list[int]
) -> None:
    numpy_files.save_file({"x": bits(12, 3)}, tmp_path / "m.safetensors")
    ranks = len(lengths)
    rules = {"shard": [{"tensors": "x", "axis": 0, **rule, "ranks": ranks}]}
    ts.files.split(tmp_path / "m.safetensors", tmp_path / "out", rules=rules)
    made = [rank_file(tmp_path / "out", rank, ranks) for rank in range(ranks)]
    assert [len(load(each)["x"]) for each in made] == lengths


def test_a_file_of_one_rank_is_split_like_any_other(tmp_path: Path) -> None:
    """It is padded, and divided no further among ranks."""
    numpy_files.save_file({"x": bits(5, 3)}, tmp_path / "m.safetensors")
    rules = {"shard": [{"tensors": "x", "axis": 0, "pad_to": 8, "ranks": 2}]}
    ts.files.split(tmp_path / "m.safetensors", tmp_path / "out", rules=rules)
    held = rank_file(tmp_path / "out", 1, 2)
    ts.files.split(held, tmp_path / "parts.safetensors", [1, 3])
    found, whole = load(tmp_path / "parts.safetensors"), load(held)["x"]
    assert {name: each.tobytes() for name, each in found.items()} == {
        "x.0": whole[:1].tobytes(),
        "x.1": whole[1:].tobytes(),
    }


@pytest.mark.parametrize("name", ["segments", "heads", "heads of a group", "stretches"])
def test_what_follows_is_padded_as_well(tmp_path: Path, name: str) -> None:
    layout = LAYOUTS[name]
    rows, scales = bits(4 * sum(layout.lengths), 3), bits(sum(layout.lengths), 2)
    tensors = {"x": rows, "s": scales}
    numpy_files.save_file(tensors, tmp_path / "m.safetensors")
    weight: dict[str, Any] = {"tensors": "x", "axis": 0, **layout.rule}
    weight["pad_to"] = [4 * each for each in layout.blocks]
    if "segments" in layout.rule:
        weight["segments"] = [4 * each for each in layout.lengths]
    rules = {"shard": [weight, {"tensors": "s", "axis": 0, "follow": "x", "block": 4}]}
    of_weight = layout._replace(
        lengths=tuple(4 * each for each in layout.lengths),
        blocks=tuple(4 * each for each in layout.blocks),
    )
    for ranks in (2, 4):
        out = tmp_path / str(ranks)
        ts.files.split(tmp_path / "m.safetensors", out, rules=rules, ranks=ranks)
        for rank in range(ranks):
            expected = {
                "x": by_hand(rows, of_weight, rank, ranks),
                "s": by_hand(scales, layout, rank, ranks),
            }
            check(load(rank_file(out, rank, ranks)), expected)
        ts.files.merge(out, tmp_path / f"{ranks}.safetensors", rules=rules)
        check(load(tmp_path / f"{ranks}.safetensors"), tensors)


@pytest.mark.parametrize(("length", "padded", "blocks"), [(13, 16, 4), (13, 32, 8), (21, 24, 6)])
def test_padding_that_fills_the_last_block(
    tmp_path: Path, length: int, padded: int, blocks: int
) -> None:
    rows, scales = bits(length, 3), bits(-(-length // 4), 2)
    numpy_files.save_file({"x": rows, "s": scales}, tmp_path / "m.safetensors")
    weight = {"tensors": "x", "axis": 0, "pad_to": padded}
    rules = {"shard": [weight, {"tensors": "s", "axis": 0, "follow": "x", "block": 4}]}
    for ranks in (1, 2):
        ts.files.split(tmp_path / "m.safetensors", tmp_path / "out", rules=rules, ranks=ranks)
        found = [load(rank_file(tmp_path / "out", rank, ranks)) for rank in range(ranks)]
        for name, each, count in [("x", rows, padded), ("s", scales, blocks)]:
            whole = np.concatenate([rank[name] for rank in found])
            assert whole.tobytes() == each.tobytes() + bytes((count - len(each)) * each[0].nbytes)
        ts.files.merge(tmp_path / "out", tmp_path / f"{ranks}.safetensors", rules=rules)
        check(load(tmp_path / f"{ranks}.safetensors"), {"x": rows, "s": scales})
        shutil.rmtree(tmp_path / "out")


def test_padding_that_fills_the_last_block_of_a_fused_tensor(tmp_path: Path) -> None:
    rows, scales = bits(15, 3), bits(4, 2)
    numpy_files.save_file({"x": rows, "s": scales}, tmp_path / "m.safetensors")
    weight = {"tensors": "x", "axis": 0, "segments": [8, 7], "pad_to": 12}
    rules = {"shard": [weight, {"tensors": "s", "axis": 0, "follow": "x", "block": 4}]}

    def expected(rank: int, ranks: int) -> dict[str, np.ndarray]:
        shares = []
        for each, first, length in ((rows, 8, 12), (scales, 2, 3)):
            whole = np.zeros((2, length, *each.shape[1:]), each.dtype)
            whole[0, :first], whole[1, : len(each) - first] = each[:first], each[first:]
            part = np.split(whole, ranks, axis=1)[rank]
            shares.append(part.reshape(-1, *each.shape[1:]))
        return {"x": shares[0], "s": shares[1]}

    check_all_ways(tmp_path, rules, (1, 3), {"x": rows, "s": scales}, expected)


@pytest.mark.parametrize(
    ("length", "pad_to", "ranks", "end"),
    [(12, 20, 4, 5), (6, 12, 2, 6), (13, 18, 1, 18)],  # where a part, the whole or its padding ends
)
def test_padding_within_a_block(
    tmp_path: Path, length: int, pad_to: int, ranks: int, end: int
) -> None:
    tensors = {"x": bits(length), "s": bits(-(-length // 4))}
    numpy_files.save_file(tensors, tmp_path / "m.safetensors")
    weight = {"tensors": "x", "axis": 0, "ranks": ranks, "pad_to": pad_to}
    rules = {"shard": [weight, {"tensors": "s", "axis": 0, "follow": "x", "block": 4}]}
    said = f"TS719.*a part of x would end at its element {end}, within a block of 4"
    with pytest.raises(ts.SplitError, match=said):
        ts.files.split(tmp_path / "m.safetensors", tmp_path / "out", rules=rules)


def test_a_length_that_ranks_do_not_divide_is_refused_with_how_to_pad_it(tmp_path: Path) -> None:
    numpy_files.save_file({"x": bits(13)}, tmp_path / "m.safetensors")
    rules: dict[str, Any] = {"shard": [{"tensors": "x", "axis": 0, "ranks": 4}]}
    with pytest.raises(ts.SplitError, match=r"TS303.*13 is not a multiple of 4; .* with pad_to"):
        ts.files.split(tmp_path / "m.safetensors", tmp_path / "out", rules=rules)


def test_what_follows_has_to_say_how_long_it_was(tmp_path: Path) -> None:
    numpy_files.save_file({"x": bits(13), "s": bits(13)}, tmp_path / "m.safetensors")
    weight = {"tensors": "x", "axis": 0, "ranks": 4, "pad_to": 16}
    rules = {"shard": [weight, {"tensors": "s", "follow": "x"}]}
    ts.files.split(tmp_path / "m.safetensors", tmp_path / "out", rules=rules)
    file = rank_file(tmp_path / "out", 1, 4)
    numpy_files.save_file(load(file), file, metadata={UNPADDED: '{"x": 13}'})
    with pytest.raises(ts.SplitError, match=r"TS713.*tensor s: its files do not say alike how"):
        ts.files.merge(tmp_path / "out", tmp_path / "back.safetensors", rules=rules)
