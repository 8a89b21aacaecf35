"""What `import tensorsplit as ts` gives, and with which parameters."""

from __future__ import annotations

import doctest
import inspect
import pickle
import pydoc
import subprocess
import sys
import types
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import numpy as np
import pytest

import tensorsplit as ts
from tensorsplit import openvino
from tensorsplit.model.check.findings import Finding

ROOT = Path(__file__).parents[1]

SIGNATURES: dict[str, str] = {
    "split": "(input, split=None, axis=0, *, num_outputs=None, opset=28, copy=False, out=None)",
    "split_to_sequence": (
        "(input, split=None, axis=0, *, keepdims=1, opset=28, copy=False, out=None)"
    ),
    "variadic_split": "(data, axis, split_lengths, *, copy=False, out=None)",
    "openvino.split": "(data, axis, num_splits, *, copy=False, out=None)",
    "openvino.variadic_split": "(data, axis, split_lengths, *, copy=False, out=None)",
    "files.split": (
        "(source, target, split=None, *, axis=None, num_outputs=None, chunk=None, operator=None,"
        " opset=None, names=None, array=None, rules=None, ranks=None, max_shard_size=None,"
        " memory=268435456, workers=None, scheduler=None, verify=False, overwrite=False)"
    ),
    "plan": (
        "(operator, shape, split=None, *, num_outputs=None, opset=None, names=None, **operands)"
    ),
    "NamedSplit.__call__": "(self, input, *, copy=False, out=None)",
    "NamedSplit.join": "(self, parts, *, like=None, copy=None, out=None)",
    "infer": "(operator, shape, split=None, *, num_outputs=None, opset=None, **operands)",
    "explain": "(operator, shape=None, split=None, *, num_outputs=None, opset=None, **operands)",
    "join": "(parts, *, axis=0, keepdims=1, like=None, copy=None, out=None)",
    "like": "(dialect)",
    "lengths.at": "(indices, dim)",
    "lengths.balanced": "(dim, parts)",
    "lengths.chunked": "(dim, chunks)",
    "lengths.ratio": "(weights, dim)",
    "PreparedSplit.join": "(self, parts, *, like=None, copy=None, out=None)",
    "diff": "(before, after)",
    "run": "(model, inputs, *, engine='auto', memory=None, timeout=None)",
    "session": ("(model, *, engine='auto', lower=False, isolate=None, memory=None, timeout=None)"),
    "Session.run": "(self, inputs)",
    "verify": (
        "(model, other, *, inputs=None, seed=0, engines=(), rtol=None, atol=None, memory=None,"
        " timeout=None)"
    ),
    "PreparedSplit.__call__": "(self, input, *, copy=False, out=None)",
}
"""The parameters of each function, by the names of the standards."""

NAMES = {
    *("split", "split_to_sequence", "variadic_split", "openvino", "files", "plan", "infer", "join"),
    *(
        "operators",
        "diff",
        "run",
        "session",
        "Session",
        "SplitError",
        "SplitPlan",
        "BufferPool",
        "NamedSplit",
        "native",
        "lengths",
        "torch",
        "like",
        "verify",
        "Verification",
    ),
}
"""What the design promises."""


MODULES = ["backend", "files", "lengths", "native", "openvino", "reference_ops", "torch"]


def find(path: str) -> Any:
    found: Any = ts
    for part in path.split("."):
        found = getattr(found, part)
    return found


def bare(function: Callable[..., object]) -> str:
    """A signature without its annotations."""
    signature = inspect.signature(function)
    empty = inspect.Parameter.empty
    parameters = [p.replace(annotation=empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=empty))


def public_functions() -> list[str]:
    return [name for name in ts.__all__ if inspect.isfunction(find(name))] + [
        f"openvino.{name}" for name in openvino.__all__
    ]


def test_the_promised_names_are_there() -> None:
    assert set(ts.__all__) >= NAMES
    assert dir(ts) == sorted([*ts.__all__, "__version__"])
    assert dir(ts.files) == sorted(ts.files.__all__)
    assert openvino.__all__ == ["extensions", "split", "variadic_split"]


