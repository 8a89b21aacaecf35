"""The kernel, once with each set of kernels that runs here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tensorsplit import native

WAYS = {
    "best": ("", sys.maxsize),
    "best, non-temporal": ("", 1),
    "baseline": ("baseline", sys.maxsize),
    "baseline, non-temporal": ("baseline", 1),
    "best, measured": ("", 0),
}
"""Kernels, and from how many bytes on their stores are non-temporal."""


@contextmanager
def set_to(way: str) -> Iterator[Any]:
    """Set the extension module to copy in one way."""
    if native.kernel is None:
        pytest.skip("copies go through NumPy here")
    name, non_temporal_from = WAYS[way]
    native.kernel.use(name)
    native.kernel.use_non_temporal_from(non_temporal_from)
    try:
        yield native.kernel
    finally:
        native.kernel.use("")
        native.kernel.use_non_temporal_from(0)


@pytest.fixture(params=list(WAYS))
def kernel(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The extension module, set to copy in each way."""
    with set_to(request.param) as kernel:
        yield kernel


@pytest.fixture
def restore_threads() -> Iterator[None]:
    """As many threads afterwards as before."""
    yield
    if native.kernel is not None:
        native.kernel.use_threads(native.threads)
