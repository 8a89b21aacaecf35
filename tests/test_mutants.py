"""The bugs that `scripts/mutants.py` plants: each is one change, and the file still parses."""

from __future__ import annotations

import ast
import importlib.util
import sys
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