def test_the_names_are_listed_in_order_and_once() -> None:
    assert ts.__all__ == sorted(set(ts.__all__))


@pytest.mark.parametrize("name", ts.__all__)
def test_every_name_is_found_and_documented(name: str) -> None:
    found = getattr(ts, name)
    assert found is not None
    if not isinstance(found, types.ModuleType):
        assert inspect.getdoc(found)


@pytest.mark.parametrize("name", MODULES)
def test_a_public_module_lists_its_public_names_only(name: str) -> None:
    module = import_module(f"tensorsplit.{name}")
    assert dir(module) == sorted(module.__all__)
    for each in module.__all__:
        assert not each.startswith("_")
        assert hasattr(module, each)
        assert not isinstance(getattr(module, each), types.ModuleType) or each == "kernel"


def test_every_public_module_is_known() -> None:
    modules = {name for name in ts.__all__ if isinstance(find(name), types.ModuleType)}
    assert modules == {*MODULES} - {"backend", "reference_ops"}  # those are imported by name


@pytest.mark.parametrize(
    ("code", "suggested"),
    [("ts.spilt", "split"), ("ts.veriffy", "verify"), ("ts.torch.Splt", "Split")],
)
def test_a_name_that_was_mistyped(code: str, suggested: str) -> None:
    command = [sys.executable, "-c", f"import tensorsplit as ts; {code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr.endswith(f"Did you mean: '{suggested}'?\n")


def test_nothing_else_is_found() -> None:
    with pytest.raises(AttributeError, match="slice"):
        find("slice")


def refusal() -> ts.SplitError:
    with pytest.raises(ts.SplitError) as caught:
        ts.plan("onnx.Split-18", (4, 3), [1, 2])
    return caught.value


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: ts.plan("onnx.Split-18", ("N", 7), axis=1, num_outputs=3),
            "<PreparedSplit onnx.Split-18: (N, 7) on axis 1 into 3 parts of [3, 3, 1]>",
        ),
        (
            lambda: ts.plan("onnx.Split-13", (1000,), [1] * 1000),
            (
                "<PreparedSplit onnx.Split-13: (1000,) on axis 0 into 1000 parts of"
                " [1, 1, 1, 1, 1, 1, 1, 1, ...]>"
            ),
        ),
        (
            lambda: ts.plan("onnx.SplitToSequence-11", (2, 3), keepdims=0),
            (
                "<PreparedSplit onnx.SplitToSequence-11: (2, 3) on axis 0 into 2 parts of [1, 1],"
                " axis dropped>"
            ),
        ),
        (lambda: ts.operators["onnx.Split-2"], "<Operator onnx.Split-2>"),
        (
            lambda: ts.diff("onnx.Split-2", "onnx.Split-2"),
            "<OperatorDiff onnx.Split-2 -> onnx.Split-2: 0 changes>",
        ),
        (
            refusal,
            (
                "<SplitError [TS302] onnx.Split-18, parameter 'split': [1, 2] sums to 3, but the"
                " dimension is 4; give lengths that sum to 4>"
            ),
        ),
        (
            lambda: Finding("TS826", "warning", "graph/split_0", "it is odd", "mend it"),
            "<Finding warning [TS826] graph/split_0: it is odd; mend it>",
        ),
    ],
)
def test_a_person_can_read_what_a_thing_is(make: Callable[[], object], text: str) -> None:
    assert repr(make()) == text


def test_operators_are_named_as_on_the_command_line() -> None:
    assert ts.infer("Split", ("N", 6), axis=1, num_outputs=2)[0][1] == 3
    assert ts.plan("Split", (4, 3), [1, 3], opset=12).operator == "onnx.Split-11"
    assert ts.plan("openvino.Split", (4, 3), axis=0, num_splits=2).operator == "openvino.Split-1"
    assert ts.diff("SplitToSequence", "Split").before.id == "onnx.SplitToSequence-24"
    with pytest.raises(ts.SplitError, match="TS703"):
        ts.infer("onnx.Split-13", (4, 3), [1, 3], opset=13)
    with pytest.raises(ts.SplitError, match="TS101"):
        ts.infer("Split", (4, 3), [1, 3], opset=0)


