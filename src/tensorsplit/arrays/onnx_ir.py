"""Splitting a value of onnx-ir: a node Split at the end of the graph that the value is in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx_ir.tape import Tape

from tensorsplit.arrays import numpy as numpy_arrays
from tensorsplit.arrays.typed import Array as Value
from tensorsplit.core.dimensions import Shape, as_shape
from tensorsplit.core.emit import check_concat, emit_split
from tensorsplit.core.errors import NOT_AN_ARRAY, OPERAND_TYPE, PART_TYPE, SplitError
from tensorsplit.core.plan import SplitPlan

unknown: str | None = None
"""A node decides when it runs."""


def is_array(value: object) -> bool:
    """Return whether it is a value of a graph."""
    return isinstance(value, ir.Value)


def check(array: Value) -> bool:
    """Refuse values of which not all is known that a node is made from (TS204).

    Returns True: the graph of a value may be why it is refused.
    """
    graph = array.graph
    if graph is None:
        problem, fix = "the value is in no graph", "make it an input of a graph, or of a node there"
    elif "" not in graph.opset_imports:
        problem, fix = "its graph imports no opset", 'set `graph.opset_imports[""]`'
    elif not isinstance(array.type, ir.TensorType):
        problem, fix = "the value is not known to be a tensor", "set its `type`"
    elif array.shape is None:
        problem, fix = "the rank of the value is not known", "set its `shape`"
    else:
        return True
    raise SplitError(NOT_AN_ARRAY, problem, f"{fix}, or call `Split` of your builder")


def element_type(array: Value) -> str:
    """Return the name of the element type, as in the schemas of ONNX."""
    return str(array.dtype.name).lower()


def shape(array: Value) -> Shape:
    """Return the shape, with its names."""
    return as_shape(array.shape)


def operand_parts(value: Value, name: str) -> tuple[tuple[float, ...], int, str]:
    """Return the elements of a constant in order as Python numbers, the rank, the element type."""
    if value.const_value is None:
        raise SplitError(
            OPERAND_TYPE,
            "it is a value that the graph calculates",
            "give integers, or call `Split` of your builder",
            parameter=name,
        )
    return numpy_arrays.operand_parts(value.const_value.numpy(), name)


def views(array: Value, plan: Any) -> list[Value]:
    """Return the outputs of one node Split of the graph's opset that means the same (TS310).

    Where the axis is dropped, a node Squeeze drops it from each.
    """
    if not plan.sizes:
        return []
    opset = array.graph.opset_imports[""]
    dim = plan.input_shape[plan.axis]
    attributes, lengths = emit_split(plan.intent, opset, dim, element_type(array))
    tape, inputs = Tape(array.graph), [array]
    if lengths is not None:
        inputs.append(_constant(tape, lengths))
    parts = tape.op_multi_out(
        "Split", inputs, {"axis": plan.axis, **attributes}, num_outputs=len(plan.sizes)
    )
    if not plan.keepdims:
        parts = _each(array.graph, "Squeeze", parts, plan.axis)
    for part, dims in zip(parts, plan.output_shapes, strict=True):
        part.shape, part.type = ir.Shape(dims), array.type
    return list(parts)


def _each(graph: ir.Graph, operator: str, values: Sequence[Value], axis: int) -> Sequence[Value]:
    """Return each value as a node Squeeze or Unsqueeze at the end of a graph makes it."""
    tape = Tape(graph)
    if graph.opset_imports[""] < 13:
        return [tape.op(operator, [value], {"axes": [axis]}) for value in values]
    axes = _constant(tape, [axis])
    return [tape.op(operator, [value, axes]) for value in values]


def kind(array: Value) -> tuple[object, ...]:
    """Return the element type."""
    return (array.dtype,)


def joined(parts: list[Value], plan: SplitPlan) -> Value:
    """Return the output of one node Concat at the end of the graph (TS310, TS313).

    Where the axis was dropped, a node Unsqueeze gives it back to each part.
    """
    graph = parts[0].graph
    for number, part in enumerate(parts):
        if part.graph is not graph:
            problem = f"part {number} is of another graph than part 0"
            raise SplitError(PART_TYPE, problem, "join values of one graph", parameter="parts")
    check_concat(graph.opset_imports[""], element_type(parts[0]), plan.operator)
    inputs: Sequence[Value] = parts
    if not plan.keepdims:
        inputs = _each(graph, "Unsqueeze", parts, plan.axis)
    whole = Tape(graph).op("Concat", inputs, {"axis": plan.axis})
    whole.shape, whole.type = shape_in_model(plan.input_shape), parts[0].type
    return whole


def shape_in_model(shape: Shape) -> ir.Shape:
    """Return a shape as a value of a model has it."""
    return ir.Shape(
        dim if dim is None or isinstance(dim, (int, str, ir.SymbolicDim)) else str(dim)
        for dim in shape
    )


def _constant(tape: Tape, numbers: Sequence[int]) -> Value:
    return tape.op("Constant", [], {"value": ir.tensor(np.array(numbers, np.int64))})


copies = views
