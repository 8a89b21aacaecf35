"""One exact, safe definition of the tensor Split operators, in every version.

``import tensorsplit as ts`` loads NumPy and nothing heavier; what works on models is loaded when
it is first called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorsplit import openvino
from tensorsplit.api import split, split_to_sequence, variadic_split
from tensorsplit.compare import OperatorDiff, diff
from tensorsplit.errors import SplitError
from tensorsplit.operators import operators
from tensorsplit.plan import SplitPlan
from tensorsplit.prepared import PreparedSplit, SequenceShape, infer, plan

if TYPE_CHECKING:
    from tensorsplit.engines import run

__version__ = "0.1.0"

__all__ = [
    "OperatorDiff",
    "PreparedSplit",
    "SequenceShape",
    "SplitError",
    "SplitPlan",
    "diff",
    "infer",
    "openvino",
    "operators",
    "plan",
    "run",
    "split",
    "split_to_sequence",
    "variadic_split",
]


def __getattr__(name: str) -> Any:
    if name == "run":
        from tensorsplit.engines import run

        return run
    raise AttributeError(f"module 'tensorsplit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), "run"])