@pytest.mark.parametrize("path", SIGNATURES)
def test_parameters_have_the_names_of_the_standards(path: str) -> None:
    assert bare(find(path)) == SIGNATURES[path]


@pytest.mark.parametrize("path", public_functions())
def test_a_function_says_what_it_takes_gives_and_refuses(path: str) -> None:
    function = find(path)
    text = inspect.getdoc(function) or ""
    parameters = inspect.signature(function).parameters
    for section in (*(["Args:"] if parameters else []), "Returns:", "Raises:"):
        assert section in text, section
    assert "SplitError: TS" in text
    for name in parameters:
        assert f"{name}:" in text, name


@pytest.mark.parametrize("path", public_functions())
def test_help_calls_a_function_a_function(path: str) -> None:
    function = find(path)
    shown = pydoc.plain(pydoc.render_doc(function, "%s"))
    assert shown.startswith(f"function {function.__name__} in module {function.__module__}\n")
    assert f"\n{function.__name__}(" in shown
    assert isinstance(function, types.FunctionType)
    assert inspect.getsource(function).count(f"def {function.__name__}(") == 1
    assert pickle.loads(pickle.dumps(function)) is function
    assert create_autospec(function).__name__ == function.__name__


@pytest.mark.parametrize("name", ["split", "split_to_sequence", "variadic_split"])
def test_a_function_that_the_kernel_answers_can_be_read_as_one_of_python(name: str) -> None:
    function = find(name)
    code = (function.__code__, function.__globals__, name, function.__defaults__)
    again = types.FunctionType(*code, function.__closure__)
    again.__kwdefaults__ = function.__kwdefaults__
    data = np.random.default_rng(1).random((2, 3))
    arguments = (data, 1, [1, 2]) if name == "variadic_split" else (data, [1, 2], 1)
    for mine, wanted in zip(again(*arguments), (data[:, :1], data[:, 1:]), strict=True):
        np.testing.assert_array_equal(mine, wanted, strict=True)
    assert not inspect.iscoroutinefunction(function)


def test_a_function_that_is_bound_keeps_its_parameters() -> None:
    bound = type("Mine", (), {"split": ts.split})().split
    assert list(inspect.signature(bound).parameters)[:3] == ["split", "axis", "num_outputs"]


@pytest.mark.parametrize("path", public_functions())
def test_a_function_is_annotated(path: str) -> None:
    signature = inspect.signature(find(path))
    assert signature.return_annotation is not inspect.Signature.empty
    for parameter in signature.parameters.values():
        assert parameter.annotation is not inspect.Parameter.empty, parameter


def test_a_plain_import_tells_what_copies() -> None:
    assert ts.native.in_use in {"avx2", "neon", "baseline", "numpy"}
    assert (ts.native.kernel is None) == (ts.native.in_use == "numpy")


def test_the_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    assert version("tensorsplit") == ts.__version__


EXAMPLES = [
    *("split", "split_to_sequence", "variadic_split", "openvino.split", "files.split", "plan"),
    *(
        "PreparedSplit.join",
        "NamedSplit.join",
        "NamedSplit.__call__",
        "join",
        "infer",
        "diff",
        "check",
        "infer_shapes",
        "convert",
        "lower",
        "run",
        "session",
    ),
    *("BufferPool", "SplitError"),
]
"""What has an example in its docstring."""


@pytest.mark.parametrize("path", EXAMPLES)
def test_the_example_of_a_docstring_holds(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in (ROOT / "examples").iterdir():
        (tmp_path / file.name).symlink_to(file)
    np.save(tmp_path / "qkv.npy", np.random.default_rng(0).random((2, 6)))
    monkeypatch.chdir(tmp_path)
    text = inspect.getdoc(find(path)) or ""
    example = doctest.DocTestParser().get_doctest(text, {"np": np, "ts": ts}, path, None, 0)
    assert example.examples
    said: list[str] = []
    doctest.DocTestRunner(verbose=False).run(example, out=said.append)
    assert not said, "".join(said)
