"""Types and shapes through If, Loop and Scan: their bodies are analysed like any graph."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from tensorsplit.core.dimensions import Dim, Shape
from tensorsplit.model.graph.facts import UNKNOWN, Fact, Sequence, Tensor, join
from tensorsplit.model.infer.frame import Bodies, Frame, Rule

_MAX_ROUNDS = 4
"""What a loop carries can only become less known, and does so in a few rounds."""


def _if(analysis: Bodies, node: ir.Node, inputs: list[Fact], frame: Frame) -> list[Fact] | None:
    then_branch, else_branch = _body(node, "then_branch"), _body(node, "else_branch")
    if then_branch is None or else_branch is None:
        return None
    first = analysis.body(then_branch, [], "then_branch", frame)
    second = analysis.body(else_branch, [], "else_branch", frame)
    condition = inputs[0].constant if inputs and isinstance(inputs[0], Tensor) else None
    if condition:
        return first if condition[0] else second
    return [join(left, right) for left, right in zip(first, second, strict=False)]


def _loop(analysis: Bodies, node: ir.Node, inputs: list[Fact], frame: Frame) -> list[Fact] | None:
    body = _body(node, "body")
    if body is None or len(body.inputs) < 2 or not body.outputs:
        return None
    carried = _without_values(inputs[2 : len(body.inputs)])
    head = [Tensor(ir.DataType.INT64, ()), Tensor(ir.DataType.BOOL, ())]
    outputs: list[Fact] = []
    for _ in range(_MAX_ROUNDS):
        outputs = analysis.body(body, [*head, *carried], "body", frame)
        after = [join(a, b) for a, b in zip(carried, outputs[1:], strict=False)]
        if after == carried:
            break
        carried = after
    else:
        carried = [_kind_only(fact) for fact in carried]
        outputs = analysis.body(body, [*head, *carried], "body", frame)
    trips = _trips(node, inputs, body)
    return carried + [_stacked(fact, trips, 0) for fact in outputs[1 + len(carried) :]]


def _trips(node: ir.Node, inputs: list[Fact], body: ir.Graph) -> Dim:
    """How often a loop runs, where it is sure to run as often as it may."""
    limit = inputs[0] if inputs else UNKNOWN
    if not isinstance(limit, Tensor) or limit.values is None or len(limit.values) != 1:
        return None
    starts = len(node.inputs) < 2 or node.inputs[1] is None or _is_true(node.inputs[1])
    condition = body.outputs[0]
    producer = condition.producer()
    if producer is not None and producer.op_type == "Identity" and producer.inputs[0] is not None:
        condition = producer.inputs[0]
    goes_on = condition is body.inputs[1] or _is_true(condition)
    return limit.values[0] if starts and goes_on else None


def _is_true(value: ir.Value | None) -> bool:
    from tensorsplit.model.graph.nodes import constant

    known = constant(value)
    return known is not None and known.size == 1 and bool(known.item())


def _scan(analysis: Bodies, node: ir.Node, inputs: list[Fact], frame: Frame) -> list[Fact] | None:
    body = _body(node, "body")
    count = _integers(node, "num_scan_inputs")
    if body is None or not count or frame.opsets.get("", 0) < 9 or count[0] > len(inputs):
        return None
    states = len(inputs) - count[0]
    axes = _integers(node, "scan_input_axes") or (0,) * count[0]
    if len(axes) != count[0]:
        return None
    elements, length = [], None
    for fact, axis in zip(inputs[states:], axes, strict=True):
        element, dim = _without_axis(fact, axis)
        elements.append(element)
        length = dim if length is None else length
    carried = _without_values(inputs[:states])
    outputs = analysis.body(body, [*carried, *elements], "body", frame)
    carried = [join(a, b) for a, b in zip(carried, outputs, strict=False)]
    stacked = outputs[states:]
    ends = _integers(node, "scan_output_axes") or (0,) * len(stacked)
    if len(ends) != len(stacked):
        return None
    return carried + [
        _stacked(fact, length, axis) for fact, axis in zip(stacked, ends, strict=True)
    ]


def _body(node: ir.Node, name: str) -> ir.Graph | None:
    attribute = node.attributes.get(name)
    if attribute is None or attribute.is_ref() or attribute.type != ir.AttributeType.GRAPH:
        return None
    return attribute.as_graph()


def _integers(node: ir.Node, name: str) -> tuple[int, ...] | None:
    attribute = node.attributes.get(name)
    if attribute is None or attribute.is_ref():
        return None
    if attribute.type == ir.AttributeType.INT:
        return (attribute.as_int(),)
    return tuple(attribute.as_ints()) if attribute.type == ir.AttributeType.INTS else None


def _without_values(facts: list[Fact]) -> list[Fact]:
    """What a loop carries has the same elements in the first round only."""
    return [
        Tensor(fact.element_type, fact.shape) if isinstance(fact, Tensor) else fact
        for fact in facts
    ]


def _kind_only(fact: Fact) -> Fact:
    if isinstance(fact, Tensor):
        return Tensor(fact.element_type)
    return Sequence(fact.element_type) if isinstance(fact, Sequence) else fact


def _without_axis(fact: Fact, axis: int) -> tuple[Fact, Dim]:
    """One slice of what a Scan runs along, and how many there are."""
    if not isinstance(fact, Tensor):
        return UNKNOWN, None
    if not fact.shape or not -len(fact.shape) <= axis < len(fact.shape):
        return Tensor(fact.element_type), None
    axis %= len(fact.shape)
    rest: Shape = fact.shape[:axis] + fact.shape[axis + 1 :]
    return Tensor(fact.element_type, rest), fact.shape[axis]


def _stacked(fact: Fact, count: Dim, axis: int) -> Fact:
    """What the outputs of all rounds are together."""
    if not isinstance(fact, Tensor):
        return UNKNOWN
    if fact.shape is None:
        return Tensor(fact.element_type)
    rank = len(fact.shape) + 1
    if not -rank <= axis < rank:
        return Tensor(fact.element_type)
    axis %= rank
    return Tensor(fact.element_type, (*fact.shape[:axis], count, *fact.shape[axis:]))


RULES: Mapping[str, Rule] = {"If": _if, "Loop": _loop, "Scan": _scan}
"""What each operator gives; None where it is not well-formed."""
