"""Recurrent nodes of ONNX whose batch comes first, written as nodes whose steps come first."""

from __future__ import annotations

import onnx_ir as ir

from tensorsplit.model.graph.calculation import Calculation
from tensorsplit.model.graph.nodes import attribute_of

_LAYOUT = "layout"
_TURNED = (0, 5, 6)
"""The inputs that have a batch first: the data, and the states that it starts from."""

_BACK = (("steps", (2, 0, 1, 3)), ("last", (1, 0, 2)), ("last_cell", (1, 0, 2)))
"""What is made: the end of its name, and the order of axes in which its batch comes first."""


def has_batch_first(node: ir.Node) -> bool:
    """Return whether a GRU, LSTM or RNN has `layout` 1."""
    return bool(attribute_of(node, _LAYOUT, ir.AttributeType.INT))


def with_steps_first(make: Calculation, node: ir.Node) -> list[ir.Value | None]:
    """Make the same node with its steps first, between Transposes; return what it gives.

    That is None for outputs that are left out.
    """
    given = [
        make.op("Transpose", [held], {"perm": [1, 0, 2]})
        if held is not None and place in _TURNED
        else held
        for place, held in enumerate(node.inputs)
    ]
    attributes = {name: each for name, each in node.attributes.items() if name != _LAYOUT}
    ends = [end for end, _ in _BACK[: len(node.outputs)]]
    made = make.ops(node.op_type, given, attributes, ends)
    return [
        make.op("Transpose", [new], {"perm": list(order)}) if old.name else None
        for old, new, (_, order) in zip(node.outputs, made, _BACK, strict=False)
    ]
