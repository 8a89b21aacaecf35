"""Types and shapes through If, Loop and Scan: their bodies are analysed like any graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import onnx_ir as ir

from tensorsplit.core.dimensions import Dim, Shape, is_known
from tensorsplit.model.graph.facts import UNKNOWN, Fact, Sequence, Tensor, join
from tensorsplit.model.graph.nodes import bodies, readable_constant
from tensorsplit.model.infer.node_outputs import Surroundings

AnalyseBody: TypeAlias = Callable[[ir.Graph, "list[Fact]", Surroundings], "list[Fact]"]
"""What is known of the outputs of a body, from what is known of its inputs."""

_MAX_ROUNDS = 4
"""What a loop carries can only become less known, and does so in a few rounds."""


def _if(
    analyse: AnalyseBody, node: ir.Node, inputs: list[Fact], around: Surroundings
) -> list[Fact] | None:
    branches = dict(bodies(node))
    if not branches.keys() >= {"then_branch", "else_branch"}:
        return None
    condition = inputs[0].constant if inputs and isinstance(inputs[0], Tensor) else None
    taken = ("then_branch" if condition[0] else "else_branch") if condition else None
    found = {
        label: analyse(branch, [], around.inside(label, None if taken is None else label == taken))
        for label, branch in branches.items()
    }
    if taken is not None:
        return found[taken]
    pairs = zip(found["then_branch"], found["else_branch"], strict=False)
    return [join(left, right) for left, right in pairs]


def _loop(
    analyse: AnalyseBody, node: ir.Node, inputs: list[Fact], around: Surroundings
) -> list[Fact] | None:
    body = _body(node, "body")
    if body is None or len(body.inputs) < 2 or not body.outputs:
        return None
    carried = _without_values(inputs[2 : len(body.inputs)])
    head = [Tensor(ir.DataType.INT64, ()), Tensor(ir.DataType.BOOL, ())]
    limit, starts = _number(inputs, 0, node), _number(inputs, 1, node)
    inside = around.inside("body", _runs(limit, starts))
    outputs: list[Fact] = []
    for _ in range(_MAX_ROUNDS):
        outputs = analyse(body, [*head, *carried], inside)
        after = [join(a, b) for a, b in zip(carried, outputs[1:], strict=False)]
        if after == carried:
            break
        carried = after
    else:
        carried = [_kind_only(fact) for fact in carried]
        outputs = analyse(body, [*head, *carried], inside)
    is_limited = bool(node.inputs) and node.inputs[0] is not None
    trips: Dim = limit if is_limited and starts == 1 and _goes_on(body) else None
    if is_known(trips) and trips < 0:
        trips = 0
    return carried + [_stacked(fact, trips, 0) for fact in outputs[1 + len(carried) :]]


def _number(inputs: list[Fact], index: int, node: ir.Node) -> Dim:
    """The trip count or the condition of a loop; 1 where it is absent."""
    if len(inputs) <= index or node.inputs[index] is None:
        return 1
    fact = inputs[index]
    values = fact.values if isinstance(fact, Tensor) else None
    return values[0] if values is not None and len(values) == 1 else None


def _runs(limit: Dim, starts: Dim) -> bool | None:
    """Whether a loop runs at least once."""
    if starts == 0 or (is_known(limit) and limit < 1):
        return False
    return True if starts == 1 and is_known(limit) else None


def _goes_on(body: ir.Graph) -> bool:
    """Whether a loop that runs ends only by its trip count."""
    condition: ir.Value | None = body.outputs[0]
    producer = condition.producer() if condition is not None else None
    if producer is not None and producer.op_type == "Identity" and producer.inputs:
        condition = producer.inputs[0]
    known = readable_constant(condition)
    is_true = known is not None and known.size == 1 and bool(known.item())
    return condition is body.inputs[1] or is_true


def _scan(
    analyse: AnalyseBody, node: ir.Node, inputs: list[Fact], around: Surroundings
) -> list[Fact] | None:
    body = _body(node, "body")
    count = _integers(node, "num_scan_inputs")
    if body is None or not count or around.opset < 9 or count[0] > len(inputs):
        return None
    states = len(inputs) - count[0]
    axes = _integers(node, "scan_input_axes") or (0,) * count[0]
    if len(axes) != count[0]:
        return None
    length: Dim = None
    elements = []
    for fact, axis in zip(inputs[states:], axes, strict=True):
        element, dim = _without_axis(fact, axis)
        elements.append(element)
        length = dim if length is None else length
    carried = _without_values(inputs[:states])
    runs = length > 0 if is_known(length) else None
    inside = around.inside("body", runs)
    outputs = analyse(body, [*carried, *elements], inside)
    after = [join(a, b) for a, b in zip(carried, outputs, strict=False)]
    if after != carried:
        carried = [_kind_only(fact) for fact in carried]
        outputs = analyse(body, [*carried, *elements], inside)
        after = [join(a, b) for a, b in zip(carried, outputs, strict=False)]
    carried = after
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


Rule: TypeAlias = "Callable[[AnalyseBody, ir.Node, list[Fact], Surroundings], list[Fact] | None]"

RULES: Mapping[str, Rule] = {"If": _if, "Loop": _loop, "Scan": _scan}
"""What each operator gives; None where it is not well-formed."""
