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
from typing import TYPE_CHECKING, TypedDict
from weakref import finalize

from tensorsplit.core.dimensions import as_index
from tensorsplit.core.errors import LIMIT, USAGE, SplitError, show, show_bytes
from tensorsplit.core.given import as_real
from tensorsplit.engines.engine_names import OURS
from tensorsplit.engines.loaded import LoadedModel
from tensorsplit.engines.process import EngineProcess, Reply, timeout
from tensorsplit.model.feeds import as_mapping
from tensorsplit.model.reading import OnnxModel

if TYPE_CHECKING:
    from tensorsplit.engines.adapters import Outputs

_MOST = (1 << 63) - 1

_OUT_OF_MEMORY = re.compile(
    "bad_?alloc|MemoryError|out of memory|not enough memory|(unable|failed|failure) to alloc"
    "|can(no|')t alloc|resource temporarily unavailable",
    re.IGNORECASE,
)
_ENVIRONMENT = {"MALLOC_ARENA_MAX": "2"}  # each arena reserves 64 MB, used or not
_LOADER = "tensorsplit.engines.sessions:load_limited"
_begun: list[int] = []
_MODULES = {OURS: "tensorsplit.engines.sessions", "onnx-reference": "onnx.reference"}


class Limits(TypedDict, total=False):
    """The limits of a run, as `engines.run` takes them; None for none."""

    memory: int | None
    timeout: float | None


class LimitedModel:
    """A model in a process of its own, whatever the engine; refusals as of `engines.run`.

    The process does all of it, from reading the model on. TS605 if it takes more than the limits.
    """

    def __init__(
        self,
        engine: str,
        model: OnnxModel,
        lower: bool | str,
        memory: int | None,
        seconds: float | None,
    ) -> None:
        memory, seconds = _bytes_of(memory), _seconds_of(seconds)
        place = None if model.path is None else str(model.path.absolute())
        folder = None if model.folder is None else str(model.folder.absolute())
        content = place or bytes(model.original.SerializeToString())
        self._engine, self._memory, self._seconds = engine, memory, seconds
        self._process = EngineProcess(engine, f"{__name__}:begin", _ENVIRONMENT)
        arguments = engine, content, folder, lower, memory
        self._loaded = LoadedModel(self._process, _LOADER, arguments)
        self._end = finalize(self, self._process.close)
        self._end.atexit = False

    def run(self, inputs: Mapping[str, object]) -> Outputs:
        """Run the model within the limits."""
        given = as_mapping(inputs)
        usual = threading.TIMEOUT_MAX if self._engine == OURS else timeout()
        if self._process.pid is None:  # what importing the engine takes does not count
            self._process.call((self._engine, self._memory))
        reply = self._loaded.ask((given,), self._seconds or usual)
        _check_reply(self._engine, reply, self._memory, self._seconds)
        outputs: Outputs = reply.value(self._engine)
        return outputs

    def close(self) -> None:
        """End the process."""
        self._end()


def _bytes_of(memory: int | None) -> int | None:
    """Return how many bytes a process may take; TS703 for anything but an integer > 0."""
    if memory is None:
        return None
    count = as_index(memory)
    if count is None or count < 1:
        raise wrong_usage("memory", f"it is {show(memory)}", "give a number of bytes > 0")
    if sys.platform != "linux":
        problem = f"{sys.platform} limits the address space of no process (RLIMIT_AS)"
        raise wrong_usage("memory", problem, "leave it out")
    return count


def _seconds_of(seconds: object) -> float | None:
    """Return how long a run may take; TS703 for anything but a number > 0."""
    if seconds is None:
        return None
    number = as_real(seconds)
    if number is None or not 0 < number <= threading.TIMEOUT_MAX:
        raise wrong_usage("timeout", f"it is {show(seconds)}", "give a number of seconds > 0")
    return number


def wrong_usage(parameter: str, problem: str, fix: str) -> SplitError:
    """Return the refusal of an argument (TS703)."""
    return SplitError(USAGE, problem, fix, parameter=parameter)


def _check_reply(engine: str, reply: Reply, memory: int | None, seconds: float | None) -> None:
    """Refuse (TS605) a reply that the limits explain; that of the memory explains every death."""
    if reply.has_hung and seconds is not None:
        problem = f"{engine} {reply.death}: --timeout allows no more"
        fix = "allow more seconds, with --timeout (timeout= in Python)"
        raise SplitError(LIMIT, problem, fix, parameter="timeout")
    if memory is None or reply.has_hung:
        return
    reason = reply.error.problem if reply.error else reply.refusal or f"its process {reply.death}"
    if reply.death is not None or _OUT_OF_MEMORY.search(reason):
        detail = "" if reason.startswith("MemoryError") else f" ({reason})"
        problem = f"{engine} needs more than the {show_bytes(memory)} that --memory allows{detail}"
        fix = "allow more, with --memory (memory= in Python)"
        raise SplitError(LIMIT, problem, fix, parameter="memory")


def begin(engine: str, memory: int | None) -> None:
    """Import an engine in its process, and limit what that takes from now on; once."""
    import_module(_MODULES.get(engine, engine))
    if memory is None or sys.platform != "linux" or _begun:
        return
    import resource

    _begun.append(memory)
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = _MOST if hard == resource.RLIM_INFINITY else hard
    wanted = pages * resource.getpagesize() + memory
    resource.setrlimit(resource.RLIMIT_AS, (min(wanted, most), hard))
