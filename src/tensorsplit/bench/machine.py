"""What the figures depend on: the machine, the versions, and how they were taken."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tensorsplit import native
from tensorsplit.bench.floor import THREADS
from tensorsplit.bench.peers import installed
from tensorsplit.bench.timing import Effort

_CPU_INFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def describe(effort: Effort) -> dict[str, Any]:
    """The machine, the versions of all that is timed, what copies, and the method.

    Args:
        effort: How long each workload was measured.
    """
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": {
            "cpu": _cpu(),
            "cores": len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count(),
            "caches": _caches(),
            "system": f"{platform.system()} {platform.machine()}",
        },
        "versions": {
            "python": platform.python_version(),
            **installed(),
        },
        "native": native.in_use,
        "method": {
            "threads": THREADS,
            "rounds": effort.rounds or f"until the medians settle, at most {effort.seconds:g} s",
            "ratio": "to the baseline of the same round; median, 10th and 90th percentile",
        },
    }


def _cpu() -> str:
    """The name of the processor, as far as the system tells."""
    if _CPU_INFO.exists():
        for line in _CPU_INFO.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def _caches() -> dict[str, str]:
    """The size of each cache that holds data, where Linux tells."""
    found = {}
    for folder in sorted(_CACHES.glob("index*")):
        facts = {
            name: (folder / name).read_text(encoding="ascii").strip()
            for name in ("level", "type", "size")
            if (folder / name).exists()
        }
        if facts.get("type") in ("Data", "Unified") and "size" in facts:
            found[f"L{facts.get('level')}"] = facts["size"]
    return found
