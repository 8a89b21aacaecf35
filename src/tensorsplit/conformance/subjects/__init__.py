"""Subjects: what the suite is pointed at, one file for each engine and tool.

A subject is a module that imports with nothing installed: what it runs is imported when it runs.
It defines

- ``KIND``: ``"engine"``, which runs models, or ``"tool"``, which rewrites them;
- ``PACKAGES``: the distributions it needs, the one that it is named by first;
- ``FORMATS``: the model formats it reads, ``"onnx"`` and ``"ir"`` (OpenVINO IR);
- an engine ``run(model, weights, inputs, outputs)``, a tool ``rewrite(model, target_opset)``;
- ``IMPORTS`` and ``SCRIPT``: the lines that do the same in a script of its own. They find the names
  ``MODEL``, ``WEIGHTS``, ``INPUTS`` and ``OUTPUTS``, which are what ``run`` is called with (a tool:
  ``MODEL`` and ``TARGET_OPSET``), and leave the dictionary ``results`` (a tool: the bytes
  ``rewritten``);
- maybe ``MODULES``: what takes long to import, so that it is not taken for a case that hangs;
- maybe ``FOREIGN_IMPORTS`` and ``FOREIGN_SCRIPT``: the same lines for arrays of a type that is not
  NumPy's own but of ``ml_dtypes``, if that takes other ones;
- a tool maybe ``JUDGED_BY = "shapes"``, if it states shapes and changes nothing, and
  ``DOWNWARDS = False``, if it converts to newer opsets only.

Nothing here checks a model before the engine sees it: the point is to see what the engine does. So
subjects run in a process that may die.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from tensorsplit.core.errors import ENGINE_MISSING, UNKNOWN_ENGINE, SplitError, show

_MODULES = (
    *("numpy", "onnx_reference", "onnxruntime", "openvino"),
    *("tvm", "iree", "opencv", "tract", "tinygrad", "onnx2torch", "jaxonnxruntime"),
    *("onnx_shape_inference", "onnx_version_converter"),
    *("onnxscript_converter", "onnxscript_optimizer", "onnxslim", "onnxsim", "onnxoptimizer"),
)
SUBJECTS: Mapping[str, str] = MappingProxyType(
    {module.replace("_", "-"): f"{__name__}.{module}" for module in _MODULES}
)
"""The names of the built-in subjects, engines first, and their modules."""

_NEEDED = {"engine": "run", "tool": "rewrite"}
_TEXTS = ("IMPORTS", "SCRIPT")


class Unsupported(Exception):  # noqa: N818 - not an error: the engine says what it does not do
    """An engine says that it has no such element type, operator or opset at all."""


@contextmanager
def unsupported(model: bytes, *classes: type[Exception], says: str = "") -> Iterator[None]:
    """Raise `Unsupported` for an exception with which an engine says that it lacks something.

    That an engine does not run functions of the model's own is no lack of an operator: it stays
    the refusal that it is.

    Args:
        model: What the engine is given.
        classes: The exceptions that always say so.
        says: A regular expression for the messages of all others that do.
    """
    try:
        yield
    except Exception as error:
        words = f"{error} {error.__cause__ or error.__context__ or ''}".strip()
        is_said = isinstance(error, classes) or (says and re.search(says, words))
        if is_said and not any(name in words for name in _functions(model)):
            raise Unsupported(words) from error
        raise


def _functions(model: bytes) -> set[str]:
    """The names of the functions that a model brings along."""
    import onnx

    return set() if is_ir(model) else {f.name for f in onnx.load_from_string(model).functions}


def load(name: str) -> ModuleType:
    """The module of a subject.

    Args:
        name: A built-in subject, the path of a ``.py`` file, or a module that can be imported.

    Raises:
        SplitError: TS601 if there is no such subject, or it lacks something; TS602 if it can't be
            imported because something else is missing.
    """
    if name in SUBJECTS:
        return importlib.import_module(SUBJECTS[name])
    module = _from_file(Path(name)) if _is_path(name) else _from_module(name)
    _check(name, module)
    return module


def title(name: str) -> str:
    """What a subject is called in reports: a file by its stem, a module by its last part.

    Args:
        name: As `load` takes it.
    """
    if name in SUBJECTS:
        return name
    return Path(name).stem if _is_path(name) else name.rpartition(".")[2]


def installed(name: str) -> bool:
    """Whether all that a subject needs is installed; nothing of it is imported to find out.

    Args:
        name: As `load` takes it.

    Raises:
        SplitError: As `load`.
    """
    try:
        versions(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def versions(name: str) -> dict[str, str]:
    """The version of each distribution that a subject needs.

    Args:
        name: As `load` takes it.

    Raises:
        SplitError: As `load`.
        importlib.metadata.PackageNotFoundError: If one is not installed.
    """
    return {package: metadata.version(package) for package in load(name).PACKAGES}


def prepare(name: str) -> None:
    """Import what a subject imports when it runs.

    Args:
        name: As `load` takes it.

    Raises:
        SplitError: As `load`.
        ImportError: If something can't be imported.
    """
    for module in getattr(load(name), "MODULES", ()):
        importlib.import_module(module)


def is_ir(model: bytes) -> bool:
    """Whether a model is the text of an IR, and not a serialised ONNX model.

    Args:
        model: What an engine is given.
    """
    return model.lstrip().startswith(b"<")


def ordered(model: bytes, inputs: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    """What is fed, in the order in which an engine takes it.

    Args:
        model: What the engine is given.
        inputs: Values by name. What the engine dropped because nothing uses it is left out.
        names: The names of the engine's inputs.

    Raises:
        LookupError: If the engine has made a constant of an input that is fed another value, which
            would be lost without a word; if an input of the engine is not fed.
    """
    import onnx

    defaults = [] if is_ir(model) else onnx.load_from_string(model).graph.initializer
    lost = [entry.name for entry in defaults if entry.name in inputs.keys() - set(names)]
    if lost:
        raise LookupError(f"the engine takes the default of {', '.join(lost)} for a constant")
    missing = [name for name in names if name not in inputs]
    if missing:
        raise LookupError(f"the engine wants to be fed {', '.join(missing)}, which has a value")
    return [inputs[name] for name in names]


def _is_path(name: str) -> bool:
    return name.endswith(".py") or os.sep in name


def _from_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"tensorsplit_subject_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise _unknown(str(path), "there is no such Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # what a dataclass or a pickle of it looks for
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        raise _missing(str(path), error) from error
    return module


def _from_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise _unknown(name, "there is no such subject and no such module") from None
        raise _missing(name, error) from error
    except (ImportError, TypeError, ValueError) as error:  # the latter two: "" and ".name"
        raise _missing(name, error) from error


def _check(name: str, module: ModuleType) -> None:
    """Check that a module has what the suite needs of a subject."""
    needed = _NEEDED.get(getattr(module, "KIND", ""))
    if needed is None:
        raise _unknown(name, 'it must define KIND = "engine" or KIND = "tool"')
    if not callable(getattr(module, needed, None)):
        raise _unknown(name, f"it must define the function {needed}")
    for entry in ("PACKAGES", "FORMATS"):
        value = getattr(module, entry, None)
        if not isinstance(value, tuple) or not all(isinstance(item, str) for item in value):
            raise _unknown(name, f"it must define {entry}, a tuple of strings")
    for entry in _TEXTS:
        if not isinstance(getattr(module, entry, None), str):
            raise _unknown(name, f"it must define {entry}, a string")


def _unknown(name: str, why: str) -> SplitError:
    return SplitError(
        UNKNOWN_ENGINE,
        f"{show(name)} is no subject: {why}",
        f"give the path or the module of an adapter, or one of {', '.join(SUBJECTS)}",
        parameter="engine",
    )


def _missing(name: str, error: Exception) -> SplitError:
    return SplitError(
        ENGINE_MISSING,
        f"{show(name)} can't be imported: {error}",
        "install what it needs",
        parameter="engine",
    )
