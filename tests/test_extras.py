"""Arrays need NumPy and nothing else; what needs more says which extra brings it, in one line."""

from __future__ import annotations

import json
import re
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from tensorsplit.core import extras
from tensorsplit.core.errors import EXTRA_MISSING, LIBRARY, SplitError
from tests.interpreters import printed, python

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))

WITHOUT = """
import sys

class Uninstalled:
    def find_spec(self, name, path, target=None):
        known = (*sys.stdlib_module_names, "numpy", "tensorsplit")
        if name.partition(".")[0] not in known and not name.startswith("_sysconfigdata"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Uninstalled())
import numpy as np, tensorsplit as ts
"""
"""The beginning of a program for which nothing but NumPy is installed."""


def refusal_of(call: str) -> str:
    """What a call says where nothing but NumPy is installed."""
    said = printed(f"{WITHOUT}try: {call}\nexcept ts.SplitError as error: print(error)")
    assert said.count("\n") == 1
    return said


@pytest.fixture(autouse=True)
def _origin_is_read_anew() -> None:
    extras._origin.cache_clear()


def test_the_package_requires_numpy_alone() -> None:
    assert PROJECT["project"]["dependencies"] == ["numpy>=2.0"]


@pytest.mark.parametrize("extra", extras.EXTRAS)
def test_an_extra_brings_what_the_messages_say(extra: str) -> None:
    required = PROJECT["project"]["optional-dependencies"][extra]
    names = {re.split(r"[\[>]", each)[0].replace("-", "_") for each in required}
    shared = {"tensorsplit", "onnxscript"} | ({"msgspec"} if extra == "files" else set())
    assert names - shared == set(extras.EXTRAS[extra])


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        ("ts.split(np.arange(7), axis=0, num_outputs=3)[2].tolist()", "[6]"),
        ("ts.split(np.arange(6), [2, 4], copy=True)[1].tolist()", "[2, 3, 4, 5]"),
        ("ts.split(np.array(['a', 'bc']), [1, 1])[1].tolist()", "['bc']"),
        ("[len(part) for part in ts.split_to_sequence(np.arange(5), 2)]", "[2, 2, 1]"),
        ("ts.variadic_split(np.arange(5), 0, [-1, 2])[0].tolist()", "[0, 1, 2]"),
        ("ts.openvino.split(np.arange(4), 0, 2)[1].tolist()", "[2, 3]"),
        ("ts.plan('onnx.Split-18', (7, 4), num_outputs=3).sizes", "(3, 3, 1)"),
        ("ts.infer('onnx.Split-18', ('N', 4), axis=1, num_outputs=2)", "[('N', 2), ('N', 2)]"),
        ("len(ts.operators)", "9"),
    ],
)
def test_arrays_need_numpy_alone(call: str, shown: str) -> None:
    assert printed(f"{WITHOUT}print({call})") == f"{shown}\n"


def test_npy_files_need_numpy_alone(tmp_path: Path) -> None:
    program = (
        f"{WITHOUT}import os; os.chdir(sys.argv[1]); np.save('x.npy', np.arange(6))\n"
        "ts.files.split('x.npy', 'parts', [2, 4], names=['a', 'b'])\n"
        "print(np.load('parts/b.npy'))"
    )
    assert printed(program, tmp_path) == "[2 3 4 5]\n"


@pytest.mark.parametrize(
    "call",
    [
        *("ts.check('m.onnx')", "ts.convert('m.onnx', opset=18)", "ts.infer_shapes('m.onnx')"),
        *("ts.lower('m.onnx', target='openvino')", "ts.run('m.onnx', {})", "ts.session('m.onnx')"),
        *("ts.verify('a.onnx', 'b.onnx')", "ts.Session('m.onnx')", "ts.Verification()"),
        "ts.explain('m.onnx')",
        "ts.infer('onnx.Split-18', ('N', 4), num_outputs=2)",
        *("import tensorsplit.backend", "import tensorsplit.reference_ops"),
    ],
)
def test_what_needs_onnx_names_its_extra(call: str) -> None:
    said = refusal_of(call)
    assert said.startswith("[TS711] ")
    assert " is not installed; pip install " in said
    assert "[models]" in said


@pytest.mark.parametrize(
    "call",
    [
        "ts.files.split('ranks8', 'out', rules={'split': []})",
        "ts.files.split('store.zarr', 'out', [1, 1])",
        "np.save(sys.argv[1], np.arange(2)); ts.files.split(sys.argv[1], 'o', [1, 1], workers=2)",
    ],
)
def test_what_needs_other_files_names_its_extra(call: str, tmp_path: Path) -> None:
    program = f"{WITHOUT}try: {call}\nexcept ts.SplitError as error: print(error)"
    said = printed(program, tmp_path / "x.npy")
    assert said.startswith("[TS711] ")
    assert "[files]" in said


