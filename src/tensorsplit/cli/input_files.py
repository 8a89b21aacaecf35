"""The inputs of a model from files: .npy, .npz, and ONNX tensors and sequences as .pb."""

from __future__ import annotations

import contextlib
import io
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeAlias

import click
import numpy as np

from tensorsplit.cli.files import Array, NamedFile
from tensorsplit.cli.parsing import parse_shape
from tensorsplit.cli.screen import Command
from tensorsplit.cli.sentences import amount, tr
from tensorsplit.core.errors import UNREADABLE_ARRAY, USAGE, SplitError
from tensorsplit.files.npy_files import check_size, read_header
from tensorsplit.files.sources import PickledError, open_archive
from tensorsplit.storage.documents import likeness, read_file
from tensorsplit.storage.paths import fix_unread, why_unread

if TYPE_CHECKING:
    from tensorsplit.model.feeds import DeclaredInput


Shapes: TypeAlias = "Mapping[str, tuple[int, ...]]"

INPUT_SHAPE_OPTION = click.option(
    "--input-shape",
    "shapes",
    metavar="NAME:SHAPE",
    multiple=True,
    help="Give an input a shape, such as x:1,3,224,224 or x:1x3x224x224; may be repeated.",
)

_HEADER = 4096
_MOST_OF_A_PIPE = 1 << 34
_MAGIC = b"\x93NUMPY"
_FLOAT8 = (b"'descr': '<f1'", b"'descr': '|V1'")
_ELEMENT = re.compile(r"(.*)\[\d+\]", re.DOTALL)


def input_option(text: str) -> Callable[[Command], Command]:
    """Return the option ``--input``, passed on as `written`."""
    names = ("--input", "-i", "written")
    return click.option(*names, type=NamedFile(), multiple=True, help=text)


def read_feeds(
    written: Sequence[str], declared: Sequence[DeclaredInput]
) -> dict[str, Array | list[Array]]:
    """Read everything that is given with ``--input``, by name, not yet checked.

    Each is ``NAME=FILE``, or ``FILE`` alone: an ``.npz`` that holds inputs by name (``s[0]`` and
    so on for the elements of a sequence), or the only input that a model needs. A sequence is given
    as a ``.pb``, as the arrays of an ``.npz``, or by naming it once for each element.

    Raises:
        SplitError: TS701 for a file that is not a readable array, TS703 for a name given twice.
    """
    entries = {entry.name: entry for entry in declared}
    values: dict[str, Array | list[Array]] = {}
    for word in written:
        name, path = _name_and_path(word, declared)
        given: dict[str, list[Array]] = {} if name is None else {name: []}
        with _reading(path):
            for key, array in _load(path, is_sequence=_is_sequence(entries.get(name or ""))):
                target = _target(key, entries) if name is None else name
                given.setdefault(target, []).append(_typed(array, entries.get(target)))
        for key, arrays in given.items():
            if _is_sequence(entries.get(key)):
                values[key] = [*values.get(key, []), *arrays]
            elif key in values:
                raise SplitError(USAGE, tr("it is given twice"), tr("give it once"), parameter=key)
            elif len(arrays) != 1:
                raise SplitError(
                    UNREADABLE_ARRAY,
                    tr("{path} holds {arrays}", path=path, arrays=amount(len(arrays), "array")),
                    tr(
                        "give one array for {key}, or the .npz alone to feed all its names", key=key
                    ),
                    parameter=key,
                )
            else:
                values[key] = arrays[0]
    return values


def _name_and_path(word: str, declared: Sequence[DeclaredInput]) -> tuple[str | None, Path]:
    """Return the input's name and the file; the name may hold ``=``, and is None for an archive."""
    for entry in declared:
        if word.startswith(f"{entry.name}="):
            return entry.name, Path(word.removeprefix(f"{entry.name}="))
    name, equals, file = word.partition("=")
    if equals and not Path(word).exists():
        return name, Path(file)
    if any(word == entry.name for entry in declared) and not Path(word).exists():
        problem = tr("{word} is an input of the model, and no file is given for it", word=word)
        raise SplitError(USAGE, problem, tr("write {word}=FILE", word=word), parameter="input")
    if Path(word).suffix == ".npz":
        return None, Path(word)
    needed = [entry for entry in declared if not entry.has_default] or list(declared)
    if len(needed) == 1:
        return needed[0].name, Path(word)
    raise SplitError(
        USAGE,
        tr("{word} is not an input of the model", word=word),
        tr(
            "write NAME={word}, where NAME is one of {names}",
            word=word,
            names=", ".join(entry.name for entry in declared) or "-",
        ),
        parameter="input",
    )


def _target(key: str, entries: Mapping[str, DeclaredInput]) -> str:
    """Return the input that a member of an archive is for: ``s[0]`` is an element of sequence s."""
    found = None if key in entries else _ELEMENT.fullmatch(key)
    return found[1] if found and _is_sequence(entries.get(found[1])) else key


