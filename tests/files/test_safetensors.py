"""Checkpoints that are split, sharded and renamed, against slices of what was written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tensorsplit as ts
from tensorsplit.files.divisions import SplitOperands
from tensorsplit.files.formats import StoredTensor
from tensorsplit.files.jobs import plan_split
from tensorsplit.files.rule_files import PatternRule, RuleSet
from tensorsplit.files.tensor_rules import RenameRule, SplitRule
from tests.files.checkpoints import load, save_shards
from tests.refusals import refused

numpy_files = pytest.importorskip("safetensors.numpy")
RANDOM = np.random.default_rng(11)


def bits(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer(RANDOM.bytes(size), dtype).reshape(shape)


def metadata(path: Path) -> Any:
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        return file.metadata()


def same(found: np.ndarray, expected: np.ndarray) -> bool:
    return (
        found.dtype == expected.dtype
        and found.shape == expected.shape
        and found.tobytes() == np.ascontiguousarray(expected).tobytes()
    )


@pytest.fixture
def checkpoint(tmp_path: Path) -> tuple[Path, dict[str, np.ndarray]]:
    tensors = {
        "layers.0.qkv.weight": bits(12, 5, dtype=ml_dtypes.bfloat16),
        "layers.1.qkv.weight": bits(12, 5, dtype=ml_dtypes.bfloat16),
        "layers.0.down.weight": bits(6, 8),
        "norm.weight": bits(7, dtype=np.uint8),
        "scale": bits(),
        "empty": bits(0, 3),
    }
    path = tmp_path / "model.safetensors"
    numpy_files.save_file(tensors, path, metadata={"format": "np", "中": "文"})
    return path, tensors


DOWN = {"tensors": "*.down.weight", "axis": 0, "ranks": 3}
QKV = {
    "tensors": "*.qkv.weight",
    "axis": 0,
    "split": [6, 2, 4],
    "names": ["*.q.weight", "*.k.weight", "*.v.weight"],
}


def test_parts_have_their_names_and_the_rest_is_carried(
    checkpoint: tuple[Path, dict[str, np.ndarray]],
) -> None:
    path, tensors = checkpoint
    out = path.with_name("out.safetensors")
    ts.files.split(path, out, rules={"split": [QKV]}, verify=True)
    found = load(out)
    for layer in (0, 1):
        whole = tensors.pop(f"layers.{layer}.qkv.weight")
        for name, start, stop in (("q", 0, 6), ("k", 6, 8), ("v", 8, 12)):
            assert same(found.pop(f"layers.{layer}.{name}.weight"), whole[start:stop])
    assert found.keys() == tensors.keys()
    assert all(same(found[name], tensors[name]) for name in tensors)
    assert metadata(out) == {"format": "np", "中": "文"}


def test_groups_are_taken_apart(checkpoint: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, tensors = checkpoint
    out = path.with_name("out.safetensors")
    ts.files.split(path, out, rules={"split": [{**QKV, "groups": 2}]})
    found, whole = load(out), tensors["layers.1.qkv.weight"]
    assert same(found["layers.1.q.weight"], np.concatenate([whole[0:3], whole[6:9]]))
    assert same(found["layers.1.k.weight"], np.concatenate([whole[3:4], whole[9:10]]))
    assert same(found["layers.1.v.weight"], np.concatenate([whole[4:6], whole[10:12]]))


def test_groups_on_an_inner_axis(tmp_path: Path) -> None:
    whole = bits(5, 12, 3, dtype=np.int16)
    numpy_files.save_file({"a.qkv": whole}, tmp_path / "m.safetensors")
    rule = {"tensors": "*.qkv", "axis": 1, "split": [6, 6], "names": ["*.q", "*.k"], "groups": 3}
    ts.files.split(tmp_path / "m.safetensors", tmp_path / "o.safetensors", rules={"split": [rule]})
    found = load(tmp_path / "o.safetensors")
    assert same(found["a.q"], whole[:, [0, 1, 4, 5, 8, 9]])
    assert same(found["a.k"], whole[:, [2, 3, 6, 7, 10, 11]])


def test_each_rank_gets_its_part(checkpoint: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, tensors = checkpoint
    shards = [
        {"tensors": "*.down.weight", "axis": 1, "ranks": 2},
        {"tensors": "*.qkv.weight", "axis": 0, "ranks": 2, "segments": [6, 2, 4]},
    ]
    ts.files.split(path, path.with_name("out"), rules={"shard": shards}, verify=True)
    assert sorted(p.name for p in path.with_name("out").iterdir()) == [
        "rank-0-of-2.safetensors",
        "rank-1-of-2.safetensors",
    ]
    for rank in (0, 1):
        found = load(path.with_name("out") / f"rank-{rank}-of-2.safetensors")
        assert found.keys() == tensors.keys()
        down, qkv = tensors["layers.0.down.weight"], tensors["layers.0.qkv.weight"]
        assert same(found["layers.0.down.weight"], down[:, 4 * rank : 4 * rank + 4])
        index = [[0, 1, 2, 6, 8, 9], [3, 4, 5, 7, 10, 11]][rank]
        assert same(found["layers.0.qkv.weight"], qkv[index])
        assert all(same(found[name], tensors[name]) for name in ("norm.weight", "scale", "empty"))


# Two groups of 12 rows: in each 6 of q, 2 of k, and 4 of v.
RANKS_OF_GROUPS: dict[int, list[Any]] = {
    2: [range(12), range(12, 24)],
    4: [
        [0, 1, 2, 6, 8, 9],
        [3, 4, 5, 7, 10, 11],
        [12, 13, 14, 18, 20, 21],
        [15, 16, 17, 19, 22, 23],
    ],
    1: [range(24)],
}


@pytest.mark.parametrize("ranks", RANKS_OF_GROUPS)
@pytest.mark.parametrize("axis", [0, 1])
def test_groups_among_ranks(tmp_path: Path, ranks: int, axis: int) -> None:
    whole = bits(24, 24, dtype=np.int16)
    numpy_files.save_file({"qkv": whole}, tmp_path / "m.safetensors")
    shard = {"tensors": "qkv", "axis": axis, "ranks": ranks, "segments": [12, 4, 8], "groups": 2}
    ts.files.split(tmp_path / "m.safetensors", tmp_path / "out", rules={"shard": [shard]})
    for rank, rows in enumerate(RANKS_OF_GROUPS[ranks]):
        found = load(tmp_path / "out" / f"rank-{rank}-of-{ranks}.safetensors")
        assert same(found["qkv"], np.take(whole, list(rows), axis))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"ranks": 2, "groups": 5}, "the length 24 is not a multiple of 5"),
        ({"ranks": 3, "groups": 2}, "the length 3 is not a multiple of 2"),
        ({"ranks": 4, "groups": 2}, "4 ranks would cut 2 groups"),
        ({"ranks": 8, "groups": 2, "segments": [12, 4, 8]}, "the length 6 is not a multiple of 4"),
        ({"ranks": 4, "groups": 2, "segments": [12, 4, 8], "multiple_of": 2}, "of length 3 is no"),
        ({"ranks": 2, "groups": 2, "multiple_of": 8}, "of length 12 is not a multiple of 8"),
    ],
)
def test_groups_that_ranks_cannot_have(tmp_path: Path, fields: dict[str, Any], said: str) -> None:
    numpy_files.save_file({"qkv": bits(24)}, tmp_path / "m.safetensors")
    rules = {"shard": [{"tensors": "qkv", "axis": 0, **fields}]}
    with pytest.raises(ts.SplitError, match=f"TS303.*{said}"):
        ts.files.split(tmp_path / "m.safetensors", tmp_path / "out", rules=rules)


def test_a_common_file_and_names_of_ones_own(
    checkpoint: tuple[Path, dict[str, np.ndarray]],
) -> None:
    path, tensors = checkpoint
    rules = {
        "shard": [DOWN],
        "rename": [{"tensors": "layers.*.qkv.*", "name": "h.*.attn.*"}],
        "file": "tp{rank}.safetensors",
        "common": "all.safetensors",
    }
    ts.files.split(path, path.with_name("out"), rules=rules)
    out = path.with_name("out")
    for rank in range(3):
        found = load(out / f"tp{rank}.safetensors")
        assert list(found) == ["layers.0.down.weight"]
        expected = tensors["layers.0.down.weight"][2 * rank : 2 * rank + 2]
        assert same(found["layers.0.down.weight"], expected)
    common = load(out / "all.safetensors")
    assert set(common) == {"h.0.attn.weight", "h.1.attn.weight", "norm.weight", "scale", "empty"}
    assert same(common["h.1.attn.weight"], tensors["layers.1.qkv.weight"])


@pytest.fixture
def folder(tmp_path: Path) -> tuple[Path, dict[str, np.ndarray]]:
    place = tmp_path / "model"
    (place / "sub").mkdir(parents=True)
    shards = [
        {"a.qkv.weight": bits(12, 4), "a.norm": bits(4)},
        {"b.qkv.weight": bits(12, 4), "b.norm": bits(4)},
    ]
    save_shards(place, shards)
    (place / "sub" / "vocab.bin").write_bytes(RANDOM.bytes(1000))
    return place, {**shards[0], **shards[1]}


def test_parts_stay_in_their_shard_and_the_index_is_anew(
    folder: tuple[Path, dict[str, np.ndarray]],
) -> None:
    place, tensors = folder
    out = place.with_name("out")
    ts.files.split(place, out, rules={"split": [QKV]}, verify=True)
    index = json.loads((out / "model.safetensors.index.json").read_text())
    assert index["metadata"] == {"total_size": 416, "kept": [1]}
    assert index["weight_map"] == {
        **dict.fromkeys(
            ["a.q.weight", "a.k.weight", "a.v.weight", "a.norm"],
            "model-00001-of-00002.safetensors",
        ),
        **dict.fromkeys(
            ["b.q.weight", "b.k.weight", "b.v.weight", "b.norm"],
            "model-00002-of-00002.safetensors",
        ),
    }
    second = load(out / "model-00002-of-00002.safetensors")
    assert same(second["b.k.weight"], tensors["b.qkv.weight"][6:8])
    assert metadata(out / "model-00002-of-00002.safetensors") == {"shard": "2"}
    assert (out / "config.json").read_text() == "{}"
    vocab = (place / "sub" / "vocab.bin").read_bytes()
    assert (out / "sub" / "vocab.bin").read_bytes() == vocab


def test_files_are_divided(folder: tuple[Path, dict[str, np.ndarray]]) -> None:
    place, _ = folder
    out = place.with_name("out")
    ts.files.split(place, out, rules={"split": [QKV]}, max_shard_size=140)
    index = json.loads((out / "model.safetensors.index.json").read_text())
    sizes = {}
    for path in sorted(out.glob("*.safetensors")):
        held = load(path)
        sizes[path.name] = sum(each.nbytes for each in held.values())
        assert all(index["weight_map"][name] == path.name for name in held)
    assert list(sizes) == [f"model-{n:05}-of-00004.safetensors" for n in range(1, 5)]
    assert max(sizes.values()) <= 140
    assert sum(sizes.values()) == 416


def test_a_file_that_is_carried_over_is_not_replaced_by_a_rank(
    folder: tuple[Path, dict[str, np.ndarray]],
) -> None:
    """The index does not list it, so that nothing is known of it."""
    place, _ = folder
    (place / "rank-1-of-2.safetensors").write_bytes(RANDOM.bytes(100))
    rows = {"shard": [{"tensors": "*.qkv.weight", "axis": 0}]}
    with refused("TS706", "rank-1-of-2.safetensors", "carried over"):
        ts.files.split(place, place.with_name("out"), rules=rows, ranks=2)
    assert not place.with_name("out").exists()


def test_one_tensor_of_a_checkpoint(checkpoint: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, tensors = checkpoint
    out = path.with_name("out.safetensors")
    ts.files.split(path, out, [1, 7], axis=1, array="layers.0.down.weight", names=["a", "*.b"])
    found = load(out)
    assert same(found["a"], tensors["layers.0.down.weight"][:, :1])
    assert same(found["layers.0.down.weight.b"], tensors["layers.0.down.weight"][:, 1:])
    assert len(found) == len(tensors) + 1


def test_a_pattern_that_matches_nothing_is_said(
    checkpoint: tuple[Path, dict[str, np.ndarray]],
) -> None:
    path, _ = checkpoint
    rules = {"rename": [{"tensors": ["scale", "scales"], "name": "s"}]}
    with pytest.warns(ts.SplitWarning, match="'scales' matches no tensor") as warned:
        ts.files.split(path, path.with_name("out.safetensors"), rules=rules)
    assert len(warned) == 1


def test_split_and_sharded_at_once(checkpoint: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, tensors = checkpoint
    rules = {"split": [QKV], "shard": [{"tensors": "*.down.weight", "axis": 1, "ranks": 2}]}
    ts.files.split(path, path.with_name("out"), rules=rules, max_shard_size=150)
    for rank in (0, 1):
        index = path.with_name("out") / f"rank-{rank}-of-2.safetensors.index.json"
        names = json.loads(index.read_text())["weight_map"]
        found = {name: load(index.with_name(file))[name] for name, file in names.items()}
        assert len(set(names.values())) > 1
        assert len(found) == len(tensors) + 4
        assert same(found["layers.0.k.weight"], tensors["layers.0.qkv.weight"][6:8])
        down = tensors["layers.0.down.weight"]
        assert same(found["layers.0.down.weight"], down[:, 4 * rank : 4 * rank + 4])


@pytest.mark.parametrize(
    ("code", "rules", "said"),
    [
        ("TS302", {"split": [{**QKV, "split": [6, 2, 3]}]}, "tensor layers.0.qkv.weight"),
        ("TS303", {"split": [{**QKV, "groups": 4}]}, "the length 6 is not a multiple of 4"),
        ("TS303", {"split": [{**QKV, "multiple_of": 4}]}, "length 6 is not a multiple of 4"),
        ("TS303", {"shard": [{"tensors": "norm.*", "axis": 0, "ranks": 2}]}, "norm.weight"),
        ("TS703", {"split": [QKV], "rename": [{"tensors": "*", "name": "x*"}]}, "both match"),
        ("TS703", {"splits": []}, "unknown field `splits`"),
        ("TS703", {"split": [{**QKV, "axes": 1}]}, "unknown field `axes`"),
        (
            "TS703",
            {"shard": [{"tensors": "a", "axis": 0}]},
            "the number of ranks is missing; give a",
        ),
        ("TS706", {"split": [{**QKV, "names": ["a", "b"]}]}, "2 names for 3 parts"),
        ("TS706", {"split": [{**QKV, "names": ["a", "b", "norm.weight"]}]}, "two tensors"),
        ("TS706", {"split": [{**QKV, "names": ["*.*", "b", "c"]}]}, "holds 2 *"),
        ("TS706", {"rename": [{"tensors": "scale", "name": "__metadata__"}]}, "__metadata__"),
        ("TS706", {"rename": [{"tensors": "scale", "name": ""}]}, "not a name"),
        ("TS706", {"shard": [DOWN], "common": "half\ud800"}, "name of a file"),
        ("TS706", {"shard": [DOWN], "common": "a\0b"}, "name of a file"),
        ("TS706", {"shard": [DOWN], "file": "tp.safetensors"}, "3 files would be called"),
        ("TS706", {"shard": [DOWN], "common": "rank-0-of-3.safetensors"}, "2 files would be"),
    ],
)
def test_refused_before_anything_is_written(
    checkpoint: tuple[Path, dict[str, np.ndarray]], code: str, rules: Any, said: str
) -> None:
    path, _ = checkpoint
    with pytest.raises(ts.SplitError, match=f"{code}.*") as refusal:
        ts.files.split(path, path.with_name("out.safetensors"), rules=rules)
    assert said in str(refusal.value)
    assert [entry.name for entry in path.parent.iterdir()] == ["model.safetensors"]


@pytest.mark.usefixtures("short_headers")
def test_what_is_written_is_read_again_however_many_tensors_there_are(
    folder: tuple[Path, dict[str, np.ndarray]],
) -> None:
    """A file whose header would be longer than those that are read becomes several."""
    place, tensors = folder
    more = {f"c.{number}.up.weight": bits(4, 4) for number in range(40)}
    for start in range(0, 40, 10):
        some = dict(list(more.items())[start : start + 10])
        numpy_files.save_file(some, place / f"more-{start}.safetensors")
    (place / "model.safetensors.index.json").unlink()
    rules = {"shard": [{"tensors": ["*.qkv.weight", "*.up.weight"], "axis": 0}]}
    ranks, other = place.with_name("ranks"), place.with_name("other")
    ts.files.split(place, ranks, rules=rules, ranks=2, verify=True)
    assert (ranks / "rank-1-of-2.safetensors.index.json").exists()
    ts.files.reshard(ranks, other, rules=rules, ranks=(2, 4), verify=True)
    ts.files.merge(other, place.with_name("back"), rules=rules, verify=True)
    held: dict[str, np.ndarray] = {}
    for path in place.with_name("back").glob("*.safetensors"):
        assert len(path.read_bytes()) - load_bytes(path) <= 8 + 1600
        held |= load(path)
    assert held.keys() == tensors.keys() | more.keys()
    assert all(same(held[name], each) for name, each in {**tensors, **more}.items())


@pytest.fixture
def short_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers are read up to 1600 bytes."""
    monkeypatch.setattr("tensorsplit.files.safetensors_files._LONGEST_HEADER", 1600)


