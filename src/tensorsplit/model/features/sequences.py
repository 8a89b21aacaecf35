"""Features of nodes that take or give sequences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import onnx_ir as ir

from tensorsplit.core.dimensions import is_known
from tensorsplit.core.errors import short_name
from tensorsplit.model.features.values import of_type
from tensorsplit.model.graph.facts import SequenceFact
from tensorsplit.model.graph.held_tensors import fixed_tensor_of
from tensorsplit.model.graph.nodes import NodeRef, bodies, is_used, nodes_in
from tensorsplit.model.graph.producers import first_input, origins
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.infer.foreign_operators import DOMAIN as FOREIGN
from tensorsplit.model.infer.sequence_operators import POSITIONS

SEQUENCE_OPERATORS = frozenset(
    {
        *("SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert"),
        *("SequenceLength", "SequenceMap", "ConcatFromSequence", "SplitToSequence"),
    }
)
"""The operators that make or take sequences and nothing else."""

OPTIONAL_OPERATORS = frozenset({"Optional", "OptionalGetElement", "OptionalHasElement"})
"""The operators that make or take optional values and nothing else."""


def of_sequences(ref: NodeRef, facts: Facts, seen: Facts) -> Iterator[tuple[str, object]]:
    """Yield the features of a node that takes or gives sequences."""
    node = ref.node
    yield from of_uses(node)
    for value in (*node.inputs, *node.outputs):
        fact = facts.of(value)
        if not isinstance(fact, SequenceFact):
            continue
        yield from of_type(value, facts).items()
        imported = seen.of(value)
        if not isinstance(imported, SequenceFact) or not is_known(imported.count):
            yield "unknown_number_of_parts", True
        if value in node.inputs and value is not None and value.graph not in (None, node.graph):
            yield "captured_sequence", True
    if node.op_type == "Identity" and ref.opset < 14:
        yield "identity_before_14", True
    if node.op_type == "ConcatFromSequence" and _is_used_by_nodes(ref):
        yield "joined_for_nodes", True
    if node.op_type == "SequenceMap":
        yield from _of_map(ref)
    yield from _of_position(ref, facts, seen)


def _of_map(ref: NodeRef) -> Iterator[tuple[str, object]]:
    if ref.around[-1:] == ("SequenceMap",):
        yield "map_in_map", True
    if any(held.type is None for _, body in bodies(ref.node) for held in body.outputs):
        yield "undeclared_results", True
    inside = (replace(ref, node=node) for _, body in bodies(ref.node) for node in nodes_in(body))
    if any(each.node.domain != FOREIGN and each.schema is None for each in inside):
        yield "call_in_map", True


def _of_position(ref: NodeRef, facts: Facts, seen: Facts) -> Iterator[tuple[str, object]]:
    node = ref.node
    index = ref.input(POSITIONS.get(node.op_type, len(node.inputs)))
    if node.op_type == "SequenceInsert" and index is not None and _may_be_last(node, index, facts):
        yield "inserted_last", True
    if index is not None and facts.tensor(index).shape == (1,):
        yield "listed_position", True
    if index is not None and seen.tensor(index).constant is None:
        yield "runtime_sequence_index", True
    elif node.op_type == "SequenceAt" and _is_given(_taken(node, seen), ref):
        yield "input_taken_out", True


def _may_be_last(node: ir.Node, index: ir.Value, facts: Facts) -> bool:
    """Return whether a position may be the one after the last tensor of a sequence."""
    sequence, places = facts.of(node.inputs[0]), facts.tensor(index).constant
    count = sequence.count if isinstance(sequence, SequenceFact) else None
    return places is None or any(
        place >= 0 and (place == count or not is_known(count)) for place in places
    )


def _taken(node: ir.Node, seen: Facts) -> ir.Value | None:
    """Return the tensor that a SequenceAt takes out, if it was put in at a known position here."""
    makers = [held.producer() for held in origins(first_input(node), _changed)]
    *changes, maker = [each for each in makers if each is not None] or [node]
    if maker.op_type not in ("SequenceConstruct", "SequenceEmpty"):
        return None
    held = list(maker.inputs)
    for change in reversed(changes):
        is_insert = change.op_type == "SequenceInsert"
        place = _place(change, len(held) + is_insert, seen)
        if place is None:
            return None
        held[place : place + (not is_insert)] = change.inputs[1:2] if is_insert else ()
    place = _place(node, len(held), seen)
    return None if place is None else held[place]


def _changed(node: ir.Node) -> ir.Value | None:
    """Return the sequence that a node puts a tensor into, or takes one out of."""
    return first_input(node) if node.op_type in ("SequenceErase", "SequenceInsert") else None


def _place(node: ir.Node, count: int, seen: Facts) -> int | None:
    """Return a position from the front, if there are so many; None where it is not known."""
    index = node.inputs[POSITIONS[node.op_type] :][:1]
    places = seen.tensor(index[0]).constant if index and index[0] is not None else (count - 1,)
    if places is None or len(places) != 1 or not -count <= places[0] < count:
        return None
    return places[0] % count


def _is_given(value: ir.Value | None, ref: NodeRef) -> bool:
    """Return whether a value is an input of the model, or is calculated around a body."""
    if value is None or (value.graph is ref.node.graph and ref.around):
        return False
    if value.is_graph_input():
        return True
    return value.graph not in (None, ref.node.graph) and fixed_tensor_of(value) is None


def _is_used_by_nodes(ref: NodeRef) -> bool:
    """Return whether anything but an output of the model uses what a node makes."""
    node = ref.node
    rest = ref.path.removeprefix(f"graph/{short_name(node.name or node.op_type)}")
    is_inside = rest != "" and not rest.startswith("[")
    return any(value.uses() or is_inside for value in node.outputs)


def of_uses(node: ir.Node) -> Iterator[tuple[str, object]]:
    """Yield the features of a node that follow from the readers of its outputs."""
    first, *later = node.outputs or (None,)
    following = {user.op_type for user in (() if first is None else first.consumers())}
    if not following.isdisjoint({"SequenceAt", "ConcatFromSequence"}):
        yield "taken_apart", True
    if "ConcatFromSequence" in following:
        yield "joined", True
    if any(map(is_used, later)):
        yield "later_parts", True
