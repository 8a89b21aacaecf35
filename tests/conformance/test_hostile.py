"""An engine may do what it likes: it is judged, the one beside it is judged right, and it ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tensorsplit.conformance import runner
from tensorsplit.conformance.document import Result
from tensorsplit.conformance.runner import Subject, run
from tensorsplit.engines.process import EngineProcess, Reply
from tests.conformance.fakes import case, planted_subject
from tests.engines.test_process import are_gone
from tests.refusals import refused

LEGAL = case("legal")
ILLEGAL = case("refusal", lengths=(2, 3), legal=False)

ENGINE = """
import itertools, os, subprocess, sys, time
import numpy as np
from tensorsplit.conformance.subjects.runtimes import run_numpy as right
KIND, PACKAGES, FORMATS = "engine", (), ("onnx",)
def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value
class Endless:
    def items(self):
        return ((str(number), number) for number in itertools.count())
class EndlessList(list):
    def __iter__(self):
        return itertools.repeat(np.zeros(99))
def ends(path):
    while not os.path.exists(path):
        time.sleep(0.01)
    return True
def begins(path):
    with open(path + "s", "a") as file:
        file.write(f"{os.getpid()}\\n")
    os.path.exists(path) or os.rename(path + "s", path)
    time.sleep(600)
def serves(path):
    wait = "import sys, os, time; open(sys.argv[1] + 's', 'w').write(str(os.getpid()));"
    wait += "os.rename(sys.argv[1] + 's', sys.argv[1]); time.sleep(600)"
    subprocess.Popen([sys.executable, "-c", wait, path], env={}, start_new_session=True)
def leaves(path):
    if os.fork() == 0:
        os.setsid()
        os.fork() or begins(path)
        os._exit(0)
