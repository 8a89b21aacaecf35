"""The processors of this machine: their name, and how many of them this process may use."""

from __future__ import annotations

import math
import platform
import re
from collections.abc import Iterator
from pathlib import Path

__all__ = ["processor_name", "processors_allowed"]


def processor_name(root: Path = Path("/")) -> str:
    """Return the processor's name, as far as the system gives it; with its model if unnumbered.

    A virtual machine may call processors of several generations the same.

    Args:
        root: The folder in which ``proc`` is.
    """
    first, _, _ = _read(root / "proc/cpuinfo").partition("\n\n")
    pairs = (line.partition(":") for line in first.splitlines())
    fields = {name.strip(): value.strip() for name, _, value in pairs}
    name = fields.get("model name") or platform.processor() or platform.machine()
    if "cpu family" in fields and not re.search(r"\d", name):
        name += f" (family {fields['cpu family']}, model {fields.get('model', 'unknown')})"
    return name


def processors_allowed(root: Path = Path("/")) -> int | None:
    """Return as many processors as the quota of this process's control groups keeps busy.

    A quota of one and a half processors keeps two busy for most of the time, so it is rounded up.
    Groups of Linux are looked for where systemd and container runtimes mount them, below
    ``/sys/fs/cgroup``.

    Args:
        root: The folder in which ``proc`` and ``sys`` are.

    Returns:
        A number from 1 on; None where there is no such limit, or none can be read.
    """
    quotas = [quota for folder in _groups(root) if (quota := _read_quota(folder)) is not None]
    return max(1, math.ceil(min(quotas))) if quotas else None


def _groups(root: Path) -> Iterator[Path]:
    """Yield the folders of the groups of this process that may limit it, and of those above."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        mount = root / "sys/fs/cgroup" / controllers
        group = mount / path.lstrip("/")  # not there if a container sees its own group as the root
        yield from [group, *group.parents][: len(group.parts) - len(mount.parts) + 1]


def _read_quota(folder: Path) -> float | None:
    """Return the processors that one group allows, in version 2 or in version 1."""
    quota, _, period = _read(folder / "cpu.max").partition(" ")
    if not period:
        quota = _read(folder / "cpu.cfs_quota_us")
        period = _read(folder / "cpu.cfs_period_us")
    try:
        return int(quota) / int(period) if int(quota) > 0 else None
    except (ValueError, ZeroDivisionError):  # "max" in version 2
        return None


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
