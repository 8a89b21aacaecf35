"""Interpreters that adapters name, for packages that can't be installed beside this one's.

One answers calls in place of this package's worker (see `worker`), by the program `elsewhere`. Here
it is asked first what is installed there, so that one that can't do it is refused by name.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT, Popen
from threading import Timer

import msgspec

from tensorsplit.core.errors import ENGINE_MISSING, SplitError, show_path
from tensorsplit.engines.elsewhere import OLDEST, VERSIONS
from tensorsplit.engines.process import Death
from tensorsplit.engines.worker import ISOLATED

_SECONDS = 30.0
_MOST_PRINTED = 1 << 16
_LONGEST_LINE = 200


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

        SplitError TS602 if it can't run the adapter. Called in a process of its own: an interpreter
        may do anything.
        """
        path = str((adapter.parent / Path(python).expanduser()).absolute())
        return cls(path, str(adapter), _versions(path, packages))


def _versions(python: str, packages: Sequence[str]) -> dict[str, str]:
    """Ask an interpreter for versions; SplitError TS602 if it has no answer."""
    if sys.platform == "win32":
        raise _refused(python, "on Windows no interpreter can take the place of another one")
    try:
        process = Popen(  # noqa: S603 - the adapter names it
            [python, *ISOLATED, VERSIONS, *packages], stdin=DEVNULL, stdout=PIPE, stderr=STDOUT
        )
    except OSError as error:
        raise _refused(python, f"it can't be started: {error.strerror or error}") from None
    with process:
        end = time.monotonic() + _SECONDS
        timer = Timer(_SECONDS, process.kill)
        timer.start()
        printed = process.stdout.read(_MOST_PRINTED) if process.stdout else b""
        is_late = time.monotonic() >= end
        timer.cancel()
        if len(printed) == _MOST_PRINTED:
            process.kill()
            raise _refused(python, f"it printed {_MOST_PRINTED} bytes, and was stopped")
        status = process.wait()
    if is_late:
        raise _refused(python, f"it gave no answer within {_SECONDS:g} s and was stopped")
    lines = printed.decode("utf-8", "replace").strip().splitlines()
    last = lines[-1].strip()[:_LONGEST_LINE] if lines else ""
    if status != 0:
        raise _refused(python, f"it {Death(status, last)}")
    try:
        return msgspec.convert(json.loads(lines[-1]), dict[str, str])
    except (ValueError, IndexError, msgspec.MsgspecError):  # of 0.19 no ValueError
        raise _refused(python, f"it did not run the program, but printed {last!r}") from None


def _refused(python: str, why: str) -> SplitError:
    oldest = ".".join(map(str, OLDEST))
    return SplitError(
        ENGINE_MISSING,
        f"the adapter's PYTHON, {show_path(python)}, can't be used: {why}",
        f"name a Python of version {oldest} or newer, with NumPy",
        parameter="engine",
    )
