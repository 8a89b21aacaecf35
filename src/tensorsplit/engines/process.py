"""Engines in processes of their own: whatever one does, the caller's process stays alive.

There is one process for each engine. It is started when it is first needed, used again and
again, started again after it died, and ends with the caller's process. It leads a session and a
process group of its own. All that it starts is ended with it: the group, and on Linux what has left
the group too.

Nothing that an engine does keeps the caller waiting: each call has a deadline, and a limit for the
memory that an answer takes and for what is printed.

An engine gets nothing of the caller's that it could spoil: no settings of Python or of a virtual
environment, a HOME and a TMPDIR of its own, which are removed with it, and, where the kernel allows
it, no network. ``pip``, if it runs that, takes nothing from an index.
"""

from __future__ import annotations

import atexit
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from multiprocessing.connection import Pipe
from pathlib import Path
from typing import IO, Any
from weakref import WeakSet

import msgspec

from tensorsplit.core.errors import (
    ENGINE_CRASHED,
    ENGINE_MISSING,
    ENGINE_REFUSED,
    INPUT_TYPE,
    KINDS,
    USAGE,
    Kind,
    SplitError,
    fix_of,
    show_bytes,
    words_of,
)
from tensorsplit.core.extras import install_command
from tensorsplit.engines import confined
from tensorsplit.engines.messages import (
    STARTED,
    Connection,
    TooLarge,
    pack_message,
    receive,
    send_packed,
)
from tensorsplit.engines.worker import MARK, descendants, kill_all

TIMEOUT_VARIABLE = "TENSORSPLIT_ENGINE_TIMEOUT"
"""The environment variable that holds how many seconds an engine may take for one call."""

DEFAULT_TIMEOUT = "600"
_LONGEST_LINE = 200
_MOST_PRINTED = 1 << 24
_PAUSE = 0.05
_OURS = re.compile(r"PYTHON|(PIP|XDG|UV|CONDA)_|VIRTUAL_ENV")
"""Variables that lead to the caller's Python, its packages and files."""

_SECONDS_TO_END = 1.0


@dataclass(frozen=True, slots=True)
class Death:
    """How the process of an engine died, or was stopped, before it answered."""

    status: int | None  # its exit status, -N for the signal N; None if it may not have ended
    stderr_tail: str = ""
    seconds: float | None = None  # what it was given, if it was stopped because it took longer
    most: int | None = None  # how many bytes its answer may take, if it takes more

    @property
    def has_answered(self) -> bool:
        """Whether it gave an answer, but none that can be read."""
        return self.status is None and self.seconds is None

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
        if self.most is not None:
            return f"gave an answer of more than {show_bytes(self.most)} and was stopped"
        detail = f", having said: {self.stderr_tail}" if self.stderr_tail else ""
        if self.status is None:
            return f"gave an invalid answer{detail}"
        if self.status >= 0:
            return f"ended with exit status {self.status}{detail}"
        name = self.signal
        number = "" if name.startswith("signal") else f" (signal {-self.status})"
        return f"was ended by {name}{number}{detail}"


class Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The reply to a call: the adapter's result, if none of the other fields is set."""

    result: Any = None
    refusal: str | None = None  # why the engine refused, in its own words
    # whether it reported that it lacks the element type, operator or opset altogether
    unsupported: bool = False
    # whether the refusal is that what it returned can't be passed on
    has_returned: bool = False
    missing: str | None = None  # why the engine can't be imported
    error: SplitError | None = None  # a refusal of this package's own
    death: Death | None = None  # how the process died of the call

    @classmethod
    def of(cls, content: Any) -> Reply:
        """Return the reply that a process sent; any exception if it is not one."""
        if "death" in content:
            raise ValueError  # of which only this process tells
        return msgspec.convert(content, cls, dec_hook=_refusal_of)

    @property
    def has_hung(self) -> bool:
        """Whether the process was stopped because it took too long."""
        return self.death is not None and self.death.seconds is not None

    @property
    def words(self) -> str | None:
        """The words of a refusal of any kind; None if there is a result or a death."""
        return f"SplitError: {self.error}" if self.error else self.refusal or self.missing

    def value(self, engine: str) -> Any:
        """Return the result, or the refusal of `EngineProcess.call` that the reply stands for."""
        if self.error is not None:
            raise self.error
        if self.missing is not None:
            fix = f"install it, with {install_command(engine)}"
            raise _error(ENGINE_MISSING, f"{engine} can't be imported: {self.missing}", fix)
        if self.refusal is not None:
            raise _error(ENGINE_REFUSED, f"{engine} says: {self.refusal}")
        if self.has_hung:
            fix = f"set {TIMEOUT_VARIABLE} to give it more seconds"
            raise _error(ENGINE_CRASHED, f"{engine} {self.death}", fix)
        if self.death is not None:
            fix = "the model or its inputs make the engine crash; use another engine"
            raise _error(ENGINE_CRASHED, f"the process of {engine} {self.death}", fix)
        return self.result


