"""Sessions: a model that is read, checked and compiled once, for many runs."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np
from onnx import ModelProto

from tensorsplit.arrays import as_switch
from tensorsplit.core.errors import SplitWarning, show
from tensorsplit.core.given import as_path
from tensorsplit.engines.engine_names import AUTO, OURS, check_engine, resolved
from tensorsplit.engines.limits import LimitedModel, begin, wrong_usage
from tensorsplit.engines.outside import OutsideModel
from tensorsplit.model.feeds import DeclaredInput
from tensorsplit.model.lower import LoweredIr, lowered
from tensorsplit.model.profiles import load
from tensorsplit.model.reading import ModelLike, OnnxModel, read_model
from tensorsplit.model.run.evaluator import CompiledModel

if TYPE_CHECKING:
    from tensorsplit.engines.adapters import Outputs

_TARGETS = {"onnx-reference": "portable"}


class _Runner(Protocol):
    """A runner of the model in one of the ways."""

    def run(self, inputs: Mapping[str, object]) -> Outputs: ...

    def close(self) -> None: ...


class Session:
    """A model that is ready to run, made by `tensorsplit.session`; a context manager.

    Threads may share a session. After a fork both processes can use it: each has engines of its
    own. A session that is not closed is cleaned up when nothing refers to it.

    Attributes:
        engine: The name of the engine; never ``auto``.
        inputs: The declaration of each input, in the order of the model: `name`, `element_type`,
            `shape`, `kind` (such as ``sequence``), `has_default`. A field that the model does not
            declare is None.
        outputs: The same of each output.
    """

    def __init__(
        self,
        model: ModelLike,
        engine: str = AUTO,
        *,
        lower: bool | str | os.PathLike[str] = False,
        isolate: bool | None = None,
        memory: int | None = None,
        timeout: float | None = None,
    ) -> None:
        named = check_engine(engine)
        content = read_model(model)
        self.engine = resolved(named, content)
        self.inputs: tuple[DeclaredInput, ...] = content.inputs
        self.outputs: tuple[DeclaredInput, ...] = content.outputs
        target = lower if type(lower) is bool else as_path(lower)
        if target is None:
            raise wrong_usage("lower", f"it is {show(lower)}", "give True, False or a target")
        if type(target) is str:
            load(target)  # an unknown one is refused, also by an engine that needs none
        if isolate is not None:
            isolate = as_switch(isolate, "isolate")
        is_limited = memory is not None or timeout is not None
        if is_limited and isolate is False:
            raise wrong_usage(
                "isolate", "it is False, but memory and timeout need a process", "leave it out"
            )
        self._runner: _Runner | None
        if is_limited or (isolate and self.engine == OURS):
            self._runner = LimitedModel(self.engine, content, target, memory, timeout)
        elif self.engine == OURS:
            self._runner = CompiledModel(content)
        else:
            made = _lowered(content, target, self.engine)
            self._runner = OutsideModel(
                self.engine, content, made, is_isolated=isolate is not False
            )

    def run(self, inputs: Mapping[str, object]) -> Outputs:
        """Run the model; see `tensorsplit.run` for what goes in and comes out.

        Args:
            inputs: By name, an array for each input; a list of arrays for a sequence, None for an
                optional that is empty. An input with an initializer may be left out.

        Returns:
            By name, in the graph's order, an array for each output, which can be written to; with
            the engine ``tensorsplit`` it may be a view of what was fed.

        Raises:
            SplitError: TS703 if the session is closed; else as `tensorsplit.run`. After TS604 and
                TS605 the next call starts the engine again.
        """
        if self._runner is None:
            raise wrong_usage("session", "it is closed", "make a new one")
        outputs = self._runner.run(inputs)
        return {name: _own(value) for name, value in outputs.items()}

    def check(self) -> None:
        """Refuse (TS1xx to TS3xx, TS511) split nodes that are wrong whatever is fed, and run."""
        validator = getattr(self._runner, "validator", None)
        if validator is not None:
            validator.check_alone()

    def close(self) -> None:
        """Tell the engine to forget the model; there is nothing to run any more."""
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        names = ", ".join(show(entry.name) for entry in self.inputs[:6])
        state = "closed" if self._runner is None else f"inputs: {names or 'none'}"
        return f"<Session: {self.engine}, {state}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Session can't be copied or pickled; make one in each process")


def run(
    model: ModelLike,
    inputs: Mapping[str, object],
    *,
    engine: str = OURS,
    memory: int | None = None,
    timeout: float | None = None,
) -> Outputs:
    """Run a model once, as `tensorsplit.run` does."""
    with Session(model, engine, memory=memory, timeout=timeout) as made:
        return made.run(inputs)


def _lowered(model: OnnxModel, lower: bool | str, engine: str) -> OnnxModel | LoweredIr:
    """Return the model as the engine gets it."""
    if lower is False or engine == OURS:
        return model
    target = _TARGETS.get(engine, engine) if lower is True else lower
    found = lowered(model, target)
    for text in found.report.warnings:
        warnings.warn(text, SplitWarning, stacklevel=4)
    if not found.report.changes:
        return model
    made = found.made
    return made if isinstance(made, LoweredIr) else OnnxModel(made, model.folder)


def load_limited(
    engine: str, content: str | bytes, folder: str | None, lower: bool | str, memory: int | None
) -> Callable[[Mapping[str, object]], dict[str, object]]:
    """Load a model in this process, which is that of a `LimitedModel`.

    The model is its path, or its bytes and the folder of its data.
    """
    begin(engine, memory)
    model: ModelLike = (
        content
        if isinstance(content, str)
        else OnnxModel(ModelProto.FromString(content), None if folder is None else Path(folder))
    )
    return Session(model, engine, lower=lower, isolate=False).run


def _own(value: Any) -> object:
    """Return an output that is the caller's: constants of the model are read-only."""
    if isinstance(value, list):
        return [_own(item) for item in value]
    is_constant = isinstance(value, np.ndarray) and not value.flags.writeable
    return value.copy() if is_constant else value
