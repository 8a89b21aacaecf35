"""Weights that stay in the file of their model: they are not parsed, but copied from file to file.

In a message that is parsed here, the file is the external data of its own large initializers. So
the message is small, and whatever works on external data works on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # ships no types
from onnx import GraphProto, ModelProto, TensorProto

from tensorsplit.core.errors import UNWRITABLE, SplitError
from tensorsplit.model.data_files import find_data, read_data, unusable
from tensorsplit.model.graph.message import copied, tensors_outside
from tensorsplit.model.graph.tensors import raw_size

MAX_MESSAGE = (1 << 31) - 1
"""The most bytes that an ONNX message can have."""

_LEAST = 1 << 20
"""Smaller initializers are parsed."""

_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9  # numbers of fields in onnx.proto
_NUMBER, _BYTES = 0, 2  # how protobuf writes a field
_SIZES = {1: 8, 5: 4}  # in other ways
_ENTRIES = ("location", "offset", "length")
_CHUNK = 1 << 22


@dataclass(frozen=True, slots=True)
class FileWeights:
    """Weights that a message has in the file from which it was parsed.

    Attributes:
        places: Where in the file they begin, and how long they are.
        state: Shows whether the file has changed.
    """

    path: Path
    places: frozenset[tuple[str, str]]
    state: tuple[int, int, int]

    def __contains__(self, tensor: TensorProto) -> bool:
        """Return whether the data of a tensor is one of these weights."""
        return self._range(tensor) is not None

    def embed(self, model: ModelProto) -> None:
        """Insert the weights into a message."""
        for tensor in tensors_outside(model):
            found = self._range(tensor)
            if found is not None:
                _forget_place(tensor)
                tensor.raw_data = read_data(self.path, found.start, len(found), tensor.name)
        self._check()

    def write(self, model: ModelProto, file: IO[bytes]) -> None:
        """Write a message with the weights, which are never in memory as a whole."""
        outer, graph = copied(model), GraphProto()
        initializers = list(model.graph.initializer)
        del outer.graph.initializer[:]
        self.embed(outer)  # what a tool has moved to another place
        graph.CopyFrom(outer.graph)
        outer.ClearField("graph")
        parts: list[bytes | range] = [graph.SerializeToString()]
        for tensor in initializers:
            parts += _field(_INITIALIZER, self._written(tensor))
        parts = [outer.SerializeToString(), *_field(_GRAPH, parts)]
        if sum(map(len, parts)) > MAX_MESSAGE:
            problem = "the model takes more than the 2 GiB that an ONNX file can have"
            raise SplitError(UNWRITABLE, problem, "keep its weights in external data")
        with self.path.open("rb") as source:
            for part in parts:
                if isinstance(part, bytes):
                    file.write(part)
                    continue
                source.seek(part.start)
                for start in part[::_CHUNK]:
                    file.write(source.read(min(_CHUNK, part.stop - start)))
        self._check()

    def _written(self, tensor: TensorProto) -> list[bytes | range]:
        """Return a tensor as it is written; ranges are of the file."""
        found = self._range(tensor)
        if found is None:
            return [tensor.SerializeToString()]
        rest = TensorProto()
        rest.CopyFrom(tensor)
        _forget_place(rest)
        return [rest.SerializeToString(), *_field(_RAW_DATA, [found])]

    def _range(self, tensor: TensorProto) -> range | None:
        """Return where in the file a tensor's data is; None if it is not one of these weights."""
        entries = {entry.key: entry.value for entry in tensor.external_data}
        place = entries.get("offset", ""), entries.get("length", "")
        if entries.get("location") != self.path.name or place not in self.places:
            return None
        start, length = map(int, place)
        return range(start, start + length)

    def _check(self) -> None:
        """Refuse a file that has changed since it was parsed (TS504)."""
        if _state(self.path) != self.state:
            raise unusable(f"{self.path.name!r} was changed while it was read", "model")


def parse_without_weights(path: Path) -> tuple[ModelProto, FileWeights] | None:
    """Parse a file whose large initializers stay in it.

    None where there are none, or something is unusual about them. OSError for what can't be read.
    """
    if not path.is_file():
        return None
    state = _state(path)
    with path.open("rb") as file:
        parser = _Parser(file, path.name)
        try:
            find_data(path.name, path.parent)  # not so through a link to another folder
            model = ModelProto.FromString(parser.message(state[0]))
        except (_UnusualError, DecodeError, SplitError, UnicodeError):
            return None
    if not parser.places:
        return None
    return model, FileWeights(path, frozenset(parser.places), state)


class _UnusualError(Exception):
    """Something that the plain way of parsing deals with."""


class _Parser:
    """Goes through a file without reading its weights.

    Attributes:
        places: Where in the file they begin, and how long they are.
    """

    def __init__(self, file: IO[bytes], location: str) -> None:
        self._file, self._location = file, location
        self.places: list[tuple[str, str]] = []

    def message(self, end: int) -> bytes:
        """Return the message without its weights."""
        return self._fields(end, _GRAPH, self._graph)

    def _graph(self, end: int) -> bytes:
        content = self._fields(end, _INITIALIZER, self._tensor)
        return _header(_GRAPH, len(content)) + content

    def _tensor(self, end: int) -> bytes:
        """Return a tensor whose data is in the file."""
        ranges: list[range] = []

        def skip(end: int) -> bytes:
            ranges.append(range(self._file.tell(), end))
            return b""

        tensor = TensorProto.FromString(self._fields(end, _RAW_DATA, skip))
        for found in ranges:
            if tensor.data_location or len(ranges) > 1 or raw_size(tensor) != len(found):
                raise _UnusualError
            self.places.append((str(found.start), str(len(found))))
            tensor.data_location = TensorProto.EXTERNAL
            entries = zip(_ENTRIES, (self._location, *self.places[-1]), strict=True)
            for key, value in entries:
                tensor.external_data.add(key=key, value=value)
        return _header(_INITIALIZER, tensor.ByteSize()) + bytes(tensor.SerializeToString())

    def _fields(self, end: int, number: int, replace: Callable[[int], bytes]) -> bytes:
        """Return the bytes up to a position; each large field of a number is replaced."""
        made, file = bytearray(), self._file
        while (start := file.tell()) < end:
            key = self._varint()
            if key & 7 == _NUMBER:
                self._varint()
                length = 0
            else:
                length = self._varint() if key & 7 == _BYTES else _SIZES.get(key & 7, end)
            after = file.tell() + length
            if after > end:
                raise _UnusualError
            if key == number << 3 | _BYTES and length >= _LEAST:
                made += replace(after)
                file.seek(after)
            else:
                file.seek(start)
                made += file.read(after - start)
        return bytes(made)

    def _varint(self) -> int:
        number = 0
        for shift in range(0, 64, 7):
            byte = self._file.read(1)
            if not byte:
                break
            number |= (byte[0] & 0x7F) << shift
            if byte[0] < 0x80:
                return number
        raise _UnusualError


def _field(number: int, parts: list[bytes | range]) -> list[bytes | range]:
    """Return a field that consists of these parts."""
    return [_header(number, sum(map(len, parts))), *parts]


def _header(number: int, length: int) -> bytes:
    """Return the bytes before the content of a field."""
    made = bytearray([number << 3 | _BYTES])
    while length > 0x7F:
        made.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([*made, length])


def _forget_place(tensor: TensorProto) -> None:
    tensor.ClearField("data_location")
    tensor.ClearField("external_data")


def _state(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ino
