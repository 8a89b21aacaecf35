"""Values that are calculated from constants alone, or from shapes as well."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import onnx_ir as ir

from tensorsplit.core.dimensions import are_known
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.model.graph.called_in_onnx import gives_shape, operator_of
from tensorsplit.model.graph.facts import Tensor
from tensorsplit.model.graph.held_tensors import fixed_tensor_of, tensor_of
from tensorsplit.model.graph.loops import captured_by
from tensorsplit.model.graph.nodes import NodeRef, bodies, is_used, nodes_within
from tensorsplit.model.graph.producers import passed_from, producer_of
from tensorsplit.model.graph.split_records import is_onnx_split
from tensorsplit.model.infer.analysis import Facts

_MOST_OF_CONSTANTS = 64
"""Nodes that calculate from constants alone are followed so far."""

_PACKED = frozenset({ir.DataType.INT4, ir.DataType.UINT4})
_PACKED_WITHOUT_NUMBER = frozenset({"nf4", "u1", "u3", "u6"})
"""Types of an IR that ONNX does not have."""

_RANDOM = ("Random", "Bernoulli", "Multinomial", "ReadValue")
"""How the names of operators begin that give something else in each run."""

MOST_STEPS = 100
"""Engines do not fuse as many nodes; so that a walk from each node of a long chain ends soon."""


def is_of_constants(ref: NodeRef) -> bool:
    """Return whether a node is in the main graph and gives the same in each run."""
    if ref.around or ref.function is not None:
        return False
    node, waiting, met = ref.node, [ref.node], {ref.node}
    for made in waiting:
        inside = list(nodes_within(made))
        if any(each.domain != "" or each.op_type.startswith(_RANDOM) for each in inside):
            return False
        for held in chain(*(each.inputs for each in inside)):
            if held is None or held.graph is not node.graph:
                continue
            before = held.producer()
            if held.is_graph_input() or len(waiting) > _MOST_OF_CONSTANTS:
                return False
            if before is not None and before not in met:
                met.add(before)
                waiting.append(before)
    return True


def is_calculated(
    value: ir.Value | None,
    facts: Facts,
    *,
    of_shapes: bool = True,
    in_bodies: bool = False,
    of_nothing: bool = True,
) -> bool:
    """Return whether a number is calculated from constants alone, and from shapes if these count.

    Not so one that is given as a constant. What loops and branches give, and what is the same in
    each run because it has no elements, counts only if that is to.
    """
    source = passed_from(value)
    if source is None or tensor_of(source) is not None:
        return False
    waiting: list[ir.Value | None] = [source]
    seen = set(waiting)
    while waiting and len(seen) < MOST_STEPS:
        held = waiting.pop()
        made = producer_of(held)
        is_known = is_constant(held, facts) and (of_nothing or not _is_only_empty(held, facts))
        if held is None or is_known or (of_shapes and gives_shape(made)):
            continue
        if made is None or not (is_evaluated(made) or (in_bodies and bodies(made))):
            return False
        operands = [*made.inputs, *captured_by(made)]
        waiting += [operand for operand in operands if operand not in seen]
        seen.update(operands)
    return not waiting


def is_evaluated(node: ir.Node) -> bool:
    """Return whether an engine may calculate what a node gives as it loads a model."""
    operator = operator_of(node)
    is_known = operator != "" and not operator.startswith(_RANDOM)
    return is_known and bool(node.inputs) and not any(bodies(node))


def is_constant(held: ir.Value | None, facts: Facts) -> bool:
    """Return whether a value is a constant, or small and known to be always the same."""
    source = passed_from(held)
    if source is not None and fixed_tensor_of(source) is not None:
        return True
    return facts.tensor(held).constant is not None


def _is_only_empty(held: ir.Value | None, facts: Facts) -> bool:
    """Return whether a value is not a constant, and only its lack of elements is known."""
    source = passed_from(held)
    is_given = source is not None and fixed_tensor_of(source) is not None
    return not is_given and 0 in (facts.tensor(held).shape or ())


def is_fixed(held: ir.Value | None, facts: Facts) -> bool:
    """Return whether a value is a constant, or calculated from constants alone."""
    return is_constant(held, facts) or is_calculated(held, facts, of_shapes=False)


def is_fixed_number(held: ir.Value | None, facts: Facts) -> bool:
    """Return whether a value has one element, and is calculated from constants alone."""
    shape = facts.tensor(held).shape
    return shape is not None and set(shape) <= {1} and is_fixed(held, facts)


def is_packed_constant(held: ir.Value | None, facts: Facts) -> bool:
    """Return whether a value of an IR is constant, and its elements are smaller than a byte."""
    if not facts.element_types(held).isdisjoint(_PACKED):
        return is_fixed(held, facts)
    made = producer_of(held)
    if made is None or (made.domain, made.op_type) != (DOMAIN, "Const"):
        return False
    kind = made.attributes.get("element_type")
    return kind is not None and kind.value in _PACKED_WITHOUT_NUMBER


def of_constants(ref: NodeRef, seen: Facts) -> Iterator[str]:
    """Yield whether a node calculates from constants alone what is to be calculated before."""
    if to_calculate(ref, seen):
        yield "of_constants"


def to_calculate(ref: NodeRef, seen: Facts) -> list[ir.Value]:
    """Return the outputs of a Split, Loop or Scan of the main graph that reads constants alone.

    There is nothing to calculate where all of it that is used has a shape that is seen.
    """
    node = ref.node
    if not (is_onnx_split(node) or bodies(node)):
        return []
    used = list(filter(is_used, node.outputs))
    facts = [seen.of(made) for made in used]
    shapes = [fact.shape for fact in facts if isinstance(fact, Tensor)]
    are_seen = all(shape is not None and are_known(shape) for shape in shapes)
    return [] if are_seen or len(shapes) < len(used) or not is_of_constants(ref) else used
