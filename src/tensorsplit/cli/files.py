"""Files of the commands: models are read, and results written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeAlias

from tensorsplit.core.errors import UNREADABLE_MODEL, UNWRITABLE, SplitError

if TYPE_CHECKING:
    from onnx import ModelProto

Writer: TypeAlias = Callable[[IO[bytes]], object]
"""Writes the content of one file."""

PIPE = "-"


def write_files(files: Mapping[Path, Writer | bytes | str]) -> None:
    """Write files beside their targets, and rename all of them into place once all are whole.

    If one of them can't be written (TS702), none is. Missing folders are made, and removed again
    if nothing is written.
    """
    made: list[Path] = []
    drafts: dict[Path, Path] = {}
    try:
        for target, content in files.items():
            with _refusing(target):
                _make_folder(target.parent, made)
                _draft(target, content, drafts)
        for target, draft in list(drafts.items()):
            with _refusing(target):
                draft.replace(target)
            del drafts[target]
    finally:
        for draft in drafts.values():
            draft.unlink(missing_ok=True)
        for folder in reversed(made):
            with contextlib.suppress(OSError):  # not empty: it is in use
                folder.rmdir()


def _draft(target: Path, content: Writer | bytes | str, drafts: dict[Path, Path]) -> None:
    """Write the content into a file of its own beside the target, down to the disk."""
    if target.is_dir():
        raise SplitError(UNWRITABLE, f"{target} is a folder", "give the name of a file")
    with _new_file(target.parent) as file:
        drafts[target] = path = Path(file.name)
        if callable(content):
            content(file)
        else:
            file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())
    mode = target.stat().st_mode if target.exists() else 0o666 & ~_umask()
    path.chmod(mode & 0o777)


def _new_file(folder: Path) -> IO[bytes]:
    return tempfile.NamedTemporaryFile(
        prefix=".tensorsplit-", suffix=".part", dir=folder, delete=False
    )


def _make_folder(folder: Path, made: list[Path]) -> None:
    """Make a folder and those above it; add to `made` those that were missing, from the top."""
    missing: list[Path] = []
    while not folder.exists():
        missing.insert(0, folder)
        folder = folder.parent
    for path in missing:
        path.mkdir()
        made.append(path)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


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

    try:
        made: ModelProto = ModelProto.FromString(sys.stdin.buffer.read())
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
            sys.stdout.buffer.write(data)
            return
        target = Path(self.target)
        folder = Path(self.source).parent if self.source != PIPE else Path()
        brought: list[Path] = []
        moves = folder.resolve() != target.parent.resolve()
        try:
            for location in _locations(made, folder) if moves else ():
                _bring(folder / location, target.parent / location, self.copy_weights, brought)
            write_files({target: data})
        except BaseException:
            for path in brought:
                path.unlink(missing_ok=True)
            raise


def _bring(source: Path, target: Path, may_copy: bool, brought: list[Path]) -> None:
    try:
        if target.exists():
            if target.samefile(source):
                return
            raise SplitError(
                UNWRITABLE,
                f"{target} exists and holds other data than {source}",
                "write the model into another folder",
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        if may_copy:
            _copy(source, target)
        else:
            os.link(source.resolve(), target)
        brought.append(target)
    except OSError as error:
        raise SplitError(
            UNWRITABLE,
            f"cannot {'copy' if may_copy else 'link'} the weights {source} to {target}:"
            f" {error.strerror or error}",
            "write the model beside its weights, or copy them with --copy-external-data",
        ) from error


def _copy(source: Path, target: Path) -> None:
    with _new_file(target.parent) as file:
        draft = Path(file.name)
    try:
        shutil.copyfile(source, draft)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _locations(made: ModelProto, folder: Path) -> list[str]:
    """The files of external data; refused (TS504) if one lies outside the model's folder."""
    from tensorsplit.model.graph.message import tensors_outside
    from tensorsplit.model.graph.tensors import check_external

    outside = list(tensors_outside(made))
    for tensor in outside:
        check_external(tensor, folder)
    return sorted({e.value for t in outside for e in t.external_data if e.key == "location"})
