"""``docs/performance.md`` says what was measured, and nothing else."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace as Record
from typing import Any

import charts
import growth
import publish
import pytest
from studies import STUDIES

from tensorsplit.bench.workloads import WORKLOADS

PAGE = publish.PAGE.read_text(encoding="utf-8")


def text(name: str) -> str:
    return (publish.FOLDER / name).read_text(encoding="utf-8")


def blocks() -> dict[str, str]:
    return publish.tables(charts.read(text("bench.json")), charts.read(text("growth.json")))


def test_the_tables_come_from_the_figures_beside_the_page() -> None:
    assert publish.fill(PAGE, blocks()) == PAGE


def test_every_block_of_figures_is_on_the_page() -> None:
    for name in blocks():
        assert f"<!-- begin {name}" in PAGE


def test_every_workload_was_measured_and_none_was_wrong() -> None:
    bench, grown = (json.loads(text(name))["measured"] for name in ("bench.json", "growth.json"))
    seen = [each["workload"] for each in bench]
    assert seen == [json.loads(json.dumps(asdict(each))) for each in WORKLOADS.values()]
    assert not [entry for each in [*bench, *grown] for entry in each["entries"] if "wrong" in entry]


def test_a_page_is_filled_between_its_marks_only() -> None:
    page = "a\n<!-- begin one, by hand -->\nold\n<!-- end one -->\nz\n"
    assert publish.fill(page, {"one": "new"}) == (
        "a\n<!-- begin one, by hand -->\nnew\n<!-- end one -->\nz\n"
    )
    with pytest.raises(KeyError):
        publish.fill(page, {})


def test_the_published_figures_are_read_and_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("bench.json", "growth.json"):
        (tmp_path / name).write_text(text(name), encoding="utf-8")
    (tmp_path / "page.md").write_text(PAGE, encoding="utf-8")
    monkeypatch.setattr(publish, "FOLDER", tmp_path)
    monkeypatch.setattr(publish, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(publish, "take", None)
    monkeypatch.setattr("sys.argv", ["publish.py", "--only-page"])
    publish.main()
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == PAGE
    drawn = {path.stem for path in tmp_path.glob("*.svg")}
    assert drawn == {"bench", *(study.name for study in STUDIES)}
    assert drawn == {
        path.stem for path in (Path(__file__).parents[2] / "docs/performance").glob("*.svg")
    }


def test_a_wrong_result_is_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong: Any = Record(wrong=["rgb: numpy (out): part 0 has other values"])
    monkeypatch.setattr(publish, "take", lambda: wrong)
    monkeypatch.setattr(growth, "take", lambda: Record(wrong=[]))
    monkeypatch.setattr(publish, "FOLDER", tmp_path)
    monkeypatch.setattr("sys.argv", ["publish.py"])
    with pytest.raises(SystemExit, match="part 0 has other values"):
        publish.main()
    assert not list(tmp_path.iterdir())
