"""A subject shows what an engine does, as it is; and anyone can bring one along."""

from __future__ import annotations

import os
import re
import signal
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

from tensorsplit import SplitError
from tensorsplit.conformance import subjects
from tensorsplit.conformance.cases import find
from tensorsplit.conformance.repro import script
from tensorsplit.conformance.runner import Subject
from tensorsplit.conformance.subjects import SUBJECTS, Unsupported, load, perform
from tests.conformance.fakes import case
from tests.interpreters import ROOT, printed, python
from tests.refusals import refused

ENGINES = [name for name in SUBJECTS if load(name).kind == "engine"]
TOOLS = [name for name in SUBJECTS if load(name).kind == "tool"]
HEAVY = ("onnxruntime", "openvino", "torch", "tvm", "iree", "cv2", "tinygrad", "jax", "onnxscript")
LIGHT = (
    "onnxslim",
    "onnxsim",
    "onnxoptimizer",
    "tract",
    "onnx2torch",
    "jaxonnxruntime",
    "sympy",
    "ncnn",
)
NAMES = {"MNN", "onnx_tool", *LIGHT, *HEAVY}

needs_engine = pytest.mark.engine


def split_model(opset: int = 13, element_type: str = "float", lengths: str = "2, 5") -> bytes:
    """A model that cuts x, of shape (2, 7), on axis 1."""
    text = f"""<ir_version: 8, opset_import: ["": {opset}]>
    cut ({element_type}[2, 7] x) => ({element_type}[2, P] a, {element_type}[2, Q] b)
    <int64[2] lengths = {{{lengths}}}> {{ a, b = Split<axis=1>(x, lengths) }}"""
    return bytes(parse_model(text).SerializeToString())


@pytest.fixture
def x(rng: np.random.Generator) -> np.ndarray[Any, Any]:
    return rng.uniform(1, 9, (2, 7)).astype(np.float32)


def installed(names: list[str]) -> list[Any]:
    """Parameters, those of which something is missing skipped."""
    return [
        pytest.param(
            name,
            marks=[
                needs_engine,
                pytest.mark.skipif(not load(name).is_installed, reason=f"{name} is not installed"),
            ],
        )
        for name in names
    ]


def refusal(name: str) -> SplitError:
    with pytest.raises(SplitError) as caught:
        load(name)
    return caught.value


@pytest.mark.parametrize("name", SUBJECTS)
def test_subject_defines_what_the_suite_needs(name: str) -> None:
    adapter = load(name)
    assert adapter.kind in {"engine", "tool"}
    assert callable(adapter.call)
    assert adapter.packages
    assert set(adapter.formats) <= {"onnx", "ir"}
    compile(script(case("legal"), name), name, "exec")


def test_few_tools_state_shapes_or_convert_upwards_only() -> None:
    shapes = {"onnx-shape-inference", "onnxruntime-shape-inference", "onnx-tool"}
    assert {name for name in SUBJECTS if SUBJECTS[name].states_shapes} == shapes
    upwards = {"onnxscript-converter"}
    assert {name for name in SUBJECTS if not SUBJECTS[name].downwards} == upwards


def test_subjects_are_looked_at_without_importing_an_engine() -> None:
    program = """
    import sys
    from tensorsplit.conformance import subjects
    for name in subjects.SUBJECTS:
        assert subjects.load(name).is_installed in (True, False)
    print(*{module.partition(".")[0] for module in sys.modules})
    """
    assert NAMES.isdisjoint(printed(program).split())


RUNS = """
import sys
import numpy as np, onnx
from tensorsplit.conformance import subjects

name, model = sys.argv[1], bytes.fromhex(sys.argv[2])
x = np.arange(1, 15, dtype=np.float32).reshape(2, 7)
found = subjects.perform(name, model, b"", {"x": x}, ["a", "b"], 18)
"""
SHOWS = """
parts = {"a": x[:, :2], "b": x[:, 2:]}
print([np.asarray(found[name]).tolist() == part.tolist() for name, part in parts.items()])
"""
RIGHT = "[True, True]"


@pytest.mark.parametrize("name", installed(ENGINES))
def test_engine_cuts_a_tensor(name: str) -> None:
    program = RUNS + SHOWS
    assert printed(program, name, split_model().hex()).splitlines()[-1] == RIGHT


@pytest.mark.parametrize("name", installed(TOOLS))
def test_tool_returns_a_model_that_means_the_same(name: str) -> None:
    program = f"""{RUNS}
import tensorsplit
found = tensorsplit.run(onnx.load_from_string(found), {{"x": x}})
{SHOWS}"""
    assert printed(program, name, split_model().hex()).splitlines()[-1] == RIGHT


