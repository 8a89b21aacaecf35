"""Messages between this process and the ones that run engines, and the loop that answers them.

A message is JSON, then the bytes of arrays.

An interpreter that an adapter names loads this file by its path (see `elsewhere`), so that it needs
NumPy and nothing of this package, and runs in Python 3.10.

The bytes of a large array are in a file of memory, on Linux: it has no name, so that nothing is
left of it when the processes are gone, and nobody can change it once it was sent.

Nothing is unpickled: what an engine sends back can be wrong, but can't run code here. Nor can it
fill the memory: see `receive`.
"""

from __future__ import annotations

import ctypes
import json
import math
import mmap
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing import reduction
from queue import SimpleQueue
from typing import Any
from weakref import finalize

import numpy as np

HAS_ML_DTYPES = find_spec("ml_dtypes") is not None
"""Whether NumPy has its element types here, which it does in every environment of this package."""

if HAS_ML_DTYPES:
    import ml_dtypes  # noqa: F401 - so that NumPy knows its types by name

if sys.platform == "win32":
    from multiprocessing.connection import PipeConnection as Connection
else:
    from multiprocessing.connection import Connection

__all__ = [
    "HAS_ML_DTYPES",
    "LONGEST",
    "STARTED",
    "Connection",
    "TooLarge",
    "Unsupported",
    "arrays_of",
    "pack_message",
    "receive",
    "refusal",
    "send_packed",
    "serve",
]

STARTED = "started"
"""The answer of a process that has read a call, before it runs it."""

LONGEST = 400
"""The number of characters that are kept of an engine's message."""

_ADDRESS = re.compile(r"(?: at )?\b0x[0-9a-fA-F]{6,}\b")
_RAISED_AT = re.compile(r"(?:Caught exception: )?Exception from \S+:\d+: ")
"""Where in its own source OpenVINO raised, given once for each layer that passes an error on."""
_MOST_VALUES = 1 << 16  # in an answer: cases have a few hundred

_PLAIN = (str, int, float, bool, type(None))
_PER_CHARACTER = 64
"""How many bytes of memory a character of JSON may take: three make an empty list, twice."""


class Unsupported(Exception):  # noqa: N818 - not an error: the engine names what it does not do
    """Raised where an engine has no such element type, operator or opset at all."""


class TooLarge(Exception):  # noqa: N818 - a property of a message
    """A message would take more memory than it may."""


_SHARED_FROM = 1 << 18
"""From so many bytes on a file of memory takes less time than a pipe (measured)."""

_FILE, _PIPE = b"file", b"pipe"
_ADD_SEALS, _GET_SEALS = 1033, 1034
_SEALS = 0x1 | 0x2 | 0x4 | 0x8
"""No more seals, not shorter, not longer, not written to, as Linux numbers them."""


def pack_message(value: object) -> list[bytes | memoryview]:
    """Pack a value as the pieces that are sent: a text, and the bytes that it stands for.

    It may hold numbers, texts, None, bytes and arrays, in lists and dictionaries of any depth;
    TypeError for anything else.
    """
    pieces: list[bytes | memoryview] = [b""]
    pieces[0] = json.dumps(_encoded(value, pieces)).encode()
    return pieces


def send_packed(pipe: Connection, pieces: list[bytes | memoryview]) -> None:
    """Send a message from `pack_message`; OSError if the other end is gone."""
    pipe.send_bytes(pieces[0])
    for piece in pieces[1:]:
        if len(piece) >= _SHARED_FROM:
            file = _shared(piece)
            pipe.send_bytes(_PIPE if file is None else _FILE)
            if file is not None:
                try:
                    reduction.send_handle(pipe, file, 0)
                finally:
                    os.close(file)
                continue
        pipe.send_bytes(piece)


