"""What type checkers say of lines that users write: wrong ones are found, right ones pass.

The lines are in ``data/typing``, each wrong one with the errors of mypy and pyright, or with "-"
where a checker can't find it. Each line is run too: a wrong one is refused, a right one isn't.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
DATA = Path(__file__).parent / "data" / "typing"
NAMES = (DATA / "names.txt").read_text("utf-8")
RIGHT = (DATA / "right.txt").read_text("utf-8").splitlines()


class Wrong(NamedTuple):
    """A wrong line, and the kind of error that each checker gives; "-" if none."""

    code: str
    mypy: str
    pyright: str

    @classmethod
    def read(cls, line: str) -> Wrong:
        code, _, errors = line.rpartition("  # ")
        mypy, pyright = errors.split(", ")
        return cls(code.rstrip(), mypy, pyright)


WRONG = list(map(Wrong.read, (DATA / "wrong.txt").read_text("utf-8").splitlines()))


def mypy(file: Path) -> dict[int, str]:
    pytest.importorskip("mypy")
    options = ("--config-file", ROOT / "pyproject.toml", "--cache-dir", ROOT / ".mypy_cache")
    command = (sys.executable, "-m", "mypy", *options, "--no-pretty", file)
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "(checked 1 source file)" in ended.stdout, ended.stderr
    pattern = rf"{file.name}:(\d+): error: .*\[([\w-]+)\]$"
    found = re.findall(pattern, ended.stdout, re.MULTILINE)
    return {int(line): kind for line, kind in reversed(found)}  # the first of a line


def pyright(file: Path) -> dict[int, str]:
    pytest.importorskip("basedpyright")
    settings = {"typeCheckingMode": "standard", "extraPaths": [str(ROOT / "src")]}
    file.with_name("pyrightconfig.json").write_text(json.dumps(settings))
    options = ("--outputjson", "--pythonpath", sys.executable, "-p", file.parent)
    command = (sys.executable, "-m", "basedpyright", *options)
    ended = subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False)
    told = json.loads(ended.stdout)
    assert told["summary"]["filesAnalyzed"] == 1
    return {
        each["range"]["start"]["line"] + 1: each["rule"]
        for each in reversed(told["generalDiagnostics"])
        if each["severity"] == "error"
    }


@pytest.mark.thorough
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_checkers_find_the_wrong_lines_and_no_other(
    checker: Callable[[Path], dict[int, str]], tmp_path: Path
) -> None:
    file = tmp_path / "lines_to_check.py"
    lines = [*NAMES.splitlines(), *RIGHT, *(each.code for each in WRONG)]
    file.write_text("\n".join(lines) + "\n", "utf-8")
    found = checker(file)
    wanted = {each.code: getattr(each, checker.__name__) for each in WRONG}
    assert {
        line: found.get(number, "-")
        for number, line in enumerate(lines, 1)
        if line in wanted or number in found
    } == wanted


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the lines use, in a folder with the files that they name."""
    for file in (ROOT / "examples").iterdir():
        (tmp_path / file.name).symlink_to(file)
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((4, 6)))
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    exec(NAMES, found)
    return found


def test_right_lines_run(names: dict[str, Any]) -> None:
    for line in RIGHT:
        exec(line, names)


def test_wrong_lines_are_refused_when_they_run(names: dict[str, Any]) -> None:
    for each in WRONG:
        try:
            exec(each.code, names)
        except Exception:  # noqa: BLE001 - of any kind: some attributes do not even exist
            continue
        pytest.fail(f"it runs: {each.code}")
