"""Messages between this process and the ones that run engines: JSON, then the bytes of arrays.

Nothing is unpickled: what an engine sends back can be wrong, but can't run code here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import ml_dtypes  # noqa: F401 - so that NumPy knows its types by name
import numpy as np

if sys.platform == "win32":
    from multiprocessing.connection import PipeConnection as Connection
else:
    from multiprocessing.connection import Connection

__all__ = ["Connection", "pack_message", "receive", "send_packed"]

_PLAIN = (str, int, float, bool, type(None))


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


def receive(pipe: Connection) -> Any:
    """Receive a value; tuples have become lists, and arrays are writable.

    EOFError or OSError if the other end is gone; ValueError, TypeError or LookupError for what is
    no such message.
    """
    return _decoded(json.loads(pipe.recv_bytes()), pipe)


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


def _decoded(value: Any, pipe: Connection) -> Any:
    """The value of JSON; the bytes that it stands for are received in its order."""
    if isinstance(value, list):
        return [_decoded(item, pipe) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    match kind:
        case "dict":
            return {name: _decoded(item, pipe) for name, item in content.items()}
        case "bytes":
            return pipe.recv_bytes()
        case "objects":
            shape, items = content
            flat = np.empty(len(items), object)
            flat[:] = _decoded(items, pipe)
            return flat.reshape(shape)
        case "array":
            name, shape = content
            return np.frombuffer(bytearray(pipe.recv_bytes()), np.dtype(name)).reshape(shape)
    raise ValueError(f"there is no kind {kind!r} of values")
