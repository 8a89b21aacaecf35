"""``tensorsplit doctor``: a verdict for each engine, and the command to run next."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import onnx
import pytest

from tensorsplit.cli.doctor_command import _command, _purpose
from tensorsplit.engines import compare, verification
from tensorsplit.engines.diagnosis import Diagnosis
from tensorsplit.engines.sessions import run as plain_run
from tensorsplit.model.reading import OnnxModel
from tests.cli.conftest import Command
from tests.model.build import FLOAT, INT64, graph, model, node, value
from tests.model.ir_files import IrFile, words

IR = Path(__file__).parents[1] / "fuzz" / "corpus" / "split.xml"
ALONE = ["tensorsplit", "onnx-reference"]


@pytest.fixture
def run(tensorsplit: Command) -> Command:
    """Runs ``tensorsplit doctor``."""
    return partial(tensorsplit, "doctor")


@pytest.fixture
def no_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides the engines that are extras."""
    for name in ("onnxruntime", "openvino"):
        monkeypatch.setitem(sys.modules, name, None)


def save(path: Path, split: onnx.NodeProto, *inputs: onnx.ValueInfoProto) -> Path:
    onnx.save(model(graph([split], inputs, map(value, split.output))), path)
    return path


@pytest.fixture
def right(tmp_path: Path) -> Path:
    return save(
        tmp_path / "m.onnx", node("Split", "x", "a b", num_outputs=2), value("x", shape=[4])
    )


@pytest.fixture
def fed(tmp_path: Path) -> Path:
    """A model that is fed its lengths; OpenVINO reads outside the buffer for some of them."""
    inputs = value("x", FLOAT, [6]), value("l", INT64, [2])
    return save(tmp_path / "my model.onnx", node("Split", "x l", "a b", name="s"), *inputs)


def verdicts(run: Command, path: Path) -> dict[str, Any]:
    ended = run(path, "--format", "json")
    engines = json.loads(ended.out)["engines"]
    assert ended.status == (0 if all(each["is_well"] for each in engines) else 1)
    return {each["engine"]: each for each in engines}


def commands(out: str) -> list[list[str]]:
    lines = (line for line in out.splitlines() if line.startswith("tensorsplit ") and "#" in line)
    return [shlex.split(line, comments=True)[1:] for line in lines]


def test_a_model_that_every_engine_runs(run: Command, right: Path) -> None:
    ended = run(right)
    assert (ended.status, ended.err) == (0, "")
    rows = ended.out.splitlines()
    assert rows[0].split() == ["engine", "verdict", "why"]
    assert rows[1].split()[:3] == ["tensorsplit", metadata.version("tensorsplit"), "fine"]
    assert rows[2].split()[:3] == ["onnx-reference", metadata.version("onnx"), "fine"]
    assert not commands(ended.out)


@pytest.mark.usefixtures("no_engines")
def test_without_other_engines(run: Command, right: Path) -> None:
    ended = run(right)
    assert ended.status == 0
    assert [row.split()[0] for row in ended.out.splitlines()[1:3]] == ALONE
    [line] = ended.out.splitlines()[4:]
    assert line.startswith("pip install ")
    assert line.endswith("[onnxruntime,openvino]'    # to try onnxruntime and openvino too")
    found = json.loads(run(right, "--format", "json").out)
    assert [each["engine"] for each in found["missing"]] == ["onnxruntime", "openvino"]


@pytest.mark.engine("openvino")
def test_an_ir_that_lowering_mends_comes_with_a_command_that_works(
    run: Command, tensorsplit: Command, tmp_path: Path
) -> None:
    """OpenVINO 2026.4 splits no strings."""
    path = words(tmp_path)
    found = verdicts(run, path)
    assert found["openvino"]["verdict"] == "fixable"
    assert found["onnx-reference"]["verdict"] == "refused"
    assert "only OpenVINO reads" in " ".join(found["onnx-reference"]["why"])
    [command] = [each for each in commands(run(path).out) if each[0] == "lower"]
    assert tensorsplit(*command).status == 0
    assert (tmp_path / "model.openvino.xml").exists()


@pytest.mark.engine("openvino")
def test_an_ir_that_openvino_alone_runs_is_compared_with_it(run: Command, tmp_path: Path) -> None:
    ir = IrFile()
    ir.result(ir.layer("ReLU", (ir.parameter("x", "f32", "4"),), 1, name="relu")[0], "y")
    found = verdicts(run, ir.save(tmp_path))
    assert found["openvino"]["verdict"] == "fine"
    assert found["tensorsplit"]["verdict"] == "not run"


