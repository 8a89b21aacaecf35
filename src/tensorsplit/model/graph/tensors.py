"""Tensors of a model file as arrays, their sizes checked before use."""

from __future__ import annotations

import math
import os
import sys
from copy import copy
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir
from onnx import SparseTensorProto, TensorProto, helper, numpy_helper

from tensorsplit.core.errors import MALFORMED_MODEL, SplitError, short_name, words_of
from tensorsplit.model.data_files import find_data, read_data, unusable

Array: TypeAlias = "np.ndarray"

MAX_RANK = 64
"""Tensors of a higher rank are refused; NumPy has none."""

_MAX_DENSE = 1 << 28
_MAX_WRITTEN_DENSE = 1 << 20

ELEMENT_TYPES = frozenset(map(int, ir.DataType))
"""The numbers of the element types that onnx-ir knows, `UNDEFINED` among them."""


def element_type_of(data_type: int) -> ir.DataType | None:
    """Return the element type of a ``TensorProto.DataType``; None if unknown."""
    is_known = data_type != TensorProto.UNDEFINED and data_type in ELEMENT_TYPES
    return ir.DataType(data_type) if is_known else None


def element_name(data_type: int) -> str | None:
    """Do as `element_type_of`, in the package's words."""
    found = element_type_of(data_type)
    return None if found is None else found.name.lower()


def read_tensor(tensor: ir.TensorProtocol, name: str = "") -> Array:
    """Return the elements of a tensor of a model; messages use the name given, or its own.

    External data is looked for in the folder that the tensor names.

    Raises:
        SplitError: TS502 if the tensor is not well-formed, TS504 if its external data can't be
            used.
    """
    name = name or tensor.name or ""
    if isinstance(tensor, ir.serde.TensorProtoTensor):
        return array_of(tensor.raw, None, name)
    if isinstance(tensor, (ir.ExternalTensor, ir.StringTensor)):
        return array_of(ir.serde.serialize_tensor(tensor), folder_of(tensor), name)
    if isinstance(tensor, ir.LazyTensor):
        return read_tensor(tensor.raw(), name)
    return tensor.numpy()


def with_name(tensor: ir.TensorProtocol, name: str) -> ir.TensorProtocol:
    """Return a tensor with another name; the tensor itself keeps its own."""
    if isinstance(tensor, ir.TensorProtoTensor):  # its name is that of the message
        message = TensorProto()
        message.CopyFrom(tensor.raw)
        message.name = name
        return ir.TensorProtoTensor(message)
    other = copy(tensor)
    other.name = name
    return other


def folder_of(tensor: ir.TensorProtocol) -> Path | None:
    """Return the folder of the external data of a tensor; None if there is no such place."""
    folder = os.fspath(tensor.base_dir) if isinstance(tensor, ir.ExternalTensor) else ""
    return Path(folder) if folder else None


def array_of(tensor: TensorProto, folder: Path | None, name: str = "") -> Array:
    """Do as `read_tensor`, for a tensor in a message."""
    name = name or tensor.name
    shape = _checked_shape(name, tensor)
    if tensor.HasField("segment"):
        raise _malformed(name, "it is stored in segments, which no ONNX version defines further")
    try:
        if tensor.data_location == TensorProto.EXTERNAL:
            return _from_bytes(tensor, shape, _read_external(name, tensor, folder, shape))
        if tensor.data_type == TensorProto.STRING:
            return _strings(name, tensor, shape)
        _check_size(name, tensor, shape)
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        if isinstance(error, SplitError):
            raise
        raise _malformed(name, f"it can't be read ({words_of(error)})") from error


def check_tensor(tensor: TensorProto | SparseTensorProto) -> None:
    """Check the description of a tensor, without its elements.

    Raises:
        SplitError: TS502 for an unknown element type or impossible dimensions, TS504 for external
            data whose position is not a number.
    """
    if isinstance(tensor, SparseTensorProto):
        _shape(tensor.values.name, tensor.dims)
        check_tensor(tensor.values)
        check_tensor(tensor.indices)
        return
    _checked_shape(tensor.name, tensor)
    for entry in tensor.external_data:
        if entry.key in ("offset", "length"):
            _number(tensor.name, entry.key, entry.value)


