"""The parts of zarr beyond its documented interface that are used: all of them are named here.

There (3.1) nothing else reads the metadata of an array from its document, encodes and decodes one
chunk with a layout of its own, or waits for a store.
"""

from __future__ import annotations

from collections.abc import Coroutine
from functools import cache
from typing import Any

from zarr.core import sync as waiting
from zarr.core.array_spec import ArrayConfig, ArraySpec
from zarr.core.chunk_grids import RegularChunkGrid
from zarr.core.metadata import ArrayV2Metadata, ArrayV3Metadata

from tensorsplit.files.sources import check_descriptors

__all__ = [
    "ArrayConfig",
    "ArraySpec",
    "ArrayV2Metadata",
    "ArrayV3Metadata",
    "RegularChunkGrid",
    "sync",
]

_DESCRIPTORS_OF_LOOP = 3


def sync(awaited: Coroutine[object, object, object]) -> Any:
    """Wait for what zarr does; OSError where its event loop can't be started."""
    try:
        _check_descriptors()
        return waiting.sync(awaited)
    except OSError:
        awaited.close()  # it may not have begun
        raise


@cache
def _check_descriptors() -> None:
    """Raise the error of a loop that can't be started: Python prints a traceback of half a loop."""
    check_descriptors(_DESCRIPTORS_OF_LOOP)
