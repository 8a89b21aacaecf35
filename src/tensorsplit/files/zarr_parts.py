"""Parts of zarr arrays, chunk by chunk.

Where a part begins at a chunk, encoded chunks are copied as they are. All other chunks of a part
are made of the chunks that hold their elements. A chunk that is missing stays missing.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import zarr
from zarr.buffer import default_buffer_prototype

from tensorsplit.arrays.numpy import element_type
from tensorsplit.core.errors import (
    CANNOT_EXPRESS,
    NOT_PARTS,
    PART_NAMES,
    UNREADABLE_TENSORS,
    USAGE,
    SplitError,
    short_name,
    show,
    show_int,
    show_path,
    words_of,
)
from tensorsplit.core.plan import offsets_of, sizes_of
from tensorsplit.files.byte_copies import LEAST_MEMORY
from tensorsplit.files.byte_moves import Move, RowPlace, pieces_of
from tensorsplit.files.formats import Division, FileLayout, Recast, StoredTensor, WriteTask
from tensorsplit.files.sources import FileState, local_path, refusing
from tensorsplit.files.tensor_names import check_file_names
from tensorsplit.files.zarr_arrays import (
    Array,
    ArrayPlace,
    StoredArray,
    complete,
    open_array,
    open_part,
)
from tensorsplit.files.zarr_nodes import (
    CONSOLIDATED,
    DOCUMENTS,
    Bounds,
    ZarrNode,
    find,
    is_name,
    members,
)
from tensorsplit.files.zarr_stores import join, store_at, unreadable, write_value

if TYPE_CHECKING:
    from zarr.abc.store import Store

_COPIES = 4
"""How often a chunk is in memory while one is made: two as they are read, and one twice."""

_STORE = ".zarr"
_NEW_GROUPS = {
    "zarr.json": b'{"zarr_format": 3, "node_type": "group", "attributes": {}}',
    ".zgroup": b'{"zarr_format": 2}',
}
"""What describes a group, by the name of that in either version."""

_MOST_CHUNKS = 1 << 24
_TASK = 32 << 20


class ZarrSource:
    """A store that was opened, or a folder of stores that are arrays."""

    suffixes = (_STORE,)
    joins = False
    writes_urls = True

    def __init__(self, url: str) -> None:
        self._url = url
        path = local_path(url)
        self.reads = () if path is None else (path,)
        self.states: dict[Path, FileState] = {}
        self.tensors = _Arrays(url)
        self.notes: list[str] = []

    def carries(self, target: str) -> bool:
        """Return whether it goes into a group, which is a store itself, not a folder of stores."""
        return target.rstrip("/").endswith(_STORE)

    def writing(self, changes: Sequence[Recast], target: str, _layout: FileLayout) -> ZarrWriting:
        """Return each new tensor becomes an array of a group, or a store in a folder.

        Of a folder of stores, one tensor may also become the store that the target is.

        Raises:
            SplitError: TS310 where the axis is dropped, TS703 for several arrays in the place of
                one, TS705 for more chunks than can be gone through, TS706 for names that collide,
                TS713 for parts that are not stored alike.
        """
        parts = []
        is_store = self.carries(target)
        is_group = is_store and not self.tensors.is_folder
        for change in changes:
            found = [self._stored(each.name) for each in change.stored]
            array, place = found[0]
            for tensor, (other, _) in zip(change.stored[1:], found[1:], strict=True):
                self._check_alike(change.before.tensor.name, tensor.name, array, other)
            folder = place.path.rpartition("/")[0]
            cuts = _cuts(change, array, tuple(each for _, each in found))
            for output, cut in zip(change.after.outputs, cuts, strict=True):
                name = "" if is_store else output.name.removeprefix(f"{folder}/") + _STORE
                name = output.name if is_group else name
                parts.append(_NewArray(name, cut, array))
        groups = self.tensors.groups() if is_group else {}
        if is_group:
            _add_groups(parts, groups)
        elif not is_store:
            check_file_names([part.name for part in parts])
        elif len(parts) > 1:
            problem = f"the result is {len(parts)} arrays, and {target} would be one"
            raise SplitError(USAGE, problem, "give the name of a folder", parameter="output")
        chunks = sum(prod(part.cut.grid) for part in parts)
        if chunks > _MOST_CHUNKS:
            raise SplitError(
                UNREADABLE_TENSORS,
                f"{show_path(self._url)}: the parts would have {show_int(chunks)} chunks",
                f"at most {_MOST_CHUNKS} can be handled",
                parameter="source",
            )
        return ZarrWriting(parts, groups)

    def _stored(self, name: str) -> tuple[ZarrNode, ArrayPlace]:
        """Return an array, and where it is."""
        array, url = self.tensors.node(name), self.tensors.url_of(name)
        return array, ArrayPlace(url, array.path, array.digest)

    def _check_alike(self, whole: str, name: str, first: ZarrNode, other: ZarrNode) -> None:
        """Refuse (TS713) parts of a whole that are stored differently; note other attributes."""
        (one, attributes), (two, others) = map(_of_documents, (first.documents, other.documents))
        if one != two:
            keys = [key for key in one.keys() | two.keys() if one.get(key) != two.get(key)]
            raise SplitError(
                NOT_PARTS,
                f"tensor {short_name(whole)}: {short_name(name)} is stored differently from the"
                f" first part: {', '.join(sorted(keys))}",
                "store all parts alike",
                parameter="source",
            )
        if attributes != others:
            self.notes.append(f"{short_name(name)} has other attributes; those of the first stay")


def _of_documents(documents: Mapping[str, bytes]) -> tuple[dict[str, object], object]:
    """Return what describes an array but for its shape, and its attributes."""
    found: dict[str, object] = {}
    attributes: object = None
    for name, text in documents.items():
        described = json.loads(text)
        if name == ".zattrs":
            attributes = described
        elif isinstance(described, dict):
            attributes = described.pop("attributes", attributes)
            described.pop("shape", None)
            found |= described
    return found, attributes or {}


def _add_groups(parts: Sequence[_NewArray], groups: dict[str, Mapping[str, bytes]]) -> None:
    """Add the groups that arrays are in and that are not there yet, as the source has none.

    Raises:
        SplitError: TS706 for names that are not paths in a group, and arrays in arrays.
    """
    arrays = {part.name for part in parts}
    check_file_names({name for path in arrays for name in path.split("/")})
    for part in parts:
        kind = "zarr.json" if "zarr.json" in part.documents else ".zgroup"
        for group in _groups_around(part.name):
            groups.setdefault(group, {kind: _NEW_GROUPS[kind]})
    for path in sorted(arrays):
        if path in groups or path.rpartition("/")[2] in DOCUMENTS:
            problem = f"{show(path)} can't be an array: the group holds something else of that name"
            raise SplitError(PART_NAMES, problem, "give another name", parameter="names")


def _groups_around(path: str) -> Iterator[str]:
    """Yield the paths of the groups that one is in; empty for that of the store."""
    while path:
        path = path.rpartition("/")[0]
        yield path


class _Arrays(Mapping[str, StoredTensor]):
    """The arrays of a store by their paths, or the one that the store is by its own name.

    Of a folder of stores, each of these.

    Attributes:
        is_folder: Whether it is such a folder.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._found: dict[str, ZarrNode] = {}
        self._urls: dict[str, str] = {}
        self._root: ZarrNode | None = None
        path, bounds = local_path(url), Bounds()
        self.is_folder = path is not None and _is_folder(path)
        stores = [url]
        if path is not None and self.is_folder:
            stores = sorted(str(each) for each in path.iterdir() if each.suffix == _STORE)
        for store in stores:
            found = find(store, bounds=bounds)
            if found.metadata is not None:
                name = store.rpartition("/")[2].removesuffix(_STORE)
                self._found[name], self._urls[name] = found, store
            elif not self.is_folder:
                self._root = found

    def url_of(self, name: str) -> str:
        """Return the store that an array is in."""
        return self._urls.get(name, self._url)

    def node(self, name: str) -> ZarrNode:
        """Return the array of a name (KeyError)."""
        if name not in self._found:
            if self._root is None or not all(map(is_name, name.split("/"))):
                raise KeyError(name)
            found = find(self._url, name)
            if found.metadata is None:
                raise KeyError(name)
            self._found[name] = found
        return self._found[name]

    def __getitem__(self, name: str) -> StoredTensor:
        node = self.node(name)
        element, shape = element_type(np.empty(0, node.dtype)), tuple(node.array.shape)
        return StoredTensor(name, shape, element, prod(shape) * node.dtype.itemsize)

    def __iter__(self) -> Iterator[str]:
        if self._root is None:
            return iter(self._found)
        found = {each.path: each for each in self._members if each.metadata is not None}
        if lost := self._found.keys() - found:
            raise SplitError(
                UNREADABLE_TENSORS,
                f"{show_path(self._url)} does not list what it holds, such as {show(min(lost))}",
                "name arrays, and a folder for their parts",
                parameter="source",
            )
        self._found |= found
        return iter(sorted(found))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def groups(self) -> dict[str, Mapping[str, bytes]]:
        """Return the documents of the groups, by their paths."""
        if self._root is None:
            return {}
        groups = (each for each in self._members if each.metadata is None)
        return {each.path: each.documents for each in (self._root, *groups)}

    @cached_property
    def _members(self) -> Sequence[ZarrNode]:
        """The arrays and groups of the group that the store is; listing takes time at a URL."""
        return () if self._root is None else members(self._url)


