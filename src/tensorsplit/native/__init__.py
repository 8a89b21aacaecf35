"""The copy kernel, where the package was built with one.

It knows arrays, extents and strides, and nothing of operators. For large copies it measures how
many threads and which stores are the fastest: it makes some of the first copies of a kind of split
and size in another way, keeps the fastest way, and tries the others again from time to time. The
bits are the same. Three environment variables are read when this module is imported:
``TENSORSPLIT_NATIVE`` (``0``: NumPy makes all copies; ``1``: NumPy must not; or the name of
kernels, such as ``baseline``), ``TENSORSPLIT_THREADS`` (how many threads may share one copy) and
``TENSORSPLIT_NON_TEMPORAL`` (from how many bytes on parts are stored past the cache).

Attributes:
    kernel: The extension module; None if NumPy copies.
    in_use: The name of what copies: kernels (``avx2``, ``neon`` or ``baseline``), or ``numpy``.
    threads: How many threads may share one copy.
    non_temporal_from: From how many bytes on parts are stored past the cache; None if that is
        measured.
    refused: What is wrong with an environment variable, as its name, what was seen and what would
        be right; None if nothing is.
"""

from __future__ import annotations

import os
import sys
from typing import Any, NamedTuple

from tensorsplit.native.machine import processors_allowed

__all__ = [
    "Refused",
    "choices",
    "in_use",
    "kernel",
    "measure",
    "non_temporal_from",
    "refused",
    "threads",
]

_MOST_THREADS = 16
"""A few threads use all of a memory's bandwidth; more than these only get in each other's way."""

_COPIES = 40
"""So many decide on the stores and the threads."""


class Refused(NamedTuple):
    """An environment variable whose value means nothing."""

    variable: str
    problem: str
    expected: str


class _Loaded(NamedTuple):
    kernel: Any = None
    in_use: str = "numpy"
    threads: int = 1
    non_temporal_from: int | None = None
    refused: Refused | None = None


def _load() -> _Loaded:
    name = os.environ.get("TENSORSPLIT_NATIVE", "")
    if name == "0":
        return _Loaded()
    threads = _read_threads(os.environ.get("TENSORSPLIT_THREADS", ""))
    if isinstance(threads, Refused):
        return _Loaded(refused=threads)
    non_temporal_from = _read_bytes(os.environ.get("TENSORSPLIT_NON_TEMPORAL", ""))
    if isinstance(non_temporal_from, Refused):
        return _Loaded(refused=non_temporal_from)
    selected = _select(name)
    if isinstance(selected, _Loaded):
        return selected
    selected.use_threads(threads)
    if non_temporal_from is not None:
        selected.use_non_temporal_from(max(non_temporal_from, 1))
    in_use = selected.use("" if name == "1" else name)
    return _Loaded(selected, in_use, threads, non_temporal_from)


def _select(name: str) -> Any:
    """Return the extension, with the kernels of that name; or what there is instead."""
    try:
        from tensorsplit.native import _kernel
    except ImportError:  # not built, or not for this NumPy
        if not name:
            return _Loaded()
        return _refuse(name, "unset it or give 0: there is no kernel here")
    try:
        _kernel.use("" if name == "1" else name)
    except ValueError:
        return _refuse(name, "give 0, 1 or the name of kernels that run here, such as baseline")
    return _kernel


def _refuse(name: str, expected: str) -> _Loaded:
    return _Loaded(refused=Refused("TENSORSPLIT_NATIVE", f"it is {name!r}", expected))


def _read_threads(text: str) -> int | Refused:
    """Read the number of threads: as many as are wanted and of use."""
    bound = _MOST_THREADS
    if text:
        is_number = text.isascii() and text.isdecimal() and len(text) <= 9
        bound = int(text) if is_number else 0
        if bound == 0:
            return Refused("TENSORSPLIT_THREADS", f"it is {text!r}", "give a number from 1 on")
    return min(bound, _MOST_THREADS, _processors())


def _read_bytes(text: str) -> int | Refused | None:
    """Read the number of bytes; None if that is to be measured."""
    if not text:
        return None
    if text == "never":
        return sys.maxsize
    if text.isascii() and text.isdecimal() and len(text) <= 18:
        return int(text)
    expected = "give a number of bytes, or never; unset it to have that measured"
    return Refused("TENSORSPLIT_NON_TEMPORAL", f"it is {text!r}", expected)


def _processors() -> int:
    """Return how many processors this process may use, by its affinity and its control groups."""
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity else os.cpu_count() or 1
    return min(count, processors_allowed() or count)


class Way(NamedTuple):
    """A way of copying.

    Attributes:
        stores: ``plain``; ``prefetched`` where what is far from the processor is fetched before it
            is used; ``non-temporal`` where parts are stored past the cache.
        threads: How many threads share a copy.
        time: The best time in nanoseconds for a byte; 0 where it was not measured.
    """

    stores: str
    threads: int
    time: float


class Choice(NamedTuple):
    """How splits of a kind and size are copied.

    Attributes:
        kind: What the splits have in common.
        bytes: The largest of the sizes; the smallest is above two thirds or three quarters of it.
        way: What was chosen.
        other: What it was compared with last.
    """

    kind: str
    bytes: int
    way: Way
    other: Way


def choices() -> list[Choice]:
    """Return the choices that this process has measured until now."""
    found = []
    for joined, tiles, even, in_step, count, width, size, *ways in (
        kernel.choices() if kernel else ()
    ):
        columns = "elements that lie apart" if tiles else f"{count} or more columns"
        step = ", in step with cache lines" if in_step and not tiles else ""
        columns = f"a join of {columns}" if joined else columns
        kind = f"{columns} of about {width} bytes{'' if even else ', uneven'}{step}"
        found.append(Choice(kind, size, *(Way(*way) for way in ways)))
    return found


def measure() -> None:
    """Make so many copies of some kinds and sizes that the fastest ways are known."""
    if kernel is None:
        return
    import numpy as np

    for size in (1 << 19, 1 << 21, 1 << 23, 1 << 25):
        data = np.ones(size, np.uint8)
        for width in (4, 256, 4096):
            rows = data.reshape(-1, 4 * width)
            parts = [np.empty((len(rows), width), np.uint8) for _ in range(4)]
            for _ in range(_COPIES):
                kernel.copy_into(rows, 1, (width,) * 4, True, parts)


kernel, in_use, threads, non_temporal_from, refused = _load()


def __dir__() -> list[str]:
    return [*__all__]
