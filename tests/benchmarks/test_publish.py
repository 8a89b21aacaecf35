"""``docs/performance.md`` says what was measured, and nothing else."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from shutil import ignore_patterns
from types import SimpleNamespace as Record
from typing import Any

import growth
import overview
import publish
import pytest
from studies import STUDIES

from tensorsplit.bench.figures import Figures, describe
from tensorsplit.bench.timing import Effort, Measured, Spread, Timed
from tensorsplit.bench.workloads import WORKLOADS, Workload

pytestmark = pytest.mark.thorough

PAGE = publish.PAGE.read_text(encoding="utf-8")


def described(**changes: Any) -> Any:
    return {"cpu": "Standin 1", "cores": 2, "caches": {"L1": "48K"}, "system": "Linux"} | changes


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what is published, which the script writes to."""
    shutil.copytree(publish.FOLDER, tmp_path / "performance", ignore=ignore_patterns("*.svg"))
    (tmp_path / "page.md").write_text(PAGE, encoding="utf-8")
    monkeypatch.setattr(publish, "FOLDER", tmp_path / "performance")
    monkeypatch.setattr(publish, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr("charts._save", lambda figure, path, title: path.touch())
    return tmp_path


def figures(machine: Any, ratio: float) -> tuple[Any, Any]:
    """What another machine measured: our ratio for each workload of the published ones."""
    about = {**describe(Effort(rounds=1)), "machine": machine}
    mode = {"copy": "out", "join": "out", "views": "view", "plan": "view"}
    spreads = Spread(ratio, ratio, ratio), Spread(1e-3, 1e-3, 1e-3)

    def measured(each: Workload) -> Measured:
        timed = Timed("tensorsplit", mode[each.kind], *spreads)
        return Measured(each, 1, Spread(1e-3, 1e-3, 1e-3), (timed,))

    studies = tuple(measured(each) for study in STUDIES for each in study.workloads)
    return (
        Figures(about, tuple(map(measured, WORKLOADS.values()))),
        Figures(about, studies),
    )


def run(monkeypatch: pytest.MonkeyPatch, bench: Any, grown: Any) -> None:
    monkeypatch.setattr(publish, "take", lambda: bench)
    monkeypatch.setattr(growth, "take", lambda: grown)
    monkeypatch.setattr("sys.argv", ["publish.py"])
    publish.main()


def test_the_pages_come_from_the_figures_beside_them() -> None:
    measured = publish.machines()
    assert publish.fill(PAGE, publish.tables(measured)) == PAGE
    for machine in measured:
        page = (machine.folder / "README.md").read_text(encoding="utf-8")
        assert page == publish.page_of(machine)
        drawn = {path.stem for path in machine.folder.glob("*.svg")}
        assert drawn == {"bench", *(study.name for study in STUDIES)}
    assert (publish.FOLDER / "overview.svg").read_text("utf-8") == overview.chart(measured)


def test_every_block_of_figures_is_on_the_page() -> None:
    for name in publish.tables(publish.machines()):
        assert f"<!-- begin {name}" in PAGE


def test_every_workload_of_every_machine_is_there_and_none_was_wrong() -> None:
    for machine in publish.machines():
        for each in machine.bench.measured:
            assert f"| **{each.workload.name}**: " in PAGE
            assert not [entry for entry in each.entries if entry.wrong]


def test_another_machine_stands_beside_those_that_were_measured_before(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {machine.name: machine for machine in publish.machines()}
    run(monkeypatch, *figures(described(), 8.5))
    assert [machine.name for machine in publish.machines()] == sorted([*before, "standin-1"])
    page = (docs / "page.md").read_text(encoding="utf-8")
    lines = page.splitlines()
    heads = [line.strip("| ").split(" | ") for line in lines if line.startswith("| workload |")]
    for head in heads:
        named = [each for each in head if not each.endswith(", after a pause")]
        assert named == ["workload", "worst", *sorted([*before, "standin-1"])]
    assert len(heads) == 4
    (row,) = [line for line in lines if line.startswith("| **attention**")]
    worst, *columns = row.removesuffix(" |").split(" | ")[1:]
    assert worst == "8.50"
    assert "8.50" in columns  # no range of one round
    assert all(name in page for name in before)
    for name, machine in before.items():
        assert (docs / "performance" / name / "bench.json").read_bytes() == (
            machine.folder / "bench.json"
        ).read_bytes()

    run(monkeypatch, *figures(described(), 0.25))  # measured anew
    assert [machine.name for machine in publish.machines()] == sorted([*before, "standin-1"])
    assert "8.50" not in (docs / "page.md").read_text(encoding="utf-8")


def test_a_machine_that_was_measured_after_a_pause_has_a_column_for_that(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, grown = figures(described(), 1.5)
    paused = tuple(
        replace(
            each,
            paused=each.baseline,
            entries=(
                replace(each.entries[0], paused=Spread(9.25, 9.0, 9.5)),
                replace(each.entries[0], peer="torch", paused=Spread(9.75, 9.0, 9.5)),
            ),
        )
        for each in bench.measured
    )
    run(monkeypatch, replace(bench, measured=paused), grown)
    lines = (docs / "page.md").read_text(encoding="utf-8").splitlines()
    (head, *_) = [line for line in lines if line.startswith("| workload | worst |")]
    (row,) = [line for line in lines if line.startswith("| **attention**")]
    heads, texts = (line.strip("| ").split(" | ") for line in (head, row))
    cells = dict(zip(heads, texts, strict=True))
    assert cells["worst"] == "9.25"
    assert cells["standin-1"].startswith("1.50")
    assert cells["standin-1, after a pause"].startswith("9.25; torch 9.75")
    page = (docs / "performance" / "standin-1" / "README.md").read_text(encoding="utf-8")
    assert "| tensorsplit out | tensorsplit out, after a pause | torch out |" in page


@pytest.mark.usefixtures("docs")
def test_machines_of_one_processor_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, *figures(described(), 1.0))
    run(monkeypatch, *figures(described(caches={"L1": "32K"}), 1.0))
    names = {machine.name for machine in publish.machines()}
    assert {"standin-1", "standin-1-2"} < names
    assert publish.folder_of(described(caches={"L1": "32K"})).name == "standin-1-2"


@pytest.mark.parametrize(
    ("cpu", "name"),
    [
        ("Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", "intel-xeon-platinum-8481c"),
        ("AMD EPYC 7B13 64-Core Processor", "amd-epyc-7b13-64-core"),
        ("../../etc", "etc"),
        ("", "unknown"),
    ],
)
def test_a_folder_is_named_by_the_processor(docs: Path, cpu: str, name: str) -> None:
    assert publish.folder_of(described(cpu=cpu)) == docs / "performance" / name


def test_the_worst_workload_comes_first() -> None:
    for kind in ("copy", "views", "plan"):
        rows = publish.tables(publish.machines())[kind].splitlines()[2:]
        worst = [float(row.split(" | ")[1]) for row in rows]
        assert worst == sorted(worst, reverse=True)


def test_a_page_is_filled_between_its_marks_only() -> None:
    page = "a\n<!-- begin one, by hand -->\nold\n<!-- end one -->\nz\n"
    assert publish.fill(page, {"one": "new"}) == (
        "a\n<!-- begin one, by hand -->\nnew\n<!-- end one -->\nz\n"
    )
    with pytest.raises(KeyError):
        publish.fill(page, {})


def test_the_published_figures_are_read_and_not_measured(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "take", None)
    monkeypatch.setattr("sys.argv", ["publish.py", "--only-page"])
    publish.main()
    assert (docs / "page.md").read_text(encoding="utf-8") == PAGE


def test_a_wrong_result_is_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong: Any = Record(wrong=["rgb: numpy (out): part 0 has other values"])
    monkeypatch.setattr(publish, "take", lambda: wrong)
    monkeypatch.setattr(growth, "take", lambda: Record(wrong=[]))
    monkeypatch.setattr(publish, "FOLDER", tmp_path)
    monkeypatch.setattr("sys.argv", ["publish.py"])
    with pytest.raises(SystemExit, match="part 0 has other values"):
        publish.main()
    assert not list(tmp_path.iterdir())


def test_the_model_tools_are_right_on_chains_of_nodes() -> None:
    rows = growth.take_tools(quick=True)
    assert [row["tool"] for row in rows if row["wrong"]] == []
    assert {row["nodes"] for row in rows} == {100}
