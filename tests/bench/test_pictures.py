"""The pictures: well-formed, self-contained, every figure in them."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from tensorsplit.bench.draw import LogScale
from tensorsplit.bench.figures import Figures, Measured, Timed
from tensorsplit.bench.growth import STUDIES, Study, plot, value_of
from tensorsplit.bench.picture import picture
from tensorsplit.bench.timing import Spread
from tensorsplit.bench.workloads import WORKLOADS, Workload

SVG = "{http://www.w3.org/2000/svg}"
ABOUT = {
    "machine": {"cpu": "a <fast> one", "cores": 2, "caches": {"L1": "48K"}},
    "versions": {"numpy": "2.0"},
    "native": "numpy",
}


def measured(workload: Workload, *entries: Timed) -> Measured:
    return Measured(workload, 9, Spread(1e-3, 9e-4, 2e-3), entries)


def timed(peer: str, mode: str, ratio: float) -> Timed:
    spread = Spread(ratio, ratio - 0.1, ratio + 0.2)
    return Timed(peer, mode, spread, Spread(ratio / 1000, ratio / 1000, ratio / 1000))


FIGURES = Figures(
    ABOUT,
    (
        measured(
            WORKLOADS["attention"],
            timed("tensorsplit", "out", 1.05),
            timed("tensorsplit", "pooled", 1.2),
            timed("torch", "fresh", 2.5),
            Timed("openvino", "out", cannot="no"),
        ),
        measured(WORKLOADS["plan"], timed("tensorsplit", "view", 1.5)),
    ),
)


def study_figures(study: Study) -> Figures:
    entries = (timed("tensorsplit", "out", 1.1), timed("numpy", "out", 4.0))
    return Figures(ABOUT, tuple(measured(workload, *entries) for workload in study.workloads))


def tooltips(text: str) -> list[str]:
    root = ElementTree.fromstring(text)
    return [
        title.text or "" for group in root.iter(f"{SVG}g") for title in group.iter(f"{SVG}title")
    ]


def test_every_figure_is_a_mark_with_its_words() -> None:
    told = tooltips(picture(FIGURES))
    assert "tensorsplit out: 1.05 (0.95\N{EN DASH}1.25)" in told
    assert "torch fresh: 2.50 (2.40\N{EN DASH}2.70)" in told
    assert "tensorsplit view: 1.50 (1.40\N{EN DASH}1.70)" in told
    assert not any(text.startswith("openvino out:") for text in told)


def test_the_picture_stands_alone_in_light_and_dark_and_can_be_read_out() -> None:
    text = picture(FIGURES)
    assert "prefers-color-scheme:dark" in text
    assert not re.search(r"(?:href|src|url\()", text)
    root = ElementTree.fromstring(text)
    description = root.find(f"{SVG}desc")
    assert description is not None
    assert "a <fast> one" in (description.text or "")
    assert "attention: tensorsplit out: 1.05" in (description.text or "")


def test_a_wrong_result_is_not_drawn() -> None:
    wrong = Timed("numpy", "out", Spread(2, 2, 2), Spread(1, 1, 1), wrong="other values")
    told = tooltips(picture(Figures(ABOUT, (measured(WORKLOADS["rgb"], wrong),))))
    assert not any(text.startswith("numpy") for text in told)


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_a_plot_has_a_mark_for_each_point(study: Study) -> None:
    told = tooltips(plot(study_figures(study), study))
    assert told.count("tensorsplit out") == len(study.workloads)
    assert told.count(study.workloads[0].baseline) == len(study.workloads)


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_the_values_of_a_study_are_those_of_its_workloads(study: Study) -> None:
    for workload in study.workloads:
        assert sum(workload.sizes) == workload.shape[workload.axis]
        value = value_of(workload)
        seen = {"bytes": workload.nbytes, "parts": len(workload.sizes)}
        assert value == seen.get(study.unit, len(workload.shape))


def test_a_log_scale_puts_equal_factors_at_equal_distances() -> None:
    scale = LogScale(1, 100, 0, 200)
    assert [scale(1), scale(10), scale(100)] == [0, 100, 200]
    assert [scale(0.1), scale(1000)] == [0, 200]
    assert scale.ticks == [1, 2, 5, 10, 20, 50, 100]
    assert LogScale(1, 16, 0, 1, base=2).ticks == [1, 2, 4, 8, 16]
