"""Loaded by workers of the tests: tasks take long, or a worker differs from the client."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import fsspec.implementations.local as local

import tensorsplit
from tensorsplit.files import cluster

run = cluster._run


def slow_run(*arguments: Any) -> int:
    while "TEST_ENDLESS" in os.environ:
        place = Path(arguments[0].token).parent / "late"
        place.mkdir(parents=True, exist_ok=True)
        (place / "file").write_bytes(b"late")
    time.sleep(float(os.environ.get("TEST_TASK_SECONDS", "0")))
    return run(*arguments)


slow_run.__name__ = slow_run.__qualname__ = "_run"
setattr(cluster, "_run", slow_run)  # noqa: B010 - of other parameters, to a type checker
tensorsplit.__version__ = os.environ.get("TEST_VERSION", tensorsplit.__version__)
if "TEST_OTHER_STORAGE" in os.environ:
    local.LocalFileSystem.cat_file = lambda *_, **__: b""
