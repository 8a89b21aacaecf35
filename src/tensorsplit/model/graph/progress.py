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
        """Called when a pass over a model begins.

        Args:
            what: What it does, such as ``converting``.
            total: How many steps it has; None if that is not known.
        """

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
    """Iterate over items, and report a step after each.

    Args:
        what: What the pass does.
        items: The items, such as the nodes of the main graph; bodies and functions are part of the
            node that holds or calls them.
    """
    watcher = _watcher.get()
    if watcher is not None:
        watcher.begin(what, len(items))
    for item in items:
        yield item
        if watcher is not None:
            watcher.step()
