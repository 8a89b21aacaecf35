"""Names from a model file as they may be printed: one line of bounded length."""

from __future__ import annotations

from tensorsplit.core.errors import show

_LONGEST = 120


def short_name(name: str | bytes) -> str:
    """A name as it is where it can be printed, else escaped and cut short.

    Protobuf gives names that are not UTF-8 as bytes.
    """
    if isinstance(name, str) and name.isprintable() and len(name) <= _LONGEST:
        return name
    return show(name)