"""


def adapter(folder: Path, body: str, start: str = "", name: str = "hostile") -> str:
    """The path of an adapter whose function is this; the arguments are called `given`."""
    path = folder / f"{name}.py"
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    path.write_text(f"{ENGINE}PATH = {str(folder / 'pid')!r}\n{start}\ndef run(*given):\n{lines}")
    return str(path)


def judged(source: str, *asked: Any, **rest: Any) -> list[Result]:
    """What comes of an engine, after our own beside it has been judged right."""
    chosen = [Subject.of("tensorsplit"), Subject.of(source)]
    document = run(chosen, asked or (LEGAL, ILLEGAL), **({"jobs": 2, "seconds": 20} | rest))
    own = [found.verdict for found in document.results if found.subject == "tensorsplit"]
    assert own == ["pass"] * len(document.cases)
    return [found for found in document.results if found.subject != "tensorsplit"]


ACCEPTED = ["wrong", "accepted-but-illegal"]
CRASH = ["crash", "crash"]
FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


@pytest.mark.thorough
@FORKS
@pytest.mark.parametrize(
    ("body", "verdicts"),
    [
        ("os.fork()\nreturn right(*given)", ["pass", "pass"]),
        ("os.fork() and os._exit(0)\nreturn right(*given)", CRASH),
        ("os.fork() or time.sleep(600)\nos._exit(0)", CRASH),
        ("os._exit(0)", CRASH),
        ("sys.exit(0)", CRASH),
        ("raise GeneratorExit", CRASH),
        ("os.closerange(0, 1000)\nos._exit(0)", CRASH),
        ("os.chdir('/')\nreturn right(*given)", ["pass", "pass"]),
        ("os.write(int(sys.argv[1]), b'\\xff' * 99)\ntime.sleep(600)", ACCEPTED),
        ("return {name: np.zeros(200 << 20, 'i1') for name in given[3]}", ACCEPTED),
        ("return {name: [[]] * 400_000 for name in given[3]}", ACCEPTED),
        ("return {name: nested(10**5) for name in given[3]}", ACCEPTED),
        ("return Endless()", ACCEPTED),
        ("return {name: EndlessList([1]) for name in given[3]}", ACCEPTED),
        ("return {'y' * 10**6: np.zeros(3)}", ACCEPTED),
        ("return {name: object() for name in given[3]}", ACCEPTED),
        ("raise RuntimeError('no ' * 70_000_000)", ["refused-but-legal", "pass"]),
    ],
)
def test_whatever_an_engine_does_is_judged(tmp_path: Path, body: str, verdicts: list[str]) -> None:
    found = judged(adapter(tmp_path, body))
    assert [entry.verdict for entry in found] == verdicts
    assert all(len(entry.detail) < 2_100 for entry in found)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who started what")
@pytest.mark.parametrize("then", ["return right(*given)", "os._exit(0)", "time.sleep(600)"])
def test_what_has_left_the_group_is_ended(tmp_path: Path, then: str) -> None:
    body = f"leaves(PATH) or ends(PATH)\n{then}"
    (found,) = judged(adapter(tmp_path, body), LEGAL, seconds=1 if "sleep" in then else 20)
    assert found.verdict == {"r": "pass", "o": "crash", "t": "hang"}[then[0]]
    assert are_gone(int((tmp_path / "pid").read_text()))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who started what")
def test_what_has_an_empty_environment_and_a_session_of_its_own_is_ended(tmp_path: Path) -> None:
    (found,) = judged(adapter(tmp_path, "serves(PATH) or ends(PATH)\nreturn right(*given)"), LEGAL)
    assert found.verdict == "pass"
    assert are_gone(int((tmp_path / "pid").read_text()))


def test_an_engine_that_can_be_imported_once_only_is_judged(tmp_path: Path) -> None:
    """The process of a batch imports it anew; that it ends there is held against each case."""
    start = "os._exit(3) if os.path.exists(PATH) else open(PATH, 'w').close()"
    found = judged(adapter(tmp_path, "return right(*given)", start))
    assert [(entry.verdict, entry.detail) for entry in found] == [
        ("crash", "the process ended with exit status 3")
    ] * 2


def test_an_engine_whose_modules_are_missing_is_refused(tmp_path: Path) -> None:
    """Not judged: it would be said to refuse every case."""
    source = adapter(tmp_path, "return right(*given)", "MODULES = ('no_such_module_anywhere',)")
    with refused("TS602", "no_such_module_anywhere", parameter="engine"):
        run([Subject.of(source)], [LEGAL])


@pytest.mark.skipif(sys.platform != "linux", reason="only there memory is limited")
def test_an_engine_is_read_and_judged_in_limited_memory(tmp_path: Path) -> None:
    start = "import resource\nassert resource.getrlimit(resource.RLIMIT_DATA)[0] == 8 << 30"
    (found,) = judged(adapter(tmp_path, "return right(*given)", start), LEGAL)
    assert found.verdict == "pass"


@pytest.mark.parametrize("content", ["KIND = 5", "PACKAGES = ('',)", "FORMATS = ()"])
def test_an_engine_that_says_what_makes_no_sense_is_refused(tmp_path: Path, content: str) -> None:
    source = adapter(tmp_path, "return right(*given)", content)
    if "PACKAGES" in content:
        assert not Subject.of(source).traits.is_installed
        return
    with refused("TS601", "it must define KIND" if "KIND" in content else "FORMATS must be"):
        Subject.of(source)


def test_two_engines_of_one_name_are_refused(tmp_path: Path) -> None:
    with refused("TS703", "two engines or tools are called", "tensorsplit"):
        judged(adapter(tmp_path, "return right(*given)", name="tensorsplit"))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, Reply]]:
    """For how many seconds a case was tried, each time, and what came of it."""
    found: list[tuple[float, Reply]] = []
    ask = EngineProcess.ask

    def record(self: EngineProcess, request: Any, seconds: float, *, adapter: str = "") -> Reply:
        reply = ask(self, request, seconds, adapter=adapter)
        if not adapter and len(request) > 2:
            found.append((seconds, reply))
        return reply

    monkeypatch.setattr(EngineProcess, "ask", record)
    return found


def test_a_case_that_hangs_costs_its_limit_once(
    tmp_path: Path, asked: list[tuple[float, Reply]]
) -> None:
    body = "'damage' in given[2] and time.sleep(600)\nreturn right(*given)"
    source = adapter(tmp_path, body)
    cases = [case("a"), case("b", damage=True), case("c")]
    found = run([Subject.of(source)], cases, seconds=2, jobs=1).results
    assert [entry.verdict for entry in found] == ["pass", "hang", "pass"]
    assert found[1].detail == "it gave no answer within 2 s and was stopped"
    assert sum(seconds for seconds, reply in asked if reply.death is not None) == 2


def test_many_cases_that_hang_get_less_and_less_time(
    asked: list[tuple[float, Reply]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_STAGES", {1: 4, 2: 20})
    notes: list[str] = []
    cases = [case(name) for name in "abcd"]
    document = run([planted_subject("hangs")], cases, seconds=0.8, jobs=1, note=notes.append)
    limits = [0.8, 0.2, 0.04, 0.04]
    assert [seconds for seconds, _ in asked] == limits
    assert [entry.detail for entry in document.results] == [
        f"it gave no answer within {seconds:g} s and was stopped" for seconds in limits
    ]
    assert notes == [
        "hangs: 1 cases hang; the others may take no more than 0.2 s each",
        "hangs: 2 cases hang; the others may take no more than 0.04 s each",
    ]
    assert document.suite["seconds"] == 0.8


def test_an_engine_that_is_slow_keeps_its_time() -> None:
    allowed = runner._TimeLimit("slow", 10, lambda _: None)
    for _ in range(50):
        allowed.count()
    limits = [allowed.seconds()]
    for seconds in (0.5, 0.2, 5.0):
        allowed.watch(seconds)
        limits.append(allowed.seconds())
    assert limits == [0.5, 2.0, 2.0, 10.0]


def test_an_engine_that_crashes_on_every_case_is_asked_once_for_each(
    asked: list[tuple[float, Reply]],
) -> None:
    run([planted_subject("exits")], [case(name) for name in "abc"], jobs=1)
    assert len(asked) == 3


TOOL = """
import onnx
KIND, PACKAGES, FORMATS = "tool", (), ("onnx",)
TEXT = '''<ir_version: 8, opset_import: ["": 13]>
g (float[4, 3] x) => (float[A, 3] y0, float[B, 3] y1)
<int64 most = {100000000}, float[3] one = {1, 1, 1}> {
    y0, y1 = Split <axis = 0> (x)
    end = Loop (most, , one) <body = body (int64 i, bool c, float[3] a)
        => (bool d, float[3] b) { d = Identity(c) b = Add(a, one) }>
}'''
def rewrite(model, target_opset):
    return onnx.parser.parse_model(TEXT.replace("y1)", "y1, float[3] end)")).SerializeToString()
"""


def test_a_tool_whose_model_never_ends_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "endless.py"
    path.write_text(TOOL)
    found = run([Subject.of(str(path))], [LEGAL, ILLEGAL], seconds=1, jobs=1).results
    for entry in found:
        assert entry.verdict == "wrong"
        assert "can't be run: our own engine gave no answer within 1 s" in entry.detail
