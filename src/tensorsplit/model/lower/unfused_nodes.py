"""Nodes that the target would fuse with others, and calculate wrongly then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from tensorsplit.model.features.integers import fused_operand
from tensorsplit.model.graph.nodes import NodeRef, change_inputs
from tensorsplit.model.infer.shape_rules import REDUCTIONS
from tensorsplit.model.lower.state import ChangeAfterSplits, InsertionPoint, Lowering, NodeChange
from tensorsplit.model.profiles import Limitation


def _keep_from_fusing(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Insert nodes that are not fused before quotients that would be rounded otherwise.

    What they give is the number itself, even if it overflows on the way.
    """
    node, held = ref.node, fused_operand(ref.node, lowering.facts)
    assert held is not None  # noqa: S101 - see the feature
    make = InsertionPoint.instead_of(lowering, ref)
    change_inputs(node, {node.inputs.index(held): make.calculated(held)})
    lowering.changed(ref, "the same, of a number that was doubled and subtracted once", entry)


def _keep_separate(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Take the larger of what a node reads and itself, which the target makes no one node of."""
    take_larger(lowering, ref, [0])
    lowering.changed(ref, "the same, of the larger of what it reads and itself", entry)


_FIRST_MAX_OF_INTEGERS = 12
"""From here on Max takes integers."""


def _keep_reduction_separate(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Take the larger of what is reduced and itself, which the target puts nothing before."""
    kinds = lowering.facts.element_types(ref.input(0))
    if ref.opset < _FIRST_MAX_OF_INTEGERS and any(kind.is_integer() for kind in kinds):
        lowering.note(entry)
        return
    _keep_separate(lowering, ref, entry)


def _keep_factor_separate(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Take the larger of the second factor and itself, which the target makes no one node of."""
    take_larger(lowering, ref, [1])
    lowering.changed(ref, "the same, by the larger of its second factor and itself", entry)


def _keep_result_separate(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Give readers the larger of the result and itself, which no target joins with them."""
    read_through(lowering, ref, "Max", 2)
    lowering.changed(ref, "the same, and the larger of its result and itself", entry)


def _keep_integers_separate(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Give readers the larger of the reduced integers and themselves."""
    if ref.opset < _FIRST_MAX_OF_INTEGERS:
        lowering.note(entry)
        return
    _keep_result_separate(lowering, ref, entry)


def _keep_in_between(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Take the larger of an attention's queries or weights and themselves, and so of its result.

    The target moves a Transpose of either over what is between, but not over these.
    """
    take_larger(lowering, ref, [0])
    read_through(lowering, ref, "Max", 2)
    lowering.changed(ref, "the same, between a Max of what it reads and a Max of its result", entry)


def read_through(lowering: Lowering, ref: NodeRef, operator: str, count: int) -> None:
    """Put an operator that changes nothing between a node's first output and its readers.

    It reads the output ``count`` times.
    """
    made = ref.node.outputs[0]
    readers = list(made.uses())
    kept = InsertionPoint.after(lowering, ref).op(operator, [made] * count)
    for reader, place in readers:
        change_inputs(reader, {place: kept})


def take_larger(lowering: Lowering, ref: NodeRef, places: Iterable[int]) -> None:
    """Give a node the larger of an input and itself, which the target does not leave out."""
    make = InsertionPoint.before(lowering, ref)
    for place in places:
        held = ref.input(place)
        change_inputs(ref.node, {place: make.op("Max", [held, held])})


CHANGES: Mapping[str, NodeChange] = MappingProxyType(
    {
        "fused_quotient": _keep_from_fusing,
        "turned_by_channels": _keep_separate,
        "joined_by_channels": _keep_separate,
        "data_in_bytes": _keep_factor_separate,
        "rounded_extreme": _keep_separate,
        "pulled_axes": _keep_reduction_separate,
        "left_out": _keep_reduction_separate,
    }
)
"""How these nodes are written before splits are, by what the target can't do."""

CHANGES_AFTER_SPLITS: Mapping[str, ChangeAfterSplits] = MappingProxyType(
    {
        "scaled_integers": (tuple(REDUCTIONS), _keep_integers_separate),
        "joined_groups": (("GroupNormalization",), _keep_result_separate),
        "overwritten_queries": (("Attention", "MatMul"), _keep_in_between),
        "rotation": (("Add",), _keep_separate),
    }
)
"""How they are written after splits are, and their operators, by what the target can't do."""
