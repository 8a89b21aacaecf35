"""One exact, safe definition of the tensor Split operators, in every version.

``import tensorsplit as ts`` loads NumPy and nothing heavier; what works on models is loaded when
it is first called.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tensorsplit import native, openvino
from tensorsplit.arrays.eager import split, split_to_sequence, variadic_split
from tensorsplit.arrays.pool import BufferPool
from tensorsplit.arrays.prepared import PreparedSplit, SequenceShape, infer, plan
from tensorsplit.core.differences import OperatorDiff, diff
from tensorsplit.core.errors import SplitError, SplitWarning
from tensorsplit.core.plan import SplitPlan
from tensorsplit.core.records import operators

if TYPE_CHECKING:
    from tensorsplit.engines import run
    from tensorsplit.model.check.checker import check
    from tensorsplit.model.convert import convert
    from tensorsplit.model.infer.filling import infer_shapes
    from tensorsplit.model.lower import lower

__version__ = "0.1.0"

__all__ = [
    "BufferPool",
    "OperatorDiff",
    "PreparedSplit",
    "SequenceShape",
    "SplitError",
    "SplitPlan",
    "SplitWarning",
    "check",
    "convert",
    "diff",
    "infer",
    "infer_shapes",
    "lower",
    "native",
    "openvino",
    "operators",
    "plan",
    "run",
    "split",
    "split_to_sequence",
    "variadic_split",
]


_ON_DEMAND = {
    "check": "tensorsplit.model.check.checker",
    "convert": "tensorsplit.model.convert",
    "infer_shapes": "tensorsplit.model.infer.filling",
    "lower": "tensorsplit.model.lower",
    "run": "tensorsplit.engines",
}
"""What works on models, and the module that is loaded when it is first asked for."""


def __getattr__(name: str) -> Any:
    module = _ON_DEMAND.get(name)
    if module is None:
        raise AttributeError(f"module 'tensorsplit' has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_ON_DEMAND])