@pytest.mark.parametrize("name", installed(ENGINES))
def test_script_of_an_engine_shows_the_same(name: str) -> None:
    shown = printed(script(case("legal"), name)).splitlines()
    assert shown[-2:] == ["y0: as the standard says", "y1: as the standard says"]


@pytest.mark.parametrize("name", installed(TOOLS))
def test_script_of_a_tool_shows_its_model(name: str) -> None:
    assert "Split" in printed(script(case("legal"), name))


def test_numpy_reads_ir() -> None:
    cases = find(["openvino.VariadicSplit-1/float/static-*/constant/*"])
    built = next(entry for entry in cases if entry.expects == "parts").build()
    assert built.expected is not None
    found = load("tensorsplit").call(built.model, built.weights, built.inputs, list(built.expected))
    assert {name: part.tolist() for name, part in found.items()} == {
        name: part.tolist() for name, part in built.expected.items()
    }


def test_engine_sees_illegal_models_and_answers_in_its_own_words(x: np.ndarray[Any, Any]) -> None:
    pytest.importorskip("onnxruntime")
    with pytest.raises(Exception, match="ONNXRuntimeError") as caught:
        load("onnxruntime").call(split_model(lengths="2, 4"), b"", {"x": x}, ["a", "b"])
    assert not isinstance(caught.value, SplitError | Unsupported)


@needs_engine
@pytest.mark.parametrize(
    ("name", "words"), [("onnxruntime", "complex64"), ("openvino", "Unsupported type")]
)
def test_element_type_that_an_engine_lacks_is_told_from_a_refusal(name: str, words: str) -> None:
    pytest.importorskip(name)
    x = np.ones((2, 7), np.complex64)
    with pytest.raises(Unsupported, match=words):
        perform(name, split_model(element_type="complex64"), b"", {"x": x}, ["a", "b"], 0)


def test_operator_that_the_reference_lacks_is_told_from_a_refusal(x: np.ndarray[Any, Any]) -> None:
    model = onnx.load_from_string(split_model())
    model.opset_import[0].version = 1
    with pytest.raises(Unsupported, match="Split"):
        perform("onnx-reference", model.SerializeToString(), b"", {"x": x}, ["a", "b"], 0)


def test_value_for_an_input_that_an_engine_made_a_constant_is_not_lost() -> None:
    model = onnx.load_from_string(split_model())
    feeds = {"x": 1, "lengths": 2, "unused": 3}
    serialised = model.SerializeToString()
    assert subjects.ordered(serialised, feeds, ["lengths", "x"]) == [2, 1]
    with pytest.raises(LookupError, match="default of lengths for a constant"):
        subjects.ordered(serialised, feeds, ["x"])
    with pytest.raises(LookupError, match="wants to be fed count, "):
        subjects.ordered(serialised, feeds, ["lengths", "x", "count"])


@pytest.fixture
def pnnx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program of the package pnnx, which is still to be written."""
    program = tmp_path / "pnnx" / "pnnx"
    program.parent.mkdir()
    program.with_name("__init__.py").write_text("raise ImportError('it imports PyTorch')")
    program.touch(0o755)
    monkeypatch.syspath_prepend(tmp_path)
    return program


needs_sh = pytest.mark.skipif(os.name != "posix", reason="the program is a shell script")


@needs_sh
def test_what_pnnx_says_last_is_why_it_makes_no_model(pnnx: Path, x: np.ndarray[Any, Any]) -> None:
    pnnx.write_text('#!/bin/sh\nprintf "first\\n$*\\nlast\\n" >&2')
    words = "exit status 0: model.onnx fp16=0 inputshape=[2,7]f32 last"
    with pytest.raises(RuntimeError, match=re.escape(words) + "$"):
        perform("ncnn", split_model(), b"", {"x": x}, ["a", "b"], 0)


@needs_sh
def test_what_kills_pnnx_kills_its_adapter(pnnx: Path) -> None:
    """SIGPIPE, too, which Python ignores."""
    pnnx.write_text("#!/bin/sh\nkill -PIPE $$")
    program = f"import sys\nsys.path.insert(0, sys.argv[3])\n{RUNS}"
    done = python(program, "ncnn", split_model().hex(), pnnx.parents[1])
    assert done.returncode == -signal.SIGPIPE, done.stderr


ADAPTER = """
KIND = "engine"
PACKAGES = ()
FORMATS = ("onnx",)

def run(model, weights, inputs, outputs):
    return dict.fromkeys(outputs)
