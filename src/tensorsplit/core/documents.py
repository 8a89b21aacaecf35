"""JSON files that are read, of which nothing is trusted."""

from __future__ import annotations

import json
import os
import select
import stat
import time
import zlib
from pathlib import Path
from typing import Any

from tensorsplit.core.errors import USAGE, SplitError, show

_MOST_BYTES = 1 << 28
_GZIP = b"\x1f\x8b"
_SECONDS = 3.0
_PIECE = 1 << 20


def read_json(path: Path, *, what: str, fix: str, parameter: str) -> Any:
    """The content of a JSON file, which may be compressed, or a pipe such as ``<(command)``.

    Raises:
        SplitError: TS703 for what can't be read or is no JSON, of 256 MiB at most, in which no name
            comes twice in an object, and every number is one.
    """
    try:
        octets = _read(path)
        if octets.startswith(_GZIP):
            octets = _decompressed(octets)
        if not octets.strip():
            raise ValueError("it is empty")
        text = octets.decode("utf-8-sig")
        content = json.loads(text, object_pairs_hook=_object, parse_constant=_no_number)
        if r"\ud" in text.lower():  # half a character, perhaps, which can't be printed
            json.dumps(content, ensure_ascii=False).encode()
        return content
    except RecursionError:
        problem = "it is nested too deep"
    except OSError as error:
        problem = error.strerror or str(error)
    except (ValueError, zlib.error) as error:
        problem = str(error)[:200]
    raise SplitError(USAGE, f"{path} {what}: {problem}", fix, parameter=parameter)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{show(twice)} is twice in one object")
    return made


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number of JSON")


def _decompressed(octets: bytes) -> bytes:
    expanding = zlib.decompressobj(wbits=31)  # of gzip
    made = expanding.decompress(octets, _MOST_BYTES)
    if expanding.unconsumed_tail:
        raise ValueError(f"it has more than {_MOST_BYTES} bytes")
    if not expanding.eof:
        raise ValueError("it is cut short")
    return made


def _read(path: Path) -> bytes:
    """All bytes of a file, or of a pipe that somebody writes to; a device might never end."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb", buffering=0) as file:  # noqa: PTH123 - not to wait
        kind = os.fstat(file.fileno()).st_mode
        is_pipe = stat.S_ISFIFO(kind)
        if not (is_pipe or stat.S_ISREG(kind)):
            raise ValueError("it is a folder" if stat.S_ISDIR(kind) else "it is a device")
        begun, pieces, size = time.monotonic(), [], 0
        while size <= _MOST_BYTES:
            piece = file.read(_PIECE)
            if piece is None:  # another process holds the other end
                select.select([file], [], [])
            elif piece:
                pieces.append(piece)
                size += len(piece)
            elif pieces or not is_pipe:
                return b"".join(pieces)
            elif time.monotonic() - begun > _SECONDS:
                raise ValueError("nobody writes to this pipe")
            else:
                time.sleep(0.01)
        raise ValueError(f"it has more than {_MOST_BYTES} bytes")
