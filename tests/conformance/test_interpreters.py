"""An adapter may name an interpreter of its own: it runs there as it would here, limits and all.

The interpreter has NumPy and nothing else, so that whatever of ours it needed would be missing.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

from tensorsplit.conformance.reducing import reduced
from tensorsplit.conformance.repro import script
from tensorsplit.conformance.runner import Subject, run
from tensorsplit.engines import elsewhere, interpreters
from tensorsplit.engines.interpreters import Interpreter
from tests.conformance.fakes import case
from tests.engines.test_process import are_gone
from tests.marks import thorough
from tests.refusals import refused

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no exec")

LEGAL = case("legal")
RIGHT = "return {'y0': given[2]['x'][:1], 'y1': given[2]['x'][1:]}"
ADAPTER = """
import os, sys, time
import numpy as np
KIND, PACKAGES, FORMATS = "engine", {packages!r}, ("onnx",)
PYTHON = {python!r}
class Unsupported(Exception): pass
{start}
def run(*given):
{body}
"""

Write = Callable[..., str]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that has NumPy alone: not even ml_dtypes."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    numpy = Path(np.__file__).parent
    for found in (numpy, *numpy.parent.glob("numpy.libs"), *numpy.parent.glob("numpy-*.dist-info")):
        (packages / found.name).symlink_to(found)
    return folder / "bin" / "python"


@pytest.mark.parametrize("is_sequence", [False, True])
@pytest.mark.parametrize("kind", [ml_dtypes.bfloat16, np.float32])
def test_arrays_of_ml_dtypes_are_not_run_where_it_is_missing(
    kind: Any, is_sequence: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = tmp_path / "adapter.py"
    adapter.write_text("KIND = 'engine'\ndef run(*given): return {'y': 1}\n")
    messages: Any = vars(elsewhere)["messages"]  # another than ours: it loads the file by its path
    monkeypatch.setattr(messages, "HAS_ML_DTYPES", False)
    x = np.ones(2, kind)
    given = str(adapter), b"", b"", {"n": np.ones(1), "x": [x] if is_sequence else x}, ["y"], 18
    if kind is np.float32:
        assert elsewhere.perform(*given) == {"y": 1}
    else:
        with pytest.raises(messages.Unsupported, match="has this element type with ml_"):
            elsewhere.perform(*given)


def test_a_file_is_imported_by_its_path_once(tmp_path: Path) -> None:
    path = tmp_path / "counts.py"
    path.write_text("import sys\nsys.imported_here = getattr(sys, 'imported_here', 0) + 1\n")
    made = elsewhere.load(str(path))
    assert elsewhere.load(str(path)) is made is sys.modules["tensorsplit_counts"]
    assert vars(sys).pop("imported_here") == 1
    assert Path(str(made.__file__)) == path


def test_a_file_of_another_kind_is_not_imported(tmp_path: Path) -> None:
    path = tmp_path / "counts.txt"
    path.write_text("number = 1")
    with pytest.raises(ImportError, match=r"counts\.txt is not a Python file"):
        elsewhere.load(str(path))


def test_an_interpreter_that_is_too_old_says_so() -> None:
    code = f"import runpy, sys; sys.version_info = (3, 9); runpy.run_path({elsewhere.__file__!r})"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("it is Python 3.")


@pytest.fixture
def write(tmp_path: Path, bare: Path) -> Write:
    """Write an adapter with a body of `run`, whose arguments are `given`; return its path."""

    def written(
        body: str = RIGHT,
        *,
        python: object = str(bare),
        start: str = "",
        packages: tuple[str, ...] = ("numpy",),
    ) -> str:
        path = tmp_path / "there.py"
        lines = "\n".join(f"    {line}" for line in body.splitlines())
        path.write_text(ADAPTER.format(python=python, start=start, body=lines, packages=packages))
        return str(path)

    return written


def program(folder: Path, text: str) -> str:
    """The path of a program of the shell."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return str(path)


def result(source: str, *, seconds: float = 20) -> tuple[str, str]:
    """What comes of the legal case."""
    (found,) = run([Subject.of(source)], [LEGAL], jobs=1, seconds=seconds).results
    return found.verdict, found.detail


