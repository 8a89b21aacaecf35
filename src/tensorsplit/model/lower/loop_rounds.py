"""Loops that may have no round, for targets that then give what was never calculated."""

from __future__ import annotations

import onnx_ir as ir

from tensorsplit.core.dimensions import are_known, is_known
from tensorsplit.model.graph.calculation import FIRST_WITH_INTEGERS_COMPARED, Calculation
from tensorsplit.model.graph.facts import Tensor
from tensorsplit.model.graph.nodes import NodeRef, carried_by, change_inputs
from tensorsplit.model.loop_features import (
    count_and_condition,
    given_without_rounds,
    has_no_round,
    includes_count,
    is_loop,
)
from tensorsplit.model.lower.state import InsertionPoint, Lowering, refusal
from tensorsplit.model.profiles import Limitation


def settle_rounds(lowering: Lowering) -> None:
    """Have a loop that may have no round give what it carries then, and scan outputs of no rows."""
    lowering.change_each("rounds_may_be_0", is_loop, _settle)


def _settle(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Have a loop start on a condition that includes its number of rounds, and an If choose by it.

    The If gives what the loop gives if there was a round, else what it was given to carry.
    """
    node, facts = ref.node, lowering.facts
    if ref.opset < FIRST_WITH_INTEGERS_COMPARED:
        lowering.note(entry)
        return
    if has_no_round(node, facts):
        _leave_out(lowering, ref)
        lowering.changed(ref, "what it is given, as it has no round", entry)
        return
    given = given_without_rounds(node, facts)
    make = InsertionPoint(lowering, node.name or node.op_type, ref.scope, node)
    count, going = count_and_condition(node)
    if count is not None and not includes_count(node, facts):
        is_scalar = facts.tensor(count).shape == ()
        number = count if is_scalar else make.scalar(make.number(count, ir.DataType.INT64))
        has_round = make.op("Less", [make.constant(0), number])
        going = has_round if going is None else make.op("And", [going, has_round])
        change_inputs(node, {1: going})
    if given and going is not None:
        _choose(lowering, ref, given, going)
    lowering.changed(ref, "the same, with what it gives after no round", entry)


def _leave_out(lowering: Lowering, ref: NodeRef) -> None:
    """Put what a loop is given to carry, and scan outputs of no rows, in the place of a loop."""
    node = ref.node
    make = InsertionPoint(lowering, node.name or node.op_type, ref.scope, node)
    starts = {each.result: each.start for each in carried_by(node)}
    for old in node.outputs:
        if old.is_graph_output() or old.uses():
            start, fact = starts.get(old), lowering.facts.tensor(old)
            new = _no_rows(make, fact) if start is None else make.op("Identity", [start])
            make.replace(old, new)
    lowering.edits.retire(node)


def _choose(lowering: Lowering, ref: NodeRef, given: list[ir.Value], going: ir.Value) -> None:
    """Have an If choose what a loop gives, if it had a round."""
    make = InsertionPoint.after(lowering, ref)
    starts = {each.result: each.start for each in carried_by(ref.node)}
    after, without = (Calculation(make.names, make.opset, make.stem) for _ in range(2))
    chosen, ends = [], []
    for old in given:
        new = ir.Value(name=lowering.names.fresh(f"{make.stem}_chosen"))
        lowering.stand_in((old, new))
        old.name = lowering.names.fresh(f"{make.stem}_output")
        start, fact = starts.get(old), lowering.facts.tensor(old)
        kept = _no_rows(without, fact, old) if start is None else without.op("Identity", [start])
        ends.append((after.op("Identity", [old]), kept))
        chosen.append(new)
        for end in ends[-1]:
            end.type = old.type
    make.choose(going, *zip((after, without), zip(*ends, strict=True), strict=True), outputs=chosen)


def _no_rows(make: Calculation, fact: Tensor, rows: ir.Value | None = None) -> ir.Value:
    """Return a scan output of no rows, in the shape of rows that an engine knows if we do not."""
    if fact.element_type is None:
        raise refusal("the type of a scan output is not known", "declare it")
    dims = () if fact.shape is None else fact.shape[1:]
    if rows is not None and not (fact.shape and are_known(dims)):
        return make.slice(rows, 0, 0, 0)
    one = make.filled([], fact.element_type)
    shape = [0, *(dim if is_known(dim) else 0 for dim in dims)]
    return make.op("Expand", [one, make.constant(shape)])
