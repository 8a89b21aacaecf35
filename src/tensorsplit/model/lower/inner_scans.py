"""Scans in the body of a Scan, for targets that take no such bodies: they become Loops."""

from __future__ import annotations

import onnx_ir as ir

from tensorsplit.core.arithmetic import Number
from tensorsplit.model.graph.loops import (
    FIRST_SCAN_WITHOUT_BATCHES,
    SCANNED_DIRECTIONS,
    axes_of_scan,
    body_of,
    scanned_by,
    states_of,
)
from tensorsplit.model.graph.nodes import NodeRef, attribute_of
from tensorsplit.model.infer.filling import fill_value
from tensorsplit.model.lower.state import InsertionPoint, Lowering, refusal
from tensorsplit.model.profiles import Limitation

_FIRST_WITHOUT_STATES = 13
"""From here on a Loop may carry nothing."""


def loop_inner_scans(lowering: Lowering) -> bool:
    """Put a Loop in the place of each Scan in the body of a Scan; whether there was any."""
    return lowering.change_limited("scan_in_scan", _loop)


def _loop(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Have a Loop take a row in each round, as many as there are."""
    node, body = ref.node, body_of(ref.node)
    if ref.opset < FIRST_SCAN_WITHOUT_BATCHES:
        first = FIRST_SCAN_WITHOUT_BATCHES
        problem = f"it is in the body of a Scan ({entry.note})"
        raise refusal(problem, f"convert to opset {first} or newer")
    states, (given, made) = states_of(node), axes_of_scan(node)
    backward = [attribute_of(node, name, ir.AttributeType.INTS) for name in SCANNED_DIRECTIONS]
    make = InsertionPoint.before(lowering, ref)
    data = ref.input(len(states))
    assert data is not None  # noqa: S101 - the rows of a Scan are given
    length = lowering.length(data, given[0])
    round_, going = _take_rows(lowering, ref, make.scalar(length - 1), backward[0])
    starts, held = [], [going]
    if not states and ref.opset < _FIRST_WITHOUT_STATES:
        starts.append(make.constant(0))
        held.append(ir.val(make.names.fresh(f"{make.stem}_zero"), ir.DataType.INT64, []))
    inner = InsertionPoint(lowering, make.stem, body)
    body.inputs[:] = [round_, *held, *states]
    body.outputs[:] = [*(_passed_on(inner, each) for each in held), *body.outputs]
    results = [ir.Value(name=make.names.fresh("looped")) for _ in node.outputs]
    unused = [ir.Value(name=make.names.fresh("zero")) for _ in starts]
    loop = ir.Node(
        "",
        "Loop",
        [make.scalar(length), None, *starts, *node.inputs[: len(states)]],
        [node.attributes.pop("body")],  # it is the new node's
        outputs=[*unused, *results],
        name=node.name,
        doc_string=node.doc_string,
        metadata_props=dict(node.metadata_props),
    )
    ref.scope.insert_before(node, loop)
    for place, axis in enumerate(made, len(states)):
        is_backward = bool(backward[1] and backward[1][place - len(states)])
        results[place] = _turned(
            make, results[place], node.outputs[place], axis, length if is_backward else None
        )
    lowering.stand_in(*zip(node.outputs, results, strict=True))
    lowering.edits.retire(node)
    lowering.changed(ref, "Loop", entry)


def _passed_on(make: InsertionPoint, held: ir.Value) -> ir.Value:
    made = make.op("Identity", [held])
    made.type, made.shape = held.type, held.shape
    return made


def _take_rows(
    lowering: Lowering, ref: NodeRef, last: ir.Value, backward: tuple[int, ...] | None
) -> tuple[ir.Value, ir.Value]:
    """Have a body take its rows by the number of the round; returns that, and the condition."""
    node, body = ref.node, body_of(ref.node)
    rows, (axes, _) = scanned_by(node), axes_of_scan(node)
    make = InsertionPoint(lowering, ref.stem, body, next(iter(body), None))
    fresh = make.names.fresh
    round_ = ir.val(fresh(f"{make.stem}_number"), ir.DataType.INT64, [])
    going = ir.val(fresh(f"{make.stem}_going"), ir.DataType.BOOL, [])
    for place, (row, axis) in enumerate(zip(rows, axes, strict=True)):
        is_backward = bool(backward and backward[place])
        index = make.op("Sub", [last, round_]) if is_backward else round_
        data = node.inputs[len(node.inputs) - len(rows) + place]
        taken = make.op("Gather", [data, index], {"axis": axis})
        lowering.describe(taken, row)
        fill_value(taken, lowering.facts)
        body.outputs[:] = [taken if end is row else end for end in body.outputs]
        ir.convenience.replace_all_uses_with(row, taken)
    return round_, going


def _turned(
    make: InsertionPoint, rows: ir.Value, old: ir.Value, axis: int, length: Number | None
) -> ir.Value:
    """Return the rows of a Loop along another axis, and from the last if their number is given."""
    if length is not None:
        places = make.range(length - 1, -1, -1)
        rows = make.op("Gather", [rows, places], {"axis": 0})
    if not axis:
        return rows
    shape = make.lowering.facts.tensor(old).shape
    if shape is None:
        problem = "the rank of a scan output along another axis than the first is not known"
        raise refusal(problem, "declare it")
    return make.moved(rows, len(shape), 0, axis % len(shape))
