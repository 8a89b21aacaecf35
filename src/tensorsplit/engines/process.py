"""Engines in processes of their own: whatever one does, the caller's process stays alive.

There is one process for each engine. It is started when it is first needed, used again and
again, started anew after it died, and ends with the caller's process.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from tensorsplit.core.errors import (
    ENGINE_CRASHED,
    ENGINE_MISSING,
    ENGINE_REFUSED,
    INPUT_TYPE,
    USAGE,
    SplitError,
)
from tensorsplit.engines.death import ProcessDied, last_words
from tensorsplit.engines.wire import STARTED, Call, Reply, pack, receive, send

TIMEOUT_VARIABLE = "TENSORSPLIT_ENGINE_TIMEOUT"
"""The environment variable that holds how many seconds an engine may take for one call."""

DEFAULT_TIMEOUT = 600.0


class EngineProcess:
    """The process of one engine.

    Args:
        name: The engine's name, for messages.
        adapter: The module whose ``run`` the process calls.
        environment: Environment variables that it has besides those of this process.

    Calls from several threads take turns.
    """

    def __init__(
        self, name: str, adapter: str, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self._adapter = adapter
        self._environment = dict(environment or {})
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process's number, or None while there is no process."""
        return None if self._process is None else self._process.pid

    def call(self, request: Any) -> Any:
        """Have the engine run something.

        Args:
            request: What the adapter's ``run`` is called with; picklable.

        Returns:
            What it returns.

        Raises:
            SplitError: TS602 if the engine can't be imported, TS603 if it refuses, TS604 if its
                process dies or takes longer than it may; whatever the adapter itself refuses.
        """
        try:
            reply = self.ask(request, timeout())
        except ProcessDied as death:
            raise self._crash(death) from None
        if isinstance(reply.error, SplitError):
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

    def ask(self, request: Any, seconds: float) -> Reply:
        """Have the engine run something, whatever comes of it.

        Args:
            request: What the adapter's ``run`` is called with; picklable.
            seconds: How long it may take.

        Raises:
            ProcessDied: If the process dies or takes longer.
            SplitError: TS508 if the request can't be passed on; TS604 if no process can be
                started.
        """
        try:
            packed = pack(Call(self._adapter, request))
        except Exception as error:  # noqa: BLE001 - what is fed may be of any class
            raise SplitError(
                INPUT_TYPE,
                f"what is fed can't be passed to {self.name}: {error}",
                "feed arrays, lists of arrays, or None",
                parameter="inputs",
            ) from None
        with self._lock:
            return self._exchange(packed, seconds)

    def close(self) -> None:
        """End the process, if there is one."""
        with self._lock:
            self._end()

    def stop(self) -> None:
        """End the process at once, even if it is at work for another thread."""
        process = self._process
        if process is not None:
            process.kill()
            process.wait()

    def forget(self) -> None:
        """Leave the process to the process that started it; this one is a fork of that."""
        self._lock = threading.Lock()
        process, self._process = self._process, None
        for pipe in (process.stdin, process.stdout) if process is not None else ():
            if pipe is not None:
                pipe.close()
        if process is not None:
            process.returncode = 0  # not ours to wait for

    def _exchange(self, packed: bytes, seconds: float) -> Reply:
        """Ask, and ask a new process if the old one was gone before it could read the call."""
        for last in (False, True):
            began, reply, expired = self._ask(packed, seconds)
            if isinstance(reply, Reply) and not expired:
                return reply
            if began or expired or last:
                break
            self._end()
        raise self._died(seconds if expired else None)

    def _ask(self, packed: bytes, seconds: float) -> tuple[bool, Any, bool]:
        """Whether the call was read, what was answered, and whether the time ran out."""
        process = self._running()
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            process.kill()

        timer = threading.Timer(seconds, expire)
        timer.daemon = True
        timer.start()
        began, reply = False, None
        try:
            if process.stdin is not None and process.stdout is not None:
                send(process.stdin, packed)
                began = receive(process.stdout) == STARTED
                reply = receive(process.stdout)
        except Exception:  # noqa: BLE001, S110 - no reply is told from a reply by the caller
            pass
        except BaseException:
            self._end()  # it is still at work, and would answer a question that is asked later
            raise
        finally:
            timer.cancel()
            timer.join()
        return began, reply, expired.is_set()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._end()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this package's own module
                [sys.executable or "", "-P", "-m", "tensorsplit.engines.worker"],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env={**os.environ, **self._environment, "PYTHONPATH": _search_path()},
                start_new_session=True,  # Ctrl-C is for the caller, who then ends this one
            )
        except OSError as error:
            raise SplitError(
                ENGINE_CRASHED,
                f"the process of {self.name} can't be started: {error.strerror}",
                "sys.executable must be a Python interpreter",
                parameter="engine",
            ) from None
        return self._process

    def _died(self, seconds: float | None) -> ProcessDied:
        process = self._process
        if process is not None and seconds is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
        status = None if process is None else process.poll()
        words = "" if self._errors is None else last_words(self._errors)
        self._end()
        return ProcessDied(status, words, seconds)

    def _crash(self, death: ProcessDied) -> SplitError:
        if death.seconds is not None:
            what, fix = self.name, f"set {TIMEOUT_VARIABLE} to give it more seconds"
        else:
            what = f"the process of {self.name}"
            fix = "the model or its inputs make the engine crash; use another engine"
        return SplitError(ENGINE_CRASHED, f"{what} {death}", fix, parameter="engine")

    def _end(self) -> None:
        process, self._process = self._process, None
        errors, self._errors = self._errors, None
        if process is not None:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
            process.wait()
        if errors is not None:
            errors.close()


def _search_path() -> str:
    """Where this process finds modules, so that the other one finds the same ones."""
    return os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)


def timeout() -> float:
    """How many seconds an engine may take for one call: 600, or what the environment says.

    Raises:
        SplitError: TS703 if the variable holds no number of seconds.
    """
    text = os.environ.get(TIMEOUT_VARIABLE)
    if text is None:
        return DEFAULT_TIMEOUT
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
    """The process of an engine; the same one for each call.

    Args:
        name: The engine's name.
        adapter: The module whose ``run`` it calls.
    """
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
