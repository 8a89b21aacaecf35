"""``tensorsplit convert``: what it prints and writes, and how it ends."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto

from tensorsplit.model.convert import convert
from tests.cli.conftest import Command
from tests.model.build import FLOAT, INT64, graph, model, node, value

X = value("x", FLOAT, ["N", 4])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A Split at opset 11."""
    path = tmp_path / "in.onnx"
    split = node("Split", "x", "a b", axis=1, split=[1, 3], name="s")
    parts = [value(name, FLOAT, [None, None]) for name in "ab"]
    onnx.save(model(graph([split], [X], parts), 11), path)
    return path


def test_it_writes_the_model_and_a_table(
    tensorsplit: Command, source: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.onnx"
    ended = tensorsplit("convert", source, "--opset", 18, "-o", out)
    assert (ended.status, ended.err) == (0, "")
    rows = [line.split() for line in ended.out.splitlines()]
    assert ["opset", "ai.onnx", "11", "18"] in rows
    assert ["Split", "1", "1"] in rows
    assert ["inputs", "x", "x"] in rows
    assert onnx.load(out) == convert(source, 18)


def test_input_and_output_may_be_the_same_file(tensorsplit: Command, source: Path) -> None:
    expected = convert(source, 13)
    assert tensorsplit("convert", source, "--opset", 13, "-o", source).status == 0
    assert onnx.load(source) == expected


def test_a_dry_run_writes_nothing(tensorsplit: Command, source: Path) -> None:
    before = source.read_bytes()
    ended = tensorsplit("convert", source, "--opset", 13, "--dry-run")
    assert ended.status == 0
    assert "opset ai.onnx" in ended.out
    assert source.read_bytes() == before
    assert [path.name for path in source.parent.iterdir()] == [source.name]


def test_a_model_that_is_there_already_keeps_its_bytes(
    tensorsplit: Command, source: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.onnx"
    ended = tensorsplit("convert", source, "--opset", 11, "-o", out)
    assert "at opset 11 already" in ended.out
    assert out.read_bytes() == source.read_bytes()


def test_a_dash_reads_and_writes_pipes(
    tensorsplit: Command, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Pipe:
        def __init__(self, data: bytes = b"") -> None:
            self.buffer = io.BytesIO(data)
            self.encoding = "utf-8"

        def write(self, text: str) -> None:
            raise AssertionError(text)

        def flush(self) -> None:
            pass

        def isatty(self) -> bool:
            return False

    out = Pipe()
    monkeypatch.setattr(sys, "stdin", Pipe(source.read_bytes()))
    monkeypatch.setattr(sys, "stdout", out)
    assert tensorsplit("convert", "-", "--opset", 18, "-o", "-").status == 0
    assert ModelProto.FromString(out.buffer.getvalue()) == convert(source, 18)


def test_a_refusal_leaves_the_old_file(
    refused: Callable[..., str], tmp_path: Path, source: Path
) -> None:
    split = node("Split", "x k", "a b", name="here")
    parts = [value(name, FLOAT, [None, None]) for name in "ab"]
    at_run_time = tmp_path / "run.onnx"
    onnx.save(model(graph([split], [X, value("k", INT64, [2])], parts), 13), at_run_time)
    before = source.read_bytes()
    message = refused("TS310", "convert", at_run_time, "--opset", 9, "-o", source, "--overwrite")
    assert "graph/here" in message
    assert source.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--opset", "99", "-o", "o"], "TS101"),
        (["--opset", "0", "-o", "o"], "TS101"),
        (["--opset", "x", "-o", "o"], "TS703"),
        (["-o", "o"], "TS703"),
        (["--opset", "13"], "TS703"),
    ],
)
def test_wrong_usage_is_refused(
    refused: Callable[..., str], source: Path, words: list[str], code: str
) -> None:
    refused(code, "convert", source, *words)


def test_what_is_no_model_is_refused(refused: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "no.onnx"
    path.write_bytes(b"\x0a\x05hello, this is not a model")
    refused("TS501", "convert", path, "--opset", 13, "-o", path)
    refused("TS501", "convert", tmp_path / "none.onnx", "--opset", 13, "-o", tmp_path / "out")


def test_splits_become_variadic_and_come_back(
    tensorsplit: Command, source: Path, tmp_path: Path
) -> None:
    out, back = tmp_path / "variadic.onnx", tmp_path / "back.onnx"
    ended = tensorsplit("convert", source, "--opset", 13, "--to-variadic", "-o", out)
    assert (ended.status, ended.err) == (0, "")
    rows = [line.split() for line in ended.out.splitlines()]
    assert ["VariadicSplit", "-", "1"] in rows
    assert onnx.load(out) == convert(source, 13, variadic=True)
    assert tensorsplit("lower", out, "--for", "portable", "-o", back).status == 0
    assert [entry.op_type for entry in onnx.load(back).graph.node][-1] == "Split"


def test_one_of_the_two_must_be_asked_for(tensorsplit: Command, source: Path) -> None:
    ended = tensorsplit("convert", source, "--dry-run")
    assert ended.status == 2
    assert "--to-variadic" in ended.err


NORM = onnx.parser.parse_model(
    '<ir_version: 10, opset_import: ["": 18]>'
    " g (float[N,6] x, float[6] w) => (float[?,?] a, float[?,?] b, float[?,?] y, float[?,?] z)"
    " {a, b = Split<axis=1, num_outputs=2>(x) y = LayerNormalization(x, w)"
    " axes = Constant<value_ints=[0]>() s = ReduceMax(x, axes) z = CastLike(s, w)}"
)


@pytest.fixture
def norm(tmp_path: Path, rng: np.random.Generator) -> list[object]:
    """A model with a LayerNormalization, and inputs for it."""
    path = tmp_path / "norm.onnx"
    onnx.save(NORM, path)
    words: list[object] = [path]
    for name, shape in (("x", (5, 6)), ("w", (6,))):
        np.save(tmp_path / f"{name}.npy", rng.standard_normal(shape).astype(np.float32))
        words += ["--input", f"{name}={tmp_path / name}.npy"]
    return words


def test_every_rewritten_operator_is_told_as_exact_or_rounded(
    tensorsplit: Command, norm: list[object]
) -> None:
    ended = tensorsplit("convert", norm[0], "--opset", 13, "--dry-run")
    exact, rounded = ended.out.split("rewritten, up to rounding:\n")
    assert exact.startswith("rewritten, exact:\n")
    for each in ("Split (graph/Split[0])", "ReduceMax (graph/", "CastLike (graph/"):
        assert f"  {each}" in exact
    assert rounded.startswith("  LayerNormalization -> ")
    assert "ReduceMean, " in rounded.splitlines()[0]


def test_what_is_converted_is_verified(
    tensorsplit: Command, norm: list[object], tmp_path: Path
) -> None:
    out = tmp_path / "out.onnx"
    words = ("convert", *norm, "--opset", 13, "-o", out, "--verify")
    ended = tensorsplit(*words)
    assert (ended.status, ended.err) == (0, "")
    assert "verified: on the inputs given, tensorsplit gives the same bits" in ended.out
    assert onnx.load(out) == convert(NORM, 13)
    out.unlink()
    exact = tensorsplit(*words, "--rtol", 0, "--atol", 0)
    if "up to rounding of y\n" in ended.out:
        assert (exact.status, out.exists()) == (1, False)
        assert "NOT verified: tensorsplit: output 'y': " in exact.out


@pytest.mark.engine
def test_both_models_run_on_another_engine(tensorsplit: Command, norm: list[object]) -> None:
    pytest.importorskip("onnxruntime")
    words = ("convert", *norm, "--opset", 17, "--dry-run", "--verify", "--engine", "onnxruntime")
    ended = tensorsplit(*words)
    assert ended.status == 0
    assert "verified: on the inputs given, onnxruntime gives the same bits" in ended.out


def test_an_engine_is_for_verifying(refused: Callable[..., str], norm: list[object]) -> None:
    words = ("convert", *norm, "--opset", 17, "--dry-run")
    refused("TS703", *words, "--engine", "onnxruntime")
    refused("TS703", *words, "--atol", 1)
    refused("TS601", *words, "--verify", "--engine", "nothing")
