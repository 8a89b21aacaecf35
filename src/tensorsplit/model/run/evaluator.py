"""The engine ``tensorsplit``: our operators, and onnx's reference implementations of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import onnx_ir as ir

from tensorsplit.core.errors import SplitError, short_name
from tensorsplit.model.feeds import check_feeds
from tensorsplit.model.graph.binding import bind, execute
from tensorsplit.model.infer.validation import Validator
from tensorsplit.model.reading import OnnxModel
from tensorsplit.model.run import control_flow, operators
from tensorsplit.model.run.program import Block, Step, Values, compile_model, described, node_failed


class CompiledModel:
    """A model that is compiled once, for runs by the engine ``tensorsplit``; threads may share it.

    Args:
        model: The model, which must not change any more.

    Raises:
        SplitError: TS101 to TS107, TS305 for split nodes; TS502, TS504, TS509 for what else of the
            model is wrong or can't be run.
    """

    def __init__(self, model: OnnxModel) -> None:
        model.check_runs_here()
        self._model, self._block = model, compile_model(model)
        self.validator = Validator(model.model)

    def close(self) -> None:
        """Do nothing: garbage collection frees the memory."""

    def run(self, feeds: Mapping[str, object]) -> dict[str, Any]:
        """Run the model on what `check_feeds` takes.

        The outputs come by name in the graph's order: arrays, lists of arrays for sequences, None
        for an empty optional. Arrays may be views of what was fed, and read-only ones of constants.
        Only external data in use is read.

        Raises:
            SplitError: TS505 to TS508 for inputs; TS101 to TS309 for split nodes; TS502,
                TS504, TS510, TS511 for what else is wrong. Nothing runs before all that constants
                and what is fed tell about split nodes has been checked.
        """
        fed = check_feeds(self._model.inputs, feeds)
        self.validator.check(fed)
        return dict(zip(self._model.output_names, _evaluate(self._block, fed), strict=True))


def evaluate(block: Block, fed: Mapping[str, object], wanted: Sequence[ir.Value]) -> dict[str, Any]:
    """Run as much of a compiled model as some values of its main graph need; returns them by name.

    For a value in a body, ask for what the node that holds the body gives.
    """
    names = (value.name or "" for value in wanted)
    return dict(zip(names, _evaluate(block.only(wanted), fed), strict=True))


def _evaluate(block: Block, fed: Mapping[str, object]) -> list[object]:
    values = {value: fed[value.name or ""] for value in block.inputs if value.name in fed}
    with np.errstate(all="ignore"):  # IEEE's special values are results here, not mistakes
        return _Frame(block, values).run()


@dataclass(slots=True)
class _Frame:
    """The values of one run of a block, results among them; the parent is around a body."""

    block: Block
    values: dict[ir.Value, Any]
    parent: _Frame | None = None

    def value(self, value: ir.Value) -> Any:
        """Return a value as tensors in arrays, sequences in lists, an empty optional as None."""
        frame: _Frame | None = self
        while frame is not None:
            if value in frame.values:
                return frame.values[value]
            if value in frame.block.constants:
                return frame.block.constants[value]()
            frame = frame.parent
        raise KeyError(value.name)

    def run(self) -> Values:
        """Run the nodes in order; returns the values of the block's outputs."""
        for step in self.block.steps:
            self.values.update(zip(step.node.outputs, self._step(step), strict=True))
            for value in step.release:
                self.values.pop(value, None)
        return [self.value(value) for value in self.block.outputs]

    def _run_body(self, body: Block, arguments: Sequence[object]) -> list[object]:
        return _Frame(body, dict(zip(body.inputs, arguments, strict=True)), self).run()

    def _step(self, step: Step) -> Sequence[object]:
        """Run a node; every error names the node's path."""
        inputs: list[object] = []
        try:
            inputs += [None if value is None else self.value(value) for value in step.inputs]
            outputs = list(self._run(step, inputs))
        except SplitError as error:
            raise error.located(node=step.path) from error.__cause__
        except Exception as error:  # third-party operators may raise anything
            problem = f"{short_name(step.op_type)} failed on {_all_described(inputs)}"
            fix = "give it inputs that its opset allows"
            failed = node_failed(f"{problem} ({_reason(error)})", fix)
            raise failed.located(node=step.path) from error
        count = len(step.node.outputs)
        if len(outputs) < count:
            problem = f"{short_name(step.op_type)} gave {len(outputs)} of {count} outputs"
            raise node_failed(problem, "list no more outputs than it has").located(node=step.path)
        return outputs[:count]

    def _run(self, step: Step, inputs: Sequence[Any]) -> Sequence[object]:
        if step.kernel is not None:
            return step.kernel(inputs)
        if step.callee is not None:  # it sees only its arguments; omitted ones are None
            return _Frame(step.callee, dict(zip_longest(step.callee.inputs, inputs))).run()
        if step.is_split:
            return execute(bind(step.node, step.opset, inputs, step.attributes), inputs[0])
        if step.domain == "" and step.op_type in control_flow.OPERATORS:
            return control_flow.OPERATORS[step.op_type](step, inputs, self._run_body)
        return operators.run(step, inputs)


def _all_described(values: Sequence[object]) -> str:
    """Return the types and shapes of values, as text of bounded length."""
    shown = [described(value) for value in values[:6]]
    return ", ".join([*shown, *(["..."] if len(values) > 6 else [])]) or "no inputs"


def _reason(error: BaseException) -> str:
    """Return the innermost cause, in one line; the outer ones only repeat it."""
    while error.__cause__ is not None:
        error = error.__cause__
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__