def load_bytes(path: Path) -> int:
    """How many bytes the elements of a file take."""
    return sum(each.nbytes for each in load(path).values())


@pytest.mark.usefixtures("short_headers")
def test_a_single_file_that_would_not_be_read_again(tmp_path: Path) -> None:
    numpy_files.save_file({"a": bits(40, 4)}, tmp_path / "m.safetensors")
    with refused("TS703", "the result is a folder of files"):
        ts.files.split(tmp_path / "m.safetensors", tmp_path / "out.safetensors", num_outputs=40)
    ts.files.split(tmp_path / "m.safetensors", tmp_path / "out", num_outputs=40)
    ts.files.merge(tmp_path / "out", tmp_path / "back")
    (back,) = [held for path in (tmp_path / "back").glob("*.safetensors") if (held := load(path))]
    assert same(back["a"], load(tmp_path / "m.safetensors")["a"])


@pytest.mark.usefixtures("short_headers")
def test_metadata_that_would_not_be_read_again(tmp_path: Path) -> None:
    rules = {"shard": [{"tensors": "a", "axis": 0}]}
    numpy_files.save_file({"a": bits(2)}, tmp_path / "m.safetensors", metadata={"x": "y" * 1400})
    ts.files.split(tmp_path / "m.safetensors", tmp_path / "2", rules=rules, ranks=2)
    numpy_files.save_file(
        {"a": bits(1)}, tmp_path / "2/rank-1-of-2.safetensors", metadata={"z": "y" * 1400}
    )
    with refused("TS702", "the metadata would take more"):
        ts.files.merge(tmp_path / "2", tmp_path / "back.safetensors", rules=rules)


