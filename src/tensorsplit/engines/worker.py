"""What runs in the process of an engine, which `confined` has begun.

What an engine prints, to whichever stream, goes to a file; calls and replies have a pipe.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tensorsplit.core.errors import SplitError
from tensorsplit.engines.adapters import Unsupported
from tensorsplit.engines.messages import Connection, pack_message, receive, send_packed

STARTED = "started"
"""What the process answers when it has read a call, before it does anything about it."""

MARK = "TENSORSPLIT_ENGINE_MARK"
"""The environment variable by which all that an engine starts is known, wherever it goes."""

_LONGEST = 400
_LONGEST_OWN = 100 * _LONGEST
_MOST_ROUNDS = 50
_ADDRESS = re.compile(r"(?: at )?\b0x[0-9a-fA-F]{6,}\b")


def main(handle: str, lifeline: str, folder: str) -> None:
    """Answer calls until the package's process closes the pipe, or is gone.

    Args:
        handle: The number of the pipe.
        lifeline: The number of the pipe whose end is the end of the package's process.
        folder: The folder with the engine's files, which goes with it.
    """
    pipe, own = Connection(int(handle)), os.getpid()
    if sys.platform != "win32":
        _keep_no_core_dumps()
        _append_prints()
        _be_killed_first()
        _start_keeper(int(lifeline), folder)
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
    """Call an adapter: ``module:function``, or a module with a function ``run``."""
    module, _, function = adapter.partition(":")
    return getattr(import_module(module), function or "run")(*request)


def _start_keeper(lifeline: int, folder: str) -> None:
    """Start the process that kills this one, and all that it starts, when the caller's is gone.

    It removes the engine's files then. An engine may be past noticing that by itself. The keeper is
    not a child of this process, which might wait for all of them, nor in its group, which it kills.
    """
    group, mark = os.getpid(), os.environ[MARK]
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            os.setpgid(0, 0)
            os.closerange(0, lifeline)
            os.closerange(lifeline + 1, os.sysconf("SC_OPEN_MAX"))
            os.read(lifeline, 1)
            kill_all(group, mark)
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)
    os.waitpid(child, 0)
    os.close(lifeline)


def kill_all(group: int, mark: str) -> None:
    """Kill what has a mark, also where it has left its process group, and then that group.

    Only Linux says who has a mark. Waits until all are gone, but not for ever.
    """
    for _ in range(_MOST_ROUNDS):
        marked = [pid for pid in _marked(mark) if pid != os.getpid()]
        for pid in marked:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with suppress(OSError):
            os.killpg(group, signal.SIGKILL)
        if not marked:
            break
        time.sleep(0.001)
    with suppress(OSError):  # raised once there is no group
        for _ in range(_MOST_ROUNDS):  # a zombie that nobody waits for stays in it
            os.killpg(group, 0)
            time.sleep(0.001)


def _marked(mark: str) -> list[int]:
    """Return the processes that have a mark and still live."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # of somebody else, or gone
            if mark.encode() in path.read_bytes():
                found.append(int(path.parent.name))
    return found


def _answer(number: int, adapter: str, request: list[Any]) -> list[bytes | memoryview]:
    """Pack the reply to a call: its number, and the `outcome`."""
    try:
        return pack_message([number, outcome(perform, (adapter, request))])
    except Exception as error:  # noqa: BLE001 - an engine may return anything
        text = f"its result can't be passed on: {_short(error)}"
        return pack_message([number, {"refusal": text, "has_returned": True}])


def outcome(function: Callable[..., Any], arguments: Iterable[Any]) -> dict[str, Any]:
    """Call something of an engine; return the arguments of `process.Reply`."""
    try:
        return {"result": function(*arguments)}
    except SplitError as error:
        fields = ("code", "problem", "fix", "parameter", "operator", "node")
        told = {name: getattr(error, name) for name in fields}
        return {"error": {name: told[name] and str(told[name])[:_LONGEST_OWN] for name in fields}}
    except ImportError as error:
        return {"missing": _short(error)}
    except Unsupported as error:
        return {"refusal": _short(error), "unsupported": True}
    except Exception as error:  # noqa: BLE001 - an engine may raise anything
        return {"refusal": f"{type(error).__name__}: {_short(error)}"}


def _short(error: BaseException) -> str:
    """Return the start of an engine's message, never empty, without addresses, which change."""
    try:
        text = _ADDRESS.sub("", " ".join(str(error)[:_LONGEST_OWN].split()))
    except Exception:  # noqa: BLE001 - an engine's own exceptions may do anything
        text = ""
    text = text or type(error).__name__
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _empty_error_stream() -> None:
    """Keep what this call writes and no more; the stream is a file of this process alone."""
    sys.stderr.flush()
    if os.fstat(2).st_size:
        os.lseek(2, 0, os.SEEK_SET)
        os.ftruncate(2, 0)


def _keep_no_core_dumps() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _append_prints() -> None:
    """Write what is printed at the end of its file, which the caller may have emptied."""
    import fcntl

    fcntl.fcntl(2, fcntl.F_SETFL, fcntl.fcntl(2, fcntl.F_GETFL) | os.O_APPEND)


def _be_killed_first() -> None:
    """Have Linux end an engine, and not the caller, where memory runs out."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")
