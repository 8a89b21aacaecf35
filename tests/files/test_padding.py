"""Dimensions that are padded before ranks divide them, and are as long as before when merged."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tests.files.test_ranks import bits, check, load, rank_file

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
        ({"pad_to": 6}, "TS303"),
        ({"pad_to": 0}, "TS703"),
        ({"pad_to": 16, "heads": 4}, "pad_to goes without split, segments, groups and heads"),
        ({"pad_to": 16, "groups": 2}, "pad_to goes without"),
        ({"pad_to": 16, "split": [4] * 4}, "pad_to goes without"),
        ({"pad_to": 16, "axis": 2}, "TS2"),
    ],
)
def test_rules_that_do_not_pad(tmp_path: Path, rule: dict[str, Any], said: str) -> None:
    numpy_files.save_file({"x": bits(13, 3)}, tmp_path / "m.safetensors")
    rules = {"shard": [{"tensors": "x", "axis": 0, "ranks": 4, **rule}]}
    with pytest.raises(ts.SplitError, match=said):
        ts.files.split(tmp_path / "m.safetensors", tmp_path / "out", rules=rules)


def test_what_is_padded_is_not_followed(tmp_path: Path) -> None:
    numpy_files.save_file({"x": bits(13), "s": bits(13)}, tmp_path / "m.safetensors")
    rules = {
        "shard": [
            {"tensors": "x", "axis": 0, "ranks": 4, "pad_to": 16},
            {"tensors": "s", "axis": 0, "follow": "x"},
        ]
    }
    with pytest.raises(ts.SplitError, match=re.escape("x is padded")):
        ts.files.split(tmp_path / "m.safetensors", tmp_path / "out", rules=rules)