def test_a_function_that_lacks_its_extra_still_has_a_name_and_a_help() -> None:
    shown = printed(f"{WITHOUT}print(ts.check.__name__, ts.check.__doc__); dir(ts); help(ts)")
    assert shown.startswith("check Can't be called here: ")


def test_what_is_installed_meanwhile_is_found() -> None:
    program = (
        "import sys, tensorsplit as ts\n"
        "sys.modules['onnx_ir'] = None; print(ts.check.__doc__[:18])\n"
        "del sys.modules['onnx_ir']; print(ts.check.__module__)"
    )
    assert printed(program) == "Can't be called he\ntensorsplit.model.check.checker\n"


@pytest.mark.parametrize("arguments", [["check", "m.onnx"], ["--version"], []])
def test_the_command_line_without_its_libraries_is_one_line(arguments: list[str]) -> None:
    program = f"{WITHOUT}sys.argv[1:] = {arguments}\nfrom tensorsplit.__main__ import main; main()"
    done = python(program)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(
        r"tensorsplit: error: \[TS711\] click is not installed; pip install .*\[cli\].*\n",
        done.stderr,
    )


def test_a_command_that_lacks_an_extra_says_so() -> None:
    program = (
        "import sys; sys.modules['jinja2'] = None\n"
        "from tensorsplit.cli import main; main(['ops', 'onnx.Split-18', '--format', 'markdown'])"
    )
    done = python(program)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("tensorsplit: error: [TS711] jinja2 is not installed; pip ")
    assert "[report]" in done.stderr


# What a message says to install

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("record", "command"),
    [
        (None, "pip install 'tensorsplit[files]'"),
        ({"url": "file://{folder}", "dir_info": {}}, "pip install '{folder}[files]'"),
        (
            {"url": "file://{folder}", "dir_info": {"editable": True}},
            "pip install -e '{folder}[files]'",
        ),
        (
            {"url": "https://host/t.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}},
            f"pip install 'tensorsplit[files] @ git+https://host/t.git@{COMMIT}'",
        ),
        (
            {"url": "https://host/tensorsplit.whl", "archive_info": {}},
            "pip install 'tensorsplit[files] @ https://host/tensorsplit.whl'",
        ),
        ({"url": "file:///no/such/folder", "dir_info": {}}, "pip install 'tensorsplit[files]'"),
    ],
    ids=["index", "checkout", "editable", "repository", "address", "gone"],
)
def test_the_command_names_the_package_as_it_was_installed(
    record: dict[str, Any] | None, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Installed:
        def read_text(self, _: str) -> str | None:
            folder = str(tmp_path)
            return None if record is None else json.dumps(record).replace("{folder}", folder)

    monkeypatch.setattr(metadata, "distribution", lambda _: Installed())
    assert extras.install_command("files") == command.replace("{folder}", str(tmp_path))


def test_a_checkout_that_is_not_installed_is_named_by_its_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def distribution(name: str) -> Any:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", distribution)
    root = Path(extras.__file__).parents[3]
    is_checkout = (root / "pyproject.toml").is_file()
    expected = f"-e '{root}[files]'" if is_checkout else "'tensorsplit[files]'"
    assert extras.install_command("files") == f"pip install {expected}"


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (ModuleNotFoundError("No module", name="zarr"), EXTRA_MISSING, "zarr is not installed"),
        (ImportError("libz.so", name="zarr.core"), LIBRARY, "zarr can't be imported: libz.so"),
        (ModuleNotFoundError("No x", name="zarr.x"), LIBRARY, "zarr can't be imported: No x"),
        (ModuleNotFoundError("No z", name="zither"), LIBRARY, "zither can't be imported: No z"),
    ],
)
def test_a_library_that_is_there_and_broken_is_told_from_one_that_is_not(
    error: ImportError, kind: object, said: str
) -> None:
    refusal = extras.import_refusal(error)
    assert isinstance(refusal, SplitError)
    assert (refusal.kind, refusal.problem) == (kind, said)


def test_a_fault_of_this_package_stays_one() -> None:
    with pytest.raises(ModuleNotFoundError), extras.needs("models"):
        raise ModuleNotFoundError("No module", name="tensorsplit.gone")
