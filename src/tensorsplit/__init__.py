"""One exact, safe definition of the tensor Split operators, in every version.

``import tensorsplit as ts`` loads NumPy and nothing heavier; what works on models is loaded when
it is first called.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tensorsplit import native, openvino
from tensorsplit.api import split, split_to_sequence, variadic_split
from tensorsplit.arrays.pool import BufferPool
from tensorsplit.compare import OperatorDiff, diff
from tensorsplit.errors import SplitError
from tensorsplit.operators import operators
from tensorsplit.plan import SplitPlan
from tensorsplit.prepared import PreparedSplit, SequenceShape, infer, plan

if TYPE_CHECKING:
    from tensorsplit.engines import run
    from tensorsplit.models.check.checker import check
    from tensorsplit.models.convert import convert
    from tensorsplit.models.infer.fill import infer_shapes
    from tensorsplit.models.lower import lower

__version__ = "0.1.0"

__all__ = [
    "BufferPool",
    "OperatorDiff",
    "PreparedSplit",
    "SequenceShape",
    "SplitError",
    "SplitPlan",
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
    "check": "tensorsplit.models.check.checker",
    "convert": "tensorsplit.models.convert",
    "infer_shapes": "tensorsplit.models.infer.fill",
    "lower": "tensorsplit.models.lower",
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
