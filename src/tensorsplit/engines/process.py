"""Engines in processes of their own: whatever one does, the caller's process stays alive.

There is one process for each engine. It is started when it is first needed, used again and
again, started anew after it died, and ends with the caller's process. It leads a process group,
which is killed as a whole.
"""

from __future__ import annotations

import atexit
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Pipe
from pathlib import Path
from typing import IO, Any

from tensorsplit.core.errors import (
    ENGINE_CRASHED,
    ENGINE_MISSING,
    ENGINE_REFUSED,
    INPUT_TYPE,
    KINDS,
    USAGE,
    SplitError,
)
from tensorsplit.engines.messages import Connection, pack_message, receive, send_packed

TIMEOUT_VARIABLE = "TENSORSPLIT_ENGINE_TIMEOUT"
"""The environment variable that holds how many seconds an engine may take for one call."""

DEFAULT_TIMEOUT = "600"
_LONGEST_LINE = 200
_MOST_WAITS = 50


class ProcessDied(Exception):  # noqa: N818 - what happened, in the past tense
    """The process of an engine died, or was stopped, before it answered.

    The exit status is negative for a signal, and None if the process is not known to have ended;
    `seconds` is how long it was given, if it was stopped because it took longer.
    """

    def __init__(
        self, status: int | None, stderr_tail: str = "", seconds: float | None = None
    ) -> None:
        super().__init__(status, stderr_tail, seconds)
        self.status = status
        self.stderr_tail = stderr_tail
        self.seconds = seconds

    @property
    def signal(self) -> str:
        """The signal that ended it, such as ``SIGFPE``; empty if none did."""
        if self.seconds is not None or self.status is None or self.status >= 0:
            return ""
        try:
            return signal.Signals(-self.status).name
        except ValueError:
            return f"signal {-self.status}"

    def __str__(self) -> str:
        if self.seconds is not None:
            return f"gave no answer within {self.seconds:g} s and was stopped"
        said = f", having said: {self.stderr_tail}" if self.stderr_tail else ""
        if self.status is None:
            return f"gave an answer that is none{said}"
        if self.status >= 0:
            return f"ended with exit status {self.status}{said}"
        name = self.signal
        number = "" if name.startswith("signal") else f" (signal {-self.status})"
        return f"was ended by {name}{number}{said}"


@dataclass(frozen=True, slots=True)
class Reply:
    """What the process answers."""

    result: Any = None  # what the adapter returned, if none of the others is set
    refusal: str | None = None  # why the engine refused, in its own words
    # whether it said that it lacks the element type, operator or opset altogether
    unsupported: bool = False
    missing: str | None = None  # why the engine can't be imported
    error: SplitError | None = None  # a refusal of this package's own

    @classmethod
    def of(cls, content: dict[str, Any]) -> Reply:
        """The reply that a process sent; LookupError, TypeError if it is none."""
        if "error" in content:
            told = dict(content["error"])
            return cls(error=SplitError(KINDS[told.pop("code")], **told))
        return cls(**content)


