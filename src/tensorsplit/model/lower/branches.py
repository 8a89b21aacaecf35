"""An If that gives out sequences, with tensors."""

from __future__ import annotations

import onnx_ir as ir

from tensorsplit.model.graph.facts import Sequence
from tensorsplit.model.graph.nodes import bodies
from tensorsplit.model.lower.context import refusal
from tensorsplit.model.lower.control import Control
from tensorsplit.model.lower.cuts import Form
from tensorsplit.model.lower.reps import Rep, form_of


def lower_if(control: Control) -> bool:
    """Lower an If and its branches; whether it was replaced.

    Raises:
        SplitError: TS513 if the branches lay their sequences out in ways that don't agree.
    """
    node, place = control.place.node, control.place
    branches = [body for _, body in bodies(node)]
    for label, body in bodies(node):
        control.walk(body, f"{place.path}.{label}")
    if not any(map(control.clusters.goes, node.outputs)):
        return False
    given: list[list[ir.Value]] = [[] for _ in branches]
    made: list[tuple[ir.Value, Form | None, list[ir.Value]]] = []
    for index, old in enumerate(node.outputs):
        columns = [[body.outputs[index]] for body in branches]
        form, new = None, []
        if control.clusters.goes(old):
            reps = [control.rep(body.outputs[index]) for body in branches]
            fact = control.fact(old)
            form = _common_form(control, reps, fact)
            columns = [
                control.given_out(rep, form, body) for rep, body in zip(reps, branches, strict=True)
            ]
            new = control.new_values(old, fact, form, len(columns[0]))
        else:
            new = [control.copy(old)]
        for outputs, column in zip(given, columns, strict=True):
            outputs.extend(column)
        made.append((old, form, new))
    for outputs, body in zip(given, branches, strict=True):
        body.outputs[:] = outputs
    behind = control.replace(list(node.inputs), [value for _, _, new in made for value in new])
    for old, form, new in made:
        if control.clusters.goes(old):
            control.reps[old] = control.taken_back(new, form, control.fact(old), behind)
        else:
            control.context.stand_in(old, new[0])
    return True


def _common_form(control: Control, reps: list[Rep], fact: Sequence) -> Form | None:
    """The form that both branches can have; None to pass each tensor by itself."""
    counts = {None if rep.parts is None else len(rep.parts) for rep in reps}
    if len(counts) == 1 and None not in counts and counts != {0}:
        return None
    forms = {rep.cut.form for rep in reps if rep.cut is not None}
    if len(forms) == 1:
        return forms.pop()
    if any(rep.parts is None for rep in reps):
        raise refusal("the branches cut their sequences along different axes", control.place)
    return form_of(Rep((), None, fact), control.place)