def _refusal_of(_type: type, fields: object) -> SplitError:
    """Return a refusal of this package's own, as `worker.outcome` passes it on."""
    record = msgspec.convert(fields, _RefusalRecord)
    wants = {name: range(*fit) for name, fit in record.wants.items()}
    return SplitError(
        KINDS[record.code],
        record.problem,
        record.fix,
        parameter=record.parameter,
        operator=record.operator,
        node=record.node,
        wants=wants,
    )


class _RefusalRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A refusal as it is passed on; of what would be right each range's start, stop and step."""

    code: str
    problem: str
    fix: str
    parameter: str | None
    operator: str | None
    node: str | None
    wants: dict[str, tuple[int, int, int]]


class EngineProcess:
    """The process of one engine; calls from several threads take turns.

    The name is for messages. The adapter, which the process calls, is ``module:function``, or a
    module with a function ``run``. The environment is added to that of this process. `most` is
    the most bytes that an answer may take; None stands for half of the machine's memory, because
    the engine holds the answer too. Another interpreter than this one may be named by its path
    (see `elsewhere`).
    """

    def __init__(
        self,
        name: str,
        adapter: str,
        environment: Mapping[str, str] | None = None,
        most: int | None = None,
        python: str = "",
    ) -> None:
        self.name = name
        self._adapter = adapter
        self._environment = dict(environment or {})
        self._most = _half_of_memory() if most is None else most
        self._python = python
        self._lock = threading.Lock()
        self._running: _Running | None = None
        self._is_stopped = False
        self._calls = 0
        self.unused: deque[int] = deque()
        """The numbers of models that the process may forget; see `loaded`."""
        _all.add(self)

    @property
    def pid(self) -> int | None:
        """The process's number, or None while there is no process."""
        return None if self._running is None else self._running.process.pid

    def call(self, request: Iterable[object], *, adapter: str = "") -> Any:
        """Call the adapter, or another one, with arguments that `messages` can send.

        SplitError TS602 if the engine can't be imported, TS603 if it refuses, TS604 if its process
        dies or takes longer than `timeout`; whatever the adapter itself refuses.
        """
        return self.ask(request, timeout(), adapter=adapter).value(self.name)

    def ask(self, request: Iterable[object], seconds: float, *, adapter: str = "") -> Reply:
        """Do as `call`, but return any reply within so many seconds.

        SplitError TS508 if the request can't be passed on; TS604 if no process can be started, or
        after `stop`.
        """
        with self._lock:
            self._calls += 1
            try:
                call = pack_message([self._calls, adapter or self._adapter, list(request)])
            except Exception as error:  # noqa: BLE001 - what is fed may be of any class
                raise SplitError(
                    INPUT_TYPE,
                    f"the inputs can't be passed to {self.name}: {error}",
                    "feed arrays, lists of arrays, or None",
                    parameter="inputs",
                ) from None
            for _ in range(2):
                if self._running is None or self._running.process.poll() is not None:
                    self._end()
                    self._running = self._start()
                if self._is_stopped:  # checked only now: `stop` may have come before the start
                    self._end()
                    raise _error(ENGINE_CRASHED, f"the process of {self.name} was stopped")
                try:
                    reply, has_begun = self._running.exchange(
                        self._calls, call, seconds, self._most
                    )
                except BaseException:
                    self._end()  # it is still at work, and would answer a later question
                    raise
                if reply.death is not None:
                    self._end()
                if has_begun:
                    break  # else it was gone before it could read the call: ask a new one
            return reply

    def tell(self, request: Iterable[object], adapter: str) -> None:
        """Call an adapter without waiting for an answer, if the process has nothing to do.

        Never waits: not for another thread, nor for the answer, which the next call drops.
        """
        if not self._lock.acquire(blocking=False):
            return
        try:
            if self._running is not None and self._running.process.poll() is None:
                self._calls += 1
                send_packed(self._running.pipe, pack_message([self._calls, adapter, list(request)]))
        except OSError:
            pass  # it is gone
        finally:
            self._lock.release()

    def close(self) -> None:
        """End the process, if there is one."""
        with self._lock:
            self._end()

    def stop(self) -> None:
        """End the process at once, even if it works for another thread, and start no other."""
        self._is_stopped = True
        running = self._running
        if running is not None:
            running.end()

    def forget(self) -> None:
        """Leave the process to the process that started it; this one is a fork of that."""
        self._lock = threading.Lock()
        self._is_stopped = False
        running, self._running = self._running, None
        if running is not None:
            running.close()
            running.process.returncode = 0  # not ours to wait for

    def _start(self) -> _Running:
        try:
            return _Running.start(self.name, self._environment, self._python)
        except OSError as error:  # no temporary files, or no pipes
            problem = f"the process of {self.name} can't be started: {words_of(error)}"
            fix = fix_of(error, "make room for temporary files")
            raise _error(ENGINE_CRASHED, problem, fix) from None

    def _end(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.end()
            running.close()


@dataclass(slots=True)
class _Running:
    """A process that runs, and what ties it to this one."""

    process: subprocess.Popen[bytes]
    pipe: Connection
    errors: IO[bytes]
    mark: str  # what it and all that it starts have in their environment
    folder: Path  # its HOME and TMPDIR, which are removed with it
    lifeline: int | None  # a pipe that is never written to: its end is that of this process

    @classmethod
    def start(cls, name: str, environment: Mapping[str, str], python: str) -> _Running:
        """Start a process; SplitError TS604 if that can't be done."""
        with ExitStack() as undoing, ExitStack() as closing:
            folder = Path(tempfile.mkdtemp(prefix="tensorsplit-engine-"))
            undoing.callback(shutil.rmtree, folder, ignore_errors=True)
            ours, theirs = Pipe()
            undoing.callback(ours.close)
            closing.callback(theirs.close)
            errors = undoing.enter_context(tempfile.TemporaryFile())
            mark = f"{os.environ.get(MARK, '')}/{secrets.token_hex(8)}"
            watched = lifeline = None
            if sys.platform != "win32":
                watched, lifeline = os.pipe()
                closing.callback(os.close, watched)
                undoing.callback(os.close, lifeline)
            command = [sys.executable or "", "-P", "-s", confined.__file__]
            numbers = str(theirs.fileno()), str(watched)
            try:
                process = subprocess.Popen(  # noqa: S603 - this package's own module
                    [*command, *numbers, str(folder), python, *_search_path()],
                    stdin=subprocess.DEVNULL,
                    stdout=errors,
                    stderr=errors,
                    env={**_environment(folder), **environment, MARK: mark},
                    **_inheriting(theirs, watched),
                )
            except OSError as error:
                problem = f"the process of {name} can't be started: {words_of(error)}"
                fix = fix_of(error, "sys.executable must be a Python interpreter")
                raise _error(ENGINE_CRASHED, problem, fix) from None
            undoing.pop_all()
            return cls(process, ours, errors, mark, folder, lifeline)

    def exchange(
        self, number: int, call: list[bytes | memoryview], seconds: float, most: int
    ) -> tuple[Reply, bool]:
        """Return the reply to a call within so many seconds, and whether it was read.

        `most` is the most bytes of memory that the answer may take.
        """
        done, expired = threading.Event(), threading.Event()
        end = time.monotonic() + seconds  # from now on: a busy machine may run the thread later
        watcher = threading.Thread(target=self._watch, args=(end, done, expired), daemon=True)
        watcher.start()
        reply, has_begun, death = None, False, None
        try:
            send_packed(self.pipe, call)
            has_begun = self._answer(number, most) == STARTED
            reply = Reply.of(self._answer(number, most))
        except TooLarge:
            has_begun, death = True, Death(None, most=most)
        except Exception:  # noqa: BLE001, S110 - an invalid answer is a death, see below
            pass
        finally:
            done.set()
            watcher.join()
        if expired.is_set():
            return Reply(death=Death(self.process.poll(), self._stderr_tail(), seconds)), True
        if reply is None:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(_SECONDS_TO_END)
            reply = Reply(death=death or Death(self.process.poll(), self._stderr_tail()))
        return reply, has_begun

    def _answer(self, number: int, most: int) -> Any:
        """Return the process's answer to a call; answers to earlier ones are dropped.

        ValueError for an answer to a call that there was not yet.
        """
        while True:
            while not self.pipe.poll(_PAUSE):
                pass  # a Ctrl-C that came to another thread is seen only between two waits
            answered, content = receive(self.pipe, most)
            if answered == number:
                return content
            if answered not in range(number):
                raise ValueError

    def _watch(self, end: float, done: threading.Event, expired: threading.Event) -> None:
        """Kill all at a time, or when the process has ended and others live on.

        These may hold the other end of the pipe. An answer that is late counts as none, so that the
        same limit gives the same result on a busy machine.
        """
        while True:
            is_done = done.wait(min(_PAUSE, max(0.0, end - time.monotonic())))
            if time.monotonic() >= end:
                expired.set()
            elif is_done:
                return
            elif self.process.poll() is None:
                self._drop_prints()
                continue
            self._kill()
            return

    def _drop_prints(self) -> None:
        """Empty the file of what was printed when it gets large; writing goes on at its start."""
        with suppress(OSError):
            if os.fstat(self.errors.fileno()).st_size > _MOST_PRINTED:
                os.ftruncate(self.errors.fileno(), 0)

    def _kill(self) -> None:
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
        is_known = self.process.returncode is None  # else another may have its number
        started = descendants(self.process.pid) if is_known else []
        self._kill()
        with suppress(subprocess.TimeoutExpired):  # as long as it waits for a broken disk
            self.process.wait(_SECONDS_TO_END)
        if sys.platform != "win32":
            kill_all(self.process.pid, self.mark, started)
        shutil.rmtree(self.folder, ignore_errors=True)

    def close(self) -> None:
        """Close the pipes and files that tie the process to this one."""
        self.pipe.close()
        self.errors.close()
        if self.lifeline is not None:
            os.close(self.lifeline)

    def _stderr_tail(self) -> str:
        """Return the last line of the error stream."""
        self.errors.seek(max(0, self.errors.seek(0, os.SEEK_END) - 2000))
        lines = self.errors.read().decode("utf-8", "replace").split("\n")
        written = [line.strip() for line in lines if line.strip()]
        return written[-1][:_LONGEST_LINE] if written else ""


def _error(kind: Kind, problem: str, fix: str = "") -> SplitError:
    return SplitError(kind, problem, fix, parameter="engine")


def _half_of_memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError, OSError):  # which only some systems tell
        return 1 << 33


