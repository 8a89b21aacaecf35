"""Scans in the body of a Scan, or without rows, for targets that take none: they become Loops."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from tensorsplit.core.arithmetic import Number, require, same, value
from tensorsplit.core.dimensions import is_known
from tensorsplit.model.features.rounds import has_open_rows, may_have_uneven_rows
from tensorsplit.model.features.values import is_empty
from tensorsplit.model.graph.calculation import FIRST_WITH_BOUNDS_AS_INPUTS
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
    """Replace each Scan in the body of a Scan by a Loop; return whether there was any."""
    return lowering.change_limited("scan_in_scan", _loop)


def loop_for_no_rows(lowering: Lowering) -> bool:
    """Replace each Scan that may have no rows by a Loop; return whether there was any.

    Those that give rows of a shape that is not known stay: engines would give 0 for a dimension
    of none. So do those of which it can't be checked that they have equal rows, before opset 10,
    or of which only some are known to have none.
    """
    return lowering.change_limited("rows_may_be_0", _loop_if_known)


def _loop_if_known(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    facts, (_, made) = lowering.facts, axes_of_scan(ref.node)
    rows = zip(ref.node.outputs[len(states_of(ref.node)) :], made, strict=False)
    if (
        has_open_rows(ref.node, facts)
        or any(axis and facts.tensor(out).shape is None for out, axis in rows)
        or _is_unchecked(lowering, ref)
        or any(is_empty(held, facts) for held in ref.node.inputs[-len(scanned_by(ref.node)) :])
    ):
        lowering.note(entry)
    else:
        _loop(lowering, ref, entry)


def _is_unchecked(lowering: Lowering, ref: NodeRef) -> bool:
    """Return whether the numbers of rows may differ, and a model can't check that they do not."""
    too_old = lowering.opset < FIRST_WITH_BOUNDS_AS_INPUTS
    return too_old and may_have_uneven_rows(ref, lowering.facts)


def _loop(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Replace a Scan by a Loop that takes a row in each round, as many as there are."""
    node, body = ref.node, body_of(ref.node)
    if ref.opset < FIRST_SCAN_WITHOUT_BATCHES:
        first = FIRST_SCAN_WITHOUT_BATCHES
        problem = f"it is in the body of a Scan ({entry.note})"
        raise refusal(problem, f"convert to opset {first} or newer")
    if _is_unchecked(lowering, ref):
        problem = "it can't be checked that what a Scan goes along has equal numbers of rows"
        raise refusal(problem, f"convert to opset {FIRST_WITH_BOUNDS_AS_INPUTS} or newer")
    states, (given, made) = states_of(node), axes_of_scan(node)
    backward = [attribute_of(node, name, ir.AttributeType.INTS) for name in SCANNED_DIRECTIONS]
    make = InsertionPoint.before(lowering, ref)
    length = _number_of_rows(lowering, node.inputs[len(states) :], given)
    round_, going = _take_rows(lowering, ref, make.scalar(length - 1), backward[0])
    _declare_ends(lowering, body)
    starts, held = [], [going]
    if not states and ref.opset < _FIRST_WITHOUT_STATES:
        starts.append(make.constant(0))
        held.append(make.new("zero", ir.DataType.INT64, []))
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


def _number_of_rows(
    lowering: Lowering, scanned: Sequence[ir.Value | None], axes: list[int]
) -> Number:
    """Return how many rows there are; the running model stops if it is not one number for all."""
    lengths = [
        lowering.length(data, axis)
        for data, axis in zip(scanned, axes, strict=True)
        if data is not None  # as those of a Scan are
    ]
    first = lengths[0]
    for length in () if lowering.opset < FIRST_WITH_BOUNDS_AS_INPUTS else lengths[1:]:
        first = require(first, same(length, lengths[0]), refusal, "the numbers of rows differ")
    return first


def _declare_ends(lowering: Lowering, body: ir.Graph) -> None:
    """Declare the outputs of a body: after no round, engines give 0 for undeclared dimensions."""
    for end in body.outputs:
        fill_value(end, lowering.facts)


def _passed_on(make: InsertionPoint, held: ir.Value) -> ir.Value:
    made = make.op("Identity", [held])
    made.type, made.shape = held.type, held.shape
    return made


def _take_rows(
    lowering: Lowering, ref: NodeRef, last: ir.Value, backward: tuple[int, ...] | None
) -> tuple[ir.Value, ir.Value]:
    """Let a body take its rows by the round's number; return that, and the condition."""
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


def _backward(make: InsertionPoint, length: Number) -> ir.Value:
    """Return the places of so many rows, from the last one.

    No Range goes back to 0: ONNX Runtime takes a Gather of it for a Slice to -1, which has no rows.
    """
    if is_known(length):
        return make.constant_list(range(length - 1, -1, -1))
    return make.make(value(make.range(0, length)) * -1 + (length - 1))


def _turned(
    make: InsertionPoint, rows: ir.Value, old: ir.Value, axis: int, length: Number | None
) -> ir.Value:
    """Return the rows of a Loop along another axis, and from the last if their number is given."""
    if length is not None:
        rows = make.op("Gather", [rows, _backward(make, length)], {"axis": 0})
    if not axis:
        return rows
    shape = make.lowering.facts.tensor(old).shape
    if shape is None:
        problem = "the rank of a scan output along another axis than the first is not known"
        raise refusal(problem, "declare it")
    return make.moved(rows, len(shape), 0, axis % len(shape))
