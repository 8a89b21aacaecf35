"""Progress is shown on a terminal, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
import pytest

from tensorsplit.cli import conformance_command, file_jobs
from tensorsplit.conformance import runner
from tensorsplit.conformance.runner import Subject
from tests.cli.conftest import Command
from tests.conformance.fakes import case, planted_subject
from tests.model.build import FLOAT, graph, model, node, value

pty = pytest.importorskip("pty")
COUNT = 400


@pytest.fixture
def large(tmp_path: Path) -> Path:
    nodes = [node("Split", "x", f"a{i} b{i}", num_outputs=2) for i in range(COUNT)]
    path = tmp_path / "large.onnx"
    made = model(graph(nodes, [value("x", FLOAT, [4])], [f"a{i}" for i in range(COUNT)]))
    onnx.save(made, path)
    return path


def error_stream(path: Path, terminal: bool, seconds: float = 0) -> str:
    """Convert a model, with progress from so many seconds on; return what is on standard error."""
    script = "import sys; from tensorsplit.cli import main, screen; "
    script += f"screen.SECONDS_BEFORE_PROGRESS = {seconds}; main.main(sys.argv[1:])"
    command = [sys.executable, "-c", script, "convert", str(path), "--opset", "13"]
    command += ["-o", str(path.with_suffix(".out.onnx"))]
    if not terminal:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stderr
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=theirs, env=environment
    ) as run:
        os.close(theirs)
        seen = bytearray()
        try:
            while piece := os.read(ours, 65536):
                seen += piece
        except OSError:  # Linux says so when the other end is gone
            pass
        assert run.wait() == 0
    os.close(ours)
    return seen.decode()


def test_a_terminal_shows_how_many_nodes_are_done(large: Path) -> None:
    seen = error_stream(large, terminal=True)
    assert "converting" in seen
    assert f"/{COUNT}" in seen


def test_a_pipe_shows_nothing(large: Path) -> None:
    assert error_stream(large, terminal=False) == ""


def test_a_command_that_is_done_soon_shows_nothing(large: Path) -> None:
    assert error_stream(large, terminal=True, seconds=60) == ""


@pytest.mark.parametrize("words", [(), ("--verify",)])
def test_as_many_bytes_are_done_as_are_announced(
    tensorsplit: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    announced, done = list[int](), list[int]()

    @contextmanager
    def progress_of(_: str, total: int, **__: bool) -> Iterator[Callable[[int], None]]:
        announced.append(total)
        yield done.append

    monkeypatch.setattr(file_jobs, "progress_of", progress_of)
    np.save(tmp_path / "x.npy", np.arange(1000.0))
    out = tmp_path / "parts"
    assert tensorsplit("split", tmp_path / "x.npy", "-o", out, "--split", "250,750", *words)[0] == 0
    assert announced == [8000 * (1 + len(words))]
    assert sum(done) == announced[0]


def test_as_many_results_are_announced_as_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    announced = list[int]()

    @contextmanager
    def progress_of(_: str, total: int) -> Iterator[Callable[[int], None]]:
        announced.append(total)
        yield lambda _: None

    monkeypatch.setattr(conformance_command, "progress_of", progress_of)
    monkeypatch.setattr(runner, "run", lambda *_, **__: None)
    chosen = [Subject.of("tensorsplit"), planted_subject("swaps"), planted_subject("drops")]
    conformance_command._measured(chosen, [case(name) for name in "abcd"], 0, 1.0, None)
    assert announced == [12]
