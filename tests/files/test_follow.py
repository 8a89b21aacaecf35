"""Scales and zero points of quantised weights are divided where their weight is."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tests.files.checkpoints import load
from tests.files.test_ranks import check, rank_file

numpy_files = pytest.importorskip("safetensors.numpy")
RANDOM = np.random.default_rng(2719)


def bits(dtype: Any, *shape: int) -> np.ndarray:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer(RANDOM.bytes(size), dtype).reshape(shape)


def awq(rows: int, columns: int, group: int) -> dict[str, np.ndarray]:
    """A layer of AWQ: 8 columns are packed in an integer, and so are those of the zero points."""
    return {
        "qweight": bits(np.int32, rows, columns // 8),
        "qzeros": bits(np.int32, rows // group, columns // 8),
        "scales": bits(np.float16, rows // group, columns),
    }


def gptq(rows: int, columns: int, group: int) -> dict[str, np.ndarray]:
    """A layer of GPTQ: 8 rows are packed in an integer, of the zero points 8 columns."""
    return awq(rows, columns, group) | {"qweight": bits(np.int32, rows // 8, columns)}


def follow(axis: int, **blocks: tuple[int, int]) -> list[dict[str, Any]]:
    """The rules of what follows the packed weight: its block, and how the weight is packed."""
    return [
        {"tensors": f"*.{name}", "follow": "*.qweight", "axis": axis}
        | {"block": block, "packed": packed}
        for name, (block, packed) in blocks.items()
    ]


GROUP = 16
CASES: dict[
    str, tuple[Any, int, dict[str, Any], dict[str, tuple[int, int]]]
] = {  # the layer, its axis, the rule of the weight, and what follows it
    "awq columns": (awq, 1, {}, {"scales": (1, 8), "qzeros": (8, 8)}),
    "awq rows": (awq, 0, {}, {"scales": (GROUP, 1), "qzeros": (GROUP, 1)}),
    "gptq columns": (gptq, 1, {}, {"scales": (1, 1), "qzeros": (8, 1)}),
    "gptq rows": (gptq, 0, {}, {"scales": (GROUP, 8), "qzeros": (GROUP, 8)}),
    "awq heads": (awq, 1, {"heads": 2, "replicate": True}, {"scales": (1, 8), "qzeros": (8, 8)}),
    "awq fused": (
        awq,
        1,
        {"heads": [8, 4, 4], "replicate": [False, True, True]},
        {"scales": (1, 8), "qzeros": (8, 8)},
    ),
}


def shares(case: str, length: int, rank: int, ranks: int) -> list[int]:
    """The rows or columns of the unpacked weight that a rank gets."""
    if case == "awq heads":
        head = rank * 2 // ranks
        return list(range(head * length // 2, (head + 1) * length // 2))
    if case == "awq fused":
        q, kv = length // 2, length // 4
        own = list(range(rank * q // ranks, (rank + 1) * q // ranks))
        count = min(ranks, 4)
        mine = rank * count // ranks
        some = list(range(mine * kv // count, (mine + 1) * kv // count))
        return own + [q + each for each in some] + [q + kv + each for each in some]
    return list(range(rank * length // ranks, (rank + 1) * length // ranks))


def by_hand(case: str, layer: dict[str, np.ndarray], rank: int, ranks: int) -> dict[str, Any]:
    """What slices give: each element of a tensor that stands for a row or column of the share."""
    axis = CASES[case][1]
    whole = max(each.shape[axis] for each in layer.values()) if axis else 8 * 16
    made = {}
    for name, each in layer.items():
        size = whole // each.shape[axis]
        own = shares(case, whole, rank, ranks)
        places = [place // size for place in own[::size]]
        made[name] = np.take(each, places, axis)
    return {f"l.{name}": each for name, each in made.items()}


def check_all_ways(
    folder: Path,
    rules: dict[str, Any],
    counts: tuple[int, ...],
    tensors: dict[str, np.ndarray],
    expected: Callable[[int, int], dict[str, np.ndarray]],
) -> None:
    """Split and merge `m.safetensors` for each count of ranks, and reshard between all of them."""
    for ranks in counts:
        out = folder / str(ranks)
        ts.files.split(folder / "m.safetensors", out, rules=rules, ranks=ranks, verify=True)
        for rank in range(ranks):
            check(load(rank_file(out, rank, ranks)), expected(rank, ranks))
        ts.files.merge(out, folder / f"{ranks}.safetensors", rules=rules, verify=True)
        check(load(folder / f"{ranks}.safetensors"), tensors)
    for before, after in itertools.permutations(counts, 2):
        out = folder / f"{before} to {after}"
        source = folder / str(before)
        ts.files.reshard(source, out, rules=rules, ranks=(before, after), verify=True)
        for rank in range(after):
            check(load(rank_file(out, rank, after)), expected(rank, after))


@pytest.mark.parametrize("case", CASES)
def test_packed_weights_and_their_groups(tmp_path: Path, case: str) -> None:
    make, axis, rule, blocks = CASES[case]
    layer = make(8 * GROUP, 256, GROUP)
    tensors = {f"l.{name}": each for name, each in layer.items()}
    numpy_files.save_file(tensors, tmp_path / "m.safetensors")
    rules = {"shard": [*follow(axis, **blocks), {"tensors": "*.qweight", "axis": axis, **rule}]}
    check_all_ways(tmp_path, rules, (2, 4, 8), tensors, partial(by_hand, case, layer))


@pytest.mark.parametrize(("rows", "lengths"), [(300, [128, 172]), (384, [256, 128])])
def test_blocks_of_float8_of_which_the_last_is_smaller(
    tmp_path: Path, rows: int, lengths: list[int]
) -> None:
    tensors = {
        "l.weight": bits(np.int8, rows, 5),
        "l.weight_scale_inv": bits(np.float32, 3, 1),
    }
    numpy_files.save_file(tensors, tmp_path / "m.safetensors")
    scale = {"tensors": "*.weight_scale_inv", "follow": "*.weight", "axis": 0, "block": 128}
    rules = {"shard": [{"tensors": "*.weight", "axis": 0, "split": lengths}, scale]}
    ts.files.split(tmp_path / "m.safetensors", tmp_path / "out", rules=rules, verify=True)
    blocks = lengths[0] // 128
    for rank, (own, scales) in enumerate(
        zip(
            np.split(tensors["l.weight"], [lengths[0]]),
            np.split(tensors["l.weight_scale_inv"], [blocks]),
            strict=True,
        )
    ):
        found = load(rank_file(tmp_path / "out", rank, 2))
        check(found, {"l.weight": own, "l.weight_scale_inv": scales})
    ts.files.merge(tmp_path / "out", tmp_path / "back.safetensors", rules=rules, verify=True)
    check(load(tmp_path / "back.safetensors"), tensors)


def test_parts_of_a_split_are_followed(tmp_path: Path) -> None:
    tensors = {
        f"{n}.qkv.{kind}": bits(np.float32, length, 2)
        for n in (0, 1)
        for kind, length in (("weight", 32), ("scale", 8))
    }
    numpy_files.save_file(tensors, tmp_path / "m.safetensors")
    weight = {"tensors": "*.qkv.weight", "axis": 0, "split": [16, 8, 8]}
    weight["names"] = ["*.q.weight", "*.k.weight", "*.v.weight"]
    scale = {"tensors": "*.qkv.scale", "axis": 0, "follow": "*.qkv.weight", "block": 4}
    scale["names"] = ["*.q.scale", "*.k.scale", "*.v.scale"]
    rules = {"split": [weight, scale]}
    ts.files.split(tmp_path / "m.safetensors", tmp_path / "out.safetensors", rules=rules)
    expected = {}
    for n in (0, 1):
        for kind, ends in (("weight", [16, 24]), ("scale", [4, 6])):
            for name, part in zip("qkv", np.split(tensors[f"{n}.qkv.{kind}"], ends), strict=True):
                expected[f"{n}.{name}.{kind}"] = part
    check(load(tmp_path / "out.safetensors"), expected)
    ts.files.merge(tmp_path / "out.safetensors", tmp_path / "back.safetensors", rules=rules)
    check(load(tmp_path / "back.safetensors"), tensors)


@pytest.mark.parametrize(
    ("weight", "scales", "changes", "said"),
    [
        (300, 3, {}, "TS719.*l.weight would end at its element 100, within a block of 128"),
        (384, 3, {"packed": 2}, "TS719.*its dimension 0 is 3, and l.weight of 768 elements has 6"),
        (384, 4, {}, "TS719.*its dimension 0 is 4, and l.weight of 384 elements has 3 blocks"),
        (384, 4, {"axis": -1}, "TS719.*its dimension -1 is 4, and l.weight of 384 elements has 3"),
        *((384, 3, {"axis": axis}, "TS2") for axis in (1, -2)),
        (384, 3, {"follow": "*.other"}, "TS703.*it follows l.other, which is not there"),
        (384, 3, {"follow": "*.norm"}, "TS703.*no rule of this kind divides l.norm"),
        (384, 3, {"follow": "*.scale"}, "TS703.*it follows l.scale, which follows another one"),
        (384, 3, {"follow": "*.*"}, "TS706"),
        (384, 3, {"follow": None}, "TS703.*block and packed go with follow"),
        (384, 3, {"heads": 3}, "TS703.*follow goes without heads"),
        (384, 3, {"ranks": 3}, "TS703.*follow goes without ranks"),
        (384, 3, {"block": 0}, "TS703.*>= 1"),
    ],
)
def test_what_does_not_follow(
    tmp_path: Path, weight: int, scales: int, changes: dict[str, Any], said: str
) -> None:
    tensors = {"l.weight": bits(np.uint8, weight), "l.scale": bits(np.float32, scales)}
    numpy_files.save_file(tensors | {"l.norm": bits(np.uint8, 3)}, tmp_path / "m.safetensors")
    scale = {"tensors": "*.scale", "follow": "*.weight", "axis": 0, "block": 128} | changes
    rules = {"shard": [{"tensors": "*.weight", "axis": 0, "ranks": 3}, scale]}
    with pytest.raises(ts.SplitError, match=said):
        ts.files.split(tmp_path / "m.safetensors", tmp_path / "out", rules=rules)
    assert not (tmp_path / "out").exists()


def test_ranks_whose_scales_are_of_another_length(tmp_path: Path) -> None:
    scale = {"tensors": "*.scale", "follow": "*.weight", "axis": 0, "block": 4}
    rules = {"shard": [{"tensors": "*.weight", "axis": 0, "ranks": 2}, scale]}
    (tmp_path / "out").mkdir()
    for rank, length in enumerate((2, 3)):
        tensors = {"l.weight": bits(np.uint8, 8), "l.scale": bits(np.float32, length)}
        numpy_files.save_file(tensors, rank_file(tmp_path / "out", rank, 2))
    with pytest.raises(ts.SplitError, match=r"TS713.*l\.scale is of shape \(3,\)"):
        ts.files.merge(tmp_path / "out", tmp_path / "back.safetensors", rules=rules)
    numpy_files.save_file({"l.weight": bits(np.uint8, 8)}, rank_file(tmp_path / "out", 1, 2))
    with pytest.raises(ts.SplitError, match=re.escape("there is no l.scale of rank 1")):
        ts.files.merge(tmp_path / "out", tmp_path / "back.safetensors", rules=rules)


DIVIDED = {"up.weight": 0, "up.bias": 0, "down.weight": 1}
"""The axis of each parameter of a small model that ranks divide; others are whole in each."""


def trained() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], dict[str, np.ndarray]]:
    """A model and the state of Adam for it: by the numbers of parameters, and by their names."""
    torch = pytest.importorskip("torch")
    from torch.distributed.checkpoint.state_dict import (
        StateDictOptions,
        get_optimizer_state_dict,
    )

    torch.manual_seed(2723)
    layers = {"up": torch.nn.Linear(8, 16), "norm": torch.nn.LayerNorm(16)}
    layers["down"] = torch.nn.Linear(16, 8)
    model = torch.nn.Sequential()
    for name, layer in layers.items():
        model.add_module(name, layer)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        model(torch.rand(4, 8)).pow(2).sum().backward()
        optimizer.step()
    flat = StateDictOptions(flatten_optimizer_state_dict=True)
    by_name = get_optimizer_state_dict(model, optimizer, options=flat)
    by_number = optimizer.state_dict()["state"]
    return (
        {name: each.numpy() for name, each in model.state_dict().items()},
        {
            f"optimizer.state.{number}.{key}": each.numpy()
            for number, state in by_number.items()
            for key, each in state.items()
        },
        {
            f"optimizer.{name}": each.numpy()
            for name, each in by_name.items()
            if name.startswith("state.")
        },
    )


@pytest.mark.parametrize("is_by_name", [True, False])
def test_the_state_of_an_optimizer_follows_its_parameters(tmp_path: Path, is_by_name: bool) -> None:
    model, by_number, by_name = trained()
    state = by_name if is_by_name else by_number
    assert len(state) == 3 * len(model)
    assert {key.rpartition(".")[2] for key in state} == {"step", "exp_avg", "exp_avg_sq"}
    tensors = model | state
    numpy_files.save_file(tensors, tmp_path / "m.safetensors")
    rules: dict[str, list[dict[str, Any]]] = {
        "shard": [{"tensors": name, "axis": axis} for name, axis in DIVIDED.items()]
    }
    names = ["*"] if is_by_name else list(model)
    for number, name in enumerate(names):
        key = f"optimizer.state.{name if is_by_name else number}"
        patterns = [f"{key}.exp_avg", f"{key}.exp_avg_sq"]
        rules["shard"].append({"tensors": patterns, "follow": name})

    def expected(rank: int, ranks: int) -> dict[str, np.ndarray]:
        found = dict(tensors)
        for number, name in enumerate(model):
            if name in DIVIDED:
                prefix = f"optimizer.state.{name if is_by_name else number}"
                for key in (name, f"{prefix}.exp_avg", f"{prefix}.exp_avg_sq"):
                    found[key] = np.split(tensors[key], ranks, DIVIDED[name])[rank]
        return found

    check_all_ways(tmp_path, rules, (1, 2, 4), tensors, expected)


def test_what_is_of_the_same_shape_follows_a_fused_one(tmp_path: Path) -> None:
    tensors = {"l.qkv": bits(np.float32, 3, 32), "s.l.qkv.exp_avg": bits(np.float32, 3, 32)}
    numpy_files.save_file(tensors, tmp_path / "m.safetensors")
    parts = {"tensors": "*.qkv", "axis": -1, "split": [16, 8, 8], "names": ["*.q", "*.k", "*.v"]}
    names = [f"s.*.{name}.exp_avg" for name in "qkv"]
    state = {"tensors": "s.*.qkv.exp_avg", "follow": "*.qkv", "names": names}
    rules = {"split": [parts, state]}
    ts.files.split(tmp_path / "m.safetensors", tmp_path / "out.safetensors", rules=rules)
    expected = {}
    for before, name in (("l.qkv", "l.{}"), ("s.l.qkv.exp_avg", "s.l.{}.exp_avg")):
        for key, part in zip("qkv", np.split(tensors[before], [16, 24], 1), strict=True):
            expected[name.format(key)] = part
    check(load(tmp_path / "out.safetensors"), expected)
    ts.files.merge(tmp_path / "out.safetensors", tmp_path / "back.safetensors", rules=rules)
    check(load(tmp_path / "back.safetensors"), tensors)
    renamed = {"tensors": "*.qkv", "name": "*.all"}
    whole = {"split": [{**state, "names": ["s.*.all"]}], "rename": [renamed]}
    with pytest.raises(ts.SplitError, match=r"TS703.*no rule of this kind divides l\.qkv"):
        ts.files.split(tmp_path / "m.safetensors", tmp_path / "no.safetensors", rules=whole)


@pytest.mark.parametrize(
    ("shape", "rule", "said"),
    [
        ((), {}, r"TS719.*tensor s: it is of shape \(\), and x of \(8, 3\)"),
        ((8,), {}, r"TS719.*tensor s: it is of shape \(8,\), and x of"),
        ((3, 8), {}, "TS719.*every rank gets what no rule names"),
        ((8, 3), {"block": 2}, "TS703.*block and packed need an axis"),
        ((8, 3), {"follow": None}, "TS703.*axis is missing; only what follows another tensor"),
    ],
)
def test_what_follows_without_an_axis_is_of_the_same_shape(
    tmp_path: Path, shape: tuple[int, ...], rule: dict[str, Any], said: str
) -> None:
    numpy_files.save_file(
        {"x": bits(np.float32, 8, 3), "s": np.asarray(bits(np.float32, *shape))},
        tmp_path / "m.safetensors",
    )
    rules = {
        "shard": [
            {"tensors": "x", "axis": 0, "ranks": 2},
            {"tensors": "s", "follow": "x", **rule},
        ]
    }
    with pytest.raises(ts.SplitError, match=said):
        ts.files.split(tmp_path / "m.safetensors", tmp_path / "out", rules=rules)
