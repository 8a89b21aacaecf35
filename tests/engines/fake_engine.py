"""An adapter that does what engines do at their worst."""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

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
    wants = {"sum": range(0, 1 << 63, 3)}
    raise SplitError(LENGTHS_SUM, "the lengths", "mend them", node="split", wants=wants)


def _be_missing(*words: str) -> None:
    raise ImportError(*words)


def _signal(number: int) -> None:
    print("last words", file=sys.stderr, flush=True)
    os.kill(os.getpid(), number)
    time.sleep(60)


def _fork(seconds: float, own_seconds: float = 0.0) -> int:
    """Go on in two processes; the one that was asked stays, with the other's number."""
    child = os.fork()
    time.sleep(own_seconds if child else seconds)
    return child


def _fork_and_hang() -> None:
    """Start a process that outlives this one unless it is killed as well."""
    with open(os.environ["TENSORSPLIT_TEST_PID"], "w") as file:  # noqa: PTH123
        file.write(str(_fork(600)))
    time.sleep(600)


def _leave(path: str, end: str) -> None:
    """Have a grandchild leave the session and keep all files open; then end in some way."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            with open(f"{path}.part", "w") as file:  # noqa: PTH123
                file.write(str(os.getpid()))
            os.rename(f"{path}.part", path)  # noqa: PTH104
            time.sleep(600)
        os._exit(0)
    while not os.path.exists(path):  # noqa: PTH110
        time.sleep(0.01)
    {"return": lambda: None, "exit": lambda: os._exit(0), "hang": _hang}[end]()


def _hang() -> None:
    """Sleep in C, where no other thread of Python gets on."""
    ctypes.PyDLL(None).sleep(600)


def _write(*texts: str) -> None:
    """Write to the pipe what is not an answer; texts that are messages are sent as such."""
    for text in texts:
        header = b"" if text.startswith("raw ") else len(text).to_bytes(4, "big")
        os.write(int(sys.argv[1]), header + text.removeprefix("raw ").encode("latin-1"))
    time.sleep(600)


def _reply(reply: Any) -> None:
    """Answer the third call by a reply of the engine's own making."""
    _write(json.dumps([3, {"dict": reply}]))


def _print_much(count: int) -> int:
    """Return how long the file is in the end, as soon as somebody has emptied it."""
    for number in range(count):
        os.write(1 + number % 2, b"x" * (1 << 20))
    for _ in range(3000):
        if not os.fstat(1).st_size:
            break
        time.sleep(0.01)
    return os.fstat(1).st_size


def _nest(depth: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(depth):
        nested = [nested]
    return nested


class _WordlessError(Exception):
    def __str__(self) -> str:
        raise self


def _raise_wordless() -> None:
    raise _WordlessError


def _close_all() -> None:
    os.closerange(0, 1000)


ACTIONS: dict[str, Any] = {
    "echo": lambda value: value,
    "pid": os.getpid,
    "print": _print,
    "read": sys.stdin.read,
    "text": lambda path: Path(path).read_text(),
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
    "leave": _leave,
    "write": _write,
    "reply": _reply,
    "print much": _print_much,
    "zeros": lambda size: np.zeros(size, np.uint8),
    "lists": lambda count: [[] for _ in range(count)],
    "nest": _nest,
    "wordless": _raise_wordless,
    "close all": _close_all,
}
