"""Files that are read, of which nothing is trusted: JSON, pipes, and what a file looks like."""

from __future__ import annotations

import contextlib
import json
import os
import select
import stat
import time
import zlib
from collections import Counter
from io import FileIO
from pathlib import Path

from tensorsplit.core.errors import USAGE, SplitError, show
from tensorsplit.storage.paths import fix_unread, why_unread

_MOST_BYTES = 1 << 28
_GZIP = b"\x1f\x8b"
_SECONDS = 3.0
_HEAD = 512
_PIECE = 1 << 20

_BEGINNINGS = {
    b"\x89PNG\r\n": "a PNG",
    b"\xff\xd8\xff": "a JPEG",
    b"GIF8": "a GIF",
    b"%PDF-": "a PDF",
    b"PK\x03\x04": "a ZIP archive, as .npz, .pt and .keras files are",
    b"\x1f\x8b": "a file compressed by gzip",
    b"\x28\xb5\x2f\xfd": "a file compressed by zstd",
    b"\x89HDF\r\n": "an HDF5 file, as .h5 files are",
    b"\x93NUMPY": "a NumPy array (.npy)",
    b"\x7fELF": "a program or library",
    b"version https://git-lfs": "a pointer of Git LFS; git lfs pull brings the file",
    b"<?xml": "XML; the name of an OpenVINO IR ends in .xml",
    b"<net": "an OpenVINO IR, whose name ends in .xml",
    b"<!DOCTYPE": "a web page",
    b"<html": "a web page",
}
_MARKS = {b"TFL3": "a TFLite model", b"ORTM": "a model in ONNX Runtime's own format (.ort)"}
"""What the bytes after the first four mean."""


def read_json(
    path: Path, *, what: str, fix: str, parameter: str, most: int | None = None
) -> object:
    """Return the content of a JSON file, which may be compressed, or a pipe such as ``<(command)``.

    Raises:
        SplitError: TS703 if it can't be read or is not JSON, of so many bytes at most (None:
            256 MiB), in which no name comes twice in an object, and every number is one.
    """
    most = _MOST_BYTES if most is None else most
    try:
        octets = read_file(path, most)
        if octets.startswith(_GZIP):
            octets = _decompressed(octets, most)
        if not octets.strip():
            raise ValueError("it is empty")
        text = octets.decode("utf-8-sig")
        content = json.loads(text, object_pairs_hook=_object, parse_constant=_no_number)
        if r"\ud" in text.lower():  # half a character, perhaps, which can't be printed
            json.dumps(content, ensure_ascii=False).encode()
        return content
    except RecursionError:
        problem = "it is nested too deep"
    except (OSError, ValueError, zlib.error) as error:
        problem, fix = why_unread(error, str(path)), fix_unread(error, fix)
    raise SplitError(USAGE, f"{path} {what}: {problem}", fix, parameter=parameter)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"{show(twice)} is twice in one object")
    return made


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is not a number of JSON")


def _decompressed(octets: bytes, most: int) -> bytes:
    expanding = zlib.decompressobj(wbits=31)  # of gzip
    made = expanding.decompress(octets, most)
    if expanding.unconsumed_tail:
        raise ValueError(f"it has more than {most} bytes")
    if not expanding.eof:
        raise ValueError("it is cut short")
    return made


def read_file(path: Path, most: int) -> bytes:
    """Return all bytes of a file, or of a pipe that somebody writes to; a device might never end.

    Raises:
        OSError: It can't be read.
        ValueError: It is neither, or holds more than `most` bytes.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb", buffering=0) as file:  # noqa: PTH123 - not to wait
        found = os.fstat(file.fileno())
        if stat.S_ISFIFO(found.st_mode):
            return _read_pipe(file, most)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is a folder" if stat.S_ISDIR(found.st_mode) else "it is a device")
        if found.st_size > most:
            raise ValueError(f"it has more than {most} bytes")
        return file.readall()


def _read_pipe(pipe: FileIO, most: int) -> bytes:
    begun, pieces, size = time.monotonic(), [], 0
    while size <= most:
        piece = pipe.read(_PIECE)
        if piece is None:  # another process holds the other end
            select.select([pipe], [], [])
        elif piece:
            pieces.append(piece)
            size += len(piece)
        elif pieces:
            return b"".join(pieces)
        elif time.monotonic() - begun > _SECONDS:
            raise ValueError("nobody writes to this pipe")
        else:
            time.sleep(0.01)
    raise ValueError(f"it has more than {most} bytes")


def likeness(octets: bytes) -> str:
    """Name the kind of file by its first bytes, such as ``a PNG``; empty if that is not known."""
    head = octets[:_HEAD]
    found = [what for magic, what in _BEGINNINGS.items() if head.startswith(magic)]
    found += [what for mark, what in _MARKS.items() if head[4:8] == mark]
    if not found and head:
        with contextlib.suppress(UnicodeDecodeError):
            text = head.decode("ascii")
            found = ["text"] if all(char.isprintable() or char.isspace() for char in text) else []
    return found[0] if found else ""
