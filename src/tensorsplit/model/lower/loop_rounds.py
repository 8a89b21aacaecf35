"""Loops that may have no round, for targets that then give what was never calculated.

And Scans that have none, for targets that refuse those.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from tensorsplit.core.arithmetic import dimension
from tensorsplit.core.dimensions import is_known
from tensorsplit.model.features.body_features import reads_of_condition
from tensorsplit.model.features.rounds import (
    fixed_ends,
    given_without_rounds,
    has_no_round,
    has_open_rows,
    includes_count,
    rounds_by_default,
)
from tensorsplit.model.graph.calculation import (
    FIRST_WITH_INTEGERS_COMPARED,
    FIRST_WITH_RANGE,
    Calculation,
)
from tensorsplit.model.graph.facts import Tensor
from tensorsplit.model.graph.loops import (
    axes_of_scan,
    body_of,
    carried_by,
    count_and_condition,
    is_loop,
    states_of,
)
from tensorsplit.model.graph.nodes import NodeRef, change_inputs, is_used
from tensorsplit.model.graph.opsets import schema_of
from tensorsplit.model.lower.scan_states import add_states, carry_size_of
from tensorsplit.model.lower.state import InsertionPoint, Lowering, refusal
from tensorsplit.model.profiles import Limitation
from tensorsplit.model.validity.node_errors import type_name, types_of

_FIRST_WITH_EXPAND = 8


def leave_out_loops(lowering: Lowering) -> bool:
    """Replace loops that never have a round by what they are given; return whether any were."""
    return lowering.change_limited("rounds_may_be_0", leave_out_loop)


def leave_out_scans(lowering: Lowering) -> bool:
    """Replace Scans without rows by what they are given; return whether there were any."""
    return lowering.change_limited("no_rows", _leave_out_scan)


def pass_conditions_on(lowering: Lowering) -> bool:
    """Let the body of a Loop without a condition pass on its own, which always holds.

    The standard ignores what such a body gives; some targets obey it. Returns whether there was
    any.
    """
    return lowering.change_limited("ignored_condition", _pass_condition_on)


def _pass_condition_on(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    body = body_of(ref.node)
    make = InsertionPoint(lowering, ref.stem, body)
    given, old = body.inputs[1], body.outputs[0]
    reads = reads_of_condition(ref.node)
    body.outputs[0] = _as_condition(make.op("Identity", [given]), given)
    if reads:  # they see what the round before gave
        start = InsertionPoint(lowering, make.stem, ref.scope, ref.node)
        shape = given.shape or ir.Shape([])
        before = _as_condition(ir.val(lowering.names.fresh(f"{make.stem}_condition")), given)
        end = make.op("Reshape", [old, make.constant(shape.numpy())])
        for node, place in reads:
            change_inputs(node, {place: before})
        first = start.constant(np.ones(shape.numpy()), np.bool_)
        add_states(lowering, ref, [(first, before, _as_condition(end, given))])
    lowering.changed(ref, "the same, with a condition that always holds", entry)


def _as_condition(made: ir.Value, like: ir.Value) -> ir.Value:
    made.type, made.shape = ir.TensorType(ir.DataType.BOOL), like.shape or ir.Shape([])
    return made


def hold_conditions(lowering: Lowering) -> bool:
    """Replace the condition, which holds in each round, by True in the body of a Loop.

    It does so where the target loses the condition, but for the node that passes it on. Returns
    whether there was any.
    """
    return lowering.change_limited("reads_condition", _hold_condition)


def _hold_condition(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    body = body_of(ref.node)
    make = InsertionPoint(lowering, ref.stem, body, next(iter(body)))
    shape = body.inputs[1].shape or ir.Shape([])
    holds = make.constant(np.ones(shape.numpy()), np.bool_)
    for node, place in reads_of_condition(ref.node):
        change_inputs(node, {place: holds})
    lowering.changed(ref, "the same, with True in place of the condition in its body", entry)


def settle_rounds(lowering: Lowering) -> None:
    """Let a loop that may have no round give its states then, and scan outputs of no rows."""
    lowering.change_each("rounds_may_be_0", is_loop, _settle)


def _settle(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Let a loop start on a condition that includes its number of rounds, and its rows end by it.

    What it carries is read in its body: an engine then gives what it was at the start. It stays
    with a note where no operator ends rows of such a type, or compares integers.
    """
    node, facts = ref.node, lowering.facts
    given = given_without_rounds(node, facts)
    carried = {each.result: each.inside for each in carried_by(node)}
    rows = [each for each in given if each not in carried]
    can_end = all(_takes("Slice", ref.opset, facts.tensor(each)) for each in rows)
    if ref.opset < FIRST_WITH_INTEGERS_COMPARED or not can_end:
        lowering.note(entry)
        return
    make = InsertionPoint.before(lowering, ref)
    if ref.opset >= FIRST_WITH_RANGE:
        _hide_defaults(make, node, rounds_by_default(node, facts))
        _open_ends(lowering, ref, make.stem)
    count, going = count_and_condition(node)
    if count is not None and not includes_count(node, facts):
        is_list = bool(body_of(node).inputs[1].shape)  # as its condition is one
        if not is_list and facts.tensor(count).shape == ():
            number = count
        else:
            listed = make.number(count, ir.DataType.INT64)
            number = make.make(listed) if is_list else make.scalar(listed)
            if facts.tensor(count).shape is None:  # OpenVINO infers other shapes then than it makes
                change_inputs(node, {0: number})
        has_round = make.op("Less", [make.make(0) if is_list else make.constant(0), number])
        going = has_round if going is None else make.op("And", [going, has_round])
        change_inputs(node, {1: going})
    if rows and going is not None:
        _end_rows(lowering, ref, rows, going)
    if len(rows) < len(given):
        carry_size_of(lowering, ref, [carried[each] for each in given if each in carried])
    lowering.changed(ref, "the same, with what it gives after no round", entry)


