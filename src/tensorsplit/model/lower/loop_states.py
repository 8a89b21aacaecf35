"""Loops that carry what nothing uses afterwards, for targets that then take its shape for fixed."""

from __future__ import annotations

from functools import reduce

import onnx_ir as ir

from tensorsplit.model.graph.calculation import FIRST_WITH_INTEGERS_COMPARED, Calculation
from tensorsplit.model.graph.nodes import NodeRef
from tensorsplit.model.loop_features import unused_and_changing, unused_states
from tensorsplit.model.lower.state import InsertionPoint, Lowering
from tensorsplit.model.profiles import Limitation


def use_states(lowering: Lowering) -> None:
    """Have what a loop carries used, where the target needs that to know that its shape changes."""
    lowering.change_each("unused_in_loop", unused_states, _use)


def _use(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Have another output of a loop be chosen by a condition that reads the unused ones.

    The condition always holds, and the choice is between the output and itself.
    """
    node = ref.node
    if ref.opset < FIRST_WITH_INTEGERS_COMPARED:
        lowering.note(entry)
        return
    found = unused_and_changing(node, lowering.facts, lowering.imported)
    states = [each.result for each in found]
    used = next(made for made in node.outputs if made.uses() or made.is_graph_output())
    make = InsertionPoint.after(lowering, ref)
    chosen = ir.Value(name=lowering.names.fresh(f"{make.stem}_chosen"))
    lowering.stand_in((used, chosen))
    used.name = lowering.names.fresh(f"{make.stem}_output")
    sizes = []
    for state in states:
        state.name = state.name or lowering.names.fresh(f"{make.stem}_state")
        sizes.append(make.op("Size", [state]))
    total = reduce(lambda one, other: make.op("Add", [one, other]), sizes)
    is_there = make.op("Greater", [total, make.constant(-1)])
    branches = [Calculation(make.names, make.opset, make.stem) for _ in range(2)]
    ends = [inner.op("Identity", [used]) for inner in branches]
    for end in ends:
        end.type = used.type
    make.choose(
        is_there,
        *((inner, [end]) for inner, end in zip(branches, ends, strict=True)),
        outputs=[chosen],
    )
    lowering.changed(ref, "the same, with what it carries used afterwards", entry)
