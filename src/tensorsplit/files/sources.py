"""Opening sources safely: what is no file is not read, and what a library raises is a refusal."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tensorsplit.core.errors import (
    UNREADABLE_TENSORS,
    UNWRITABLE,
    SplitError,
    show_path,
    words_of,
)


@contextlib.contextmanager
def refusing(source: str) -> Iterator[None]:
    """Turn whatever a reader raises into a refusal of the source (TS705)."""
    try:
        yield
        return
    except SplitError:
        raise
    except Exception as error:  # noqa: BLE001 - the readers raise whatever their parsers do
        problem = words_of(error)
    raise SplitError(
        UNREADABLE_TENSORS,
        f"{show_path(source)}: {problem}",
        "give a whole file",
        parameter="source",
    )


@contextlib.contextmanager
def refusing_writes(url: str) -> Iterator[None]:
    """Turn whatever storage raises into a refusal to write to it (TS702)."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - each kind of storage has its own
        problem = f"cannot write to {show_path(url)}: {words_of(error)}"
        raise SplitError(UNWRITABLE, problem, "give another URL, or run it again") from None


def check_regular(path: Path) -> None:
    """Raise a ValueError for what is there and no file, as a device, which might never end."""
    if path.exists() and not path.is_file():
        raise ValueError("it is no file")


def local_path(url: str) -> Path | None:
    """Return the path that a URL stands for, or that it is; None if it is no local one."""
    for scheme in ("file://", "local://"):
        if url.startswith(scheme):
            return Path(url.removeprefix(scheme))
    return None if "://" in url else Path(url)
