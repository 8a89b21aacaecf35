"""Files of the commands: models are read, and results written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

import numpy as np

from tensorsplit.core.errors import UNREADABLE_MODEL, UNWRITABLE, SplitError

if TYPE_CHECKING:
    from onnx import ModelProto

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Writer: TypeAlias = Callable[[IO[bytes]], object]
"""Writes the content of one file."""

PIPE = "-"


def write_files(files: Mapping[Path, Writer | bytes | str]) -> None:
    """Write files beside their targets, and rename all of them into place once all are whole.

    If one of them can't be written (TS702), none is. Missing folders are made, and removed again
    if nothing is written.
    """
    drafts: dict[Path, Path] = {}
    with contextlib.ExitStack() as cleaning:
        for target, content in files.items():
            with _refusing(target):
                for folder in reversed(target.parents):
                    if not folder.exists():
                        folder.mkdir()
                        cleaning.callback(_remove_if_empty, folder)
                if not _is_replaceable(target):
                    what = "a folder" if target.is_dir() else "no regular file"
                    raise SplitError(UNWRITABLE, f"{target} is {what}", "give the name of a file")
                draft = drafts[target] = target.parent / f".tensorsplit-{uuid4().hex}.part"
                mode = target.stat().st_mode & 0o777 if target.exists() else 0o666
                draft.touch(mode | 0o200, exist_ok=False)  # as private as what it replaces
                cleaning.callback(draft.unlink, missing_ok=True)
                _fill(draft, content)
                if target.exists():
                    draft.chmod(mode)
        for target, draft in drafts.items():
            with _refusing(target):
                draft.replace(target)


def _is_replaceable(target: Path) -> bool:
    """Whether it is a file or nothing; a device, a pipe or a link such as /dev/stdout stays."""
    if target.is_symlink() and target.readlink().is_relative_to("/proc"):
        return False
    return target.is_file() or not target.exists()


def _fill(draft: Path, content: Writer | bytes | str) -> None:
    """Write the content, down to the disk."""
    with draft.open("wb") as file:
        if callable(content):
            content(file)
        else:
            file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # it is in use
        folder.rmdir()


@contextlib.contextmanager
def _refusing(target: Path) -> Iterator[None]:
    """Turn what the file system raises into a refusal."""
    try:
        yield
    except OSError as error:
        raise SplitError(
            UNWRITABLE,
            f"cannot write to {target}: {error.strerror or error}; nothing was written",
            "give another path",
        ) from None


def source_of(model: str) -> str | ModelProto:
    """What is meant by MODEL: the path, or for ``-`` the model on standard input (else TS501)."""
    if model != PIPE:
        return model
    from google.protobuf import message  # type: ignore[import-untyped]  # ships no types
    from onnx import ModelProto

    data = b"" if sys.stdin is None else sys.stdin.buffer.read()
    try:
        made: ModelProto = ModelProto.FromString(data)
    except message.DecodeError as error:
        raise SplitError(
            UNREADABLE_MODEL,
            f"standard input is no ONNX model ({error})",
            "pipe a whole .onnx file into it",
            parameter="model",
        ) from error
    return made


@dataclass(frozen=True, slots=True)
class Output:
    """Where a command writes its model."""

    source: str  # the path that it is read from, or -
    target: str | None  # the path that it is written to, or -; None for a dry run
    copy_weights: bool

    @property
    def has_report(self) -> bool:
        """Whether standard output is free for a report, as it holds no model."""
        return self.target != PIPE

    def write(self, made: ModelProto) -> None:
        """Write the model whole or not at all, and its weights into the folder of the result.

        Files of external data are copied or else hard-linked, which takes no space; TS702 if that
        fails, and TS504 if one lies outside the model's folder.
        """
        if self.target is None:
            return
        data = made.SerializeToString()
        if self.target == PIPE:
            if sys.stdout is not None:  # its reader is gone already
                sys.stdout.buffer.write(data)
            return
        target = Path(self.target)
        folder = Path(self.source).parent if self.source != PIPE else Path()
        moves = folder.resolve() != target.parent.resolve()
        with contextlib.ExitStack() as undoing:
            for location in _locations(made, folder) if moves else ():
                if _bring(folder / location, target.parent / location, self.copy_weights):
                    undoing.callback((target.parent / location).unlink, missing_ok=True)
            write_files({target: data})
            undoing.pop_all()


def _bring(source: Path, target: Path, may_copy: bool) -> bool:
    """Copy or link a file, unless it is there already; whether it was brought."""
    try:
        if target.exists():
            if target.samefile(source):
                return False
            raise SplitError(
                UNWRITABLE,
                f"{target} exists and holds other data than {source}",
                "write the model into another folder",
            )
        if may_copy:
            write_files({target: lambda file: shutil.copyfile(source, file.name)})
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(source.resolve(), target)
    except OSError as error:
        raise SplitError(
            UNWRITABLE,
            f"cannot link the weights {source} to {target}: {error.strerror or error}",
            "write the model beside its weights, or copy them with --copy-external-data",
        ) from error
    return True


def _locations(made: ModelProto, folder: Path) -> list[str]:
    """The files of external data; refused (TS504) if one lies outside the model's folder."""
    from tensorsplit.model.graph.message import tensors_outside
    from tensorsplit.model.graph.tensors import check_external

    outside = list(tensors_outside(made))
    for tensor in outside:
        check_external(tensor, folder)
    return sorted({e.value for t in outside for e in t.external_data if e.key == "location"})


def storable(array: Array) -> Array | None:
    """The array as NumPy's own formats can hold it without pickling; None if they can't."""
    if array.dtype.kind in "OT":
        items = array.ravel().tolist()
        for text, kind in ((str, "U"), (bytes, "S")):
            if all(type(item) is text and item[-1:] not in ("\0", b"\0") for item in items):
                return array.astype(object).astype(kind)
        return None
    return array if array.dtype.type.__module__ == "numpy" else None


def write_array(array: Array, file: IO[bytes]) -> None:
    """Write an ``.npy``."""
    np.lib.format.write_array(file, array, allow_pickle=False)


def write_archive(members: Mapping[str, Array], file: IO[bytes]) -> None:
    """An ``.npz``; `numpy.savez` can't have a member called ``file``."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in members.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                write_array(array, member)
