"""Zarr stores: their values and folders, read in bounded memory.

What a store holds is not trusted: no link out of it is followed, nothing but regular files is read,
and of a value that is larger than it may be, no more than that is read, whatever a server says of
its size.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Awaitable, Coroutine, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from zarr.abc.store import Store
from zarr.buffer import default_buffer_prototype
from zarr.storage import FsspecStore, LocalStore

from tensorsplit.core.errors import UNREADABLE_TENSORS, SplitError, show_path
from tensorsplit.files.sources import local_path, refusing, refusing_access, refusing_writes
from tensorsplit.files.zarr_internals import sync

if TYPE_CHECKING:
    from zarr.abc.buffer import Buffer, BufferPrototype
    from zarr.abc.store import ByteRequest

_T = TypeVar("_T")

_LARGEST_LISTING = 2 << 20
_LARGEST_ANSWER = 256 << 20
_PIECE = 1 << 16
_SECONDS_WITHOUT_ANSWER = 30
_SECONDS_TO_BEGIN = 20
_BYTES_A_SECOND = 1 << 20  # of what may be read, at least


class BeyondAllowanceError(Exception):
    """Values are larger than they may be."""


@dataclass
class Allowance:
    """How many bytes may still be read."""

    left: int

    def take(self, size: int) -> None:
        """Count bytes that are read (BeyondAllowanceError)."""
        self.left -= size
        if self.left < 0:
            raise BeyondAllowanceError


_ALLOWED: ContextVar[Allowance | None] = ContextVar("_ALLOWED", default=None)
"""What answers of HTTP servers may hold."""


def store_at(url: str, *, read_only: bool = True) -> Store:
    """Return the store at a path or URL."""
    path = local_path(url)
    if path is not None:
        return GuardedStore(path, read_only=read_only)
    options = {"get_client": _bounded_client} if url.startswith(("http:", "https:")) else None
    return FsspecStore.from_url(url, options, read_only=read_only)


async def _bounded_client(**settings: object) -> object:
    """Return a client of HTTP that reads no more of an answer than is allowed."""
    from aiohttp import ClientResponse, ClientSession, ClientTimeout

    class BoundedResponse(ClientResponse):  # type: ignore[misc]  # it may not be installed
        async def read(self) -> bytes:
            allowed = _ALLOWED.get() or Allowance(_LARGEST_ANSWER)
            if (self.content_length or 0) > allowed.left:
                raise BeyondAllowanceError
            held = bytearray()
            async for piece in self.content.iter_chunked(_PIECE):
                allowed.take(len(piece))
                held += piece
            return bytes(held)

        async def text(self, *_: object, **__: object) -> str:
            return (await self.read()).decode(errors="replace")

    silence = _SECONDS_WITHOUT_ANSWER
    timeout = ClientTimeout(total=None, sock_connect=silence, sock_read=silence)  # see `_in_time`
    return ClientSession(response_class=BoundedResponse, **{"timeout": timeout, **settings})


class GuardedStore(LocalStore):  # type: ignore[misc]  # it has no types
    """A folder out of which no link is followed."""

    async def get(
        self,
        key: str,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        """Return the value of a key, as of any store."""
        if self.size(key) is None:
            return None
        return await super().get(key, prototype, byte_range)

    def size(self, key: str) -> int | None:
        """Return the bytes of a value; None if it is not there, TS705 if it may not be read."""
        path = self.root / key
        _check_inside(str(path.parent), str(self.root))
        with refusing_access(str(path)):
            try:
                found = path.lstat()
                if stat.S_ISLNK(found.st_mode):
                    _check_inside(str(path), str(self.root))
                    found = path.stat()
            except (FileNotFoundError, NotADirectoryError):
                return None
        if not stat.S_ISREG(found.st_mode):
            raise unreadable(str(path), "it is not a regular file")
        return int(found.st_size)

    def read(self, key: str, allowance: Allowance) -> bytes | None:
        """Return a value; None if it is not there (TS705, BeyondAllowanceError)."""
        size = self.size(key)
        if size is None:
            return None
        allowance.take(size)
        path = self.root / key
        with refusing(str(path)), path.open("rb") as file:
            value: bytes = file.read(size)  # it may grow meanwhile
        return value

    def write(self, key: str, value: Buffer) -> None:
        """Write a value in this thread: in zarr's, it would be written after Ctrl-C, too."""
        path = self.root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(value.as_numpy_array())

    def folders(self, path: str) -> Iterator[str]:
        """Yield the names of the folders in a folder; TS705 where a link leads into a loop."""
        folder = str(self.root / path)
        with refusing(folder), os.scandir(folder) as entries:
            for entry in entries:
                if not entry.is_dir():
                    continue
                if entry.is_symlink():
                    _check_inside(entry.path, str(self.root))
                    here = Path(os.path.realpath(folder))
                    if here.is_relative_to(os.path.realpath(entry.path)):
                        raise unreadable(entry.path, "its link leads into a loop")
                yield entry.name


