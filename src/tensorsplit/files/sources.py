"""Opening sources safely: only files are read, and what a library raises is a refusal."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple, cast
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from tensorsplit.core.errors import (
    UNREADABLE_TENSORS,
    UNWRITABLE,
    SplitError,
    fix_of,
    printable,
    show,
    show_path,
    words_of,
)
from tensorsplit.storage.paths import fix_unread, why_unread

_LONGEST_ANSWER = 100
_LONGEST_DIRECTORY = 8 << 20


class PickledError(ValueError):
    """The elements of an array are objects, which only code that is stored with them can read."""

    def __init__(self) -> None:
        super().__init__("its elements are pickled objects, which are never read")


@contextlib.contextmanager
def refusing(source: str, *, but: type[Exception] = SplitError) -> Iterator[None]:
    """Turn whatever a reader raises, but refusals and one more kind, into one (TS705)."""
    try:
        yield
        return
    except (SplitError, but):
        raise
    except Exception as error:  # noqa: BLE001 - the readers raise whatever their parsers do
        refusal = _refusal(source, error)
    raise refusal


@contextlib.contextmanager
def refusing_access(source: str) -> Iterator[None]:
    """Turn an error of the system about a path into a refusal of the source (TS705)."""
    try:
        yield
    except OSError as error:
        raise _refusal(source, error) from None


def _refusal(source: str, error: Exception) -> SplitError:
    fix = "check the URL and its server" if _kinds_of_http(error) else "give a whole file"
    problem, fix = f"{show_path(source)}: {_text_of(error)}", fix_unread(error, fix)
    if isinstance(error, FileNotFoundError):
        problem, fix = f"{show_path(source)}: there is no such file", "give the path of a file"
    if isinstance(error, PickledError):
        fix = "save it as numbers: its dtype is object"
    if isinstance(error, PermissionError):
        path = os.fsdecode(error.filename or source)
        problem = f"{show_path(path)}: {why_unread(error, path)}"
    return SplitError(UNREADABLE_TENSORS, problem, fix, parameter="source")


def _kinds_of_http(error: Exception) -> set[str]:
    """Return the kinds of an error of the library that reads HTTP; none if it has others."""
    kinds = type(error).__mro__
    return {kind.__name__ for kind in kinds if kind.__module__.partition(".")[0] == "aiohttp"}


def _text_of(error: Any) -> str:
    """Return the text of an error; of a server, its answer."""
    kinds = _kinds_of_http(error)
    if "TooManyRedirects" in kinds:
        return "its server redirects again and again"
    if "RedirectClientError" in kinds:
        return f"its server redirects to {show(str(error.args[0]))}, which can't be read"
    if "ClientResponseError" in kinds:
        message = " ".join(printable(error.message).split())[:_LONGEST_ANSWER]
        return f"its server answers {error.status} {message}"
    if "ServerTimeoutError" in kinds:
        return "its server does not answer"
    return words_of(error)


@contextlib.contextmanager
def refusing_writes(url: str) -> Iterator[None]:
    """Turn whatever storage raises into a refusal to write to it (TS702)."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - each kind of storage has its own
        problem = f"cannot write to {show_path(url)}: {words_of(error)}"
        fix = fix_of(error, "give another URL, or run it again")
        raise SplitError(UNWRITABLE, problem, fix) from None


def check_regular(path: Path) -> None:
    """Raise a ValueError for what is there and no file, as a device, which might never end."""
    if path.exists() and not path.is_file():
        raise ValueError("it is not a file")


def values_in(text: bytes) -> int:
    """Return how many values a JSON document may hold, at most, before it is parsed."""
    return 1 + sum(map(text.count, (b",", b"[", b"{")))


class _ArchiveFile:
    """A file in which a `ZipFile` finds its directory, of which no more than so much is read.

    Python reads all of it at once, and the file tells how long it is.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.is_open = False

    def read(self, size: int = -1) -> bytes:
        if size > _LONGEST_DIRECTORY and not self.is_open:
            raise ValueError(f"its directory is longer than {_LONGEST_DIRECTORY} bytes")
        return self._file.read(size)

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)


def open_archive(file: IO[bytes]) -> ZipFile:
    """Open an ``.npz`` for reading; BadZipFile, ValueError or OSError for one that can't be read.

    NumPy does not write other compressions, of which Python decodes all of a member at once.
    """
    bounded = _ArchiveFile(file)
    try:
        archive = ZipFile(cast("IO[bytes]", bounded))
    except BadZipFile as error:
        if isinstance(hidden := error.__context__, OSError):  # which it does not tell
            raise hidden from None
        raise
    bounded.is_open = True
    for each in archive.infolist():
        if each.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            archive.close()
            raise ValueError(f"{show(each.filename)} in it is not compressed as NumPy does")
    return archive


def check_descriptors(count: int) -> None:
    """Raise the system's error where no more than so many files can be opened."""
    with contextlib.ExitStack() as closing:
        for _ in range(count):
            closing.callback(os.close, os.open(os.devnull, os.O_RDONLY))


class FileState(NamedTuple):
    """The state of a file: its size, and when it was written.

    Not which file it was: some file systems give a file another number each time.
    """

    size: int
    modified: int

    @classmethod
    def of(cls, found: os.stat_result) -> FileState:
        """Return the state of a file that the system described."""
        return cls(found.st_size, found.st_mtime_ns)


def check_unchanged(states: Mapping[Path, FileState]) -> None:
    """Refuse (TS705) files that were changed or replaced since they were opened.

    What was read of them may be part old and part new.
    """
    for path, state in states.items():
        with refusing_access(str(path)):
            found = FileState.of(path.stat())
        if found != state:
            problem = f"{show_path(str(path))} was changed or replaced while it was read"
            fix = "split it when nobody writes to it"
            raise SplitError(UNREADABLE_TENSORS, problem, fix, parameter="source")


def local_path(url: str) -> Path | None:
    """Return the path that a URL stands for, or that it is; None if it is not a local one."""
    for scheme in ("file://", "local://"):
        if url.startswith(scheme):
            return Path(url.removeprefix(scheme))
    return None if "://" in url else Path(url)
