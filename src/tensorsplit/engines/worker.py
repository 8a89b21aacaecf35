"""The loop that runs in the process of an engine, which `confined` has started.

What an engine prints, to whichever stream, goes to a file; calls and replies have a pipe.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from tensorsplit.core.errors import SplitError
from tensorsplit.engines.messages import LONGEST, Connection, refusal, serve

MARK = "TENSORSPLIT_ENGINE_MARK"
"""The environment variable by which all that an engine starts is known, wherever it goes."""

_LONGEST_OWN = 100 * LONGEST
_MOST_ROUNDS = 50
_MOST_DATA = 8 << 30


def main(handle: str, lifeline: str, folder: str, python: str) -> None:
    """Answer calls until the package's process closes the pipe, or is gone.

    An interpreter that an adapter names takes the place of this one: the process stays the same,
    with its limits, its pipe and what ends it.

    Args:
        handle: The number of the pipe.
        lifeline: The number of the pipe whose end is the end of the package's process.
        folder: The folder with the engine's files, which goes with it.
        python: The path of the interpreter that answers; empty for this one.
    """
    if sys.platform != "win32":
        _keep_no_core_dumps()
        _append_prints()
        _be_killed_first()
        _start_keeper(int(lifeline), folder)
    if python:
        limit_memory()
        program = str(Path(__file__).with_name("elsewhere.py"))
        os.execv(python, [python, "-I", program, handle])  # noqa: S606 - the adapter names it
    serve(Connection(int(handle)), lambda called, request: outcome(perform, (called, request)))


def limit_memory() -> None:
    """Limit the memory of this process, on Linux; no case needs as much."""
    if sys.platform == "linux":
        import resource

        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        most = _MOST_DATA if hard == resource.RLIM_INFINITY else min(hard, _MOST_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def perform(adapter: str, request: Iterable[object]) -> Any:
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
            kill_all(group, mark, descendants(group))
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)
    os.waitpid(child, 0)


def descendants(process: int) -> list[int]:
    """Return the descendants of a process, while all of them are alive.

    Only Linux says so; what has an empty environment has no mark.
    """
    started: dict[int, list[int]] = defaultdict(list)
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it is gone
            parent = path.read_text(errors="replace").rpartition(")")[2].split()[1]
            started[int(parent)].append(int(path.parent.name))
    found = [process]
    for each in found:
        found += started[each]
    return found[1:]


def kill_all(group: int, mark: str, others: Iterable[int]) -> None:
    """Kill other processes, what has a mark, wherever it has gone, and then a process group.

    Only Linux says who has a mark. Waits until all are gone, but not for ever.
    """
    for pid in others:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
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


def outcome(function: Callable[..., object], arguments: Iterable[object]) -> dict[str, object]:
    """Do as `messages.outcome`; refusals of this package's own are passed on field by field."""
    try:
        return {"result": function(*arguments)}
    except SplitError as error:
        fields = ("code", "problem", "fix", "parameter", "operator", "node")
        values = {name: getattr(error, name) for name in fields}
        wants = {name: (fit.start, fit.stop, fit.step) for name, fit in error.wants.items()}
        texts = {name: values[name] and str(values[name])[:_LONGEST_OWN] for name in fields}
        return {"error": {**texts, "wants": wants}}
    except Exception as error:  # noqa: BLE001 - an engine may raise anything
        return refusal(error)


def _keep_no_core_dumps() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _append_prints() -> None:
    """Append all prints to the end of their file, which the caller may have emptied."""
    import fcntl

    fcntl.fcntl(2, fcntl.F_SETFL, fcntl.fcntl(2, fcntl.F_GETFL) | os.O_APPEND)


def _be_killed_first() -> None:
    """Tell Linux to end the engine, and not the caller, when memory runs out."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")
