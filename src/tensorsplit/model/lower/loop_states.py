"""Loops that carry what nothing uses afterwards, for targets that then take its shape for fixed."""

from __future__ import annotations

import onnx_ir as ir

from tensorsplit.model.graph.nodes import NodeRef
from tensorsplit.model.loop_features import unused_and_changing, unused_states
from tensorsplit.model.lower.state import InsertionPoint, Lowering
from tensorsplit.model.profiles import Limitation

_FIRST_WITH_WHERE = 9


def use_states(lowering: Lowering) -> None:
    """Have what a loop carries used, where the target needs that to know that its shape changes."""
    lowering.change_each("unused_in_loop", unused_states, _use)


def _use(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Have another output of a loop be chosen by a condition that reads the unused ones.

    The condition always holds, and the choice is between the output and itself.
    """
    node = ref.node
    if ref.opset < _FIRST_WITH_WHERE:
        lowering.note(entry)
        return
    found = unused_and_changing(node, lowering.facts, lowering.imported)
    states = [each.result for each in found]
    used = next(made for made in node.outputs if made.uses() or made.is_graph_output())
    nodes = tuple(ref.scope)
    before = next(iter(nodes[nodes.index(node) + 1 :]), None)
    make = InsertionPoint(lowering, node.name or node.op_type, ref.scope, before)
    chosen = ir.Value(name=lowering.names.fresh(f"{make.stem}_where"))
    lowering.stand_in((used, chosen))
    used.name = lowering.names.fresh(f"{make.stem}_output")
    held = used
    for state in states:
        state.name = state.name or lowering.names.fresh(f"{make.stem}_state")
        is_there = make.op("Greater", [make.op("Size", [state]), make.constant(-1)])
        outputs = [chosen] if state is states[-1] else None
        held = make.op("Where", [is_there, held, held], outputs=outputs)
    lowering.changed(ref, "the same, with what it carries used afterwards", entry)
