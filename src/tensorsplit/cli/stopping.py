"""Signals that end a command: Ctrl-C, SIGTERM and SIGHUP, at whatever moment they come.

This file is loaded before all others of the command line, and loads little itself.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import Any, NoReturn

INTERRUPTED = 130
LINE = "tensorsplit: interrupted\n"
"""The message after Ctrl-C."""

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
_SECONDS_TO_CLEAN_UP = 1.0
_NEVER = float("inf")
_LOADING = ("ExtensionFileLoader.create_module", "ExtensionFileLoader.exec_module")


class Stopped(BaseException):
    """The command is to end with an exit status, and to clean up."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Stopping:
    """Raises `Stopped` in its block when a signal comes, unless the caller ignores that signal.

    A clean-up that has begun runs to its end: for a second, further signals are only noted. Where
    Python can't pass on what is raised, as in ``__del__``, it is raised once more; and a module in
    C is loaded first, as that of NumPy prints what is raised meanwhile.

    Attributes:
        status: The exit status for the last signal that came, 0 if none did.
    """

    def __init__(self) -> None:
        self.status = 0
        self._heard = -_NEVER

    def __enter__(self) -> Stopping:
        self._hook, sys.unraisablehook = sys.unraisablehook, self._raise_again
        self._before = _replace(self._stop)
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        restore(self._before)
        sys.unraisablehook = self._hook

    def end(self) -> None:
        """Note signals from now on, and do nothing else."""
        self._heard = _NEVER

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.status = 128 + number
        now = time.monotonic()
        if now < self._heard + _SECONDS_TO_CLEAN_UP:
            return
        if _loads_extension(frame):
            self._send_again()
        else:
            self._heard = now
            raise Stopped(self.status)

    def _raise_again(self, unraisable: sys.UnraisableHookArgs) -> None:
        if not isinstance(unraisable.exc_value, Stopped):
            self._hook(unraisable)
        elif self._heard < _NEVER:
            self._heard = -_NEVER
            self._send_again()

    def _send_again(self) -> None:
        _thread.start_new_thread(self._send_soon, (signal.Signals(self.status - 128),))

    def _send_soon(self, number: signal.Signals) -> None:
        time.sleep(0.01)  # by then the main thread has left what passes nothing on
        if self._heard == _NEVER:  # nobody waits for it any more
            return
        if sys.platform == "win32":
            _thread.interrupt_main(number)
        else:  # which wakes it where it waits
            signal.pthread_kill(threading.main_thread().ident or 0, number)


def _loads_extension(frame: FrameType | None) -> bool:
    """Return whether a module in C is being loaded."""
    while frame is not None:
        if frame.f_code.co_qualname in _LOADING:
            return True
        frame = frame.f_back
    return False


def leave_at_once() -> dict[int, object]:
    """End the process at once if a signal comes from now on; returns what was done before."""
    return _replace(_leave)


def _leave(number: int, _: FrameType | None) -> NoReturn:
    status = 128 + number
    try:
        if status == INTERRUPTED:
            os.write(2, LINE.encode())
    finally:
        os._exit(status)


_USUAL = (signal.SIG_DFL, signal.default_int_handler, _leave)


def _replace(handler: Callable[[int, FrameType | None], None]) -> dict[int, Any]:
    """Handle the signals that nobody else handles or ignores; returns what was done before."""
    found = {number: signal.getsignal(number) for number in _numbers()}
    before = {number: usual for number, usual in found.items() if usual in _USUAL}
    try:
        for number in before:
            signal.signal(number, handler)
    except ValueError:  # in a thread, which gets no signals
        return {}
    return before


def restore(before: dict[int, Any]) -> None:
    """Handle signals as before."""
    for number, handler in before.items():
        signal.signal(number, handler)


def _numbers() -> Iterator[int]:
    return (number for name in _NAMES if (number := getattr(signal, name, None)) is not None)