class SparseTensor(ir.LazyTensor):
    """A sparse tensor as a dense one, made on demand; a large one is written as it was.

    Attributes:
        kept: The message to write; None for one that is written as a dense tensor, which more
            engines read.
    """

    def __init__(self, tensor: SparseTensorProto, folder: Path | None) -> None:
        name, shape = tensor.values.name, _shape(tensor.values.name, tensor.dims)

        def make() -> ir.TensorProtocol:
            dense = _dense(name, tensor, shape, folder)
            return ir.serde.deserialize_tensor(numpy_helper.from_array(dense, name))

        element = ir.DataType(tensor.values.data_type)
        super().__init__(
            make,
            element,
            ir.Shape(shape),
            cache=True,
            name=name,
            doc_string=tensor.values.doc_string,
            metadata_props={entry.key: entry.value for entry in tensor.values.metadata_props},
        )
        self.kept = tensor if math.prod(shape) > _MAX_WRITTEN_DENSE else None

    def tobytes(self) -> bytes:
        """Return the bytes to write; none where the message itself is written."""
        return super().tobytes() if self.kept is None else b""


def inlined(tensor: TensorProto, folder: Path | None) -> TensorProto:
    """Return a copy of a tensor with external data that holds the data; see `read_tensor`."""
    shape = _checked_shape(tensor.name, tensor)
    data = _read_external(tensor.name, tensor, folder, shape)
    return TensorProto(name=tensor.name, dims=shape, data_type=tensor.data_type, raw_data=data)


def check_external(tensor: TensorProto, folder: Path | None) -> None:
    """Check that external data can be used (see `read_tensor`), without reading it."""
    _find_external(tensor.name, tensor, folder, _checked_shape(tensor.name, tensor))


def _checked_shape(name: str, tensor: TensorProto) -> tuple[int, ...]:
    if element_type_of(tensor.data_type) is None:
        raise _malformed(name, f"its element type is {tensor.data_type}, which ONNX does not have")
    return _shape(name, tensor.dims)


def _shape(name: str, dims: Any) -> tuple[int, ...]:
    shape = tuple(dims)
    if min(shape, default=0) < 0 or len(shape) > MAX_RANK:
        problem = f"its dimensions are {list(shape[:12])}"
        raise _malformed(name, f"{problem}; they are at most {MAX_RANK}, none below 0")
    return shape


def _from_bytes(tensor: TensorProto, shape: tuple[int, ...], data: bytes) -> Array:
    """Return an array of bytes; without copies where elements are whole bytes."""
    element = ir.DataType(tensor.data_type)
    if element.bitwidth < 8 or sys.byteorder == "big" or not data:
        embedded = TensorProto(dims=shape, data_type=tensor.data_type, raw_data=data)
        return numpy_helper.to_array(embedded)
    return np.frombuffer(data, dtype=element.numpy()).reshape(shape)


def _strings(name: str, tensor: TensorProto, shape: tuple[int, ...]) -> Array:
    """Return an array of strings; NumPy's own type would drop NUL characters at their ends."""
    if len(tensor.string_data) != math.prod(shape):
        problem = f"it has {len(tensor.string_data)} strings for the shape {list(shape)}"
        raise _malformed(name, problem)
    array = np.empty(len(tensor.string_data), dtype=object)
    try:
        array[:] = [text.decode("utf-8") for text in tensor.string_data]
    except UnicodeDecodeError as error:
        raise _malformed(name, f"a string is not UTF-8 ({error.reason})") from None
    return array.reshape(shape)


