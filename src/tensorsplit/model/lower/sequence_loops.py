"""Loops that make sequences: in the place of SequenceMap, and of outputs of the model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from tensorsplit.model.features import is_sequence
from tensorsplit.model.graph.building import Builder
from tensorsplit.model.graph.calculation import Calculation
from tensorsplit.model.graph.nodes import NodeRef, bodies
from tensorsplit.model.lower.lowered_sequence import LoweredSequence, PackedParts
from tensorsplit.model.lower.state import InsertionPoint, Lowering, refusal


def expand_maps(lowering: Lowering) -> bool:
    """Replace every SequenceMap that the target can't run by a Loop; whether there were any."""
    wanted = [
        ref
        for ref in reversed(lowering.refs.values())
        if ref.op_type == "SequenceMap" and lowering.reason(ref.node) is not None
    ]
    for ref in wanted:  # those in the bodies of others first
        _expand(lowering, ref)
    lowering.edits.finish()
    return bool(wanted)


def _expand(lowering: Lowering, ref: NodeRef) -> None:
    """Replace a SequenceMap by the loop that the standard defines it by.

    Raises:
        SplitError: TS513 if the type of what the body makes is not declared.
    """
    node, reason = ref.node, lowering.reason(ref.node)
    body = next((graph for _, graph in bodies(node)), None)
    if body is None or reason is None or len(body.inputs) != len(node.inputs):
        raise refusal("its body does not fit it", ref, "repair the model")
    kinds = []
    for held in body.outputs:
        if held.dtype is None:
            raise refusal(f"the type of '{held.name}' is not declared", ref, "declare it")
        kinds.append(held.dtype)
    make = InsertionPoint(lowering, node.name or "SequenceMap", ref.scope, node)
    first = InsertionPoint(lowering, make.stem, body, next(iter(body), None))
    number = _number(make)
    for outer, inner in zip(node.inputs, body.inputs, strict=True):
        given = outer
        if outer is not None and is_sequence(outer, lowering.facts):
            given = first.op("SequenceAt", [outer, number])
        if given is not None:
            ir.convenience.replace_all_uses_with(inner, given, replace_graph_outputs=True)
    length = make.op("SequenceLength", [node.inputs[0]])
    made = _collecting_loop(make, length, number, body, kinds)
    for old, new in zip(node.outputs, made, strict=True):
        lowering.stand_in(old, new)
    lowering.changed(ref, "Loop", reason.note)
    lowering.edits.retire(node)


def give_out(lowering: Lowering, old: ir.Value, sequence: LoweredSequence) -> None:
    """Make a sequence of the tensors that stand for it, in the place of an output of the model.

    Raises:
        SplitError: TS513 if it is empty, or of a type that is not known.
    """
    packed = sequence.packed
    make = InsertionPoint(lowering, old.name or "output", lowering.model.graph)
    if sequence.parts:
        made = make.op("SequenceConstruct", sequence.tensors())
    elif packed is not None:
        made = _collected(make, packed)
    else:
        raise refusal(f"the output '{old.name}' is a sequence without tensors", None)
    lowering.stand_in(old, made)


def _collected(make: InsertionPoint, packed: PackedParts) -> ir.Value:
    """A loop that puts one part after the other into a sequence."""
    kind = make.lowering.tensor(packed.data).element_type
    if kind is None:
        problem = f"the element type of the output '{make.stem}' is not known"
        raise refusal(problem, None, "declare it")
    inner, number = Calculation(make.names, make.opset, make.stem), _number(make)
    part = packed.at(inner, inner.number(number, ir.DataType.INT64))
    body = ir.Graph([], [part], nodes=inner.nodes, name=make.names.fresh(f"{make.stem}_body"))
    return _collecting_loop(make, make.scalar(packed.count), number, body, [kind])[0]


def _number(make: Builder) -> ir.Value:
    """The number of the round, which a loop gives its body."""
    name = make.names.fresh(f"{make.stem}_number")
    return ir.Value(name=name, type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape([]))


def _collecting_loop(
    make: Builder,
    count: ir.Value,
    number: ir.Value,
    body: ir.Graph,
    kinds: Sequence[ir.DataType],
) -> list[ir.Value]:
    """A loop that puts what the nodes of its body make for each number into sequences."""
    names, last = make.names, Builder(make.names, make.opset, make.stem)
    always = make.constant(True, np.bool_)
    starts = [make.op("SequenceEmpty", [], {"dtype": int(kind)}) for kind in kinds]
    flag = ir.TensorType(ir.DataType.BOOL)
    going = ir.Value(name=names.fresh(f"{make.stem}_going"), type=flag, shape=ir.Shape([]))
    goes_on = last.op("Identity", [going])
    goes_on.type, goes_on.shape = going.type, going.shape
    before, after = [], []
    for kind, made in zip(kinds, body.outputs, strict=True):
        held = ir.SequenceType(ir.TensorType(kind))
        so_far = ir.Value(name=names.fresh(f"{made.name}_before"), type=held, shape=made.shape)
        before.append(so_far)
        after.append(last.op("SequenceInsert", [so_far, made]))
        after[-1].type, after[-1].shape = so_far.type, so_far.shape
    body.extend(last.nodes)
    body.inputs[:] = [number, going, *before]
    body.outputs[:] = [goes_on, *after]
    outputs = [ir.Value(name=names.fresh(f"{make.stem}_sequence")) for _ in kinds]
    make.op("Loop", [count, always, *starts], {"body": body}, outputs)
    return outputs
