"""A Loop that carries sequences, with tensors."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from tensorsplit.model.graph.facts import Sequence
from tensorsplit.model.graph.nodes import bodies
from tensorsplit.model.lower.context import Home, refusal
from tensorsplit.model.lower.control import Control, tensors
from tensorsplit.model.lower.cuts import Form
from tensorsplit.model.lower.reps import Rep, as_cut, form_of


@dataclass(frozen=True)
class _Carried:
    """A sequence that a loop carries.

    Attributes:
        rep: What it starts as.
        fact: What is known of it before, in and behind every round.
        form: How tensors hold it; None if the loop only hands it on.
        start: The tensors that it starts as.
        inside: The tensors that a round starts with.
    """

    rep: Rep
    fact: Sequence
    form: Form | None
    start: list[ir.Value]
    inside: list[ir.Value]


def lower_loop(control: Control) -> bool:
    """Lower a Loop and its body; whether it was replaced.

    Raises:
        SplitError: TS513 for a body that does not fit, or a sequence that no tensor can hold.
    """
    node, place = control.place.node, control.place
    label, body = next(iter(bodies(node)))
    count = len(node.inputs) - 2
    if count < 0 or len(body.inputs) != count + 2 or len(body.outputs) < count + 1:
        raise refusal("the body does not fit the loop", place, "repair the model")
    carried = [
        _carry(control, body, index) if control.clusters.goes(node.inputs[index + 2]) else None
        for index in range(count)
    ]
    control.walk(body, f"{place.path}.{label}")
    if not any(carried):
        return False
    _rewire(control, body, carried)
    return True


def _rewire(control: Control, body: ir.Graph, carried: list[_Carried | None]) -> None:
    """Give the loop and its body tensors where they had sequences."""
    node, count = control.place.node, len(carried)
    inputs, inside, outside = list(node.inputs[:2]), list(body.inputs[:2]), [body.outputs[0]]
    made: list[tuple[ir.Value, list[ir.Value]]] = []
    for index, carry in enumerate(carried):
        old, end = node.outputs[index], body.outputs[index + 1]
        if carry is None:
            inputs.append(node.inputs[index + 2])
            inside.append(body.inputs[index + 2])
            outside.append(end)
            made.append((old, [control.copy(old)]))
        elif carry.form is None:
            made.append((old, []))
        else:
            inputs += carry.start
            inside += carry.inside
            outside += control.given_out(control.rep(end), carry.form, body)
            made.append((old, control.new_values(old, carry.fact, carry.form, len(carry.start))))
    outside += body.outputs[count + 1 :]
    made += [(old, [control.copy(old)]) for old in node.outputs[count:]]
    body.inputs[:] = inside
    body.outputs[:] = outside
    outputs = [value for _, new in made for value in new]
    if outputs:
        behind = control.replace(inputs, outputs)
    else:  # it only handed sequences on
        control.context.edits.retire(node)
        behind = Home(control.graph, node, behind=True)
    _hand_over(control, carried, made, behind)


def _hand_over(
    control: Control,
    carried: list[_Carried | None],
    made: list[tuple[ir.Value, list[ir.Value]]],
    behind: Home,
) -> None:
    for index, (old, new) in enumerate(made):
        carry = carried[index] if index < len(carried) else None
        if carry is None:
            control.context.stand_in(old, new[0])
        elif carry.form is None:
            control.reps[old] = carry.rep
        else:
            control.reps[old] = control.taken_back(new, carry.form, carry.fact, behind)


def _carry(control: Control, body: ir.Graph, index: int) -> _Carried:
    """Set up a sequence that a loop carries, before its body is lowered."""
    context, place = control.context, control.place
    start = place.node.inputs[index + 2]
    assert start is not None  # noqa: S101 - a value that goes
    rep = control.rep(start)
    inside, end = body.inputs[index + 2], body.outputs[index + 1]
    if _passes(end, inside):
        control.reps[inside] = rep
        return _Carried(rep, rep.fact, None, [], [])
    fact = _carried_fact(control, rep, (end, place.node.outputs[index], inside))
    form = form_of(rep, place, fact)
    home = Home(control.graph, place.node)
    starts = tensors(as_cut(Rep(rep.parts, rep.cut, fact), form, context, home, place))
    values = control.new_values(inside, fact, form, len(starts))
    first = Home(body, next(iter(body)))
    control.reps[inside] = control.taken_back(values, form, fact, first)
    return _Carried(rep, fact, form, starts, values)


def _carried_fact(control: Control, rep: Rep, values: tuple[ir.Value, ...]) -> Sequence:
    """What is known of the tensors before, in and behind every round."""
    facts = [rep.fact] if rep.parts is None or rep.parts else []
    facts += map(control.fact, values)
    types = (fact.element_type for fact in facts if fact.element_type is not None)
    parts = (fact.part for fact in facts if fact.part is not None)
    return Sequence(next(types, rep.fact.element_type), next(parts, None))


def _passes(end: ir.Value, start: ir.Value) -> bool:
    """Whether a body gives out a sequence as it took it in."""
    while end is not start:
        producer = end.producer()
        if producer is None or producer.op_type != "Identity" or producer.inputs[0] is None:
            return False
        end = producer.inputs[0]
    return True
