"""Rules that would take minutes or gigabytes are refused, or read in little time."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import numpy as np
import pytest

import tensorsplit as ts
from tensorsplit.files.divisions import check_part_count
from tensorsplit.files.rule_files import read_rules
from tests.refusals import refused

msgspec = pytest.importorskip("msgspec")
numpy_files = pytest.importorskip("safetensors.numpy")


def checkpoint(folder: Path, name: str = "x") -> Path:
    numpy_files.save_file({name: np.zeros((2, 2), np.float32)}, folder / "x.safetensors")
    return folder / "x.safetensors"


@pytest.mark.parametrize("key", ["{}", "[{}]", "a = {{ x = 1, {} = 1 }}"])
def test_a_key_of_many_parts_is_refused_before_it_takes_gigabytes(tmp_path: Path, key: str) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(key.format(" . ".join(["a"] * 50_000)) + " = 1\n")
    with refused("TS703", "a key has more than 16 parts"):
        ts.files.split(checkpoint(tmp_path), tmp_path / "out", rules=rules)


def test_more_ranks_than_files_should_be_made_for_are_refused(tmp_path: Path) -> None:
    source, shard = checkpoint(tmp_path), {"tensors": "y", "axis": 0}
    with refused("TS703", "the number of ranks is 65537; give a number from 1 to 65536"):
        ts.files.split(source, tmp_path / "out", rules={"shard": [shard]}, ranks=65_537)
    read_rules({"shard": [shard]}, "").for_ranks(65_536).check_ranks()
    with refused("TS703", "no rule divides tensors among ranks"):
        ts.files.split(source, tmp_path / "out", rules={"rename": []}, ranks=65_537)


def test_two_million_parts_are_made_and_no_more() -> None:
    check_part_count(1 << 21)
    with refused("TS308", "more than 2097152 parts"):
        check_part_count((1 << 21) + 1)


def test_a_name_of_many_parts_is_no_key(tmp_path: Path) -> None:
    name, rules = ".".join("abcdefghijklmnopqrstuvwxyz"), tmp_path / "rules.toml"
    rules.write_text(f'split = [\n  {{ tensors = "{name}", num_outputs = 2 }},\n]\n')
    ts.files.split(checkpoint(tmp_path, name), tmp_path / "out.safetensors", rules=rules)
    held = numpy_files.load_file(tmp_path / "out.safetensors")
    assert sorted(held) == [f"{name}.0", f"{name}.1"]


def test_of_many_patterns_that_match_nothing_the_first_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fields of a table are looked at once, not for each rule."""
    looks = count()
    fields = msgspec.structs.fields
    monkeypatch.setattr(msgspec.structs, "fields", lambda kind: (next(looks), fields(kind))[1])
    rules = {"split": [{"tensors": f"y{number}", "num_outputs": 2} for number in range(50)]}
    with pytest.warns(ts.SplitWarning) as said:
        ts.files.split(checkpoint(tmp_path), tmp_path / "out.safetensors", rules=rules)
    messages = [str(each.message) for each in said]
    assert messages[:10] == [f"'y{number}' matches no tensor" for number in range(10)]
    assert messages[10:] == ["40 more patterns match no tensor"]
    assert next(looks) <= 1
