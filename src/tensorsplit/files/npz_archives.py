"""Writing an ``.npz``: a zip archive whose members are ``.npy`` files, not compressed."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import FileIO

import numpy as np

from tensorsplit.files.byte_files import in_blocks, read_at, write_at
from tensorsplit.files.byte_moves import Move
from tensorsplit.files.dense_files import DenseFile, DenseWriting

_VERSION = 45  # of zip, with sizes of 64 bits
_UTF8 = 1 << 11
_1980 = 0x21
_ELSEWHERE, _ELSEWHERE_COUNT = 0xFFFFFFFF, 0xFFFF  # the number is in a field of 64 bits


@dataclass(frozen=True, slots=True)
class _Member:
    """A member of an archive, and where it begins there."""

    file: DenseFile
    start: int

    @property
    def name(self) -> bytes:
        return self.file.name.encode()

    @property
    def content(self) -> int:
        """Where its bytes begin, after its name."""
        return self.start + len(self.header(0))

    def header(self, crc: int) -> bytes:
        """Return the header before its bytes."""
        sizes = struct.pack("<2H2Q", 1, 16, self.file.size, self.file.size)
        fields = (_VERSION, _UTF8, 0, 0, _1980, crc, _ELSEWHERE, _ELSEWHERE)
        lengths = (len(self.name), len(sizes))
        return struct.pack("<4s5H3L2H", b"PK\3\4", *fields, *lengths) + self.name + sizes

    def entry(self, crc: int) -> bytes:
        """Return the entry of the directory for it."""
        sizes = struct.pack("<2H3Q", 1, 24, self.file.size, self.file.size, self.start)
        fields = (_VERSION, _VERSION, _UTF8, 0, 0, _1980, crc, _ELSEWHERE, _ELSEWHERE)
        others = (len(self.name), len(sizes), 0, 0, 0, 0o600 << 16, _ELSEWHERE)
        return struct.pack("<4s6H3L5H2L", b"PK\1\2", *fields, *others) + self.name + sizes


def _end(count: int, start: int, size: int) -> bytes:
    """Return the records after the directory."""
    fields = (44, _VERSION, _VERSION, 0, 0, count, count, size, start)
    end = struct.pack("<4sQ2H2L4Q", b"PK\6\6", *fields)
    place = struct.pack("<4sLQL", b"PK\6\7", 0, start + size, 1)
    counts = (0, 0, _ELSEWHERE_COUNT, _ELSEWHERE_COUNT, _ELSEWHERE, _ELSEWHERE, 0)
    return end + place + struct.pack("<4s4H2LH", b"PK\5\6", *counts)


class ArchiveWriting(DenseWriting):
    """An archive of files, whose checksums are known when their bytes are written."""

    def __init__(self, files: Sequence[DenseFile], moves: Sequence[Move]) -> None:
        self._members: list[_Member] = []
        place = 0
        for each in files:
            self._members.append(_Member(each, place))
            place = self._members[-1].content + each.size
        self._directory = place
        starts = {each.file.name: each.content for each in self._members}
        inside = [
            replace(
                move,
                targets=tuple(
                    replace(each, path="", offset=starts[each.path] + each.offset)
                    for each in move.targets
                ),
            )
            for move in moves
        ]
        entries = sum(len(each.entry(0)) for each in self._members)
        size = place + entries + len(_end(0, 0, 0))
        super().__init__([DenseFile("", b"", size)], inside)

    def finish(self) -> None:
        """Write headers, the directory, and all down to the disk."""
        entries = bytearray()  # bytes that grow are copied each time
        with FileIO(self._path(""), "r+") as file:
            for each in self._members:
                write_at(file, each.content, np.frombuffer(each.file.header, np.uint8))
                crc = 0
                for start, size in in_blocks(each.content, each.file.size):
                    crc = zlib.crc32(read_at(file, start, size).data, crc)
                write_at(file, each.start, np.frombuffer(each.header(crc), np.uint8))
                entries += each.entry(crc)
            entries += _end(len(self._members), self._directory, len(entries))
            write_at(file, self._directory, np.frombuffer(entries, np.uint8))
        super().finish()
