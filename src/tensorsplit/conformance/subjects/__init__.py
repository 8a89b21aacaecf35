"""Subjects: what the suite is pointed at, an adapter for each engine and tool.

An adapter is a function that runs a model (an engine) or rewrites it (a tool), and what the suite
needs to know about it; see `Adapter`. What it runs is imported when it runs, so that it can be
looked at with nothing installed.

Nothing here checks a model before the engine sees it: the point is to see what the engine does. So
subjects run in a process that may die; that process calls `prepare` and `perform`. A user's adapter
may do anything when it is imported, so that too is done there: its `traits` are requested.
"""

from __future__ import annotations

import importlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import onnx

import tensorsplit
from tensorsplit.conformance.subjects import by_node, by_pnnx, rewriters, runtimes
from tensorsplit.core.errors import (
    ENGINE_MISSING,
    UNKNOWN_ENGINE,
    UNSUPPORTED_NODE,
    SplitError,
    did_you_mean,
    show,
    show_path,
    words_of,
)
from tensorsplit.engines import adapters, elsewhere
from tensorsplit.engines.adapters import Outputs, is_ir, ordered
from tensorsplit.engines.engine_names import OURS
from tensorsplit.engines.interpreters import Interpreter
from tensorsplit.engines.messages import Unsupported, arrays_of
from tensorsplit.engines.worker import limit_memory

__all__ = [
    "SUBJECTS",
    "Adapter",
    "Traits",
    "Unsupported",
    "is_ir",
    "load",
    "missing",
    "ordered",
    "perform",
    "place",
    "prepare",
    "run_model",
    "title",
    "traits",
    "unsupported",
]


NPM = "npm:"
"""What the name of a package of npm begins with, among those of distributions."""


def _version(package: str) -> str:
    """Return the version of a distribution, or of a package of npm to which NODE_PATH leads."""
    # costs more than all else that is imported here
    from importlib.metadata import PackageNotFoundError, version

    name = package.removeprefix(NPM)
    if name == package:
        return version(package)
    for folder in filter(None, os.environ.get("NODE_PATH", "").split(os.pathsep)):
        path = Path(folder, name, "package.json")
        if path.is_file():
            return str(json.loads(path.read_text("utf-8"))["version"])
    raise PackageNotFoundError(package)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """The facts that the suite needs about an engine or a tool before it runs.

    Attributes:
        packages: The distributions it needs, the one that it is named by first; those of npm
            begin with `NPM`.
        formats: The model formats it reads, ``onnx`` and ``ir`` (OpenVINO IR).
        kind: ``engine``, which runs models, or ``tool``, which rewrites them.
        states_shapes: Whether a tool states shapes and changes nothing.
        downwards: Whether a tool converts to older opsets too.
        interpreter: What runs it in place of this interpreter, which has not got the packages.
    """

    packages: tuple[str, ...]
    formats: tuple[str, ...] = ("onnx",)
    kind: str = "engine"
    states_shapes: bool = False
    downwards: bool = True
    interpreter: Interpreter | None = None

    def versions(self) -> dict[str, str]:
        """Return the versions of the packages; PackageNotFoundError if one is not installed."""
        from importlib.metadata import PackageNotFoundError

        if self.interpreter is None:
            return {package.removeprefix(NPM): _version(package) for package in self.packages}
        for package in self.packages:
            if package not in self.interpreter.versions:
                raise PackageNotFoundError(package)
        return self.interpreter.versions

    @property
    def how_to_install(self) -> str:
        """The command that installs the packages."""
        names = " ".join(package.removeprefix(NPM) for package in self.packages)
        if self.packages[0].startswith(NPM):
            return f"npm install {names}, and let NODE_PATH lead to node_modules"
        pip = "pip" if self.interpreter is None else f"{self.interpreter.python} -m pip"
        return f"{pip} install {names}"

    @property
    def is_installed(self) -> bool:
        """Whether all packages are installed; nothing of them is imported to find out."""
        try:
            self.versions()
        except (ImportError, ValueError):  # PackageNotFoundError; ValueError for an empty name
            return False
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter(Traits):
    """An engine or a tool, for the suite.

    Attributes:
        call: Of an engine ``run(model, weights, inputs, outputs)``, of a tool
            ``rewrite(model, target_opset)``.
        modules: What takes long to import, so that it does not look like a case that hangs.
        lacks: Exceptions that it raises where it lacks an element type, operator or opset.
        lack_pattern: A regular expression for the messages of all others that say so.
        python: The path of the interpreter that runs it, where it is not this one.
        path: The path of its file, where it has one of its own.
    """

    call: Callable[..., Any]
    modules: tuple[str, ...] = ()
    lacks: tuple[type[Exception], ...] = ()
    lack_pattern: str = ""
    python: str = ""
    path: str = ""


