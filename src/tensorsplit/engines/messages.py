"""Messages between this process and the ones that run engines: JSON, then the bytes of arrays.

Nothing is unpickled: what an engine sends back can be wrong, but can't run code here. Nor can it
fill the memory: see `receive`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes  # noqa: F401 - so that NumPy knows its types by name
import numpy as np

if sys.platform == "win32":
    from multiprocessing.connection import PipeConnection as Connection
else:
    from multiprocessing.connection import Connection

__all__ = ["Connection", "TooLarge", "pack_message", "receive", "send_packed"]

_PLAIN = (str, int, float, bool, type(None))
_PER_CHARACTER = 64
"""How many bytes of memory a character of JSON may take: three make an empty list, twice."""


class TooLarge(Exception):  # noqa: N818 - what is said of a message
    """A message would take more memory than it may."""


def pack_message(value: Any) -> list[bytes | memoryview]:
    """A value as the pieces that are sent: a text, and the bytes that it stands for, in order.

    It may hold numbers, texts, None, bytes and arrays, in lists and dictionaries of any depth;
    TypeError for anything else.
    """
    pieces: list[bytes | memoryview] = [b""]
    pieces[0] = json.dumps(_encoded(value, pieces)).encode()
    return pieces


def send_packed(pipe: Connection, pieces: list[bytes | memoryview]) -> None:
    """Send what `pack_message` returned; OSError if the other end is gone."""
    for piece in pieces:
        pipe.send_bytes(piece)


def receive(pipe: Connection, most: int = sys.maxsize) -> Any:
    """Receive a value that takes so many bytes of memory at most, more or less.

    Tuples have become lists, and arrays are writable. EOFError or OSError if the other end is gone;
    TooLarge, before anything of that size is read; any other exception for what is no message.
    """
    reader = _Reader(pipe, most)
    return _decoded(json.loads(reader.octets(_PER_CHARACTER)), reader)


@dataclass(slots=True)
class _Reader:
    """Reads the pieces of a message, as long as they take no more memory than there is left."""

    pipe: Connection
    left: int

    def octets(self, factor: int = 1) -> bytes:
        """The next piece, of which each byte takes so many."""
        try:
            found = self.pipe.recv_bytes(self.left // factor)
        except OSError:
            if self.pipe.readable:
                raise
            raise TooLarge from None  # of which the connection tells by being no longer readable
        self.left -= factor * len(found)
        return found


def _encoded(value: Any, pieces: list[bytes | memoryview]) -> Any:
    """A value as JSON; what is no plain value becomes an object with one key, which tells it."""
    if isinstance(value, (list, tuple)):
        return [_encoded(item, pieces) for item in value]
    if isinstance(value, Mapping):
        return {"dict": {str(name): _encoded(item, pieces) for name, item in value.items()}}
    if isinstance(value, bytes):
        pieces.append(value)
        return {"bytes": None}
    if isinstance(value, (np.ndarray, np.generic)):
        return _encoded_array(np.asarray(value), pieces)
    if isinstance(value, _PLAIN):
        return value
    raise TypeError(f"a value of type {type(value).__name__} is no array, number or text")


def _encoded_array(array: np.ndarray[Any, Any], pieces: list[bytes | memoryview]) -> Any:
    if array.dtype.kind in "OT":
        items = [_encoded(item, pieces) for item in array.reshape(-1).tolist()]
        return {"objects": [list(array.shape), items]}
    if array.dtype.hasobject:
        raise TypeError(f"an array of {array.dtype} is no array of numbers or texts")
    name = array.dtype.name if array.dtype.isbuiltin == 2 else array.dtype.str  # 2: of ml_dtypes
    pieces.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return {"array": [name, list(array.shape)]}


def _decoded(value: Any, reader: _Reader) -> Any:
    """The value of JSON; the bytes that it stands for are received in its order."""
    if isinstance(value, list):
        return [_decoded(item, reader) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    match kind:
        case "dict":
            return {name: _decoded(item, reader) for name, item in content.items()}
        case "bytes":
            return reader.octets()
        case "objects":
            shape, items = content
            flat = np.empty(len(items), object)
            flat[:] = _decoded(items, reader)
            return flat.reshape(shape)
        case "array":
            name, shape = content
            return np.frombuffer(bytearray(reader.octets()), np.dtype(name)).reshape(shape)
    raise ValueError(f"there is no kind {kind!r} of values")