def test_it_runs_in_an_interpreter_that_has_nothing_of_ours(write: Write, bare: Path) -> None:
    body = f"""from importlib.util import find_spec
found = [name for name in ("tensorsplit", "onnx", "ml_dtypes", "msgspec") if find_spec(name)]
assert not found and sys.flags.isolated and sys.executable == {str(bare)!r}, found
{RIGHT}"""
    assert result(write(body)) == ("pass", "")


def test_the_path_counts_from_the_folder_of_the_adapter(write: Write, bare: Path) -> None:
    path = Path(write())
    relative = Path(*[".."] * (len(path.parents) - 1), *bare.parts[1:])
    assert result(write(python=str(relative))) == ("pass", "")


def test_an_adapter_that_is_a_module_is_found_there_too(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(Path(write()).parent)
    assert result("there") == ("pass", "")


JUDGED = [
    ("os.kill(os.getpid(), 11)", "crash", "was ended by SIGSEGV (signal 11)"),
    ("return {name: np.zeros(200 << 20, 'i1') for name in given[3]}", "wrong", "64 MiB"),
    ("raise Unsupported('no Split at all')", "unsupported-type", "no Split at all"),
    ("raise ValueError('not today')", "refused-but-legal", "ValueError: not today"),
]
MORE_JUDGED = [
    ("os._exit(3)", "crash", "ended with exit status 3"),
    ("print('so long', file=sys.stderr)\nos._exit(0)", "crash", "having said: so long"),
    ("os.write(int(sys.argv[1]), b'\\xff' * 99)\nos._exit(0)", "wrong", ""),
    ("return {name: [0] * 70_000 for name in given[3]}", "wrong", ""),
    ("return {name: object() for name in given[3]}", "wrong", ""),
    ("import no_such_module", "refused-but-legal", "no_such_module"),
    ("return {'y0': given[2]['x'][:1]}", "wrong", "y1"),
]


@pytest.mark.parametrize(("body", "verdict", "words"), [*JUDGED, *map(thorough, MORE_JUDGED)])
def test_it_is_judged_as_an_adapter_that_runs_here(
    write: Write, body: str, verdict: str, words: str
) -> None:
    found = result(write(body))
    assert found[0] == verdict
    assert words in found[1]


def test_one_that_hangs_is_ended(write: Write, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    body = f"open({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    assert result(write(body), seconds=1)[0] == "hang"
    assert are_gone(int(pid.read_text()))


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_it_may_fill_no_more_memory_than_one_here(write: Write) -> None:
    limits = "import resource\nfound = resource.getrlimit(resource.RLIMIT_DATA)"
    assert result(write(f"{limits}\nassert found[0] == 8 << 30, found\n{RIGHT}")) == ("pass", "")


def test_element_types_that_numpy_lacks_there_are_unsupported(write: Write) -> None:
    subject = Subject.of(write())
    process = subject.process(1 << 26)
    for kind in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.int4):
        x = np.arange(4).astype(kind)
        reply = process.ask((subject.source, b"", b"", {"x": x}, ["y0"], 0), 30)
        assert reply.unsupported
        assert reply.refusal is not None
        assert "ml_dtypes" in reply.refusal
    x = np.arange(4, dtype="f4")
    reply = process.ask((subject.source, b"", b"", {"x": x, "n": [x]}, ["y0"], 0), 30)
    assert reply.result["y0"].tolist() == [0]
    process.close()


def test_versions_are_those_that_are_installed_there(write: Write) -> None:
    assert Subject.of(write()).traits.versions() == {"numpy": np.__version__}
    source = write(packages=("numpy", "onnx"))  # which is installed here
    assert not Subject.of(source).traits.is_installed
    with refused("TS602", "is not installed", "bin/python -m pip install numpy onnx"):
        Subject.installed(source)


NO_PYTHON = {
    "exit 0": "it ended with exit status 0",
    "echo Hello; exit 4": "it ended with exit status 4, having said: Hello",
    "kill -SEGV $$": "it was ended by SIGSEGV",
}


@pytest.mark.parametrize("text", NO_PYTHON)
def test_what_is_no_interpreter_is_refused(write: Write, tmp_path: Path, text: str) -> None:
    with refused("TS602", "the adapter's PYTHON, ", NO_PYTHON[text], "3.10 or newer, with NumPy"):
        Subject.of(write(python=program(tmp_path, text)))


def test_an_interpreter_that_does_not_answer_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreters, "_SECONDS", 0.2)
    python = program(tmp_path, "exec sleep 600")
    with refused("TS602", "it gave no answer within 0.2 s and was stopped"):
        Interpreter.of(python, tmp_path / "there.py", ())


