"""An adapter that does what engines do at their worst."""

from __future__ import annotations

import itertools
import os
import sys
import time
from typing import Any

from tensorsplit.core.errors import LENGTHS_SUM, SplitError

_calls = itertools.count(1)


def run(action: str, *arguments: Any) -> Any:
    """Do what the action says."""
    count = next(_calls)
    return {"calls": lambda: count, **ACTIONS}[action](*arguments)


def _print(text: str) -> str:
    print(text, flush=True)
    os.system(f"echo {text}")
    return text


def _raise(text: str) -> None:
    raise RuntimeError(text)


def _refuse() -> None:
    raise SplitError(LENGTHS_SUM, "the lengths", "mend them", node="split")


def _be_missing(*words: str) -> None:
    raise ImportError(*words)


def _signal(number: int) -> None:
    print("last words", file=sys.stderr, flush=True)
    os.kill(os.getpid(), number)
    time.sleep(60)


def _fork(seconds: float) -> int:
    """Go on in two processes; the one that was asked stays, with the other's number."""
    child = os.fork()
    if child == 0:
        time.sleep(seconds)
    return child


def _fork_and_hang() -> None:
    """Start a process that outlives this one unless it is killed as well."""
    with open(os.environ["TENSORSPLIT_TEST_PID"], "w") as file:  # noqa: PTH123
        file.write(str(_fork(600)))
    time.sleep(600)


ACTIONS: dict[str, Any] = {
    "echo": lambda value: value,
    "pid": os.getpid,
    "print": _print,
    "read": sys.stdin.read,
    "raise": _raise,
    "refuse": _refuse,
    "missing": _be_missing,
    "lambda": lambda: lambda: None,
    "sleep": time.sleep,
    "signal": _signal,
    "abort": os.abort,
    "exit": os._exit,
    "fork": _fork,
    "fork and hang": _fork_and_hang,
}
