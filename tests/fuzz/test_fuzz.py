"""The corpus through every tool, a few random cases, and a page that says what the runs said."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings

import tensorsplit as ts
from tensorsplit import native
from tensorsplit.arrays import numpy as numpy_arrays
from tensorsplit.model.lower import steps
from tests.fuzz import __main__ as driver
from tests.fuzz import arrays, models, mutations, page

CORPUS = sorted([*models.CORPUS.glob("*.onnx"), *models.CORPUS.glob("*.xml")])


@pytest.mark.parametrize("tool", models.TOOLS)
@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_a_model_that_was_once_a_problem(path: Path, tool: str, tmp_path: Path) -> None:
    weights = path.with_suffix(".bin").read_bytes() if path.suffix == ".xml" else None
    for choice in (0, 1, 6):
        case = models.Case(models.Files(path.read_bytes(), weights), tool, bool(choice), choice)
        models.check(case, tmp_path)


@pytest.fixture
def _as_it_was() -> Any:
    yield
    if native.kernel is not None:
        native.kernel.use("")
        native.kernel.use_non_temporal_from(4 << 20)
        native.kernel.use_threads(native.threads)


@pytest.mark.usefixtures("_as_it_was", "either_way")
class TestArrays:
    @given(arrays.calls())
    def test_some_calls(self, call: arrays.Call) -> None:
        arrays.check(call)

    @pytest.mark.parametrize("planted", ["a part", "a guard", "the data", "a refusal"])
    def test_sees_what_is_wrong(self, planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
        copies_into = numpy_arrays.copies_into

        def wrong(array: Any, plan: Any, out: Any) -> Any:
            if planted == "a refusal":
                out = [buffer if buffer.flags.writeable else buffer.copy() for buffer in out]
            parts = copies_into(array, plan, out)
            if planted == "a part":
                parts[0][0, 0] += 1
            elif planted == "a guard":
                np.asarray(parts[0].base)[0] = 0
            elif planted == "the data":
                array[...] = 0
            return parts

        monkeypatch.setattr(numpy_arrays, "copies_into", wrong)
        data = np.arange(1, 13, dtype=np.uint8).reshape(6, 2)
        spoiled = (1, "read-only") if planted == "a refusal" else None
        call = arrays.Call(data, 0, (2, 4), True, "split", "out", ("Fortran",), spoiled, ("", 1, 1))
        with pytest.raises(AssertionError):
            arrays.check(call)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "cases",
    [models.onnx_cases, models.mutation_cases, models.ir_cases],
    ids=["onnx", "mutations", "ir"],
)
def test_some_models(cases: Any, tmp_path: Path) -> None:
    @settings(max_examples=30)
    @given(cases)
    def run(case: models.Case) -> None:
        models.check(case, tmp_path)

    run()


def test_an_error_without_a_code_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr(ts, "check", broken)
    files = models.Files((models.CORPUS / "functions.onnx").read_bytes())
    with pytest.raises(KeyError):
        models.check(models.Case(files, "check", True, 0), tmp_path)
    with pytest.raises(KeyError):
        models.check(models.Case(files, "check", False, 0), tmp_path)


def test_a_fault_of_our_own_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise IndexError("out of range")

    monkeypatch.setattr(steps, "_lower", broken)
    files = models.Files((models.CORPUS / "functions.onnx").read_bytes())
    with pytest.raises(AssertionError, match="please report it"):
        models.check(models.Case(files, "lower", True, 0), tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize("change", mutations.CHANGES, ids=lambda change: change.__name__)
def test_each_change_leaves_models_that_can_be_used(change: Any) -> None:
    """Some of them, at least: tools that only refuse find nothing."""
    legal = 0
    for number in range(40):
        random = Random(number)
        model = onnx.ModelProto.FromString(random.choice(mutations.seeds()))
        before = model.SerializeToString(deterministic=True)
        change(model, random)
        if model.SerializeToString(deterministic=True) != before:
            legal += all(found.severity != "error" for found in ts.check(model))
    assert legal > 0


PLANT = """
import os, sys
import tensorsplit as ts
from tests.fuzz import __main__ as driver
driver.MOST_SECONDS, driver.MOST_MEMORY = {1}, 3 << 30
ts.check = {0}
sys.exit(driver.main())
"""


@pytest.mark.parametrize(
    ("plant", "seconds", "said"),
    [
        ("lambda *_, **__: os.abort()", 60, ""),
        ("lambda *_, **__: sum(iter(int, 1))", 2, "Current thread"),
        ("lambda *_, **__: bytearray(4 << 30)", 60, "MemoryError"),
    ],
)
def test_what_ends_the_child_is_a_failure(
    plant: str, seconds: int, said: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", PLANT.format(plant, seconds), "ir", "--cases=20"]
    child = [*command, "--child", f"--folder={tmp_path}"]
    done = subprocess.run(child, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode != 0
    assert said in done.stderr
    assert (tmp_path / "model.xml").exists()


def test_a_run_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["ir", "--cases=15", f"--keep={tmp_path}"]
    assert driver.main(arguments) == 0
    assert capsys.readouterr().out.startswith("ir: 15 cases in ")
    assert list(tmp_path.iterdir()) == []


def test_the_page_says_what_the_runs_said() -> None:
    runs = page.read()
    assert {run.target for run in runs} == set(page.TARGETS)
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.BEGIN + page.table(runs) + page.END in text
