"""The arrays and groups of a zarr store, and the documents that describe them.

Documents may hold anything, so how much of them is read, parsed and kept has bounds (TS716).
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import starmap

import numpy as np

from tensorsplit.core.dimensions import MAX_DIM
from tensorsplit.core.errors import LARGE_METADATA, SplitError, show, show_int, show_path
from tensorsplit.files.sources import PickledError, refusing, values_in
from tensorsplit.files.zarr_codecs import Metadata, runs_code
from tensorsplit.files.zarr_internals import ArrayV2Metadata, ArrayV3Metadata, RegularChunkGrid
from tensorsplit.files.zarr_stores import (
    Allowance,
    BeyondAllowanceError,
    folders_in,
    join,
    read_values,
    sizes_of,
    store_at,
)

CONSOLIDATED = ".zmetadata"
"""What repeats, in version 2, all that describes what a group holds."""

_READ = ("zarr.json", ".zarray", ".zgroup", ".zattrs")
DOCUMENTS = (*_READ, CONSOLIDATED)
"""What describes arrays and groups, by name."""

_NODE_TYPE = re.compile(rb'"node_type"\s*:\s*"([^"]*)"')
_MOST_BYTES = 10 << 20
_MOST_VALUES = 1 << 18
_MOST_NODES = 1 << 12
_DEEPEST = 64
_MOST_CODECS = 64
_LARGEST_ELEMENT = 1 << 20
_BATCH = 16


@dataclass(frozen=True, slots=True)
class ZarrNode:
    """An array or a group.

    Attributes:
        path: Its path in the store.
        documents: What describes it, by name; of that which only repeats others, nothing but that
            it is there.
        metadata: What describes an array, but for its attributes; None for a group.
    """

    path: str
    documents: Mapping[str, bytes]
    metadata: Metadata | None

    @property
    def dtype(self) -> np.dtype:
        """The element type of an array."""
        made: np.dtype = self.array.dtype.to_native_dtype()
        return made

    @property
    def array(self) -> Metadata:
        """The document that describes an array."""
        assert self.metadata is not None  # noqa: S101 - for the type checker
        return self.metadata

    @property
    def stored(self) -> tuple[int, ...]:
        """The shape of what is stored under one key: a chunk, or a shard."""
        return tuple(self.array.shards or self.array.chunks)

    @property
    def digest(self) -> str:
        """A digest that differs for other documents."""
        return sha256(repr(sorted(self.documents.items())).encode()).hexdigest()


def is_name(name: str) -> bool:
    """Return whether a file or folder can have this name."""
    return name not in ("", ".", "..") and "/" not in name


def find(
    url: str, path: str = "", bounds: Bounds | None = None, names: Sequence[str] = ()
) -> ZarrNode:
    """Return the array or group at a path in a store (TS705, TS716).

    It is described by documents of these names; they are looked for if none are given.
    """
    reader = _DocumentReader(url, bounds)
    reader.count()
    (found,) = reader.nodes([path], names=names)
    if found is None:
        with refusing(join(url, path)):
            raise ValueError("there is no zarr array or group")
    return found


def members(url: str, root: ZarrNode) -> list[ZarrNode]:
    """Return all arrays and groups of the group at a URL, but for itself (TS705, TS716)."""
    reader = _DocumentReader(url)
    found: list[ZarrNode] = []
    groups = [root]
    while groups:
        batch = groups[-_BATCH:]
        del groups[-_BATCH:]
        new = {each.path for each in batch if each.documents.keys().isdisjoint(_READ[1:])}
        paths = reader.folders([each.path for each in batch])
        for start in range(0, len(paths), _BATCH):
            found_here = reader.nodes(paths[start : start + _BATCH], new)
            nodes = [each for each in found_here if each is not None]
            found += nodes
            groups += [each for each in nodes if each.metadata is None]
    return found


@dataclass
class Bounds:
    """The amounts read so far of a source; no more than these are kept in memory."""

    allowance: Allowance = field(default_factory=lambda: Allowance(_MOST_BYTES))
    values: int = 0
    nodes: int = 0


class _DocumentReader:
    """Reads documents of a store, as long as they are not too many or too large."""

    def __init__(self, url: str, bounds: Bounds | None = None) -> None:
        self._url, self._bounds = url, bounds or Bounds()
        with refusing(url):
            self._store = store_at(url)

    def folders(self, paths: Sequence[str]) -> list[str]:
        """Return the paths in folders that may be those of arrays and groups."""
        found = []
        deepest = max(path.count("/") for path in paths)
        if deepest >= _DEEPEST:  # the system looks up each folder on the way, each time
            raise self._beyond(f"holds groups that are more than {_DEEPEST} deep")
        with refusing(self._url):
            try:
                for path, name in folders_in(self._store, paths):
                    if name in DOCUMENTS or not is_name(name):
                        continue
                    found.append(join(path, name))
                    self.count()
            except BeyondAllowanceError:
                raise self._beyond("lists too many entries") from None
        return found

    def count(self) -> None:
        """Count an array, a group, or what may be one."""
        self._bounds.nodes += 1
        if self._bounds.nodes > _MOST_NODES:
            raise self._beyond(f"holds more than {_MOST_NODES} arrays and groups")

    def nodes(
        self, paths: Sequence[str], new: Container[str] = (), names: Sequence[str] = ()
    ) -> list[ZarrNode | None]:
        """Return the node at each path; None for nothing.

        Args:
            paths: Where arrays and groups may be.
            new: Groups around them that version 2 does not describe, and so nothing in them.
            names: The documents of each, if they are known.
        """
        rounds = [names] if names else [_READ[:1], _READ[1:]]
        with refusing(self._url):
            try:
                documents = self._documents(paths, new, rounds)
            except BeyondAllowanceError:
                problem = f"is described in more than {_MOST_BYTES} bytes"
                raise self._beyond(problem) from None
        found = [self._node(path, documents[path]) for path in paths]
        groups = [each for each in found if each is not None and each.metadata is None]
        old = [each.path for each in groups if ".zgroup" in each.documents]
        self._note_consolidated(documents, old)
        return found

    def _documents(
        self, paths: Sequence[str], new: Container[str], rounds: Sequence[Sequence[str]]
    ) -> dict[str, dict[str, bytes]]:
        """Read the documents at each path, by name (BeyondAllowanceError).

        Those of version 2 are not requested where there is an array of version 3 alone, or
        something of version 3 in a group of that version alone.
        """
        found: dict[str, dict[str, bytes]] = {path: {} for path in paths}
        for names in rounds:
            left = [path for path in paths if not _is_new(path, found[path], new)]
            keys = [(path, name) for path in left for name in names]
            values = read_values(self._store, list(starmap(join, keys)), self._bounds.allowance)
            for (path, name), value in zip(keys, values, strict=True):
                if value is not None:
                    found[path][name] = value
        return found

    def _note_consolidated(
        self, documents: Mapping[str, dict[str, bytes]], groups: Sequence[str]
    ) -> None:
        """Note for each group of version 2 whether there is what repeats the documents in it."""
        with refusing(self._url):
            sizes = sizes_of(self._store, [join(path, CONSOLIDATED) for path in groups])
        for path, size in zip(groups, sizes, strict=True):
            if size is not None:
                documents[path][CONSOLIDATED] = b""

    def _node(self, path: str, documents: dict[str, bytes]) -> ZarrNode | None:
        with refusing(join(self._url, path)):
            parsed = {name: self._parsed(name, text) for name, text in documents.items()}
            kind = next((name for name in _READ[:-1] if name in documents), None)
            if kind is None:
                return None
            described = parsed[kind]
            version = 3 if kind == "zarr.json" else 2
            if described.get("zarr_format") != version:
                raise ValueError(f"zarr_format is {show(described.get('zarr_format'))}")
            if not isinstance(described.pop("attributes", None), dict | None):
                raise ValueError("its attributes are not an object")
            if kind == ".zgroup" or described.get("node_type") == "group":
                return ZarrNode(path, documents, None)
            _check_codecs(described)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                reader = ArrayV3Metadata if version == 3 else ArrayV2Metadata
                metadata = reader.from_dict(described)
            _check(metadata)
            return ZarrNode(path, documents, metadata)

    def _parsed(self, name: str, text: bytes) -> dict[str, object]:
        self._bounds.values += values_in(text)
        if self._bounds.values > _MOST_VALUES:
            raise self._beyond(f"is described in more than {_MOST_VALUES} values")
        described = json.loads(text)
        if not isinstance(described, dict):
            raise TypeError(f"its {name} is not an object")
        return described

    def _beyond(self, problem: str) -> SplitError:
        return SplitError(
            LARGE_METADATA,
            f"{show_path(self._url)} {problem}",
            "keep large attributes in arrays, and groups in stores of their own",
            parameter="source",
        )


def _is_new(path: str, documents: Mapping[str, bytes], new: Container[str]) -> bool:
    """Return whether documents are of version 3, and there are none of version 2."""
    is_in_new = path.rpartition("/")[0] in new
    return (is_in_new and bool(documents)) or _is_new_array(documents)


def _is_new_array(documents: Mapping[str, bytes]) -> bool:
    """Return whether documents describe an array of version 3 alone, before they are parsed.

    Its chunks may have the names of version 2, and be those of an array of that version, too.
    """
    document = documents.get("zarr.json", b"")
    return set(_NODE_TYPE.findall(document)) == {b"array"} and b'"v2"' not in document


def _check_codecs(described: object) -> None:
    """Raise a ValueError for an array with more codecs than zarr makes in a short time."""
    found, left = 0, [described]
    while left:
        each = left.pop()
        found += isinstance(each, dict)
        left += each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
    if found > 2 * _MOST_CODECS:  # each may have a configuration
        raise ValueError(f"it has more than {_MOST_CODECS} codecs")


def _check(metadata: Metadata) -> None:
    """Raise a ValueError for arrays that zarr reads, and that are not split."""
    if not all(0 <= dim <= MAX_DIM for dim in metadata.shape):
        raise ValueError(f"its shape is {show(metadata.shape)}")
    if (
        not isinstance(metadata.chunk_grid, RegularChunkGrid)
        or 0 in metadata.chunk_grid.chunk_shape
    ):
        raise ValueError("its chunks are not of one shape")
    if getattr(metadata, "storage_transformers", ()):
        raise ValueError("its chunks are stored in a way that is not known")
    if runs_code(metadata):
        raise PickledError
    if (size := metadata.dtype.to_native_dtype().itemsize) > _LARGEST_ELEMENT:
        raise ValueError(f"one of its elements takes {show_int(size)} bytes")
