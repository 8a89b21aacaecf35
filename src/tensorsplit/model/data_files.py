"""Files of data beside a model: external data of ONNX, and the ``.bin`` of an OpenVINO IR."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PureWindowsPath

from tensorsplit.core.errors import EXTERNAL_DATA, SplitError, show_path, words_of
from tensorsplit.storage.paths import fix_unread, why_unread

_PIECE = 1 << 20
_FIX = "keep external data in the model's folder, whole, and name it relative to the model"


def find_data(location: str, folder: Path | None, parameter: str | None = None) -> tuple[Path, int]:
    """Return the file at a location that a model names, and its size.

    Raises:
        SplitError: TS504, about the parameter, unless it is a file that lies in the model's folder
            after links are resolved.
    """
    if folder is None:
        raise unusable("the model has no folder, so its data can't be found", parameter)
    shown = show_path(location)
    windows = PureWindowsPath(location)
    if not location or Path(location).is_absolute() or windows.drive or windows.root:
        raise unusable(f"its location is {shown}, not a path relative to the model", parameter)
    try:
        root = folder.resolve()
        path = (root / location).resolve()
        if not path.is_relative_to(root):
            raise unusable(f"its location {shown} leads out of the model's folder", parameter)
        if not path.is_file():
            raise unusable(f"there is no file {shown} in the model's folder", parameter)
        return path, path.stat().st_size
    except (OSError, RuntimeError, ValueError) as error:
        if isinstance(error, SplitError):
            raise
        problem = f"its location is {shown}, which can't be looked up ({words_of(error)})"
        raise unusable(problem, parameter, error) from error


def read_data(path: Path, offset: int, size: int, parameter: str | None = None) -> bytes:
    """Return bytes of a file that `find_data` found; TS504 if they are no longer there."""
    with _readable(path, parameter), path.open("rb") as file:
        file.seek(offset)
        data = file.read(size)
    if len(data) < size:
        raise unusable(f"{path.name!r} was cut short while it was read", parameter)
    return data


def pieces_of(path: Path) -> Iterator[bytes]:
    """Yield all bytes of a file in pieces; TS504 if they can't be read."""
    with _readable(path), path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


@contextmanager
def _readable(path: Path, parameter: str | None = None) -> Iterator[None]:
    """Turn an error that the system raises about a file into a refusal."""
    try:
        yield
    except OSError as error:
        problem = f"{path.name!r} can't be read ({why_unread(error, str(path))})"
        raise unusable(problem, parameter, error) from error


def unusable(
    problem: str, parameter: str | None = None, error: Exception | None = None
) -> SplitError:
    """Return the refusal of data that can't be used (TS504), perhaps for an error of the system."""
    fix = _FIX if error is None else fix_unread(error, _FIX)
    return SplitError(EXTERNAL_DATA, problem, fix, parameter=parameter)
