"""If, Loop, Scan and SequenceMap, as their standard pages say.

onnx's reference stacks the outputs of Loop along the wrong axis, takes an absent condition for
false, and has no axes or directions in Scan.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from onnx import TypeProto, helper

from tensorsplit.arrays.numpy import element_type
from tensorsplit.core.errors import NODE_FAILED, SplitError
from tensorsplit.model.run.blocks import Block, Step
from tensorsplit.model.run.frame import Frame

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

_ENDLESS = 1 << 32
_RANDOM = ("Random", "Bernoulli", "Multinomial", "Dropout")


def run_if(step: Step, inputs: Sequence[Any], frame: Frame) -> list[Any]:
    """If: the outputs of the branch that the condition selects."""
    chosen = "then_branch" if _flag(inputs[0], "the condition") else "else_branch"
    block = step.blocks[chosen]
    if len(block.outputs) != len(step.node.output):
        raise _failed(
            f"{chosen} has {len(block.outputs)} outputs, the node {len(step.node.output)}",
            "give both as many",
        )
    return frame.run_body(block, [])


def run_loop(step: Step, inputs: Sequence[Any], frame: Frame) -> list[Any]:
    """Loop: the last values of what is carried, then what was collected.

    Without the input `cond` the body's condition is not looked at, as the page's table says.
    """
    body = step.blocks["body"]
    limit = math.inf if inputs[0] is None else _single(inputs[0], np.int64, "the trip count")
    obeys = inputs[1] is not None
    condition = inputs[1] if obeys else np.array(True)
    carried = list(inputs[2:])
    collects = len(body.outputs) - 1 - len(carried)
    _check_outputs(step, body, 1 + len(carried))
    _check_arguments(body, 2 + len(carried))
    collected: list[list[Any]] = [[] for _ in range(collects)]
    iteration = 0
    while iteration < limit and (not obeys or _flag(condition, "the condition")):
        if iteration == 1 and limit >= _ENDLESS:
            _check_ends(body, obeys)
        arguments = [
            _shaped(np.array(iteration, np.int64), body.input_types[0]),
            _shaped(condition, body.input_types[1]),
            *carried,
        ]
        condition, *results = frame.run_body(body, arguments)
        carried = results[: len(carried)]
        for parts, value in zip(collected, results[len(carried) :], strict=True):
            parts.append(value)
        iteration += 1
    types = body.output_types[1 + len(carried) :]
    return [*carried, *(_stack(p, t, 0) for p, t in zip(collected, types, strict=True))]


def run_scan(step: Step, inputs: Sequence[Any], frame: Frame) -> list[Any]:
    """Scan: the last states, then what was collected, along the axes and in the directions given.

    At opset 8 there is a batch axis, and an optional first input with the length of each row.
    """
    count = next(a.i for a in step.node.attribute if a.name == "num_scan_inputs")
    body = step.blocks["body"]
    values = list(inputs)
    lengths = values.pop(0) if step.opset < 9 else None
    if not 1 <= count <= len(values):
        raise _failed(f"num_scan_inputs is {count} of {len(values)} inputs", "name at least one")
    states, scanned = values[:-count], values[-count:]
    _check_arguments(body, len(values))
    _check_outputs(step, body, len(states))
    if step.opset < 9:
        return _scan_batch(step, states, scanned, lengths, frame)
    collects = len(body.outputs) - len(states)
    axes = _ints(step, "scan_input_axes", count)
    slices = [
        _slices(value, axis, backward)
        for value, axis, backward in zip(
            scanned, axes, _flags(step, "scan_input_directions", count), strict=True
        )
    ]
    states, collected = _scan(body, states, slices, frame)
    results = zip(
        collected,
        body.output_types[len(states) :],
        _ints(step, "scan_output_axes", collects),
        _flags(step, "scan_output_directions", collects),
        strict=True,
    )
    return [
        *states,
        *(
            _stack(parts[::-1] if back else parts, kind, axis)
            for parts, kind, axis, back in results
        ),
    ]


def run_sequence_map(step: Step, inputs: Sequence[Any], frame: Frame) -> list[Any]:
    """SequenceMap: the body on each sample; tensors among the inputs are the same for each."""
    body = step.blocks["body"]
    first = inputs[0]
    if not isinstance(first, list):
        raise _failed("the first input is no sequence", "give a sequence")
    if any(isinstance(value, list) and len(value) != len(first) for value in inputs):
        lengths = [len(value) for value in inputs if isinstance(value, list)]
        raise _failed(f"the sequences have {lengths} samples", "give as many of each")
    results = [
        frame.run_body(body, [v[i] if isinstance(v, list) else v for v in inputs])
        for i in range(len(first))
    ]
    return [[result[k] for result in results] for k in range(len(body.outputs))]


def _scan_batch(
    step: Step, states: list[Any], scanned: list[Any], lengths: Any, frame: Frame
) -> list[Any]:
    """Scan-8: each row of the batch on its own; what lies beyond a row's length is zero."""
    body = step.blocks["body"]
    back = _flags(step, "directions", len(scanned))
    sizes = {value.shape[:2] for value in scanned}
    if len(sizes) != 1 or len(next(iter(sizes))) != 2:
        raise _failed(f"the scan inputs have the batches and lengths {sorted(sizes)}", "align them")
    batch, longest = next(iter(sizes))
    counts = [longest] * batch if lengths is None else lengths.tolist()
    if len(counts) != batch or not all(0 <= n <= longest for n in counts) or not batch:
        raise _failed(f"sequence_lens is {counts} for {batch} rows of {longest}", "fit them")
    rows = []
    for row, length in enumerate(counts):
        slices = [
            _slices(value[row][:length], 0, backward)
            for value, backward in zip(scanned, back, strict=True)
        ]
        last, collected = _scan(body, [state[row] for state in states], slices, frame)
        kinds = body.output_types[len(states) :]
        parts = [_stack(p, kind, 0) for p, kind in zip(collected, kinds, strict=True)]
        rows.append([*last, *(_padded(part, longest) for part in parts)])
    return [np.stack(column) for column in zip(*rows, strict=True)]


