"""Codecs of zarr arrays that decode no chunk to much more than its size.

What a compressed chunk decodes to is written in its header, or found by decoding a little more than
it may hold; only then zarr decodes it. Codecs that are not known here decode as they are.
"""

from __future__ import annotations

import asyncio
import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from io import BufferedIOBase, BytesIO
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numcodecs.abc
from zarr import AsyncArray
from zarr.abc.codec import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec, Codec, CodecPipeline
from zarr.abc.numcodec import Numcodec
from zarr.codecs import BytesCodec, ShardingCodec, TransposeCodec, VLenBytesCodec, VLenUTF8Codec
from zarr.registry import get_pipeline_class

from tensorsplit.files.zarr_internals import ArraySpec, ArrayV2Metadata, ArrayV3Metadata

if TYPE_CHECKING:
    from zarr.abc.buffer import Buffer
    from zarr.storage import StorePath

Metadata: TypeAlias = "ArrayV2Metadata | ArrayV3Metadata"

_SLACK = 1 << 20
_WIDEST = 16
"""How many times larger filters may make a chunk: bytes stored as complex numbers."""

_ITEM_CODECS = (VLenBytesCodec, VLenUTF8Codec)
_ITEM = 64
"""The bytes of memory that a short string takes, with the reference to it."""

_PLAIN = (BytesCodec, ShardingCodec, TransposeCodec, *_ITEM_CODECS)
_EXECUTES = "pickle"


def bounded_pipeline(metadata: Metadata, place: StorePath, memory: int) -> CodecPipeline:
    """Return the codecs of an array; they raise ValueError for a chunk that decodes to too much.

    Args:
        metadata: What describes the array.
        place: Where it is.
        memory: What a chunk may decode to if its elements have no fixed size.
    """
    if isinstance(metadata, ArrayV2Metadata):
        limit = _limit(metadata.chunks, metadata, memory)
        filters = tuple(_BoundedFilter(each, limit) for each in metadata.filters or ())
        compressor = metadata.compressor and _BoundedFilter(metadata.compressor, limit)
        bounded = replace(metadata, filters=filters or None, compressor=compressor)
        return AsyncArray(bounded, place).codec_pipeline
    codecs = _bounded(metadata.codecs, chunk_shape(metadata), metadata, memory)
    return get_pipeline_class().from_codecs(codecs)


def chunk_shape(metadata: Metadata) -> tuple[int, ...]:
    """Return the shape of what is stored under one key: a chunk, or a shard with its chunks."""
    return tuple(metadata.chunk_grid.chunk_shape)


def stored_size(metadata: Metadata) -> int | None:
    """Return the bytes of each chunk as it is stored; None where its codecs decide that."""
    if isinstance(metadata, ArrayV2Metadata):
        shape, is_plain = metadata.chunks, not metadata.filters and metadata.compressor is None
    else:
        shape = chunk_shape(metadata)
        is_plain = all(isinstance(each, (BytesCodec, TransposeCodec)) for each in metadata.codecs)
    dtype = metadata.dtype.to_native_dtype()
    if not is_plain or dtype.hasobject or dtype.kind == "T":
        return None
    return prod(map(int, shape)) * int(dtype.itemsize)


def keeps_values(metadata: Metadata) -> bool:
    """Return whether what is encoded surely decodes to the same bits; filters may round."""
    if isinstance(metadata, ArrayV2Metadata):
        return all(each.codec_id.startswith("vlen-") for each in metadata.filters or ())
    return _all_plain(metadata.codecs)


def runs_code(metadata: Metadata) -> bool:
    """Return whether decoding runs code that is in the chunks, as unpickling does."""
    if isinstance(metadata, ArrayV2Metadata):
        codecs = (*(metadata.filters or ()), metadata.compressor)
        return any(each is not None and each.codec_id == _EXECUTES for each in codecs)
    return False


def _all_plain(codecs: Iterable[Codec]) -> bool:
    return all(
        isinstance(each, (BytesBytesCodec, *_PLAIN))
        and (not isinstance(each, ShardingCodec) or _all_plain(each.codecs))
        for each in codecs
    )


def _limit(shape: tuple[int, ...], metadata: Metadata, memory: int) -> int:
    """Return how many bytes a chunk of this shape may decode to."""
    dtype = metadata.dtype.to_native_dtype()
    if dtype.hasobject or dtype.kind == "T":
        return memory
    has_filters = (
        bool(metadata.filters)
        if isinstance(metadata, ArrayV2Metadata)
        else any(isinstance(each, ArrayArrayCodec) for each in metadata.codecs)
    )
    return prod(shape) * int(dtype.itemsize) * (_WIDEST if has_filters else 1) + _SLACK


def _bounded(
    codecs: Iterable[Codec], shape: tuple[int, ...], metadata: Metadata, memory: int
) -> tuple[Codec, ...]:
    bounded: list[Codec] = []
    for each in codecs:
        if isinstance(each, ShardingCodec):
            inner = _bounded(each.codecs, each.chunk_shape, metadata, memory)
            bounded.append(replace(each, codecs=inner))
        elif isinstance(each, (BytesBytesCodec, *_ITEM_CODECS)):
            kind = _BoundedBytes if isinstance(each, BytesBytesCodec) else _BoundedItems
            bounded.append(kind(each, _limit(shape, metadata, memory)))
        else:
            bounded.append(each)
    return tuple(bounded)


