"""Arrays in zarr stores: their chunks read and written one at a time.

What a store holds is not trusted: no code in it is run, and no chunk is decoded to more than its
size.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from zarr.buffer import default_buffer_prototype
from zarr.storage import StorePath

from tensorsplit.files.byte_copies import RangeCopies
from tensorsplit.files.byte_files import Bytes, compare, unverified
from tensorsplit.files.byte_moves import ByteRange
from tensorsplit.files.sources import refusing
from tensorsplit.files.zarr_codecs import Metadata, bounded_pipeline, keeps_values, stored_size
from tensorsplit.files.zarr_internals import ArrayConfig, ArrayV2Metadata, sync
from tensorsplit.files.zarr_nodes import find
from tensorsplit.files.zarr_stores import (
    Allowance,
    BeyondAllowanceError,
    GuardedStore,
    join,
    place_in,
    read_values,
    size_of,
    store_at,
    unreadable,
    write_value,
)
from tensorsplit.storage.paths import walk
from tensorsplit.storage.syncing import sync_files

if TYPE_CHECKING:
    from zarr.abc.buffer import Buffer

Array: TypeAlias = "np.ndarray"

_UNFINISHED = ".partial"
"""How zarr calls files until they are whole."""


@dataclass(frozen=True, slots=True)
class ArrayPlace:
    """Where an array is.

    Attributes:
        url: The path or URL of its store.
        path: Its path in there.
        documents: The names of what describes it; nothing else is looked for again.
        digest: Of what describes it: a worker that finds something else there is refused.
    """

    url: str
    path: str
    documents: tuple[str, ...]
    digest: str


def open_array(place: ArrayPlace, memory: int) -> StoredArray:
    """Return the array at a place (TS705), to be read.

    A chunk of elements that have no fixed size may decode to so much memory.
    """
    with _turn_at(place):  # else each thread would ask a server for the same
        return _opened_once(place, memory)


@lru_cache(maxsize=64)
def _turn_at(_place: ArrayPlace) -> Lock:
    """Return the lock that one thread at a time holds while it opens an array."""
    return Lock()


@lru_cache(maxsize=16)
def _opened_once(place: ArrayPlace, memory: int) -> StoredArray:
    found = find(place.url, place.path, names=place.documents)
    if found.metadata is None or found.digest != place.digest:
        raise unreadable(join(place.url, place.path), "it is another one than when it was planned")
    return StoredArray(place.url, place.path, found.metadata, memory)


@lru_cache(maxsize=16)
def open_part(url: str, place: ArrayPlace, memory: int) -> StoredArray:
    """Return an array that is written, with the codecs of the one at a place."""
    return StoredArray(url, "", open_array(place, memory).metadata, memory, read_only=False)


class StoredArray:
    """An array whose chunks are read and written.

    Args:
        url: The path or URL of its store.
        path: Its path in there.
        metadata: What describes it, but perhaps for its shape.
        memory: What a chunk of elements that have no fixed size may decode to; encoded, each chunk
            may take half of it.
        read_only: Whether nothing is written.

    Attributes:
        metadata: As given.
        chunks: The shape of a chunk, or of a shard, which is stored as one value.
    """

    def __init__(
        self, url: str, path: str, metadata: Metadata, memory: int, *, read_only: bool = True
    ) -> None:
        self.metadata, self._path = metadata, path
        self._most, self._size = memory // 2, stored_size(metadata)
        self._store = store_at(url, read_only=read_only)
        self._pipeline = bounded_pipeline(metadata, StorePath(self._store, path), memory)
        order = metadata.order if isinstance(metadata, ArrayV2Metadata) else "C"
        config = ArrayConfig(order, write_empty_chunks=True)
        self._spec = metadata.get_chunk_spec((), config, default_buffer_prototype())
        self.chunks = self._spec.shape
        self._is_sharded = metadata.shards is not None
        fill = self._spec.fill_value
        self._fill = self._spec.dtype.default_scalar() if fill is None else fill

    def key(self, chunk: tuple[int, ...]) -> str:
        """Return the key of a chunk in the store."""
        return join(self._path, self.metadata.encode_chunk_key(chunk))

    def size(self, chunk: tuple[int, ...]) -> int | None:
        """Return the bytes of a chunk, encoded; None if it is missing."""
        return size_of(self._store, self.key(chunk))

    def load(self, chunk: tuple[int, ...]) -> Buffer | None:
        """Read a chunk as it is stored; None if it is missing, TS705 if it is too large."""
        with refusing(self._place(chunk)):
            try:
                (data,) = read_values(self._store, [self.key(chunk)], Allowance(self._most))
            except BeyondAllowanceError:
                problem = f"it takes more than the {self._most} bytes that a task has for it"
                raise ValueError(problem) from None
            return None if data is None else default_buffer_prototype().buffer.from_bytes(data)

    def save(self, chunk: tuple[int, ...], data: Buffer) -> None:
        """Store a chunk that is encoded."""
        write_value(self._store, self.key(chunk), data)

    def copy(self, chunk: tuple[int, ...], source: StoredArray, other: tuple[int, ...]) -> None:
        """Store a chunk as it is stored in another array, or leave it out where it is missing."""
        paths = self._paths(chunk, source, other)
        if paths is not None:
            size = source.size(other)
            if size is not None:
                source.check_size(other, size)
                _copy_file(*paths, size)
        elif (data := source.load(other)) is not None:
            source.check_size(other, len(data))
            self.save(chunk, data)

    def check_size(self, chunk: tuple[int, ...], size: int) -> None:
        """Refuse (TS705) a chunk whose elements take more or fewer bytes than are stored."""
        if self._size not in (None, size):
            problem = f"it has {size} bytes, and its elements take {self._size}"
            raise unreadable(self._place(chunk), problem)

    def _paths(
        self, chunk: tuple[int, ...], source: StoredArray, other: tuple[int, ...]
    ) -> tuple[Path, Path] | None:
        """Return the files of a chunk of another array, and of one here; None if not local."""
        ours, theirs = self._store, source._store
        if not (isinstance(ours, GuardedStore) and isinstance(theirs, GuardedStore)):
            return None
        return theirs.root / source.key(other), ours.root / self.key(chunk)

    def decode(self, chunk: tuple[int, ...], data: Buffer) -> Array:
        """Return the elements of a chunk (TS705)."""
        with refusing(self._place(chunk)), np.errstate(over="ignore"):  # places in a shard may lie
            return self._decoded(data)

    def encode(self, elements: Array) -> Buffer | None:
        """Return a chunk as it is to be stored; None for a shard in which each chunk is missing.

        In a shard, chunks that are all fill value are left out, unless there are other bits that
        count as equal to it. Raises what the codecs raise, and a ValueError for one that would
        change elements.
        """
        config = self._spec.config
        if self._is_sharded and not _has_other_bits(elements, self._fill):
            config = ArrayConfig("C", write_empty_chunks=False)  # version 3 has shards
        spec = replace(self._spec, config=config)
        buffer = spec.prototype.nd_buffer.from_numpy_array(elements)
        (encoded,) = sync(self._pipeline.encode([(buffer, spec)]))
        if encoded is None or keeps_values(self.metadata):
            return encoded
        if not _same_bits(self._decoded(encoded), elements):
            raise ValueError("its codecs would change elements")
        return encoded

    def _decoded(self, data: Buffer) -> Array:
        (decoded,) = sync(self._pipeline.decode([(data, self._spec)]))
        assert decoded is not None  # noqa: S101 - for the type checker
        elements: Array = decoded.as_numpy_array()
        return elements

    def empty(self, dtype: np.dtype) -> Array:
        """Return the elements of a chunk that is missing."""
        return np.full(self.chunks, self._fill, dtype)

    def compare(self, chunk: tuple[int, ...], elements: Array | None) -> int:
        """Return a chunk's checksum; TS708 if it has other elements, or is not missing."""
        stored = self.load(chunk)
        if elements is None:
            if stored is not None:
                raise unverified(self._place(chunk))
            return 0
        held = self.empty(elements.dtype) if stored is None else self.decode(chunk, stored)
        if not _same_bits(held, elements):
            raise unverified(self._place(chunk))
        return 0 if _has_no_bytes(elements) else zlib.crc32(_bytes_of(elements).data)

    def compare_copy(
        self, chunk: tuple[int, ...], source: StoredArray, other: tuple[int, ...]
    ) -> int:
        """Return the checksum of a chunk; TS708 if it is not stored as one of another array is."""
        size = source.size(other)
        if self.size(chunk) != size:
            raise unverified(self._place(chunk))
        if size is None:
            return 0
        if (paths := self._paths(chunk, source, other)) is not None:
            read, written = map(str, paths)
            return RangeCopies((ByteRange(read, 0, written, 0, size),)).verify(self._most)
        ours, theirs = self.load(chunk), source.load(other)
        if ours is None or theirs is None:
            raise unverified(self._place(chunk))
        return compare(theirs.as_numpy_array(), ours.as_numpy_array(), self._place(chunk))

    def _place(self, chunk: tuple[int, ...]) -> str:
        """Return where a chunk is, for messages."""
        return place_in(self._store, self.key(chunk))


