"""Nodes that take or repeat elements, of which the target was measured to take wrong ones."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import onnx_ir as ir

from tensorsplit.core.dimensions import is_known
from tensorsplit.model.features.misread import MOST_REPEATED, narrow_axes
from tensorsplit.model.features.values import ends_before_largest
from tensorsplit.model.graph.nodes import NodeRef, attribute_of, change_inputs
from tensorsplit.model.lower.state import ChangeAfterSplits, InsertionPoint, Lowering, NodeChange
from tensorsplit.model.profiles import Limitation


def _find_no_places(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Take no row of what NonZero gives of one number, which has no axes."""
    make = InsertionPoint.instead_of(lowering, ref)
    made = make.op("NonZero", [make.op("Reshape", [ref.input(0), make.constant([1])])])
    make.put_instead(ref, make.slice(made, 0, 0, 0), "NonZero of a list, without its row", entry)


def _end_before_largest(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Let a Slice backwards end before the largest integer; the target goes on to the start."""
    ends, kind = ends_before_largest(ref.node, lowering.facts), lowering.facts.tensor(ref.input(2))
    make = InsertionPoint.before(lowering, ref)
    change_inputs(
        ref.node, {2: make.constant(ends, (kind.element_type or ir.DataType.INT64).numpy())}
    )
    lowering.changed(ref, "the same, to the largest integer less 1", entry)


def _gather_on_last_axis(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Take strings on the last axis, where the target takes but the first one of a row elsewhere.

    By one number that is known, ONNX Runtime moves the axis back: they are sliced. Those of unknown
    rank stay.
    """
    node, (data, indices) = ref.node, ref.node.inputs
    shapes = [lowering.facts.tensor(held).shape for held in (data, indices)]
    assert data is not None  # noqa: S101 - see the feature
    if None in shapes:
        return
    rank, added = (len(shape or ()) for shape in shapes)
    axis = attribute_of(node, "axis", ir.AttributeType.INT, 0) % rank
    make = InsertionPoint.instead_of(lowering, ref)
    known = lowering.facts.tensor(indices).integer
    if not added and is_known(known):
        one = make.slice(data, known, known + 1 or np.iinfo(np.int64).max, axis)
        make.put_instead(ref, make.squeeze(one, [axis]), "Slice and Squeeze", entry)
        return
    moved = make.moved(data, rank, axis, rank - 1)
    taken = make.op("Gather", [moved, indices], {"axis": rank - 1})
    order = [*range(axis), *range(rank - 1, rank - 1 + added), *range(axis, rank - 1)]
    make.put_instead(
        ref,
        make.op("Transpose", [taken], {"perm": order}),
        "Gather on the last axis, between Transposes",
        entry,
    )


def _gather_from_first(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Gather from as many elements along other axes as there are indices.

    These are gathered themselves: OpenVINO leaves out a Slice before such a node.
    """
    data = ref.input(0)
    assert data is not None  # noqa: S101 - see the feature
    make = InsertionPoint.before(lowering, ref)
    for axis, count in narrow_axes(ref, lowering.facts):
        data = make.op("Gather", [data, make.range(0, count)], {"axis": axis})
    change_inputs(ref.node, {0: data})
    lowering.changed(ref, "the same, of the first elements of the data", entry)


def _gather_from_other_end(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Count the axis of a Gather from the other end, which the target takes for another one."""
    rank = len(lowering.facts.tensor(ref.input(0)).shape or ())
    axis = attribute_of(ref.node, "axis", ir.AttributeType.INT, 0)
    ref.node.attributes["axis"] = ir.AttrInt64("axis", axis + rank if axis < 0 else axis - rank)
    lowering.changed(ref, "the same, with its axis counted from the other end", entry)


def _choose_in_list(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Let a OneHot take a list of its one number, and remove the axis of the list again."""
    number = ref.input(0)
    assert number is not None  # noqa: S101 - see the feature
    make = InsertionPoint.instead_of(lowering, ref)
    listed = [make.unsqueeze(number, [0]), *ref.node.inputs[1:]]
    new = make.squeeze(make.op("OneHot", listed, {"axis": -1}), [0])
    make.put_instead(ref, new, "the same of a list, without its axis", entry)


def _compress_row(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Give a Compress of all elements one axis, where the target can't take it without one."""
    make = InsertionPoint.instead_of(lowering, ref)
    row = make.op("Reshape", [ref.input(0), make.constant([-1])])
    new = make.op("Compress", [row, ref.input(1)], {"axis": 0})
    make.put_instead(ref, new, "Compress of a row", entry)


def _limit_range(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Give a Range its start as its limit, where the target would go the other way."""
    node, (start, limit, step) = ref.node, ref.node.inputs
    make = InsertionPoint.instead_of(lowering, ref)
    known = lowering.facts.tensor(step).constant
    upward = None if known else make.op("Less", [make.op("Sub", [step, step]), step])
    above = make.op("Less", [start, limit]) if not known or known[0] > 0 else None
    below = make.op("Less", [limit, start]) if not known or known[0] < 0 else None
    is_inside = above or below if known else make.op("Where", [upward, above, below])
    change_inputs(node, {1: make.op("Where", [is_inside, limit, start])})
    lowering.changed(ref, "the same, with its start as its limit if it is empty", entry)


def _repeat_in_turn(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Repeat a few axes at a time, which the target does rightly."""
    make = InsertionPoint.instead_of(lowering, ref)
    held, counts = ref.node.inputs
    rank = len(lowering.facts.tensor(held).shape or ())
    for first in range(0, rank, MOST_REPEATED):
        axes = tuple(range(rank))[first : first + MOST_REPEATED]
        ones = [(1,) * first, (1,) * (rank - first - len(axes))]
        taken = make.op("Gather", [counts, make.constant(axes)], {"axis": 0})
        parts = [make.constant(each) for each in ones if each]
        parts.insert(bool(first), taken)
        held = make.op("Tile", [held, make.concat(parts, 0)])
    assert held is not None  # noqa: S101 - see the feature
    make.put_instead(ref, held, "Tiles of two axes each", entry)


CHANGES: Mapping[str, NodeChange] = MappingProxyType(
    {
        "places_in_a_number": _find_no_places,
        "ignored_list": _gather_from_other_end,
        "back_to_largest": _end_before_largest,
        "strings_gathered": _gather_on_last_axis,
        "narrow_indices": _gather_from_first,
        "one_index": _choose_in_list,
        "compressed_whole": _compress_row,
    }
)
"""How these nodes are written before splits are, by what the target can't do."""

CHANGES_AFTER_SPLITS: Mapping[str, ChangeAfterSplits] = MappingProxyType(
    {
        "empty_range": (("Range",), _limit_range),
        "many_repeated": (("Tile",), _repeat_in_turn),
    }
)
"""How they are written after splits are, and their operators, by what the target can't do."""
