"""Reproductions: scripts that run without this package, and show what the suite has seen."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest

from tensorsplit.conformance.case import Case
from tensorsplit.conformance.cases import all_cases
from tensorsplit.conformance.repro import _literal, contents, model_text, script
from tests.conformance.fakes import case

needs_onnxruntime = pytest.mark.engine("onnxruntime")
needs_openvino = pytest.mark.engine("openvino")


def run(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script in a Python that sees installed packages and nothing else."""
    path = folder / "repro.py"
    path.write_text(text)
    return subprocess.run(
        [sys.executable, "-I", path],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def first(**wanted: object) -> Case:
    """The first case of the suite of which all this is true."""
    return next(
        case
        for case in all_cases()
        if all(getattr(case, name) == value for name, value in wanted.items())
    )


def test_a_pass_is_shown_as_one(tmp_path: Path) -> None:
    done = run(script(case("legal"), "onnx-reference"), tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "y0: as the standard says\ny1: as the standard says\n"


@pytest.mark.parametrize(
    "array",
    [
        np.array([1.1, -0.0, 3e-45], np.float32),
        np.array([[np.inf], [-0.0]]),
        np.frombuffer(b"\1\0\xa0\x7f", np.float32),  # a NaN that signals
        np.array(2.5, np.float16),
        np.array([[1, 2]], ml_dtypes.bfloat16),
        np.array([7, -8], ml_dtypes.int4),
        np.array([[True], [False]]),
        np.array([complex(-0.0, 1), complex(1, -0.0)], np.complex64),
        np.array(1 << 63, np.uint64),
        np.zeros((0, 3), np.int8),
    ],
)
def test_an_array_has_the_same_bits_in_a_script(array: np.ndarray) -> None:
    made = eval(_literal(array), {"np": np, "ml_dtypes": ml_dtypes})
    assert (made.dtype, made.shape, made.tobytes()) == (array.dtype, array.shape, array.tobytes())


def test_a_script_imports_in_order() -> None:
    """So that it is the same from every process."""
    for subject in ("onnx-reference", "openvino"):
        lines = script(case("legal"), subject).splitlines()
        (start,) = (at for at, line in enumerate(lines) if line.startswith("from __future__"))
        imports = lines[start + 1 : lines.index("", start)]
        assert len(imports) > 2
        assert imports == sorted(imports)


def test_the_contents_of_a_case_are_lines_of_its_script() -> None:
    lines = script(case("legal"), "onnx-reference").splitlines()
    texts = contents(case("legal"))
    assert "y0, y1 = Split" in texts["model"]
    assert "'x': np.array(" in texts["input"]
    assert [line.partition(":")[0].strip() for line in texts["expected"].splitlines()] == [
        "'y0'",
        "'y1'",
    ]
    assert set("\n".join(texts.values()).splitlines()) <= set(lines)


def test_the_contents_of_a_refusal_and_of_an_ir() -> None:
    refusal = first(expects="refusal", model_format="ir")
    texts = contents(refusal)
    assert texts["expected"] == ""
    assert texts["model"].startswith("<?xml")
    assert texts["model"] == refusal.build().model.decode()


@pytest.mark.parametrize("element_type", ["float", "int64", "string"])
def test_wrong_values_are_shown_beside_the_right_ones(element_type: str, tmp_path: Path) -> None:
    """A script that claims other values than the engine gives, to see that it compares them."""
    text = script(case("legal", element_type=element_type), "onnx-reference")
    head, expected, rest = text.partition("EXPECTED = {")
    wrong = expected + rest.replace(".reshape((1, 3))", ".reshape((3, 1))", 1)
    done = run(head + wrong, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "y0: WRONG" in done.stdout
    assert "y1: as the standard says" in done.stdout
    assert "it must be" in done.stdout


def test_what_should_be_refused_is_shown_to_run(tmp_path: Path) -> None:
    """D6: the reference drops what the lengths leave out."""
    asked = case("short", lengths=(1, 2), legal=False)
    done = run(script(asked, "onnx-reference"), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "WRONG: it should refuse, but gives" in done.stdout


@pytest.mark.parametrize("engine", [pytest.param("onnxruntime", marks=needs_onnxruntime)])
def test_a_crash_is_shown_by_dying_of_it(engine: str, tmp_path: Path) -> None:
    """D5: fewer parts than outputs end the process in onnx's shape inference, which it calls."""
    asked = next(
        each for each in all_cases() if "/static-r1/attribute/graph/refuse-count1-" in each.id
    )
    assert run(script(asked, engine), tmp_path).returncode == -signal.SIGABRT


@pytest.mark.parametrize("engine", [pytest.param("openvino", marks=needs_openvino)])
def test_openvino_is_shown_to_round_integers(engine: str, tmp_path: Path) -> None:
    """D16."""
    asked = case("wide", element_type="int64", shape=(4,), data=[2**40 + 1, 2, 3, 4])
    done = run(script(asked, engine), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "y0: WRONG\nit is array([1])\nit must be array([1099511627777])" in done.stdout


@pytest.mark.parametrize("engine", [pytest.param("openvino", marks=needs_openvino)])
def test_an_ir_runs_from_its_text_and_weights(engine: str, tmp_path: Path) -> None:
    asked = first(model_format="ir", expects="parts", element_type="float")
    done = run(script(asked, engine), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "as the standard says" in done.stdout


def test_a_tools_result_is_printed(tmp_path: Path) -> None:
    done = run(script(case("legal"), "onnx-shape-inference"), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "float[1,3] y0, float[3,3] y1" in done.stdout


@pytest.mark.parametrize("engine", ["onnx-reference", "onnxruntime", "onnx-version-converter"])
def test_a_script_needs_nothing_of_ours(engine: str) -> None:
    for asked in all_cases()[:: len(all_cases()) // 50]:
        text = script(asked, engine)
        compile(text, "repro.py", "exec")
        assert "import tensorsplit" not in text
        assert text.startswith(f"# {asked.id}\n")


def test_an_adapter_that_is_no_function_leaves_a_note(tmp_path: Path) -> None:
    path = tmp_path / "partly.py"
    path.write_text(
        "import functools\n"
        'KIND, PACKAGES, FORMATS = "engine", (), ("onnx",)\n'
        "run = functools.partial(dict)\n"
    )
    text = script(case("legal"), str(path))
    compile(text, "repro.py", "exec")
    assert "# Define run here: functools.partial(" in text


def test_a_script_holds_all_that_an_adapter_uses(tmp_path: Path) -> None:
    path = tmp_path / "whole.py"
    path.write_text(
        "import functools\n"
        "from collections.abc import Mapping\n"
        "import onnx as standard\n"
        "from onnx.reference import ReferenceEvaluator\n"
        'KIND, PACKAGES, FORMATS = "engine", ("onnx",), ("onnx",)\n'
        "FIRST: int = 0\n"
        "LEAST = FIRST + 1\n"
        "class Engine(ReferenceEvaluator):\n"
        "    def parts(self, names: list[str], inputs: Mapping[str, object]):\n"
        "        assert len(names) >= LEAST\n"
        "        return self.run(names, dict(inputs))\n"
        "@functools.cache\n"
        "def engine(model):\n"
        "    return Engine(standard.load_from_string(model))\n"
        "def run(model, weights, inputs, outputs):\n"
        "    found = engine(model).parts(outputs, inputs)\n"
        "    return dict(zip(outputs, found))\n"
    )
    done = run(script(case("legal"), str(path)), tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "y0: as the standard says\ny1: as the standard says\n"


def test_a_script_says_which_version_it_was_written_for() -> None:
    assert f"onnx=={onnx.__version__}" in script(case("legal"), "onnx-reference")


@pytest.mark.skipif(
    tuple(map(int, onnx.__version__.split(".")[:2])) < (1, 23),
    reason="older printers lose something of bodies; scripts embed such models",
)
@pytest.mark.parametrize(
    "asked",
    [entry for entry in all_cases() if entry.model_format == "onnx"][::100],
    ids=lambda asked: asked.id,
)
def test_the_text_of_a_model_leaves_nothing_out(asked: Case) -> None:
    built = asked.build()
    text = model_text(built.model)
    assert text is not None
    again = onnx.parser.parse_model(text)
    original = onnx.load_from_string(built.model)
    assert [entry.name for entry in again.graph.input] == [
        entry.name for entry in original.graph.input
    ]
    assert again.opset_import == original.opset_import
    for mine, other in zip(again.graph.initializer, original.graph.initializer, strict=True):
        assert np.array_equal(onnx.numpy_helper.to_array(mine), onnx.numpy_helper.to_array(other))


def test_a_model_that_the_text_would_change_is_embedded(tmp_path: Path) -> None:
    asked = case("doc")
    model = onnx.load_from_string(asked.build().model)
    model.graph.doc_string = "what the text format has no words for"
    assert model_text(model.SerializeToString()) is None
