"""Loops and Scans that have to carry more: what they use from around them, and sizes."""

from __future__ import annotations

from dataclasses import replace

import onnx_ir as ir

from tensorsplit.model.features.body_features import has_unread_rows, to_carry
from tensorsplit.model.features.shared_memory import overwritten
from tensorsplit.model.graph.loops import (
    FIRST_SCAN_WITHOUT_BATCHES,
    SCANNED_AXES,
    axes_of_scan,
    body_of,
    captured_in_scan,
    is_loop,
    scanned_by,
    states_of,
)
from tensorsplit.model.graph.nodes import NodeRef, bodies, change_inputs, nodes_in
from tensorsplit.model.infer.filling import fill_value
from tensorsplit.model.lower.state import InsertionPoint, Lowering, refusal
from tensorsplit.model.profiles import Limitation
from tensorsplit.model.validity.node_errors import type_name, types_of


def carry_captured(lowering: Lowering) -> bool:
    """Let a Scan carry the values its body uses from around it, where the target wants it so.

    Less is known of that then. Returns whether there was any.
    """
    had_any = lowering.change_each("captured_in_scan", captured_in_scan, _carry_captured)
    had_default = lowering.change_each("default_in_scan", captured_in_scan, _carry_captured)
    return had_any or had_default


def carry_overwritten(lowering: Lowering) -> None:
    """Let a Loop carry the values from around it that its body overwrites on the target."""
    lowering.change_each("overwritten", is_loop, _carry_captured)


def carry_sizes(lowering: Lowering) -> None:
    """Let a Scan whose body reads no row carry their size, where the target loses rows then."""
    lowering.change_each("unread_rows", has_unread_rows, _carry_size)


def scan_first_axes(lowering: Lowering) -> bool:
    """Let a Scan go along first axes, between Transposes, where the target may die of others.

    Those of unknown rank stay. Returns whether there were any.
    """
    return lowering.change_limited("scanned_across", _scan_first_axes)


