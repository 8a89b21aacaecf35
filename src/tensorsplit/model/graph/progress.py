"""Progress hooks; they do nothing by default."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Protocol, TypeVar

_Item = TypeVar("_Item")


class Watcher(Protocol):
    """Receives progress, to show it."""

    def begin(self, what: str, total: int | None) -> None:
        """Called when a pass begins, such as ``converting``; the total may be unknown."""

    def step(self) -> None:
        """Called after each step of the pass."""


_watcher: ContextVar[Watcher | None] = ContextVar("tensorsplit_watcher", default=None)


@contextlib.contextmanager
def watched_by(watcher: Watcher) -> Iterator[None]:
    """Report the progress of this thread to a watcher inside the ``with`` block."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def begin(what: str) -> None:
    """Report that a pass of unknown length begins."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher.begin(what, None)


def counted(what: str, items: Sequence[_Item]) -> Iterator[_Item]:
    """Iterate over items, such as the nodes of the main graph, and report a step after each."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher.begin(what, len(items))
    for item in items:
        yield item
        if watcher is not None:
            watcher.step()
