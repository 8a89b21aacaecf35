"""Output files: which of them may be written, and writing them whole or not at all.

What is not whole yet is in a draft beside its target; see `tensorsplit.storage.drafts`.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import filecmp
import os
import shutil
import stat
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, TypeAlias

from tensorsplit.core.errors import fix_of
from tensorsplit.storage.drafts import drafts_in, locked
from tensorsplit.storage.paths import (
    ELSEWHERE,
    in_real_folder,
    place_of,
    real_path,
    status_of,
    unwritable,
)
from tensorsplit.storage.syncing import sync_folder, sync_folders

Writer: TypeAlias = Callable[[IO[bytes]], object]
"""Writes the content of one file."""

_NOTE = "user.tensorsplit"
_BINARY = getattr(os, "O_BINARY", 0)  # for Windows


@dataclass(frozen=True, slots=True)
class Brought:
    """A file whose content is that of another one: a hard link to it, or else a copy.

    A file that is there already is never replaced by it.
    """

    source: Path
    is_copy: bool


Content: TypeAlias = "Writer | bytes | str | Brought"


@dataclass
class Outputs:
    """The outputs of a command.

    An output is refused (TS702) if it is there and not a regular file, if it is a file that is
    read, by whatever name, or if its folder is missing or can't be written. One rule says which
    file may be replaced: with `overwrite` any, and otherwise only one that the same writer wrote
    and nobody changed since. That is noted in an attribute of the file, which only Linux has;
    elsewhere no file is known to be the writer's own.

    Attributes:
        files: The files that are known beforehand, for `check`.
        folders: Folders that are made if they are missing, into which files are written.
        reads: The files that are read.
        replaceable: The one of these that may be replaced if an output is called as it is.
        create_dirs: Whether missing folders are made on the way to an output.
        overwrite: Whether an output may be there already.
        writer: The command that writes.
        written: What was written so far, and is whole.
    """

    files: list[Path] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    reads: list[Path] = field(default_factory=list)
    replaceable: Path | None = None
    create_dirs: bool = False
    overwrite: bool = False
    writer: str = ""
    written: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Refuse (TS702) outputs that are known beforehand and may not be written."""
        for folder in self.folders:
            with _refusing(folder):
                if (found := status_of(folder)) is not None and not stat.S_ISDIR(found.st_mode):
                    raise unwritable(f"{folder} is not a folder", "give the name of a folder")
                self._check_folder(real_path(folder))
        self._places(self.files)

    def write(self, files: Mapping[Path, Content]) -> None:
        """Write files beside their targets, and rename all of them into place once all are whole.

        If one of them can't be written (TS702), none is. A link is followed, and stays. What
        replaces a file has its owner, mode and extended attributes, as far as that is permitted.
        """
        brought = [target for target, content in files.items() if isinstance(content, Brought)]
        places = self._places(files.keys(), brought)
        with contextlib.ExitStack() as cleaning:
            drafts: dict[Path, Path] = {}  # of each folder
            whole: dict[Path, Path] = {}  # of each target
            for number, (target, place) in enumerate(places.items()):
                content, folder = files[target], place.parent
                with _refusing(target):
                    if isinstance(content, Brought) and _holds(place, content.source):
                        continue
                    if folder not in drafts:
                        cleaning.enter_context(_made(folder))
                        drafts[folder] = cleaning.enter_context(drafts_in(folder))
                    whole[target] = drafts[folder] / str(number)
                    _make(whole[target], place, content, self.writer)
            for folder in sorted(drafts):  # of two runs at once, all files are of one of them
                cleaning.enter_context(locked(folder))
            with contextlib.ExitStack() as undoing:
                for target, draft in whole.items():
                    content, place = files[target], places[target]
                    with _refusing(target):
                        if isinstance(content, Brought) and _holds(place, content.source):
                            continue  # another run was first
                        undoing.callback(_way_back(place, draft))
                        draft.replace(place)
                undoing.pop_all()
            self.written += map(str, whole)
            for target in whole:
                _sync_placed(places[target].parent, target)

    @contextlib.contextmanager
    def replaced(self, target: Path, names: Collection[str] | None) -> Iterator[Path]:
        """Make a file or a folder beside a target; it is renamed into place when the block ends.

        Yields where to make it; the block writes the files down to the disk. If it fails, nothing
        is left and the target is as it was. The target may be an empty folder; a folder that holds
        other names is refused in any case. The current folder is not replaced, as the process that
        is in it would be nowhere: its names are put into it one after the other; others stay.

        Args:
            target: The file or folder.
            names: The names in the folder; None for a file.

        Raises:
            SplitError: TS702 if the target may not be written, or can't be.
        """
        with contextlib.ExitStack() as cleaning, _refusing(target):
            place = self._replaceable(target, names)
            folder = place if (stays := _is_current(place)) else place.parent
            cleaning.enter_context(_made(folder))
            draft = cleaning.enter_context(drafts_in(folder)) / place.name
            yield draft
            if names is not None:
                sync_folders(draft)
            with locked(folder):
                self._replaceable(target, names)
                before = status_of(place)
                if before is not None and names is None:
                    _keep_attributes(draft, place, before)
                for path in _files_in(draft) if self.writer else ():
                    _sign(path, self.writer)
                if before is None:
                    draft.rename(place)
                elif names is None:
                    draft.replace(place)
                elif stays:
                    _fill_in(draft, place, names)
                else:
                    _exchange(draft, place)
            self.written.append(str(target))
            _sync_placed(folder, target)

    def _replaceable(self, target: Path, names: Collection[str] | None) -> Path:
        """Choose where a file or folder is made that may replace what is there."""
        if names is None:
            return self._places([target])[target]
        place = place_of(target)
        stays = _is_current(place)
        self._check_folder(place if stays else place.parent)
        if (found := status_of(place)) is None:
            return place
        if not stat.S_ISDIR(found.st_mode):
            raise unwritable(f"{target} is not a folder, and the result is one")
        written = sorted(place / name for name in names) if stays else [place]
        for read in self.reads:
            if (real := real_path(read)) == place or any(map(real.is_relative_to, written)):
                raise unwritable(f"{target} holds {read}, which is read")
        if stays:
            self._check_names(target, written)
            return place
        held = sorted(entry.name for entry in place.iterdir())
        if held and not (self.overwrite or all(map(self._wrote, _files_in(place)))):
            raise unwritable(f"{target} is not empty", self._leave_to_replace())
        if other := next((name for name in held if name not in names), None):
            problem = f"{target} holds {other}, which the result does not replace"
            raise unwritable(problem, "remove it, or give another path")
        return place

    def _check_names(self, target: Path, written: Collection[Path]) -> None:
        """Refuse files in a folder that stays which may not be replaced."""
        for each in written:
            is_there = status_of(each) is not None or each.is_symlink()
            if is_there and not (self.overwrite or all(map(self._wrote, _files_in(each)))):
                raise unwritable(f"{target} holds {each.name}", self._leave_to_replace())

    def _places(
        self, targets: Collection[Path], brought: Collection[Path] = ()
    ) -> dict[Path, Path]:
        """Return where each output really is, once all of them are found to be fit for writing."""
        places: dict[Path, Path] = {}
        taken = {place_of(other) for other in self.files if other not in targets}
        for target in targets:
            with _refusing(target):
                place = place_of(target)
                if place in taken:
                    raise unwritable(f"{target} would be written twice")
                taken.add(place)
                if (found := status_of(place)) is not None:
                    if not stat.S_ISREG(found.st_mode):
                        is_folder = stat.S_ISDIR(found.st_mode)
                        what = "a folder" if is_folder else "not a regular file"
                        raise unwritable(f"{target} is {what}", "give the name of a file")
                    if target not in brought:
                        self._check_replaced(target, place, found)
                self._check_folder(place.parent)
                places[target] = place
        return places

    def _check_replaced(self, target: Path, place: Path, found: os.stat_result) -> None:
        """Refuse an output that is a file which may not be replaced; see `Outputs`."""
        is_named = False  # as the file that is read and may be replaced
        for read in self.reads:
            try:
                is_read = os.path.samestat(found, read.stat())
            except (OSError, ValueError):  # refused when it is read
                continue
            own_names = (in_real_folder(read), real_path(read))
            own = read is self.replaceable and in_real_folder(target) in own_names
            is_named |= is_read and own
            if is_read and not own:
                also = "" if read == target else f", as {read}"
                raise unwritable(f"{target} is a file that is read{also}")
        if not (self.overwrite or is_named or self._wrote(place)):
            raise unwritable(f"{target} exists", self._leave_to_replace())

    def _leave_to_replace(self) -> str:
        """Return how the user lets an output be replaced: in a command, or in Python."""
        if self.writer:
            return "give --overwrite, or another path"
        return "give overwrite=True, or another path"

    def _wrote(self, place: Path) -> bool:
        """Return whether this writer wrote a file, and nobody changed it since."""
        noted = b""
        if sys.platform == "linux":
            with contextlib.suppress(OSError):  # there is no such note
                noted = os.getxattr(place, _NOTE)
        return bool(self.writer) and noted == _note(self.writer, place.stat())

    def _check_folder(self, folder: Path) -> None:
        """Refuse a folder that is missing and not to be made, or can't be written."""
        ours = set(map(real_path, self.folders))
        for each in (folder, *folder.parents):
            if (found := status_of(each)) is not None:
                if not stat.S_ISDIR(found.st_mode):
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
                if not os.access(each, os.W_OK | os.X_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
                return
            if not (self.create_dirs or each in ours):
                or_else = ", or give --create-dirs" if self.writer else ""
                raise unwritable(f"there is no folder {each}", f"make it{or_else}")


@contextlib.contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Make a folder and those around it; those of them that are empty in the end are removed."""
    with contextlib.ExitStack() as cleaning:
        for each in reversed((folder, *folder.parents)):
            if not each.exists():
                cleaning.callback(_remove_if_empty, each)  # Ctrl-C may come before mkdir returns
                each.mkdir(exist_ok=True)
                sync_folder(each.parent)
        yield


def _make(draft: Path, place: Path, content: Content, writer: str) -> None:
    """Make a draft that is whole."""
    if isinstance(content, Brought) and not content.is_copy:
        try:
            os.link(real_path(content.source), draft)
        except OSError as error:
            problem = f"cannot link {place} to {content.source}: {error.strerror or error}"
            fix = "write the model beside its weights, or leave out --link-external-data"
            raise unwritable(f"{problem}; nothing was written", fix) from None
        return
    before = status_of(place)
    mode = 0o666 if before is None else 0o600  # as private as what it replaces may be
    number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, mode)
    with os.fdopen(number, "wb") as file:
        _fill(file, draft, place, content)
    if before is not None:
        _keep_attributes(draft, place, before)
    _sign(draft, writer)


def _sign(written: Path, writer: str) -> None:
    """Note in a file who wrote it, where the file system has attributes."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setxattr(written, _NOTE, _note(writer, written.stat()))


def _files_in(path: Path) -> Iterator[Path]:
    """Yield all files in a folder, and what can't be listed in it; of a file, itself."""
    if not path.is_dir():
        yield path
    closed: list[str] = []
    for folder, _, names in os.walk(path, onerror=lambda error: closed.append(error.filename)):
        yield from (Path(folder, name) for name in names)
    yield from map(Path, closed)


def _note(writer: str, written: os.stat_result) -> bytes:
    """Return the note in a file: who wrote it, and how to see whether it was changed since."""
    return f"{writer} {written.st_size} {written.st_mtime_ns}".encode()


def _fill(file: IO[bytes], draft: Path, place: Path, content: Content) -> None:
    """Write the content, down to the disk."""
    if isinstance(content, Brought):
        with _refusing_to(f"cannot copy {content.source} to {place}"):
            _copy_whole(content.source, draft)
    elif callable(content):
        content(file)
    else:
        file.write(content.encode() if isinstance(content, str) else content)
    file.flush()
    os.fsync(file.fileno())


def _copy_whole(source: Path, draft: Path) -> None:
    """Copy a file; TS702 if it is written to meanwhile, as half of it may be of another one."""
    before = source.stat()
    free = free_bytes(draft.parent)
    if free is not None and before.st_size > free:  # a sparse file may be of any size
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    shutil.copyfile(source, draft)
    after, copied = source.stat(), draft.stat().st_size
    is_as_before = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
    if not is_as_before or copied != before.st_size:
        problem = f"{source} was changed while it was read"
        raise unwritable(problem, "run it again when nothing writes to it")


def free_bytes(folder: Path) -> int | None:
    """Return the room on the disk of a folder; None if its file system does not know."""
    with contextlib.suppress(OSError):
        usage = shutil.disk_usage(folder)
        if usage.total:  # 0 where FUSE, for example, does not report it
            return usage.free
    return None


def _exchange(draft: Path, place: Path) -> None:
    """Replace a folder by another one, at once where the system can."""
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError):  # not in this C library
            rename = ctypes.CDLL(None, use_errno=True).renameat2
            here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
            if rename(here, os.fsencode(draft), here, os.fsencode(place), exchange) == 0:
                return
    before = draft.with_name(f"{draft.name}.before")
    place.rename(before)
    try:
        draft.rename(place)
    except OSError:
        before.rename(place)
        raise


