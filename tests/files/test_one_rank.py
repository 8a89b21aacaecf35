"""The file of one rank as a checkpoint of its own: what is noted in it comes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tests.files.checkpoints import load
from tests.files.test_padding import metadata
from tests.files.test_ranks import bits, check, rank_file

numpy_files = pytest.importorskip("safetensors.numpy")

TENSORS = {"head": bits(13, 4), "mlp": bits(8, 6), "norm": bits(3), "scales": bits(13, 2)}
RANKS: dict[str, Any] = {
    "shard": [
        {"tensors": ["head", "scales"], "axis": 0, "pad_to": 16},
        {"tensors": "mlp", "axis": 1},
    ]
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    numpy_files.save_file(TENSORS, tmp_path / "m.safetensors", metadata={"format": "pt"})
    ts.files.split(tmp_path / "m.safetensors", tmp_path / "ranks", rules=RANKS, ranks=2)
    return tmp_path


@pytest.mark.parametrize(
    "rules",
    [
        {"split": [{"tensors": "head", "axis": 0, "split": [3, 5], "names": ["a", "b"]}]},
        {"split": [{"tensors": "head", "axis": 1, "num_outputs": 2, "names": ["a", "b"]}]},
        {"split": [{"tensors": "mlp", "axis": 0, "num_outputs": 2, "names": ["a", "b"]}]},
        {
            "split": [
                {"tensors": "head", "axis": 0, "num_outputs": 2, "names": ["a", "b"]},
                {"tensors": "scales", "axis": 0, "follow": "head", "names": ["c", "d"]},
            ]
        },
        {"rename": [{"tensors": "head", "name": "lm_head"}, {"tensors": "mlp", "name": "m"}]},
    ],
)
@pytest.mark.parametrize("rank", [0, 1])
def test_it_is_split_and_merged_and_goes_back_among_the_others(
    folder: Path, rules: dict[str, Any], rank: int
) -> None:
    file, parts, again = (
        rank_file(folder / "ranks", rank, 2),
        folder / "p.safetensors",
        folder / "a",
    )
    before = load(file), metadata(file)
    ts.files.split(file, parts, rules=rules)
    assert load(parts).keys() != before[0].keys()
    again.mkdir()
    ts.files.merge(parts, again / "x.safetensors", rules=rules)
    check(load(again / "x.safetensors"), before[0])
    assert metadata(again / "x.safetensors") == before[1]
    (again / "x.safetensors").replace(file)
    ts.files.merge(folder / "ranks", folder / "back.safetensors", rules=RANKS)
    check(load(folder / "back.safetensors"), TENSORS)
    assert metadata(folder / "back.safetensors") == {"format": "pt"}


def test_parts_of_other_ranks_are_not_merged(folder: Path) -> None:
    rules = {"split": [{"tensors": "mlp", "axis": 0, "num_outputs": 2, "names": ["a", "b"]}]}
    for rank in range(2):
        ts.files.split(
            rank_file(folder / "ranks", rank, 2), folder / f"{rank}.safetensors", rules=rules
        )
    own, other = (dict(load(folder / f"{rank}.safetensors")) for rank in range(2))
    said = [metadata(folder / f"{rank}.safetensors") for rank in range(2)]
    (folder / "two").mkdir()
    numpy_files.save_file({"a": np.array(own["a"])}, folder / "two/1.safetensors", metadata=said[0])
    numpy_files.save_file(
        {"b": np.array(other["b"])}, folder / "two/2.safetensors", metadata=said[1]
    )
    with pytest.raises(ts.SplitError, match=r"TS713.*mlp: it was divided among ranks otherwise"):
        ts.files.merge(folder / "two", folder / "merged", rules=rules)


def test_what_is_padded_is_not_divided_among_ranks_again(folder: Path) -> None:
    file = rank_file(folder / "ranks", 0, 2)
    for tensors in ("mlp", "head"):
        rules = {"shard": [{"tensors": tensors, "axis": 0, "ranks": 2}]}
        with pytest.raises(ts.SplitError, match=r"TS703.*head is padded.*reshard"):
            ts.files.split(file, folder / "again", rules=rules)
    assert not (folder / "again").exists()
