"""Where lowered models run: in our own engine at once, or in another one in its own process."""

from __future__ import annotations

from typing import Any, Protocol

import onnx
import pytest

import tensorsplit as ts
from tensorsplit.model.profiles import Target


def lowered_for(target: Target, model: onnx.ModelProto) -> onnx.ModelProto:
    """Lower a model to one that onnx takes, and that has nothing left to lower."""
    lowered = ts.lower(model, target=target)
    onnx.checker.check_model(lowered, full_check=True)
    assert ts.lower(lowered, target=target) == lowered
    return lowered


class Runner(Protocol):
    """Runs a model with several feeds, whatever comes of each."""

    def call(self, request: list[Any]) -> Any:
        """Return the outputs in order for each feed, or why it is refused."""

    def close(self) -> None:
        """Run no more."""


class OwnEngine:
    """Runs a model in our own engine."""

    def call(self, request: list[Any]) -> Any:
        """Return the outputs in order for each feed, or why it is refused."""
        _, model, feeds, _ = request
        loaded = onnx.load_from_string(model)
        return [_outputs(loaded, feed) for feed in feeds]

    def close(self) -> None:
        """Do nothing: there is no process."""


def _outputs(model: onnx.ModelProto, feed: dict[str, Any]) -> list[Any] | str:
    names = {each.name for each in model.graph.input}
    try:
        return list(ts.run(model, {name: feed[name] for name in feed if name in names}).values())
    except ts.SplitError as error:
        return str(error)


def with_own(*engines: str) -> pytest.MarkDecorator:
    """Run a test with our own engine, which has to take every lowered model, and with others."""
    others = [pytest.param(engine, marks=pytest.mark.engine(engine)) for engine in engines]
    return pytest.mark.parametrize("engine", ["tensorsplit", *others])
