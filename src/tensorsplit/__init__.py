"""One exact, safe definition of the tensor Split operators, in every version.

``import tensorsplit as ts`` loads no other library: each name is loaded when you first use it. The
functions on arrays load NumPy. The functions on models load onnx, which the extra ``models``
installs; without it they raise TS711.
"""

from __future__ import annotations

import logging  # noqa: F401 - before `_loading`
import os
from _thread import RLock
from sys import modules

TYPE_CHECKING = False  # of `typing`, which takes long to load

if TYPE_CHECKING:
    from tensorsplit import files, lengths, native, openvino, torch
    from tensorsplit.arrays.dialect_calls import like
    from tensorsplit.arrays.eager import split, split_to_sequence, variadic_split
    from tensorsplit.arrays.joining import join
    from tensorsplit.arrays.pool import BufferPool
    from tensorsplit.arrays.prepared import NamedSplit, PreparedSplit, SequenceShape, infer, plan
    from tensorsplit.core.differences import OperatorDiff, diff
    from tensorsplit.core.errors import SplitError, SplitWarning
    from tensorsplit.core.plan import SplitPlan
    from tensorsplit.core.records import operators
    from tensorsplit.engines import run, session
    from tensorsplit.engines.sessions import Session
    from tensorsplit.engines.verification import Verification, verify
    from tensorsplit.model.check.checker import check
    from tensorsplit.model.convert import convert
    from tensorsplit.model.infer.filling import infer_shapes
    from tensorsplit.model.lower import lower
    from tensorsplit.pages.explained import explain

__version__ = "0.2.0"

__all__ = [
    "BufferPool",
    "NamedSplit",
    "OperatorDiff",
    "PreparedSplit",
    "SequenceShape",
    "Session",
    "SplitError",
    "SplitPlan",
    "SplitWarning",
    "Verification",
    "check",
    "convert",
    "diff",
    "explain",
    "files",
    "infer",
    "infer_shapes",
    "join",
    "lengths",
    "like",
    "lower",
    "native",
    "openvino",
    "operators",
    "plan",
    "run",
    "session",
    "split",
    "split_to_sequence",
    "torch",
    "variadic_split",
    "verify",
]


_MODULES = {
    "BufferPool": "arrays.pool",
    "NamedSplit": "arrays.prepared",
    "OperatorDiff": "core.differences",
    "PreparedSplit": "arrays.prepared",
    "SequenceShape": "arrays.prepared",
    "Session": "engines.sessions",
    "SplitError": "core.errors",
    "SplitPlan": "core.plan",
    "SplitWarning": "core.errors",
    "Verification": "engines.verification",
    "check": "model.check.checker",
    "convert": "model.convert",
    "diff": "core.differences",
    "explain": "pages.explained",
    "infer": "arrays.prepared",
    "infer_shapes": "model.infer.filling",
    "join": "arrays.joining",
    "like": "arrays.dialect_calls",
    "lower": "model.lower",
    "operators": "core.records",
    "plan": "arrays.prepared",
    "run": "engines",
    "session": "engines",
    "split": "arrays.eager",
    "split_to_sequence": "arrays.eager",
    "variadic_split": "arrays.eager",
    "verify": "engines.verification",
}
"""The module of each name."""

# A fork waits for what another thread loads: its child would wait for that thread for ever.
# Forks take locks in the reverse of their order here, and what is loaded takes that of logging:
# were logging imported later, the two could wait for each other
_loading = RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_loading.acquire,
        after_in_parent=_loading.release,
        after_in_child=_loading.release,
    )


if not TYPE_CHECKING:  # else a checker would take any name for one of the package

    def __getattr__(name: str) -> object:
        if name not in __all__:
            problem = f"module 'tensorsplit' has no attribute {name!r}"
            raise AttributeError(problem, name=name, obj=modules[__name__])  # so Python suggests
        with _loading:
            from importlib import import_module

            try:
                if name in _MODULES:
                    found = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
                else:
                    found = import_module(f"{__name__}.{name}")
            except ImportError as error:
                from tensorsplit.core.extras import import_refusal, stand_in

                refusal = import_refusal(error)
                if refusal is None:
                    raise
                # not kept: what is missing may be installed meanwhile
                return stand_in(name, refusal)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
