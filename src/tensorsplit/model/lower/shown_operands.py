"""Operands whose shape a target has to see as it loads a model: a Reshape shows it what we know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import onnx_ir as ir

from tensorsplit.core.dimensions import is_known
from tensorsplit.model.features.ranks import (
    SECOND,
    SEEN_OPERANDS,
    SIZES,
    axis_of_scales,
    channels_of,
    uncounted_scales,
    unseen_operands,
)
from tensorsplit.model.graph.nodes import NodeRef, attribute_of, change_inputs
from tensorsplit.model.infer.shape_rules import REDUCTIONS
from tensorsplit.model.lower.state import ChangeAfterSplits, InsertionPoint, Lowering, NodeChange
from tensorsplit.model.profiles import Limitation


def _show_operands(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Show the shape of each operand that the target has to see; what nobody knows stays."""
    for place in unseen_operands(ref.node, lowering.imported):
        shape = lowering.facts.tensor(ref.input(place)).shape
        if (count := SEEN_OPERANDS[ref.op_type][place]) is not None:
            _show(lowering, ref, place, [count])
        elif shape is not None and any(map(is_known, shape)):
            _show(lowering, ref, place, [dim if is_known(dim) else 0 for dim in shape])
    if unseen_operands(ref.node, lowering.imported):
        lowering.note(entry)
    else:
        lowering.changed(ref, "the same, with the shapes of its operands shown", entry)


def _show_scales(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Show how many scales and zero points a QuantizeLinear has: one for each channel."""
    count = channels_of(ref.node, lowering.imported)
    assert count is not None  # noqa: S101 - see the feature
    for place in uncounted_scales(ref.node, lowering.imported):
        _show(lowering, ref, place, [count])
    lowering.changed(ref, "the same, with the number of its scales shown", entry)


def _show_channels(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Show how many channels a QuantizeLinear has, or turn its data so that they are last."""
    facts, node = lowering.facts, ref.node
    shape, scales = facts.tensor(ref.input(0)).shape, facts.tensor(ref.input(1)).shape
    axis = None if shape is None else axis_of_scales(node, shape)
    if shape is None or axis is None:
        lowering.note(entry)
        return
    count = channels_of(node, facts) or (scales[0] if scales is not None and scales else None)
    if is_known(count) and count:  # a Reshape keeps a dimension for a 0
        _show(lowering, ref, 0, [count if place == axis else 0 for place in range(len(shape))])
        lowering.changed(ref, "the same, with the number of its channels shown", entry)
        return
    _turn(lowering, ref, entry, len(shape) - 1)


def _quantize_second(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Turn the data of a QuantizeLinear so that it is along axis 1."""
    _turn(lowering, ref, entry, SECOND)


def _turn(lowering: Lowering, ref: NodeRef, entry: Limitation, place: int) -> None:
    """Quantise turned data, with the channels on the axis of a place, and turn the result back."""
    node, shape = ref.node, lowering.facts.tensor(ref.input(0)).shape or ()
    axis = axis_of_scales(node, shape)
    assert axis is not None  # noqa: S101 - see the features
    order = [each for each in range(len(shape)) if each != axis]
    order.insert(place, axis)
    make = InsertionPoint.instead_of(lowering, ref)
    turned = make.op("Transpose", [ref.input(0)], {"perm": order})
    others = {name: held for name, held in node.attributes.items() if name != "axis"}
    made = make.op("QuantizeLinear", [turned, *node.inputs[1:]], {**others, "axis": place})
    back = [order.index(each) for each in range(len(shape))]
    result = make.op("Transpose", [made], {"perm": back})
    make.put_instead(ref, result, f"the same along axis {place}", entry)


def _show_sizes(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Show how many sizes a Resize is given: one for each axis that it has, or that it names."""
    axes = attribute_of(ref.node, "axes", ir.AttributeType.INTS)
    shape = lowering.facts.tensor(ref.input(0)).shape
    if axes is None and shape is None:
        lowering.note(entry)
        return
    _show(lowering, ref, SIZES[ref.op_type], [len(shape or ()) if axes is None else len(axes)])
    lowering.changed(ref, "the same, with the number of its sizes shown", entry)


def _spread_slope(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Give the slopes of a PRelu as many axes as the data has, so that they are along the last."""
    shape, slope = lowering.facts.tensor(ref.input(0)).shape, ref.input(1)
    if shape is None or slope is None:
        lowering.note(entry)
        return
    spread = InsertionPoint.before(lowering, ref).unsqueeze(slope, list(range(len(shape) - 1)))
    change_inputs(ref.node, {1: spread})
    lowering.changed(ref, "the same, with slopes of as many axes as the data", entry)


def _pass_on(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Read axes or a scale through an Identity, where the target takes none of several outputs."""
    held = ref.input(1)
    assert held is not None  # noqa: S101 - see the feature
    change_inputs(ref.node, {1: InsertionPoint.before(lowering, ref).passed_on(held)})
    lowering.changed(ref, "the same, with an Identity before its second input", entry)


def _show(lowering: Lowering, ref: NodeRef, place: int, lengths: Sequence[int]) -> None:
    """Put a Reshape to lengths, of which 0 takes that of the data, before an operand."""
    held = ref.input(place)
    assert held is not None  # noqa: S101 - see the feature
    make = InsertionPoint.before(lowering, ref)
    shown = make.op("Reshape", [held, make.constant([*lengths])])
    for facts in (lowering.facts, lowering.imported):
        known = facts.tensor(held)
        dims = known.shape or (None,) * len(lengths)
        shape = tuple(size or dim for size, dim in zip(lengths, dims, strict=False))
        facts.set(shown, replace(known, shape=shape))
    change_inputs(ref.node, {place: shown})


CHANGES: Mapping[str, NodeChange] = MappingProxyType(
    {
        "list_of_slopes": _spread_slope,
    }
)
"""How these nodes are written before splits are, by what the target can't do."""

CHANGES_AFTER_SPLITS: Mapping[str, ChangeAfterSplits] = MappingProxyType(
    {
        "unseen_operand": (tuple(SEEN_OPERANDS), _show_operands),
        "open_planes": (("GlobalLpPool",), _show_operands),
        "open_channels": (("QuantizeLinear",), _show_channels),
        "along_third": (("QuantizeLinear",), _quantize_second),
        "uncounted_scales": (("QuantizeLinear",), _show_scales),
        "uncounted_sizes": (("Resize",), _show_sizes),
        "one_of_parts": (("DequantizeLinear", *REDUCTIONS), _pass_on),
    }
)
"""How they are written after splits are, and their operators, by what the target can't do."""