def _padded(part: Array, length: int) -> Array:
    missing = np.zeros((length - part.shape[0], *part.shape[1:]), part.dtype)
    return np.concatenate([part, missing])


def _scan(
    body: Block, states: list[Any], slices: list[list[Array]], frame: Frame
) -> tuple[list[Any], list[list[Any]]]:
    lengths = sorted({len(parts) for parts in slices})
    if len(lengths) > 1:
        raise _failed(f"the scanned axes have lengths {lengths}", "make them equal")
    collected: list[list[Any]] = [[] for _ in range(len(body.outputs) - len(states))]
    for elements in zip(*slices, strict=True):
        results = frame.run_body(body, [*states, *elements])
        states = results[: len(states)]
        for parts, value in zip(collected, results[len(states) :], strict=True):
            parts.append(value)
    return states, collected


def _slices(value: Any, axis: int, backward: bool) -> list[Array]:
    if not isinstance(value, np.ndarray) or not -value.ndim <= axis < value.ndim:
        raise _failed(f"there is no axis {axis} to scan in one of the inputs", "give one it has")
    head: tuple[Any, ...] = (slice(None),) * (axis % value.ndim)
    parts = [value[(*head, i, ...)] for i in range(value.shape[axis])]
    return parts[::-1] if backward else parts