def _hide_defaults(make: Calculation, node: ir.Node, places: list[int]) -> None:
    """Calculate the number of rounds and the condition, where they are defaults."""
    for place in places:
        held = node.inputs[place]
        assert held is not None  # noqa: S101 - see `rounds_by_default`
        dtype = ir.DataType.BOOL if place else ir.DataType.INT64
        total = make.op("CumSum", [make.make(make.number(held, dtype)), make.constant(0)])
        number = make.squeeze(total, [0])
        shown = make.op("Cast", [number], {"to": int(ir.DataType.BOOL)}) if place else number
        change_inputs(node, {place: shown})


def _open_ends(lowering: Lowering, ref: NodeRef, stem: str) -> None:
    """Let a body give tensors of a shape that is known only at run time.

    An engine takes that shape for what comes out after no round, too.
    """
    body = body_of(ref.node)
    for place, axes in fixed_ends(ref.node, lowering.facts, lowering.imported):
        make = InsertionPoint(lowering, stem, body)
        old = new = body.outputs[1 + place]
        round_ = make.scalar(make.number(body.inputs[0], ir.DataType.INT64))
        nothing = make.op("Mul", [round_, make.constant(0)])
        for axis in axes:  # a length that is seen may follow from a default (D20)
            end = make.op("Add", [make.scalar(dimension(new, axis)), nothing])
            indices = make.op("Range", [make.constant(0), end, make.constant(1)])
            new = make.op("Gather", [new, indices], {"axis": axis})
        new.type = old.type
        body.outputs[1 + place] = new


def _end_rows(lowering: Lowering, ref: NodeRef, rows: list[ir.Value], going: ir.Value) -> None:
    """Leave out the rows of a loop that had no round."""
    make = InsertionPoint.after(lowering, ref)
    for old in rows:
        new, count = make.in_place_of(old), make.make(dimension(old, 0))
        dims = _hidden_dims(lowering, old)
        ended = make.new("rows") if any(dims) else new
        if _takes("Compress", ref.opset, lowering.facts.tensor(old)):
            make.op("Compress", [old, make.op("Expand", [going, count])], {"axis": 0}, [ended])
        else:
            end = make.op("Mul", [count, make.int64(going, ir.DataType.BOOL)])
            make.op("Slice", [old, make.make(0), end], outputs=[ended])
        if ended is not new:
            make.op("Reshape", [ended, make.constant(dims)], outputs=[new])


def _hidden_dims(lowering: Lowering, rows: ir.Value) -> list[int]:
    """Return the dimensions of a row that a target may not see before it runs; 0 for others.

    After no round it gives 0 for them. It sees none where the target is not an engine.
    The first 0 is for the number of rows.
    """
    shape, seen = (facts.tensor(rows).shape for facts in (lowering.facts, lowering.imported))
    if shape is None:
        return []
    if seen is None or lowering.profile.view is None:
        seen = (None,) * len(shape)
    pairs = zip(shape[1:], seen[1:], strict=True)
    return [0, *(dim if is_known(dim) and not is_known(one) else 0 for dim, one in pairs)]


def _takes(op_type: str, opset: int, fact: Tensor) -> bool:
    """Return whether an operator takes a tensor, or one of an unknown type, as its first input."""
    schema, name = schema_of(op_type, opset), type_name(fact)
    return not name or schema is None or name in types_of(schema, schema.inputs[0])


def leave_out_loop(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Leave out a loop without a round."""
    if has_no_round(ref.node, lowering.facts):
        starts = {each.result: each.start for each in carried_by(ref.node)}
        _put_starts(lowering, ref, starts, {}, entry)


def _leave_out_scan(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Leave out a Scan without rows."""
    node, count = ref.node, len(states_of(ref.node))
    if has_open_rows(node, lowering.facts):
        raise refusal("the shape of the rows that a Scan gives is not known", "declare it")
    starts = dict(zip(node.outputs[:count], node.inputs, strict=False))
    axes = dict(zip(node.outputs[count:], axes_of_scan(node)[1], strict=False))
    _put_starts(lowering, ref, starts, axes, entry)


def _put_starts(
    lowering: Lowering,
    ref: NodeRef,
    starts: Mapping[ir.Value, ir.Value | None],
    axes: Mapping[ir.Value, int],
    entry: Limitation,
) -> None:
    """Replace a node by the states it is given, and by scan outputs of no rows along their axes."""
    make = InsertionPoint.before(lowering, ref)
    for old in filter(is_used, ref.node.outputs):
        start, fact = starts.get(old), lowering.facts.tensor(old)
        make.replace(old, _no_rows(make, fact, axes.get(old, 0)) if start is None else start)
    lowering.edits.retire(ref.node)
    lowering.changed(ref, "what it is given, as it has no round", entry)


def _no_rows(make: Calculation, fact: Tensor, axis: int) -> ir.Value:
    """Return a scan output of no rows, which are of length 0 where their shape is not known."""
    if fact.element_type is None:
        raise refusal("the type of a scan output is not known", "declare it")
    shape = [dim if is_known(dim) else 0 for dim in fact.shape or (0,)]
    shape[axis] = 0
    if make.opset < _FIRST_WITH_EXPAND:
        return make.empty(shape, fact.element_type)
    is_taken = _takes("Expand", _FIRST_WITH_EXPAND, fact)  # onnxruntime 1.32.0 takes no more types
    kind = fact.element_type if is_taken else ir.DataType.FLOAT
    rows = make.op("Expand", [make.filled([], kind), make.constant(shape)])
    return rows if is_taken else make.op("Cast", [rows], {"to": int(fact.element_type)})
