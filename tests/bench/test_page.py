"""``docs/performance.md`` says what was measured, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorsplit.bench.figures import Figures, from_json
from tensorsplit.bench.growth import STUDIES, plot
from tensorsplit.bench.page import fill, tables
from tensorsplit.bench.picture import picture
from tensorsplit.bench.workloads import WORKLOADS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "performance.md").read_text(encoding="utf-8")


def read(name: str) -> str:
    return (DOCS / "performance" / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def bench() -> Figures:
    return from_json(read("bench.json"))


@pytest.fixture(scope="module")
def growth() -> Figures:
    return from_json(read("growth.json"))


def test_the_tables_come_from_the_figures_beside_the_page(bench: Figures, growth: Figures) -> None:
    assert fill(PAGE, tables(bench, growth)) == PAGE


def test_every_block_of_figures_is_on_the_page(bench: Figures, growth: Figures) -> None:
    for name in tables(bench, growth):
        assert f"<!-- begin {name}" in PAGE


def test_the_pictures_come_from_the_same_figures(bench: Figures, growth: Figures) -> None:
    assert read("bench.svg") == picture(bench)
    for study in STUDIES:
        assert read(f"{study.name}.svg") == plot(growth, study)


def test_every_workload_was_measured_and_none_was_wrong(bench: Figures, growth: Figures) -> None:
    assert [measured.workload for measured in bench.measured] == list(WORKLOADS.values())
    assert not bench.wrong
    assert not growth.wrong


def test_a_page_is_filled_between_its_marks_only() -> None:
    page = "a\n<!-- begin one, by hand -->\nold\n<!-- end one -->\nz\n"
    assert fill(page, {"one": "new"}) == (
        "a\n<!-- begin one, by hand -->\nnew\n<!-- end one -->\nz\n"
    )
    with pytest.raises(KeyError):
        fill(page, {})
