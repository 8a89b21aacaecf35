"""How far a tool is, for whoever wants to show it; nobody does unless a watcher was set."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Protocol, TypeVar

_Item = TypeVar("_Item")


class Watcher(Protocol):
    """What is told of the work."""

    def begin(self, what: str, total: int | None) -> None:
        """A pass begins.

        Args:
            what: What it does, such as ``converting``.
            total: How many steps it has; None if that is not known.
        """

    def step(self) -> None:
        """One more step is done."""


_watcher: ContextVar[Watcher | None] = ContextVar("tensorsplit_watcher", default=None)


@contextlib.contextmanager
def watched_by(watcher: Watcher) -> Iterator[None]:
    """Tell a watcher of the work that is done inside the ``with`` block, in this thread."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def begin(what: str) -> None:
    """Say that work of unknown length begins."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher.begin(what, None)


def counted(what: str, items: Sequence[_Item]) -> Iterator[_Item]:
    """The items, with a step told for each.

    Args:
        what: What is done with them.
        items: What to go through: the top of a pass. Bodies and functions inside are part of the
            node that holds or calls them.
    """
    watcher = _watcher.get()
    if watcher is not None:
        watcher.begin(what, len(items))
    for item in items:
        yield item
        if watcher is not None:
            watcher.step()
