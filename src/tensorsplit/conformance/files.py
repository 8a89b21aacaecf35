"""Runs as files: JSON, compressed where the name says so."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

from tensorsplit.conformance.document import Document
from tensorsplit.core.errors import USAGE, SplitError

COMPRESSED = ".gz"
"""The ending of a file that is compressed."""

_MAGIC = b"\x1f\x8b"


def read(path: Path) -> Document:
    """Read a run, compressed or not.

    Args:
        path: A file that ``tensorsplit conformance --format json`` has written.

    Raises:
        SplitError: TS703 if it can't be read or is no such document.
    """
    try:
        octets = path.read_bytes()
        if octets.startswith(_MAGIC):
            octets = gzip.decompress(octets)
        content = json.loads(octets)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise SplitError(
            USAGE,
            f"{path} can't be read: {getattr(error, 'strerror', None) or error}",
            "give a file that tensorsplit conformance --format json -o FILE has written",
            parameter="from",
        ) from None
    return Document.from_json(content)


def octets_of(text: str, path: Path) -> bytes:
    """What is written to a file for a text: compressed if its name ends in ``.gz``.

    Args:
        text: The text.
        path: The file. Neither its name nor the time gets into what is written, so that the same
            text gives the same file.
    """
    octets = text.encode()
    return gzip.compress(octets, mtime=0) if path.suffix == COMPRESSED else octets
