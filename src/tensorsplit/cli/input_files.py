"""What a model is fed: files (.npy, .npz, ONNX tensors and sequences as .pb), or random values."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click
import numpy as np

from tensorsplit.cli.parsing import parse_shape
from tensorsplit.cli.screen import Command
from tensorsplit.core.errors import UNREADABLE_ARRAY, USAGE, SplitError

if TYPE_CHECKING:
    from onnx import TensorProto

    from tensorsplit.model.feeds import DeclaredInput

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Shapes: TypeAlias = "Mapping[str, tuple[int, ...]]"

OPEN_DIMENSION = 7
"""What a dimension is that neither the model nor ``--input-shape`` fixes."""

INPUT_SHAPE_OPTION = click.option(
    "--input-shape",
    "shapes",
    metavar="NAME:SHAPE",
    multiple=True,
    help="Give an input a shape, such as x:1,3,224,224 or x:1x3x224x224; may be repeated.",
)

_T = TypeVar("_T")
_HEADER = 4096
_MAGIC = b"\x93NUMPY"
_FLOAT8 = (b"'descr': '<f1'", b"'descr': '|V1'")
_SEQUENCE_LENGTH = 3
_LARGEST = 100


def input_option(text: str) -> Callable[[Command], Command]:
    """The option ``--input``, passed on as `written`."""
    return click.option("--input", "-i", "written", metavar="NAME=FILE", multiple=True, help=text)


def read_feeds(
    written: Sequence[str], declared: Sequence[DeclaredInput]
) -> dict[str, Array | list[Array]]:
    """Read everything that is given with ``--input``, by name, not yet checked.

    Each is ``NAME=FILE``, or ``FILE`` alone: an ``.npz`` that holds inputs by name, or the only
    input that a model needs. A sequence is given as a ``.pb``, as the arrays of an ``.npz``, or by
    naming it once for each element. TS701 for a file that is no readable array, TS703 for a name
    given twice.
    """
    entries = {entry.name: entry for entry in declared}
    values: dict[str, Array | list[Array]] = {}
    for word in written:
        name, path = _name_and_path(word, declared)
        if name is None:
            found: Mapping[str, Array | list[Array]] = {
                key: _typed(array, entries.get(key), path)
                for key, array in _read_archive(path).items()
            }
        else:
            found = {name: _read(path, name, entries.get(name))}
        for key, value in found.items():
            if _is_sequence(entries.get(key)):
                added = value if isinstance(value, list) else [value]
                values[key] = [*values.get(key, []), *added]
            elif key in values:
                raise SplitError(USAGE, "it is given twice", "give it once", parameter=key)
            else:
                values[key] = value
    return values


def _name_and_path(word: str, declared: Sequence[DeclaredInput]) -> tuple[str | None, Path]:
    """The input's name and the file; the name may hold ``=``, and is None for an archive."""
    for entry in declared:
        if word.startswith(f"{entry.name}="):
            return entry.name, Path(word.removeprefix(f"{entry.name}="))
    name, equals, file = word.partition("=")
    if equals and not Path(word).exists():
        return name, Path(file)
    if Path(word).suffix == ".npz":
        return None, Path(word)
    needed = [entry for entry in declared if not entry.has_default] or list(declared)
    if len(needed) == 1:
        return needed[0].name, Path(word)
    raise SplitError(
        USAGE,
        f"{word} names no input of the model",
        f"write NAME={word}, where NAME is one of"
        f" {', '.join(entry.name for entry in declared) or 'none'}",
        parameter="input",
    )


def _is_sequence(entry: DeclaredInput | None) -> bool:
    return entry is not None and entry.kind.endswith("sequence")


def _read(path: Path, name: str, entry: DeclaredInput | None) -> Array | list[Array]:
    if path.suffix == ".pb":
        return _read_message(path, is_sequence=_is_sequence(entry))
    if path.suffix != ".npz":
        return _typed(_read_array(path), entry, path)
    arrays = [_typed(array, entry, path) for array in _read_archive(path).values()]
    if _is_sequence(entry):
        return arrays
    if len(arrays) == 1:
        return arrays[0]
    raise SplitError(
        UNREADABLE_ARRAY,
        f"{path} holds {len(arrays)} arrays",
        f"give one array for {name}, or the .npz alone to feed all its names",
        parameter=name,
    )


def _read_array(path: Path) -> Array:
    """Read an ``.npy`` file; nothing in it is ever unpickled."""

    def load() -> object:
        with path.open("rb") as file:
            head = file.read(_HEADER)
            if not head.startswith(_MAGIC):
                raise ValueError("it is no .npy file")
            if _FLOAT8[0] in head:  # what NumPy writes for float8_e5m2, and can't read
                patched = head.replace(*_FLOAT8, 1) + file.read()
                return np.load(io.BytesIO(patched), allow_pickle=False)
        return np.load(path, allow_pickle=False)

    return _array(_guarded(path, load), path)


def _read_archive(path: Path) -> dict[str, Array]:
    """Read the arrays of an ``.npz`` file by name, in the order of the file."""

    def load() -> dict[str, object]:
        if not zipfile.is_zipfile(path):
            raise ValueError("it is no .npz file, or is cut short")
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}

    return {name: _array(value, path) for name, value in _guarded(path, load).items()}