def _is_current(place: Path) -> bool:
    """Return whether this process is in a folder."""
    with contextlib.suppress(OSError):  # it was removed
        return place.samefile(Path.cwd())
    return False


def _fill_in(draft: Path, place: Path, names: Collection[str]) -> None:
    """Move the content of a folder into one that stays, and remove the other files of these names.

    If one name can't be, none is.
    """
    with contextlib.ExitStack() as undoing:
        for name in sorted(names):
            made, target = draft / name, place / name
            is_there = status_of(target) is not None or target.is_symlink()
            if status_of(made) is None:
                if is_there:
                    target.rename(made)
                    undoing.callback(made.rename, target)
            elif is_there:
                _exchange(made, target)
                undoing.callback(_exchange, made, target)
            else:
                made.rename(target)
                undoing.callback(target.rename, made)
        undoing.pop_all()


def _way_back(place: Path, draft: Path) -> Callable[[], object]:
    """Return a function that restores a place as it is now, if the file system can link files."""
    if not place.exists():
        return partial(place.unlink, missing_ok=True)
    before = draft.with_name(f"{draft.name}.before")
    with contextlib.suppress(OSError):
        os.link(place, before)
    return partial(_put_back, before, place)


def _put_back(before: Path, place: Path) -> None:
    with contextlib.suppress(FileNotFoundError):  # it could not be linked
        before.replace(place)


