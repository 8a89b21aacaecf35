"""Outputs of a model: printed for a reader, or written to files.

NumPy's own formats have no names for bfloat16, float8, 4-bit and 2-bit types, and can't hold every
string without pickling; outputs of those types are written as ONNX tensors (.pb), or refused if
the format was asked for.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tensorsplit.arrays.numpy import element_type
from tensorsplit.cli.files import Writer
from tensorsplit.core.errors import UNWRITABLE, SplitError
from tensorsplit.pages.layout import printable

if TYPE_CHECKING:
    from onnx import TensorProto

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

FORMATS = ("npy", "npz", "pb")
ARCHIVE = "outputs.npz"

_WHOLE = 64
_FIRST = 6
_LAST = 3
_MOST_ELEMENTS = 12
_LONGEST_NAME = 120
_LONGEST_LINE = 400


def describe(outputs: Mapping[str, Any]) -> Iterator[str]:
    """Every output as lines of text: name, element type, shape and values."""
    for name, value in outputs.items():
        yield from _describe(printable(name), value)


def _describe(name: str, value: Any) -> Iterator[str]:
    if value is None:
        yield f"{name}: empty optional"
    elif isinstance(value, list):
        yield f"{name}: sequence of {len(value)}"
        for place, item in enumerate(value[:_MOST_ELEMENTS]):
            yield from _describe(f"{name}[{place}]", item)
        if len(value) > _MOST_ELEMENTS:
            yield f"... and {len(value) - _MOST_ELEMENTS} more"
    elif isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        yield f"{name}: {element_type(array)} {array.shape}"
        yield from (printable(line)[:_LONGEST_LINE] for line in _values(array).splitlines())
    else:
        yield f"{name}: {printable(repr(value))[:_LONGEST_LINE]}"


def _values(array: Array) -> str:
    """All elements of a small array, else the first and last ones in their order."""
    if array.size <= _WHOLE:
        return np.array2string(array, max_line_width=78, separator=", ", floatmode="unique")
    ends = (*range(_FIRST), *range(array.size - _LAST, array.size))
    shown = np.empty(len(ends), array.dtype)
    for place, index in enumerate(ends):
        shown[place] = array.flat[index]
    texts = [
        np.array2string(item, floatmode="unique") if item.dtype != object else repr(item[()])
        for item in map(np.asarray, shown)
    ]
    return f"[{', '.join(texts[:_FIRST])}, ..., {', '.join(texts[_FIRST:])}] (in order)"


def plan_files(
    outputs: Mapping[str, Any], folder: Path, style: str | None
) -> tuple[dict[Path, Writer], list[tuple[str, Path]]]:
    """Decide what is written where, and check that it can be.

    Args:
        outputs: The outputs by name: arrays, lists of them for sequences, None for nothing.
        folder: Where the files go. They are called as the outputs, with everything that could
            mean another folder replaced; the elements of a sequence are ``name_0``, ``name_1``.
        style: ``npy``, ``npz`` (one archive), ``pb``, or None for ``.npy`` with ``.pb`` for what
            it can't hold.

    Returns:
        What writes each file, and which output each file holds.

    Raises:
        SplitError: TS702 for an output that the format can't hold.
    """
    names = _Names()
    files: dict[Path, Writer] = {}
    places: list[tuple[str, Path]] = []
    members: dict[str, Array] = {}
    for label, name, value in _pieces(outputs, whole_sequences=style == "pb"):
        stored = None if isinstance(value, list) else _storable(value)
        if stored is None and style in ("npy", "npz"):
            raise _cannot_hold(label, value, style)
        if style == "npz" and stored is not None:
            members[names.new(name)] = stored
            places.append((label, folder / ARCHIVE))
            continue
        suffix = "pb" if stored is None or style == "pb" else "npy"
        path = folder / f"{names.new(name)}.{suffix}"
        files[path] = _npy_writer(stored) if suffix == "npy" else _pb_writer(label, value)
        places.append((label, path))
    if style == "npz":
        files[folder / ARCHIVE] = _archive_writer(members)
    return files, places


def _pieces(outputs: Mapping[str, Any], *, whole_sequences: bool) -> Iterator[tuple[str, str, Any]]:
    """What goes into one file each: how it is called in messages and as a file, and the value."""
    for name, value in outputs.items():
        if isinstance(value, list) and not whole_sequences:
            for place, item in enumerate(value):
                yield f"{name}[{place}]", f"{name}_{place}", np.asarray(item)
        elif isinstance(value, (list, np.ndarray, np.generic)):
            yield name, name, value if isinstance(value, list) else np.asarray(value)
        elif value is not None:
            raise SplitError(
                UNWRITABLE,
                f"the output is a {type(value).__name__}",
                "only tensors and sequences can be written",
                parameter=name,
            )


class _Names:
    """Names of files: safe ones, each once, also where case does not count."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def new(self, name: str) -> str:
        """A name for a file that stays in its folder on every system."""
        safe = re.sub(r"[^\w.+-]", "_", name)
        safe = re.sub(r"^[.-]+", "_", safe) or "output"
        safe = safe.encode()[:_LONGEST_NAME].decode(errors="ignore")
        found, number = safe, 1
        while found.casefold() in self._taken:
            number += 1
            found = f"{safe}-{number}"
        self._taken.add(found.casefold())
        return found


def _storable(array: Array) -> Array | None:
    """The array as NumPy's own formats can hold it without pickling; None if they can't."""
    if array.dtype.kind in "OT":
        items = array.ravel().tolist()
        for text, kind in ((str, "U"), (bytes, "S")):
            if all(type(item) is text and item[-1:] not in ("\0", b"\0") for item in items):
                return array.astype(object).astype(kind)
        return None
    return array if array.dtype.type.__module__ == "numpy" else None


def _npy_writer(array: Array | None) -> Writer:
    return lambda file: np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)


def _archive_writer(members: Mapping[str, Array]) -> Writer:
    def write(file: IO[bytes]) -> None:
        with zipfile.ZipFile(file, "w", allowZip64=True) as archive:
            for name, array in members.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)

    return write


def _pb_writer(name: str, value: Array | list[Array]) -> Writer:
    from onnx import SequenceProto

    try:
        if isinstance(value, list):
            tensors = [_message(name, item) for item in value]
            message = SequenceProto(
                name=name, elem_type=SequenceProto.TENSOR, tensor_values=tensors
            )
            content = message.SerializeToString()
        else:
            content = _message(name, value).SerializeToString()
    except Exception as error:  # noqa: BLE001 - protobuf and onnx raise many kinds, one per type
        raise SplitError(
            UNWRITABLE, f"it is no tensor that ONNX can hold ({error})", parameter=name
        ) from None
    return lambda file: file.write(content)


def _message(name: str, array: Array) -> TensorProto:
    from onnx import numpy_helper

    if array.dtype.kind in "UST":
        array = array.astype(object)
    return numpy_helper.from_array(np.asarray(array), name)


def _cannot_hold(label: str, value: Array | list[Array], style: str) -> SplitError:
    kind = element_type(value) if isinstance(value, np.ndarray) else "sequence"
    return SplitError(
        UNWRITABLE,
        f"an .{style} file can't hold its element type {kind}",
        "use --format pb, or no --format, which writes .pb where it has to",
        parameter=label,
    )
