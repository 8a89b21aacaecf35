"""SequenceMap as the loop that the standard defines it by."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from tensorsplit.model.features import is_sequence
from tensorsplit.model.graph.building import Builder, Edits, Names
from tensorsplit.model.graph.nodes import NodeRef, bodies
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.lower.context import refusal


def expand(place: NodeRef, facts: Facts, names: Names, edits: Edits) -> None:
    """Replace a SequenceMap by a Loop that maps one position after the other.

    Args:
        place: The node.
        facts: What is known of the values of the model.
        names: New names.
        edits: Where to leave the node for removal.

    Raises:
        SplitError: TS513 if the type of what the body makes is not declared.
    """
    node = place.node
    body = next((graph for _, graph in bodies(node)), None)
    graph = node.graph
    if body is None or not isinstance(graph, ir.Graph) or len(body.inputs) != len(node.inputs):
        raise refusal("its body does not fit it", place, "repair the model")
    make = Builder(names, place.opset, node.name or "SequenceMap")
    length = make.op("SequenceLength", [node.inputs[0]])
    starts = [_start(make, value, place) for value in body.outputs]
    always = make.constant(True, np.bool_)
    _fill(body, node, facts, names, place.opset)
    loop = ir.Node(
        "",
        "Loop",
        [length, always, *starts],
        [ir.AttrGraph("body", body)],
        outputs=[ir.Value(name=None, type=old.type, shape=old.shape) for old in node.outputs],
        name=node.name,
    )
    graph.insert_before(node, [*make.nodes, loop])
    for old, new in zip(node.outputs, loop.outputs, strict=True):
        new.name, old.name = old.name, names.fresh(f"{old.name}_before")
        edits.replace(old, new)
    edits.retire(node)


def _start(make: Builder, value: ir.Value, place: NodeRef) -> ir.Value:
    if value.dtype is None:
        raise refusal(f"the type of '{value.name}' is not declared", place, "declare it")
    return make.op("SequenceEmpty", [], {"dtype": int(value.dtype)})


def _fill(body: ir.Graph, node: ir.Node, facts: Facts, names: Names, opset: int) -> None:
    """Turn the body of the map into that of a loop."""
    stem = node.name or "SequenceMap"
    number = ir.Value(name=names.fresh(f"{stem}_number"), type=ir.TensorType(ir.DataType.INT64))
    number.shape = ir.Shape([])
    going = ir.Value(name=names.fresh(f"{stem}_going"), type=ir.TensorType(ir.DataType.BOOL))
    going.shape = ir.Shape([])
    head = Builder(names, opset, stem)
    for outer, inner in zip(node.inputs, body.inputs, strict=True):
        given = outer
        if outer is not None and is_sequence(outer, facts):
            given = head.op("SequenceAt", [outer, number])
        if given is not None:
            ir.convenience.replace_all_uses_with(inner, given, replace_graph_outputs=True)
    tail = Builder(names, opset, stem)
    outputs = [tail.op("Identity", [going])]
    before = []
    for made in body.outputs:
        carried = ir.Value(name=names.fresh(f"{made.name}_before"))
        if made.type is not None:
            carried.type = ir.SequenceType(made.type)
        carried.shape = made.shape
        before.append(carried)
        outputs.append(tail.op("SequenceInsert", [carried, made]))
        outputs[-1].type, outputs[-1].shape = carried.type, carried.shape
    outputs[0].type, outputs[0].shape = going.type, going.shape
    first = next(iter(body), None)
    if first is None:
        body.extend(head.nodes)
    else:
        body.insert_before(first, head.nodes)
    body.extend(tail.nodes)
    body.inputs[:] = [number, going, *before]
    body.outputs[:] = outputs
