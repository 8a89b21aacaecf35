"""Going from one thing to those that follow from it, each once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

_T = TypeVar("_T", bound=Hashable)


def each_once(start: Iterable[_T], after: Callable[[_T], Iterable[_T]]) -> Iterator[_T]:
    """Yield some things and all that follows from them, each once; what was found last comes first.

    Args:
        start: The first things.
        after: Returns what follows from one; it is called when the one was yielded.
    """
    waiting = list(dict.fromkeys(start))
    known = set(waiting)
    while waiting:
        here = waiting.pop()
        yield here
        new = dict.fromkeys(each for each in after(here) if each not in known)
        waiting += new
        known.update(new)
