"""A program that another interpreter runs: the one that an adapter names, for packages of its own.

It is run by its path, with ``-I``, and imports nothing of this package, which may be missing there
or need other versions: only ``messages.py`` beside it, by its path too, and NumPy.

Its argument is the number of a pipe, on which it answers calls (see `worker`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module, metadata
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

OLDEST = (3, 10)
"""The oldest Python that can run this."""

_loaded: dict[str, ModuleType] = {}


def load(path: str) -> ModuleType:
    """Import a file by its path, once; it raises what it likes."""
    if path not in _loaded:
        name = f"tensorsplit_{Path(path).stem}"
        spec = spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} is not a Python file")
        module = sys.modules[name] = module_from_spec(spec)  # where a dataclass in it looks
        spec.loader.exec_module(module)
        _loaded[path] = module
    return _loaded[path]


if sys.version_info < OLDEST:
    sys.exit(f"it is Python {sys.version.split()[0]}")

if TYPE_CHECKING:
    from tensorsplit.engines import messages
else:
    messages = load(str(Path(__file__).with_name("messages.py")))


def prepare(path: str) -> None:
    """Import an adapter and the modules that it lists as slow to import."""
    for name in getattr(load(path), "MODULES", ()):
        import_module(name)


def perform(  # noqa: PLR0917 - what is sent, in this order
    path: str,
    model: bytes,
    weights: bytes,
    inputs: Mapping[str, object],
    outputs: Sequence[str],
    target_opset: int,
) -> Any:
    """Run a case on an adapter, as `conformance.subjects.perform` does here."""
    adapter = load(path)
    if adapter.KIND == "tool":
        rewritten = adapter.rewrite(model, target_opset)
        return bytes(rewritten) if isinstance(rewritten, (bytes, bytearray)) else None
    if not messages.HAS_ML_DTYPES and _has_raw(inputs):
        raise messages.Unsupported("NumPy has this element type with ml_dtypes, not installed here")
    return messages.arrays_of(adapter.run(model, weights, inputs, outputs))


def _has_raw(value: object) -> bool:
    """Return whether it holds an array of a type of ml_dtypes, where there is no ml_dtypes."""
    if isinstance(value, (list, dict)):
        return any(map(_has_raw, value.values() if isinstance(value, dict) else value))
    return getattr(getattr(value, "dtype", None), "kind", "") == "V"


def answer(called: str, request: Sequence[object]) -> dict[str, object]:
    """Answer a call, of which only the function's name counts."""
    functions: dict[str, Callable[..., object]] = {
        each.__name__: each for each in (prepare, perform, versions)
    }
    try:
        return {"result": functions[called.partition(":")[2]](*request)}
    except Exception as error:  # noqa: BLE001 - an engine may raise anything
        return messages.refusal(error)


def versions(distributions: Sequence[str]) -> dict[str, str]:
    """Return the versions of those distributions that are installed here."""
    found = {}
    for name in distributions:
        try:
            found[name] = metadata.version(name)
        except (metadata.PackageNotFoundError, ValueError):  # ValueError for an empty name
            continue
    return found


if __name__ == "__main__":
    messages.serve(messages.Connection(int(sys.argv[1])), answer)
