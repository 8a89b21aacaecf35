"""What is used of zarr that its documented interface does not have: all of it is named here.

There (3.1) nothing else reads the metadata of an array from its document, encodes and decodes one
chunk with a layout of its own, or waits for a store.
"""

from zarr.core.array_spec import ArrayConfig, ArraySpec
from zarr.core.chunk_grids import RegularChunkGrid
from zarr.core.metadata import ArrayV2Metadata, ArrayV3Metadata
from zarr.core.sync import sync

__all__ = [
    "ArrayConfig",
    "ArraySpec",
    "ArrayV2Metadata",
    "ArrayV3Metadata",
    "RegularChunkGrid",
    "sync",
]
