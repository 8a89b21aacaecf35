"""Types and shapes through If, Loop, Scan and SequenceMap, whose bodies are analysed as graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeAlias

import onnx_ir as ir

from tensorsplit.core.dimensions import Dim, Shape, is_at_least, is_known, larger
from tensorsplit.core.errors import SplitError
from tensorsplit.model.graph.facts import (
    UNKNOWN,
    Fact,
    NotKnownError,
    SequenceFact,
    Tensor,
    as_tensor,
    join,
    kind_only,
    merge_declared,
    without_elements,
)
from tensorsplit.model.graph.held_tensors import constant
from tensorsplit.model.graph.nodes import attribute_of, bodies, branch_label
from tensorsplit.model.graph.producers import passed_from

AnalyseBody: TypeAlias = Callable[[str, ir.Graph, list[Fact], bool | None], list[Fact]]
"""What is known of the outputs of a body, from its label in a path, the body, what is known of its
inputs, and whether it runs if its node does."""


class Context(NamedTuple):
    """The knowledge of a model that the rules have.

    Attributes:
        opset: The opset of ONNX's own domain.
        is_believed: Whether declarations, and what the standard asks for, are taken to hold.
        has_rounds: Whether loops are followed round by round.
    """

    opset: int
    is_believed: bool
    has_rounds: bool


_MAX_ROUNDS = 4
"""After so many rounds only the kinds of what a loop carries are kept."""


def _if(analyse: AnalyseBody, node: ir.Node, inputs: list[Fact], _: Context) -> list[Fact]:
    branches = dict(bodies(node))
    if not branches.keys() >= {"then_branch", "else_branch"}:
        raise NotKnownError
    condition = as_tensor(inputs[0]).constant if inputs else None
    taken = branch_label(condition[0]) if condition else None
    found = {
        label: analyse(label, branch, [], None if taken is None else label == taken)
        for label, branch in branches.items()
    }
    return found[taken] if taken else list(map(join, found["then_branch"], found["else_branch"]))


def _loop(analyse: AnalyseBody, node: ir.Node, inputs: list[Fact], context: Context) -> list[Fact]:
    body = _body(node)
    if len(body.inputs) < 2 or not body.outputs:
        raise NotKnownError
    limit, starts = _number(inputs, 0, node), _number(inputs, 1, node)
    runs = _runs(limit, starts)

    def go_round(carried: list[Fact]) -> list[Fact]:
        head = [Tensor(ir.DataType.INT64, ()), Tensor(ir.DataType.BOOL, ())]
        return analyse("body", body, [*head, *carried], runs)[1:]

    carried, rest = _rounds(go_round, inputs[2 : len(body.inputs)], context)
    is_limited = bool(node.inputs) and node.inputs[0] is not None
    trips: Dim = limit if is_limited and starts == 1 and _goes_on(body) else None
    is_sure = starts == 1 and is_at_least(limit, 1)
    return carried + [_collected(fact, larger(0, trips), 0, is_sure=is_sure) for fact in rest]


def _rounds(
    go_round: Callable[[list[Fact]], list[Fact]],
    first: list[Fact],
    context: Context,
    both: Callable[[Fact, Fact], Fact] = join,
) -> tuple[list[Fact], list[Fact]]:
    """Return the facts about a loop's states in any round, and about what each round gives.

    What is carried has the same elements in the first round only.

    Args:
        go_round: What a round makes of what is carried.
        first: What is carried into the first round.
        context: What is known of the model.
        both: What holds of what goes into a round and what comes out.
    """
    carried = list(map(without_elements, first))
    for _ in range(_MAX_ROUNDS if context.has_rounds else 0):
        outputs = go_round(carried)
        after = list(map(both, carried, outputs))
        if after == carried:
            break
        carried = after
    else:
        carried = [kind_only(fact) for fact in carried]
        outputs = go_round(carried)
    return carried, outputs[len(carried) :]


def _number(inputs: list[Fact], index: int, node: ir.Node) -> Dim:
    """Return the trip count or the condition of a loop; 1 where it is absent."""
    if len(inputs) <= index or node.inputs[index] is None:
        return 1
    return as_tensor(inputs[index]).integer


def _runs(limit: Dim, starts: Dim) -> bool | None:
    """Return whether a loop runs at least once."""
    if starts == 0 or (is_known(limit) and limit < 1):
        return False
    return True if starts == 1 and is_known(limit) else None


def _goes_on(body: ir.Graph) -> bool:
    """Return whether a loop that runs ends only by its trip count."""
    condition = passed_from(body.outputs[0])
    known = None
    with suppress(SplitError):  # checks refuse one that can't be read
        known = constant(condition)
    is_true = known is not None and known.size == 1 and bool(known.item())
    return condition is body.inputs[1] or is_true


def _scan(analyse: AnalyseBody, node: ir.Node, inputs: list[Fact], context: Context) -> list[Fact]:
    body, batch = _body(node), None
    is_batched = context.opset < 9
    if is_batched:  # each along axis 1; the first input, lengths, is left out here
        inputs, batch = _without_axes(inputs[1:], [0] * len(inputs[1:]))
    count = attribute_of(node, "num_scan_inputs", ir.AttributeType.INT)
    if count is None or not 0 < count <= len(inputs):
        raise NotKnownError
    states = len(inputs) - count
    slices, length = _without_axes(inputs[states:], _axes(node, "scan_input_axes", count))
    runs = length > 0 if is_known(length) and not is_batched else None
    carried, rest = _rounds(
        lambda carried: analyse("body", body, [*carried, *slices], runs),
        inputs[:states],
        context,
        merge_declared if context.is_believed else join,  # the shape of a state stays as it is
    )
    axes = _axes(node, "scan_output_axes", len(rest))
    is_sure = is_at_least(length, 1)
    rows = [
        _collected(fact, length, axis, is_sure=is_sure)
        for fact, axis in zip(rest, axes, strict=True)
    ]
    found = carried + rows
    return [_stacked(fact, batch, 0) for fact in found] if is_batched else found


def _map(analyse: AnalyseBody, node: ir.Node, inputs: list[Fact], _: Context) -> list[Fact]:
    body = _body(node)
    if not inputs or not isinstance(inputs[0], SequenceFact):
        raise NotKnownError
    count = inputs[0].count
    runs = count > 0 if is_known(count) else None
    parts: list[Fact] = [fact.tensor if isinstance(fact, SequenceFact) else fact for fact in inputs]
    return [
        SequenceFact(fact.element_type, fact.shape, count) if isinstance(fact, Tensor) else UNKNOWN
        for fact in analyse("body", body, parts, runs)
    ]


def _body(node: ir.Node) -> ir.Graph:
    found = dict(bodies(node)).get("body")
    if found is None:
        raise NotKnownError
    return found


def _axes(node: ir.Node, name: str, count: int) -> Sequence[int]:
    """Return the axis of each input or output of a Scan."""
    found: Sequence[int] = attribute_of(node, name, ir.AttributeType.INTS) or (0,) * count
    if len(found) != count:
        raise NotKnownError
    return found


def _without_axes(facts: list[Fact], axes: Sequence[int]) -> tuple[list[Fact], Dim]:
    """Return one slice of each of what a Scan runs along, and how many there are."""
    pairs = [_without_axis(fact, axis) for fact, axis in zip(facts, axes, strict=True)]
    return [fact for fact, _ in pairs], next((dim for _, dim in pairs if dim is not None), None)


def _without_axis(fact: Fact, axis: int) -> tuple[Fact, Dim]:
    """Return one slice of what a Scan runs along, and how many there are."""
    if not isinstance(fact, Tensor):
        return UNKNOWN, None
    if not fact.shape or not -len(fact.shape) <= axis < len(fact.shape):
        return Tensor(fact.element_type), None
    axis %= len(fact.shape)
    rest: Shape = fact.shape[:axis] + fact.shape[axis + 1 :]
    return Tensor(fact.element_type, rest), fact.shape[axis]


def _collected(fact: Fact, count: Dim, axis: int, *, is_sure: bool) -> Fact:
    """Return the outputs of all rounds together; `is_sure` if there is sure to be a round.

    After no round, every dimension is 0 that is not known as a number, whatever its name.
    """
    if isinstance(fact, Tensor) and fact.shape and not is_sure:
        fact = Tensor(
            fact.element_type, tuple(dim if is_known(dim) else None for dim in fact.shape)
        )
    return _stacked(fact, count, axis)


def _stacked(fact: Fact, count: Dim, axis: int) -> Fact:
    """Return tensors of a kind, put together along a new axis."""
    if not isinstance(fact, Tensor):
        return UNKNOWN
    if fact.shape is None:
        return Tensor(fact.element_type)
    rank = len(fact.shape) + 1
    if not -rank <= axis < rank:
        return Tensor(fact.element_type)
    axis %= rank
    return Tensor(fact.element_type, (*fact.shape[:axis], count, *fact.shape[axis:]))


_InferNode: TypeAlias = Callable[[AnalyseBody, ir.Node, list[Fact], Context], list[Fact]]

RULES: Mapping[str, _InferNode] = {"If": _if, "Loop": _loop, "Scan": _scan, "SequenceMap": _map}
"""What each operator gives, where it is well-formed."""
