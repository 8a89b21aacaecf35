"""Models: reading them, checking their split nodes, and running them.

onnx-ir imports SymPy, which takes longer than all the rest together and is used only where a
dimension with a name takes part in arithmetic. Whoever imports this package first has onnx-ir
import it then.
"""

from __future__ import annotations

import sys
from importlib import import_module
from threading import RLock
from types import ModuleType
from typing import Any


class _Later(ModuleType):
    """SymPy as onnx-ir holds it: imported when something of it is used.

    While onnx-ir is imported, which keeps some of SymPy's functions in a table, each of them is a
    function that imports SymPy when it is called; meanwhile other threads wait for what they use.
    """

    def __init__(self) -> None:
        super().__init__("sympy")
        self._lock = RLock()

    def __getattr__(self, name: str) -> Any:
        with self._lock:
            if sys.modules.get("sympy") is not self:
                return getattr(import_module("sympy"), name)
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*given: Any) -> Any:
            return getattr(self, name)(*given)

        return call

    def import_onnx_ir(self) -> None:
        """Import onnx-ir with this in the place of SymPy, which nobody has imported yet."""
        with self._lock:
            sys.modules["sympy"] = self
            try:
                import_module("onnx_ir")
            finally:
                del sys.modules["sympy"]


if not {"sympy", "onnx_ir"} & sys.modules.keys():
    _Later().import_onnx_ir()