def _holds(place: Path, source: Path) -> bool:
    """Return whether a file holds what another one does; refused if it holds other data."""
    if not place.exists():
        return False
    with _refusing_to(f"cannot compare {place} with {source}"):
        if place.samefile(source) or filecmp.cmp(place, source, shallow=False):
            return True
    problem = f"{place} exists and holds other data than {source}"
    raise unwritable(problem, "write the model into another folder")


def _keep_attributes(draft: Path, place: Path, before: os.stat_result) -> None:
    """Give a draft the owner, mode and extended attributes of the file that it replaces."""
    mode = stat.S_IMODE(before.st_mode)
    if sys.platform != "win32":
        try:
            os.chown(draft, before.st_uid, before.st_gid)
        except OSError:
            mode &= 0o777  # another's file would run as ours
            with contextlib.suppress(OSError):
                os.chown(draft, -1, before.st_gid)
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # there are none on this file system
            for name in os.listxattr(place):
                with contextlib.suppress(OSError):
                    os.setxattr(draft, name, os.getxattr(place, name))
    with contextlib.suppress(OSError):
        draft.chmod(mode)


def _sync_placed(folder: Path, target: Path) -> None:
    """Write down the name of what is in place (TS702, as a loss of power may undo it)."""
    try:
        sync_folder(folder)
    except OSError as error:
        reason = error.strerror or error
        problem = f"{target} is written, but its folder could not be flushed to the disk: {reason}"
        raise unwritable(problem, fix_of(error, "look at the disk, and run it again")) from None


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # it is in use
        folder.rmdir()


def _refusing(target: Path) -> contextlib.AbstractContextManager[None]:
    """Turn an error of the file system about an output into a refusal."""
    return _refusing_to(f"cannot write to {target}")


@contextlib.contextmanager
def _refusing_to(problem: str) -> Iterator[None]:
    """Turn an error of the file system into a refusal with a problem, whose reason it is."""
    try:
        yield
    except OSError as error:
        problem = f"{problem}: {error.strerror or error}; nothing was written"
        raise unwritable(problem, fix_of(error, ELSEWHERE)) from None