@lru_cache(maxsize=1024)
def _check_inside(path: str, root: str) -> None:
    """Refuse (TS705) a path that leads out of a folder."""
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        raise unreadable(path, "it leads out of the store")


def size_of(store: Store, key: str) -> int | None:
    """Return the bytes of a value in a store; None if it is not there."""
    (size,) = sizes_of(store, [key])
    return size


def sizes_of(store: Store, keys: Sequence[str]) -> list[int | None]:
    """Return the bytes of values in a store, each None if it is not there."""
    if isinstance(store, GuardedStore):
        return [store.size(key) for key in keys]
    found: list[int | None] = sync(_all_of([_size(store, key) for key in keys]))
    return found


async def _size(store: FsspecStore, key: str) -> int | None:
    place = place_in(store, key)
    with refusing(place):
        try:
            return int(await _in_time(store.getsize(key), place))
        except FileNotFoundError:
            return None


async def _in_time(awaited: Coroutine[object, object, _T], place: str, most: int = 0) -> _T:
    """Wait for what a server gives, of at most so many bytes (TS705 where it takes too long)."""
    seconds = _SECONDS_TO_BEGIN + most / _BYTES_A_SECOND
    try:
        return await asyncio.wait_for(awaited, seconds)
    except TimeoutError as error:
        if type(error) is not TimeoutError:  # but one that says more
            raise
        raise SplitError(
            UNREADABLE_TENSORS,
            f"{show_path(place)}: its server does not answer in {seconds:.0f} seconds",
            "check the URL and its server",
            parameter="source",
        ) from None


def read_values(store: Store, keys: Sequence[str], allowance: Allowance) -> list[bytes | None]:
    """Return values of a store, each None if it is not there (BeyondAllowanceError)."""
    if isinstance(store, GuardedStore):
        return [store.read(key, allowance) for key in keys]
    found: list[bytes | None] = sync(_fetched(store, keys, allowance))
    return found


async def _fetched(
    store: FsspecStore, keys: Sequence[str], allowance: Allowance
) -> list[bytes | None]:
    """Fetch values at the same time."""
    _ALLOWED.set(allowance)
    is_counted = "https" in store.fs.protocol  # as it comes

    async def fetch(key: str) -> bytes | None:
        if not is_counted:
            size = await _size(store, key)
            if size is None:
                return None
            allowance.take(size)
        place, most = place_in(store, key), allowance.left
        with refusing(place, but=BeyondAllowanceError):
            got = store.get(key, default_buffer_prototype())
            value: Buffer | None = await _in_time(got, place, most)
        return None if value is None else bytes(value.to_bytes())

    return await _all_of(map(fetch, keys))


def folders_in(store: Store, paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield folders and the names in them that may be folders (TS705, BeyondAllowanceError)."""
    if isinstance(store, GuardedStore):
        listings: Iterable[Iterable[str]] = map(store.folders, paths)
    else:
        listings = sync(_all_of([_listed(store, path) for path in paths]))
    for path, names in zip(paths, listings, strict=True):
        for name in names:
            yield path, name


async def _listed(store: FsspecStore, path: str) -> list[str]:
    """Return the names in a folder (TS705); a server may keep them to itself."""
    _ALLOWED.set(Allowance(_LARGEST_LISTING))
    place = place_in(store, path)

    async def names_in() -> list[str] | None:
        names = [name.rstrip("/") async for name in store.list_dir(path)]
        return names if names or await store.exists(path) else None

    with refusing(place, but=BeyondAllowanceError):
        names = await _in_time(names_in(), place, _LARGEST_LISTING)
    if names is not None:
        return names
    raise SplitError(
        UNREADABLE_TENSORS,
        f"{show_path(place)} does not list what it holds",
        "name arrays, and a folder for their parts",
        parameter="source",
    )


async def _all_of(awaited: Iterable[Awaitable[_T]]) -> list[_T]:
    """Wait for all at the same time; none is still on its way when this ends, or fails."""
    found = await asyncio.gather(*awaited, return_exceptions=True)
    for each in found:
        if isinstance(each, BaseException):
            raise each
    return [each for each in found if not isinstance(each, BaseException)]


def write_value(store: Store, key: str, value: Buffer) -> None:
    """Store a value; TS702 at a URL, OSError in a folder."""
    if isinstance(store, GuardedStore):
        store.write(key, value)
        return
    with refusing_writes(place_in(store, key)):
        sync(store.set(key, value))


def place_in(store: Store, key: str) -> str:
    """Return where a value is, for messages: a URL, however a library shows its store."""
    is_remote = isinstance(store, FsspecStore)
    return join(store.fs.unstrip_protocol(store.path) if is_remote else str(store), key)


def join(*parts: str) -> str:
    """Return a path in a store, or the URL of one."""
    return "/".join(each.rstrip("/") for each in parts if each)


def unreadable(source: str, problem: str) -> SplitError:
    """Return the refusal of a store that can't be read (TS705)."""
    return SplitError(UNREADABLE_TENSORS, f"{show_path(source)}: {problem}", parameter="source")
