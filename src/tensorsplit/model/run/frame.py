"""Running a block: values by name, looked up outwards through the blocks around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from tensorsplit.core.errors import NODE_FAILED, SplitError, short_name
from tensorsplit.model.run.blocks import Block, Step

Runner: TypeAlias = "Callable[[Step, Sequence[Any], Frame], Sequence[Any]]"
"""Runs one node: the node, its inputs (None for an absent one) and the frame it stands in."""


class Frame:
    """The values of one run of a block.

    Args:
        block: The block.
        values: What is passed in, by name; results join it as they are computed.
        runner: What runs its nodes.
        parent: The frame of the block around a body; None for the main graph and functions.
    """

    def __init__(
        self, block: Block, values: dict[str, Any], runner: Runner, parent: Frame | None = None
    ) -> None:
        self.block = block
        self.values = values
        self._runner = runner
        self.parent = parent

    def value(self, name: str) -> Any:
        """The value of a name: tensors as arrays, sequences as lists, an empty optional as None."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.values:
                return frame.values[name]
            if name in frame.block.constants:
                return frame.block.constants[name].value
            frame = frame.parent
        raise KeyError(name)

    def run(self) -> list[Any]:
        """Run the nodes in order; returns the values of the block's outputs."""
        for step in self.block.steps:
            outputs = self._step(step)
            for name, value in zip(step.node.output, outputs, strict=True):
                if name:
                    self.values[name] = value
            for name in step.release:
                self.values.pop(name, None)
        return [self.value(name) for name in self.block.outputs]

    def run_body(self, body: Block, arguments: Sequence[Any]) -> list[Any]:
        """Run a body of a node of this frame.

        Args:
            body: The body.
            arguments: The value of each of its inputs.

        Raises:
            SplitError: TS510 for a wrong number of arguments.
        """
        return self._inner(body, arguments, self)

    def call(self, function: Block, arguments: Sequence[Any]) -> list[Any]:
        """Run a function, which sees nothing but its arguments; those left out are None."""
        missing = [None] * (len(function.inputs) - len(arguments))
        return self._inner(function, [*arguments, *missing], None)

    def _inner(self, block: Block, arguments: Sequence[Any], parent: Frame | None) -> list[Any]:
        if len(arguments) != len(block.inputs):
            raise SplitError(
                NODE_FAILED,
                f"the body has {len(block.inputs)} inputs, but is passed {len(arguments)} values",
                "give it one input for each",
            )
        values = dict(zip(block.inputs, arguments, strict=True))
        return Frame(block, values, self._runner, parent).run()

    def _step(self, step: Step) -> Sequence[Any]:
        """Run a node; whatever goes wrong is told with the node's path."""
        try:
            inputs = [self.value(name) if name else None for name in step.node.input]
            outputs = list(self._runner(step, inputs, self))
        except SplitError as error:
            raise error.located(node=step.path) from error.__cause__
        except Exception as error:  # an operator of someone else's may raise anything
            raise SplitError(
                NODE_FAILED,
                f"{short_name(step.node.op_type)} failed on {describe(inputs)} ({_reason(error)})",
                "give it what its opset allows",
                node=step.path,
            ) from error
        count = len(step.node.output)
        if len(outputs) < count:
            raise SplitError(
                NODE_FAILED,
                f"{short_name(step.node.op_type)} gave {len(outputs)} of {count} outputs",
                "name no more than it has",
                node=step.path,
            )
        return outputs[:count]


def describe(values: Sequence[Any]) -> str:
    """The values' types and shapes, of bounded length."""
    shown = [_describe(value) for value in values[:6]]
    return ", ".join([*shown, *(["..."] if len(values) > 6 else [])]) or "no inputs"


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    return "nothing" if value is None else f"a {type(value).__name__}"


def _reason(error: BaseException) -> str:
    """The first words of the innermost cause: the outer ones only repeat it."""
    while error.__cause__ is not None:
        error = error.__cause__
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__
