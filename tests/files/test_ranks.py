"""Ranks that get whole attention heads, copies of some, and shares that are not equal."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tensorsplit.files import byte_copies

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


def load(path: Path) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = numpy_files.load_file(path)
    return found


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


@pytest.mark.parametrize("block", [16, 1 << 20])
def test_copies_that_differ(
    model: tuple[Path, dict[str, np.ndarray]], monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(byte_copies, "_BLOCK", block)
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
        ({"heads": [4, 1, 1], "segments": [16, 4, 4], "ranks": 2}, "2 ranks would cut 1 head"),
        ({"heads": [3], "groups": 2, "ranks": 2}, "2 groups would cut 3 heads"),
        ({"heads": 6, "split": [10, 14]}, "the length 10 of rank 0 would cut one of 6 heads"),
    ],
)
def test_heads_are_never_cut(tmp_path: Path, rule: dict[str, Any], said: str) -> None:
    numpy_files.save_file({"a.kv": bits(24, 2)}, tmp_path / "m.safetensors")
    rules = {"shard": [{"tensors": "*.kv", "axis": 0, **rule}]}
    with pytest.raises(ts.SplitError, match=f"TS714.*tensor a.kv: {re.escape(said)}"):
        ts.files.split(tmp_path / "m.safetensors", tmp_path / "out", rules=rules)
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
        ({"replicate": True, "heads": 2, "groups": 2}, "goes without segments and groups"),
        (
            {"heads": [2, 2], "segments": [4]},
            "heads is a number, or a list of one for each segment",
        ),
        ({"heads": [2, 2], "split": [2, 2]}, "split goes without"),
        ({"heads": 2, "segments": [2, 2]}, "heads is a number, or a list of one for each segment"),
        ({"heads": 0}, ">= 1"),
        ({"split": [2, 2], "groups": 2}, "split goes without"),
        ({"split": []}, "length >= 1"),
        ({"split": [2, 2], "ranks": 4}, "lengths of 2 ranks"),
    ],
)
def test_rules_that_contradict_themselves(tmp_path: Path, rule: dict[str, Any], said: str) -> None:
    numpy_files.save_file({"x": bits(4)}, tmp_path / "m.safetensors")
    rules = {"shard": [{"tensors": "x", "axis": 0, "ranks": 2, **rule}]}
    with pytest.raises(ts.SplitError, match=f"TS7(03|15).*{re.escape(said)}"):
        ts.files.split(tmp_path / "m.safetensors", tmp_path / "out", rules=rules)
