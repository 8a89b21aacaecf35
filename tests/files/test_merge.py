"""Merges and reshards, against the tensors that were split, bit for bit."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tensorsplit as ts
from tests.cli.conftest import Command
from tests.files.checkpoints import held, load, save_shards, shard_file
from tests.refusals import refused

safetensors = pytest.importorskip("safetensors")
numpy_files = pytest.importorskip("safetensors.numpy")
RANDOM = np.random.default_rng(23)


def bits(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer(RANDOM.bytes(size), dtype).reshape(shape)


def same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> bool:
    return found.keys() == expected.keys() and all(
        found[name].dtype == each.dtype
        and found[name].shape == each.shape
        and found[name].tobytes() == np.ascontiguousarray(each).tobytes()
        for name, each in expected.items()
    )


@pytest.mark.usefixtures("ways")
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f4", ">i8", "|V3"])
def test_a_file_comes_back(tmp_path: Path, axis: int, order: Any, dtype: str) -> None:
    np.save(tmp_path / "x.npy", np.array(bits(6, 7, 6, dtype=dtype), order=order))
    length = (6, 7, 6)[axis]
    ts.files.split(tmp_path / "x.npy", tmp_path / "parts", [1, 0, length - 1], axis=axis)
    ts.files.merge(tmp_path / "parts", tmp_path / "back.npy", axis=axis, verify=True)
    assert (tmp_path / "back.npy").read_bytes() == (tmp_path / "x.npy").read_bytes()
    ts.files.merge(tmp_path / "parts", tmp_path / "back", axis=axis)
    assert held(tmp_path / "back") == {"x.npy": (tmp_path / "x.npy").read_bytes()}


def test_parts_in_the_order_of_their_names(tmp_path: Path, tensorsplit: Command) -> None:
    parts = {name: bits(4, size) for name, size in (("v", 2), ("q", 3), ("k", 1))}
    (tmp_path / "parts").mkdir()
    for name, part in parts.items():
        np.save(tmp_path / "parts" / f"{name}.npy", part)
    for out in ("qkv.npy", "qkv.npz"):  # in which the whole has the name of the file
        words = ("merge", tmp_path / "parts", "-o", tmp_path / out, "--axis", 1)
        assert tensorsplit(*words, "--names", "q,k,v").status == 0
    expected = np.concatenate([parts["q"], parts["k"], parts["v"]], axis=1)
    assert np.load(tmp_path / "qkv.npy").tobytes() == expected.tobytes()
    assert np.load(tmp_path / "qkv.npz")["qkv"].tobytes() == expected.tobytes()


def test_more_than_ten_parts_are_in_order(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", whole := bits(103, 3))
    ts.files.split(tmp_path / "x.npy", tmp_path / "parts", chunk=9)
    ts.files.merge(tmp_path / "parts", tmp_path / "back.npy")
    assert np.load(tmp_path / "back.npy").tobytes() == whole.tobytes()


@pytest.mark.usefixtures("ways")
@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_members_of_an_archive(tmp_path: Path, compressed: bool, axis: int) -> None:
    arrays: dict[str, Any] = {"a.0": bits(20, 9), "a.1": bits(20, 9), "b": bits(5)}
    (np.savez_compressed if compressed else np.savez)(tmp_path / "x.npz", **arrays)
    ts.files.merge(tmp_path / "x.npz", tmp_path / "out", axis=axis, verify=True)
    whole = np.concatenate([arrays["a.0"], arrays["a.1"]], axis=axis)
    assert np.load(tmp_path / "out" / "a.npy").tobytes() == whole.tobytes()
    assert np.load(tmp_path / "out" / "b.npy").tobytes() == arrays["b"].tobytes()


@pytest.mark.usefixtures("ways")
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("order", ["C", "F"])
def test_an_archive_comes_back(tmp_path: Path, axis: int, order: Any) -> None:
    arrays: dict[str, Any] = {"a": bits(20, 9), "中": bits(5, 3, dtype=">i8"), "c": bits(0, 2)}
    arrays = {name: np.array(each, order=order) for name, each in arrays.items()}
    np.savez_compressed(tmp_path / "x.npz", **arrays)
    ts.files.split(tmp_path / "x.npz", tmp_path / "parts.npz", num_outputs=2, axis=axis)
    ts.files.merge(tmp_path / "parts.npz", tmp_path / "back.npz", axis=axis, verify=True)
    with zipfile.ZipFile(tmp_path / "back.npz") as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["a.npy", "中.npy", "c.npy"]
        assert {each.flag_bits & 1 << 11 for each in archive.infolist()} == {1 << 11}
    with np.load(tmp_path / "back.npz") as found:
        assert set(found) == set(arrays)
        for name, each in arrays.items():
            assert found[name].dtype == each.dtype
            assert found[name].shape == each.shape
            assert found[name].tobytes("A") == each.tobytes("A")
            assert found[name].flags.f_contiguous == each.flags.f_contiguous
    (tmp_path / "folder").mkdir()
    for number, part in enumerate(np.split(arrays["a"], [3, 7], axis)):
        np.save(tmp_path / "folder" / f"a.{number}.npy", part)
    ts.files.merge(tmp_path / "folder", tmp_path / "one.npz", axis=axis, overwrite=True)
    assert np.load(tmp_path / "one.npz")["a"].tobytes() == arrays["a"].tobytes()


def test_an_archive_of_many_members(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", whole := bits(7000, dtype=np.uint8))
    ts.files.split(tmp_path / "x.npy", tmp_path / "parts.npz", chunk=10)
    with np.load(tmp_path / "parts.npz") as found:
        assert len(found.files) == 700
        assert found["x.699"].tobytes() == whole[-10:].tobytes()


@pytest.fixture
def model(tmp_path: Path) -> tuple[Path, dict[str, np.ndarray]]:
    tensors = {
        "layers.0.qkv.weight": bits(24, 5, dtype=ml_dtypes.bfloat16),
        "layers.1.qkv.weight": bits(24, 5, dtype=ml_dtypes.bfloat16),
        "layers.0.down.weight": bits(6, 24),
        "layers.0.up.weight": bits(12, 8, 3),
        "norm.weight": bits(7, dtype=np.uint8),
        "scale": bits(),
        "empty": bits(0, 3),
    }
    path = tmp_path / "model.safetensors"
    numpy_files.save_file(tensors, path, metadata={"format": "np", "中": "文"})
    return path, tensors


RULES: dict[str, Any] = {
    "split": [
        {
            "tensors": "layers.1.qkv.*",
            "axis": 0,
            "split": [12, 4, 8],
            "groups": 2,
            "names": ["one.q.*", "one.k.*", "one.v.*"],
        }
    ],
    "shard": [
        {"tensors": "*.down.weight", "axis": 1},
        {"tensors": "*.up.*", "axis": -3, "name": "h.*.fc.*"},
        {"tensors": "layers.0.qkv.weight", "axis": 0, "segments": [12, 4, 8]},
    ],
    "rename": [{"tensors": "norm.*", "name": "ln.*"}],
}


@pytest.mark.usefixtures("ways")
@pytest.mark.parametrize("rules", [RULES, {**RULES, "common": "all.safetensors"}])
def test_ranks_come_back(model: tuple[Path, dict[str, np.ndarray]], rules: dict[str, Any]) -> None:
    path, tensors = model
    ranks, back = path.with_name("ranks"), path.with_name("back.safetensors")
    ts.files.split(path, ranks, rules=rules, ranks=4)
    ts.files.merge(ranks, back, rules=rules, verify=True)
    assert same(load(back), tensors)
    with safetensors.safe_open(back, framework="numpy") as file:
        assert file.metadata() == {"format": "np", "中": "文"}


@pytest.mark.filterwarnings("ignore:'no such' matches no tensor")
@pytest.mark.parametrize("divided", ["*", "no such"])
def test_ranks_come_back_of_which_a_file_holds_nothing(tmp_path: Path, divided: str) -> None:
    tensors = {"a": bits(4, 3), "b": bits(8)}
    numpy_files.save_file(tensors, tmp_path / "m.safetensors")
    rules = {"shard": [{"tensors": divided, "axis": 0}], "common": "all.safetensors"}
    ts.files.split(tmp_path / "m.safetensors", tmp_path / "4", rules=rules, ranks=4, verify=True)
    assert len(held(tmp_path / "4")) == 5
    ts.files.reshard(tmp_path / "4", tmp_path / "2", rules=rules, ranks=(4, 2), verify=True)
    for ranks in (4, 2):
        back = tmp_path / f"{ranks}.safetensors"
        ts.files.merge(tmp_path / str(ranks), back, rules=rules, verify=True)
        assert same(load(back), tensors)
    (tmp_path / "2" / "all.safetensors").unlink()
    with refused("TS705", "all.safetensors"):
        ts.files.merge(tmp_path / "2", tmp_path / "lost.safetensors", rules=rules)


@pytest.mark.usefixtures("ways")
@pytest.mark.parametrize(("before", "after"), [(4, 2), (2, 4), (4, 1), (1, 4), (2, 2)])
@pytest.mark.parametrize("size", [None, 300])
def test_a_reshard_gives_what_a_split_gives(
    model: tuple[Path, dict[str, np.ndarray]], before: int, after: int, size: int | None
) -> None:
    path, _ = model
    one, other, made = (path.with_name(name) for name in ("one", "other", "made"))
    ts.files.split(path, one, rules=RULES, ranks=before, max_shard_size=size)
    ts.files.split(path, other, rules=RULES, ranks=after, max_shard_size=size)
    ranks = (before, after)
    ts.files.reshard(one, made, ranks=ranks, rules=RULES, max_shard_size=size, verify=True)
    for rank in range(after):
        name = f"rank-{rank}-of-{after}"
        expected = [load(each) for each in sorted(other.glob(f"{name}*.safetensors"))]
        found = [load(each) for each in sorted(made.glob(f"{name}*.safetensors"))]
        merged: list[dict[str, np.ndarray]] = [{}, {}]
        for whole, files in zip(merged, (found, expected), strict=True):
            for each in files:
                whole.update(each)
        assert same(*merged)
    assert len(held(made)) == len(held(other))


def test_a_folder_with_its_index_comes_back(tmp_path: Path) -> None:
    place = tmp_path / "model"
    place.mkdir()
    shards = [{"a.qkv": bits(12, 4), "a.norm": bits(4)}, {"b.qkv": bits(12, 4), "b.norm": bits(4)}]
    index = save_shards(place, shards)
    rules = {"split": [{"tensors": "*.qkv", "split": [6, 2, 4], "names": ["*.q", "*.k", "*.v"]}]}
    ts.files.split(place, tmp_path / "parts", rules=rules)
    ts.files.merge(tmp_path / "parts", tmp_path / "back", rules=rules, verify=True)
    back = tmp_path / "back"
    assert json.loads((back / "model.safetensors.index.json").read_text()) == index
    for number, tensors in enumerate(shards, 1):
        assert same(load(shard_file(back, number, 2)), tensors)
    assert (back / "config.json").read_text() == "{}"
    assert len(held(back)) == 4


def test_what_ranks_share_must_be_the_same(
    model: tuple[Path, dict[str, np.ndarray]], refused: Callable[..., str]
) -> None:
    path, tensors = model
    ranks = path.with_name("ranks")
    ts.files.split(path, ranks, rules=RULES, ranks=2)
    file = ranks / "rank-1-of-2.safetensors"
    changed = load(file)
    changed["scale"] = np.array(tensors["scale"].view(np.uint32) ^ 1).view(np.float32)
    numpy_files.save_file(changed, file)
    before = held(path.parent)
    with pytest.raises(ts.SplitError, match="TS712") as refusal:
        ts.files.merge(ranks, path.with_name("back"), rules=RULES)
    said = str(refusal.value)
    assert "the tensor scale is not the same" in said
    assert "rank-0-of-2.safetensors" in said
    assert "rank-1-of-2.safetensors" in said
    assert held(path.parent) == before


def without(name: str) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        tensors = load(file)
        del tensors[name]
        numpy_files.save_file(tensors, file)

    return change


def with_rows(name: str, rows: int) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        tensors = load(file)
        tensors[name] = np.resize(tensors[name], (rows, *tensors[name].shape[1:]))
        numpy_files.save_file(tensors, file)

    return change


def as_float64(file: Path) -> None:
    tensors = load(file)
    tensors["layers.0.down.weight"] = bits(6, 6, dtype=np.float64)
    numpy_files.save_file(tensors, file)


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (without("layers.0.down.weight"), "TS713", "no layers.0.down.weight of rank 1"),
        (with_rows("h.layers.0.fc.weight", 4), "TS713", "the rule makes (5, 8, 3)"),
        (with_rows("layers.0.down.weight", 5), "TS713", "they differ on other axes than 1"),
        (as_float64, "TS713", "of double"),
        (Path.unlink, "TS705", "it holds no rank-1-of-2.safetensors"),
    ],
)
def test_what_are_not_parts(
    model: tuple[Path, dict[str, np.ndarray]],
    change: Callable[[Path], None],
    code: str,
    said: str,
) -> None:
    path, _ = model
    ranks = path.with_name("ranks")
    ts.files.split(path, ranks, rules=RULES, ranks=2)
    change(ranks / "rank-1-of-2.safetensors")
    with pytest.raises(ts.SplitError, match=code) as refusal:
        ts.files.merge(ranks, path.with_name("back"), rules=RULES, ranks=2)
    assert said in str(refusal.value)
    assert not path.with_name("back").exists()


@pytest.mark.parametrize("axis", ["1", 1.0, True, [1], np.array([0, 1])])
def test_an_axis_that_is_not_an_integer(tmp_path: Path, axis: Any) -> None:
    np.save(tmp_path / "x.npy", RANDOM.random((4, 6)))
    ts.files.split(tmp_path / "x.npy", tmp_path / "parts", axis=1, num_outputs=2)
    with refused("TS105", parameter="axis"):
        ts.files.merge(tmp_path / "parts", tmp_path / "back.npy", axis=axis)
    assert not (tmp_path / "back.npy").exists()


def test_parts_of_a_split_that_are_missing(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", bits(12))
    ts.files.split(tmp_path / "x.npy", tmp_path / "parts", num_outputs=4)
    (tmp_path / "parts" / "x.1.npy").unlink()
    with pytest.raises(ts.SplitError, match=r"TS713.*tensor x: there is no x\.1"):
        ts.files.merge(tmp_path / "parts", tmp_path / "back.npy")
    shutil.rmtree(tmp_path / "parts")
    ts.files.split(tmp_path / "x.npy", tmp_path / "parts", [2, 10], names=["q", "k"])
    with pytest.raises(
        ts.SplitError,
        match=r"TS713.*none of the names in the source is that of a numbered part: k, q",
    ):
        ts.files.merge(tmp_path / "parts", tmp_path / "back.npy")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["parts", "x.npy"]


def test_a_name_that_two_rules_give_says_nothing(tmp_path: Path) -> None:
    numpy_files.save_file({"x": bits(4), "y": bits(4), "z": bits(4)}, tmp_path / "m.safetensors")
    split = [
        {"tensors": whole, "split": [4, 4], "names": ["x", other]}
        for whole, other in (("a", "y"), ("b", "z"))
    ]
    with pytest.raises(ts.SplitError, match=r"TS703.*tensor x could be a part of two.*'a' and 'b'"):
        ts.files.merge(
            tmp_path / "m.safetensors", tmp_path / "back.safetensors", rules={"split": split}
        )
    assert not (tmp_path / "back.safetensors").exists()


def test_a_name_that_no_whole_would_be_given_stays(tmp_path: Path) -> None:
    """The first star stands for as much as it can: q.a.a.r would become q.a.b.r."""
    tensors = {"q.b.a.r": bits(4), "p.b.r": bits(5)}
    numpy_files.save_file(tensors, tmp_path / "m.safetensors")
    rules = {"rename": [{"tensors": "*.a.*", "name": "*.b.*"}]}
    ts.files.merge(tmp_path / "m.safetensors", tmp_path / "back.safetensors", rules=rules)
    expected = {"q.b.a.r": tensors["q.b.a.r"], "p.a.r": tensors["p.b.r"]}
    assert same(load(tmp_path / "back.safetensors"), expected)


def test_what_the_metadata_of_ranks_say_differently_is_said(
    model: tuple[Path, dict[str, np.ndarray]],
) -> None:
    path, _ = model
    ranks = path.with_name("ranks")
    ts.files.split(path, ranks, rules=RULES, ranks=2)
    file = ranks / "rank-1-of-2.safetensors"
    numpy_files.save_file(load(file), file, metadata={"format": "other"})
    (ranks / "config.json").write_text("{}")
    with pytest.warns(ts.SplitWarning) as warned:
        ts.files.merge(ranks, path.with_name("back.safetensors"), rules=RULES)
    assert [str(each.message) for each in warned] == [
        "the metadata 'format' are not the same in all files; the first stay",
        "config.json is not carried over into a file",
    ]


SLOW = """
import os, sys, time
from tensorsplit.files import byte_copies
from tensorsplit.cli import main
write = byte_copies.RangeCopies.write
def slow(self, memory):
    write(self, memory)
    os.write(1, b"written\\n")
    time.sleep(60)
