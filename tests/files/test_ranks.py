"""Ranks that get whole attention heads, copies of some, and shares that are not equal."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tensorsplit.files import byte_files
from tests.files.checkpoints import load

numpy_files = pytest.importorskip("safetensors.numpy")
RANDOM = np.random.default_rng(2704)
HEAD, HEADS, KEYS = 4, 8, 2
SHAPES = {
    "layers.0.q.weight": (HEADS * HEAD, 6),
    "layers.0.k.weight": (KEYS * HEAD, 6),
    "layers.0.v.weight": (KEYS * HEAD, 6),
    "layers.0.v.bias": (KEYS * HEAD,),
    "layers.0.o.weight": (6, HEADS * HEAD),
    "norm.weight": (6,),
}
RULES: dict[str, Any] = {
    "shard": [
        {"tensors": "*.q.weight", "axis": 0, "heads": HEADS},
        {"tensors": ["*.k.*", "*.v.*"], "axis": 0, "heads": KEYS, "replicate": True},
        {"tensors": "*.o.weight", "axis": 1, "heads": HEADS},
    ]
}


def bits(*shape: int) -> np.ndarray:
    return np.frombuffer(RANDOM.bytes(4 * int(np.prod(shape))), np.float32).reshape(shape)


def rank_file(folder: Path, rank: int, ranks: int) -> Path:
    return folder / f"rank-{rank}-of-{ranks}.safetensors"


def check(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert found.keys() == expected.keys()
    for name, each in expected.items():
        assert found[name].shape == each.shape
        assert found[name].tobytes() == np.ascontiguousarray(each).tobytes()


@pytest.fixture
def model(tmp_path: Path) -> tuple[Path, dict[str, np.ndarray]]:
    tensors = {name: bits(*shape) for name, shape in SHAPES.items()}
    numpy_files.save_file(tensors, tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors", tensors


def by_hand(tensors: dict[str, np.ndarray], rank: int, ranks: int) -> dict[str, np.ndarray]:
    """What a plain loop gives to a rank: rows of its own query heads, and the keys of these."""
    own = [head for head in range(HEADS) if head * ranks // HEADS == rank]
    keys = sorted({head * KEYS // HEADS for head in own})

    def rows(heads: list[int]) -> list[int]:
        return [head * HEAD + row for head in heads for row in range(HEAD)]

    made = dict(tensors)
    for name, each in tensors.items():
        if ".q." in name:
            made[name] = each[rows(own)]
        elif ".k." in name or ".v." in name:
            made[name] = each[rows(keys)]
        elif ".o." in name:
            made[name] = each[:, rows(own)]
    return made


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_whole_heads_and_copies_of_keys(
    model: tuple[Path, dict[str, np.ndarray]], ranks: int
) -> None:
    path, tensors = model
    out = path.with_name("out")
    ts.files.split(path, out, rules=RULES, ranks=ranks, verify=True)
    for rank in range(ranks):
        check(load(rank_file(out, rank, ranks)), by_hand(tensors, rank, ranks))
    ts.files.merge(out, path.with_name("back.safetensors"), rules=RULES, verify=True)
    check(load(path.with_name("back.safetensors")), tensors)


@pytest.mark.parametrize(("before", "after"), [(8, 2), (2, 8), (4, 8), (8, 4), (1, 4), (8, 1)])
def test_copies_are_resharded(
    model: tuple[Path, dict[str, np.ndarray]], before: int, after: int
) -> None:
    path, tensors = model
    one, other = path.with_name("one"), path.with_name("other")
    ts.files.split(path, one, rules=RULES, ranks=before)
    ts.files.reshard(one, other, ranks=(before, after), rules=RULES, verify=True)
    for rank in range(after):
        check(load(rank_file(other, rank, after)), by_hand(tensors, rank, after))


@pytest.mark.parametrize("function", ["split", "merge", "reshard"])
def test_nothing_is_replaced_unless_that_is_asked_for(
    model: tuple[Path, dict[str, np.ndarray]], function: str
) -> None:
    path, _ = model
    parts, out = path.with_name("parts"), path.with_name("out")
    ts.files.split(path, parts, rules=RULES, ranks=2)
    ranks: dict[str, Any] = {"split": {"ranks": 4}, "reshard": {"ranks": (2, 4)}, "merge": {}}
    source, given = path if function == "split" else parts, {"rules": RULES, **ranks[function]}
    make = getattr(ts.files, function)
    make(source, out, **given)
    before = {each.name: each.read_bytes() for each in out.iterdir()}
    with pytest.raises(ts.SplitError, match=r"TS702.*give overwrite=True"):
        make(source, out, **given)
    assert {each.name: each.read_bytes() for each in out.iterdir()} == before
    make(source, out, **given, overwrite=True)


@pytest.mark.parametrize("block", [16, 1 << 20])
def test_copies_that_differ(
    model: tuple[Path, dict[str, np.ndarray]], monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(byte_files, "BLOCK", block)
    path, _ = model
    out = path.with_name("out")
    ts.files.split(path, out, rules=RULES, ranks=8)
    file = rank_file(out, 6, 8)  # of four ranks that hold the same head, not the first
    found = load(file)
    found["layers.0.k.weight"] = np.array(found["layers.0.k.weight"])
    found["layers.0.k.weight"].view(np.uint32)[-1, -1] ^= 1
    numpy_files.save_file(found, file)
    with pytest.raises(ts.SplitError, match="TS712") as refusal:
        ts.files.merge(out, path.with_name("back.safetensors"), rules=RULES)
    said = str(refusal.value)
    assert "the tensor layers.0.k.weight is not the same" in said
    assert "rank-4-of-8.safetensors" in said
    assert "rank-6-of-8.safetensors" in said
    assert not path.with_name("back.safetensors").exists()


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"heads": 2, "ranks": 4}, "4 ranks would cut 2 heads"),
        ({"heads": 2, "ranks": 3, "replicate": True}, "3 ranks would cut 2 heads"),
        ({"heads": 6, "ranks": 4, "replicate": True}, "4 ranks would cut 6 heads"),
        ({"heads": 2, "ranks": 5, "replicate": True}, "5 ranks would cut 2 heads"),
        ({"heads": [4, 1, 1], "segments": [16, 4, 4], "ranks": 2}, "2 ranks would cut 1 head"),
        ({"heads": [3], "groups": 2, "ranks": 2}, "2 groups would cut 3 heads"),
        ({"heads": [8, 2, 2], "ranks": 4}, "4 ranks would cut 2 heads"),
        (
            {"heads": [8, 2, 2], "ranks": 4, "replicate": [True, False, True]},
            "4 ranks would cut 2 heads",
        ),
        (
            {"heads": [8, 3, 1], "ranks": 4, "replicate": [False, True, True]},
            "4 ranks would cut 3 heads",
        ),
        (
            {"heads": [8, 1, 3], "ranks": 4, "groups": 2, "replicate": [False, True, False]},
            "2 groups would cut 1 head",
        ),
        ({"heads": 6, "split": [10, 14]}, "the length 10 of rank 0 would cut one of 6 heads"),
        ({"heads": 6, "split": [2, 22]}, "the length 2 of rank 0 would cut one of 6 heads"),
    ],
)
def test_heads_are_never_cut(tmp_path: Path, rule: dict[str, Any], said: str) -> None:
    numpy_files.save_file({"a.kv": bits(24, 2)}, tmp_path / "m.safetensors")
    rules = {"shard": [{"tensors": "*.kv", "axis": 0, **rule}]}
    with pytest.raises(ts.SplitError, match=f"TS714.*tensor a.kv: {re.escape(said)}") as refusal:
        ts.files.split(tmp_path / "m.safetensors", tmp_path / "out", rules=rules)
    could_repeat = rule.get("ranks", 0) > min(np.ravel(rule["heads"])) and "replicate" not in rule
    assert ("or say replicate" in str(refusal.value)) == could_repeat
    assert not (tmp_path / "out").exists()


def test_heads_of_segments_and_of_groups(tmp_path: Path) -> None:
    whole = bits(32, 3)
    numpy_files.save_file({"qkv": whole}, tmp_path / "m.safetensors")
    fused = {"tensors": "qkv", "axis": 0, "segments": [16, 8, 8], "heads": [8, 4, 4], "ranks": 4}
    for groups in (1, 2):
        out = tmp_path / str(groups)
        rules = {"shard": [{**fused, "groups": groups}]}
        ts.files.split(tmp_path / "m.safetensors", out, rules=rules)
        for rank in range(4):
            if groups == 1:
                rows = [*range(4 * rank, 4 * rank + 4), 16 + 2 * rank, 17 + 2 * rank]
                rows += [24 + 2 * rank, 25 + 2 * rank]
            else:
                start, half = 16 * (rank // 2), rank % 2
                rows = [*range(start + 4 * half, start + 4 * half + 4)]
                rows += [start + 8 + 2 * half, start + 9 + 2 * half]
                rows += [start + 12 + 2 * half, start + 13 + 2 * half]
            check(load(rank_file(out, rank, 4)), {"qkv": whole[rows]})


LAYOUTS = [  # groups, heads of the segments, rows of a head in each
    (1, (8, 2, 2), (4, 4, 4)),
    (1, (8, 1, 1), (4, 4, 4)),
    (1, (8, 2, 1), (4, 4, 4)),
    (1, (8, 2, 2), (4, 6, 2)),
    (2, (8, 2, 2), (4, 4, 4)),
    (2, (8, 2, 4), (4, 4, 6)),
]


def fused_by_hand(
    whole: np.ndarray, layout: tuple[int, Any, Any], rank: int, ranks: int
) -> np.ndarray:
    """What a plain loop gives to a rank: its query heads, and the heads that these share."""
    groups, heads, rows = layout
    parts, at = [], 0
    own = [head for head in range(heads[0]) if head * ranks // heads[0] == rank]
    for group in range(groups):
        for count, size in zip(heads, rows, strict=True):
            of_group = count // groups
            for head in range(group * of_group, (group + 1) * of_group):
                used = {query * count // heads[0] for query in own}
                if head in used:
                    parts.append(whole[at : at + size])
                at += size
    assert at == len(whole)
    return np.concatenate(parts)


@pytest.mark.usefixtures("ways")
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_fused_heads_fewer_than_ranks(tmp_path: Path, layout: Any, axis: int) -> None:
    groups, heads, rows = layout
    length = sum(map(np.multiply, heads, rows))
    whole = bits(length, 3)
    numpy_files.save_file(
        {"a.qkv": whole if axis == 0 else np.ascontiguousarray(whole.T)}, tmp_path / "m.safetensors"
    )
    rule: dict[str, Any] = {"tensors": "*.qkv", "axis": axis, "heads": list(heads)}
    rule |= {"groups": groups, "replicate": [False, True, True]}
    if len(set(rows)) > 1:
        rule["segments"] = [int(a * b) for a, b in zip(heads, rows, strict=True)]
    rules = {"shard": [rule]}

    def check_ranks(folder: Path, ranks: int) -> None:
        for rank in range(ranks):
            part = fused_by_hand(whole, layout, rank, ranks)
            found = load(rank_file(folder, rank, ranks))
            check(found, {"a.qkv": part if axis == 0 else part.T})

    out = tmp_path / "8"
    ts.files.split(tmp_path / "m.safetensors", out, rules=rules, ranks=8, verify=True)
    check_ranks(out, 8)
    ts.files.merge(out, tmp_path / "back.safetensors", rules=rules, verify=True)
    check(load(tmp_path / "back.safetensors"), load(tmp_path / "m.safetensors"))
    for before, after in ((8, 4), (4, 8), (8, 2), (2, 4)):
        there = tmp_path / f"from {before} to {after}"
        ts.files.split(tmp_path / "m.safetensors", tmp_path / "one", rules=rules, ranks=before)
        ts.files.reshard(tmp_path / "one", there, ranks=(before, after), rules=rules, verify=True)
        check_ranks(there, after)
        shutil.rmtree(tmp_path / "one")


@pytest.mark.parametrize("axis", [0, 1])
def test_fused_copies_that_differ(tmp_path: Path, axis: int) -> None:
    numpy_files.save_file({"qkv": bits(12, 12)}, tmp_path / "m.safetensors")
    rule = {"tensors": "qkv", "axis": axis, "heads": [8, 2, 2], "replicate": [False, True, True]}
    rules = {"shard": [rule]}
    ts.files.split(tmp_path / "m.safetensors", tmp_path / "out", rules=rules, ranks=8)
    file = rank_file(tmp_path / "out", 6, 8)
    found = np.array(load(file)["qkv"])
    changed = found.copy()
    place = (2, 5) if axis == 0 else (5, 2)  # of the value, which ranks 4 to 7 share
    changed.view(np.uint32)[place] ^= 1
    numpy_files.save_file({"qkv": changed}, file)
    with pytest.raises(ts.SplitError, match="TS712") as refusal:
        ts.files.merge(tmp_path / "out", tmp_path / "back.safetensors", rules=rules)
    assert "rank-4-of-8.safetensors" in str(refusal.value)
    assert "rank-6-of-8.safetensors" in str(refusal.value)
    assert not (tmp_path / "back.safetensors").exists()
    found.view(np.uint32)[(0, 5) if axis == 0 else (5, 0)] ^= 1  # of the query, which is its own
    numpy_files.save_file({"qkv": found}, file)
    ts.files.merge(tmp_path / "out", tmp_path / "back.safetensors", rules=rules)
    place = (6, 5) if axis == 0 else (5, 6)
    one, other = load(tmp_path / "m.safetensors")["qkv"], load(tmp_path / "back.safetensors")["qkv"]
    different = one.view(np.uint32) ^ other.view(np.uint32)
    assert different[place] == 1
    assert np.count_nonzero(different) == 1


@pytest.mark.parametrize("extras", [(0, 1, 2), (0, 0, 1)])
def test_fused_parts_of_another_length(tmp_path: Path, extras: tuple[int, ...]) -> None:
    rule = {"tensors": "x", "axis": 0, "heads": [6, 1], "replicate": [False, True], "ranks": 3}
    for rank, extra in enumerate(extras):
        file = rank_file(tmp_path / "out", rank, 3)
        file.parent.mkdir(exist_ok=True)
        numpy_files.save_file({"x": bits(3 + extra, 2)}, file)
    said = re.escape(str([3 + extra for extra in extras]))
    with pytest.raises(ts.SplitError, match=f"TS713.*tensor x: ranks hold {said} of it"):
        ts.files.merge(tmp_path / "out", tmp_path / "back.safetensors", rules={"shard": [rule]})


@pytest.mark.parametrize("axis", [0, 1])
def test_shares_that_are_not_equal(tmp_path: Path, axis: int) -> None:
    lengths = [3, 0, 8, 1]
    whole = bits(*((12, 5) if axis == 0 else (5, 12)))
    numpy_files.save_file({"x": whole, "n": bits(3)}, tmp_path / "m.safetensors")
    rules = {"shard": [{"tensors": "x", "axis": axis, "split": lengths}]}
    ts.files.split(tmp_path / "m.safetensors", tmp_path / "out", rules=rules, verify=True)
    end = 0
    for rank, length in enumerate(lengths):
        part = np.take(whole, range(end, end + length), axis)
        assert load(rank_file(tmp_path / "out", rank, 4))["x"].tobytes() == part.tobytes()
        end += length
    ts.files.merge(tmp_path / "out", tmp_path / "back.safetensors", rules=rules, verify=True)
    check(load(tmp_path / "back.safetensors"), load(tmp_path / "m.safetensors"))
    other = r"TS715.*tensor x: .*lengths of 4 ranks, and there are 2"
    with pytest.raises(ts.SplitError, match=other):
        ts.files.split(tmp_path / "m.safetensors", tmp_path / "two", rules=rules, ranks=2)
    with pytest.raises(ts.SplitError, match=other):
        ts.files.reshard(tmp_path / "out", tmp_path / "two", ranks=(4, 2), rules=rules)
    rules["shard"][0]["split"] = [3, 0, 8, 2]
    with pytest.raises(ts.SplitError, match="TS302"):
        ts.files.split(tmp_path / "m.safetensors", tmp_path / "two", rules=rules)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"replicate": True}, "replicate needs heads"),
        ({"replicate": [True, True]}, "replicate needs heads"),
        ({"replicate": True, "heads": 2, "groups": 2}, "goes without segments and groups"),
        ({"replicate": True, "heads": [2, 1, 1]}, "such as [false, true, true]"),
        ({"replicate": [True], "heads": [2, 1, 1]}, "a list of one for each of the heads"),
        (
            {"heads": [2, 2], "segments": [4]},
            "heads is a number, or a list of one for each segment",
        ),
        ({"heads": [2, 2], "split": [2, 2]}, "split goes without"),
        ({"heads": 2, "segments": [2, 2]}, "heads is a number, or a list of one for each segment"),
        ({"heads": 0}, ">= 1"),
        ({"split": [2, 2], "groups": 2}, "split goes without"),
        ({"split": [2, 2], "heads": 2, "replicate": True}, "split goes without"),
        ({"follow": "y", "split": [2, 2]}, "follow goes without"),
        ({"block": 2}, "block and packed go with follow"),
        ({"packed": 2}, "block and packed go with follow"),
        ({"split": []}, "length >= 1"),
        ({"split": [2, 2], "ranks": 4}, "lengths of 2 ranks"),
    ],
)
def test_rules_that_contradict_themselves(tmp_path: Path, rule: dict[str, Any], said: str) -> None:
    numpy_files.save_file({"x": bits(4)}, tmp_path / "m.safetensors")
    rules = {"shard": [{"tensors": "x", "axis": 0, "ranks": 2, **rule}]}
    with pytest.raises(ts.SplitError, match=f"TS7(03|15).*{re.escape(said)}"):
        ts.files.split(tmp_path / "m.safetensors", tmp_path / "out", rules=rules)


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (
            {"split": [{"tensors": "x", "follow": "y", "axis": 0}], "rename": []},
            "follow needs names",
        ),
        (
            {
                "shard": [
                    {"tensors": "x", "axis": 0, "ranks": 2},
                    {"tensors": "y", "axis": 0, "ranks": 4},
                ]
            },
            "rules: ranks is 2, 4; give all rules the same",
        ),
    ],
)
def test_tables_that_contradict_each_other(
    tmp_path: Path, rules: dict[str, Any], said: str
) -> None:
    numpy_files.save_file({"x": bits(4), "y": bits(4)}, tmp_path / "m.safetensors")
    with pytest.raises(ts.SplitError, match=f"TS703.*{re.escape(said)}"):
        ts.files.split(tmp_path / "m.safetensors", tmp_path / "out", rules=rules)


def test_the_number_of_ranks_that_is_given_counts_more_than_that_of_the_rules(
    tmp_path: Path,
) -> None:
    numpy_files.save_file({"x": bits(8)}, tmp_path / "m.safetensors")
    rules = {"shard": [{"tensors": "x", "axis": 0, "ranks": 2}]}
    ts.files.split(tmp_path / "m.safetensors", tmp_path / "out", rules=rules, ranks=4)
    assert [load(rank_file(tmp_path / "out", rank, 4))["x"].size for rank in range(4)] == [2] * 4


def test_a_tensor_for_all_ranks_has_a_name_of_its_own(tmp_path: Path) -> None:
    numpy_files.save_file({"a": bits(8), "b": bits(3)}, tmp_path / "m.safetensors")
    for name, other in (("a", "b"), ("b", "a")):  # the one for all comes after the other, or before
        rules = {"shard": [{"tensors": name, "axis": 0, "ranks": 1, "name": other}]}
        with pytest.raises(ts.SplitError, match=f"TS706.*two tensors would be called '{other}'"):
            ts.files.split(tmp_path / "m.safetensors", tmp_path / "out", rules=rules)


@pytest.mark.parametrize(
    "more",
    [
        {"axis": 0},
        {"split": [2, 2]},
        {"num_outputs": 2},
        {"chunk": 2},
        {"operator": "onnx.Split-18"},
        {"opset": 18},
        {"names": ["a", "b"]},
    ],
)
def test_rules_take_the_place_of_a_split(tmp_path: Path, more: dict[str, Any]) -> None:
    numpy_files.save_file({"x": bits(4)}, tmp_path / "m.safetensors")
    rules = {"split": [{"tensors": "x", "num_outputs": 2}]}
    with pytest.raises(ts.SplitError, match=r"TS703.*rules are given, and a split as well"):
        ts.files.split(tmp_path / "m.safetensors", tmp_path / "out", rules=rules, **more)


def test_the_name_of_a_part_says_what_the_star_of_its_rule_stands_for(tmp_path: Path) -> None:
    numpy_files.save_file({"q": bits(4), "k": bits(4)}, tmp_path / "m.safetensors")
    rules = {"split": [{"tensors": "layer.*", "num_outputs": 2, "names": ["q", "k"]}]}
    with pytest.raises(
        ts.SplitError, match=r"TS703.*the name '[qk]' does not say what the \* of 'layer\.\*'"
    ):
        ts.files.merge(tmp_path / "m.safetensors", tmp_path / "whole.safetensors", rules=rules)
