"""Running a model within limits of memory and time: in a process of its own, whatever the engine.

The process does all of it, from reading the model on, so that it can be ended at any point.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from onnx import ModelProto

from tensorsplit.core.errors import LIMIT, USAGE, SplitError, show
from tensorsplit.engines.outside import run_outside
from tensorsplit.engines.process import EngineProcess, Reply, timeout
from tensorsplit.engines.worker import perform
from tensorsplit.model.graph.reading import OnnxModel, read_model
from tensorsplit.model.run.evaluator import run_onnx

OURS = "numpy"

_MOST = (1 << 63) - 1

_OUT_OF_MEMORY = re.compile(
    "bad_?alloc|MemoryError|out of memory|not enough memory|(unable|failed|failure) to alloc"
    "|can(no|')t alloc|resource temporarily unavailable",
    re.IGNORECASE,
)
_ENVIRONMENT = {"MALLOC_ARENA_MAX": "2"}  # each arena reserves 64 MB, used or not
_MODULES = {OURS: "onnx", "onnx-reference": "onnx.reference"}


def run_limited(
    engine: str,
    model: OnnxModel,
    inputs: Mapping[str, Any],
    memory: int | None,
    seconds: float | None,
) -> dict[str, Any]:
    """Run a model within limits; refusals as of `engines.run`, TS605 if it takes more."""
    _check_limits(memory, seconds)
    place = None if model.path is None else str(model.path.absolute())
    folder = None if model.folder is None else str(model.folder.absolute())
    content = place or bytes(model.original.SerializeToString())
    usual = threading.TIMEOUT_MAX if engine == OURS else timeout()
    process = EngineProcess(engine, f"{__name__}:run_here", _ENVIRONMENT)
    try:
        process.call((_MODULES.get(engine, engine), memory), adapter=f"{__name__}:begin")
        reply = process.ask((engine, content, folder, dict(inputs)), seconds or usual)
        _check_reply(engine, reply, memory, seconds)
        outputs: dict[str, Any] = process.result(reply)
    finally:
        process.close()
    return outputs


def _check_limits(memory: int | None, seconds: float | None) -> None:
    if memory is not None and (type(memory) is not int or memory < 1):
        raise _unusable("memory", f"it is {show(memory)}", "give a number of bytes > 0")
    if memory is not None and sys.platform != "linux":
        problem = f"{sys.platform} limits the address space of no process (RLIMIT_AS)"
        raise _unusable("memory", problem, "leave it out")
    is_number = isinstance(seconds, (int, float)) and 0 < seconds <= threading.TIMEOUT_MAX
    if seconds is not None and not is_number:
        raise _unusable("timeout", f"it is {show(seconds)}", "give a number of seconds > 0")


def _unusable(parameter: str, problem: str, fix: str) -> SplitError:
    return SplitError(USAGE, problem, fix, parameter=parameter)


def _check_reply(engine: str, reply: Reply, memory: int | None, seconds: float | None) -> None:
    """Refuse (TS605) a reply that the limits explain; that of the memory explains every death."""
    is_late = reply.death is not None and reply.death.seconds is not None
    if is_late and seconds is not None:
        problem = f"{engine} {reply.death}: --timeout allows no more"
        fix = "allow more seconds, with --timeout (timeout= in Python)"
        raise SplitError(LIMIT, problem, fix, parameter="timeout")
    if memory is None or is_late:
        return
    said = reply.error.problem if reply.error else reply.refusal or f"its process {reply.death}"
    if reply.death is not None or _OUT_OF_MEMORY.search(said):
        problem = f"{engine} needs more than the {memory:,} bytes that --memory allows ({said})"
        fix = "allow more, with --memory (memory= in Python)"
        raise SplitError(LIMIT, problem, fix, parameter="memory")


def begin(module: str, memory: int | None) -> None:
    """Import an engine in its process, and limit what that takes from now on."""
    import_module(module)
    if memory is not None and sys.platform == "linux":
        import resource

        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = _MOST if hard == resource.RLIM_INFINITY else hard
        wanted = pages * resource.getpagesize() + memory
        resource.setrlimit(resource.RLIMIT_AS, (min(wanted, most), hard))


def run_here(
    engine: str, content: str | bytes, folder: str | None, inputs: Mapping[str, Any]
) -> dict[str, Any]:
    """Run a model, by its path or its bytes and the folder of its data, in this very process."""
    if isinstance(content, str):
        model = read_model(content)
    else:
        model = OnnxModel(ModelProto.FromString(content), None if folder is None else Path(folder))
    if engine == OURS:
        return run_onnx(model, inputs)
    return run_outside(engine, model, inputs, _Here)


class _Here(EngineProcess):
    """Stands for the process of an engine, where this is that process."""

    def call(self, request: Any, *, adapter: str = "") -> Any:
        """What the adapter, or another one, returns or raises."""
        return perform(adapter or self._adapter, request)
