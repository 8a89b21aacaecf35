"""Fourier transforms that the target was measured to calculate wrongly."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import onnx_ir as ir

from tensorsplit.core.arithmetic import dimension
from tensorsplit.core.dimensions import is_known
from tensorsplit.model.features.transforms import FRAME_LENGTH, WINDOW, axis_of_transform
from tensorsplit.model.graph.nodes import NodeRef
from tensorsplit.model.lower.state import InsertionPoint, Lowering, NodeChange
from tensorsplit.model.profiles import Limitation

_LEAST_RANK_WITH_AXIS_1 = 2
"""Of data of this rank axis 1 holds the parts of complex numbers."""


def _count_from_front(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Count the axis of a DFT from the front; of data of unknown rank it stays."""
    axis = axis_of_transform(ref, lowering.facts)
    if axis is None:
        lowering.note(entry)
        return
    ref.node.attributes["axis"] = ir.AttrInt64("axis", axis)
    lowering.changed(ref, "the same, with its axis counted from the front", entry)


def _take_half(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Take one half of what a DFT gives; one along an axis known only at run time stays."""
    node, axis = ref.node, axis_of_transform(ref, lowering.facts)
    if axis is None:
        lowering.note(entry)
        return
    make = InsertionPoint.instead_of(lowering, ref)
    kept = {name: held.value for name, held in node.attributes.items() if name != "onesided"}
    whole = make.op(node.op_type, node.inputs, kept)
    length = (lowering.facts.tensor(node.outputs[0]).shape or (None,) * (axis + 1))[axis]
    end = length if is_known(length) else dimension(whole, axis) // 2 + 1
    make.put_instead(ref, make.slice(whole, 0, end, axis), "a slice of the whole", entry)


def _transform_axis_1(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Write a DFT along axis 1, between Transposes; one along an unknown axis stays."""
    node, axis = ref.node, axis_of_transform(ref, lowering.facts)
    rank, data = len(lowering.facts.tensor(ref.input(0)).shape or ()), ref.input(0)
    if axis is None or data is None or rank <= _LEAST_RANK_WITH_AXIS_1:
        lowering.note(entry)
        return
    make = InsertionPoint.instead_of(lowering, ref)
    kept = {name: held.value for name, held in node.attributes.items()}
    operands = [make.moved(data, rank, axis, 1), ref.input(1), make.constant(1)]
    made = make.op(node.op_type, operands, kept)
    new = make.moved(made, rank, 1, axis)
    make.put_instead(ref, new, "the same along axis 1, between Transposes", entry)


def _write_frames(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Write how long the frames of an STFT are where it leaves that out: as long as its window."""
    (length,) = lowering.facts.tensor(ref.input(WINDOW)).shape or ()
    made = InsertionPoint.before(lowering, ref).constant(length)
    ref.set_inputs([*(ref.input(place) for place in range(FRAME_LENGTH)), made])
    lowering.changed(ref, f"the same, with frames of {length}", entry)


CHANGES: Mapping[str, NodeChange] = MappingProxyType(
    {
        "guessed_frames": _write_frames,
        "axis_from_back": _count_from_front,
        "transformed_axis": _transform_axis_1,
        "one_sided": _take_half,
    }
)
"""How these nodes are written before splits are, by what the target can't do."""
