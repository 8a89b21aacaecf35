"""The format ``.safetensors``: one file, or the files of a folder with their index."""

from __future__ import annotations

import json
import os
import re
import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from tensorsplit.core.errors import PART_NAMES, UNWRITABLE, USAGE, SplitError, short_name, show
from tensorsplit.core.extras import needs
from tensorsplit.files.byte_checks import PaddingCheck, SameBytes
from tensorsplit.files.byte_moves import Move, RowPlace
from tensorsplit.files.dense_files import DenseFile, DenseWriting, Place, move_of
from tensorsplit.files.formats import FileLayout, NewTensor, Recast, StoredTensor
from tensorsplit.files.sources import FileState, check_regular, refusing, values_in
from tensorsplit.files.tensor_names import check_file_names
from tensorsplit.storage.drafts import is_draft
from tensorsplit.storage.paths import walk

SUFFIX = ".safetensors"
INDEX = ".safetensors.index.json"

_LONGEST_HEADER = 12 << 20
_LONGEST_INDEX = 64 << 20
_MOST_NAMES = 1 << 19  # in an index
_MOST_VALUES = 1 << 21
_OPEN_FILES = "/proc/self/fd"
_METADATA = "__metadata__"
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_UNPADDED = "tensorsplit.unpadded"
_LAYOUTS = "tensorsplit.layouts"
_NAMES = {
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float",
    "F64": "double",
    "BOOL": "bool",
    "F8_E4M3": "float8e4m3fn",
    "F8_E5M2": "float8e5m2",
    "F8_E8M0": "float8e8m0",
    "F8_E4M3FNUZ": "float8e4m3fnuz",
    "F8_E5M2FNUZ": "float8e5m2fnuz",
    "F4": "float4e2m1",
    "F6_E2M3": "float6e2m3",
    "F6_E3M2": "float6e3m2",
    "C64": "complex64",
    **{f"I{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"U{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}


def recognizes(source: str) -> bool:
    """Return whether it is a file of this name, or a folder that holds some."""
    path = Path(source)
    return "://" not in source and (
        source.endswith(SUFFIX)
        or (path.is_dir() and any(each.name.endswith((SUFFIX, INDEX)) for each in path.iterdir()))
    )


def open_source(source: str, layout: FileLayout) -> SafetensorsSource:
    """Read the headers of a file, or of all files of a folder (TS705).

    Of a layout with ranks, the files of each rank, and what is for all.
    """
    path = Path(source)
    if layout.ranks is not None:
        return _open_ranks(path, layout)
    if path.is_dir():
        return _open_folder(path)
    with refusing(source):
        check_regular(path)
        return SafetensorsSource(None, [_Checkpoint(_stem_of(path), [read_header(path)])])


def _stem_of(path: Path) -> str:
    return path.name.removesuffix(SUFFIX)


class HeaderEntry(NamedTuple):
    """A tensor of a file, as its header has it."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a file.

    Attributes:
        path: The file.
        state: What the file was like when it was opened.
        metadata: What it holds besides tensors; None for nothing.
        unpadded: Of tensors that were padded, how long the wholes were before.
        layouts: Of tensors that ranks divide, which elements of the wholes they have.
        entries: The tensors by name, in the order of their bytes.
        offset: Where the bytes begin.
    """

    path: Path
    state: FileState
    metadata: dict[str, str] | None
    entries: dict[str, HeaderEntry]
    offset: int
    unpadded: Mapping[str, int]
    layouts: Mapping[str, str]


def read_header(path: Path) -> Header:
    """Read a header that the library accepts; ValueError for one that could still do harm."""
    with needs("files"):
        import safetensors  # before a file is open: there may be few descriptors
    with path.open("rb") as file:
        field = file.read(8)
        state = FileState.of(os.fstat(file.fileno()))
        size = state.size
        if len(field) < 8:
            raise ValueError(f"it has {size} bytes, and the length of a header alone takes 8")
        length = struct.unpack("<Q", field)[0]
        if not 0 < length <= size - 8:
            raise ValueError(f"its header can't be {length} bytes long: the file has {size}")
        if length > _LONGEST_HEADER:
            raise ValueError(f"its header is longer than {_LONGEST_HEADER} bytes")
        if values_in(text := file.read(length)) > _MOST_VALUES:
            raise ValueError(f"its header has more than {_MOST_VALUES} values")
        with _header_file(path, field + text, size) as place:
            _check_header(safetensors, place)
        found = json.loads(text, object_pairs_hook=_pairs)
    metadata = found.pop(_METADATA, None)
    if "" in found:
        raise ValueError("its header has a tensor without a name")
    entries = sorted(found.items(), key=lambda item: (item[1].begin, item[1].end))
    unpadded = json.loads((metadata or {}).pop(_UNPADDED, "{}"))
    if type(unpadded) is not dict or any(type(n) is not int or n < 0 for n in unpadded.values()):
        raise ValueError(f"its {_UNPADDED} is not of lengths")
    layouts = json.loads((metadata or {}).pop(_LAYOUTS, "{}"))
    if type(layouts) is not dict or any(type(text) is not str for text in layouts.values()):
        raise ValueError(f"its {_LAYOUTS} is not of texts")
    return Header(path, state, metadata, dict(entries), 8 + length, unpadded, layouts)


def _check_header(library: Any, place: str) -> None:
    """Let the library read a file that is open here."""
    try:
        with library.safe_open(place, framework="numpy"):
            pass
    except library.SafetensorError as error:
        raise ValueError(str(error)) from None
    except FileNotFoundError:
        Path(place).open("rb").close()  # which says what the library does not
        raise ValueError("it could not be opened a second time") from None


@contextmanager
def _header_file(path: Path, header: bytes, size: int) -> Iterator[str]:
    """Yield a file in memory that begins as another one and is as long, or else that one.

    The library maps a file, and the system ends a process whose mapped file others cut short.
    """
    if not hasattr(os, "memfd_create") or not Path(_OPEN_FILES).is_dir():
        yield str(path)
        return
    with os.fdopen(os.memfd_create("header"), "w+b") as copy:
        copy.write(header)
        copy.truncate(size)
        yield f"{_OPEN_FILES}/{copy.fileno()}"


def _pairs(pairs: list[tuple[str, Any]]) -> Any:
    """Return an object of a header; ValueError if it has a name twice, or an empty one."""
    made = dict(pairs)
    if len(made) < len(pairs):
        name = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"its header has {show(name)} twice")
    if type(made.get("shape")) is list:  # metadata are all strings
        return HeaderEntry(made["dtype"], tuple(made["shape"]), *made["data_offsets"])
    return made


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    """Files that hold tensors together: a checkpoint, or what there is of one for a rank.

    Attributes:
        stem: What their names begin with.
        headers: The header of each.
        place: The file that their index is in; None if they have none.
        index: What that holds.
        rank: The rank that they are for; None where there are no ranks, or they are for all.
    """

    stem: str
    headers: Sequence[Header]
    place: Path | None = None
    index: Mapping[str, Any] | None = None
    rank: int | None = None


def _open_folder(folder: Path) -> SafetensorsSource:
    """Read an index and the headers of the files that it names."""
    indices = sorted(folder.glob(f"*{INDEX}"))
    with refusing(str(folder)):
        if len(indices) > 1:
            raise ValueError(f"it holds several indices: {', '.join(p.name for p in indices)}")
        if indices:
            return SafetensorsSource(folder, [_indexed(indices[0])])
        headers = [_header(p) for p in sorted(folder.glob(f"*{SUFFIX}"))]
        stem = _stem_of(headers[0].path) if len(headers) == 1 else "model"
        return SafetensorsSource(folder, [_Checkpoint(stem, headers)])


def _open_ranks(folder: Path, layout: FileLayout) -> SafetensorsSource:
    """Read the files of each rank: one, or several with their index."""
    with refusing(str(folder)):
        found = []
        for name, rank in layout.files:
            place = folder / name
            index = place.with_name(_stem_of(place) + INDEX)
            if not place.exists() and not index.exists():
                raise ValueError(f"it holds no {name}")
            is_alone = place.exists()
            each = _Checkpoint(_stem_of(place), [_header(place)]) if is_alone else _indexed(index)
            found.append(replace(each, rank=rank))
        return SafetensorsSource(folder, found)


def _indexed(place: Path) -> _Checkpoint:
    """Read an index and the headers of the files that it names (TS705)."""
    with refusing(str(place)):
        check_regular(place)
        if place.stat().st_size > _LONGEST_INDEX or _is_too_long(text := place.read_bytes()):
            raise ValueError(f"it has more than {_LONGEST_INDEX} bytes or {_MOST_NAMES} names")
        index = json.loads(text, object_pairs_hook=_pairs)
        files = index.get("weight_map") if isinstance(index, dict) else None
        if not isinstance(files, dict) or not all(type(name) is str for name in files.values()):
            raise ValueError("it has no weight_map from names to files")
        for name in dict.fromkeys(files.values()):
            if Path(name).name != name or not name.endswith(SUFFIX):
                raise ValueError(f"{show(name)} is no {SUFFIX} file beside it")
        headers = [_header(place.with_name(name)) for name in sorted(set(files.values()))]
        held = {name: each.path.name for each in headers for name in each.entries}
        for name in files.keys() | held.keys():
            named, found, short = files.get(name), held.get(name), short_name(name)
            if named is None:
                raise ValueError(f"it does not name {short}, which is in {found}")
            if found is None:
                raise ValueError(f"it says that {short} is in {named}, which does not hold it")
            if named != found:
                raise ValueError(f"it says that {short} is in {named}, but that is in {found}")
    return _Checkpoint(place.name.removesuffix(INDEX), headers, place, index)


def _is_too_long(index: bytes) -> bool:
    """Return whether an index, which has the name of each tensor and of its file, is not read."""
    names = index.count(b'"') / 4
    return len(index) > _LONGEST_INDEX or max(names, values_in(index) / 2) > _MOST_NAMES


def _header(path: Path) -> Header:
    with refusing(str(path)):
        check_regular(path)
        return read_header(path)


def _other_files(folder: Path, read: Iterable[Path]) -> Iterator[tuple[str, int]]:
    """Yield path and size of what else a folder holds; ValueError for what can't be kept."""
    known = {path.name for path in read}
    for place, folders, names in walk(folder):
        folders[:] = [name for name in folders if not is_draft(name)]
        for name in (*folders, *names):
            path = Path(place, name)
            relative = path.relative_to(folder).as_posix()
            if name in folders and not path.is_symlink():
                continue
            if not path.is_file():
                raise ValueError(f"{relative} is not a file, and can't be carried over")
            if relative not in known:
                yield relative, path.stat().st_size


@dataclass(frozen=True, slots=True)
class _Placed:
    """A new tensor, the files that what it comes from is in, and its type and size in bytes."""

    headers: Sequence[Header]
    output: NewTensor
    dtype: str
    nbytes: int


@dataclass(frozen=True, slots=True)
class _NewFile:
    """A file to write: its tensors, and the header that they make."""

    tensors: Sequence[_Placed]
    header: bytes


class SafetensorsSource:
    """A file, or a folder, that was opened.

    Tensors that are not split are carried over with their metadata, and so are the other files of a
    folder.
    """

    suffixes = (SUFFIX,)
    joins = True
    writes_urls = False

    def __init__(self, folder: Path | None, found: Sequence[_Checkpoint]) -> None:
        self._folder, self._is_ranked = folder, len(found) > 1 or found[0].rank is not None
        self._stem = "model" if self._is_ranked else found[0].stem
        self._index = None if self._is_ranked else found[0].index
        self._headers = [header for each in found for header in each.headers]
        self._found: dict[StoredTensor, Header] = {}
        self.tensors: dict[str, StoredTensor] = {}
        for each in found:
            for header in each.headers:
                for name, entry in header.entries.items():
                    nbytes = entry.end - entry.begin
                    dtype = _NAMES[entry.dtype]
                    noted = header.unpadded.get(name), header.layouts.get(name, "")
                    tensor = StoredTensor(name, entry.shape, dtype, nbytes, each.rank, *noted)
                    key = f"{each.stem}/{name}" if self._is_ranked else name
                    if key in self.tensors:
                        raise ValueError("two of its files hold a tensor of the same name")
                    self._found[tensor], self.tensors[key] = header, tensor
        read = [header.path for header in self._headers]
        read += [each.place for each in found if each.place is not None]
        self._others = [] if folder is None else list(_other_files(folder, read))
        self.reads = read if folder is None else [folder, *read]
        self.states = {header.path: header.state for header in self._headers}
        self.notes = list(self._metadata_notes())

    def _metadata_notes(self) -> Iterator[str]:
        """Yield notes on metadata of the ranks' files that one file can't hold."""
        if self._is_ranked:
            values = defaultdict[str, set[str]](set)
            for header in self._headers:
                for key, value in (header.metadata or {}).items():
                    values[key].add(value)
            for key in (key for key, some in values.items() if len(some) > 1):
                yield f"the metadata {show(key)} are not the same in all files; the first stay"

    def carries(self, _target: str) -> bool:
        """Return True: tensors that are not split are carried over, as a checkpoint stays one."""
        return True

    def writing(self, changes: Sequence[Recast], target: str, layout: FileLayout) -> DenseWriting:
        """Return the files to write: one for each source or rank, or several of limited size."""
        groups = self._groups(changes, layout)
        files = {name: file for group in groups.values() for name, file in group.items()}
        is_file = target.endswith(SUFFIX)
        if is_file and (len(files) > 1 or (self._folder is not None and not self._is_ranked)):
            problem = f"the result is a folder of files, and {target} would be one of them"
            raise SplitError(USAGE, problem, "give the name of a folder", parameter="output")
        has_index = self._index is not None and layout.ranks is None
        indices = [
            self._index_of(stem, group)
            for stem, group in groups.items()
            if has_index or len(group) > 1
        ]
        others = [] if is_file else [DenseFile(name, b"", size) for name, size in self._others]
        if is_file:
            self.notes += [f"{name} is not carried over into a file" for name, _ in self._others]
        made, places = [], defaultdict[NewTensor, list[Place]](list)
        for name, file in files.items():
            place = len(file.header)
            for each in file.tensors:
                places[each.output].append(("" if is_file else name, place, ""))
                place += each.nbytes
            made.append(DenseFile("" if is_file else name, file.header, place))
        moved: list[Move] = []
        compared: list[SameBytes | PaddingCheck] = []
        for change in changes:
            held = [self._place(each) for each in change.stored]
            found, same = move_of(change, held, [places[each] for each in change.after.outputs])
            moved.append(found)
            compared += same
        for other in others:
            whole = ((0, other.size),)
            place_of = str(Path(self._folder or "", other.name))
            source, to = RowPlace(place_of, 0, whole), RowPlace(other.name, 0, whole)
            moved.append(Move(1, other.size, (source,), (to,)))
        if not is_file:
            check_file_names(each.name for each in (*made, *indices))
            taken = {each.name for each in others}
            if both := next((each.name for each in (*made, *indices) if each.name in taken), None):
                problem = f"the folder holds another file called {both}, which is carried over"
                raise SplitError(PART_NAMES, problem, "rename it", parameter="names")
        return DenseWriting([*made, *indices, *others], moved, compared)

    def _place(self, tensor: StoredTensor) -> Place:
        header = self._found[tensor]
        return str(header.path), header.offset + header.entries[tensor.name].begin, ""

    def _groups(
        self, changes: Sequence[Recast], layout: FileLayout
    ) -> dict[str, dict[str, _NewFile]]:
        """Return the files to write, by the name that their index would have.

        Those of larger elements come first, so that all are aligned.
        """
        # some may be empty
        files: dict[str, list[_Placed]] = {name: [] for name, _ in layout.files}
        if layout.ranks is None and not self._is_ranked:
            files = {each.path.name: [] for each in self._headers}
        for change in changes:
            headers = [self._found[each] for each in change.stored]
            name = f"{self._stem}{SUFFIX}" if self._is_ranked else headers[0].path.name
            dtype = headers[0].entries[change.stored[0].name].dtype
            for output in change.after.outputs:
                nbytes = _bytes_of(change.after.tensor, output)
                placed = _Placed(headers, output, dtype, nbytes)
                for file in layout.files_of(output.rank) or [name]:
                    files.setdefault(file, []).append(placed)
        for tensors in files.values():
            tensors.sort(key=lambda each: -_bits(each.dtype))
        if layout.ranks is None:
            return {self._stem: _divided(self._stem, files, layout.max_shard_size)}
        return {
            stem: _divided(stem, {name: tensors}, layout.max_shard_size)
            for name, tensors in files.items()
            for stem in [name.removesuffix(SUFFIX)]
        }

    def _index_of(self, stem: str, files: Mapping[str, _NewFile]) -> DenseFile:
        """Return the index of some files, with the other entries of the source's index."""
        before = dict(self._index or {})
        metadata = before.get("metadata")
        total = sum(each.nbytes for file in files.values() for each in file.tensors)
        before["metadata"] = {
            **(metadata if isinstance(metadata, dict) else {}),
            "total_size": total,
        }
        before["weight_map"] = {
            each.output.name: name for name, file in files.items() for each in file.tensors
        }
        text = json.dumps(before, indent=2, sort_keys=True, ensure_ascii=False).encode() + b"\n"
        if _is_too_long(text):
            problem = (
                f"its index would have more than {_LONGEST_INDEX} bytes or {_MOST_NAMES} names"
            )
            raise SplitError(
                UNWRITABLE, problem, "make fewer parts, or split fewer tensors at once"
            )
        return DenseFile(f"{stem}{INDEX}", text, len(text))


def _bytes_of(tensor: StoredTensor, output: NewTensor) -> int:
    return tensor.nbytes * prod(output.shape) // (prod(tensor.shape) or 1)


def _bits(dtype: str) -> int:
    """Return the bits of an element."""
    found = re.search("[0-9]+", dtype)
    return int(found[0]) if found else 8


def _shards(tensors: Sequence[_Placed], most: int | None) -> list[Sequence[_Placed]]:
    """Return lists of tensors of at most so many bytes; one that is larger is alone."""
    if most is None:
        return [tensors]
    shards: list[list[_Placed]] = [[]]
    size = 0
    for each in tensors:
        if shards[-1] and size + each.nbytes > most:
            shards.append([])
            size = 0
        shards[-1].append(each)
        size += each.nbytes
    return [*shards]


def _readable(tensors: Sequence[_Placed]) -> Iterator[_NewFile]:
    """Yield files of these tensors whose headers are no longer than those that are read (TS702)."""
    header = _header_of(tensors)
    if len(header) <= 8 + _LONGEST_HEADER:
        yield _NewFile(tensors, header)
        return
    half = len(tensors) // 2
    if half == 0:
        problem = f"the metadata would take more than {_LONGEST_HEADER} bytes of a header"
        raise SplitError(UNWRITABLE, problem, "leave some out of the source")
    yield from _readable(tensors[:half])
    yield from _readable(tensors[half:])


def _divided(
    stem: str, files: Mapping[str, Sequence[_Placed]], most: int | None
) -> dict[str, _NewFile]:
    """Return the files, or more of them, numbered as other tools do it, if one is too large."""
    shards = [shard for tensors in files.values() for shard in _shards(tensors, most)]
    made = [file for shard in shards for file in _readable(shard)]
    if len(made) == len(files):
        return dict(zip(files, made, strict=True))
    return {
        f"{stem}-{number:05}-of-{len(made):05}{SUFFIX}": file for number, file in enumerate(made, 1)
    }


def _header_of(tensors: Sequence[_Placed]) -> bytes:
    """Return the header of a file, padded so that the tensors are aligned."""
    metadata: dict[str, str] = {}
    for each in reversed(tensors):
        for header in reversed(each.headers):
            metadata |= header.metadata or {}
    outputs = [each.output for each in tensors]
    if unpadded := {e.name: e.unpadded for e in outputs if e.unpadded is not None}:
        metadata[_UNPADDED] = json.dumps(unpadded, ensure_ascii=False)
    if layouts := {e.name: e.layout for e in outputs if e.layout}:
        metadata[_LAYOUTS] = json.dumps(layouts, ensure_ascii=False)
    entries = [_entry(_METADATA, metadata)] if metadata else []
    place = 0
    for each in tensors:
        name = each.output.name
        if name == _METADATA:
            problem = f"{name} can't be the name of a tensor"
            raise SplitError(PART_NAMES, problem, "give another one", parameter="names")
        end = place + each.nbytes
        held = {"dtype": each.dtype, "shape": each.output.shape, "data_offsets": (place, end)}
        entries.append(_entry(name, held))
        place = end
    text = f"{{{','.join(entries)}}}".encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def _entry(name: str, held: Mapping[str, object]) -> str:
    """Return one entry of a header as text: thousands of objects would take more memory."""
    return f"{_COMPACT.encode(name)}:{_COMPACT.encode(held)}"
