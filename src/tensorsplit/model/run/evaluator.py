"""The engine ``numpy``: our own operators, and onnx's reference implementations of all others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from tensorsplit.core.errors import NODE_FAILED, SplitError, short_name
from tensorsplit.model.graph.binding import bind, execute
from tensorsplit.model.graph.reading import OnnxModel, check_feeds
from tensorsplit.model.infer.validation import validate
from tensorsplit.model.run import control_flow, operators
from tensorsplit.model.run.program import Block, Step, compile_model


def run_onnx(model: OnnxModel, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Run an ONNX model.

    Args:
        model: The model; external data is read as far as it is used.
        feeds: Values by input name: NumPy arrays for tensors, lists of them for sequences, None
            for an empty optional. Inputs that have an initializer may be left out.

    Returns:
        The outputs by name, in the graph's order: arrays, lists of arrays for sequences, None for
        an empty optional. Arrays may be views of what was fed.

    Raises:
        SplitError: TS505 to TS508 for what is fed; TS101 to TS309 for split nodes; TS502, TS504,
            TS509 to TS511 for what else of the model is wrong or can't be run. Nothing runs
            before all that constants and what is fed tell about split nodes has been checked.
    """
    model.check_runs_here()
    fed = check_feeds(model.inputs, feeds)
    block = compile_model(model)
    validate(model.model, fed)
    return dict(zip(model.output_names, _evaluate(block, fed), strict=True))


def evaluate(
    model: OnnxModel, fed: Mapping[str, Any], wanted: Sequence[ir.Value]
) -> dict[str, Any]:
    """Run as much of a model as some of its values need.

    Args:
        model: The model.
        fed: What `check_feeds` returned.
        wanted: Values of the main graph. For one in a body, ask for what the node that holds the
            body gives.

    Returns:
        The values by name, as `run_onnx` returns them.

    Raises:
        SplitError: As `run_onnx`, for the nodes that were run; TS502 for any node.
    """
    block = compile_model(model).only(wanted)
    names = (value.name or "" for value in wanted)
    return dict(zip(names, _evaluate(block, fed), strict=True))


def _evaluate(block: Block, fed: Mapping[str, Any]) -> list[Any]:
    values = {value: fed[value.name or ""] for value in block.inputs if value.name in fed}
    with np.errstate(all="ignore"):  # IEEE's special values are results here, not mistakes
        return Frame(block, values).run()


class Frame:
    """The values of one run of a block.

    Args:
        block: The block.
        values: What is passed in; results join it as they are computed.
        parent: The frame of the block around a body; None for the main graph and functions.
    """

    def __init__(
        self, block: Block, values: dict[ir.Value, Any], parent: Frame | None = None
    ) -> None:
        self.block = block
        self.values = values
        self.parent = parent

    def value(self, value: ir.Value) -> Any:
        """What a value is: tensors as arrays, sequences as lists, an empty optional as None."""
        frame: Frame | None = self
        while frame is not None:
            if value in frame.values:
                return frame.values[value]
            if value in frame.block.constants:
                return frame.block.constants[value].value
            frame = frame.parent
        raise KeyError(value.name)

    def run(self) -> list[Any]:
        """Run the nodes in order; returns the values of the block's outputs."""
        for step in self.block.steps:
            self.values.update(zip(step.node.outputs, self._step(step), strict=True))
            for value in step.release:
                self.values.pop(value, None)
        return [self.value(value) for value in self.block.outputs]

    def run_body(self, body: Block, arguments: Sequence[Any]) -> list[Any]:
        """Run a body of a node of this frame.

        Args:
            body: The body.
            arguments: The value of each of its inputs.

        Raises:
            SplitError: TS510 for a wrong number of arguments.
        """
        if len(arguments) != len(body.inputs):
            raise SplitError(
                NODE_FAILED,
                f"the body has {len(body.inputs)} inputs, but is passed {len(arguments)} values",
                "give it one input for each",
            )
        return Frame(body, dict(zip(body.inputs, arguments, strict=True)), self).run()

    def _call(self, function: Block, arguments: Sequence[Any]) -> list[Any]:
        """Run a function, which sees only its arguments; omitted ones are None."""
        missing = [None] * (len(function.inputs) - len(arguments))
        passed = zip(function.inputs, [*arguments, *missing], strict=True)
        return Frame(function, dict(passed)).run()

    def _step(self, step: Step) -> Sequence[Any]:
        """Run a node; every error names the node's path."""
        inputs: list[Any] = []
        try:
            inputs += [None if value is None else self.value(value) for value in step.inputs]
            outputs = list(self._run(step, inputs))
        except SplitError as error:
            raise error.located(node=step.path) from error.__cause__
        except Exception as error:  # third-party operators may raise anything
            raise SplitError(
                NODE_FAILED,
                f"{short_name(step.op_type)} failed on {_described(inputs)} ({_reason(error)})",
                "give it what its opset allows",
                node=step.path,
            ) from error
        count = len(step.node.outputs)
        if len(outputs) < count:
            raise SplitError(
                NODE_FAILED,
                f"{short_name(step.op_type)} gave {len(outputs)} of {count} outputs",
                "name no more than it has",
                node=step.path,
            )
        return outputs[:count]

    def _run(self, step: Step, inputs: Sequence[Any]) -> Sequence[Any]:
        if step.callee is not None:
            return self._call(step.callee, inputs)
        if step.is_split:
            intent = bind(step.node, step.opset, inputs, step.passed)
            return execute(intent, inputs[0])
        if step.domain == "" and step.op_type in _WITH_BODIES:
            return _WITH_BODIES[step.op_type](step, inputs, self)
        return operators.run(step, inputs)


_WITH_BODIES: Mapping[str, Callable[[Step, Sequence[Any], Frame], Sequence[Any]]] = {
    "If": control_flow.run_if,
    "Loop": control_flow.run_loop,
    "Scan": control_flow.run_scan,
    "SequenceMap": control_flow.run_sequence_map,
}


def _described(values: Sequence[Any]) -> str:
    """The types and shapes of values, as text of bounded length."""
    shown = [_describe(value) for value in values[:6]]
    return ", ".join([*shown, *(["..."] if len(values) > 6 else [])]) or "no inputs"


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    return "nothing" if value is None else f"a {type(value).__name__}"


def _reason(error: BaseException) -> str:
    """The innermost cause, in one line; the outer ones only repeat it."""
    while error.__cause__ is not None:
        error = error.__cause__
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__