def _shared(piece: bytes | memoryview) -> int | None:
    """Return a sealed file of memory with a piece; None where there is no such file, or no room."""
    if sys.platform != "linux":
        return None
    import fcntl

    file = -1
    try:
        file = os.memfd_create("tensorsplit", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        rest = memoryview(piece)
        while rest:
            rest = rest[os.write(file, rest) :]
        fcntl.fcntl(file, _ADD_SEALS, _SEALS)
    except OSError:
        if file >= 0:
            os.close(file)
        return None
    return file


def _mapped(file: int, size: int) -> object:
    """Map the bytes of a sealed file of memory, private to this process when written to.

    The file may be closed then, which Python's own `mmap` would keep open.
    """
    import fcntl

    if fcntl.fcntl(file, _GET_SEALS) != _SEALS or os.fstat(file).st_size != size:
        raise ValueError
    own = mmap.PROT_READ | mmap.PROT_WRITE
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    address = library.mmap(None, size, own, mmap.MAP_PRIVATE, file, 0)
    if address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "mmap")
    memory = (ctypes.c_ubyte * size).from_address(address)
    finalize(memory, library.munmap, address, size).atexit = False
    return memory


def receive(pipe: Connection, most: int = sys.maxsize) -> Any:
    """Receive a value that takes so many bytes of memory at most, more or less.

    Tuples have become lists, and arrays are writable. EOFError or OSError if the other end is gone;
    TooLarge, before anything of that size is read; any other exception for what is not a message.
    """
    reader = _Reader(pipe, most)
    return _decoded(json.loads(reader.octets(_PER_CHARACTER)), reader)


