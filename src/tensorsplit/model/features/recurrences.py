"""Features of the data that recurrent layers read."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from tensorsplit.core.dimensions import may_be_same
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.model.graph.axes import order_of
from tensorsplit.model.graph.held_tensors import constant
from tensorsplit.model.graph.nodes import attribute_of, is_operator
from tensorsplit.model.graph.rejoined import first_passed, may_pass
from tensorsplit.model.infer.analysis import Facts

_TURNED = (1, 0, 2)
"""The order of axes in which steps and batches change places."""

_MOST_PASSING = 16
"""Nodes that change nothing are followed so far."""

_RECURRENT_LAYERS = frozenset({"GRUSequence", "LSTMSequence", "RNNSequence"})


def of_recurrences(node: ir.Node, facts: Facts) -> Iterator[str]:
    """Yield the features of a Transpose beside a recurrent layer."""
    if _is_turned_beside_recurrence(node, facts):
        yield "turned_beside_recurrence"


def _is_turned_beside_recurrence(node: ir.Node, facts: Facts) -> bool:
    """Return whether steps and batches change places of what a recurrent layer reads as well.

    Other Transposes may do a part of it, and nodes that change nothing may be in between.
    """
    if node.op_type != "Transpose" or len(node.outputs) != 1:
        return False
    made = facts.tensor(node.outputs[0]).shape or (None,) * len(_TURNED)
    return any(
        order == _TURNED
        and may_be_same(facts.tensor(source).shape, (*made[1::-1], *made[2:]))
        and _is_read_by_recurrence(source)
        for source, order in _sources(node.outputs[0])
    )


def _sources(value: ir.Value) -> Iterator[tuple[ir.Value, tuple[int, ...]]]:
    """Yield the values that one of rank 3 may be a transposition of, each with its axes' order."""
    order: tuple[int, ...] = (0, 1, 2)
    for _ in range(_MOST_PASSING):
        yield value, order
        made = value.producer()
        given = None if made is None else first_passed(made)
        if made is None or given is None:
            return
        if made.op_type == "Transpose":
            moved = order_of(made, len(_TURNED))
            if sorted(moved) != [0, 1, 2] or made.domain != "":
                return
            order = tuple(moved[i] for i in order)
        value = given


def _is_read_by_recurrence(value: ir.Value) -> bool:
    """Return whether a recurrent layer reads a value that counts steps first as it is."""
    waiting = [value]
    for held in waiting:
        for use in held.uses():
            if use.idx == 0 and _reads_steps_first(use.node):
                return True
            is_moved = use.node.op_type == "Transpose" or len(waiting) == _MOST_PASSING
            if may_pass(use.node, use.idx) and not is_moved:
                waiting.append(use.node.outputs[0])
    return False


def _reads_steps_first(node: ir.Node) -> bool:
    is_recurrent = is_operator(node, "GRU", "LSTM", "RNN")
    return is_recurrent and not attribute_of(node, "layout", ir.AttributeType.INT)


def recurrences_of(node: ir.Node) -> list[ir.Node]:
    """Return the recurrent layers of an IR that read what a Transpose by [1, 0, 2] gives."""
    if (node.domain, node.op_type) != (DOMAIN, "Transpose") or len(node.inputs) != 2:
        return []
    order = constant(node.inputs[1])
    if order is None or tuple(order.reshape(-1).tolist()) != _TURNED:
        return []
    uses = node.outputs[0].uses()
    return [use.node for use in uses if use.idx == 0 and use.node.op_type in _RECURRENT_LAYERS]


def is_read_beside_recurrence(node: ir.Node) -> bool:
    """Return whether a Transpose before recurrent layers, or one that may be like it, is read."""
    if not recurrences_of(node) or node.inputs[0] is None:
        return False
    made = node.outputs[0]
    others = {reader.op_type for reader in made.consumers()} - {*_RECURRENT_LAYERS, "ShapeOf"}
    if others or made.is_graph_output():
        return True
    waiting = [held for held, _ in _sources(node.inputs[0])][-1:]
    for held in waiting:
        for use in held.uses():
            reader = use.node
            if reader is node or not may_pass(reader, use.idx) or len(waiting) > _MOST_PASSING:
                continue
            if reader.op_type == "Transpose":
                return True
            waiting.append(reader.outputs[0])
    return False
