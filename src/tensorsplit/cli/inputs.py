"""Reading what a model is fed from files: .npy, .npz, and ONNX tensors and sequences (.pb)."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from tensorsplit.core.errors import UNREADABLE_ARRAY, USAGE, SplitError

if TYPE_CHECKING:
    from onnx import SequenceProto, TensorProto

    from tensorsplit.model.graph.reading import DeclaredInput

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

_T = TypeVar("_T")
_HEADER = 4096
_MAGIC = b"\x93NUMPY"
_FLOAT8 = (b"'descr': '<f1'", b"'descr': '|V1'")


def read_feeds(
    written: Sequence[str], declared: Sequence[DeclaredInput]
) -> dict[str, Array | list[Array]]:
    """Read everything that is given with ``--input``.

    Args:
        written: Each ``NAME=FILE``, or ``FILE`` alone: an ``.npz`` that holds inputs by name, or
            the one input of a model that has no other. A sequence is given as a ``.pb``, as the
            arrays of an ``.npz``, or by naming it once for each element.
        declared: The inputs of the model.

    Returns:
        The values by name; whether they fit is for whoever runs the model to check.

    Raises:
        SplitError: TS701 for a file that is no readable array, TS703 for a name given twice.
    """
    entries = {entry.name: entry for entry in declared}
    values: dict[str, Array | list[Array]] = {}
    for word in written:
        name, path = _name_and_path(word, declared)
        if name is None:
            for key, array in read_archive(path).items():
                _add(values, key, _typed(array, entries.get(key), path), entries.get(key))
        else:
            _add(values, name, _read(path, name, entries.get(name)), entries.get(name))
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


def _add(
    values: dict[str, Array | list[Array]],
    name: str,
    value: Array | list[Array],
    entry: DeclaredInput | None,
) -> None:
    """Keep a value; a sequence grows each time it is named."""
    if entry is not None and entry.kind.endswith("sequence"):
        before = values.get(name, [])
        added = value if isinstance(value, list) else [value]
        values[name] = [*before, *added]
    elif name in values:
        raise SplitError(USAGE, "it is given twice", "give it once", parameter=name)
    else:
        values[name] = value


def _read(path: Path, name: str, entry: DeclaredInput | None) -> Array | list[Array]:
    is_sequence = entry is not None and entry.kind.endswith("sequence")
    if path.suffix == ".pb":
        return read_sequence(path) if is_sequence else read_tensor(path)
    if path.suffix != ".npz":
        return _typed(read_array(path), entry, path)
    arrays = [_typed(array, entry, path) for array in read_archive(path).values()]
    if is_sequence:
        return arrays
    if len(arrays) == 1:
        return arrays[0]
    raise SplitError(
        UNREADABLE_ARRAY,
        f"{path} holds {len(arrays)} arrays",
        f"give one array for {name}, or the .npz alone to feed all its names",
        parameter=name,
    )


def read_array(path: Path) -> Array:
    """Read an ``.npy`` file; nothing in it is ever unpickled.

    Raises:
        SplitError: TS701.
    """

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


def read_archive(path: Path) -> dict[str, Array]:
    """Read the arrays of an ``.npz`` file by name, in the order of the file.

    Raises:
        SplitError: TS701.
    """

    def load() -> dict[str, object]:
        if not zipfile.is_zipfile(path):
            raise ValueError("it is no .npz file, or cut short")
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}

    return {name: _array(value, path) for name, value in _guarded(path, load).items()}


def read_tensor(path: Path) -> Array:
    """Read a file that holds an ONNX ``TensorProto``.

    Raises:
        SplitError: TS701.
    """
    from onnx import TensorProto

    return _tensor(_message(path, TensorProto), path)


def read_sequence(path: Path) -> list[Array]:
    """Read a file that holds an ONNX ``SequenceProto`` of tensors.

    Raises:
        SplitError: TS701.
    """
    from onnx import SequenceProto

    message: SequenceProto = _message(path, SequenceProto)
    if message.elem_type not in (SequenceProto.UNDEFINED, SequenceProto.TENSOR):
        raise _unreadable(path, "its elements are no tensors")
    return [_tensor(tensor, path) for tensor in message.tensor_values]


def _message(path: Path, kind: Callable[[], _T]) -> _T:
    def parse() -> _T:
        message: Any = kind()
        message.ParseFromString(path.read_bytes())
        return message  # type: ignore[no-any-return]

    return _guarded(path, parse)


def _tensor(message: TensorProto, path: Path) -> Array:
    from tensorsplit.model.graph.tensors import dense_constant

    try:
        return dense_constant(message, None).value
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

    names = TensorProto.DataType.keys()
    if element_type is None or element_type.upper() not in names:
        return None
    return helper.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(element_type.upper()))


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


def wanted(declared: Iterable[DeclaredInput]) -> str:
    """What a model wants, in one line."""
    return "; ".join(
        f"{entry.name}: {entry}{' (has a default)' if entry.has_default else ''}"
        for entry in declared
    )
