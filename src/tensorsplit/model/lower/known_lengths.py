"""Lengths that nodes calculate from constants and known shapes, and that are constants so.

A target may not calculate them as it loads the model, and then load none of the nodes that check
them: OpenVINO has no memory for tensors of an open shape there.
"""

from __future__ import annotations

from itertools import count
from math import prod
from typing import Any

import numpy as np
import onnx_ir as ir

from tensorsplit.core.dimensions import are_known, is_known
from tensorsplit.core.errors import SplitError
from tensorsplit.model.features.from_constants import MOST_STEPS, is_evaluated
from tensorsplit.model.features.split_features import dimension_of
from tensorsplit.model.features.values import has_known_shape
from tensorsplit.model.graph.copying import Copies
from tensorsplit.model.graph.held_tensors import constant
from tensorsplit.model.graph.nodes import NodeRef, change_inputs
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.infer.elements import MAX_ELEMENTS, constant_array
from tensorsplit.model.lower.state import InsertionPoint, Lowering
from tensorsplit.model.profiles import Limitation, must_go
from tensorsplit.model.run.evaluator import evaluate
from tensorsplit.model.run.program import compile_graph


def write_lengths(lowering: Lowering) -> bool:
    """Replace lengths that are always the same and fit by constants.

    Returns whether there were any.
    """
    has_any = lowering.change_limited("lengths_of_constants", _write_where_known)
    return lowering.change_limited("runtime_lengths", _write_lengths) or has_any


def _write_where_known(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Write lengths that nodes calculate from constants; defaults that may change are noted."""
    if not _write(lowering, ref, entry):
        lowering.note(entry)


def _write_lengths(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    if must_go(entry):
        _write(lowering, ref, entry)


def _write(lowering: Lowering, ref: NodeRef, entry: Limitation) -> bool:
    """Replace lengths by a constant, if they are one; return whether that was done."""
    held = ref.input(1)
    if held is None or ref.function is not None or constant(held) is not None:
        return False
    lengths = _calculated(lowering, held)
    if lengths is None or not _fit(lowering, ref, lengths):
        return False
    made = InsertionPoint.before(lowering, ref).constant(lengths, lengths.dtype)
    change_inputs(ref.node, {1: made})
    lowering.changed(ref, "the same, with its lengths as a constant", entry)
    return True


def _fit(lowering: Lowering, ref: NodeRef, lengths: np.ndarray) -> bool:
    """Return whether lengths fit their data as far as that is known; others are not written."""
    if lengths.dtype not in (np.int32, np.int64) or lengths.ndim > 1 or lengths.min(initial=0) < 0:
        return False
    intent = lowering.facts.split(ref).require_intent()
    if not intent.operator.is_sequence and lengths.shape != (len(ref.node.outputs),):
        return False
    dim = dimension_of(intent, ref.node, lowering.facts)
    if lengths.ndim == 0:
        return bool(lengths > 0)
    return not is_known(dim) or sum(lengths.tolist()) == dim


def _calculated(lowering: Lowering, held: ir.Value) -> Any:
    """Return a value that nodes calculate from constants and known shapes alone, or None."""
    nodes, known = _nodes_to(held, lowering.facts)
    if not nodes:
        return None
    number = count()
    given = {
        start: ir.Value(name=f"known_{next(number)}", const_value=ir.tensor(array))
        for start, array in known.items()
    }
    copies = Copies(given, lambda node: node.attributes, lambda _: f"made_{next(number)}", {})
    made = copies.of(nodes)
    result = copies.made[held]
    opsets = dict(lowering.model.opset_imports)
    graph = ir.Graph([], [result], nodes=made, initializers=[*given.values()], opset_imports=opsets)
    try:
        blocks = compile_graph(ir.Model(graph, ir_version=lowering.model.ir_version))
        return evaluate(blocks, {}, [result])[result.name or ""]
    except SplitError:  # the target has to refuse it, too
        return None


def _nodes_to(held: ir.Value, facts: Facts) -> tuple[list[ir.Node], dict[ir.Value, np.ndarray]]:
    """Return the nodes that calculate a value, in order, and the constants that they start from.

    There are none if they start from anything else, or if what one of them gives may be large. Too
    many are not followed.
    """
    nodes: dict[ir.Node | None, None] = {}
    known: dict[ir.Value, np.ndarray] = {}
    waiting = [held]
    while waiting:
        now = waiting[-1]
        made, array = now.producer(), constant(now)
        array = constant_array(facts.of(now)) if array is None else array
        if array is not None:
            known[now] = array
        if now in known or made in nodes:
            waiting.pop()
            continue
        if made is None or not is_evaluated(made) or len(nodes) + len(waiting) > MOST_STEPS:
            return [], {}
        before = [each for each in made.inputs if each is not None and each not in known]
        before = [each for each in before if each.producer() not in nodes]
        waiting += before
        if not before:
            nodes[made] = None
    found = [made for made in nodes if made is not None]
    return (found, known) if _are_small(found, facts) else ([], {})


_GIVES_NO_MORE = frozenset(
    {"Cast", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unique", "Unsqueeze"}
)
"""Operators that give no more numbers than they take."""


def _are_small(nodes: list[ir.Node], facts: Facts) -> bool:
    """Return whether nodes are sure to give few elements, so that they are calculated at once.

    Of tensors whose shape is not known, that holds of what is not 0 in small ones, of nodes that
    give no more, and of one sum: several could multiply the elements again and again.
    """
    ends = [each for node in nodes for each in (*node.inputs, *node.outputs) if each is not None]
    if any(_is_large(each, facts) for each in ends):
        return False
    open_ = [
        node for node in nodes if not all(has_known_shape(made, facts) for made in node.outputs)
    ]
    sums = [node for node in open_ if node.op_type in ("Add", "Sub")]
    return len(sums) < 2 and all(
        node in sums
        or node.op_type in _GIVES_NO_MORE
        or (node.op_type == "NonZero" and has_known_shape(node.inputs[0], facts))
        for node in open_
    )


def _is_large(held: ir.Value, facts: Facts) -> bool:
    """Return whether a tensor is known to have many elements."""
    shape = facts.tensor(held).shape
    return shape is not None and are_known(shape) and prod(shape) > MAX_ELEMENTS
