"""The start of the process of an engine: the program that `process` runs, by its path.

It sets the search path, leaves the network where the kernel allows that, and then runs `worker`.
The kernel allows that only in a process with one thread, so this program imports nothing of the
package: NumPy starts threads.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_SET_FLAGS, _UP_AND_RUNNING = 0x8914, 0x41


def confine() -> None:
    """Leave the network, and keep nothing of Python's own settings in the environment."""
    for name in [name for name in os.environ if name.startswith("PYTHON")]:
        del os.environ[name]  # what had to be set for this process was read when it started
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # a C library without `unshare`
            _leave_network()


def _leave_network() -> None:
    """Move this process into a network of its own, with nothing in it but its own loopback.

    An ordinary user may do so in a user namespace of their own, where the system has not forbidden
    it; OSError where it has.
    """
    import ctypes

    user, group = os.getuid(), os.getgid()
    unshare = ctypes.CDLL(None, use_errno=True).unshare
    if unshare(_NEW_NETWORK) != 0:
        if unshare(_NEW_USER | _NEW_NETWORK) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        maps = {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}
        for name, text in maps.items():
            Path("/proc/self", name).write_text(text, "ascii")
    _start_loopback()


def _start_loopback() -> None:
    import fcntl
    import socket
    import struct

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH14x", b"lo", _UP_AND_RUNNING)
        fcntl.ioctl(any_socket, _SET_FLAGS, request)


if __name__ == "__main__":
    sys.path[:] = sys.argv[5:]
    del sys.argv[5:]
    confine()
    from tensorsplit.engines.worker import main

    main(*sys.argv[1:])
