"""Models that stay loaded where an engine runs: in its process, or in this one.

An adapter loads a model and returns the function that runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from typing import Any
from weakref import finalize

from tensorsplit.engines.process import Death, EngineProcess, Reply, timeout
from tensorsplit.engines.worker import outcome, perform

_numbers = count(1)
_loaded: dict[int, Callable[..., object]] = {}
"""In the process of an engine: the function that runs each model."""


class LoadedModel:
    """A model in the process of an engine; it is loaded again where that was started again.

    Several models, and threads, may share a process.

    Args:
        process: The process.
        loader: The adapter that loads it, ``module:function``.
        arguments: What the adapter is called with.
    """

    def __init__(self, process: EngineProcess, loader: str, arguments: Sequence[object]) -> None:
        self.process = process
        self._loader = [loader, list(arguments)]
        self._number = next(_numbers)
        self._has_run = False
        self._end = finalize(self, _forget, process, self._number)
        self._end.atexit = False

    def ask(self, request: Sequence[object], seconds: float) -> Reply:
        """Do as `EngineProcess.ask`, of the function that runs the model."""
        unused: list[int] = []
        with suppress(IndexError):
            while True:
                unused.append(self.process.unused.popleft())
        for loader in (None, self._loader) if self._has_run else (self._loader,):
            call = (self._number, loader, unused, request)
            reply = self.process.ask(call, seconds, adapter=f"{__name__}:run")
            if reply.words is not None or reply.death is not None:
                return reply
            if isinstance(reply.result, list) and reply.result:
                self._has_run = True
                return Reply(reply.result[0])
        return Reply(death=Death(None))  # a process that was started again has run before

    def __call__(self, *request: object) -> Any:
        """Run the model, or raise the refusals of `EngineProcess.call`."""
        return self.ask(request, timeout()).value(self.process.name)

    def close(self) -> None:
        """Tell the process to forget the model."""
        self._end()


class LoadedHere:
    """As `LoadedModel`, in this very process."""

    def __init__(self, engine: str, loader: str, arguments: Sequence[object]) -> None:
        self._engine = engine
        self._run = self._value(perform, loader, arguments)

    def __call__(self, *request: object) -> Any:
        """Run the model, or raise the refusals of `EngineProcess.call`."""
        return self._value(self._run, *request)

    def close(self) -> None:
        """Forget the model."""
        self._run = None

    def _value(self, function: Any, *arguments: object) -> object:
        return Reply.of(outcome(function, arguments)).value(self._engine)


def run(
    number: int,
    loader: tuple[str, Sequence[object]] | None,
    unused: Sequence[int],
    request: Sequence[object],
) -> list[Any]:
    """Run a model in this process, an engine's, which loads it first if a loader is given.

    Returns the result in a list; nothing if the model is not loaded.
    """
    forget(*unused)
    if loader is not None:
        _loaded[number] = perform(*loader)
    return [_loaded[number](*request)] if number in _loaded else []


def forget(*numbers: int) -> None:
    """Forget models in this process, an engine's."""
    for number in numbers:
        _loaded.pop(number, None)


def _forget(process: EngineProcess, number: int) -> None:
    """Tell a process to forget a model, now or with its next call; the collector calls it, too."""
    process.unused.append(number)
    process.tell([number], f"{__name__}:forget")
