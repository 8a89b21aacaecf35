"""What grows: the parts, their length, the axis and so on, one thing in each study."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from tensorsplit.bench.workloads import Kind, Workload

Split: TypeAlias = tuple[tuple[int, ...], int, tuple[int, ...]]
"""The shape, the axis and the sizes."""


@dataclass(frozen=True, slots=True)
class Study:
    """Workloads that differ in one thing.

    Attributes:
        name: Starts the name of each workload, ``name:value``.
        title: What is shown.
        unit: What the value counts.
        workloads: The workloads, in the order of their values.
    """

    name: str
    title: str
    unit: str
    workloads: tuple[Workload, ...]


def _study(
    name: str,
    title: str,
    unit: str,
    values: Iterable[int],
    *,
    split: Callable[[int], Split],
    kind: Kind = "copy",
) -> Study:
    """A study from what makes the split for each value."""
    workloads = tuple(
        Workload(f"{name}:{value}", title, shape, "float32", axis, sizes, kind=kind)
        for value, (shape, axis, sizes) in ((value, split(value)) for value in values)
    )
    return Study(name, title, unit, workloads)


def _halves(rank: int) -> Split:
    """2^22 elements in dimensions as alike as can be; the one in the middle is halved."""
    axis = rank // 2
    shape = tuple(1 << 22 // rank + (number < 22 % rank) for number in range(rank))
    return shape, axis, (shape[axis] // 2,) * 2


_BLOCK_BYTES, _ELEMENT_BYTES = 3 * 256 * 4, 3 * 4

STUDIES = (
    _study(
        "blocks",
        "Time against bytes: rows of three parts of 256 floats",
        "bytes",
        [_BLOCK_BYTES << power for power in range(0, 17, 2)],
        split=lambda value: ((value // _BLOCK_BYTES, 768), 1, (256,) * 3),
    ),
    _study(
        "elements",
        "Time against bytes: rows of three parts of one float",
        "bytes",
        [_ELEMENT_BYTES << power for power in range(8, 25, 2)],
        split=lambda value: ((value // _ELEMENT_BYTES, 3), 1, (1,) * 3),
    ),
    _study(
        "parts",
        "Time against the number of parts: 16 MB, rows of 4096 floats",
        "parts",
        [1 << power for power in range(0, 13, 2)],
        split=lambda value: ((1024, 4096), 1, (4096 // value,) * value),
    ),
    _study(
        "rank",
        "Time against the rank: 16 MB, the middle dimension in halves",
        "dimensions",
        range(1, 9),
        split=_halves,
    ),
    _study(
        "calls",
        "Time of an eager call that returns views, against the number of parts",
        "parts",
        [1 << power for power in range(0, 11, 2)],
        split=lambda value: ((value, 4), 0, (1,) * value),
        kind="views",
    ),
)
"""Every study."""
