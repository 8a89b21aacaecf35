"""Tensors that are fused, or taken apart, on the way between ranks: what two passes would make."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tests.files.checkpoints import load
from tests.files.test_ranks import bits, check, rank_file

numpy_files = pytest.importorskip("safetensors.numpy")

HEAD, HEADS, KEYS = 2, 4, 2
LENGTHS = [HEADS * HEAD, KEYS * HEAD, KEYS * HEAD]
TENSORS = {
    "h.0.q.weight": bits(LENGTHS[0], 6),
    "h.0.k.weight": bits(LENGTHS[1], 6),
    "h.0.v.weight": bits(LENGTHS[2], 6),
    "h.0.q.bias": bits(LENGTHS[0]),
    "h.0.k.bias": bits(LENGTHS[1]),
    "h.0.v.bias": bits(LENGTHS[2]),
    "h.0.o.weight": bits(6, LENGTHS[0]),
    "head": bits(13, 6),
    "norm": bits(6),
}
FUSE: dict[str, Any] = {
    "split": [
        {"tensors": "*.qkv.*", "axis": 0, "split": LENGTHS, "names": ["*.q.*", "*.k.*", "*.v.*"]}
    ]
}
SHARD: dict[str, Any] = {
    "shard": [
        {
            "tensors": "*.qkv.*",
            "axis": 0,
            "heads": [HEADS, KEYS, KEYS],
            "replicate": [False, True, True],
        },
        {"tensors": "*.o.weight", "axis": 1, "heads": HEADS},
        {"tensors": "head", "axis": 0, "pad_to": 16},
    ]
}


def fused() -> dict[str, np.ndarray]:
    made = {name: TENSORS[name] for name in ("h.0.o.weight", "head", "norm")}
    for kind in ("weight", "bias"):
        made[f"h.0.qkv.{kind}"] = np.concatenate([TENSORS[f"h.0.{each}.{kind}"] for each in "qkv"])
    return made


def of_rank(rank: int, ranks: int) -> dict[str, np.ndarray]:
    """What a plain loop gives to a rank: its query heads, and the keys and values of these."""
    query = range(rank * HEADS // ranks, (rank + 1) * HEADS // ranks)
    keys = sorted({head * KEYS // HEADS for head in query})

    def rows(whole: np.ndarray, heads: Any) -> np.ndarray:
        return np.concatenate([whole[head * HEAD : (head + 1) * HEAD] for head in heads])

    padded = np.concatenate([TENSORS["head"], np.zeros((3, 6), np.float32)])
    made = {
        "h.0.o.weight": rows(TENSORS["h.0.o.weight"].T, query).T,
        "head": padded[rank * 16 // ranks : (rank + 1) * 16 // ranks],
        "norm": TENSORS["norm"],
    }
    for kind in ("weight", "bias"):
        q, k, v = (TENSORS[f"h.0.{each}.{kind}"] for each in "qkv")
        made[f"h.0.qkv.{kind}"] = np.concatenate([rows(q, query), rows(k, keys), rows(v, keys)])
    return made


def same_files(one: Path, other: Path) -> None:
    names = sorted(each.name for each in one.iterdir())
    assert names == sorted(each.name for each in other.iterdir())
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "m.safetensors"
    numpy_files.save_file(TENSORS, path, metadata={"format": "pt"})
    return path


@pytest.mark.usefixtures("ways")
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_separate_tensors_go_fused_to_ranks_and_back(source: Path, ranks: int) -> None:
    at = source.parent
    ts.files.reshard(
        source, at / "ranks", ranks=(None, ranks), rules=FUSE, to_rules=SHARD, verify=True
    )
    for rank in range(ranks):
        check(load(rank_file(at / "ranks", rank, ranks)), of_rank(rank, ranks))
    ts.files.merge(source, at / "fused.safetensors", rules=FUSE)
    check(load(at / "fused.safetensors"), fused())
    ts.files.split(at / "fused.safetensors", at / "two steps", rules=SHARD, ranks=ranks)
    same_files(at / "ranks", at / "two steps")

    back = at / "back.safetensors"
    ts.files.reshard(
        at / "ranks", back, ranks=(ranks, None), rules=SHARD, to_rules=FUSE, verify=True
    )
    check(load(back), TENSORS)
    ts.files.merge(at / "ranks", at / "whole.safetensors", rules=SHARD, ranks=ranks)
    ts.files.split(at / "whole.safetensors", at / "apart.safetensors", rules=FUSE)
    assert back.read_bytes() == (at / "apart.safetensors").read_bytes()


def test_ranks_of_one_layout_become_ranks_of_another(source: Path) -> None:
    at = source.parent
    other = {
        "shard": [
            {"tensors": "*.qkv.*", "axis": 0, "split": [1, 3, 12]},
            {"tensors": "head", "axis": 0, "pad_to": 24},
        ],
        "rename": [{"tensors": "norm", "name": "ln"}],
    }
    ts.files.reshard(source, at / "two", ranks=(None, 2), rules=FUSE, to_rules=SHARD)
    ts.files.reshard(at / "two", at / "three", rules=SHARD, to_rules=other, verify=True)
    padded = np.concatenate([TENSORS["head"], np.zeros((11, 6), np.float32)])
    whole, ends = fused(), [0, 1, 4, 16]
    for rank in range(3):
        check(
            load(rank_file(at / "three", rank, 3)),
            {
                "h.0.qkv.weight": whole["h.0.qkv.weight"][ends[rank] : ends[rank + 1]],
                "h.0.qkv.bias": whole["h.0.qkv.bias"][ends[rank] : ends[rank + 1]],
                "h.0.o.weight": whole["h.0.o.weight"],
                "head": padded[8 * rank : 8 * rank + 8],
                "ln": TENSORS["norm"],
            },
        )
    ts.files.reshard(at / "three", at / "again", ranks=(3, 2), rules=other, to_rules=SHARD)
    same_files(at / "again", at / "two")


def test_a_folder_with_an_index_keeps_its_other_files(source: Path) -> None:
    folder = source.parent / "model"
    folder.mkdir()
    names = sorted(TENSORS)
    files = {"model-1.safetensors": names[::2], "model-2.safetensors": names[1::2]}
    for file, some in files.items():
        numpy_files.save_file({name: TENSORS[name] for name in some}, folder / file)
    weight_map = {name: file for file, some in files.items() for name in some}
    index = {"metadata": {}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "config.json").write_text('{"kept": true}')
    ts.files.reshard(folder, folder.with_name("r"), ranks=(None, 2), rules=FUSE, to_rules=SHARD)
    for rank in range(2):
        check(load(rank_file(folder.with_name("r"), rank, 2)), of_rank(rank, 2))
    assert (folder.with_name("r") / "config.json").read_text() == '{"kept": true}'


def packed(tmp_path: Path) -> tuple[Path, dict[str, np.ndarray]]:
    """AWQ: eight columns in an integer, of weights and zero points; scales for each column."""
    random = np.random.default_rng(27)
    tensors: dict[str, np.ndarray] = {}
    for name, columns in (("q", 64), ("k", 32), ("v", 32)):
        tensors[f"{name}.qweight"] = random.integers(1, 1 << 31, (16, columns // 8), np.int32)
        tensors[f"{name}.qzeros"] = random.integers(1, 1 << 31, (2, columns // 8), np.int32)
        tensors[f"{name}.scales"] = random.random((2, columns)).astype(np.float16)
    numpy_files.save_file(tensors, tmp_path / "awq.safetensors")
    return tmp_path / "awq.safetensors", tensors


def test_packed_weights_and_their_scales_are_fused_and_divided_alike(tmp_path: Path) -> None:
    source, tensors = packed(tmp_path)
    fuse = {
        "split": [
            {"tensors": f"qkv.{kind}", "axis": 1, "names": [f"{each}.{kind}" for each in "qkv"]}
            for kind in ("qweight", "qzeros", "scales")
        ]
    }
    shard = {
        "shard": [
            {"tensors": "qkv.qweight", "axis": 1, "segments": [8, 4, 4]},
            {"tensors": "qkv.scales", "axis": 1, "follow": "qkv.qweight", "packed": 8},
            {"tensors": "qkv.qzeros", "axis": 1, "follow": "qkv.qweight", "packed": 8, "block": 8},
        ]
    }
    out = tmp_path / "out"
    ts.files.reshard(source, out, ranks=(None, 2), rules=fuse, to_rules=shard, verify=True)
    for rank in range(2):
        want = {}
        for kind in ("qweight", "qzeros", "scales"):
            halves = [np.split(tensors[f"{each}.{kind}"], 2, 1)[rank] for each in "qkv"]
            want[f"qkv.{kind}"] = np.concatenate(halves, 1)
        check(load(rank_file(out, rank, 2)), want)
    apart = [
        {
            "tensors": f"qkv.{kind}",
            "axis": 1,
            "split": lengths,
            "names": [f"{each}.{kind}" for each in "qkv"],
        }
        for kind, lengths in (
            ("qweight", [8, 4, 4]),
            ("qzeros", [8, 4, 4]),
            ("scales", [64, 32, 32]),
        )
    ]
    back = tmp_path / "back.safetensors"
    ts.files.reshard(out, back, ranks=(2, None), rules=shard, to_rules={"split": apart})
    check(load(back), tensors)
    shard["shard"][1]["block"] = 48
    with pytest.raises(ts.SplitError, match="TS719"):
        ts.files.reshard(source, tmp_path / "cut", ranks=(None, 2), rules=fuse, to_rules=shard)
    assert not (tmp_path / "cut").exists()


def write_raw(path: Path, dtype: str, parts: dict[str, tuple[tuple[int, int], bytes]]) -> None:
    header, data = {}, b""
    for name, (shape, content) in parts.items():
        end = len(data) + len(content)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), end]}
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_raw(path: Path) -> dict[str, bytes]:
    found = path.read_bytes()
    (length,) = struct.unpack_from("<Q", found)
    entries, start = json.loads(found[8 : 8 + length]), 8 + length
    entries.pop("__metadata__", None)
    return {
        name: found[start + each["data_offsets"][0] : start + each["data_offsets"][1]]
        for name, each in entries.items()
    }


@pytest.mark.parametrize("dtype", ["F8_E4M3", "F8_E5M2", "BOOL", "U16", "BF16", "F4"])
def test_every_element_type_by_its_bits(tmp_path: Path, dtype: str) -> None:
    row = {"F4": 2, "U16": 8, "BF16": 8}.get(dtype, 4)  # the bytes of 4 columns
    random = np.random.default_rng(4)
    top = 2 if dtype == "BOOL" else 256
    a, b = (random.integers(0, top, rows * row, np.uint8) for rows in (4, 2))
    source = tmp_path / "m.safetensors"
    write_raw(source, dtype, {"a": ((4, 4), a.tobytes()), "b": ((2, 4), b.tobytes())})
    fuse = {"split": [{"tensors": "ab", "axis": 0, "names": ["a", "b"]}]}
    shard = {"shard": [{"tensors": "ab", "axis": 0, "segments": [4, 2]}]}
    ts.files.reshard(source, tmp_path / "o", ranks=(None, 2), rules=fuse, to_rules=shard)
    for rank in range(2):
        half = np.concatenate([np.split(each, 2)[rank] for each in (a, b)]).tobytes()
        assert read_raw(rank_file(tmp_path / "o", rank, 2)) == {"ab": half}


def test_four_bits_that_would_be_cut_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "m.safetensors"
    write_raw(source, "F4", {"a": ((2, 2), b"\x12\x34"), "b": ((2, 2), b"\x56\x78")})
    fuse = {"split": [{"tensors": "ab", "axis": 1, "names": ["a", "b"]}]}
    shard = {"shard": [{"tensors": "ab", "axis": 1}]}
    with pytest.raises(ts.SplitError, match="TS709"):
        ts.files.reshard(source, tmp_path / "o", ranks=(None, 4), rules=fuse, to_rules=shard)
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("rules", "to_rules", "ranks", "said"),
    [
        (
            FUSE,
            {"shard": [{"tensors": "h.0.qkv.weight", "axis": 1}]},
            (None, 2),
            r"TS703.*\[0, 1\]",
        ),
        (FUSE, SHARD, (2, 2), "TS703.*no rule divides"),
        (FUSE, SHARD, (None, None), "TS703.*number of ranks is missing"),
        (FUSE, SHARD, (None, 0), "TS703.*the number of ranks is 0; give a number from 1 to 65536"),
        (FUSE, SHARD, (None, 3), "TS714"),
        (FUSE, None, (None, 2), "TS703.*'ranks'"),
        (FUSE, FUSE, (None, None), "TS703.*merge, then split"),
        (SHARD, FUSE, (2, None), "TS705"),
        ({"split": [{"tensors": "x", "axis": 0, "names": ["y"]}]}, SHARD, (None, 2), "TS713"),
        (
            {"split": [{"tensors": "norm", "axis": 0, "names": ["h.0.q.bias", "h.0.k.bias"]}]},
            SHARD,
            (None, 2),
            "TS706.*norm",
        ),
    ],
)
def test_what_can_not_be_done_in_one_pass_is_refused(
    source: Path, rules: Any, to_rules: Any, ranks: Any, said: str
) -> None:
    with pytest.raises(ts.SplitError, match=said):
        ts.files.reshard(
            source, source.with_name("out"), ranks=ranks, rules=rules, to_rules=to_rules
        )
    assert [each.name for each in source.parent.iterdir()] == [source.name]
