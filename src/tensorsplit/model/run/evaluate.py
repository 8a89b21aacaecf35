"""The engine ``numpy``: our own operators, onnx's reference implementations for all others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tensorsplit.core.errors import SplitError
from tensorsplit.model.graph.binding import cut, is_split
from tensorsplit.model.graph.message import walk
from tensorsplit.model.graph.reading import OnnxModel, check_feeds
from tensorsplit.model.infer.validation import validate
from tensorsplit.model.run import controlflow, sequences
from tensorsplit.model.run.blocks import Step
from tensorsplit.model.run.frame import Frame, Runner
from tensorsplit.model.run.program import compile_model
from tensorsplit.model.run.reference import run_reference


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
    _validate(model, fed)
    with np.errstate(all="ignore"):  # IEEE's special values are results here, not mistakes
        outputs = Frame(block, dict(fed), _run).run()
    return dict(zip(model.output_names, outputs, strict=True))


def _validate(model: OnnxModel, fed: Mapping[str, Any]) -> None:
    """Refuse what is known to be wrong before anything runs."""
    if not any(is_split(site.node) for site in walk(model.original)):
        return
    try:
        opened = model.model
    except SplitError:  # onnx-ir can't hold all that runs; each node is checked when it runs
        return
    validate(opened, fed)


def _run(step: Step, inputs: Sequence[Any], frame: Frame) -> Sequence[Any]:
    if step.callee is not None:
        return frame.call(step.callee, inputs)
    if is_split(step.node):
        return cut(step.node, step.opset, inputs)
    runner = _RUNNERS.get(step.node.op_type) if step.domain == "" else None
    return run_reference(step, inputs) if runner is None else runner(step, inputs, frame)


def _simple(operator: Callable[[Sequence[Any]], Any]) -> Runner:
    """An operator of one output that needs nothing but its inputs."""

    def run(_step: Step, inputs: Sequence[Any], _frame: Frame) -> Sequence[Any]:
        return [operator(inputs)]

    return run


_RUNNERS: Mapping[str, Runner] = {
    "If": controlflow.run_if,
    "Loop": controlflow.run_loop,
    "Scan": controlflow.run_scan,
    "SequenceMap": controlflow.run_sequence_map,
    "SequenceAt": _simple(sequences.sequence_at),
    "SequenceErase": _simple(sequences.sequence_erase),
    "SequenceInsert": _simple(sequences.sequence_insert),
    "Optional": _simple(sequences.optional),
    "OptionalHasElement": _simple(sequences.optional_has_element),
    "OptionalGetElement": _simple(sequences.optional_get_element),
}