def _inheriting(pipe: Connection, watched: int | None) -> dict[str, Any]:
    """Return the arguments of `Popen` with which the process inherits pipes and leads a session.

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
        return {"pass_fds": [number, watched], "start_new_session": True}


def _search_path() -> list[str]:
    """Return where this process finds modules, so that the other one finds the same ones."""
    return [str(Path(entry).absolute()) for entry in sys.path]


def _environment(folder: Path) -> dict[str, str]:
    """Return the environment of an engine's process, whose own files are in a folder."""
    kept = {name: text for name, text in os.environ.items() if not _OURS.match(name)}
    own = dict.fromkeys(("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP"), str(folder))
    return {**kept, **own, "PIP_NO_INDEX": "1", "PIP_REQUIRE_VIRTUALENV": "1"}


def timeout() -> float:
    """Return how many seconds an engine may take for a call; TS703 for anything but a number."""
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
_all: WeakSet[EngineProcess] = WeakSet()
_table_lock = threading.Lock()


def process_of(name: str, adapter: str = "") -> EngineProcess:
    """Return the process of an engine; the same one for each call."""
    with _table_lock:
        return _processes.setdefault(name, EngineProcess(name, adapter))


def _stop_all() -> None:
    for process in list(_all):
        process.stop()


def _forget_all() -> None:
    """Forget all processes in a fork: they belong to the process that forked."""
    global _table_lock  # noqa: PLW0603 - a thread that is no more may have held it
    _table_lock = threading.Lock()
    for process in list(_all):
        process.forget()


atexit.register(_stop_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
