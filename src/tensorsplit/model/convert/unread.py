"""Values that nothing reads: if the target lacks their type, they need not be converted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import onnx_ir as ir

from tensorsplit.core.errors import SplitError
from tensorsplit.model.convert.conversion import Conversion
from tensorsplit.model.graph.calculation import Calculation
from tensorsplit.model.graph.carried import RESERVED
from tensorsplit.model.graph.facts import ABSENT, SequenceFact, Tensor
from tensorsplit.model.graph.loops import carried_by, is_loop
from tensorsplit.model.graph.nodes import bodies, change_inputs
from tensorsplit.model.graph.opsets import existing_schema
from tensorsplit.model.graph.split_records import is_split
from tensorsplit.model.infer.sequence_operators import check_position
from tensorsplit.model.reached import each_once
from tensorsplit.model.validity.node_errors import type_name, types_of

_KIND = ir.DataType.FLOAT

_FIRST_WITH_SEQUENCES_PASSED_ON = 14
"""Identity takes no sequences before."""


def drop_unread(conversion: Conversion, *nodes: ir.Node) -> bool:
    """Remove nodes on which nothing depends, with those that read them; return whether it could.

    What may have to refuse what it is fed stays, and so does what has bodies.
    """
    readers = dict[ir.Node, None]()
    for node in each_once(nodes, _readers_of):
        is_given = any(_is_given(conversion, made) for made in node.outputs)
        if is_given or bodies(node) or _may_refuse(conversion, node):
            return False
        readers[node] = None
    inputs = dict.fromkeys(chain.from_iterable(node.inputs for node in readers))
    for node in readers:
        change_inputs(node, {}, 0)
        conversion.edits.retire(node)
    before = [held for held in inputs if held is not None and held.producer() not in readers]
    conversion.drop_calculated(before, lambda node: _may_refuse(conversion, node))
    return True


def _readers_of(node: ir.Node) -> Iterator[ir.Node]:
    return (reader for made in node.outputs for reader, _ in made.uses())


def _is_given(conversion: Conversion, value: ir.Value) -> bool:
    """Return whether a graph gives out a value, or the model's training may read it."""
    return value.is_graph_output() or value.name in conversion.model.meta.get(RESERVED, ())


def _may_refuse(conversion: Conversion, node: ir.Node) -> bool:
    """Return whether a node may have to refuse what it is fed: a split, or one with a position."""
    facts = conversion.facts
    known = [ABSENT if each is None else facts.of(each) for each in node.inputs]
    try:
        return is_split(node) or not check_position(node, known)
    except SplitError:
        return True


def leave_out_unread(conversion: Conversion) -> None:
    """Let an If or a Loop give a number instead of outputs of too new a type that nothing reads.

    What made it is removed if it can't be converted, and else stays. What a Loop carries stays.
    """
    model = conversion.model
    for scope in (model.graph, *model.functions.values()):
        for node in _last_first(scope):
            if node.domain == "" and node.op_type in _GIVING:
                _leave_out(conversion, node)


_GIVING = ("If", "Loop")


def _last_first(scope: Iterable[ir.Node]) -> Iterator[ir.Node]:
    """Yield the nodes of a graph or function, the last one first, each before its bodies."""
    for node in reversed([*scope]):
        yield node
        for _, body in bodies(node):
            yield from _last_first(body)


def _leave_out(conversion: Conversion, node: ir.Node) -> None:
    """Leave out unread outputs of a node."""
    schema, facts = existing_schema(node.op_type, conversion.target), conversion.facts
    taken = types_of(schema, schema.outputs[0]) | {None}
    first = len(carried_by(node))
    inside = first + int(is_loop(node))  # after its condition
    for place, value in enumerate(node.outputs[first:]):
        given = [facts.of(body.outputs[inside + place]) for _, body in bodies(node)]
        is_sequence = any(isinstance(fact, SequenceFact) for fact in given)
        is_passed_on = conversion.target >= _FIRST_WITH_SEQUENCES_PASSED_ON or not is_sequence
        if {type_name(fact) for fact in given} <= taken and is_passed_on:
            continue
        readers = [reader for reader, _ in value.uses()]
        if _is_given(conversion, value) or (readers and not drop_unread(conversion, *readers)):
            continue
        for _, body in bodies(node):
            body.outputs[inside + place] = _number(conversion, node, body)
        value.type, value.shape = ir.TensorType(_KIND), None
        facts.set(value, Tensor(_KIND))


def _number(conversion: Conversion, node: ir.Node, body: ir.Graph) -> ir.Value:
    """Return a number that a body of a node can give, of a type that every opset has."""
    stem = node.name or node.op_type
    make = Calculation(conversion.names, conversion.target, stem)
    number = make.filled([], _KIND)
    number.type, number.shape = ir.TensorType(_KIND), ir.Shape([])
    body.extend(make.nodes)
    conversion.facts.set(number, Tensor(_KIND, ()))
    return number
