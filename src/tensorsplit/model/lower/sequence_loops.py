"""Loops that make sequences: they replace SequenceMap, and outputs of the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import onnx_ir as ir

from tensorsplit.core.arithmetic import Number
from tensorsplit.model.features.values import is_sequence
from tensorsplit.model.graph.calculation import Calculation
from tensorsplit.model.graph.nodes import NodeRef, bodies
from tensorsplit.model.graph.opsets import existing_schema
from tensorsplit.model.lower.lowered_sequence import LoweredSequence, PackedParts
from tensorsplit.model.lower.state import InsertionPoint, Lowering, at, check_loop, refusal
from tensorsplit.model.validity.node_errors import type_name, types_of

_FIRST_WITH_SEQUENCES_IN_LOOPS = 13


def expand_maps(lowering: Lowering) -> bool:
    """Replace each SequenceMap that the target can't run by a Loop; return whether any was."""
    wanted = [
        ref
        for ref in reversed(lowering.refs.values())
        if ref.op_type == "SequenceMap" and lowering.reason(ref.node) is not None
    ]
    for ref in wanted:  # those in the bodies of others first
        with at(ref):
            _expand(lowering, ref)
    lowering.edits.finish()
    return bool(wanted)


def _expand(lowering: Lowering, ref: NodeRef) -> None:
    """Replace a SequenceMap by the loop that the standard defines it by."""
    node, reason = ref.node, lowering.reason(ref.node)
    ((_, body),) = bodies(node)
    kinds = []
    for held in body.outputs:
        kind = lowering.facts.tensor(held).element_type
        if kind is None:
            raise refusal(f"the type of '{held.name}' is not known", "declare it")
        kinds.append(kind)
    make = InsertionPoint.before(lowering, ref)
    first = InsertionPoint(lowering, make.stem, body, next(iter(body), None))
    number = _number(make)
    for outer, inner in zip(node.inputs, body.inputs, strict=True):
        given = outer
        if outer is not None and is_sequence(outer, lowering.facts):
            given = first.op("SequenceAt", [outer, number])
        elif outer is not None and inner.is_graph_output():
            given = first.passed_on(outer)  # a body gives out only what is its own
        if given is not None:
            ir.convenience.replace_all_uses_with(inner, given, replace_graph_outputs=True)
    node.attributes.clear()  # its body is the loop's
    length = make.op("SequenceLength", [node.inputs[0]])
    made = _collecting_loop(make, length, number, body, kinds)
    for old, new in zip(node.outputs, made, strict=True):
        lowering.stand_in((old, new))
    lowering.changed(ref, "Loop", reason)
    lowering.edits.retire(node)


def give_out(lowering: Lowering, old: ir.Value, sequence: LoweredSequence) -> None:
    """Make a sequence again of the tensors that stand for an output of the model."""
    packed, kind = sequence.packed, lowering.sequence(old).element_type
    make = InsertionPoint(lowering, str(old.name), lowering.model.graph)
    _check_type(lowering, old, make.opset)
    if sequence.parts:
        made = make.op("SequenceConstruct", sequence.tensors())
    elif packed is None or kind is None:
        problem = f"the output '{old.name}' is a sequence without tensors or of an unknown type"
        raise refusal(problem, "declare its type")
    else:
        inner, number = make.inner(), _number(make)
        part = packed.at(inner, inner.number(number, ir.DataType.INT64))
        body = ir.Graph([], [part], nodes=inner.nodes, name=make.names.fresh(f"{make.stem}_body"))
        (made,) = _collecting_loop(make, make.scalar(packed.count), number, body, [kind])
    lowering.stand_in((old, made))


def _check_type(lowering: Lowering, old: ir.Value, opset: int) -> None:
    """Refuse (TS513) a sequence of a type that SplitToSequence makes alone."""
    schema, name = existing_schema("SequenceConstruct", opset), type_name(lowering.sequence(old))
    if name and name not in types_of(schema, schema.outputs[0]):
        problem = f"the output '{old.name}' is {name}, which no other operator makes"
        raise refusal(problem, "cast the tensor to another type before it is split")


def join_in_loop(
    make: InsertionPoint, packed: PackedParts, axis: int, *, new_axis: bool
) -> ir.Value:
    """Join the parts of one tensor along any axis; the running model stops if there are none."""
    kind = make.lowering.facts.tensor(packed.data).element_type
    if kind is None:
        raise refusal("the type of the tensors to join is not known", "declare it")
    if kind == ir.DataType.STRING:
        check_loop(make.lowering.profile.about({"strings_in_loop": True}))

    def part(inside: Calculation, place: Number) -> ir.Value:
        held = packed.at(inside, place)
        return inside.unsqueeze(held, [axis]) if new_axis else held

    # Of data that it takes from before the guards OpenVINO's Loop keeps what a refused run left
    count, packed = packed.count, packed.not_empty(make)
    packed = replace(packed, data=packed.whole, zero=0)
    first = part(make, 0)
    start = make.slice(first, 0, 0, axis, by_index=packed.by_index)
    inner, number = make.inner(), _number(make)
    going, so_far = make.new("going", ir.DataType.BOOL, []), make.new("so_far", kind)
    goes_on = inner.op("Identity", [going])
    new = part(inner, inner.number(number, ir.DataType.INT64))
    joined = inner.concat([so_far, new], axis)
    goes_on.type, joined.type = going.type, so_far.type
    name = make.names.fresh(f"{make.stem}_body")
    body = ir.Graph([number, going, so_far], [goes_on, joined], nodes=inner.nodes, name=name)
    rounds = make.scalar(count)
    return make.op("Loop", [rounds, _has_rounds(make, rounds), start], {"body": body})


def _has_rounds(make: Calculation, count: ir.Value) -> ir.Value:
    """Return whether a loop has a first round; OpenVINO takes a count below 0 for infinite."""
    return make.op("Less", [make.constant(0), count])


def _number(make: Calculation) -> ir.Value:
    """Return the number of the round, which a loop gives its body."""
    return make.new("number", ir.DataType.INT64, [])


def _collecting_loop(
    make: Calculation,
    count: ir.Value,
    number: ir.Value,
    body: ir.Graph,
    kinds: Sequence[ir.DataType],
) -> list[ir.Value]:
    """Return a loop that puts what the nodes of its body make for each number into sequences."""
    if make.opset < _FIRST_WITH_SEQUENCES_IN_LOOPS:
        problem = f"a Loop would have to carry a sequence, which it can't at opset {make.opset}"
        fix = f"convert the model to opset {_FIRST_WITH_SEQUENCES_IN_LOOPS} first"
        raise refusal(problem, fix)
    last = make.inner()
    starts = [make.op("SequenceEmpty", [], {"dtype": int(kind)}) for kind in kinds]
    going = make.new("going", ir.DataType.BOOL, [])
    goes_on = last.op("Identity", [going])
    goes_on.type, goes_on.shape = going.type, going.shape
    before, after = [], []
    for kind, made in zip(kinds, body.outputs, strict=True):
        held = ir.SequenceType(ir.TensorType(kind))
        so_far = ir.val(make.names.fresh(f"{made.name}_before"), None, made.shape, type=held)
        before.append(so_far)
        after.append(last.op("SequenceInsert", [so_far, made]))
        after[-1].type, after[-1].shape = so_far.type, so_far.shape
    body.extend(last.nodes)
    body.inputs[:] = [number, going, *before]
    body.outputs[:] = [goes_on, *after]
    given = [count, _has_rounds(make, count), *starts]
    return make.ops("Loop", given, {"body": body}, ["sequence"] * len(kinds))
