"""``tensorsplit bench``: what it prints and writes, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

import pytest

from tensorsplit.bench import workers
from tensorsplit.bench.peers import Entry
from tensorsplit.bench.workloads import Prepared, Task
from tests.cli.conftest import Command


@pytest.fixture
def run(tensorsplit: Command) -> Command:
    """Runs one round of the smallest split beside NumPy."""
    return partial(tensorsplit, "bench", "tiny", "--quick", "--peer", "numpy")


def test_a_table(run: Command) -> None:
    ended = run()
    assert ended.status == 0
    assert ended.err == ""
    assert "tiny  the cost of the call itself\n" in ended.out
    assert "\n  tensorsplit  out " in ended.out
    assert "\n  numpy        fresh " in ended.out
    assert ended.out.endswith("bit for bit, as that of plain slicing\n")


def test_json(run: Command) -> None:
    read = json.loads(run("--format", "json").out)
    assert set(read) == {"about", "measured"}
    assert set(read["about"]) == {"date", "machine", "versions", "native", "method"}
    (tiny,) = read["measured"]
    assert tiny["rounds"] == 1
    assert tiny["workload"]["sizes"] == [2, 4]
    assert {entry["peer"] for entry in tiny["entries"]} == {"tensorsplit", "numpy"}
    assert set(tiny["entries"][0]["ratio"]) == {"median", "low", "high"}


def test_a_file(run: Command, tmp_path: Path) -> None:
    figures = tmp_path / "new" / "f.json"
    ended = run("--format", "json", "-o", figures, "--create-dirs")
    assert ended == (0, "", "")
    assert json.loads(figures.read_text())["measured"][0]["workload"]["name"] == "tiny"


def test_repeat_sets_the_rounds(tensorsplit: Command) -> None:
    ended = tensorsplit("bench", "tiny", "--repeat", 2, "--peer", "numpy", "--format", "json")
    (tiny,) = json.loads(ended.out)["measured"]
    assert tiny["rounds"] == 2
    assert tiny["paused"]["median"] > 0
    assert all(entry["paused"]["median"] > 0 for entry in tiny["entries"])


def test_the_list_measures_nothing(tensorsplit: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "measure", None)
    ended = tensorsplit("bench", "--list")
    assert ended.status == 0
    assert "attention       query, key and value of a transformer\n" in ended.out
    assert "libraries: tensorsplit " in ended.out


def test_a_wrong_result_is_status_1(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_fault(task: Task, prepared: Prepared) -> str:
        return "part 0 has other values"

    def local(entries: list[Entry]) -> AbstractContextManager[list[workers.LocalWorker]]:
        return nullcontext([workers.LocalWorker(entries)])

    monkeypatch.setattr(workers, "separate_workers", local)
    monkeypatch.setattr(workers, "find_fault", find_fault)
    ended = run()
    assert ended.status == 1
    assert "wrong: tiny: numpy (out): part 0 has other values\n" in ended.out


@pytest.mark.parametrize(
    "words",
    [
        ("nothing-like-it",),
        ("tiny", "--peer", "matlab"),
        ("tiny", "--quick", "--repeat", "3"),
        ("tiny", "--repeat", "0"),
    ],
)
def test_wrong_usage(refused: Callable[..., str], words: tuple[str, ...]) -> None:
    refused("TS703", "bench", *words)


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_measured(
    refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "measure", None)
    file = tmp_path / "file"
    file.touch()
    refused("TS702", "bench", "tiny", "-o", file / "x")
    refused("TS702", "bench", "tiny", "-o", tmp_path)