byte_copies.RangeCopies.write = slow
main.main(sys.argv[1:])
"""


def killed(*words: Any) -> None:
    """A run that is killed while it writes."""
    command = [sys.executable, "-c", SLOW, *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        said = run.stdout.readline()
        run.kill()
        assert said == b"written\n"
        assert run.wait() == -signal.SIGKILL


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals here")
@pytest.mark.parametrize("job", ["merge", "reshard"])
def test_killed_in_the_middle_and_started_again(
    model: tuple[Path, dict[str, np.ndarray]], tensorsplit: Command, job: str
) -> None:
    path, tensors = model
    rules = path.with_name("rules.toml")
    rules.write_text('[[shard]]\ntensors = "*.up.*"\naxis = 0\n')
    ranks, whole = path.with_name("ranks"), path.with_name("whole")
    ts.files.split(path, ranks, rules=rules, ranks=4)
    ts.files.split(path, whole, rules=rules, ranks=1)
    there = {"model.safetensors", "rules.toml", "ranks", "whole"}
    out = path.with_name("out.safetensors" if job == "merge" else "out")
    more = ("--from", 4, "--to", 1) if job == "reshard" else ()
    words = (job, ranks, "-o", out, "--rules", rules, *more)
    before = held(path.parent)
    killed(*words)
    left = {each.name for each in path.parent.iterdir()} - there
    assert [Path(name).suffix for name in left] == [".part"]
    assert {name: held(path.parent)[name] for name in before} == before
    assert tensorsplit(*words, "--verify").status == 0
    assert {each.name for each in path.parent.iterdir()} == there | {out.name}
    made = out if job == "merge" else out / "rank-0-of-1.safetensors"
    assert same(load(made), tensors)
    killed(*words, "--overwrite")
    assert same(load(made), tensors)


@pytest.mark.parametrize("command", ["split", "merge", "reshard"])
def test_an_empty_name_is_no_target(
    tmp_path: Path, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    numpy_files.save_file({"x": bits(4)}, tmp_path / "rank-0-of-1.safetensors")
    (tmp_path / "rules.toml").write_text('[[shard]]\ntensors = "x"\naxis = 0\nranks = 1\n')
    monkeypatch.chdir(tmp_path)
    before = held(tmp_path)
    more = ("--from", 1, "--to", 1) if command == "reshard" else ()
    words = (command, ".", "--rules", "rules.toml", *more)
    assert "'--output': the name is empty" in refused("TS702", *words, "-o", "")
    assert "'--output': the name is empty" in refused("TS702", *words, "-o", "", "--dry-run")
    calls: dict[str, Callable[[str], None]] = {
        "split": lambda out: ts.files.split(".", out, rules="rules.toml"),
        "merge": lambda out: ts.files.merge(".", out, rules="rules.toml"),
        "reshard": lambda out: ts.files.reshard(".", out, ranks=(1, 1), rules="rules.toml"),
    }
    with pytest.raises(ts.SplitError, match=r"TS702.*the name is empty"):
        calls[command]("")
    assert held(tmp_path) == before
