"""The program that runs an engine in a process of its own (``python -m``, started by `process`).

What an engine prints, to whichever stream, goes to a file; calls and replies have a pipe.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterable
from importlib import import_module
from queue import SimpleQueue
from typing import Any

from tensorsplit.core.errors import SplitError
from tensorsplit.engines.adapters import Unsupported
from tensorsplit.engines.messages import Connection, pack_message, receive, send_packed

STARTED = "started"
"""What the process answers when it has read a call, before it does anything about it."""

_LONGEST = 400
_ADDRESS = re.compile(r"(?: at )?\b0x[0-9a-fA-F]{6,}\b")


def main() -> None:
    """Answer calls until the package's process closes the pipe, or is gone."""
    pipe, own = Connection(int(sys.argv[1])), os.getpid()
    _keep_no_core_dumps()
    calls: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_read, args=(pipe, calls), daemon=True).start()
    while True:
        number, adapter, request = calls.get()
        send_packed(pipe, pack_message([number, STARTED]))
        _empty_error_stream()
        reply = _answer(number, adapter, request)
        if os.getpid() != own:  # the engine has forked, and this is not the process that was asked
            os._exit(0)
        send_packed(pipe, reply)


def _read(pipe: Connection, calls: SimpleQueue[Any]) -> None:
    """Take calls; end this process, even if an engine hangs in it, when the other one is gone."""
    try:
        while True:
            calls.put(receive(pipe))
    finally:
        os._exit(0)


def perform(adapter: str, request: Iterable[Any]) -> Any:
    """What an adapter, ``module:function`` or a module with a function ``run``, returns."""
    module, _, function = adapter.partition(":")
    return getattr(import_module(module), function or "run")(*request)


def _answer(number: int, adapter: str, request: list[Any]) -> list[bytes | memoryview]:
    """What comes of a call, packed: its number, and the arguments of `process.Reply`."""
    try:
        reply = {"result": perform(adapter, request)}
    except SplitError as error:
        fields = ("code", "problem", "fix", "parameter", "operator", "node")
        reply = {"error": {name: getattr(error, name) for name in fields}}
    except ImportError as error:
        reply = {"missing": _short(error)}
    except Unsupported as error:
        reply = {"refusal": _short(error), "unsupported": True}
    except Exception as error:  # noqa: BLE001 - an engine may raise anything
        reply = {"refusal": f"{type(error).__name__}: {_short(error)}"}
    try:
        return pack_message([number, reply])
    except Exception as error:  # noqa: BLE001 - an engine may return anything
        text = f"what it returns can't be passed on: {_short(error)}"
        return pack_message([number, {"refusal": text}])


def _short(error: BaseException) -> str:
    """The start of an engine's message, never empty, without addresses: each run has others."""
    text = _ADDRESS.sub("", " ".join(str(error)[: 100 * _LONGEST].split()))
    text = text or type(error).__name__
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _empty_error_stream() -> None:
    """Keep what this call writes and no more; the stream is a file of this process alone."""
    sys.stderr.flush()
    if os.fstat(2).st_size:
        os.lseek(2, 0, os.SEEK_SET)
        os.ftruncate(2, 0)


def _keep_no_core_dumps() -> None:
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


if __name__ == "__main__":
    main()