def _same_bits(one: Array, other: Array) -> bool:
    """Return whether two arrays of one shape and type hold the same bits."""
    if _has_no_bytes(one):
        return bool(np.array_equal(one, other))
    return bool(np.array_equal(_bytes_of(one), _bytes_of(other)))


def _has_no_bytes(elements: Array) -> bool:
    """Return whether elements are references, as strings of any length are."""
    return elements.dtype.hasobject or elements.dtype.kind == "T"


def _bytes_of(elements: Array) -> Bytes:
    return np.ascontiguousarray(elements).reshape(-1).view(np.uint8)


def _has_other_bits(elements: Array, value: object) -> bool:
    """Return whether an element equals a value but has other bits: -0.0, or another NaN."""
    if elements.dtype.kind not in "fc":
        return False
    fill = np.asarray(value, elements.dtype)
    with np.errstate(invalid="ignore"):  # NumPy may warn of a NaN that signals
        equal = np.isnan(elements) if np.isnan(fill) else elements == fill
    bits = f"V{elements.dtype.itemsize}"
    other = np.ascontiguousarray(elements).view(bits) != fill.reshape(1).view(bits)
    return bool(np.any(equal & other))


def _copy_file(source: Path, target: Path, size: int) -> None:
    """Copy a file; another task that makes the same copy at the same time does no harm."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f"{target.name}.{os.urandom(8).hex()}{_UNFINISHED}")
    with contextlib.ExitStack() as cleaning:
        draft.touch(exist_ok=False)
        cleaning.callback(draft.unlink, missing_ok=True)
        RangeCopies((ByteRange(str(source), 0, str(draft), 0, size),)).write(1 << 20)
        draft.replace(target)


def complete(folder: Path) -> None:
    """Remove files of processes that were killed while they wrote, and write down all others."""
    found = [Path(place, name) for place, _, names in walk(folder) for name in names]
    for path in found:
        if path.suffix == _UNFINISHED:
            path.unlink(missing_ok=True)
    sync_files(path for path in found if path.suffix != _UNFINISHED)
