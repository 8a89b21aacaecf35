"""If, Loop, Scan and SequenceMap, as the standard defines them.

onnx's reference stacks the outputs of Loop along the wrong axis, takes an omitted condition for
false, and has no axes or directions in Scan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from tensorsplit.arrays.numpy import element_type
from tensorsplit.core.dimensions import is_known
from tensorsplit.model.graph.facts import Tensor
from tensorsplit.model.graph.loops import ENDLESS, obeys_condition
from tensorsplit.model.graph.nodes import branch_label
from tensorsplit.model.graph.tensors import Array
from tensorsplit.model.run.program import Block, Step, Values, described, node_failed

RunBody: TypeAlias = Callable[[Block, Sequence[object]], Values]
"""Runs a body with the values of its inputs."""

_NO_TENSOR = "no tensor"
_RANDOM = ("Random", "Bernoulli", "Multinomial", "Dropout")


def _run_if(step: Step, inputs: Sequence[object], run: RunBody) -> Values:
    """Run an If: return the outputs of the branch that the condition selects."""
    return run(step.blocks[branch_label(_flag(inputs[0]))], [])


def _loop(step: Step, inputs: Sequence[Any], run: RunBody) -> Values:
    """Run a Loop: return the last values of its states, then the collected outputs.

    Without the input `cond` the body's condition is ignored, as in the standard's table, if the
    trip count ends the loop.
    """
    body = step.blocks["body"]
    limit = math.inf if inputs[0] is None else _single(inputs[0], np.int64, "the trip count")
    obeys = obeys_condition(step.inputs)
    condition = np.array(True) if inputs[1] is None else inputs[1]
    carried = list(inputs[2:])
    count = len(carried)
    rows: list[Values] = []
    iteration = 0
    while iteration < limit and (not obeys or _flag(condition)):
        if iteration == 1 and limit >= ENDLESS and not (obeys and _varies(body)):
            fix = "give a trip count, or a condition that changes"
            raise node_failed("the loop never ends", fix)
        index = _shaped(np.array(iteration, np.int64), body.inputs[0])
        condition, *results = run(body, [index, _shaped(condition, body.inputs[1]), *carried])
        carried = results[:count]
        if len(results) > count:
            rows.append(results[count:])
        iteration += 1
    return [*carried, *_stacked(step, rows, body.outputs[1 + count :])]


def _run_scan(step: Step, inputs: Sequence[object], run: RunBody) -> Values:
    """Run a Scan: return the last states, then what was collected, along its axes and directions.

    At opset 8 there is a batch axis, and an optional first input with the length of each row.
    """
    count = step.attributes["num_scan_inputs"].as_int()
    body = step.blocks["body"]
    values = list(inputs)
    lengths = values.pop(0) if step.opset < 9 else None
    states, scanned = values[:-count], values[-count:]
    if step.opset < 9:
        return _scan_batch(step, states, scanned, lengths, run)
    made = body.outputs[len(states) :]
    axes = _ints(step, "scan_input_axes", count)
    back = _flags(step, "scan_input_directions", count)
    states, rows = _scan(body, states, list(map(_slices, scanned, axes, back)), run)
    axes = _ints(step, "scan_output_axes", len(made))
    back = _flags(step, "scan_output_directions", len(made))
    return [*states, *_stacked(step, rows, made, axes, back)]


def _sequence_map(step: Step, inputs: Sequence[object], run: RunBody) -> Values:
    """Run a SequenceMap: the body on each sample, with tensors that are the same for each."""
    body = step.blocks["body"]
    first = inputs[0]
    if not isinstance(first, list):
        raise node_failed("the first input is not a sequence", "give a sequence")
    if any(isinstance(value, list) and len(value) != len(first) for value in inputs):
        lengths = [len(value) for value in inputs if isinstance(value, list)]
        raise node_failed(f"the sequences have {lengths} samples", "give as many of each")
    results = [
        run(body, [v[i] if isinstance(v, list) else v for v in inputs]) for i in range(len(first))
    ]
    return _columns(results, len(body.outputs))


def _scan_batch(step: Step, states: Values, scanned: Values, lengths: Any, run: RunBody) -> Values:
    """Run a Scan-8: each row of the batch by itself; elements beyond a row's length are zero."""
    body = step.blocks["body"]
    back = _flags(step, "directions", len(scanned))
    sizes = {value.shape[:2] for value in scanned}
    if len(sizes) != 1 or len(next(iter(sizes))) != 2:
        problem = f"the scan inputs have the batches and lengths {sorted(sizes)}"
        raise node_failed(problem, "align them")
    batch, longest = next(iter(sizes))
    counts = [longest] * batch if lengths is None else lengths.tolist()
    if len(counts) != batch or not all(0 <= n <= longest for n in counts) or not batch:
        raise node_failed(f"sequence_lens is {counts} for {batch} rows of {longest}", "fit them")
    samples = []
    for row, length in enumerate(counts):
        slices = [_slices(v[row][:length], 0, b) for v, b in zip(scanned, back, strict=True)]
        last, rows = _scan(body, [state[row] for state in states], slices, run)
        parts = _stacked(step, rows, body.outputs[len(states) :])
        samples.append([*last, *(_padded(part, longest) for part in parts)])
    return list(map(np.stack, _columns(samples, len(body.outputs))))


