"""What calculations with integers ask of an engine: where it may round, or leave a node out."""

from __future__ import annotations

import onnx_ir as ir

from tensorsplit.core.dimensions import are_known
from tensorsplit.model.graph.nodes import passed_from, tensor_of
from tensorsplit.model.infer.analysis import Facts

_SMALL = frozenset({ir.DataType.INT8, ir.DataType.UINT8})
_INTEGERS = _SMALL | {
    *(ir.DataType.INT16, ir.DataType.UINT16, ir.DataType.INT32, ir.DataType.UINT32),
    *(ir.DataType.INT64, ir.DataType.UINT64),
}
_OF_SUMS = frozenset(
    {"ConvInteger", "Einsum", "Gemm", "MatMul", "MatMulInteger", "Resize", "Size", "Upsample"}
)
_WITH_CONSTANTS = frozenset({"Add", "Mul", "PRelu", "Pow", "Sub", "Sum"})
_WITH_MOVES = frozenset(
    {
        *("Abs", "Cast", "Clip", "Expand", "Flatten", "Gather", "Identity", "Neg", "Relu"),
        *("Reshape", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
    }
)
_OF_MANY = frozenset({"Concat", "Where"})
"""Of one value several times, they are moves."""

_OF_SHAPES = frozenset(
    {
        *("Abs", "Add", "Cast", "Concat", "Div", "Gather", "Identity", "Max", "Min", "Mul", "Neg"),
        *("Reshape", "Slice", "Squeeze", "Sub", "Unsqueeze"),
    }
)
_MOST_STEPS = 100
"""Engines do not fuse as many nodes; so that a walk from each node of a long chain ends soon."""


def is_small_quotient(node: ir.Node, facts: Facts) -> bool:
    """Return whether a node is a Div of int8 or uint8."""
    return node.op_type == "Div" and not _types(node, facts).isdisjoint(_SMALL)


def fused_operand(node: ir.Node, facts: Facts) -> ir.Value | None:
    """Return what a Div of integers has from a sum, where its other operand is constant.

    A sum is what a reduction, matrix product or the like gives, and passes on through nodes that
    move elements or calculate with constants: engines fuse all these into one.
    """
    if node.op_type != "Div" or _types(node, facts).isdisjoint(_INTEGERS):
        return None
    operand = _only_fed(node, facts)
    return operand if _is_of_sum(operand, facts) else None


def is_distance_of_shapes(node: ir.Node, facts: Facts) -> bool:
    """Return whether a node is an Abs of what is calculated from shapes and constants alone."""
    if node.op_type != "Abs" or _is_constant(node.inputs[0], facts):
        return False
    waiting: list[ir.Value | None] = list(node.inputs)
    shapes, seen = 0, set(waiting)
    while waiting and len(seen) < _MOST_STEPS:
        value = waiting.pop()
        if _is_constant(value, facts):
            continue
        made = None if value is None else value.producer()
        if made is None or made.domain != "":
            return False
        if made.op_type in ("Shape", "Size"):
            shapes += 1
        elif made.op_type not in _OF_SHAPES:
            return False
        else:
            waiting += [held for held in made.inputs if held not in seen]
            seen.update(made.inputs)
    return shapes > 0


def _is_of_sum(value: ir.Value | None, facts: Facts) -> bool:
    for _ in range(_MOST_STEPS):
        made = None if value is None else value.producer()
        if made is None or made.domain != "":
            return False
        if made.op_type in _OF_SUMS or made.op_type.startswith("Reduce"):
            return True
        value = _passed_on(made, facts)
    return False


def _passed_on(node: ir.Node, facts: Facts) -> ir.Value | None:
    """Return the operand that a node moves, or calculates with constants; None for other nodes."""
    if node.op_type in _WITH_MOVES:
        return next(iter(node.inputs), None)
    if node.op_type in _OF_MANY and len(set(_fed(node, facts))) == 1:
        return _fed(node, facts)[0]
    return _only_fed(node, facts) if node.op_type in _WITH_CONSTANTS else None


def _only_fed(node: ir.Node, facts: Facts) -> ir.Value | None:
    """Return the only operand that is not constant; None if there are more or fewer."""
    fed = _fed(node, facts)
    return fed[0] if len(fed) == 1 else None


def _fed(node: ir.Node, facts: Facts) -> list[ir.Value | None]:
    return [held for held in node.inputs if not _is_constant(held, facts)]


def _is_constant(held: ir.Value | None, facts: Facts) -> bool:
    source = passed_from(held)
    if source is not None and tensor_of(source) is not None:
        return True
    values = facts.tensor(held).values
    return values is not None and are_known(values)


def _types(node: ir.Node, facts: Facts) -> frozenset[ir.DataType]:
    return frozenset().union(*(facts.element_types(held) for held in node.outputs))
