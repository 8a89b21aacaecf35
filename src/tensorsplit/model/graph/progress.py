"""Progress hooks; they do nothing by default."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import TypeAlias, TypeVar

_Item = TypeVar("_Item")

Watcher: TypeAlias = Callable[[str, int | None], Callable[[], object]]
"""Called when a pass begins, such as ``converting``, with its number of steps, if that is known.

What it returns is called after each step.
"""

_watcher: ContextVar[Watcher] = ContextVar(
    "tensorsplit_watcher", default=lambda _what, _total: lambda: None
)


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
    _watcher.get()(what, None)


def counted(what: str, items: Sequence[_Item]) -> Iterator[_Item]:
    """Iterate over items, such as the nodes of the main graph, and report a step after each."""
    step = _watcher.get()(what, len(items))
    for item in items:
        yield item
        step()
