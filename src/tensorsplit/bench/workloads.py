"""The workloads: which split, of what, in which layout, and what it stands for."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import accumulate
from math import prod
from typing import Literal, TypeAlias

import numpy as np

from tensorsplit.core.errors import USAGE, SplitError, show

Kind: TypeAlias = Literal["copy", "views", "plan"]
"""What is timed: contiguous parts, an eager call that returns views, or a plan that does."""

Layout: TypeAlias = Literal["contiguous", "transposed", "sliced", "reversed"]
"""How the source lies in memory: in C order, in Fortran order, with every other element of the last
axis, or with its first axis backwards."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A split to be timed; the element type goes by NumPy's name, ``object`` for strings."""

    name: str
    stands_for: str
    shape: tuple[int, ...]
    dtype: str
    axis: int  # counted from the front
    sizes: tuple[int, ...]
    layout: Layout = "contiguous"
    kind: Kind = "copy"

    @property
    def nbytes(self) -> int:
        """The bytes of the source; of strings, those of the references to them."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize

    @property
    def baseline(self) -> str:
        """What the times are compared with."""
        return {"copy": "memcpy", "views": "numpy.split", "plan": "slicing"}[self.kind]

    @property
    def indices(self) -> tuple[tuple[slice, ...], ...]:
        """The index of each part."""
        before = (slice(None),) * self.axis
        pairs = zip(self.sizes, accumulate(self.sizes), strict=True)
        return tuple((*before, slice(end - size, end)) for size, end in pairs)

    def __str__(self) -> str:
        least, most = min(self.sizes), max(self.sizes)
        lengths = f"{least}" if least == most else f"{least} to {most}"
        element = "strings" if self.dtype == "object" else self.dtype
        layout = "" if self.layout == "contiguous" else f" {self.layout}"
        count = len(self.sizes)
        return f"{element} {self.shape}{layout}, axis {self.axis}: {count} parts of {lengths}"


_RAGGED = tuple(8 + 37 * number % 71 for number in range(96))  # from 8 to 78, in no order

_ALL = (
    Workload(
        "attention",
        "query, key and value of a transformer",
        (8, 512, 2304),
        "float32",
        2,
        (768,) * 3,
    ),
    Workload(
        "grouped-query",
        "query, key and value where the heads share keys",
        (2, 1024, 6144),
        "float16",
        2,
        (4096, 1024, 1024),
    ),
    Workload("channels", "halves of a feature map, NCHW", (8, 128, 80, 80), "float32", 1, (64, 64)),
    Workload("rgb", "the channels of a 4K picture", (2160, 3840, 3), "uint8", 2, (1,) * 3),
    Workload("rgba", "the channels of a 4K picture", (2160, 3840, 4), "uint8", 2, (1,) * 4),
    Workload("stereo", "left and right of 16-bit sound", (1 << 22, 2), "int16", 1, (1, 1)),
    Workload("columns", "the columns of a table", (65536, 64), "float32", 1, (1,) * 64),
    Workload("doubles", "the columns of a table", (131072, 16), "float64", 1, (1,) * 16),
    Workload("complex", "two antennas, interleaved", (1 << 21, 2), "complex64", 1, (1, 1)),
    Workload("complex-pairs", "pairs of wide elements", (1 << 20, 2), "complex128", 1, (1, 1)),
    Workload("ragged", "96 features of uneven widths", (2048, sum(_RAGGED)), "float32", 1, _RAGGED),
    Workload("rows", "batches along the first axis", (4096, 2048), "float32", 0, (1024,) * 4),
    Workload("strings", "the columns of a table of text", (32768, 8), "object", 1, (1,) * 8),
    Workload(
        "transposed",
        "three blocks of a source in Fortran order",
        (2048, 3072),
        "float32",
        1,
        (1024,) * 3,
        "transposed",
    ),
    Workload(
        "sliced",
        "three blocks of every other column",
        (2048, 3072),
        "float32",
        1,
        (1024,) * 3,
        "sliced",
    ),
    Workload(
        "reversed",
        "the channels of a picture upside down",
        (2160, 3840, 3),
        "uint8",
        2,
        (1,) * 3,
        "reversed",
    ),
    Workload("small", "a layer for one short text", (1, 64, 768), "float32", 2, (256,) * 3),
    Workload("tiny", "the cost of the call itself", (6, 4), "float32", 0, (2, 4)),
    Workload("views", "two views, eagerly", (6, 4), "float32", 0, (2, 4), kind="views"),
    Workload("views-many", "64 views, eagerly", (64, 64), "float32", 1, (1,) * 64, kind="views"),
    Workload("plan", "two views by a prepared plan", (6, 4), "float32", 0, (2, 4), kind="plan"),
    Workload(
        "plan-many", "64 views by a prepared plan", (64, 64), "float32", 1, (1,) * 64, kind="plan"
    ),
)

WORKLOADS: dict[str, Workload] = {workload.name: workload for workload in _ALL}
"""Every workload, by its name."""


def choose_workloads(patterns: tuple[str, ...]) -> list[Workload]:
    """The workloads that any pattern names, all if there is none; TS703 if one names nothing."""
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in WORKLOADS):
            raise SplitError(
                USAGE,
                f"there is no workload {show(pattern)}",
                f"give one of {', '.join(WORKLOADS)}",
                parameter="workload",
            )
    chosen = patterns or ("*",)
    return [each for name, each in WORKLOADS.items() if any(fnmatchcase(name, p) for p in chosen)]