def _stack(parts: list[Any], declared: TypeProto, axis: int) -> Array:
    """What was collected, as one tensor with a new axis.

    Where nothing was, the body's declaration gives the element type and the other dimensions;
    those that it leaves open are 0.
    """
    if not parts:
        return _empty(declared, axis)
    kinds = {
        (element_type(part), part.shape) if isinstance(part, np.ndarray) else ("no tensor", ())
        for part in parts
    }
    if len(kinds) > 1 or "no tensor" in next(iter(kinds)):
        shown = ", ".join(f"{element}{list(shape)}" for element, shape in sorted(kinds)[:4])
        raise _failed(
            f"the iterations give an output as {shown}", "give tensors of one type and shape"
        )
    rank = parts[0].ndim + 1
    if not -rank <= axis < rank:
        raise _failed(f"an output of rank {rank} has no axis {axis}", "give one it has")
    return np.stack(parts, axis)


def _empty(declared: TypeProto, axis: int) -> Array:
    tensor = declared.tensor_type
    try:
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    except KeyError:
        raise _failed(
            "there is no iteration, and the body declares no element type for an output",
            "declare it",
        ) from None
    dims = [max(0, dim.dim_value) for dim in tensor.shape.dim]
    if not -len(dims) - 1 <= axis <= len(dims):
        raise _failed(f"an output of rank {len(dims) + 1} has no axis {axis}", "give one it has")
    dims.insert(axis + len(dims) + 1 if axis < 0 else axis, 0)
    return np.zeros(dims, dtype)


def _check_arguments(body: Block, count: int) -> None:
    if len(body.inputs) != count:
        raise _failed(f"the body has {len(body.inputs)} inputs", f"the node passes {count}")


def _check_outputs(step: Step, body: Block, carried: int) -> None:
    """The body gives what is carried, and no fewer outputs than the node names."""
    extra = 1 if step.node.op_type == "Loop" else 0
    if len(body.outputs) < max(carried, len(step.node.output) + extra):
        raise _failed(
            f"the body has {len(body.outputs)} outputs, with {carried} of them carried, and the"
            f" node {len(step.node.output)}",
            "give the body an output for each",
        )


def _check_ends(body: Block, obeys: bool) -> None:
    """Refuse a loop whose condition, being true once, stays true for ever."""
    if obeys and _varies(body):
        return
    raise _failed("the loop never ends", "give a trip count, or a condition that changes")


def _varies(body: Block) -> bool:
    """Whether the condition may change from one iteration to the next."""
    same = {body.inputs[1]}
    varying = {body.inputs[0], *body.inputs[2:]}
    for step in body.steps:
        names = set(step.node.input)
        if step.node.op_type == "Identity" and names <= same:
            same.update(step.node.output)
        elif (
            names & (varying | same)
            or step.blocks
            or step.callee
            or step.node.op_type.startswith(_RANDOM)
        ):
            varying.update(step.node.output)
    return body.outputs[0] in varying


def _single(value: Any, dtype: type, what: str) -> Any:
    if not isinstance(value, np.ndarray) or value.dtype != dtype or value.size != 1:
        seen = f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else "no tensor"
        raise _failed(f"{what} is {seen}", f"give one element of type {np.dtype(dtype)}")
    return value.item()


def _flag(value: Any, what: str) -> bool:
    return bool(_single(value, np.bool_, what))


def _shaped(value: Array, declared: TypeProto) -> Array:
    """A single value, of shape [1] where the body declares its input so."""
    tensor = declared.tensor_type
    rank = len(tensor.shape.dim) if tensor.HasField("shape") else value.ndim
    return value.reshape((1,) * rank)


def _ints(step: Step, name: str, count: int) -> list[int]:
    for attribute in step.node.attribute:
        if attribute.name == name:
            if len(attribute.ints) != count:
                raise _failed(f"{name} has {len(attribute.ints)} entries", f"give {count}")
            return list(attribute.ints)
    return [0] * count


def _flags(step: Step, name: str, count: int) -> list[bool]:
    values = _ints(step, name, count)
    if not set(values) <= {0, 1}:
        raise _failed(f"{name} is {values[:12]}", "give 0 (forward) or 1 (backward) for each")
    return [value == 1 for value in values]


def _failed(problem: str, fix: str) -> SplitError:
    return SplitError(NODE_FAILED, problem, fix)
