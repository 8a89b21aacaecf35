"""Types and shapes through If, Loop, Scan and SequenceMap, whose bodies are analysed as graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import onnx_ir as ir

from tensorsplit.core.dimensions import Dim, Shape, is_known
from tensorsplit.core.errors import SplitError
from tensorsplit.model.graph.facts import (
    UNKNOWN,
    Fact,
    Sequence,
    Tensor,
    join,
    kind_only,
    merge_declared,
    tensor_of,
)
from tensorsplit.model.graph.nodes import bodies, constant

AnalyseBody: TypeAlias = Callable[[str, ir.Graph, list[Fact], bool | None], list[Fact]]
"""What is known of the outputs of a body, from its label in a path, the body, what is known of its
inputs, and whether it runs if its node does."""


class Context(NamedTuple):
    """What the rules know of a model.

    Attributes:
        opset: The opset of ONNX's own domain.
        is_believed: Whether the model is taken to be what it says, and what the standard asks for.
        has_rounds: Whether loops are followed round by round.
    """

    opset: int
    is_believed: bool
    has_rounds: bool


_MAX_ROUNDS = 4
"""After so many rounds only the kinds of what a loop carries are kept."""


def _if(analyse: AnalyseBody, node: ir.Node, inputs: list[Fact], _: Context) -> list[Fact] | None:
    branches = dict(bodies(node))
    if not branches.keys() >= {"then_branch", "else_branch"}:
        return None
    condition = tensor_of(inputs[0]).constant if inputs else None
    taken = ("then_branch" if condition[0] else "else_branch") if condition else None
    found = {
        label: analyse(label, branch, [], None if taken is None else label == taken)
        for label, branch in branches.items()
    }
    if taken is not None:
        return found[taken]
    pairs = zip(found["then_branch"], found["else_branch"], strict=False)
    return [join(left, right) for left, right in pairs]


def _loop(
    analyse: AnalyseBody, node: ir.Node, inputs: list[Fact], context: Context
) -> list[Fact] | None:
    body = _body(node)
    if body is None or len(body.inputs) < 2 or not body.outputs:
        return None
    limit, starts = _number(inputs, 0, node), _number(inputs, 1, node)
    runs = _runs(limit, starts)

    def go_round(carried: list[Fact]) -> list[Fact]:
        head = [Tensor(ir.DataType.INT64, ()), Tensor(ir.DataType.BOOL, ())]
        return analyse("body", body, [*head, *carried], runs)[1:]

    carried, rest = _rounds(go_round, inputs[2 : len(body.inputs)], context)
    is_limited = bool(node.inputs) and node.inputs[0] is not None
    trips: Dim = limit if is_limited and starts == 1 and _goes_on(body) else None
    if is_known(trips) and trips < 0:
        trips = 0
    return carried + [_stacked(fact, trips, 0) for fact in rest]


def _rounds(
    go_round: Callable[[list[Fact]], list[Fact]],
    first: list[Fact],
    context: Context,
    both: Callable[[Fact, Fact], Fact] = join,
) -> tuple[list[Fact], list[Fact]]:
    """What is known of what a loop carries in any round, and of what each round gives besides.

    What is carried has the same elements in the first round only.

    Args:
        go_round: What a round makes of what is carried.
        first: What is carried into the first round.
        context: What is known of the model.
        both: What holds of what goes into a round and what comes out.
    """
    carried = [replace(f, values=None) if isinstance(f, Tensor) else f for f in first]
    for _ in range(_MAX_ROUNDS if context.has_rounds else 0):
        outputs = go_round(carried)
        without = [replace(f, values=None) if isinstance(f, Tensor) else f for f in outputs]
        after = [both(a, b) for a, b in zip(carried, without, strict=False)]
        if after == carried:
            break
        carried = after
    else:
        carried = [kind_only(fact) for fact in carried]
        outputs = go_round(carried)
    return carried, outputs[len(carried) :]


def _number(inputs: list[Fact], index: int, node: ir.Node) -> Dim:
    """The trip count or the condition of a loop; 1 where it is absent."""
    if len(inputs) <= index or node.inputs[index] is None:
        return 1
    values = tensor_of(inputs[index]).values
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
    known = None
    with suppress(SplitError):  # checks refuse one that can't be read
        known = constant(condition)
    is_true = known is not None and known.size == 1 and bool(known.item())
    return condition is body.inputs[1] or is_true


def _scan(
    analyse: AnalyseBody, node: ir.Node, inputs: list[Fact], context: Context
) -> list[Fact] | None:
    body = _body(node)
    count = _integers(node, "num_scan_inputs")
    if body is None or not count or count[0] > len(inputs):
        return None
    if context.opset < 9:
        return _scan_batches(analyse, body, inputs[1:], count[0], context)
    states = len(inputs) - count[0]
    axes = _integers(node, "scan_input_axes") or (0,) * count[0]
    if len(axes) != count[0]:
        return None
    slices = [_without_axis(fact, axis) for fact, axis in zip(inputs[states:], axes, strict=True)]
    length: Dim = next((dim for _, dim in slices if dim is not None), None)
    runs = length > 0 if is_known(length) else None
    elements = [element for element, _ in slices]
    carried, rest = _rounds(
        lambda carried: analyse("body", body, [*carried, *elements], runs),
        inputs[:states],
        context,
        _both(context),
    )
    ends = _integers(node, "scan_output_axes") or (0,) * len(rest)
    if len(ends) != len(rest):
        return None
    return carried + [_stacked(fact, length, axis) for fact, axis in zip(rest, ends, strict=True)]


def _both(context: Context) -> Callable[[Fact, Fact], Fact]:
    """What holds of a state before and after a round, whose shape must stay as it is."""
    return merge_declared if context.is_believed else join


def _scan_batches(
    analyse: AnalyseBody, body: ir.Graph, inputs: list[Fact], count: int, context: Context
) -> list[Fact] | None:
    """Scan-8: a batch of scans, each along axis 1; the first input, lengths, is left out here."""
    if count > len(inputs):
        return None
    states = len(inputs) - count
    each = [_without_axis(fact, 0) for fact in inputs]
    slices = [_without_axis(fact, 0) for fact, _ in each[states:]]
    batch: Dim = next((dim for _, dim in each if dim is not None), None)
    length: Dim = next((dim for _, dim in slices if dim is not None), None)
    elements = [element for element, _ in slices]
    carried, rest = _rounds(
        lambda carried: analyse("body", body, [*carried, *elements], None),
        [fact for fact, _ in each[:states]],
        context,
        _both(context),
    )
    rest = [_stacked(fact, length, 0) for fact in rest]
    return [_stacked(fact, batch, 0) for fact in (*carried, *rest)]


def _map(analyse: AnalyseBody, node: ir.Node, inputs: list[Fact], _: Context) -> list[Fact] | None:
    body = _body(node)
    if body is None or not inputs or not isinstance(inputs[0], Sequence):
        return None
    count = inputs[0].count
    runs = count > 0 if is_known(count) else None
    parts: list[Fact] = [
        Tensor(fact.element_type, fact.part) if isinstance(fact, Sequence) else fact
        for fact in inputs
    ]
    found = analyse("body", body, parts, runs)
    return [
        Sequence(fact.element_type, fact.shape, count) if isinstance(fact, Tensor) else UNKNOWN
        for fact in found
    ]


def _body(node: ir.Node) -> ir.Graph | None:
    return dict(bodies(node)).get("body")


def _integers(node: ir.Node, name: str) -> tuple[int, ...] | None:
    attribute = node.attributes.get(name)
    if attribute is None or attribute.is_ref():
        return None
    if attribute.type == ir.AttributeType.INT:
        return (attribute.as_int(),)
    return tuple(attribute.as_ints()) if attribute.type == ir.AttributeType.INTS else None


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


_Rule: TypeAlias = Callable[[AnalyseBody, ir.Node, list[Fact], Context], list[Fact] | None]

RULES: Mapping[str, _Rule] = {"If": _if, "Loop": _loop, "Scan": _scan, "SequenceMap": _map}
"""What each operator gives; None where it is not well-formed."""
