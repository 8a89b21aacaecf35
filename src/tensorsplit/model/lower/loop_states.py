"""Loops whose states nothing uses afterwards, and loops that pass on what an If gives.

They are for targets that take the shape of the one for fixed, and the memory of the other for free.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import onnx_ir as ir

from tensorsplit.model.features.body_features import results_to_settle, unused_and_changing
from tensorsplit.model.features.given_as_is import AROUND, given_as_is, given_inputs, keep_added
from tensorsplit.model.features.shared_memory import carried_numbers, shared_states
from tensorsplit.model.graph.calculation import EQUAL_BEFORE_11, FIRST_WITH_INTEGERS_COMPARED
from tensorsplit.model.graph.loops import body_of, is_loop, loop_body
from tensorsplit.model.graph.nodes import NodeRef
from tensorsplit.model.graph.uses import is_needed
from tensorsplit.model.infer.filling import fill_value
from tensorsplit.model.lower.state import InsertionPoint, Lowering, refusal
from tensorsplit.model.profiles import Limitation

_FIRST_WITH_CHOICES, _FIRST_WITH_ANY_EQUAL = 9, 11

_WITHOUT_WHERE = (
    *(ir.DataType.BOOL, ir.DataType.INT16, ir.DataType.UINT16, ir.DataType.UINT64),
    ir.DataType.BFLOAT16,
)
"""Element types for which onnxruntime 1.32.0 has no Where."""


def use_states(lowering: Lowering) -> bool:
    """Use the states of a loop, where the target needs that to see that their shape changes.

    Returns whether there was any.
    """
    return lowering.change_each("unused_in_loop", is_loop, _use)


def _use(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Choose another output of a loop by a condition that reads the unused ones.

    The choice is between the output and itself. (An If can't be used: OpenVINO gives memory of a
    Loop that was freed.)
    """
    node = ref.node
    if ref.opset < FIRST_WITH_INTEGERS_COMPARED:
        lowering.note(entry)
        return
    found = unused_and_changing(node, lowering.facts, lowering.imported)
    states = [each.result for each in found]
    used = next(made for made in node.outputs if is_needed(made))
    make = InsertionPoint.after(lowering, ref)
    new = make.in_place_of(used)
    sizes = []
    for state in states:
        state.name = state.name or lowering.names.fresh(f"{make.stem}_state")
        sizes.append(make.op("Size", [state]))
    total = reduce(lambda one, other: make.op("Add", [one, other]), sizes)
    has_any = make.op("Greater", [total, make.constant(0)])
    if lowering.facts.tensor(new).element_type not in _WITHOUT_WHERE:
        make.op("Where", [has_any, used, used], outputs=[new])
    else:
        twice = make.concat([make.unsqueeze(used, [0])] * 2, 0)
        place = make.op("Cast", [has_any], {"to": int(ir.DataType.INT64)})
        make.op("Gather", [twice, place], outputs=[new])
    lowering.changed(ref, "the same, with what it carries used afterwards", entry)


def give_own_values(lowering: Lowering) -> bool:
    """Let bodies give the outputs of own nodes only, where the target goes wrong otherwise.

    Returns whether there were any.
    """
    changes = {"given_as_is": _give_own_values, "gives_inputs": _pass_inputs_on}
    return any(lowering.change_limited(*each) for each in changes.items())


def _give_own_values(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Insert an Identity before each of these; values from around have one, which reading added."""
    for what, body, place in list(given_as_is(ref.node)):
        old = body.outputs[place]
        if what == AROUND:
            keep_added(old)
        elif what in entry.values:
            new = InsertionPoint(lowering, ref.stem, body).passed_on(old)
            lowering.describe(new, old)
            fill_value(new, lowering.facts)
            body.outputs[place] = new
    lowering.changed(ref, "the same, with an Identity before what its bodies give out", entry)


def _pass_inputs_on(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Insert an Identity before each input that the body gives out."""
    _give_instead(lowering, ref, given_inputs(ref.node), InsertionPoint.passed_on)
    lowering.changed(ref, "the same, with an Identity before what its body passes on", entry)


def copy_numbers(lowering: Lowering) -> None:
    """Let a loop carry the number of its round in memory of its own."""
    lowering.change_each("carries_number", carried_numbers, _copy_numbers)


def _copy_numbers(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Calculate the states of a loop: double them, and subtract them once."""
    places = [1 + place for place in carried_numbers(ref.node)]
    _give_instead(lowering, ref, places, InsertionPoint.calculated)
    lowering.changed(ref, "the same, with the number that it carries calculated", entry)


def _give_instead(
    lowering: Lowering,
    ref: NodeRef,
    places: list[int],
    instead: Callable[[InsertionPoint, ir.Value], ir.Value],
) -> None:
    """Replace some outputs of a body by values made of them, of the same type and shape."""
    body = body_of(ref.node)
    for place in places:
        make = InsertionPoint(lowering, ref.stem, body)
        old = body.outputs[place]
        new = instead(make, old)
        new.type, new.shape = old.type, old.shape
        body.outputs[place] = new


def copy_states(lowering: Lowering) -> None:
    """Let a loop carry each state in memory of its own."""
    lowering.change_each("shares_states", lambda node: loop_body(node) is not None, _copy_states)


def _copy_states(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Choose the states of a loop from themselves, by a condition known only at run time."""
    if ref.opset < _FIRST_WITH_CHOICES:
        raise refusal(lowering.profile.sentence(entry), "convert to opset 9 or newer")

    def chosen(make: InsertionPoint, old: ir.Value) -> ir.Value:
        kind = lowering.facts.tensor(old).element_type
        is_equal = ref.opset >= _FIRST_WITH_ANY_EQUAL or kind in EQUAL_BEFORE_11
        condition = make.op("Equal" if is_equal else "Less", [old, old])
        return make.op("Where", [condition, old, old])

    _give_instead(lowering, ref, shared_states(ref.node, lowering.facts), chosen)
    lowering.changed(ref, "the same, with what it carries copied", entry)


def pass_results_on(lowering: Lowering) -> None:
    """Have a Loop of one round pass on what an If gives, where the target frees that too early."""
    lowering.change_each("used_result", lambda node: node.op_type == "If", _pass_on)


def _pass_on(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Insert a Loop that gives what it is given after an If, for each result that is used.

    OpenVINO runs what follows a Loop when that has run, and no loop of a tensor of unknown rank.
    """
    make = InsertionPoint.after(lowering, ref)
    fresh = make.names.fresh
    for old in results_to_settle(ref, lowering.imported):
        fact = lowering.facts.tensor(old)
        if fact.shape is None:
            lowering.note(entry)
            continue
        new, inner = make.in_place_of(old), make.inner()
        number = ir.val(fresh(f"{make.stem}_number"), ir.DataType.INT64, [])
        going = ir.val(fresh(f"{make.stem}_going"), ir.DataType.BOOL, [])
        held = ir.val(fresh(f"{make.stem}_held"), fact.element_type, [None] * len(fact.shape))
        ends = [inner.op("Identity", [going]), inner.op("Identity", [held])]
        for end, start in zip(ends, (going, held), strict=True):
            end.type, end.shape = start.type, start.shape
        name = fresh(f"{make.stem}_body")
        body = ir.Graph([number, going, held], ends, nodes=inner.nodes, name=name)
        make.op("Loop", [make.constant(1), None, old], {"body": body}, [new])
        lowering.changed(ref, "the same, with a Loop that passes on what it gives", entry)
