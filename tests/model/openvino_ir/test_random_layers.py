"""Random IRs through every tool and OpenVINO; ``tests.fuzz.graphs --irs`` takes thousands more."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import tensorsplit as ts
from tests.fuzz import graphs
from tests.model.openvino_ir import ir_checks, layers
from tests.model.openvino_ir.ir_checks import CHECKS, IrCase
from tests.model.openvino_ir.random_layers import random_layers
from tests.model.programs import Graph, Program, Step, declaration
from tests.model.random_checks import Wrong, failure
from tests.model.shrinking import all_steps, constant, shrunk

pytestmark = pytest.mark.engine("openvino")


def test_they_have_everything() -> None:
    programs = [random_layers(seed) for seed in range(40)]
    used = {step.op_type for program in programs for step in all_steps(program)}
    assert used > {"VariadicSplit", "Split", "If", "Loop", "TensorIterator", "StridedSlice"}
    cases = [case for case in map(ir_checks.case_of, programs) if case is not None]
    assert len(cases) > 38
    assert sum(len(case.legal) for case in cases) > 60
    assert sum(len(case.illegal) for case in cases) > 5


@pytest.mark.parametrize("irs", ["layers", "converted"])
def test_the_tools_are_right(irs: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.fuzz.graphs", "--irs", irs, "--models", "25"]
    command += ["--seed", "100", "--processes", "1", "--keep", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout
    assert "lowered, right: " in done.stdout


def program(*lengths: int) -> Program:
    """Make a split whose lengths are fed, a legal and an illegal feed."""
    x = np.arange(1, 7, dtype=np.float32)
    given = np.array(lengths)
    steps = [
        constant("axis", np.array(0)),
        Step("VariadicSplit", ["x", "axis", "l"], ["a", "b"], {}, layers.variadic_split, "opset1"),
    ]
    declared = {"x": declaration("x", x, ["?"]), "l": declaration("l", given, [2])}
    graph = Graph(steps, ["x", "l"], ["a", "b"], declared, {"x": x, "l": given, "a": x, "b": x})
    feeds = [{"x": x, "l": given}, {"x": x, "l": np.array([3, 4])}]
    return Program(graph, {}, 24, 10, feeds)


def case_of(*lengths: int) -> IrCase:
    """Make the case of that program."""
    made = ir_checks.case_of(program(*lengths))
    assert made is not None
    assert (len(made.legal), len(made.illegal)) == (1, 1)
    return made


class TestChecks:
    """Each check sees a tool that is wrong."""

    def test_all_is_well(self) -> None:
        for check in CHECKS.values():
            check(case_of(2, 4))

    def test_other_values(self, monkeypatch: pytest.MonkeyPatch) -> None:
        convert = ts.convert

        def wrong(path: Path, **options: Any) -> Any:
            made = convert(path, **options)
            outputs = made.graph.output
            first = onnx.ValueInfoProto.FromString(outputs[0].SerializeToString())
            del outputs[0]
            outputs.append(first)
            return made

        monkeypatch.setattr(ts, "convert", wrong)
        with pytest.raises(Wrong, match="values"):
            CHECKS["run"](case_of(2, 4))

    def test_an_error_that_is_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        case = case_of(2, 4)
        (first, *_) = ts.check(case.path, target="openvino")
        wrong = replace(first, severity="error")
        monkeypatch.setattr(ts, "check", lambda *_, **__: [wrong])
        with pytest.raises(Wrong, match="finding: "):
            CHECKS["check"](case)

    def test_silence(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ts, "check", lambda *_, **__: [])
        case = case_of(2, 4)
        case.wanted[0] = (case.feeds[0][0], {"a": np.zeros(1), "b": np.zeros(1)})
        with pytest.raises(Wrong, match="nothing was found"):
            CHECKS["check"](case)

    def test_a_shape_that_is_not_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        case = case_of(2, 4)
        inferred = ts.infer_shapes(case.path)
        inferred.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 5
        monkeypatch.setattr(ts, "infer_shapes", lambda *_: inferred)
        with pytest.raises(Wrong, match="inferred dimension"):
            CHECKS["infer"](case)

    def test_a_lowering_that_checks_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        case = case_of(2, 4)

        def unchanged(path: Path, **_: object) -> Any:
            return replace(lower(path, target="openvino"), text=path.read_bytes(), added=b"")

        lower = ts.lower
        monkeypatch.setattr(ts, "lower", unchanged)
        case.wanted[1] = (case.feeds[0][0], None)
        with pytest.raises(Wrong, match="illegal data was not refused"):
            CHECKS["lower"](case)

    def test_a_lowering_that_goes_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        lower = ts.lower
        monkeypatch.setattr(ts, "lower", lambda path, **_: more(lower(path, target="openvino")))

        def more(made: Any) -> Any:
            return replace(made, text=made.text + b"\n")

        with pytest.raises(Wrong, match="lowered twice"):
            CHECKS["lower"](case_of(2, 4))

    def test_a_file_that_was_changed(self) -> None:
        error = failure(lambda case: case.path.write_bytes(b""), case_of(2, 4))
        assert "no longer the same" in str(error)


def test_what_fails_is_shrunk() -> None:
    def fails(made: Program) -> bool:
        case = ir_checks.case_of(made)
        return case is not None and b'type="TensorIterator"' in case.xml

    first = next(made for made in map(random_layers, range(60)) if fails(made))
    smallest = shrunk(first, fails)
    assert len(first.graph.steps) > 5
    assert [step.op_type for step in smallest.graph.steps if step.op_type != "Constant"] == [
        "TensorIterator"
    ]


def test_a_failure_can_be_checked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ts, "infer_shapes", lambda _: 1 / 0)
    monkeypatch.setattr(graphs, "random_layers", lambda _: program(2, 4))
    outcome = graphs.check_seed(7, (), tmp_path, irs="layers")
    assert [name for name, *_ in outcome.failures] == ["infer"]
    assert graphs.main(["--again", str(tmp_path / "7-infer")]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().out
    monkeypatch.undo()
    assert graphs.main(["--again", str(tmp_path / "7-infer")]) == 0
