"""What ranks have of a tensor is noted in their files: other rules do not merge them (TS713)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tests.files.checkpoints import load
from tests.files.test_ranks import bits, check, rank_file

numpy_files = pytest.importorskip("safetensors.numpy")
safetensors = pytest.importorskip("safetensors")

LAYOUTS = "tensorsplit.layouts"
WHOLE = bits(24, 24)
PLAIN: dict[str, Any] = {"axis": 0}
FUSED = {"axis": 0, "segments": [16, 4, 4]}
HEADS = {"axis": 0, "heads": [4, 1, 1], "replicate": [False, True, True]}
IN_GROUPS = {"axis": 0, "segments": [12, 6, 6], "groups": 2}


def rules(rule: dict[str, Any] | None) -> dict[str, Any]:
    of_it = [] if rule is None else [{"tensors": "qkv", **rule}]
    return {"shard": [{"tensors": "o", "axis": 1}, *of_it]}


def divided(folder: Path, rule: dict[str, Any], whole: np.ndarray = WHOLE) -> Path:
    tensors = {"qkv": whole, "o": whole[:2]}
    numpy_files.save_file(tensors, folder / "m.safetensors", metadata={"format": "pt"})
    ts.files.split(folder / "m.safetensors", folder / "ranks", rules=rules(rule), ranks=2)
    return folder / "ranks"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (FUSED, PLAIN),
        (PLAIN, FUSED),
        (PLAIN, {"axis": 1}),
        (FUSED, {"axis": 0, "segments": [8, 8, 8]}),
        (FUSED, {"axis": 0, "segments": [4, 16, 4]}),
        (HEADS, PLAIN),
        (IN_GROUPS, {"axis": 0, "segments": [12, 6, 6]}),
        ({"axis": 0, "split": [8, 16]}, PLAIN),
        (PLAIN, None),
    ],
)
def test_other_rules_than_those_that_divided_are_refused(
    tmp_path: Path, before: dict[str, Any], after: dict[str, Any] | None
) -> None:
    ranks = divided(tmp_path, before, np.zeros((24, 24), np.float32))  # all ranks have equal bits
    with pytest.raises(ts.SplitError, match="TS713"):
        ts.files.merge(ranks, tmp_path / "back.safetensors", rules=rules(after))
    with pytest.raises(ts.SplitError, match="TS713"):
        ts.files.reshard(ranks, tmp_path / "other", rules=rules(after), ranks=(2, 1))
    assert {each.name for each in tmp_path.iterdir()} == {"m.safetensors", "ranks"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (PLAIN, {"axis": -2, "heads": 6}),
        (PLAIN, {"axis": 0, "split": [12, 12]}),
        (FUSED, {"axis": 0, "heads": [8, 2, 2]}),
        (PLAIN, {"axis": 0, "segments": [24]}),
    ],
)
def test_rules_that_say_the_same_in_another_way_merge(
    tmp_path: Path, before: dict[str, Any], after: dict[str, Any]
) -> None:
    back = tmp_path / "back.safetensors"
    ts.files.merge(divided(tmp_path, before), back, rules=rules(after))
    check(load(back), {"qkv": WHOLE, "o": WHOLE[:2]})
    with safetensors.safe_open(back, "numpy") as file:
        assert file.metadata() == {"format": "pt"}


def test_a_rank_that_has_all_of_a_tensor_needs_no_note(tmp_path: Path) -> None:
    divided(tmp_path, PLAIN)
    ts.files.split(tmp_path / "m.safetensors", tmp_path / "one", rules=rules(FUSED), ranks=1)
    with safetensors.safe_open(rank_file(tmp_path / "one", 0, 1), "numpy") as file:
        assert file.metadata() == {"format": "pt"}


def test_files_of_other_programs_have_no_note_and_are_believed(tmp_path: Path) -> None:
    ranks = divided(tmp_path, PLAIN)
    for rank in range(2):
        file = rank_file(ranks, rank, 2)
        numpy_files.save_file({name: np.array(each) for name, each in load(file).items()}, file)
    ts.files.merge(ranks, tmp_path / "back.safetensors", rules=rules(PLAIN))
    check(load(tmp_path / "back.safetensors"), {"qkv": WHOLE, "o": WHOLE[:2]})


@pytest.mark.parametrize("text", ["[]", '{"qkv": 1}', "{", "null"])
def test_a_note_that_is_malformed_is_refused(tmp_path: Path, text: str) -> None:
    ranks = divided(tmp_path, PLAIN)
    file = rank_file(ranks, 1, 2)
    found = {name: np.array(each) for name, each in load(file).items()}
    numpy_files.save_file(found, file, metadata={LAYOUTS: text})
    with pytest.raises(ts.SplitError, match="TS705"):
        ts.files.merge(ranks, tmp_path / "back.safetensors", rules=rules(PLAIN))
