"""The formats of NumPy: ``.npy``, one tensor in a file, ``.npz``, a zip archive, and folders."""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import IO

import numpy as np

from tensorsplit.arrays.numpy import element_type
from tensorsplit.core.dimensions import MAX_DIM
from tensorsplit.core.errors import (
    NOT_PARTS,
    USAGE,
    SplitError,
    count_of,
    short_name,
    show,
    show_int,
)
from tensorsplit.files.byte_moves import Move
from tensorsplit.files.dense_files import DenseFile, DenseWriting, move_of
from tensorsplit.files.formats import FileLayout, NewTensor, Recast, StoredTensor
from tensorsplit.files.npz_archives import ArchiveWriting
from tensorsplit.files.sources import FileState, PickledError, check_regular, open_archive, refusing
from tensorsplit.files.tensor_names import check_file_names
from tensorsplit.storage.drafts import is_draft

_SUFFIX = ".npy"
_ARCHIVE = ".npz"
_LONGEST_HEADER = 1 << 16
_LONGEST_TEXT = 10_000
"""What NumPy parses of a header unless it is to trust it."""

_FLOAT8 = b"'descr': '<f1'"  # what NumPy writes for float8_e5m2, and can't read
_ONE_BYTE = b"'descr': '|V1'"


def recognizes(source: str) -> bool:
    """Return whether it is a path that ends in ``.npy`` or ``.npz``, or a folder of ``.npy``."""
    if "://" in source:
        return False
    path = Path(source)
    if path.is_dir():
        return {each.suffix for each in path.iterdir() if not is_draft(each.name)} == {_SUFFIX}
    return source.endswith((_SUFFIX, _ARCHIVE))


def open_source(source: str, _layout: FileLayout) -> NpySource:
    """Read the headers of files; TS705 for one that NumPy refuses, or of another size."""
    path = Path(source)
    with refusing(source):
        if path.is_dir():
            files = sorted(each for each in path.iterdir() if not is_draft(each.name))
            return NpySource([path, *files], dict(map(_file, files)))
        check_regular(path)
        found = _members(path) if path.suffix == _ARCHIVE else [_file(path)]
        return NpySource([path], dict(found))


def _file(path: Path) -> tuple[str, NpyArray]:
    with refusing(str(path)):
        check_regular(path)
        with path.open("rb") as file:
            state = FileState.of(os.fstat(file.fileno()))
            header = read_header(file)
            check_size(header, state.size)
    return path.name.removesuffix(_SUFFIX), NpyArray(header, path, state)


def _members(path: Path) -> Iterator[tuple[str, NpyArray]]:
    """Yield the arrays of an archive; ValueError for anything else in it."""
    with path.open("rb") as file, open_archive(file) as archive:
        state = FileState.of(os.fstat(file.fileno()))
        names = archive.namelist()
        if len(names) > len(set(names)):
            raise ValueError("it holds two arrays of the same name")
        for info in archive.infolist():
            if not info.filename.endswith(_SUFFIX):
                raise ValueError(f"it holds {show(info.filename)}, which is not an array")
            with archive.open(info) as member:
                header = read_header(member)
            check_size(header, info.file_size)
            yield info.filename.removesuffix(_SUFFIX), NpyArray(header, path, state, info.filename)


@dataclass(frozen=True, slots=True)
class NpyHeader:
    """The header of an ``.npy``.

    Attributes:
        version: The version of the format.
        descr: The element type, as it is written.
        dtype: The element type, as NumPy reads it.
        fortran: Whether the first axis is the one whose elements lie side by side.
        shape: The shape.
        offset: Where the elements begin.
    """

    version: tuple[int, int]
    descr: object
    dtype: np.dtype
    fortran: bool
    shape: tuple[int, ...]
    offset: int

    @property
    def nbytes(self) -> int:
        """The bytes of the elements."""
        return prod(self.shape) * self.dtype.itemsize

    def for_shape(self, shape: tuple[int, ...]) -> bytes:
        """Return the header of a part, written as this one."""
        fields = {"descr": self.descr, "fortran_order": self.fortran, "shape": shape}
        text = "{" + "".join(f"{key!r}: {value!r}, " for key, value in fields.items()) + "}"
        encoded = text.encode("utf-8" if self.version >= (3, 0) else "latin-1")
        length = "<H" if self.version == (1, 0) else "<I"
        start = 8 + struct.calcsize(length)
        padded = encoded + b" " * (-(start + len(encoded) + 1) % 64) + b"\n"
        return np.lib.format.magic(*self.version) + struct.pack(length, len(padded)) + padded


