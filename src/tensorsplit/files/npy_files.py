"""The formats of NumPy: ``.npy``, one tensor in a file, and ``.npz``, a zip archive of these."""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile

import numpy as np

from tensorsplit.arrays.numpy import element_type
from tensorsplit.core.dimensions import MAX_DIM
from tensorsplit.core.errors import show, show_int
from tensorsplit.files.dense_files import DenseFile, DenseWriting, move
from tensorsplit.files.divisions import check_file_names
from tensorsplit.files.formats import Division, FileLayout, NewTensor, StoredTensor
from tensorsplit.files.sources import check_regular, refusing

_LONGEST_HEADER = 1 << 16
_FLOAT8 = b"'descr': '<f1'"  # what NumPy writes for float8_e5m2, and can't read
_ONE_BYTE = b"'descr': '|V1'"


def recognizes(source: str) -> bool:
    """Return whether it is a path that ends in ``.npy`` or ``.npz``."""
    return source.endswith((".npy", ".npz")) and "://" not in source


def open_source(source: str) -> NpySource:
    """Read the headers of a file; TS705 for one that NumPy refuses, or of another size."""
    path = Path(source)
    with refusing(source):
        check_regular(path)
        if path.suffix == ".npz":
            return NpySource(path, dict(_members(path)))
        with path.open("rb") as file:
            header = read_header(file)
            check_size(header, os.fstat(file.fileno()).st_size)
    return NpySource(path, {path.name.removesuffix(".npy"): header})


def _members(path: Path) -> Iterator[tuple[str, NpyHeader]]:
    """Yield the arrays of an archive; ValueError for anything else in it."""
    with ZipFile(path) as archive:
        names = archive.namelist()
        if len(names) > len(set(names)):
            raise ValueError("it holds two arrays of one name")
        for info in archive.infolist():
            if not info.filename.endswith(".npy"):
                raise ValueError(f"it holds {show(info.filename)}, which is no array")
            with archive.open(info) as member:
                header = read_header(member)
            check_size(header, info.file_size)
            yield info.filename.removesuffix(".npy"), header


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
    descr: Any
    dtype: np.dtype[Any]
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
    start = io.BytesIO(file.read(_LONGEST_HEADER))
    version = np.lib.format.read_magic(start)
    length = "<H" if version == (1, 0) else "<I"
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"version {version} of the format is not known")
    field = start.read(struct.calcsize(length))
    text = start.read(struct.unpack(length, field)[0]) if len(field) > 1 else b""
    offset = start.tell()
    if version == (3, 0):
        text = text.decode("utf-8").encode("ascii", "backslashreplace")
    patched = text.replace(_FLOAT8, _ONE_BYTE)
    shape, fortran, dtype = np.lib.format.read_array_header_2_0(
        io.BytesIO(struct.pack("<I", len(patched)) + patched)
    )
    if dtype.hasobject:
        raise ValueError("its elements are pickled objects, which are never read")
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


class NpySource:
    """A file that was opened, with the header of each array."""

    joins = False
    writes_urls = False

    def __init__(self, path: Path, headers: Mapping[str, NpyHeader]) -> None:
        self._path, self._headers = path, headers
        self.tensors = {
            name: StoredTensor(name, each.shape, element_type(np.empty(0, each.dtype)), each.nbytes)
            for name, each in headers.items()
        }
        self.reads = [path]

    def carries(self, _target: str) -> bool:
        """Only what is split is written."""
        return False

    def writing(
        self, divisions: Sequence[Division], _target: str, _layout: FileLayout
    ) -> DenseWriting:
        """Return each tensor becomes a file of a folder."""
        files, moves = [], []
        for division in divisions:
            name = division.tensor.name
            header = self._headers[name]
            made = [npy_file(header, each) for each in division.outputs]
            places = [(each.name, len(each.header)) for each in made]
            whole = move(division, str(self._path), header.offset, places, fortran=header.fortran)
            is_member = self._path.suffix == ".npz"
            moves.append(replace(whole, member=f"{name}.npy") if is_member else whole)
            files += made
        check_file_names([each.name for each in files])
        return DenseWriting(files, moves)


def npy_file(header: NpyHeader, tensor: NewTensor) -> DenseFile:
    """Return the file of a tensor of the same element type and order."""
    begin = header.for_shape(tensor.shape)
    size = len(begin) + prod(tensor.shape) * header.dtype.itemsize
    return DenseFile(f"{tensor.name}.npy", begin, size)
