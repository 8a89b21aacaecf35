"""Models: reading them, checking their split nodes, and running them.

onnx-ir imports SymPy, which takes longer than all the rest together and is used only where a
dimension with a name takes part in arithmetic. A program that imports this package first has
onnx-ir import it then.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_IMPORTING = ("onnx_ir._core", "onnx_ir._symbolic_shapes")
"""The modules that import SymPy when they are imported."""


class _Later(ModuleType):
    """SymPy as onnx-ir has it: imported when something of it is used.

    While onnx-ir is imported, which keeps some of SymPy's functions in a table, each of them is a
    function that imports SymPy when it is called.
    """

    is_ready = False

    def __getattr__(self, name: str) -> object:
        if self.is_ready or name.startswith("_"):
            return getattr(import_module("sympy"), name)

        def call(*given: object) -> Any:
            return getattr(import_module("sympy"), name)(*given)

        return call


class _Finder:
    """Has the modules of onnx-ir import `_Later` as SymPy, and leaves every other module alone.

    They get builtins of their own, so that nothing is different for what other threads import.
    """

    def __init__(self) -> None:
        self.sympy = _Later("sympy")

    def find_spec(
        self, name: str, path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module of onnx-ir that imports SymPy is, with a loader that does so."""
        spec = PathFinder.find_spec(name, path) if name in _IMPORTING else None
        loader = None if spec is None else spec.loader
        if loader is not None:
            vars(loader)["exec_module"] = partial(self._execute, loader.exec_module)
        return spec

    def _execute(self, execute: Callable[[ModuleType], None], module: ModuleType) -> None:
        vars(module)["__builtins__"] = vars(builtins) | {"__import__": self._import}
        execute(module)

    def _import(self, name: str, *given: Any) -> object:
        return self.sympy if name == "sympy" else builtins.__import__(name, *given)


def _import_onnx_ir() -> None:
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    try:
        import_module("onnx_ir")
    finally:
        sys.meta_path.remove(finder)
        finder.sympy.is_ready = True


if not {"sympy", "onnx_ir"} & sys.modules.keys():
    _import_onnx_ir()