@dataclass(slots=True)
class _Reader:
    """Reads the pieces of a message, as long as they take no more memory than there is left."""

    pipe: Connection
    left: int

    def piece(self, size: int) -> Any:
        """Return the next piece, of so many bytes, as memory that can be written to."""
        if size < _SHARED_FROM or self.octets() == _PIPE:
            return bytearray(self.octets())
        file = reduction.recv_handle(self.pipe)
        try:
            self.left -= size
            if self.left < 0:
                raise TooLarge
            return _mapped(file, size)
        finally:
            os.close(file)

    def octets(self, factor: int = 1) -> bytes:
        """Return the next message, of which each byte takes so many."""
        try:
            found = self.pipe.recv_bytes(self.left // factor)
        except OSError:
            if self.pipe.readable:
                raise
            raise TooLarge from None  # of which the connection tells by being no longer readable
        self.left -= factor * len(found)
        return found


def _encoded(value: object, pieces: list[bytes | memoryview]) -> object:
    """Return a value as JSON; all but plain values become objects, whose one key is their kind."""
    if isinstance(value, (list, tuple)):
        return [_encoded(item, pieces) for item in value]
    if isinstance(value, Mapping):
        return {"dict": {str(name): _encoded(item, pieces) for name, item in value.items()}}
    if isinstance(value, bytes):
        pieces.append(value)
        return {"bytes": len(value)}
    if isinstance(value, (np.ndarray, np.generic)):
        return _encoded_array(np.asarray(value), pieces)
    if isinstance(value, _PLAIN):
        return value
    raise TypeError(f"a value of type {type(value).__name__} is not an array, number or text")


def _encoded_array(array: np.ndarray, pieces: list[bytes | memoryview]) -> object:
    if array.dtype.kind in "OT":
        items = [_encoded(item, pieces) for item in array.reshape(-1).tolist()]
        return {"objects": [list(array.shape), items]}
    if array.dtype.hasobject:
        raise TypeError(f"an array of {array.dtype} is not an array of numbers or texts")
    name = array.dtype.name if array.dtype.isbuiltin == 2 else array.dtype.str  # 2: of ml_dtypes
    pieces.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return {"array": [name, list(array.shape)]}


def _element_type(name: str) -> np.dtype[Any]:
    """Return an element type by its name; bytes without a meaning for one of ml_dtypes, if lost."""
    is_foreign = not HAS_ML_DTYPES and not name.startswith(("<", ">", "|", "="))
    return np.dtype((np.void, 2 if name == "bfloat16" else 1) if is_foreign else name)


def _decoded(value: object, reader: _Reader) -> Any:
    """Return the value of JSON; the bytes that it stands for are received in its order."""
    if isinstance(value, list):
        return [_decoded(item, reader) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    match kind:
        case "dict":
            return {name: _decoded(item, reader) for name, item in content.items()}
        case "bytes":
            return bytes(reader.piece(content))
        case "objects":
            shape, items = content
            flat = np.empty(len(items), object)
            flat[:] = _decoded(items, reader)
            return flat.reshape(shape)
        case "array":
            name, shape = content
            dtype = _element_type(name)
            return np.frombuffer(reader.piece(dtype.itemsize * math.prod(shape)), dtype).reshape(
                shape
            )
    raise ValueError(f"there is no kind {kind!r} of values")


def serve(pipe: Connection, answer: Callable[[str, list[Any]], Mapping[str, object]]) -> None:
    """Answer calls, in this thread, until the process that makes them closes the pipe.

    A call has a number, the name of what is called, and its arguments; the answer has the
    arguments of `process.Reply`.
    """
    own = os.getpid()
    calls: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_read, args=(pipe, calls), daemon=True).start()
    while True:
        number, called, request = calls.get()
        send_packed(pipe, pack_message([number, STARTED]))
        _empty_error_stream()
        try:
            reply = pack_message([number, answer(called, request)])
        except Exception as error:  # noqa: BLE001 - an engine may return anything
            text = f"its result can't be passed on: {_short(error)}"
            reply = pack_message([number, {"refusal": text, "has_returned": True}])
        if os.getpid() != own:  # the engine has forked, and this is not the process that was called
            os._exit(0)
        send_packed(pipe, reply)


def _read(pipe: Connection, calls: SimpleQueue[Any]) -> None:
    """Take calls; end this process, even if an engine hangs in it, when the other one is gone."""
    try:
        while True:
            calls.put(receive(pipe))
    finally:
        os._exit(0)


def _empty_error_stream() -> None:
    """Discard the error stream but for this call; the stream is a file of this process alone."""
    sys.stderr.flush()
    if os.fstat(2).st_size:
        os.lseek(2, 0, os.SEEK_SET)
        os.ftruncate(2, 0)


def refusal(error: Exception) -> dict[str, object]:
    """Return the arguments of `process.Reply` for what an engine has raised.

    ``Unsupported`` counts by its name: an adapter that is run by another interpreter has its own.
    """
    if isinstance(error, ImportError):
        return {"missing": _short(error)}
    if any(each.__name__ == "Unsupported" for each in type(error).__mro__):
        return {"refusal": _short(error), "unsupported": True}
    return {"refusal": f"{type(error).__name__}: {_short(error)}"}


def _short(error: BaseException) -> str:
    """Return the start of an engine's message, never empty, without what is of no use to a user.

    That is addresses, which change, and places in the engine's source that only pass the error on.
    """
    try:
        text = _ADDRESS.sub("", " ".join(str(error)[: 4 * LONGEST].split()))
        text = _RAISED_AT.sub("", text)[:LONGEST]
    except Exception:  # noqa: BLE001 - an engine's own exceptions may do anything
        text = ""
    return text or type(error).__name__[:LONGEST]


def arrays_of(found: Any) -> dict[str, Any] | None:
    """Return an engine's outputs as NumPy arrays by name, so that nothing of its own is passed on.

    None for what is not a mapping, holds anything but arrays, or has no end.
    """
    left = iter(range(_MOST_VALUES))
    try:
        return {str(name): _array_of(value, left) for name, value in _counted(found.items(), left)}
    except Exception:  # noqa: BLE001 - an engine may return anything
        return None


def _array_of(value: object, left: Iterator[int]) -> Any:
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return [_array_of(item, left) for item in _counted(value, left)]
    return np.asarray(value)


def _counted(items: Iterable[object], left: Iterator[int]) -> Iterator[Any]:
    """Yield items as long as there are numbers left, of which each takes one.

    ValueError for one more: an adapter may return what has no end.
    """
    for item in items:
        if next(left, None) is None:
            raise ValueError
        yield item