def _check_size(name: str, tensor: TensorProto, shape: tuple[int, ...]) -> None:
    """Refuse data that is shorter or longer than its shape."""
    if tensor.HasField("raw_data"):
        found, wanted, unit = len(tensor.raw_data), _byte_count(name, tensor, shape), "bytes"
    else:
        field = helper.tensor_dtype_to_field(tensor.data_type)
        found, unit = len(getattr(tensor, field)), f"entries in {field}"
        element, wanted = ir.DataType(tensor.data_type), math.prod(shape)
        if element in (ir.DataType.COMPLEX64, ir.DataType.COMPLEX128):
            wanted *= 2
        elif element.bitwidth in (2, 4):  # several elements share an entry
            wanted = -(-wanted * element.bitwidth // 8)
    if found != wanted:
        raise _malformed(name, f"it has {found} {unit}; the shape {list(shape)} takes {wanted}")


def raw_size(tensor: TensorProto) -> int | None:
    """Return how many bytes of raw data a tensor takes; None if it can't have any."""
    try:
        return _byte_count(tensor.name, tensor, _checked_shape(tensor.name, tensor))
    except SplitError:
        return None


def _byte_count(name: str, tensor: TensorProto, shape: tuple[int, ...]) -> int:
    if tensor.data_type == TensorProto.STRING:
        raise _malformed(name, "it holds strings, which can't be raw or external data")
    return -(-math.prod(shape) * ir.DataType(tensor.data_type).bitwidth // 8)


def _dense(
    name: str, tensor: SparseTensorProto, shape: tuple[int, ...], folder: Path | None
) -> Array:
    elements = math.prod(shape)
    if elements > _MAX_DENSE:
        raise _malformed(name, f"it stands for {elements} elements; {_MAX_DENSE} is the most")
    given = array_of(tensor.values, folder)
    places = array_of(tensor.indices, folder, f"{name} (indices)")
    if given.ndim != 1 or places.dtype != np.int64:
        raise _malformed(name, "a sparse tensor has a list of values and int64 indices")
    is_flat = places.shape == given.shape
    if not is_flat and places.shape != (*given.shape, len(shape)):
        raise _malformed(name, f"its indices have shape {places.shape} for {given.shape[0]} values")
    if not ((places >= 0) & (places < np.array(elements if is_flat else shape))).all():
        raise _malformed(name, f"it has an index outside its shape {list(shape)}")
    empty: object = "" if given.dtype == object else 0
    dense = np.full(shape, empty, dtype=given.dtype)
    dense[np.unravel_index(places, shape) if is_flat else tuple(places.T)] = given
    return dense


def _malformed(name: str, problem: str) -> SplitError:
    parameter = short_name(name) or "tensor"
    return SplitError(MALFORMED_MODEL, problem, "write the tensor again", parameter=parameter)


def _read_external(
    name: str, tensor: TensorProto, folder: Path | None, shape: tuple[int, ...]
) -> bytes:
    path, offset, size = _find_external(name, tensor, folder, shape)
    return read_data(path, offset, size, short_name(name) or "tensor")


def _find_external(
    name: str, tensor: TensorProto, folder: Path | None, shape: tuple[int, ...]
) -> tuple[Path, int, int]:
    """Return the file of a tensor's external data, where the data begins, and how long it is."""
    size = _byte_count(name, tensor, shape)
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    path, available = find_data(location, folder, short_name(name) or "tensor")
    offset = _number(name, "offset", entries.get("offset", "0"))
    length = _number(name, "length", entries.get("length", str(size)))
    if length != size:
        raise _unusable(name, f"its length is {length} bytes, but the tensor takes {size}")
    if offset + size > available:
        problem = f"bytes {offset} to {offset + size} are named"
        raise _unusable(name, f"{path.name!r} has {available} bytes, but {problem}")
    return path, offset, size


def _number(name: str, key: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise _unusable(name, f"its {key} is {text[:40]!r}, which is not a number of bytes")
    return int(text)


def _unusable(name: str, problem: str) -> SplitError:
    return unusable(problem, short_name(name) or "tensor")