def _tool(call: Callable[[bytes, int], bytes], module: str, **rest: Any) -> Adapter:
    """Return the adapter of a tool, whose distribution is called like the module's package."""
    package = module.partition(".")[0]
    return Adapter(call=call, packages=(package,), modules=(module,), kind="tool", **rest)


_MOST_WORDS = 10_000
_NOT_EXPRESSIBLE = r"\[(TS201|TS310|TS512|TS513)\]"  # of our tools
_NOT_OF_ONNXRUNTIME = (
    r"NOT_IMPLEMENTED : Could not find an implementation|is not currently registered or supported"
    r"|only \*guarantees\* support for models stamped with official released onnx opset versions"
)

SUBJECTS: Mapping[str, Adapter] = {
    OURS: Adapter(
        call=runtimes.run_numpy,
        packages=("tensorsplit",),
        formats=("onnx", "ir"),
        modules=("tensorsplit.model.run.evaluator",),
        lack_pattern=re.escape(f"[{UNSUPPORTED_NODE.code}]"),
    ),
    "onnx-reference": Adapter(
        call=adapters.run_onnx_reference,
        packages=("onnx",),
        modules=("onnx.reference",),
        lacks=(NotImplementedError,),
        lack_pattern="^No implementation for operator",
    ),
    "onnxruntime": Adapter(
        call=adapters.run_onnxruntime,
        packages=("onnxruntime",),
        modules=("onnxruntime",),
        lack_pattern=_NOT_OF_ONNXRUNTIME,
    ),
    "onnxruntime-web": Adapter(
        call=by_node.run_onnxruntime_web,
        packages=(f"{NPM}onnxruntime-web",),
        lack_pattern="Could not find an implementation|unsupported data type"
        f"|Reading data from non-tensor typed value|{_NOT_OF_ONNXRUNTIME}",
    ),
    "openvino": Adapter(
        call=adapters.run_openvino,
        packages=("openvino",),
        formats=("onnx", "ir"),
        modules=("openvino",),
        lack_pattern=r"No conversion rule found for operations: [A-Za-z]+-\d+"  # of the model
        r"|Unsupported (data )?type|does not support string|can ?not be created for string data",
    ),
    "tvm": Adapter(
        call=runtimes.run_tvm,
        packages=("apache-tvm",),
        modules=("tvm.relax.frontend.onnx",),
        lack_pattern=r"unknown dtype|Operator \w+ not implemented"
        r"|operators are not supported for frontend ONNX",
    ),
    "iree": Adapter(
        call=runtimes.run_iree,
        packages=("iree-base-compiler", "iree-base-runtime"),
        modules=("iree.compiler.extras.onnx_importer", "iree.runtime"),
        lack_pattern=r"conversion of dtype '!torch\.\w+' to builtin tensor element type",
    ),
    "opencv": Adapter(
        call=runtimes.run_opencv,
        packages=("opencv-python-headless",),
        modules=("cv2",),
        lack_pattern=r"data type = \w+ is not supported|unsupported datatype"
        r"|Can't create layer \"[^\"]*\" of type",
    ),
    "tract": Adapter(
        call=runtimes.run_tract,
        packages=("tract",),
        modules=("tract",),
        lack_pattern=r"Unknown DatumType|Unimplemented\("
        r'|can only concatenate str \(not "numpy\.dtypes',  # about NumPy's type, gone wrong
    ),
    "mnn": Adapter(
        call=runtimes.run_mnn,
        packages=("mnn",),
        modules=("MNN",),
    ),
    "ncnn": Adapter(
        call=by_pnnx.run_ncnn,
        packages=("ncnn", "pnnx"),
        modules=("ncnn",),
        lack_pattern="unsupported tensor elem data type|Support only elemsize 1, 2, 4; but given 8"
        f"|{_NOT_OF_ONNXRUNTIME}",  # which pnnx has in it
    ),
    "tinygrad": Adapter(
        call=runtimes.run_tinygrad,
        packages=("tinygrad",),
        lacks=(NotImplementedError,),
        lack_pattern="is not a valid OnnxDataType",
    ),
    "onnx2torch": Adapter(
        call=runtimes.run_onnx2torch,
        packages=("onnx2torch", "torch"),
        modules=("torch", "onnx2torch"),
        lacks=(NotImplementedError,),
        lack_pattern=r"can't convert np\.ndarray of type",
    ),
    "jaxonnxruntime": Adapter(
        call=runtimes.run_jaxonnxruntime,
        packages=("jaxonnxruntime", "jax"),
        modules=("jax", "jaxonnxruntime.call_onnx"),
        lacks=(NotImplementedError,),
        lack_pattern="is not a valid JAX array type",
    ),
    "tensorsplit-convert": _tool(
        rewriters.convert, "tensorsplit.model.convert", lack_pattern=_NOT_EXPRESSIBLE
    ),
    "tensorsplit-lower-portable": _tool(
        rewriters.lower_to_portable, "tensorsplit.model.lower", lack_pattern=_NOT_EXPRESSIBLE
    ),
    "tensorsplit-lower-onnxruntime": _tool(
        rewriters.lower_to_onnxruntime, "tensorsplit.model.lower", lack_pattern=_NOT_EXPRESSIBLE
    ),
    "tensorsplit-lower-openvino": _tool(
        rewriters.lower_to_openvino, "tensorsplit.model.lower", lack_pattern=_NOT_EXPRESSIBLE
    ),
    "onnx-shape-inference": _tool(
        rewriters.infer_shapes, "onnx.shape_inference", states_shapes=True
    ),
    "onnxruntime-shape-inference": Adapter(
        call=rewriters.infer_symbolic_shapes,
        packages=("onnxruntime", "sympy"),
        modules=("onnxruntime.tools.symbolic_shape_infer",),
        kind="tool",
        states_shapes=True,
    ),
    "onnx-tool": Adapter(
        call=rewriters.infer_by_onnx_tool,
        packages=("onnx-tool",),
        modules=("onnx_tool",),
        kind="tool",
        lacks=(NotImplementedError,),
        lack_pattern=r"has no value_infer",
        states_shapes=True,
    ),
    "onnxruntime-optimizer": Adapter(
        call=rewriters.optimize_by_onnxruntime,
        packages=("onnxruntime",),
        modules=("onnxruntime",),
        kind="tool",
        lack_pattern=_NOT_OF_ONNXRUNTIME,
    ),
    "onnx-version-converter": _tool(rewriters.convert_by_onnx, "onnx.version_converter"),
    "onnxscript-converter": _tool(
        rewriters.convert_by_onnxscript, "onnxscript.version_converter", downwards=False
    ),
    "onnxscript-optimizer": _tool(rewriters.optimize_by_onnxscript, "onnxscript.optimizer"),
    "onnxslim": _tool(rewriters.slim, "onnxslim"),
    "onnxsim": _tool(rewriters.simplify, "onnxsim"),
    "onnxoptimizer": _tool(rewriters.optimize_by_onnxoptimizer, "onnxoptimizer"),
}
"""The built-in subjects by name, engines first."""


