"""An adapter that looks around, as engines do that come with an installer or a service of logs."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def run(action: str, *arguments: Any) -> Any:
    """Do what the action says."""
    return ACTIONS[action](*arguments)


def _write_files() -> list[str]:
    """Write where programs keep what is theirs; return the paths."""
    paths = [Path.home() / ".settings", Path(tempfile.mkdtemp()) / "draft"]
    for path in paths:
        path.write_text("mine")
    return list(map(str, paths))


def _python(code: str, base: bool) -> list[Any]:
    """Run code in another process of Python; return its exit status and what it printed."""
    interpreter = getattr(sys, "_base_executable", "") if base else sys.executable
    done = subprocess.run([interpreter, "-c", code], capture_output=True, text=True, check=False)
    return [done.returncode, done.stdout, done.stderr]


def _connect(port: int) -> str:
    """Return what a server on this machine says, or the failure."""
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as end:
            return end.recv(100).decode()
    except OSError as error:
        return type(error).__name__


def _own_server() -> str:
    """Return the address of the other end of a connection to itself."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname(), 5),
        server.accept()[0] as end,
    ):
        return str(end.getsockname()[0])


ACTIONS: dict[str, Any] = {
    "environment": lambda: dict(os.environ),
    "arguments": lambda: sys.argv,
    "files": _write_files,
    "python": _python,
    "network": lambda: os.readlink("/proc/self/ns/net"),  # noqa: PTH115
    "connect": _connect,
    "own server": _own_server,
    "user": lambda: [os.getuid(), os.getgid()],
    "die": os.abort,
}
