"""``tensorsplit lower``: what it prints and writes, and how it ends."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tensorsplit import engines
from tensorsplit.cli.verifying import _lines, same_as
from tensorsplit.core.errors import USAGE, SplitError
from tensorsplit.engines.compare import Difference
from tensorsplit.engines.verification import EngineResult, Verification
from tensorsplit.model import profiles
from tensorsplit.model.lower import lower as lower_model
from tensorsplit.model.lower import lower_graph
from tensorsplit.model.reading import open_model, read_model
from tests.cli.conftest import Command
from tests.model.ir_files import cut_file, words
from tests.model.lower.corpus import CASES

BY_NAME = {case.name: case for case in CASES}


@pytest.fixture
def run(tensorsplit: Command) -> Command:
    """Runs ``tensorsplit lower``."""
    return partial(tensorsplit, "lower")


@pytest.fixture
def save(tmp_path: Path) -> Callable[[str], Path]:
    def _save(name: str) -> Path:
        path = tmp_path / "model.onnx"
        onnx.save(BY_NAME[name].model, path)
        return path

    return _save


Save = Callable[[str], Path]


def test_it_writes_the_model_and_says_what_changed(
    run: Command, save: Save, tmp_path: Path
) -> None:
    out = tmp_path / "out.onnx"
    ended = run(save("split18_uneven_dynamic"), "--for", "portable", "-o", out)
    assert (ended.status, ended.err) == (0, "")
    assert "graph/Split[0]: Split -> Split with explicit lengths" in ended.out
    assert "because portable" in ended.out
    assert "is a copy of it" not in ended.out
    expected = lower_model(BY_NAME["split18_uneven_dynamic"].model, target="portable")
    assert onnx.load(out) == expected


def test_a_model_that_the_target_runs_is_copied(run: Command, save: Save, tmp_path: Path) -> None:
    (tmp_path / "ir").mkdir()
    for source in (save("split2"), cut_file().save(tmp_path / "ir")):
        out = tmp_path / f"out{source.suffix}"
        ended = run(source, "--for", "openvino", "-o", out)
        assert ended.status == 0
        assert "nothing was changed" in ended.out
        assert f"{out} is a copy of it" in ended.out
        assert out.read_bytes() == source.read_bytes()


def test_an_ir_is_lowered_to_one_and_what_changed_is_said(run: Command, tmp_path: Path) -> None:
    out = tmp_path / "out.xml"
    ended = run(words(tmp_path), "--for", "openvino", "-o", out)
    assert (ended.status, "VariadicSplit ->" in ended.out) == (0, True)
    assert out.with_suffix(".bin").exists()


def test_what_the_target_may_still_do_wrong_is_noted(run: Command, save: Save) -> None:
    source = save("split13_equal_alike_N")
    report = lower_graph(open_model(read_model(source)), "openvino")
    ended = run(source, "--for", "openvino", "--dry-run")
    assert report.notes
    assert [line for line in ended.out.splitlines() if line.startswith("note: ")] == [
        f"note: {note}" for note in report.notes
    ]


def test_a_dry_run_writes_nothing(run: Command, save: Save, tmp_path: Path) -> None:
    ended = run(save("chunk_dynamic"), "--for", "openvino", "--dry-run")
    assert ended.status == 0
    assert "SplitToSequence" in ended.out
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]


def test_the_same_path_may_be_input_and_output(run: Command, save: Save) -> None:
    path = save("chunk_dynamic")
    assert run(path, "--for", "portable", "-o", path).status == 0
    assert "SplitToSequence" not in {node.op_type for node in onnx.load(path).graph.node}


@pytest.mark.parametrize("shape", ["x:9,4", "x:9x4", "9x4"])
def test_verify_runs_both_models(run: Command, save: Save, shape: str) -> None:
    ended = run(
        save("chunk_dynamic"),
        *("--for", "portable", "--dry-run", "--verify", "--input-shape", shape),
    )
    assert ended.status == 0
    assert "verified: on random inputs, tensorsplit gives the same bits" in ended.out


def test_a_shape_that_no_memory_holds_is_one_line(run: Command, save: Save) -> None:
    shape = f"x:{2**62},{2**62}"
    words = ("--for", "portable", "--dry-run", "--verify", "--input-shape", shape)
    ended = run(save("chunk_dynamic"), *words)
    assert ended == (2, "", "tensorsplit: error: out of memory\n")


CALCULATES = onnx.parser.parse_model(
    '<ir_version: 10, opset_import: ["": 18]>'
    " g (float[N,64] x, float[64,64] w) => (float[?,?] a, float[?,?] b, float[?,?] y)"
    " {a, b = Split<axis=1, num_outputs=2>(x) y = MatMul(x, w)}"
)


@pytest.fixture
def calculating(tmp_path: Path, rng: np.random.Generator) -> list[object]:
    """A model that splits and multiplies, and numbers whose products are rounded."""
    onnx.save(CALCULATES, tmp_path / "model.onnx")
    words: list[object] = [tmp_path / "model.onnx"]
    for name, shape in (("x", (9, 64)), ("w", (64, 64))):
        np.save(tmp_path / f"{name}.npy", rng.standard_normal(shape).astype(np.float32))
        words += ["--input", f"{name}={tmp_path / name}.npy"]
    return words


@pytest.mark.engine
@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_sums_may_be_rounded_otherwise(
    run: Command, calculating: list[object], engine: str
) -> None:
    pytest.importorskip(engine)
    words = (*calculating, "--for", engine, "--dry-run", "--verify")
    ended = run(*words)
    assert (ended.status, ended.err) == (0, "")
    assert "verified: on the inputs given, tensorsplit gives the same bits\n" in ended.out
    assert f"verified: on the inputs given, {engine} gives the same bits" in ended.out
    exact = run(*words, "--rtol", 0, "--atol", 0)
    if "up to rounding of y\n" in ended.out:
        assert f"{engine} gives the same bits of a, b, and the same up to" in ended.out
        assert exact.status == 1
        assert f"NOT verified: {engine}: output 'y': " in exact.out
        assert "; --rtol 0 and --atol 0 ask for the same bits" in exact.out
        assert f"the original model: {engine}: output 'y': " in exact.out


def test_an_engine_that_is_not_installed_is_not_run(
    run: Command, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tensorsplit.engines.engine_names.find_spec", lambda _: None)
    ended = run(save("split2"), "--for", "onnxruntime", "--dry-run", "--verify")
    assert ended.status == 0
    assert "onnxruntime is not installed, and was not run\n" in ended.out
    assert "tensorsplit gives the same bits" in ended.out


def test_values_that_the_target_changes_are_told_on_standard_error(
    run: Command, save: Save
) -> None:
    ended = run(save("split13_double"), "--for", "openvino", "--dry-run")
    assert ended.status == 0
    assert ended.err.startswith("tensorsplit: warning: openvino ")
    assert ": every value that float32 does not hold becomes the nearest one" in ended.err
    assert ended.err.count("\n") == 1
    assert "D16" not in ended.out


@pytest.mark.parametrize("sizes", [("--rtol", "nan"), ("--atol", "-1"), ("--rtol", "x")])
def test_a_tolerance_is_a_size(run: Command, save: Save, sizes: tuple[str, ...]) -> None:
    ended = run(save("split2"), "--for", "portable", "--dry-run", "--verify", *sizes)
    assert ended.status == 2
    assert f"Invalid value for '{sizes[0]}'" in ended.err


@pytest.mark.engine
def test_verify_runs_the_engine_that_a_profile_file_is_about(
    run: Command, save: Save, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime")
    measured = max(Path(profiles.__file__).parent.glob("onnxruntime-[0-9]*.json"))
    profile = tmp_path / measured.name
    profile.write_bytes(measured.read_bytes())
    ended = run(
        save("chunk_dynamic"),
        *("--for", profile, "--dry-run", "--verify", "--input-shape", "x:7,4"),
    )
    assert ended.status == 0, ended.err
    assert "onnxruntime gives the same bits" in ended.out


def test_verify_takes_inputs_from_files(run: Command, save: Save, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((7, 2), np.float32))
    np.save(tmp_path / "i.npy", np.array(1))
    ended = run(
        save("sequence_runtime_index"),
        *("--for", "portable", "--dry-run", "--verify"),
        *("--input", f"x={tmp_path / 'x.npy'}", "--input", f"i={tmp_path / 'i.npy'}"),
    )
    assert ended.status == 0
    assert "verified: on the inputs given" in ended.out


def test_a_mismatch_ends_with_1_and_writes_nothing(
    run: Command, save: Save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*args: Any, **kwargs: Any) -> dict[str, Any]:
        outputs = engines.run(*args, **kwargs)
        return {name: part + np.ones((), part.dtype) for name, part in outputs.items()}

    monkeypatch.setattr("tensorsplit.engines.compare.run", wrong)
    out = tmp_path / "out.onnx"
    ended = run(save("chunk_dynamic"), "--for", "portable", "-o", out, "--verify", "--atol", "9")
    assert ended.status == 1
    assert "values differ, largest difference 1; the first at [0, 0] is" in ended.out
    assert "this output is only moved, never computed, so it must match bit for bit" in ended.out
    assert not out.exists()
    piped = run(save("chunk_dynamic"), "--for", "portable", "-o", "-", "--verify")
    assert (piped.status, piped.out) == (1, "")
    assert "tensorsplit: NOT verified: tensorsplit: output '" in piped.err


def test_random_inputs_that_do_not_fit_say_what_to_give(run: Command, save: Save) -> None:
    shape = ("--input-shape", "x:6,4")
    words = ("--for", "portable", "--dry-run", "--verify", *shape)
    ended = run(save("split2"), *words)
    assert ended.status == 2
    assert "--input-shape x:6 " in ended.err or "--input x=FILE" in ended.err


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("--for", "portable"), "TS703"),
        (("--for", "nothing", "--dry-run"), "TS601"),
        (("--dry-run",), "TS703"),
        (("--for", "portable", "--dry-run", "--rtol", "1"), "TS703"),
        (("--for", "portable", "--dry-run", "--verify", "--input-shape", "x:a"), "TS703"),
        (("--for", "portable", "--dry-run", "--verify", "--input-shape", "z:1"), "TS703"),
    ],
)
def test_wrong_usage_is_one_line(
    run: Command, save: Save, args: tuple[str, ...], code: str
) -> None:
    ended = run(save("chunk_dynamic"), *args)
    assert ended.status == 2
    assert code in ended.err
    assert ended.err.count("\n") == 1


def test_a_refusal_leaves_the_old_file(run: Command, save: Save, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    out.write_bytes(b"old")
    ended = run(save("sequence_output"), "--for", "openvino", "-o", out, "--overwrite")
    assert ended.status == 2
    assert "TS513" in ended.err
    assert out.read_bytes() == b"old"


def test_pipes_carry_models(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    class Pipe:
        def __init__(self, data: bytes) -> None:
            self.buffer = io.BytesIO(data)

        encoding = "utf-8"

        def write(self, text: str) -> int:
            raise AssertionError(text)

        def flush(self) -> None:
            pass

    out = Pipe(b"")
    monkeypatch.setattr(sys, "stdin", Pipe(BY_NAME["split18_even"].model.SerializeToString()))
    monkeypatch.setattr(sys, "stdout", out)
    assert run("-", "--for", "portable", "-o", "-").status == 0
    made = onnx.ModelProto.FromString(out.buffer.getvalue())
    assert made == lower_model(BY_NAME["split18_even"].model, target="portable")


def differs(output: str, *, is_allowed: bool) -> Difference:
    return Difference("E", "R", output, "shape", "(2,)", "(3,)", is_allowed=is_allowed)


@pytest.mark.parametrize(
    ("outputs", "same"),
    [
        ([], "the same bits"),
        (["y"], "the same bits of s, x[0], and the same up to rounding of y"),
        (["s[1]", "s[0]"], "the same bits of y, x[0], and the same up to rounding of s"),
        (["x[0]", "y", "s[0]"], "the same up to rounding of x[0], y, s"),
    ],
)
def test_what_is_the_same_in_every_bit_and_what_up_to_rounding(
    outputs: list[str], same: str
) -> None:
    found = [differs(output, is_allowed=True) for output in outputs]
    assert same_as(found, {"s": [], "y": 0, "x[0]": 0}) == same


def test_what_a_verification_found_is_told_in_lines() -> None:
    wrong, rounded = differs("y", is_allowed=False), differs("x", is_allowed=True)
    found = Verification(
        "R",
        {},
        {"x": 0, "y": 0},
        (
            EngineResult("R", (rounded,)),
            EngineResult("E", (wrong, rounded), (rounded, differs("x", is_allowed=False))),
        ),
        missing=("openvino",),
        refusal=SplitError(USAGE, "no"),
    )
    rounding = "and the same up to rounding of x"
    words = "E: output '{}': shape (3,), but R has (2,)".format
    assert list(_lines(found, "the inputs given")) == [
        "openvino is not installed, and was not run",
        "tensorsplit does not run it: [TS703] no",
        f"verified: on the inputs given, R gives the same bits of y, {rounding}",
        f"  {words('x')}",
        f"NOT verified: {words('y')}",
        f"the original model: {words('x')}",
    ]


@pytest.mark.parametrize(
    "option",
    [("--rtol", "0"), ("--atol", "0"), ("--timeout", "5"), ("--save-inputs", "failing.npz")],
)
def test_options_of_a_verification_need_one(
    refused: Callable[..., str], tmp_path: Path, option: tuple[str, str]
) -> None:
    assert f"{option[0]} needs --verify" in refused(
        "TS703", "lower", str(tmp_path), "--for", "portable", "--dry-run", *option
    )