def traits(source: str) -> dict[str, Any]:
    """Return the fields of `Traits` that a user's adapter gives; SplitError as for `load`.

    Called in a process of its own, as are `prepare` and `perform`.
    """
    limit_memory()
    adapter = load(source)
    given = {entry.name: getattr(adapter, entry.name) for entry in fields(Traits)}
    if adapter.python:
        found = Interpreter.of(adapter.python, Path(adapter.path), adapter.packages)
        given["interpreter"] = asdict(found)
    return given


def prepare(source: str) -> None:
    """Import a subject and all that takes long to import; SplitError as for `load`."""
    limit_memory()
    for module in load(source).modules:
        importlib.import_module(module)


def perform(  # noqa: PLR0917 - what is sent to the process, in this order
    source: str,
    model: bytes,
    weights: bytes,
    inputs: Mapping[str, object],
    outputs: Sequence[str],
    target_opset: int,
) -> Any:
    """Run a case on a subject: return the outputs by name, or of a tool the bytes of the model.

    None if it returns anything else, which is not a refusal. SplitError as for `load`;
    `Unsupported` if the subject reports that it lacks something altogether.
    """
    adapter = load(source)
    with unsupported(model, *adapter.lacks, lack_pattern=adapter.lack_pattern):
        if adapter.kind == "tool":
            rewritten = adapter.call(model, target_opset)
            return bytes(rewritten) if isinstance(rewritten, (bytes, bytearray)) else None
        found = adapter.call(model, weights, inputs, outputs)
    return arrays_of(found)


def run_model(model: bytes, inputs: Mapping[str, object]) -> Outputs:
    """Run a model that a tool has returned in our own engine; SplitError as of ``run``."""
    return tensorsplit.run(onnx.load_from_string(model), inputs)