def read_header(file: IO[bytes]) -> NpyHeader:
    """Read a header as NumPy does; ValueError for what can't be split."""
    octets = file.read(_LONGEST_HEADER)
    if not octets:
        raise ValueError("it is empty")
    start = io.BytesIO(octets)
    version = np.lib.format.read_magic(start)
    length = "<H" if version == (1, 0) else "<I"
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"version {version} of the format is not known")
    field = start.read(struct.calcsize(length))
    text = start.read(struct.unpack(length, field)[0]) if len(field) > 1 else b""
    offset = start.tell()
    if len(text) > _LONGEST_TEXT:
        raise ValueError(f"its header is longer than {_LONGEST_TEXT} bytes")
    if version == (3, 0):
        text = text.decode("utf-8").encode("ascii", "backslashreplace")
    patched = text.replace(_FLOAT8, _ONE_BYTE)
    shape, fortran, dtype = np.lib.format.read_array_header_2_0(
        io.BytesIO(struct.pack("<I", len(patched)) + patched)
    )
    if dtype.hasobject:
        raise PickledError
    if not all(type(dim) is int and 0 <= dim <= MAX_DIM for dim in shape):
        raise ValueError(f"its shape is {show(shape)}")
    descr = "<f1" if patched != text else np.lib.format.dtype_to_descr(dtype)
    return NpyHeader(version, descr, dtype, fortran, shape, offset)


def check_size(header: NpyHeader, size: int) -> None:
    """Raise a ValueError for a file that does not end where its elements do."""
    follow = size - header.offset
    if follow != header.nbytes:
        raise ValueError(
            f"a shape of {show(header.shape)} and {header.dtype} take {show_int(header.nbytes)}"
            f" bytes, but {follow} follow the header"
        )


@dataclass(frozen=True, slots=True)
class NpyArray:
    """An array in a file.

    Attributes:
        header: Its header.
        path: The file.
        state: What the file was like when it was opened.
        member: The member of an archive that it is; empty for a file of its own.
    """

    header: NpyHeader
    path: Path
    state: FileState
    member: str = ""


class NpySource:
    """A file or folder that was opened, with the header of each array."""

    suffixes = (_SUFFIX, _ARCHIVE)
    joins = False
    writes_urls = False
    notes: Sequence[str] = ()

    def __init__(self, reads: Sequence[Path], arrays: Mapping[str, NpyArray]) -> None:
        self._arrays, self.reads = arrays, reads
        self.states = {each.path: each.state for each in arrays.values()}
        self.tensors = {name: _tensor(name, each.header) for name, each in arrays.items()}

    def carries(self, _target: str) -> bool:
        """Return False: only what is split is written."""
        return False

    def writing(self, changes: Sequence[Recast], target: str, _layout: FileLayout) -> DenseWriting:
        """Return a job that makes a file of each tensor, in a folder or an archive, or the target.

        Raises:
            SplitError: TS706 for names that collide, TS713 for parts of different types or orders,
                TS703 for several arrays in one file.
        """
        files: list[DenseFile] = []
        moved: list[Move] = []
        for change in changes:
            arrays = [self._arrays[each.name] for each in change.stored]
            header = arrays[0].header
            for name, each in zip(change.stored, arrays, strict=True):
                if (each.header.dtype, each.header.fortran) != (header.dtype, header.fortran):
                    problem = f"{short_name(name.name)} is of another type or order of axes"
                    raise SplitError(NOT_PARTS, problem, "store all alike", parameter="source")
            made = [_npy_file(header, each) for each in change.after.outputs]
            held = [(str(each.path), each.header.offset, each.member) for each in arrays]
            wanted = [[(each.name, len(each.header), "")] for each in made]
            moved.append(move_of(change, held, wanted, fortran=header.fortran)[0])
            files += made
        check_file_names([each.name for each in files])
        if target.endswith(_ARCHIVE):
            return ArchiveWriting(files, moved)
        if not target.endswith(_SUFFIX):
            return DenseWriting(files, moved)
        if len(files) > 1:
            problem = f"the result is {count_of(len(files), 'array')}, and {target} holds one"
            raise SplitError(USAGE, problem, "give the name of a folder", parameter="output")
        alone = [replace(each, targets=(replace(each.targets[0], path=""),)) for each in moved]
        return DenseWriting([replace(files[0], name="")], alone)


def _tensor(name: str, header: NpyHeader) -> StoredTensor:
    element = element_type(np.empty(0, header.dtype))
    return StoredTensor(name, header.shape, element, header.nbytes)


def _npy_file(header: NpyHeader, tensor: NewTensor) -> DenseFile:
    """Return the file of a tensor of the same element type and order."""
    begin = header.for_shape(tensor.shape)
    size = len(begin) + prod(tensor.shape) * header.dtype.itemsize
    return DenseFile(f"{tensor.name}{_SUFFIX}", begin, size)