def _read_message(path: Path, *, is_sequence: bool) -> Array | list[Array]:
    from onnx import SequenceProto, TensorProto

    if not is_sequence:
        return _tensor(_guarded(path, lambda: TensorProto.FromString(path.read_bytes())), path)
    message = _guarded(path, lambda: SequenceProto.FromString(path.read_bytes()))
    if message.elem_type not in (SequenceProto.UNDEFINED, SequenceProto.TENSOR):
        raise _unreadable(path, "its elements are no tensors")
    return [_tensor(tensor, path) for tensor in message.tensor_values]


def _tensor(message: TensorProto, path: Path) -> Array:
    from tensorsplit.model.graph.tensors import array_of

    try:
        return array_of(message, None)
    except SplitError as error:
        raise _unreadable(path, error.problem) from None


def _array(value: object, path: Path) -> Array:
    if not isinstance(value, np.ndarray):
        raise _unreadable(path, "it holds something else than an array")
    if value.dtype.names is not None or value.dtype.kind in "mM":
        raise _unreadable(path, f"its element type is {value.dtype}, which no model takes")
    return value


def _typed(array: Array, entry: DeclaredInput | None, path: Path) -> Array:
    """Give elements their type that NumPy wrote as nameless bytes, as it does for bfloat16."""
    if array.dtype.kind != "V":
        return array
    wanted = None if entry is None else _dtype(entry.element_type)
    if wanted is not None and wanted.itemsize == array.dtype.itemsize:
        return array.view(wanted)
    declared = "of no declared type" if wanted is None else f"declared as {wanted}"
    raise _unreadable(
        path,
        f"its elements are {array.dtype.itemsize} nameless bytes each, and the input {declared}",
    )


def _dtype(element_type: str | None) -> np.dtype[Any] | None:
    """NumPy's type of an element type; None where there is none, or none is declared."""
    from onnx import TensorProto, helper

    try:
        number = TensorProto.DataType.Value((element_type or "").upper())
        return helper.tensor_dtype_to_np_dtype(number)
    except (KeyError, ValueError):
        return None


def _guarded(path: Path, read: Callable[[], _T]) -> _T:
    """Read, and refuse with one kind whatever goes wrong."""
    try:
        if path.exists() and not path.is_file():  # a device might never end
            raise _unreadable(path, "it is no file")
        return read()
    except SplitError:
        raise
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None
    except Exception as error:  # noqa: BLE001 - NumPy and protobuf raise whatever their parsers do
        raise _unreadable(path, str(error) or type(error).__name__) from None


def _unreadable(path: Path, problem: str) -> SplitError:
    return SplitError(
        UNREADABLE_ARRAY,
        f"{path}: {problem}",
        "give a whole .npy, .npz, or .pb (ONNX tensor or sequence) file",
        parameter="input",
    )


def read_input_shapes(written: Sequence[str], declared: Sequence[DeclaredInput]) -> Shapes:
    """Read everything that is given with ``--input-shape``; TS703 for what is no shape of an input.

    Each is ``NAME:1,3,224`` or ``NAME:1x3x224``; without a name for a model with one input.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    names = [entry.name for entry in declared]
    for word in written:
        name, colon, text = word.rpartition(":")
        if not colon and len(names) == 1:
            name = names[0]
        dims = parse_shape(text) if text else ()
        sizes = tuple(dim for dim in dims if isinstance(dim, int))
        if name not in names or len(sizes) < len(dims):
            raise SplitError(
                USAGE,
                f"{word!r} gives no input a shape",
                f"write NAME:1,3,224 or NAME:1x3x224, where NAME is one of {', '.join(names)}",
                parameter="input-shape",
            )
        shapes[name] = sizes
    return shapes


def random_feeds(
    declared: Sequence[DeclaredInput], given: Mapping[str, Any], shapes: Shapes
) -> dict[str, Any]:
    """What is given, and random values for every other input that has no default.

    `shapes` are for inputs whose declared shape is open. The values are small whole numbers, which
    every engine holds exactly in every type.
    """
    rng = np.random.default_rng(0)
    named: dict[str | int | None, int] = {}
    for entry in declared:
        fixed = shapes.get(entry.name, getattr(given.get(entry.name), "shape", ()))
        named.update(zip(entry.shape or (), fixed, strict=False))
    feeds = dict(given)
    for entry in declared:
        if entry.name in feeds or (entry.has_default and entry.name not in shapes):
            continue
        declared_shape = tuple(
            dim if isinstance(dim, int) else named.get(dim or "", OPEN_DIMENSION)
            for dim in entry.shape or ()
        )
        shape = shapes.get(entry.name, declared_shape)
        if entry.kind.startswith("optional"):
            feeds[entry.name] = None
        elif entry.kind == "sequence":
            feeds[entry.name] = [_random(rng, entry, shape) for _ in range(_SEQUENCE_LENGTH)]
        else:
            feeds[entry.name] = _random(rng, entry, shape)
    return feeds


def _random(rng: np.random.Generator, entry: DeclaredInput, shape: tuple[int, ...]) -> Array:
    numbers = rng.integers(1, _LARGEST, shape)
    name = entry.element_type or "float"
    if name == "string":
        texts = [f"s{number}" for number in numbers.reshape(-1).tolist()]
        return np.array(texts, object).reshape(shape)
    dtype = _dtype(name)
    if dtype == np.bool_:
        return np.asarray(numbers % 2 == 0)
    return np.asarray(numbers).astype(dtype)
