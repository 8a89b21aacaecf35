"""The format of zarr stores, version 2 and 3, at a path or any URL of fsspec."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorsplit.core.extras import needs
from tensorsplit.files.sources import local_path

if TYPE_CHECKING:
    from tensorsplit.files.formats import FileLayout
    from tensorsplit.files.zarr_sources import ZarrSource


def recognizes(source: str) -> bool:
    """Return whether it is a URL, a path that ends in ``.zarr``, or a folder of zarr stores."""
    path = local_path(source)
    return (
        path is None
        or path.suffix == ".zarr"
        or any((path / name).is_file() for name in ("zarr.json", ".zarray", ".zgroup"))
        or (path.is_dir() and any(each.suffix == ".zarr" for each in path.iterdir()))
    )


def open_source(source: str, _layout: FileLayout) -> ZarrSource:
    """Read the description of the array or group at a path or URL (TS705)."""
    with needs("files"):
        from tensorsplit.files import zarr_sources
    return zarr_sources.ZarrSource(source.rstrip("/"))