def test_an_index_of_more_names_than_are_read(
    folder: tuple[Path, dict[str, np.ndarray]], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, _ = folder
    monkeypatch.setattr("tensorsplit.files.safetensors_files._MOST_NAMES", 7)
    rename = {"tensors": "*.norm", "name": "*.ln"}
    ts.files.split(place, place.with_name("few"), rules={"rename": [rename]})
    with refused("TS702", "its index would have more than", "7 names"):
        ts.files.split(place, place.with_name("out"), rules={"split": [QKV]})
    monkeypatch.setattr("tensorsplit.files.safetensors_files._MOST_NAMES", 2)
    with refused("TS705", "2 names"):
        ts.files.split(place, place.with_name("out"), rules={"split": [QKV]})


def test_parts_of_all_tensors_are_counted_together(
    checkpoint: tuple[Path, dict[str, np.ndarray]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a small file of many tensors does not take all memory."""
    path, _ = checkpoint
    monkeypatch.setattr("tensorsplit.files.divisions._MOST_PARTS", 5)
    rows = {"tensors": "*.qkv.weight", "axis": 0, "num_outputs": 3}
    with refused("TS308", "more than 5 parts of all tensors together"):
        ts.files.split(path, path.with_name("out.safetensors"), rules={"split": [rows]})
    with refused("TS308"):
        ts.files.split(path, path.with_name("out.safetensors"), num_outputs=6)


def test_shards_of_no_size(checkpoint: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, _ = checkpoint
    with pytest.raises(ts.SplitError, match="TS703"):
        ts.files.split(path, path.with_name("out"), rules={"split": [QKV]}, max_shard_size=0)


@pytest.mark.parametrize(
    ("pattern", "name", "stars"),
    [
        ("a.b", "a.b", ["a.b"]),
        ("a.b", "axb", None),
        ("*", "", [""]),
        ("*.w", "a.b.w", ["a.b"]),
        ("*.*.w", "a.b.c.w", ["a.b", "c"]),
        ("a*b*c", "abbc", ["b", ""]),
        ("**", "ab", ["ab", ""]),
        ("ab*ba", "aba", None),
        ("a*[b]*", "a\n[b]", ["\n", ""]),
        ("*a*a*a*a*a*b", "a" * 100_000, None),
    ],
)
def test_what_each_star_stands_for(pattern: str, name: str, stars: list[str] | None) -> None:
    assert PatternRule(pattern, RenameRule("")).matched(name) == stars


def packed(path: Path, dtype: str, shape: list[int], data: bytes) -> None:
    entry = {"dtype": dtype, "shape": shape, "data_offsets": [0, len(data)]}
    header = json.dumps({"x": entry}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)


@pytest.mark.parametrize(
    ("dtype", "bits", "sizes"),
    [("F4", 4, [2, 6]), ("F6_E2M3", 6, [4, 4]), ("F8_E8M0", 8, [1, 7]), ("C64", 64, [3, 5])],
)
@pytest.mark.parametrize("axis", [0, 1])
def test_element_types_that_numpy_lacks(
    tmp_path: Path, dtype: str, bits: int, sizes: list[int], axis: int
) -> None:
    data = RANDOM.bytes(64 * bits // 8)
    packed(tmp_path / "x.safetensors", dtype, [8, 8], data)
    out = tmp_path / "out.safetensors"
    ts.files.split(tmp_path / "x.safetensors", out, sizes, axis=axis, names=["a", "b"])
    written = out.read_bytes()
    length = int.from_bytes(written[:8], "little")
    header, rest = json.loads(written[8 : 8 + length]), written[8 + length :]
    rows = np.frombuffer(data, np.uint8).reshape(8, bits)
    start = 0
    for name, size in zip("ab", sizes, strict=True):
        begin, end = header[name]["data_offsets"]
        assert header[name]["dtype"] == dtype
        assert header[name]["shape"] == ([size, 8] if axis == 0 else [8, size])
        stop = start + size
        inner = slice(start * bits // 8, stop * bits // 8)
        expected = rows[start:stop] if axis == 0 else rows[:, inner]
        assert rest[begin:end] == expected.tobytes()
        start = stop


@pytest.mark.parametrize(("dtype", "bits"), [("F4", 4), ("F6_E3M2", 6)])
def test_a_part_that_would_end_within_a_byte(tmp_path: Path, dtype: str, bits: int) -> None:
    packed(tmp_path / "x.safetensors", dtype, [4, 8], RANDOM.bytes(4 * bits))
    with pytest.raises(ts.SplitError, match=r"TS709.*within a byte"):
        ts.files.split(tmp_path / "x.safetensors", tmp_path / "o.safetensors", [3, 5], axis=1)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("source", "others"),
    [
        ("x.npy", ["x.safetensors", "x.zarr"]),
        ("more.npz", ["x.safetensors", "x.zarr", "x.Zarr"]),
        ("m.safetensors", ["x.npy", "x.npz", "x.NPZ", "x.zarr"]),
        ("x.zarr", ["x.npy", "x.npz", "x.safetensors"]),
    ],
)
def test_no_folder_is_called_like_a_file_of_another_format(
    tmp_path: Path, source: str, others: list[str]
) -> None:
    whole = bits(4, 3)
    np.save(tmp_path / "x.npy", whole)
    np.savez(tmp_path / "more.npz", x=whole)
    numpy_files.save_file({"x": whole}, tmp_path / "m.safetensors")
    if source.endswith(".zarr"):
        pytest.importorskip("zarr").save_array(str(tmp_path / source), whole)
    for other in others:
        target = tmp_path / "out" / other
        said = rf"TS703.*ends in \{target.suffix}, .*, or that of a folder"
        with pytest.raises(ts.SplitError, match=said):
            ts.files.split(tmp_path / source, target, num_outputs=2)
        with pytest.raises(ts.SplitError, match=said):
            ts.files.merge(tmp_path / source, target, names=["x"])
        assert not target.parent.exists()


@pytest.mark.parametrize("name", ["m.gguf", "M.GGUF"])
def test_gguf_is_neither_read_nor_written(tmp_path: Path, name: str) -> None:
    rules = {"split": [{"tensors": "x", "axis": 0, "num_outputs": 2}]}
    (tmp_path / name).write_bytes(b"GGUF" + bytes(20))
    with pytest.raises(ts.SplitError, match=r"TS705.*is a GGUF file.*split or merge the \.safeten"):
        ts.files.split(tmp_path / name, tmp_path / "out", rules=rules)
    with pytest.raises(ts.SplitError, match=r"TS705.*there is no such file"):
        ts.files.split(tmp_path / f"other-{name}", tmp_path / "out", rules=rules)
    numpy_files.save_file({"x": np.arange(4.0)}, tmp_path / "m.safetensors")
    with pytest.raises(ts.SplitError, match=r"TS703.*tensors stay in the format of the source"):
        ts.files.split(tmp_path / "m.safetensors", tmp_path / f"to-{name}", rules=rules)
    assert not (tmp_path / f"to-{name}").exists()


def test_tensors_that_are_alike_share_one_plan() -> None:
    """A checkpoint has a hundred thousand of them."""
    operands = SplitOperands(axis=0, num_outputs=2)
    alike = [StoredTensor(name, (2, 3), "float", 24) for name in ("a", "b")]
    first, second = map(operands.plan, alike)
    other = operands.plan(StoredTensor("c", (4, 3), "float", 48))
    assert first is second
    assert (first.output_shapes, other.output_shapes) == (((1, 3),) * 2, ((2, 3),) * 2)


def test_tensors_that_are_carried_over_share_what_describes_them(
    checkpoint: tuple[Path, dict[str, np.ndarray]], tmp_path: Path
) -> None:
    """A header of 12 MB has 195,000 of them."""
    path, tensors = checkpoint
    rules = RuleSet((PatternRule("other", SplitRule(SplitOperands(num_outputs=1))),))
    job = plan_split(str(path), str(tmp_path / "out.safetensors"), rules)
    assert len(job.changes) == len(tensors)
    assert all(change.before is change.after for change in job.changes)
