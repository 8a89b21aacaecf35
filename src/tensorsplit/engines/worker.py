"""The program that runs an engine in a process of its own (``python -m``, started by `process`).

What an engine prints, to whichever stream, goes to the error stream: the output stream carries
the replies.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from importlib import import_module

from tensorsplit.core.errors import SplitError
from tensorsplit.engines.wire import STARTED, Call, EngineRefusal, Reply, pack, receive, send

_LONGEST = 600


def main() -> None:
    """Answer calls until the package's process closes the pipe, or is gone."""
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    calls = os.fdopen(os.dup(0), "rb", buffering=0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    _keep_no_core_dumps()
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    while True:
        try:
            call = receive(calls)
        except EOFError:
            return
        send(replies, pack(STARTED))
        _empty_error_stream()
        send(replies, _packed(_answer(call)))


def _packed(reply: Reply) -> bytes:
    try:
        return pack(reply)
    except Exception as error:  # noqa: BLE001 - an engine may return anything
        return pack(Reply(refusal=f"what it returns can't be passed on: {_short(error)}"))


def _answer(call: Call) -> Reply:
    try:
        adapter = import_module(call.adapter)
        return Reply(result=adapter.run(call.request))
    except SplitError as error:
        return Reply(error=error)
    except ImportError as error:
        return Reply(missing=_short(error))
    except EngineRefusal as error:
        return Reply(refusal=str(error))
    except Exception as error:  # noqa: BLE001 - an engine may raise anything
        return Reply(refusal=f"{type(error).__name__}: {_short(error)}")


def _short(error: BaseException) -> str:
    """The first lines of an engine's message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = " ".join(lines[:6])
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _end_with(parent: int) -> None:
    """An engine that hangs reads no end of file; so watch for the other process to go."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(0)


def _empty_error_stream() -> None:
    """Keep what this call writes and no more; the stream is a file that nobody else writes to."""
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