@dataclass(frozen=True)
class _Bounded:
    """A codec of zarr 3, with a bound."""

    codec: Any
    limit: int
    is_fixed_size = False

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        return int(self.codec.compute_encoded_size(input_byte_length, chunk_spec))

    async def _decode_single(self, chunk_data: Buffer, chunk_spec: ArraySpec) -> object:
        described = self.codec.to_dict()
        name = described["name"].removeprefix("numcodecs.")
        settings = described.get("configuration", {})
        await asyncio.to_thread(_check, name, settings, chunk_data.to_bytes(), self.limit)
        (decoded,) = await self.codec.decode([(chunk_data, chunk_spec)])
        return decoded

    async def _encode_single(self, chunk_data: object, chunk_spec: ArraySpec) -> Buffer | None:
        (encoded,) = await self.codec.encode([(chunk_data, chunk_spec)])
        return encoded


class _BoundedBytes(_Bounded, BytesBytesCodec):  # type: ignore[misc]  # it has no types
    """A compressor or checksum, with a bound."""


class _BoundedItems(_Bounded, ArrayBytesCodec):  # type: ignore[misc]  # it has no types
    """A codec of elements that have no fixed size, with a bound."""


class _BoundedFilter(numcodecs.abc.Codec):  # type: ignore[misc]  # it has no types
    """A compressor or filter of zarr 2, with a bound."""

    codec_id = "bounded"

    def __init__(self, codec: Numcodec, limit: int) -> None:
        self.codec, self.limit = codec, limit

    def encode(self, buf: object) -> Any:
        """Encode as the codec does."""
        return self.codec.encode(buf)

    def decode(self, buf: Any, out: object = None) -> Any:
        """Decode as the codec does, if that gives no more than the limit."""
        settings = self.codec.get_config()
        _check(self.codec.codec_id, settings, bytes(memoryview(buf)), self.limit)
        return self.codec.decode(buf, out)


def _check(codec: str, settings: Mapping[str, object], data: bytes, limit: int) -> None:
    """Refuse (ValueError) to decode data to more than a limit."""
    bound = _BOUNDS.get(codec)
    if bound is not None and bound(settings, data, limit) > limit:
        raise ValueError("it decodes to more than a chunk holds")


def _bound_of_blosc(_: Mapping[str, object], data: bytes, __: int) -> int:
    """Read the length that a blosc buffer decodes to; ValueError if it ends too early.

    Blosc is not given how long the buffer is, and would read what lies after it in memory.
    """
    if len(data) < _BLOSC_HEADER or int.from_bytes(data[12:16], "little") > len(data):
        raise ValueError("it ends before the data that its header announces")
    return int.from_bytes(data[4:8], "little")


def _bound_of_items(_: Mapping[str, object], data: bytes, __: int) -> int:
    """Bound the memory of strings: their number is in 32 bits before them."""
    return _ITEM * int.from_bytes(data[:4], "little") + len(data)


def _bound_of_zstd(_: Mapping[str, object], data: bytes, __: int) -> int:
    """Return a bound for the content of zstd frames, by their headers or their blocks."""
    place = whole = 0
    while place + 5 < len(data):
        magic = int.from_bytes(data[place : place + 4], "little")
        if magic & 0xFFFFFFF0 == 0x184D2A50:  # a frame that decoders skip
            place += 8 + int.from_bytes(data[place + 4 : place + 8], "little")
            continue
        flags = data[place + 4]
        is_single, size_flag = flags >> 5 & 1, flags >> 6
        width = (is_single, 2, 4, 8)[size_flag]
        place += 5 + (1 - is_single) + (0, 1, 2, 4)[flags & 3]
        declared = int.from_bytes(data[place : place + width], "little") + 256 * (size_flag == 1)
        place += width
        held, is_last = 0, False
        while not is_last and place < len(data):
            header = int.from_bytes(data[place : place + 3], "little")
            is_last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
            place += 3 + (1 if kind == 1 else size)
            held += _ZSTD_BLOCK if kind == 2 else size
        whole += declared if width else held
        place += 4 * (flags >> 2 & 1)
    return whole


def _count(file: BufferedIOBase, limit: int) -> int:
    """Return the bytes that a compressed file holds, or one more than the limit."""
    with file:
        return len(file.read(limit + 1))


def _lzma_file(settings: Mapping[str, Any], data: bytes) -> lzma.LZMAFile:
    kind = settings.get("format", lzma.FORMAT_XZ)
    return lzma.LZMAFile(BytesIO(data), format=kind, filters=settings.get("filters"))


_ZSTD_BLOCK = 128 << 10
_BLOSC_HEADER = 16

_BOUNDS: dict[str, Callable[[Mapping[str, object], bytes, int], int]] = {
    **dict.fromkeys(("vlen-utf8", "vlen-bytes", "vlen-array"), _bound_of_items),
    "blosc": _bound_of_blosc,
    "lz4": lambda _, data, __: int.from_bytes(data[:4], "little"),
    "zstd": _bound_of_zstd,
    "gzip": lambda _, data, most: _count(gzip.GzipFile(fileobj=BytesIO(data)), most),
    "zlib": lambda _, data, most: len(zlib.decompressobj().decompress(data, most + 1)),
    "bz2": lambda _, data, most: _count(bz2.BZ2File(BytesIO(data)), most),
    "lzma": lambda settings, data, most: _count(_lzma_file(settings, data), most),
}
"""For each codec, the most bytes that data decodes to, or more than a limit."""
