"""The runner: every case with every subject, whatever one of them does; the same each time."""

from __future__ import annotations

import dataclasses
import itertools
import json
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tensorsplit.conformance import runner
from tensorsplit.conformance.case import Case
from tensorsplit.conformance.document import Document
from tensorsplit.conformance.runner import Subject, run
from tensorsplit.engines.process import EngineProcess, Reply
from tests.conformance.fakes import case, planted_subject
from tests.engines.test_process import is_gone
from tests.interpreters import python

CASES = [
    case("b/parts"),
    case("a/parts", shape=(5, 2), lengths=(2, 0, 3)),
    case("a/strings", element_type="string"),
    case("c/refusal", lengths=(2, 3), legal=False),
]


def measure(*subjects: Subject, cases: list[Case] = CASES, seed: int = 0) -> Document:
    return run(subjects, cases, seed=seed, jobs=2)


@pytest.fixture(scope="module")
def document() -> Document:
    return measure(Subject.of("tensorsplit"), planted_subject("swaps"))


def test_our_own_engine_has_a_clean_sheet(document: Document) -> None:
    own = [result for result in document.results if result.subject == "tensorsplit"]
    assert [result.verdict for result in own] == ["pass"] * len(CASES)


def test_there_is_a_result_for_each_case_and_subject_in_order(document: Document) -> None:
    names = ["a/parts", "a/strings", "b/parts", "c/refusal"]
    assert [entry.id for entry in document.cases] == names
    found = [(result.case, result.subject) for result in document.results]
    assert found == [(name, subject) for name in names for subject in ("tensorsplit", "swaps")]


def test_versions_and_circumstances_are_recorded(document: Document) -> None:
    assert document.suite["cases"] == len(CASES)
    assert document.subjects[0].versions["tensorsplit"]
    assert set(document.measured) == {"by", "date", "system", "python", "cpu"}
    assert all(document.measured.values())


def test_a_document_survives_json(document: Document) -> None:
    assert Document.from_json(json.loads(json.dumps(document.to_json()))) == document


def test_two_runs_with_one_seed_give_the_same_document() -> None:
    chosen = (planted_subject("swaps"), planted_subject("segfaults"))
    first, second = (measure(*chosen, cases=CASES[:2], seed=7) for _ in range(2))
    same = dataclasses.replace(second, measured=first.measured)
    assert same == first


def test_another_seed_gives_other_values() -> None:
    swaps = planted_subject("swaps")
    shown = {measure(swaps, cases=[ONES], seed=seed).results[0].seen for seed in (1, 2)}
    assert len(shown) == 2


ONES = case("ones", shape=(2, 8), lengths=(1, 1))


def test_a_format_that_a_subject_does_not_read_is_skipped() -> None:
    layers = dataclasses.replace(case("ir"), model_format="ir")
    (result,) = measure(Subject.of("onnx-reference"), cases=[layers]).results
    assert result.verdict == "skipped"
    assert not result.is_deviation


def test_progress_is_told_of_every_result_once() -> None:
    counts: list[int] = []
    chosen = [*map(Subject.of, ("tensorsplit", "onnx-reference")), planted_subject("segfaults")]
    run(chosen, CASES, jobs=2, progress=counts.append)
    assert sum(counts) == len(CASES) * len(chosen)


def test_a_process_takes_hundreds_of_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing an engine takes as long as hundreds of cases."""
    made = []

    def process(*words: Any) -> EngineProcess:
        made.append(EngineProcess(*words))
        return made[-1]

    monkeypatch.setattr(runner, "EngineProcess", process)
    cases = [case(f"a/{number:03}") for number in range(400)]
    document = measure(Subject.of("tensorsplit"), cases=cases)
    assert {result.verdict for result in document.results} == {"pass"}
    assert len(made) == 1


def test_cases_one_by_one_keep_one_process_until_they_are_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended: list[EngineProcess] = []
    close = EngineProcess.close

    def noted(process: EngineProcess) -> None:
        ended.append(process)
        close(process)

    monkeypatch.setattr(EngineProcess, "close", noted)
    cases = runner.OneByOne(planted_subject("swaps"))
    for each in CASES[:2]:
        assert [result.case for result in cases.results(each)] == [each.id]
    assert not ended
    cases.close()
    assert ended


@pytest.mark.parametrize(
    ("limit", "searches", "tried"), [(3.0, 0, 3), (99.0, 0, 10), (99.0, 19, 10), (99.0, 20, 0)]
)
def test_who_made_a_case_hang_is_searched_neither_for_ever_nor_again_and_again(
    monkeypatch: pytest.MonkeyPatch, limit: float, searches: int, tried: int
) -> None:
    seconds = itertools.count()
    monkeypatch.setattr(runner, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    asked: list[str] = []

    def apart(cases: list[Case], _seconds: float) -> Reply:
        asked.append(cases[0].id)
        return Reply()  # it lives

    earlier = [case(f"a/{number}") for number in range(10)]
    time_limit = SimpleNamespace(searches=searches)
    process: Any = SimpleNamespace(_time_limit=time_limit, _done=earlier, _run_separately=apart)
    runner._Process._blame(process, case("b"), Reply(), 1.0, limit)
    assert asked == [each.id for each in earlier[::-1]][:tried]
    assert time_limit.searches == searches + 1


@pytest.mark.skipif(not hasattr(signal, "SIGINT"), reason="there are no such signals here")
def test_ctrl_c_ends_the_run_and_its_processes(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    script = f"""
        import os, signal, threading, time
        signal.signal(signal.SIGINT, signal.default_int_handler)
        from pathlib import Path
        from tensorsplit.conformance.runner import run
        from tests.conformance.fakes import case, planted_subject

        def interrupt():
            while not Path({str(pid)!r}).exists():
                time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt, daemon=True).start()
        try:
            run([planted_subject("hangs")], [case("a"), case("b")], seconds=600, jobs=2)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    done = python(script, TENSORSPLIT_TEST_PID=str(pid))
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr
    assert is_gone(int(pid.read_text()))