def test_an_interpreter_may_answer_in_a_mebibyte(bare: Path, tmp_path: Path) -> None:
    flood = r"import os, sys; os.write(int(sys.argv[-1]), b'\\0\\x20\\0\\0')"  # 2 MiB follow
    python = program(tmp_path, f'exec {bare} -c "{flood}" "$@"')
    with refused("TS602", "it gave an answer of more than 1 MiB and was stopped"):
        Interpreter.of(python, tmp_path / "there.py", ())


def test_an_interpreter_that_has_answered_is_ended(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = program(tmp_path, f'echo $$ > {tmp_path}/pid; exec {bare} "$@"')
    (tmp_path / "files").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "files"))
    found = Interpreter.of(python, tmp_path / "there.py", ["numpy", "none"])
    assert found.versions == {"numpy": np.__version__}
    assert are_gone(int((tmp_path / "pid").read_text()))
    assert not list((tmp_path / "files").iterdir())


def test_an_interpreter_that_is_not_there_is_refused(write: Write, tmp_path: Path) -> None:
    with refused("TS602", "FileNotFoundError: [Errno 2] No such file or directory"):
        Subject.of(write(python="nowhere/python"))
    with refused("TS602", "PermissionError: [Errno 13] Permission denied"):
        Subject.of(write(python=str(tmp_path)))


def test_an_interpreter_without_numpy_is_refused(write: Write, tmp_path: Path) -> None:
    venv.create(tmp_path / "empty", symlinks=True)
    with refused("TS602", "No module named 'numpy'"):
        Subject.of(write(python="empty/bin/python"))


def test_a_name_that_is_no_text_is_refused(write: Write) -> None:
    with refused("TS601", "PYTHON must be the path of an interpreter, a string"):
        Subject.of(write(python=5))


def test_an_interpreter_that_dies_later_is_held_against_each_case(
    write: Write, bare: Path, tmp_path: Path
) -> None:
    text = f'mkdir {tmp_path / "asked"} 2>/dev/null && exec {bare} "$@"\nexit 7'
    found = result(write(python=program(tmp_path, text)))
    assert found == ("crash", "the process ended with exit status 7")


def test_an_adapter_that_can_be_imported_here_alone_says_so(write: Write) -> None:
    start = f"if sys.executable != {sys.executable!r}:\n    import no_such_module"
    with refused("TS602", "No module named 'no_such_module'"):
        result(write(start=start))


def test_its_script_is_run_by_the_interpreter(write: Write, bare: Path, tmp_path: Path) -> None:
    text = script(LEGAL, write())
    assert f"# Run it by {bare}\n" in text
    path = tmp_path / "repro.py"
    path.write_text(text)
    shown = subprocess.run([bare, "-I", path], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines() == ["y0: as the standard says", "y1: as the standard says"]


def test_a_tool_may_have_an_interpreter_too(write: Write) -> None:
    tool = 'KIND = "tool"\ndef rewrite(model, opset):\n    return model if find(opset) else None'
    source = write(start=f"def find(opset): return opset == 18\n{tool}")
    subject = Subject.of(source)
    assert subject.traits.kind == "tool"
    assert result(source) == ("pass", "")


def test_a_model_is_reduced_there(write: Write) -> None:
    built = LEGAL.build()
    source = write(RIGHT.replace("[:1]", "[:1] + 1"))
    found = reduced(
        onnx.load_from_string(built.model), built.inputs, source, seconds=20, seconds_each=10
    )
    assert found.failure.kind == "wrong"
