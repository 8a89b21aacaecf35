"""``tensorsplit check``: what it prints, and how it ends."""

from __future__ import annotations

import io
import json
import sys
from functools import partial
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Command
from tests.model.build import FLOAT, INT64, graph, model, node, value


@pytest.fixture
def run(tensorsplit: Command) -> Command:
    """Runs ``tensorsplit check``."""
    return partial(tensorsplit, "check")


def save(folder: Path, split: onnx.NodeProto, *inputs: onnx.ValueInfoProto) -> Path:
    path = folder / "m.onnx"
    onnx.save(model(graph([split], inputs, map(value, split.output))), path)
    return path


X = value("x", FLOAT, [4, 6])


@pytest.fixture
def right(tmp_path: Path) -> Path:
    return save(tmp_path, node("Split", "x", "a b", name="s", num_outputs=2), X)


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    return save(tmp_path, node("Split", "x", "a b c", name="s\x1b[31m", num_outputs=2), X)


@pytest.fixture
def warned(tmp_path: Path) -> Path:
    return save(tmp_path, node("Split", "x l", "a b", name="s"), X, value("l", INT64, [2]))


def test_a_clean_model(run: Command, right: Path) -> None:
    assert run(right) == (0, "no findings in 1 split node\n", "")


def test_an_error_is_status_1_and_no_name_steers_the_terminal(run: Command, wrong: Path) -> None:
    ended = run(wrong)
    assert ended.status == 1
    assert "error [TS305] num_outputs: " in ended.out
    assert ended.out.endswith("1 error in 1 split node\n")
    assert "\x1b" not in ended.out


def test_a_terminal_gets_the_same_words(
    run: Command, wrong: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("TERM", "dumb")
    ended = run(wrong)
    assert "error [TS305] num_outputs: " in ended.out
    assert ended.out.endswith("1 error in 1 split node\n")
    assert "\x1b[31m" not in ended.out


def test_warnings_count_if_strict(run: Command, warned: Path) -> None:
    assert run(warned).status == 0
    assert run(warned, "--strict").status == 1


def test_a_target(run: Command, tmp_path: Path) -> None:
    split = node("Split", "x", "a b", name="s", num_outputs=2)
    path = save(tmp_path, split, value("x", FLOAT, ["N", 6]))
    assert run(path).status == 0
    ended = run(path, "--for", "openvino")
    assert ended.status == 1
    assert "tensorsplit lower MODEL --for openvino" in ended.out


def test_json_and_sarif(run: Command, wrong: Path) -> None:
    ended = run(wrong, "--format", "json")
    assert ended.status == 1
    assert json.loads(ended.out)["model"] == str(wrong)
    ended = run(wrong, "--format", "sarif")
    assert ended.status == 1
    assert json.loads(ended.out)["runs"][0]["results"][0]["ruleId"] == "TS305"


def test_a_pipe(run: Command, wrong: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(wrong.read_bytes()))
    monkeypatch.setattr(sys, "stdin", stdin)
    ended = run("-", "--format", "json")
    assert ended.status == 1
    assert json.loads(ended.out)["model"] == "stdin"


@pytest.mark.parametrize("data", [b"", b"no model"])
def test_a_pipe_that_holds_no_model(
    run: Command, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    ended = run("-")
    assert (ended.status, ended.out) == (2, "")
    assert "[TS501]" in ended.err


def test_what_cannot_be_read_is_status_2(run: Command, right: Path, tmp_path: Path) -> None:
    for args, code in (
        ([tmp_path / "missing.onnx"], "TS501"),
        ([right, "--for", "tensorrt"], "TS601"),
        ([right, "--format", "xml"], "TS703"),
    ):
        ended = run(*args)
        assert (ended.status, ended.out) == (2, "")
        assert ended.err.startswith("tensorsplit: error: ")
        assert f"[{code}]" in ended.err
        assert ended.err.count("\n") == 1
