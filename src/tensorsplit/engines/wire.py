"""Messages between the package and the processes that run the engines.

A message is its length, as 8 bytes, and that many bytes of pickle. Both ends are this package, on
a private pipe that nobody else can write to.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import Any, Protocol


class EngineRefusal(Exception):  # noqa: N818 - it is one, as engines' own exceptions are
    """What an adapter refuses on behalf of its engine, in words for the caller."""


class Pipe(Protocol):
    """What is needed of an unbuffered file."""

    def read(self, size: int, /) -> bytes | None:
        """At most so many bytes; none at the end."""

    def write(self, data: memoryview, /) -> int | None:
        """How many of the bytes were written."""


@dataclass(frozen=True, slots=True)
class Request:
    """A model and what to feed it; everything in it has been checked.

    Attributes:
        kind: ``onnx`` or ``ir``.
        path: The model's file; None if `data` holds the model.
        data: The model's bytes; None if `path` names its file.
        feeds: The inputs by name, in the model's order: arrays, lists of arrays, or None for an
            optional that is empty. Of an IR, all inputs are there.
        outputs: The names of the outputs, in the model's order.
        probe: Whether split layers are left that could not be checked without the engine.
    """

    kind: str
    path: str | None = None
    data: bytes | None = None
    feeds: dict[str, Any] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    probe: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """What the package asks an engine's process to do.

    Attributes:
        adapter: The module whose ``run`` is called.
        request: What it is called with.
    """

    adapter: str
    request: Any


@dataclass(frozen=True, slots=True)
class Reply:
    """What the process answers; one of the three is set.

    Attributes:
        result: What the adapter returned.
        refusal: Why the engine refused, in its own words.
        missing: Why the engine can't be imported.
        error: A refusal of this package's own.
    """

    result: Any = None
    refusal: str | None = None
    missing: str | None = None
    error: Exception | None = None


STARTED = "started"
"""What the process says when it has read a call, before it does anything about it."""


def pack(message: Call | Reply | str) -> bytes:
    """A message as bytes."""
    body = pickle.dumps(message, protocol=5)
    return len(body).to_bytes(8, "little") + body


def send(pipe: Pipe, packed: bytes) -> None:
    """Write a message.

    Raises:
        OSError: If the other end is gone.
    """
    rest = memoryview(packed)
    while rest:
        rest = rest[pipe.write(rest) or 0 :]


def receive(pipe: Pipe) -> Any:
    """Read a message.

    Raises:
        EOFError: If the other end is gone.
        pickle.UnpicklingError: If what comes is no message.
    """
    size = int.from_bytes(_read(pipe, 8), "little")
    return pickle.loads(_read(pipe, size))  # noqa: S301 - from our own process, see above


def _read(pipe: Pipe, size: int) -> bytes:
    pieces = []
    while size > 0:
        piece = pipe.read(min(size, 1 << 24))
        if not piece:
            raise EOFError("the other end is gone")
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
