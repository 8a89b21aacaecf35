"""External data of a tensor: found inside the model's folder, and read whole or not at all."""

from __future__ import annotations

from pathlib import Path, PureWindowsPath

from onnx import TensorProto

from tensorsplit.core.errors import EXTERNAL_DATA, SplitError
from tensorsplit.model.graph.naming import short_name


def read_external(name: str, tensor: TensorProto, folder: Path | None, size: int) -> bytes:
    """The external data of a tensor.

    Args:
        name: What to call the tensor.
        tensor: The tensor.
        folder: The model's folder; None if the model came without a place.
        size: How many bytes the tensor takes.

    Raises:
        SplitError: TS504 as for `find_external`, or if the file can't be read.
    """
    path, offset = find_external(name, tensor, folder, size)
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(size)
    except OSError as error:
        raise _unusable(name, f"{path.name!r} can't be read ({error.strerror})") from error
    if len(data) < size:
        raise _unusable(name, f"{path.name!r} was cut short while it was read")
    return data


def find_external(
    name: str, tensor: TensorProto, folder: Path | None, size: int
) -> tuple[Path, int]:
    """The file of a tensor's external data, and where in it the data begins.

    Args:
        name: What to call the tensor.
        tensor: The tensor.
        folder: The model's folder; None if the model came without a place.
        size: How many bytes the tensor takes.

    Raises:
        SplitError: TS504 for data that lies outside the folder, is missing, or has not the
            tensor's size.
    """
    entries = {entry.key: entry.value for entry in tensor.external_data}
    path, available = _locate(name, entries.get("location", ""), folder)
    offset = _number(name, "offset", entries.get("offset", "0"))
    length = _number(name, "length", entries.get("length", str(size)))
    if length != size:
        raise _unusable(name, f"its length is {length} bytes, but the tensor takes {size}")
    if offset + size > available:
        raise _unusable(
            name,
            f"{path.name!r} has {available} bytes, but bytes {offset} to {offset + size} are named",
        )
    return path, offset


def _number(name: str, key: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise _unusable(name, f"its {key} is {text[:40]!r}, which is no number of bytes")
    return int(text)


def _locate(name: str, location: str, folder: Path | None) -> tuple[Path, int]:
    """The file of a location, which lies in the folder even after links are followed; its size."""
    if folder is None:
        raise _unusable(name, "the model has no folder, so its data can't be found")
    shown = repr(location[:80])
    windows = PureWindowsPath(location)
    if not location or Path(location).is_absolute() or windows.drive or windows.root:
        raise _unusable(name, f"its location is {shown}, not a path relative to the model")
    try:
        root = folder.resolve()
        path = (root / location).resolve()
        if not path.is_relative_to(root):
            raise _unusable(name, f"its location {shown} leads out of the model's folder")
        if not path.is_file():
            raise _unusable(name, f"there is no file {shown} in the model's folder")
        return path, path.stat().st_size
    except (OSError, RuntimeError, ValueError) as error:
        if isinstance(error, SplitError):
            raise
        raise _unusable(name, f"its location is {shown}, which is no usable path") from error


def _unusable(name: str, problem: str) -> SplitError:
    return SplitError(
        EXTERNAL_DATA,
        problem,
        "keep external data in the model's folder, whole, and name it relative to the model",
        parameter=short_name(name) or "tensor",
    )