class EngineProcess:
    """The process of one engine; calls from several threads take turns.

    Args:
        name: The engine's name, for messages.
        adapter: What the process calls: the ``run`` of a module, or ``module:function``.
        environment: Environment variables that it has besides those of this process.
    """

    def __init__(
        self, name: str, adapter: str, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self._adapter = adapter
        self._environment = dict(environment or {})
        self._lock = threading.Lock()
        self._running: _Running | None = None
        self._calls = 0

    @property
    def pid(self) -> int | None:
        """The process's number, or None while there is no process."""
        return None if self._running is None else self._running.process.pid

    def call(self, request: Any, *, adapter: str = "") -> Any:
        """What the adapter, or another one, returns for arguments that `messages` can send.

        Raises:
            SplitError: TS602 if the engine can't be imported, TS603 if it refuses, TS604 if its
                process dies or takes longer than it may; whatever the adapter itself refuses.
        """
        try:
            reply = self.ask(request, timeout(), adapter=adapter)
        except ProcessDied as death:
            raise self._crash(death) from None
        if reply.error is not None:
            raise reply.error
        if reply.missing is not None:
            raise SplitError(
                ENGINE_MISSING,
                f"{self.name} can't be imported: {reply.missing}",
                f"install it, with pip install 'tensorsplit[{self.name}]'",
                parameter="engine",
            )
        if reply.refusal is not None:
            raise SplitError(
                ENGINE_REFUSED, f"{self.name} says: {reply.refusal}", parameter="engine"
            )
        return reply.result

    def ask(self, request: Any, seconds: float, *, adapter: str = "") -> Reply:
        """As `call`, but whatever comes of it is returned.

        Raises:
            ProcessDied: If the process dies or takes longer than so many seconds.
            SplitError: TS508 if the request can't be passed on; TS604 if no process can be
                started.
        """
        with self._lock:
            self._calls += 1
            try:
                call = pack_message([self._calls, adapter or self._adapter, list(request)])
            except Exception as error:  # noqa: BLE001 - what is fed may be of any class
                raise SplitError(
                    INPUT_TYPE,
                    f"what is fed can't be passed to {self.name}: {error}",
                    "feed arrays, lists of arrays, or None",
                    parameter="inputs",
                ) from None
            return self._exchange(call, seconds)

    def close(self) -> None:
        """End the process, if there is one."""
        with self._lock:
            self._end()

    def stop(self) -> None:
        """End the process at once, even if it is at work for another thread."""
        running = self._running
        if running is not None:
            running.end()

    def forget(self) -> None:
        """Leave the process to the process that started it; this one is a fork of that."""
        self._lock = threading.Lock()
        running, self._running = self._running, None
        if running is not None:
            running.pipe.close()
            running.process.returncode = 0  # not ours to wait for

    def _exchange(self, call: list[bytes | memoryview], seconds: float) -> Reply:
        """Ask, and ask a new process if the old one was gone before it could read the call."""
        for last in (False, True):
            running = self._started()
            expired = threading.Event()
            timer = threading.Timer(seconds, running.expire, (expired,))
            timer.daemon = True
            timer.start()
            has_begun = False
            try:
                send_packed(running.pipe, call)
                has_begun = self._received(running.pipe) is not None
                reply = Reply.of(self._received(running.pipe))
                if not expired.is_set():
                    return reply
            except Exception:  # noqa: BLE001, S110 - an answer that is none is a death, see below
                pass
            except BaseException:
                self._end()  # it is still at work, and would answer a question asked later
                raise
            finally:
                timer.cancel()
                timer.join()
            if has_begun or expired.is_set() or last:
                break
            self._end()
        raise self._died(seconds if expired.is_set() else None)

    def _received(self, pipe: Connection) -> Any:
        """What the process answers to the last call; answers to earlier ones are dropped."""
        while True:
            number, content = receive(pipe)
            if number == self._calls:
                return content

    def _started(self) -> _Running:
        if self._running is None or self._running.process.poll() is not None:
            self._end()
            self._running = _Running.start(self.name, self._environment)
        return self._running

    def _died(self, seconds: float | None) -> ProcessDied:
        running = self._running
        if running is None:
            return ProcessDied(None, "", seconds)
        if seconds is None:
            with suppress(subprocess.TimeoutExpired):
                running.process.wait(5)
        death = ProcessDied(running.process.poll(), running.stderr_tail(), seconds)
        self._end()
        return death

    def _crash(self, death: ProcessDied) -> SplitError:
        if death.seconds is not None:
            what, fix = self.name, f"set {TIMEOUT_VARIABLE} to give it more seconds"
        else:
            what = f"the process of {self.name}"
            fix = "the model or its inputs make the engine crash; use another engine"
        return SplitError(ENGINE_CRASHED, f"{what} {death}", fix, parameter="engine")

    def _end(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.end()
            running.pipe.close()
            running.errors.close()


@dataclass(slots=True)
class _Running:
    """A process that runs, and what ties it to this one."""

    process: subprocess.Popen[bytes]
    pipe: Connection
    errors: IO[bytes]

    @classmethod
    def start(cls, name: str, environment: Mapping[str, str]) -> _Running:
        """Start a process; SplitError TS604 if that can't be done."""
        ours, theirs = Pipe()
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process
        try:
            process = subprocess.Popen(  # noqa: S603 - this package's own module
                [
                    *(sys.executable or "", "-P", "-m", "tensorsplit.engines.worker"),
                    str(theirs.fileno()),
                ],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                env={**os.environ, **environment, "PYTHONPATH": _search_path()},
                **_inheriting(theirs),
            )
        except OSError as error:
            ours.close()
            errors.close()
            raise SplitError(
                ENGINE_CRASHED,
                f"the process of {name} can't be started: {error.strerror}",
                "sys.executable must be a Python interpreter",
                parameter="engine",
            ) from None
        finally:
            theirs.close()
        return cls(process, ours, errors)

    def expire(self, expired: threading.Event) -> None:
        """Say that the time ran out, and kill the process."""
        expired.set()
        self.kill()

    def kill(self) -> None:
        """Kill the process and all that it started; wake the thread that waits for an answer."""
        if sys.platform != "win32":  # where there are no groups
            with suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        if sys.platform != "win32":  # one that left the group may hold the other end of the socket
            with suppress(OSError), socket.socket(fileno=os.dup(self.pipe.fileno())) as end:
                end.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """Kill the process, and wait until it and all that it started are gone."""
        self.kill()
        self.process.wait()
        if sys.platform != "win32":
            with suppress(OSError):  # raised once there is no group
                for _ in range(_MOST_WAITS):  # a zombie that nobody waits for stays in it
                    os.killpg(self.process.pid, 0)
                    time.sleep(0.001)

    def stderr_tail(self) -> str:
        """The last line of the error stream."""
        size = self.errors.seek(0, os.SEEK_END)
        self.errors.seek(max(0, size - 2000))
        lines = self.errors.read().decode("utf-8", "replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return said[-1][:_LONGEST_LINE] if said else ""


def _inheriting(pipe: Connection) -> dict[str, Any]:
    """What `Popen` takes so that the process inherits a pipe, and leads a group of its own.

    Ctrl-C is then for the caller alone, who ends the process.
    """
    number = pipe.fileno()
    if sys.platform == "win32":
        os.set_handle_inheritable(number, True)
        return {
            "startupinfo": subprocess.STARTUPINFO(lpAttributeList={"handle_list": [number]}),
            "creationflags": subprocess.CREATE_NEW_PROCESS_GROUP,
        }
    else:  # noqa: RET505 - mypy looks at one of the two
        return {"pass_fds": [number], "start_new_session": True}


def _search_path() -> str:
    """Where this process finds modules, so that the other one finds the same ones."""
    return os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)


def timeout() -> float:
    """How many seconds an engine may take for one call; SplitError TS703 for what is no number."""
    text = os.environ.get(TIMEOUT_VARIABLE, DEFAULT_TIMEOUT)
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if 0 < seconds <= threading.TIMEOUT_MAX:
        return seconds
    raise SplitError(
        USAGE,
        f"the environment variable {TIMEOUT_VARIABLE} is {text[:40]!r}",
        "give a number of seconds > 0",
    )


_processes: dict[str, EngineProcess] = {}
_table_lock = threading.Lock()


def process_of(name: str, adapter: str) -> EngineProcess:
    """The process of an engine; the same one for each call."""
    with _table_lock:
        return _processes.setdefault(name, EngineProcess(name, adapter))


def _stop_all() -> None:
    for process in _processes.values():
        process.stop()


def _forget_all() -> None:
    """In a fork, the processes are those of the process that forked."""
    global _table_lock  # noqa: PLW0603 - a thread that is no more may have held it
    _table_lock = threading.Lock()
    for process in _processes.values():
        process.forget()


atexit.register(_stop_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