def _is_sequence(entry: DeclaredInput | None) -> bool:
    return entry is not None and entry.kind.endswith("sequence")


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Raise TS701 for a file, whatever goes wrong as it is read."""
    fix = tr("give a whole .npy, .npz, or .pb (ONNX tensor or sequence) file")
    try:
        yield
        return
    except SplitError as error:
        problem = error.problem
    except Exception as error:  # noqa: BLE001 - NumPy and protobuf raise whatever their parsers do
        problem, fix = why_unread(error, str(path)), fix_unread(error, fix)
        if isinstance(error, FileNotFoundError):
            problem, fix = tr("there is no such file"), tr("give the path of a file")
        elif isinstance(error, PickledError):
            fix = tr("save it as numbers")
    raise SplitError(
        UNREADABLE_ARRAY,
        f"{path}: {problem}",
        fix,
        parameter="input",
    )


def _load(path: Path, *, is_sequence: bool) -> list[tuple[str, Array]]:
    """Return the arrays of a file in their order, with the names that they have in an archive."""
    with _opened(path) as opened:
        head = opened.read(_HEADER)
        opened.seek(0)
        if head.startswith(_MAGIC):
            found = [("", _read_array(opened, head))]
        elif path.suffix != ".pb" and zipfile.is_zipfile(opened):
            _check_archive(opened)
            opened.seek(0)  # NumPy looks for the kind of file where it stands
            with np.load(opened, allow_pickle=False) as file:
                found = list(file.items())
        elif path.suffix in (".pb", ""):
            opened.seek(0)
            return [("", array) for array in _read_message(opened.read(), is_sequence)]
        else:
            kind, looks = path.suffix if path.suffix == ".npz" else ".npy", likeness(head)
            problem = f": it looks like {looks}" if looks else ", or is cut short"
            raise ValueError(f"it is not an {kind} file{problem}")
    for _, value in found:
        if not isinstance(value, np.ndarray):
            raise ValueError("it holds something other than an array")
        if value.dtype.names is not None or value.dtype.kind in "mM":
            raise ValueError(f"its element type is {value.dtype}, which no model takes")
    return found


def _check_archive(file: IO[bytes]) -> None:
    """Raise a ValueError for an array shorter than its header has it, before any is read.

    Of a small archive NumPy may take gigabytes for a header, or the elements that one describes.
    """
    with open_archive(file) as archive:
        for info in archive.infolist():
            with archive.open(info) as member:
                is_array = member.read(len(_MAGIC)) == _MAGIC
            if is_array:
                with archive.open(info) as member:
                    header = read_header(member)
                check_size(header, min(info.file_size, header.offset + header.nbytes))


def _opened(path: Path) -> IO[bytes]:
    """Return a file, or the content of a pipe; a device might never end."""
    return path.open("rb") if path.is_file() else io.BytesIO(read_file(path, _MOST_OF_A_PIPE))


def _read_array(file: IO[bytes], head: bytes) -> Array:
    """Read an ``.npy`` file that begins with `head`; nothing in it is ever unpickled."""
    if _FLOAT8[0] in head:  # what NumPy writes for float8_e5m2, and can't read
        file = io.BytesIO(file.read().replace(*_FLOAT8, 1))
    read_header(file)
    file.seek(0)
    return np.asarray(np.load(file, allow_pickle=False))


def _read_message(data: bytes, is_sequence: bool) -> list[Array]:
    from onnx import SequenceProto, TensorProto

    from tensorsplit.model.graph.tensors import array_of

    if not is_sequence:
        return [array_of(TensorProto.FromString(data), None)]
    message = SequenceProto.FromString(data)
    if message.elem_type not in (SequenceProto.UNDEFINED, SequenceProto.TENSOR):
        raise ValueError("its elements are not tensors")
    return [array_of(tensor, None) for tensor in message.tensor_values]


def _typed(array: Array, entry: DeclaredInput | None) -> Array:
    """Give elements their type that NumPy wrote as nameless bytes, as it does for bfloat16."""
    if array.dtype.kind != "V":
        return array
    wanted = None if entry is None else dtype_of(entry.element_type)
    size = array.dtype.itemsize
    if wanted is not None and not wanted.hasobject and wanted.itemsize == size:
        return array.view(wanted)
    declared = "of no declared type" if wanted is None else f"declared as {wanted}"
    raise ValueError(f"its elements are {size} nameless bytes each, and the input {declared}")


def dtype_of(element_type: str | None) -> np.dtype | None:
    """Return NumPy's type of an element type; None if there is none, or none is declared."""
    import onnx_ir as ir

    try:
        return ir.DataType[(element_type or "").upper()].numpy()
    except (KeyError, TypeError):
        return None


def read_input_shapes(written: Sequence[str], declared: Sequence[DeclaredInput]) -> Shapes:
    """Read the values of ``--input-shape``; TS703 if one is not the shape of an input.

    Each is ``NAME:1,3,224`` or ``NAME:1x3x224``; without a name for a model with one input.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    names = [entry.name for entry in declared]
    for word in written:
        name, colon, text = word.rpartition(":")
        if not colon and len(names) == 1:
            name = names[0]
        is_shape = "=" not in text  # as other options have it
        dims = parse_shape(text) if text and is_shape else ()
        sizes = tuple(dim for dim in dims if isinstance(dim, int))
        if name not in names or len(sizes) < len(dims) or not is_shape:
            raise SplitError(
                USAGE,
                tr("{word} is not the name of an input and a shape", word=repr(word)),
                tr(
                    "write NAME:1,3,224 or NAME:1x3x224, where NAME is one of {names}",
                    names=", ".join(names),
                ),
                parameter="input-shape",
            )
        shapes[name] = sizes
    return shapes
