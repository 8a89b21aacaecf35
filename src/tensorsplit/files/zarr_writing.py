"""Writing zarr arrays, chunk by chunk.

Where a part begins at a chunk, encoded chunks are copied as they are. All other chunks of a part
are made of the chunks that hold their elements. A chunk that is missing stays missing.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import zarr
from zarr.buffer import default_buffer_prototype

from tensorsplit.core.errors import words_of
from tensorsplit.files.byte_copies import LEAST_MEMORY
from tensorsplit.files.formats import WriteTask
from tensorsplit.files.sources import local_path, refusing
from tensorsplit.files.zarr_arrays import (
    Array,
    ArrayPlace,
    StoredArray,
    complete,
    open_array,
    open_part,
)
from tensorsplit.files.zarr_cuts import Cut
from tensorsplit.files.zarr_nodes import CONSOLIDATED, ZarrNode
from tensorsplit.files.zarr_stores import join, store_at, unreadable, write_value

if TYPE_CHECKING:
    from zarr.abc.store import Store

_COPIES = 4
"""How often a chunk is in memory while one is made: two as they are read, and one twice."""

_TASK = 32 << 20


@dataclass(frozen=True, slots=True)
class NewArray:
    """An array to write: its path in the draft, what it is made of, and what describes that.

    The path is empty where the draft is the array.
    """

    name: str
    cut: Cut
    like: ZarrNode

    @property
    def documents(self) -> Mapping[str, bytes]:
        """The documents that describe it, without its shape."""
        return self.like.documents

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return int(self.like.dtype.itemsize)

    @property
    def names(self) -> set[str]:
        """The names that it has at the top of the draft."""
        if self.name:
            return {self.name.partition("/")[0]}
        keys = (self.like.array.encode_chunk_key(each) for each in np.ndindex(*self.cut.grid))
        return {key.partition("/")[0] for key in keys} | self.documents.keys()

    @property
    def chunk_bytes(self) -> int:
        """The bytes of a chunk, decoded."""
        return prod(self.cut.chunks) * self.itemsize


class ZarrWriting:
    """Arrays whose chunks are written first, and last what makes them arrays and groups."""

    def __init__(
        self, parts: Sequence[NewArray], groups: Mapping[str, Mapping[str, bytes]]
    ) -> None:
        self._parts, self._groups = parts, groups
        self._draft = ""

    @property
    def names(self) -> Collection[str]:
        """The names of stores in a folder, or of what is in a group."""
        groups = {path.partition("/")[0] for path in self._groups if path}
        return groups.union(self._groups.get("", {}), *(part.names for part in self._parts))

    @property
    def nbytes(self) -> int:
        """The bytes of all elements, decoded."""
        return sum(prod(part.cut.shape) * part.itemsize for part in self._parts)

    @property
    def space(self) -> int:
        """The bytes of the sources' chunks; 0 where they are not local."""
        return sum(map(_stored, {place for part in self._parts for place in part.cut.sources}))

    @property
    def least_memory(self) -> int:
        """Some chunks that are decoded; copies of encoded ones take little."""
        decoded = (part for part in self._parts if not part.cut.is_aligned)
        return max((_COPIES * part.chunk_bytes for part in decoded), default=LEAST_MEMORY)

    def prepare(self, draft: str) -> None:
        """Note where everything is to be written."""
        self._draft = draft

    def tasks(self) -> Iterator[WriteTask]:
        """Yield tasks of a number of chunks of each array."""
        for part in self._parts:
            chunks = prod(part.cut.grid)
            step = max(1, _TASK // part.chunk_bytes)
            for first in range(0, chunks, step):
                count = min(step, chunks - first)
                url = join(self._draft, part.name)
                yield _ChunkTask(part.cut, url, part.itemsize, first, count)

    def finish(self) -> None:
        """Write the descriptions of the arrays, then of the groups, and all down to the disk."""
        store = store_at(self._draft, read_only=False)
        for part in self._parts:
            for name, document in part.documents.items():
                _set(store, join(part.name, name), _described(name, document, part.cut.shape))
        for group, documents in sorted(self._groups.items(), reverse=True):
            _describe_group(store, group, documents)
        path = local_path(self._draft)
        if path is not None:
            complete(path)


def _stored(place: ArrayPlace) -> int:
    """Return the bytes in the folder of an array; 0 if it is not local."""
    path = local_path(join(place.url, place.path))
    if path is None:
        return 0
    return sum(
        (Path(folder) / name).lstat().st_size
        for folder, _, names in os.walk(path)
        for name in names
    )


def _described(name: str, document: bytes, shape: tuple[int, ...]) -> bytes:
    """Return a document of an array, with another shape."""
    if name not in ("zarr.json", ".zarray"):
        return document
    return json.dumps({**json.loads(document), "shape": shape}, indent=2).encode()


def _describe_group(store: Store, path: str, documents: Mapping[str, bytes]) -> None:
    """Write the description of a group, and of all that it holds if the source's has it too."""
    is_consolidated = CONSOLIDATED in documents
    for name in documents.keys() - {CONSOLIDATED}:
        described = json.loads(documents[name])
        is_consolidated |= described.pop("consolidated_metadata", None) is not None
        _set(store, join(path, name), json.dumps(described, indent=2).encode())
    if is_consolidated:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                zarr.consolidate_metadata(store, path=path)
            except (TypeError, ValueError) as error:  # of a member that it does not know
                problem = f"zarr can't consolidate its groups: {words_of(error)}"
                raise unreadable(path or ".", problem) from None


def _set(store: Store, key: str, value: bytes) -> None:
    write_value(store, key, default_buffer_prototype().buffer.from_bytes(value))


@dataclass(frozen=True, slots=True)
class _ChunkTask:
    """Writes a number of chunks of a new array.

    Attributes:
        cut: What the array is made of.
        url: Where it is.
        itemsize: The bytes of an element.
        first: The number of the first chunk.
        count: How many chunks.
    """

    cut: Cut
    url: str
    itemsize: int
    first: int
    count: int

    @property
    def nbytes(self) -> int:
        """The bytes of the elements in the chunks."""
        return sum(map(self.cut.elements, self._chunks())) * self.itemsize

    def write(self, memory: int) -> int:
        """Copy chunks, or make them."""
        sources, target = self._open(memory)
        for chunk in self._chunks():
            if (origin := self.cut.copied_from(chunk)) is not None:
                target.copy(chunk, sources.array(origin[0]), origin[1])
                continue
            elements = sources.made(self.cut, chunk)
            with refusing(join(self.cut.sources[0].url, self.cut.sources[0].path)):
                encoded = None if elements is None else target.encode(elements)
            if encoded is not None:
                target.save(chunk, encoded)
        return self.nbytes

    def verify(self, memory: int) -> int:
        """Compare chunks that were copied, and the elements of the others (TS708)."""
        sources, target = self._open(memory)
        checksum = 0
        for chunk in self._chunks():
            if (origin := self.cut.copied_from(chunk)) is not None:
                checksum += target.compare_copy(chunk, sources.array(origin[0]), origin[1])
            else:
                checksum += target.compare(chunk, sources.made(self.cut, chunk))
        return checksum

    def _chunks(self) -> Iterator[tuple[int, ...]]:
        return map(self.cut.chunk, range(self.first, self.first + self.count))

    def _open(self, memory: int) -> tuple[_Decoded, StoredArray]:
        places = self.cut.sources
        return _Decoded(places, memory), open_part(self.url, places[0], memory)


class _Decoded:
    """Arrays whose last decoded chunk is kept, as the next new one is often made of it too."""

    def __init__(self, places: Sequence[ArrayPlace], memory: int) -> None:
        self._places, self._memory = places, memory
        self._chunk: tuple[int, tuple[int, ...]] | None = None
        self._elements: Array | None = None

    def array(self, source: int) -> StoredArray:
        """Return one of the arrays."""
        return open_array(self._places[source], self._memory)

    def made(self, cut: Cut, chunk: tuple[int, ...]) -> Array | None:
        """Return the elements of a new chunk; None where all that it is made of is missing.

        Beyond the end of its array, and where the source lacks a chunk, it has the fill value.
        """
        made: Array | None = None
        before = (slice(None),) * cut.axis
        for source, read, place, count in cut.spans(chunk):
            elements = self._decode(source, cut.origin(chunk, read))
            if elements is None:
                continue
            if made is None:
                made = self.array(source).empty(elements.dtype)
            begin = read % cut.chunks[cut.axis]
            taken = elements[(*before, slice(begin, begin + count))]
            made[(*before, slice(place, place + count))] = taken
        return made

    def _decode(self, source: int, chunk: tuple[int, ...]) -> Array | None:
        if (source, chunk) != self._chunk:
            self._chunk = self._elements = None  # before another one takes memory
            array = self.array(source)
            stored = array.load(chunk)
            if stored is not None:
                self._elements = array.decode(chunk, stored)
            self._chunk = source, chunk
        return self._elements