def _is_folder(path: Path) -> bool:
    """Return whether a folder holds stores, and is none itself."""
    return path.is_dir() and not any((path / each).exists() for each in DOCUMENTS)


@dataclass(frozen=True, slots=True)
class _Cut:
    """Which elements of arrays another one is made of.

    Attributes:
        sources: Where the arrays are.
        lengths: Their lengths on the axis.
        axis: The axis on which pieces of them lie side by side.
        pieces: Source, start and size of each piece; none for one array as it is.
        shape: The shape of the new array.
        chunks: The shape of a chunk, here and there.
    """

    sources: tuple[ArrayPlace, ...]
    lengths: tuple[int, ...]
    axis: int
    pieces: tuple[tuple[int, int, int], ...]
    shape: tuple[int, ...]
    chunks: tuple[int, ...]

    @property
    def is_aligned(self) -> bool:
        """Whether each chunk is a copy of one of a source."""
        if not self.pieces:
            return True
        size, end = self.chunks[self.axis], 0
        for source, start, length in self.pieces:
            # only the last piece can be a rest: the one after it would not be aligned
            is_rest = start + length == self.lengths[source]
            if start % size or end % size or (length % size and not is_rest):
                return False
            end += length
        return True

    @property
    def grid(self) -> tuple[int, ...]:
        """The number of chunks on each axis."""
        return tuple(-(-dim // size) for dim, size in zip(self.shape, self.chunks, strict=True))

    def chunk(self, number: int) -> tuple[int, ...]:
        """Return the index of a chunk; consecutive numbers lie side by side on the axis."""
        index, grid = [0] * len(self.shape), self.grid
        for axis in sorted(range(len(grid)), key=lambda each: each != self.axis):
            number, index[axis] = divmod(number, grid[axis])
        return tuple(index)

    def elements(self, chunk: tuple[int, ...]) -> int:
        """Return how many elements of the array are in a chunk."""
        return prod(
            min(size, dim - index * size)
            for index, size, dim in zip(chunk, self.chunks, self.shape, strict=True)
        )

    def spans(self, chunk: tuple[int, ...]) -> Iterator[tuple[int, int, int, int]]:
        """Yield the elements on the axis that a chunk is made of.

        Gives the source, where they begin in there, where in the chunk, and how many there are;
        these are all in one chunk of the source.
        """
        size = self.chunks[self.axis]
        low = chunk[self.axis] * size
        high = min(low + size, self.shape[self.axis])
        end = 0
        for source, start, length in self.pieces:
            begin, end = end, end + length
            place = max(low, begin)
            while place < min(high, end):
                read = start + place - begin
                count = min(min(high, end) - place, size - read % size)
                yield source, read, place - low, count
                place += count

    def origin(self, chunk: tuple[int, ...], read: int) -> tuple[int, ...]:
        """Return the chunk of the source that holds an index of the axis."""
        return (*chunk[: self.axis], read // self.chunks[self.axis], *chunk[self.axis + 1 :])

    def copied_from(self, chunk: tuple[int, ...]) -> tuple[int, tuple[int, ...]] | None:
        """Return source and chunk that hold the same elements, and no others."""
        if not self.pieces:
            return 0, chunk
        (source, read, _, count), *others = self.spans(chunk)
        size = self.chunks[self.axis]
        is_same = (
            not others and read % size == 0 and count == min(size, self.lengths[source] - read)
        )
        return (source, self.origin(chunk, read)) if is_same else None


def _cuts(change: Recast, array: ZarrNode, places: tuple[ArrayPlace, ...]) -> list[_Cut]:
    """Return what each new array of a change is made of (TS310 where the axis is dropped)."""
    plan, chunks = change.before.plan or change.after.plan, array.stored
    if plan is None:
        return [_Cut(places, (), 0, (), each.shape, chunks) for each in change.after.outputs]
    if not plan.keepdims:
        raise SplitError(
            CANNOT_EXPRESS,
            "the chunks of a zarr array keep all of its axes",
            "split it with keepdims=1",
            parameter="keepdims",
        )
    axis, length = plan.axis, sum(sizes_of(plan))
    pieces: list[list[tuple[int, int, int]]] = [[] for _ in change.after.outputs]
    move = Move(1, length, _rows(change.before, length), _rows(change.after, length))
    for source, start, target, _, size in pieces_of(move):
        pieces[int(target.path)].append((int(source.path), start, size))
    lengths = tuple(each.shape[axis] for each in change.stored)
    return [
        _Cut(places, lengths, axis, tuple(some), each.shape, chunks)
        for some, each in zip(pieces, change.after.outputs, strict=True)
    ]


def _rows(division: Division, length: int) -> tuple[RowPlace, ...]:
    """Return the parts of a whole, by their numbers, as columns of elements on the axis."""
    plan = division.plan
    return tuple(
        RowPlace(
            str(number),
            0,
            ((0, length),)
            if plan is None
            else tuple((offsets_of(plan)[part], sizes_of(plan)[part]) for part in each.parts),
        )
        for number, each in enumerate(division.outputs)
    )


@dataclass(frozen=True, slots=True)
class _NewArray:
    """An array to write: its path in the draft, what it is made of, and what describes that.

    The path is empty where the draft is the array.
    """

    name: str
    cut: _Cut
    like: ZarrNode

    @property
    def documents(self) -> Mapping[str, bytes]:
        """What describes it, but for its shape."""
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
        self, parts: Sequence[_NewArray], groups: Mapping[str, Mapping[str, bytes]]
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
        """Make the folder, where there are folders."""
        self._draft = draft
        path = local_path(draft)
        if path is not None:
            path.mkdir()

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
        """Write what describes the arrays, then the groups, and all down to the disk."""
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
    """Write what describes a group, and all that it holds where the source's does so too."""
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

    cut: _Cut
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

    def made(self, cut: _Cut, chunk: tuple[int, ...]) -> Array | None:
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
