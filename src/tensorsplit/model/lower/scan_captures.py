"""Scans whose bodies use values from around them, for targets that have to be given those."""

from __future__ import annotations

import onnx_ir as ir

from tensorsplit.model.graph.nodes import (
    NodeRef,
    attribute_of,
    bodies,
    change_inputs,
    scopes_in,
)
from tensorsplit.model.infer.filling import fill_value
from tensorsplit.model.loop_features import captured_in_scan
from tensorsplit.model.lower.state import Lowering
from tensorsplit.model.profiles import Limitation

_FIRST_WITHOUT_BATCHES = 9


def carry_captured(lowering: Lowering) -> None:
    """Have a Scan carry what its body uses from around it, where the target wants it so."""
    lowering.change_each("captured_in_scan", captured_in_scan, _carry)


def _carry(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Put a Scan that carries what it captures, unchanged, in the place of one."""
    node, fresh = ref.node, lowering.names.fresh
    count = attribute_of(node, "num_scan_inputs", ir.AttributeType.INT)
    if ref.opset < _FIRST_WITHOUT_BATCHES or count is None:
        lowering.note(entry)
        return
    captured, ((_, body),) = captured_in_scan(node), bodies(node)
    inside = {each: ir.Value(name=fresh(f"{each.name}_carried")) for each in captured}
    for old, new in inside.items():
        for facts in (lowering.facts, lowering.imported):
            facts.set(new, facts.of(old))
        fill_value(new, lowering.facts)
    _use(body, inside)
    states = len(node.inputs) - count
    ends = [ir.val(fresh("carried"), type=new.type, shape=new.shape) for new in inside.values()]
    for new, end in zip(inside.values(), ends, strict=True):
        body.append(ir.Node("", "Identity", [new], outputs=[end], name=fresh("Identity")))
    body.inputs[states:states] = inside.values()
    body.outputs[states:states] = ends
    outputs = [ir.Value(name=fresh("scanned")) for _ in node.outputs]
    unused = [ir.Value(name=fresh("carried")) for _ in captured]
    attributes = list(node.attributes.values())
    node.attributes.clear()  # its body is the new node's
    made = ir.Node(
        node.domain,
        node.op_type,
        [*node.inputs[:states], *captured, *node.inputs[states:]],
        attributes,
        outputs=[*outputs[:states], *unused, *outputs[states:]],
        name=node.name,
        doc_string=node.doc_string,
        metadata_props=dict(node.metadata_props),
    )
    ref.scope.insert_before(node, made)
    lowering.stand_in(*zip(node.outputs, outputs, strict=True))
    lowering.changed(ref, "the same, with what its body uses carried", entry)
    lowering.edits.retire(node)


def _use(body: ir.Graph, inside: dict[ir.Value, ir.Value]) -> None:
    """Have the nodes of a body, and of those in it, use the values that it is given."""
    for scope in scopes_in(body):
        for node in scope:
            held = enumerate(node.inputs)
            change_inputs(node, {i: inside[value] for i, value in held if value in inside})
        if isinstance(scope, ir.Graph):
            scope.outputs[:] = [inside.get(end, end) for end in scope.outputs]