def _scan_first_axes(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    node, (given, made) = ref.node, axes_of_scan(ref.node)
    first = len(node.inputs) - len(given)
    places = [(first + i, axis) for i, axis in enumerate(given) if axis]
    results = [
        (out, axis) for out, axis in zip(node.outputs[-len(made) :], made, strict=False) if axis
    ]
    shapes = {
        held: lowering.facts.tensor(held).shape
        for held in (*(node.inputs[place] for place, _ in places), *(held for held, _ in results))
    }
    if None in shapes.values():
        lowering.note(entry)
        return
    before = InsertionPoint.before(lowering, ref)
    turned = {}
    for place, axis in places:
        data = ref.input(place)
        assert data is not None  # noqa: S101 - the rows of a Scan are given
        turned[place] = before.moved(data, len(shapes[data] or ()), axis, 0)
    change_inputs(node, turned)
    after = InsertionPoint.after(lowering, ref)
    for old, axis in results:
        shape = list(shapes[old] or ())
        new = after.in_place_of(old)
        shape.insert(0, shape.pop(axis))
        order = list(range(1, len(shape)))
        order.insert(axis % len(shape), 0)
        for facts in (lowering.facts, lowering.imported):
            facts.set(old, replace(facts.tensor(old), shape=tuple(shape)))
        old.shape = None
        fill_value(old, lowering.facts)
        after.op("Transpose", [old], {"perm": order}, outputs=[new])
    for name, axes in zip(SCANNED_AXES, (given, made), strict=True):
        if any(axes):
            node.attributes.pop(name)
    lowering.changed(ref, "the same along the first axis, between Transposes", entry)


def _carry_captured(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Let a Scan carry the values it captures, unchanged, or a Loop those it would overwrite."""
    if not _can_carry(lowering, ref, entry):
        return
    node, ((_, body),) = ref.node, bodies(ref.node)
    captured = to_carry(node, lowering.facts) or overwritten(node, lowering.imported)
    _check_types(lowering, ref, captured)
    fresh = lowering.names.fresh
    inside = {each: ir.Value(name=fresh(f"{each.name}_carried")) for each in captured}
    for old, new in inside.items():
        lowering.describe(new, old)
        fill_value(new, lowering.facts)
    _use(body, inside)
    ends = [ir.val(fresh("carried"), type=new.type, shape=new.shape) for new in inside.values()]
    for new, end in zip(inside.values(), ends, strict=True):
        body.append(ir.Node("", "Identity", [new], outputs=[end], name=fresh("Identity")))
    add_states(lowering, ref, list(zip(captured, inside.values(), ends, strict=True)))
    lowering.changed(ref, "the same, with what its body uses carried", entry)


def _check_types(lowering: Lowering, ref: NodeRef, captured: list[ir.Value]) -> None:
    """Refuse (TS513) to carry what bodies may use, but what an older version does not carry."""
    if ref.schema is None:
        return
    carried = types_of(ref.schema, ref.schema.inputs[-1])
    for held in captured:
        name = type_name(lowering.facts.of(held))
        if name and name not in carried:
            problem = f"its body uses {name}, which {ref.op_type} can't carry at opset {ref.opset}"
            raise refusal(problem, "convert to a newer opset, or cast it to another type before")


def _carry_size(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Let a Scan carry the number of elements of the rows so far, which nothing uses."""
    if _can_carry(lowering, ref, entry):
        carry_size_of(lowering, ref, scanned_by(ref.node)[-1:])
        lowering.changed(ref, "the same, with the size of its rows carried", entry)


def carry_size_of(lowering: Lowering, ref: NodeRef, values: list[ir.Value]) -> None:
    """Let a Loop or a Scan carry a number to which the sizes of values of its body are added.

    Nothing uses it, but an engine takes the values for read. OpenVINO finds no size of a scalar
    whose shape it does not fold: an axis is added to those.
    """
    stem, body = ref.stem, body_of(ref.node)
    point = InsertionPoint(lowering, stem, ref.scope, ref.node)
    start = point.constant(0)
    held = before = point.new("before", ir.DataType.INT64, [])
    inner = InsertionPoint(lowering, stem, body)
    for value in values:
        is_scalar = lowering.facts.tensor(value).shape == ()
        measured = inner.unsqueeze(value, [0]) if is_scalar else value
        held = inner.op("Add", [held, inner.op("Size", [measured])])
    held.type, held.shape = before.type, before.shape
    add_states(lowering, ref, [(start, before, held)])


def _can_carry(lowering: Lowering, ref: NodeRef, entry: Limitation) -> bool:
    """Return whether a node is of a version that can be given more states; note it if not."""
    if ref.op_type != "Scan" or ref.opset >= FIRST_SCAN_WITHOUT_BATCHES:
        return True
    lowering.note(entry)
    return False


def add_states(
    lowering: Lowering, ref: NodeRef, added: list[tuple[ir.Value, ir.Value, ir.Value]]
) -> None:
    """Replace a node by one with more states: their starts, and in the body both ends."""
    node, fresh, body = ref.node, lowering.names.fresh, body_of(ref.node)
    given, scanned = states_of(node), len(scanned_by(node))
    starts, inside, ends = zip(*added, strict=True)
    place = len(body.inputs) - scanned
    body.inputs[place:place] = inside
    place = len(given) + (node.op_type == "Loop")  # its condition
    body.outputs[place:place] = ends
    outputs = [ir.Value(name=fresh("scanned")) for _ in node.outputs]
    unused = [ir.Value(name=fresh("carried")) for _ in added]
    attributes = list(node.attributes.values())
    node.attributes.clear()  # its body is the new node's
    place = len(node.inputs) - scanned
    made = ir.Node(
        node.domain,
        node.op_type,
        [*node.inputs[:place], *starts, *node.inputs[place:]],
        attributes,
        outputs=[*outputs[: len(given)], *unused, *outputs[len(given) :]],
        name=node.name,
        doc_string=node.doc_string,
        metadata_props=dict(node.metadata_props),
    )
    ref.scope.insert_before(node, made)
    lowering.stand_in(*zip(node.outputs, outputs, strict=True))
    lowering.edits.retire(node)


def _use(body: ir.Graph, inside: dict[ir.Value, ir.Value]) -> None:
    """Let the nodes of a body, and of those in it, use the values that it is given."""
    for node in nodes_in(body):
        held = enumerate(node.inputs)
        change_inputs(node, {i: inside[value] for i, value in held if value in inside})
