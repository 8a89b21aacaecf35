"""OpenVINO in a process that has one processor to itself."""

from __future__ import annotations

import os
from typing import Any

from tensorsplit.engines.adapters import run_openvino


def run(*request: Any) -> dict[str, Any]:
    """The outputs, computed by one thread."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return run_openvino(*request)