@pytest.mark.usefixtures("no_engines")
def test_a_model_that_is_wrong_is_not_run(
    run: Command, tensorsplit: Command, tmp_path: Path
) -> None:
    split = node("Split", "x", "a b c", name="s", num_outputs=2)
    ended = run(save(tmp_path / "m.onnx", split, value("x", FLOAT, [4])))
    assert ended.status == 1
    assert "wrong model  graph/s: it makes 2 parts" in ended.out
    assert "not run      the model itself is wrong" in ended.out
    [command] = commands(ended.out)
    assert "[TS305]" in tensorsplit(*command).out


def test_of_an_opset_that_nobody_knows_here_nothing_is_said(
    refused: Callable[..., str], right: Path
) -> None:
    made = onnx.load(right)
    made.opset_import[0].version = 99
    onnx.save(made, right)
    assert "opset 99 is newer than the installed onnx; inst" in refused("TS101", "doctor", right)


@pytest.mark.usefixtures("no_engines")
def test_what_lowering_mends_comes_with_a_command_that_works(
    run: Command, tensorsplit: Command, fed: Path
) -> None:
    """onnx's reference drops data where lengths don't sum to the dimension."""
    found = verdicts(run, fed)
    assert {name: each["verdict"] for name, each in found.items()} == {
        "tensorsplit": "fine",
        "onnx-reference": "fixable",
    }
    assert found["onnx-reference"]["why"][0].startswith("graph/s: onnx-reference ")
    [command] = commands(run(fed).out)
    assert command == shlex.split(found["onnx-reference"]["command"])[1:]
    assert tensorsplit(*command).status == 0
    assert onnx.load(fed.with_suffix(".onnx-reference.onnx")).graph.node[-1].op_type == "Split"


@pytest.mark.usefixtures("no_engines")
def test_each_engine_runs_each_model_once(
    run: Command, fed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[str, int]] = []

    def counted(source: OnnxModel, *given: Any, engine: str = "tensorsplit", **rest: Any) -> Any:
        ran.append((engine, len(source.model.graph)))
        return plain_run(source, *given, engine=engine, **rest)

    monkeypatch.setattr(verification, "run", counted)
    monkeypatch.setattr(compare, "run", counted)
    verdicts(run, fed)
    nodes = {number for _, number in ran}
    assert len(nodes) == 2  # of the model, and of the lowered one
    assert sorted(ran) == sorted((name, number) for name in ALONE for number in nodes)


@pytest.mark.usefixtures("no_engines")
def test_what_lowering_does_not_mend(run: Command) -> None:
    found = verdicts(run, IR)["onnx-reference"]
    assert found["verdict"] == "refused"
    assert any("reads no OpenVINO IR" in why for why in found["why"])
    assert "can't be lowered" in found["why"][-1]
    assert found["command"] == f"tensorsplit check {IR} --for onnx-reference"


@pytest.mark.engine("openvino")
def test_an_engine_that_is_installed(run: Command, tensorsplit: Command, fed: Path) -> None:
    found = verdicts(run, fed)["openvino"]
    assert (found["version"], found["verdict"]) == (metadata.version("openvino"), "fixable")
    assert "memory beyond the buffer is read" in found["why"][0]
    assert tensorsplit(*shlex.split(found["command"])[1:]).status == 0
    lowered = fed.with_suffix(".openvino.onnx")
    assert "--fix" in tensorsplit("check", fed, "--for", "openvino").out
    assert "--fix" not in tensorsplit("check", lowered, "--for", "openvino").out


def test_what_can_not_be_read_is_wrong_usage(run: Command, tmp_path: Path) -> None:
    assert run(tmp_path / "no.onnx").status == 2


@pytest.mark.parametrize(
    ("path", "engine", "verdict", "warnings", "command", "purpose"),
    [
        ("m.onnx", "openvino", "fine", 0, "", None),
        ("m.onnx", "openvino", "fine", 1, "check m.onnx --for openvino", "1 warning"),
        ("m.onnx", "openvino", "not run", 0, "", None),
        ("m.onnx", "tensorsplit", "not run", 2, "", None),
        ("m.onnx", "tensorsplit", "wrong model", 0, "check m.onnx", "lists what is wrong"),
        ("-", "tensorsplit", "wrong model", 0, "check MODEL.onnx", "lists what is wrong"),
        (
            *("a b.onnx", "openvino", "fixable", 3),
            "lower 'a b.onnx' --for openvino -o 'a b.openvino.onnx' --verify",
            "writes a model that openvino runs",
        ),
        (
            *("m.onnx", "onnxruntime", "crashed", 0),
            "check m.onnx --for onnxruntime",
            "lists what onnxruntime does not run",
        ),
    ],
)
def test_the_command_that_comes_next(
    path: str, engine: str, verdict: str, warnings: int, command: str, purpose: str | None
) -> None:
    diagnosis = Diagnosis(engine, "1.0", verdict, ("it is so",), warnings)
    assert _command(path, diagnosis) == (f"tensorsplit {command}" if command else "")
    assert purpose is None or _purpose(diagnosis) == purpose