def _padded(part: Array, length: int) -> Array:
    missing = np.zeros((length - part.shape[0], *part.shape[1:]), part.dtype)
    return np.concatenate([part, missing])


def _scan(
    body: Block, states: Values, slices: list[list[Array]], run: RunBody
) -> tuple[Values, list[Values]]:
    """Return the last states, and what else each iteration gives."""
    lengths = sorted({len(parts) for parts in slices})
    if len(lengths) > 1:
        raise node_failed(f"the scanned axes have lengths {lengths}", "make them equal")
    count, rows = len(states), []
    for elements in zip(*slices, strict=True):
        results = run(body, [*states, *elements])
        states = results[:count]
        rows.append(results[count:])
    return states, rows


def _columns(rows: list[Values], count: int) -> list[Values]:
    """Return the outputs of the iterations, by output."""
    return [[row[k] for row in rows] for k in range(count)]


def _slices(value: object, axis: int, backward: bool) -> list[Array]:
    if not isinstance(value, np.ndarray) or not -value.ndim <= axis < value.ndim:
        problem = f"there is no axis {axis} to scan in one of the inputs"
        raise node_failed(problem, "give one of its axes")
    head: tuple[Any, ...] = (slice(None),) * (axis % value.ndim)
    parts = [value[(*head, i, ...)] for i in range(value.shape[axis])]
    return parts[::-1] if backward else parts


def _stacked(
    step: Step,
    rows: list[Values],
    outputs: Sequence[ir.Value],
    axes: Sequence[int] | None = None,
    back: Sequence[bool] | None = None,
) -> list[Array]:
    """Return each output of the iterations as one tensor with a new axis, by default the first."""
    none = [0] * len(outputs)
    return [
        _stack(parts[::-1] if backward else parts, axis)
        if parts
        else _no_rows(step.known(output), axis)
        for parts, output, axis, backward in zip(
            _columns(rows, len(outputs)), outputs, axes or none, back or none, strict=True
        )
    ]


def _stack(parts: Values, axis: int) -> Array:
    """Return the collected tensors as one, with a new axis."""
    kinds = {
        f"{element_type(p)}{list(p.shape)}" if isinstance(p, np.ndarray) else _NO_TENSOR
        for p in parts
    }
    if len(kinds) > 1 or _NO_TENSOR in kinds:
        problem = f"the iterations give an output as {', '.join(sorted(kinds)[:4])}"
        raise node_failed(problem, "give tensors of one type and shape")
    _check_new_axis(axis, parts[0].ndim + 1)
    return np.stack(parts, axis)


def _no_rows(known: Tensor, axis: int) -> Array:
    """Return an output of no iteration.

    What is known of the body gives the element type and the other dimensions; those that are not
    known are 0.
    """
    element = known.element_type
    if element is None:
        problem = "there is no iteration, and the body declares no element type for an output"
        raise node_failed(problem, "declare it")
    dims = [dim if is_known(dim) else 0 for dim in known.shape or ()]
    _check_new_axis(axis, len(dims) + 1)
    dims.insert(axis % (len(dims) + 1), 0)
    return np.zeros(dims, object if element == ir.DataType.STRING else element.numpy())


def _check_new_axis(axis: int, rank: int) -> None:
    if not -rank <= axis < rank:
        raise node_failed(f"an output of rank {rank} has no axis {axis}", "give one of its axes")


def _varies(body: Block) -> bool:
    """Return whether the condition may change from one iteration to the next.

    What is calculated of it alone can't: the iteration before gave the same.
    """
    varying = {body.inputs[0], *body.inputs[2:]}
    for step in body.steps:
        is_random = step.op_type.startswith(_RANDOM)
        if is_random or step.blocks or step.callee or not varying.isdisjoint(step.inputs):
            varying.update(step.node.outputs)
    return body.outputs[0] in varying


def _single(value: object, dtype: type, what: str) -> Any:
    if not isinstance(value, np.ndarray) or value.dtype != dtype or value.size != 1:
        fix = f"give one element of type {np.dtype(dtype)}"
        raise node_failed(f"{what} is {described(value)}", fix)
    return value.item()


def _flag(value: object) -> bool:
    return bool(_single(value, np.bool_, "the condition"))


def _shaped(value: Array, declared: ir.Value) -> Array:
    """Return a single value, of shape [1] where the body declares its input so."""
    rank = value.ndim if declared.shape is None else len(declared.shape)
    return value.reshape((1,) * rank)


def _ints(step: Step, name: str, count: int) -> list[int]:
    return list(step.attributes[name].as_ints()) if name in step.attributes else [0] * count


def _flags(step: Step, name: str, count: int) -> list[bool]:
    return [value == 1 for value in _ints(step, name, count)]


OPERATORS: Mapping[str, Callable[[Step, Sequence[Any], RunBody], Values]] = {
    "If": _run_if,
    "Loop": _loop,
    "Scan": _run_scan,
    "SequenceMap": _sequence_map,
}
