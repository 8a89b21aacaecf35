"""Zarr stores, and folders of them, as sources: their arrays, and what becomes of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import prod
from pathlib import Path

import numpy as np

from tensorsplit.arrays.numpy import element_type
from tensorsplit.core.errors import (
    NOT_PARTS,
    PART_NAMES,
    UNREADABLE_TENSORS,
    USAGE,
    SplitError,
    short_name,
    show,
    show_int,
    show_path,
)
from tensorsplit.files.formats import FileLayout, Recast, StoredTensor
from tensorsplit.files.sources import FileState, local_path
from tensorsplit.files.tensor_names import check_file_names
from tensorsplit.files.zarr_arrays import ArrayPlace
from tensorsplit.files.zarr_cuts import cuts_of
from tensorsplit.files.zarr_nodes import DOCUMENTS, Bounds, ZarrNode, find, is_name, members
from tensorsplit.files.zarr_writing import NewArray, ZarrWriting

_STORE = ".zarr"
_NEW_GROUPS = {
    "zarr.json": b'{"zarr_format": 3, "node_type": "group", "attributes": {}}',
    ".zgroup": b'{"zarr_format": 2}',
}
"""What describes a group, by the name of that in either version."""

_MOST_CHUNKS = 1 << 24


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
        """Return a job that makes an array of a group of each new tensor, or a store in a folder.

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
            cuts = cuts_of(change, array, tuple(each for _, each in found))
            for output, cut in zip(change.after.outputs, cuts, strict=True):
                name = "" if is_store else output.name.removeprefix(f"{folder}/") + _STORE
                name = output.name if is_group else name
                parts.append(NewArray(name, cut, array))
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
        return array, ArrayPlace(url, array.path, tuple(array.documents), array.digest)

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
    """Return the description of an array without its shape, and its attributes."""
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


def _add_groups(parts: Sequence[NewArray], groups: dict[str, Mapping[str, bytes]]) -> None:
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
        return () if self._root is None else members(self._url, self._root)


def _is_folder(path: Path) -> bool:
    """Return whether a folder holds stores, and is none itself."""
    return path.is_dir() and not any((path / each).exists() for each in DOCUMENTS)