"""


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    path = tmp_path / "my_engine.py"
    path.write_text(ADAPTER, "utf-8")
    return path


def test_adapter_of_a_third_party_is_loaded_from_its_path(adapter: Path) -> None:
    assert load(str(adapter)).call(b"", b"", {}, ["a"]) == {"a": None}
    subject = Subject.of(str(adapter))
    assert subject.title == "my_engine"
    assert subject.traits.is_installed
    assert subject.traits.versions() == {}


def test_adapter_of_a_third_party_is_a_module(
    adapter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(adapter.parent)
    assert load("my_engine").call(b"", b"", {}, ["a"]) == {"a": None}
    assert Subject.of("my_engine").title == "my_engine"
    assert subjects.title("package.my_engine") == "my_engine"


def test_versions_are_those_of_the_distributions(adapter: Path) -> None:
    adapter.write_text(ADAPTER.replace("PACKAGES = ()", 'PACKAGES = ("onnx",)'), "utf-8")
    assert Subject.of(str(adapter)).traits.versions() == {"onnx": metadata.version("onnx")}
    adapter.write_text(ADAPTER.replace("PACKAGES = ()", 'PACKAGES = ("no-such-dist",)'), "utf-8")
    assert not Subject.of(str(adapter)).traits.is_installed


@pytest.mark.parametrize(
    "name", ["no-such-engine", "no_such_package.engine", "missing.py", "", ".relative"]
)
def test_subject_that_does_not_exist_is_refused(name: str) -> None:
    assert refusal(name).code in {"TS601", "TS602"}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('KIND = "engine"', "KIND"),
        ("PACKAGES = ()", "PACKAGES"),
        ('FORMATS = ("onnx",)', "FORMATS"),
        ("def run(", "function run"),
    ],
)
def test_adapter_that_lacks_something_is_told_what(adapter: Path, line: str, words: str) -> None:
    replacement = "def other(" if line.startswith("def") else ""
    adapter.write_text(ADAPTER.replace(line, replacement), "utf-8")
    error = refusal(str(adapter))
    assert error.code == "TS601"
    assert words in str(error)


@pytest.mark.parametrize("name", ["missing.py", "no_suffix", "folder.py"])
def test_adapter_that_is_no_python_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder.py").mkdir()
    Path("no_suffix").write_text(ADAPTER, "utf-8")
    with refused("TS601", name, "there is no such Python file"):
        subjects.place(f"./{name}")


def test_adapter_whose_imports_are_missing_is_told_which(adapter: Path) -> None:
    adapter.write_text("import no_such_library\n" + ADAPTER, "utf-8")
    error = refusal(str(adapter))
    assert error.code == "TS602"
    assert "no_such_library" in str(error)


def test_adapter_that_exits_when_it_is_imported_is_refused(adapter: Path) -> None:
    adapter.write_text("raise SystemExit(0)\n" + ADAPTER, "utf-8")
    error = refusal(str(adapter))
    assert error.code == "TS602"
    assert "SystemExit" in str(error)


@pytest.mark.parametrize(
    ("kind", "returned", "is_result"),
    [
        ("engine", "None", False),
        ("tool", "None", False),
        ("engine", "{'y': [0] * 0xffff}", True),
        ("engine", "{'y': [0] * 0x10000}", False),  # with its name it is more than is counted
    ],
)
def test_adapter_that_returns_nothing_or_too_much_gives_no_result(
    adapter: Path, kind: str, returned: str, is_result: bool
) -> None:
    functions = f"def run(*_):\n    return {returned}\nrewrite = run\n"
    text = f'KIND = "{kind}"\nPACKAGES = ()\nFORMATS = ("onnx",)\n{functions}'
    adapter.write_text(text, "utf-8")
    assert (perform(str(adapter), split_model(), b"", {}, [], 18) is not None) is is_result


def test_the_page_shows_the_adapter_of_the_example() -> None:
    example = (ROOT / "examples/swapping_engine.py").read_text("utf-8")
    assert f"```python\n{example}```" in (ROOT / "docs/add-an-engine.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("opset", "downwards", "target"),
    [
        (11, False, 18),
        (17, True, 18),
        (18, True, 13),
        (25, True, 13),
        (18, False, 24),
        (24, False, 24),
        (25, False, 25),
    ],
)
def test_a_case_is_converted_to_an_opset_that_writes_it_otherwise(
    opset: int, downwards: bool, target: int
) -> None:
    """Up to the `num_outputs` of 18, or from there to the newest, or down to the input of 13."""
    traits: Any = SimpleNamespace(downwards=downwards)
    given: Any = SimpleNamespace(opset=opset)
    assert Subject("a source", "a tool", traits).target_opset(given) == target


def test_a_name_of_nothing_is_told_from_a_module_that_lacks_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lacks_something.py").write_text("import there_is_no_such_thing\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("there_is_no_such_thing", "there_is_no_such_thing.inside"):
        with refused("TS601", "none has this name, and no module either"):
            load(name)
    with refused("TS602", "can't be imported", "there_is_no_such_thing"):
        load("lacks_something")