@contextmanager
def unsupported(model: bytes, *classes: type[Exception], lack_pattern: str = "") -> Iterator[None]:
    """Raise `Unsupported` for an exception by which an engine reports that it lacks something.

    An engine that does not run the model's own functions does not lack an operator: that is
    a refusal. Our own refusals name functions as the place of a node only.

    Args:
        model: What the engine is given.
        classes: The exceptions that always say so.
        lack_pattern: A regular expression for the messages of all others that do.
    """
    try:
        yield
    except Unsupported:
        raise
    except Exception as error:
        cause = error.__cause__ or error.__context__ or ""
        words = f"{error!s:.{_MOST_WORDS}} {cause!s:.{_MOST_WORDS}}".strip()
        if not (isinstance(error, classes) or (lack_pattern and re.search(lack_pattern, words))):
            raise
        is_place = is_ir(model) or isinstance(error, SplitError)
        functions = () if is_place else onnx.load_from_string(model).functions
        if any(function.name in words for function in functions):
            raise
        raise Unsupported(words) from error


@cache
def load(name: str) -> Adapter:
    """Return the adapter of a subject; that of a user is imported, once.

    The name is that of a built-in subject, the path of a ``.py`` file, or a module that can be
    imported. SplitError TS601 if there is no such subject, or it lacks something; TS602 if it can't
    be imported.
    """
    if name in SUBJECTS:
        return SUBJECTS[name]
    module = _module_of_file(Path(place(name))) if _is_path(name) else _module(name)
    kind = getattr(module, "KIND", "")
    needed = {"engine": "run", "tool": "rewrite"}.get(kind)
    if needed is None:
        raise _unknown(name, 'it must define KIND = "engine" or KIND = "tool"')
    if not callable(getattr(module, needed, None)):
        raise _unknown(name, f"it must define the function {needed}")
    for entry in ("PACKAGES", "FORMATS"):
        value = getattr(module, entry, None)
        if not isinstance(value, tuple) or not all(isinstance(item, str) for item in value):
            raise _unknown(name, f"it must define {entry}, a tuple of strings")
    if not {"onnx", "ir"}.issuperset(module.FORMATS) or not module.FORMATS:
        raise _unknown(name, 'FORMATS must be of "onnx", "ir" or both')
    python = getattr(module, "PYTHON", "")
    if not isinstance(python, str):
        raise _unknown(name, "PYTHON must be the path of an interpreter, a string")
    return Adapter(
        call=getattr(module, needed),
        packages=module.PACKAGES,
        formats=module.FORMATS,
        modules=tuple(getattr(module, "MODULES", ())),
        kind=kind,
        states_shapes=getattr(module, "JUDGED_BY", "") == "shapes",
        downwards=bool(getattr(module, "DOWNWARDS", True)),
        python=python,
        path=str(Path(module.__file__ or "").absolute()),
    )


def title(name: str) -> str:
    """Return a subject's name in reports: a file by its stem, a module by its last part."""
    return Path(name).stem if _is_path(name) else name.rpartition(".")[2]


def place(name: str) -> str:
    """Return a subject's name for processes in other folders (TS601 for a path to no such file)."""
    if not _is_path(name):
        return name
    path = Path(name)
    try:
        is_there = path.suffix == ".py" and path.is_file()
    except OSError as error:
        raise missing(name, words_of(error), "give the path of a file that can be read") from None
    if not is_there:
        raise _unknown(name, "there is no such Python file")
    return str(path.absolute())


def _is_path(name: str) -> bool:
    return name.endswith(".py") or os.sep in name


def _module_of_file(path: Path) -> ModuleType:
    try:
        return elsewhere.load(str(path))
    except (Exception, SystemExit) as error:
        raise _not_imported(str(path), error) from error


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # ValueError and TypeError for "" and ".name"
        lost = error.name if isinstance(error, ModuleNotFoundError) else None
        if lost is not None and f"{name}.".startswith(f"{lost}."):
            raise _unknown(name, "none has this name, and no module either") from None
        raise _not_imported(name, error) from error


def _not_imported(name: str, error: BaseException) -> SplitError:
    """Return the error for what importing a subject has raised."""
    fix = "install what it needs" if isinstance(error, ImportError) else "correct its code"
    return missing(name, f"{type(error).__name__}: {error}", fix)


def _unknown(name: str, why: str) -> SplitError:
    near = did_you_mean(name, SUBJECTS)
    fix = f"{near}tensorsplit conformance --list-engines lists the built-in ones"
    if not near:
        fix = f"{fix}; others are given by the path or the module of an adapter"
    problem = f"{show(name)} is not an engine or tool: {why}"
    return SplitError(UNKNOWN_ENGINE, problem, fix, parameter="engine")


def missing(name: str, why: str, fix: str = "install what it needs") -> SplitError:
    """Return the error that a subject can't be imported."""
    problem = f"{show_path(name)} can't be imported: {why}"
    return SplitError(ENGINE_MISSING, problem, fix, parameter="engine")
