"""The charts: well-formed, self-contained, every workload and study in them."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import charts
import pytest
from studies import STUDIES, Study

from tensorsplit.bench.figures import Figures
from tensorsplit.bench.timing import Measured, Spread, Timed
from tensorsplit.bench.workloads import WORKLOADS, Workload

pytestmark = pytest.mark.thorough

SVG = "{http://www.w3.org/2000/svg}"


def measured(workload: Workload, *entries: Timed) -> Measured:
    return Measured(workload, 9, Spread(1e-3, 9e-4, 2e-3), entries)


def timed(peer: str, mode: str, ratio: float, wrong: str | None = None) -> Timed:
    spread = Spread(ratio, ratio - 0.1, ratio + 0.2)
    return Timed(peer, mode, spread, Spread(ratio / 1000, ratio / 1000, ratio / 1000), wrong=wrong)


FIGURES = Figures(
    {},
    (
        measured(
            WORKLOADS["attention"],
            timed("tensorsplit", "out", 1.05),
            timed("tensorsplit", "pooled", 1.2),
            timed("torch", "fresh", 2.5),
            timed("numpy", "out", 2, wrong="other values"),
            Timed("openvino", "out", cannot="no"),
        ),
        measured(WORKLOADS["plan"], timed("tensorsplit", "view", 1.5)),
    ),
)


def words(path: Path) -> list[str]:
    root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    return [(text.text or "").strip() for text in root.iter(f"{SVG}text")]


def test_what_was_measured_is_in_the_chart_and_nothing_else(tmp_path: Path) -> None:
    charts.draw_bench(FIGURES, tmp_path / "bench.svg")
    seen = words(tmp_path / "bench.svg")
    assert {"attention", "plan", "tensorsplit", "torch", "from a pool", "views"} <= {*seen}
    assert not {"openvino", "numpy", "rgb"} & {*seen}  # unable, wrong, not measured


def test_a_chart_stands_alone_and_comes_out_the_same_again(tmp_path: Path) -> None:
    paths = tmp_path / "first.svg", tmp_path / "second.svg"
    for path in paths:
        charts.draw_bench(FIGURES, path)
    first, second = (path.read_text(encoding="utf-8") for path in paths)
    assert first == second
    assert not re.search(r"(?:href=.(?!#)|src=|url\((?!#))", first)


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_a_study_has_every_value_and_every_way(study: Study, tmp_path: Path) -> None:
    entries = (timed("tensorsplit", "out", 1.1), timed("numpy", "out", 4.0))
    every = tuple(measured(each, *entries) for one in STUDIES for each in one.workloads)
    charts.draw_studies(Figures({}, every), tmp_path)
    seen = words(tmp_path / f"{study.name}.svg")
    assert {study.title, study.unit, "tensorsplit out", "numpy out"} <= {*seen}
    assert study.workloads[0].baseline in seen


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_the_values_of_a_study_are_those_of_its_workloads(study: Study) -> None:
    chosen = charts.of_study(Figures({}, (*map(measured, study.workloads),)), study)
    assert len(chosen) == len(study.workloads)
    for workload, each in zip(study.workloads, chosen, strict=True):
        assert sum(workload.sizes) == workload.shape[workload.axis]
        seen = {"bytes": workload.nbytes, "parts": len(workload.sizes)}
        assert charts.value_of(each) == seen.get(study.unit, len(workload.shape))
