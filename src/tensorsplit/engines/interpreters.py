"""Interpreters that adapters name, for packages that can't be installed beside this one's.

One answers calls in place of this package's worker (see `worker`), by the program `elsewhere`. Here
what is installed there is read first, so that one that can't do it is refused by name.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tensorsplit.core.errors import ENGINE_MISSING, SplitError, show_path
from tensorsplit.engines import elsewhere
from tensorsplit.engines.process import EngineProcess

_SECONDS = 30.0
_MOST_MEMORY = 1 << 20  # of an answer


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter, and what it runs.

    Attributes:
        python: Its path.
        adapter: The path of the adapter.
        versions: The versions of the distributions that the adapter needs, of those it has.
    """

    python: str
    adapter: str
    versions: dict[str, str]

    @classmethod
    def of(cls, python: str, adapter: Path, packages: Sequence[str]) -> Interpreter:
        """Return the interpreter that an adapter names by a path, from the adapter's folder.

        SplitError TS602 if it can't run the adapter.
        """
        path = str((adapter.parent / Path(python).expanduser()).absolute())
        return cls(path, str(adapter), _versions(path, packages))


def _versions(python: str, packages: Sequence[str]) -> dict[str, str]:
    """Ask an interpreter for versions; SplitError TS602 if it has no answer."""
    if sys.platform == "win32":
        raise _refused(python, "on Windows no interpreter can take the place of another one")
    process = EngineProcess(python, f"{elsewhere.__name__}:versions", {}, _MOST_MEMORY, python)
    try:
        reply = process.ask((packages,), _SECONDS)
    finally:
        process.close()
    if reply.result is None:
        raise _refused(python, f"it {reply.death}" if reply.death else f"{reply.words}")
    return msgspec.convert(reply.result, dict[str, str])


def _refused(python: str, why: str) -> SplitError:
    oldest = ".".join(map(str, elsewhere.OLDEST))
    return SplitError(
        ENGINE_MISSING,
        f"the adapter's PYTHON, {show_path(python)}, can't be used: {why}",
        f"name a Python of version {oldest} or newer, with NumPy",
        parameter="engine",
    )
