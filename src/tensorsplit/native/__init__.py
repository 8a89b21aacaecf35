"""The copy kernel, where the package was built with one.

It knows arrays, extents and strides, and nothing of operators. Two environment variables are read
when this module is imported: ``TENSORSPLIT_NATIVE`` (``0`` for copies by NumPy alone, ``1`` if they
must not be, or the name of kernels, such as ``baseline``) and ``TENSORSPLIT_THREADS`` (how many
threads may share one copy).

Attributes:
    kernel: The extension module; None where copies are left to NumPy.
    in_use: What copies: kernels (``avx2``, ``neon`` or ``baseline``), or ``numpy``.
    threads: How many threads may share one copy.
    refused: What is wrong with an environment variable, as its name, what was seen and what would
        be right; None if nothing is.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

__all__ = ["Refused", "in_use", "kernel", "refused", "threads"]

_MOST_THREADS = 16
"""A few threads use all of a memory's bandwidth; more than these only get in each other's way."""


class Refused(NamedTuple):
    """An environment variable whose value means nothing."""

    variable: str
    problem: str
    expected: str


class _Loaded(NamedTuple):
    kernel: Any = None
    in_use: str = "numpy"
    threads: int = 1
    refused: Refused | None = None


def _load() -> _Loaded:
    name = os.environ.get("TENSORSPLIT_NATIVE", "")
    if name == "0":
        return _Loaded()
    threads = _read_threads(os.environ.get("TENSORSPLIT_THREADS", ""))
    if isinstance(threads, Refused):
        return _Loaded(refused=threads)
    try:
        from tensorsplit.native import _kernel
    except ImportError:  # not built, or not for this NumPy
        if not name:
            return _Loaded()
        return _refuse(name, "unset it or give 0: there is no kernel here")
    try:
        in_use = _kernel.use("" if name == "1" else name)
    except ValueError:
        return _refuse(name, "give 0, 1 or the name of kernels that run here, such as baseline")
    _kernel.use_threads(threads)
    return _Loaded(_kernel, in_use, threads)


def _refuse(name: str, expected: str) -> _Loaded:
    return _Loaded(refused=Refused("TENSORSPLIT_NATIVE", f"it is {name!r}", expected))


def _read_threads(text: str) -> int | Refused:
    """As many as are asked for and of use."""
    bound = _MOST_THREADS
    if text:
        is_number = text.isascii() and text.isdecimal() and len(text) <= 9
        bound = int(text) if is_number else 0
        if bound == 0:
            return Refused("TENSORSPLIT_THREADS", f"it is {text!r}", "give a number from 1 on")
    return min(bound, _MOST_THREADS, _processors())


def _processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


kernel, in_use, threads, refused = _load()
