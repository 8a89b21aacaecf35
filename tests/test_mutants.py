"""The bugs that `scripts/mutants.py` plants: each is one change, and the file still parses."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "scripts" / "mutants.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["mutants"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("x = a < b", {"a <= b"}),
        ("x = a + 1", {"(a - 1)", "2"}),
        ("x = a and b", {"(a or b)", "(a)"}),
        ("x = not a", {"(a)"}),
        ("x = min(a, b)", {"max(a, b)"}),
        ("x = b if a else c", {"(c if a else b)"}),
        ("raise ValueError", {"pass"}),
        ("f(a)", {"pass"}),
        ("assert a < b", set()),
        ("x: 'a < b' = c", set()),
    ],
)
def test_each_operator(
    script: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    line: str,
    changed: set[str],
) -> None:
    monkeypatch.setattr(script, "ROOT", tmp_path)
    path = tmp_path / "é.py"
    path.write_text(f'"""é: offsets count bytes."""\n{line}\n', encoding="utf-8")
    assert {mutant.after for mutant in script.mutants(path)} == changed
    for mutant in script.mutants(path):
        assert mutant.line == 2
        ast.parse(mutant.planted(path.read_bytes()))


def test_every_bug_of_a_file_parses(script: ModuleType) -> None:
    found = list(script.mutants(ROOT / "src" / "tensorsplit" / "core" / "rules.py"))
    assert len(found) > 50
    for mutant in found:
        text = (ROOT / mutant.path).read_bytes()
        ast.parse(mutant.planted(text))
        assert mutant.planted(text) != text


def test_what_changed_lately(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(script, "ROOT", tmp_path)

    def git(*arguments: str) -> str:
        author = ("-c", "user.name=A", "-c", "user.email=a@b")
        command = ["git", *author, *arguments]
        done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commits(count: int) -> list[str]:
        for _ in range(count):
            git("commit", "-q", "--allow-empty", "-m", "change")
        return git("rev-list", "HEAD").split()

    git("init", "-q", "-b", "main")
    first = commits(3)
    assert script.last_landed() == first[-1], "main has fewer commits than 20"
    landed = commits(22)
    assert script.last_landed() == landed[20], "main: its 20 last commits"
    git("checkout", "-q", "-b", "topic")
    commits(2)
    assert script.last_landed() == landed[0], "a branch: where it left main"


def test_tests_that_are_gone_leave_the_others_on_the_map(tmp_path: Path) -> None:
    source, tests = Path("src/tensorsplit/less.py"), Path("tests/test_less.py")
    files = {
        Path("scripts/mutants.py"): (ROOT / "scripts" / "mutants.py").read_text(encoding="utf-8"),
        source.with_name("__init__.py"): "",
        source: "def is_less(a, b):\n    return a < b\n",
        tests: "from tensorsplit.less import is_less\n\n\n"
        "def test_is_less():\n    assert is_less(1, 2) is True\n    assert not is_less(2, 2)\n",
    }
    ids = [f"{tests}::{name}" for name in ("test_before_it_was_renamed", "test_is_less")]
    ids.insert(0, "tests/test_removed.py::test_is_less")
    known = {"lines": {str(source): {"2": [0, 1, 2]}}, "seconds": dict.fromkeys(ids, 0.1)}
    files[Path("build/mutants/map.json")] = json.dumps(known)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "scripts/mutants.py", "run", "--processes", "1"],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 of 2 bugs" in done.stdout, done.stderr
    assert f"is gone: {ids[0]}, {ids[1]}\n2 killed" in done.stdout


@pytest.mark.parametrize(
    ("killed", "by_time", "survived", "not_judged", "is_too_few"),
    [
        (90, 0, 10, 0, False),
        (89, 0, 11, 0, True),
        (80, 10, 10, 0, False),  # a bug whose tests never end is noticed
        (27, 0, 3, 70, False),  # what was not judged says nothing
        (26, 0, 4, 70, True),
        (0, 0, 29, 71, False),  # of so few, too many may be equal by chance
    ],
)
def test_too_few_are_killed(
    script: ModuleType, killed: int, by_time: int, survived: int, not_judged: int, is_too_few: bool
) -> None:
    names = ("killed", "killed by time", "survived", "not judged")
    numbers = (killed, by_time, survived, not_judged)
    found = Counter(dict(zip(names, numbers, strict=True)))
    assert script.is_too_few(found, 0.9) is is_too_few


def test_a_line_that_imports_run_is_tried_on_the_tests_that_are_named_like_it(
    script: ModuleType,
) -> None:
    """Of hundreds beside it the quickest would be others."""
    seconds = {
        "tests/conformance/test_known.py::test_quick": 0.0,
        "tests/conformance/test_cases.py::test_slow": 2.0,
        "tests/conformance/test_ir.py::test_slower": 3.0,
        "tests/cli/test_conformance.py::test_elsewhere": 0.0,
    }
    known, cases, own, elsewhere = seconds
    path = "src/tensorsplit/conformance/cases/ir.py"
    mutant = script.Mutant(path, 7, 0, 1, "4", "5")
    lines = {path: {"9": [elsewhere]}}
    assert script.covering(mutant, lines, seconds) == [cases, own, known, elsewhere]
    assert script.covering(mutant, {path: {"7": [elsewhere]}}, seconds) == [elsewhere]
