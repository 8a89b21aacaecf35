"""Running the command line in this process, or as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from os import environ
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pytest

from tensorsplit.cli import main
from tests.cli.build import SPLIT, save


class Ended(NamedTuple):
    """How a command ended: exit status, standard output and standard error."""

    status: int
    out: str
    err: str


Command: TypeAlias = Callable[..., Ended]


@pytest.fixture
def tensorsplit(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command line in this process, 80 columns wide."""
    monkeypatch.setenv("COLUMNS", "80")

    def run(*words: object) -> Ended:
        with pytest.raises(SystemExit) as ended:
            main.main(list(map(str, words)))
        captured = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Ended(ended.value.code, captured.out, captured.err)

    return run


@pytest.fixture
def refused(tensorsplit: Command) -> Callable[..., str]:
    """Runs a command line that must be refused: status 2, one line on standard error, no more."""

    def run(code: str, *words: object) -> str:
        ended = tensorsplit(*words)
        assert ended.status == 2, ended
        assert ended.out == ""
        assert ended.err.startswith(f"tensorsplit: error: [{code}] "), ended.err
        assert ended.err.count("\n") == 1
        assert ended.err.endswith("\n")
        return ended.err

    return run


def process(*words: object, env: Mapping[str, str] | None = None, shell: str = "") -> Ended:
    """Run ``tensorsplit`` as a process of its own; `shell` follows it on the shell's line."""
    command = [sys.executable, "-m", "tensorsplit", *map(str, words)]
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f'"$@" {shell}', "bash", *command],
        check=False,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        env={**environ, "COLUMNS": "80", **(env or {})},
    )
    return Ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def split(tmp_path: Path) -> Path:
    """A model that cuts ``x`` of shape (2, 4) into ``a`` of (2, 1) and ``b`` of (2, 3)."""
    return save(tmp_path, SPLIT)


@pytest.fixture
def x(rng: np.random.Generator) -> Any:
    return rng.standard_normal((2, 4)).astype(np.float32)
