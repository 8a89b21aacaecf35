"""Layers of neural networks that the target was measured to calculate wrongly."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

import numpy as np
import onnx_ir as ir

from tensorsplit.core.dimensions import are_known, is_known
from tensorsplit.model.features.misread import is_in_training
from tensorsplit.model.features.without_elements import flattened_at
from tensorsplit.model.graph.axes import order_of
from tensorsplit.model.graph.batch_first import with_steps_first
from tensorsplit.model.graph.nodes import NodeRef, attribute_of, change_inputs, is_used
from tensorsplit.model.graph.opsets import ATTENTION_MASK
from tensorsplit.model.lower.state import ChangeAfterSplits, InsertionPoint, Lowering, NodeChange
from tensorsplit.model.profiles import Limitation


def _turn_at_rank_4(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Transpose the input of recurrent layers at rank 4, which the target does right."""
    node, data = ref.node, ref.input(0)
    assert data is not None  # noqa: S101 - see the feature
    make = InsertionPoint.instead_of(lowering, ref)
    order = [*order_of(node, 3), 3]
    turned = make.op("Transpose", [make.unsqueeze(data, [3])], {"perm": order})
    make.put_instead(ref, make.squeeze(turned, [3]), "Transpose with one more axis", entry)


def _put_steps_first(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Put the steps of a recurrent node first, where the target takes no batch there."""
    made = with_steps_first(InsertionPoint.instead_of(lowering, ref), ref.node)
    pairs = [(old, new) for old, new in zip(ref.node.outputs, made, strict=True) if new is not None]
    lowering.stand_in(*pairs)
    lowering.edits.retire(ref.node)
    lowering.changed(ref, "the same with its steps first, between Transposes", entry)


def _repeat_mask(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Repeat the row of a mask for each query of an Attention."""
    make = InsertionPoint.before(lowering, ref)
    count = make.op("Shape", [ref.input(0)], {"start": -2, "end": -1})
    lengths = make.op("Concat", [count, make.constant([1])], {"axis": 0})
    change_inputs(
        ref.node, {ATTENTION_MASK: make.op("Expand", [ref.input(ATTENTION_MASK), lengths])}
    )
    lowering.changed(ref, "the same, with a row of its mask for each query", entry)


def _normalize_instances(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Write a GroupNormalization as an InstanceNormalization that has a channel for each group."""
    node, (data, *by) = ref.node, ref.node.inputs
    shape = lowering.facts.tensor(data).shape or ()
    groups = attribute_of(node, "num_groups", ir.AttributeType.INT, 0)
    kind = lowering.facts.tensor(data).element_type
    if kind is None or not are_known(shape) or 0 in shape or groups < 1 or len(by) != 2:
        lowering.note(entry)
        return
    make = InsertionPoint.instead_of(lowering, ref)
    rows = make.op("Reshape", [data, make.constant([shape[0], groups, -1])])
    plain = [make.constant([number] * groups, kind.numpy()) for number in (1, 0)]
    spread = {name: held for name, held in node.attributes.items() if name == "epsilon"}
    normal = make.op("InstanceNormalization", [rows, *plain], spread)
    column = make.constant([-1, *[1] * (len(shape) - 2)])
    scale, bias = (make.op("Reshape", [each, column]) for each in by)
    whole = make.op("Reshape", [normal, make.constant([*shape])])
    made = make.op("Add", [make.op("Mul", [whole, scale]), bias])
    make.put_instead(ref, made, "InstanceNormalization of the groups", entry)


def _turn_flattened(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Let a Flatten by the last axis, or after it, take axis 1 or 0, which are always right.

    What it gives is transposed then. Others stay.
    """
    data, axis = ref.input(0), flattened_at(ref.node, lowering.facts)
    assert data is not None and axis is not None  # noqa: S101, PT018 - see the feature
    fact = lowering.facts.tensor(data)
    shape, element_type = fact.shape or (), fact.element_type
    if axis < len(shape) - 1 or not shape or element_type in (None, ir.DataType.STRING):
        return
    make = InsertionPoint.instead_of(lowering, ref)
    if axis == len(shape) and 0 in shape:  # which OpenVINO refuses by axis 0
        new = make.empty((0, 1), element_type)
    else:
        data = make.moved(data, len(shape), axis, 0) if axis < len(shape) else data
        flat = make.op("Flatten", [data], {"axis": len(shape) - axis})
        new = make.op("Transpose", [flat], {"perm": [1, 0]})
    make.put_instead(ref, new, "Flatten by another axis, between Transposes", entry)


def _write_same_pads(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Write the padding of a ConvTranspose that its auto_pad stands for, if that is known."""
    ints = partial(attribute_of, ref.node, kind=ir.AttributeType.INTS)
    weights = lowering.facts.tensor(ref.input(1)).shape or ()
    kernel = ints("kernel_shape", default=None) or weights[2:]
    ones = [1] * len(kernel)
    strides, dilations = (ints(name, default=ones) for name in ("strides", "dilations"))
    extra = ints("output_padding", default=[0] * len(kernel))
    totals = [
        (size - 1) * dilation + 1 - stride + more if is_known(size) else -1
        for size, dilation, stride, more in zip(kernel, dilations, strides, extra, strict=False)
    ]
    is_known_side = ref.opset >= _FIRST_WITH_MORE_AT_END or not any(total % 2 for total in totals)
    is_given = "output_shape" in ref.node.attributes
    if not totals or min(totals) < 0 or is_given or not is_known_side:
        lowering.note(entry)
        return
    is_upper = ref.node.attributes.pop("auto_pad").as_string() == "SAME_UPPER"
    less, more = [total // 2 for total in totals], [total - total // 2 for total in totals]
    pads = [*less, *more] if is_upper else [*more, *less]
    ref.node.attributes.add(ir.AttrInt64s("pads", pads))
    lowering.changed(ref, f"the same, with pads = {pads}", entry)


_FIRST_WITH_MORE_AT_END = 11
"""Before, the text and engines differ in the side that gets more of an odd padding."""


def _write_sampling(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Write how many samples a RoiAlign takes where it leaves that out: as many as there are."""
    ref.node.attributes.add(ir.AttrInt64("sampling_ratio", 0))
    lowering.changed(ref, "the same, with sampling_ratio = 0", entry)


def _choose_padding(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Write a Pad by a value that is fed as a choice between it and the data, padded by zeros."""
    data, pads, value, axes = (ref.input(place) for place in range(4))
    make = InsertionPoint.instead_of(lowering, ref)
    more = [] if axes is None else [axes]
    inside = make.op("ConstantOfShape", [make.op("Shape", [data])])  # zeros of float
    around = make.op("Pad", [inside, pads, make.constant(1, np.float32), *more])
    is_around = make.op("Cast", [around], {"to": ir.DataType.BOOL})
    padded = make.op("Pad", [data, pads, None, *more] if more else [data, pads])
    chosen = make.op("Where", [is_around, value, padded])
    make.put_instead(ref, chosen, "Where of the value and of data padded by zeros", entry)


def _pass_dropped_on(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Write a Dropout that changes nothing as an Identity; one whose mask is used stays."""
    data, rest = ref.input(0), ref.node.outputs[1:]
    if data is None or any(map(is_used, rest)) or is_in_training(ref, lowering.facts):
        lowering.note(entry)
        return
    _pass_on(lowering, ref, entry)


def _pass_on(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Write a node that gives what it reads as an Identity."""
    data = ref.input(0)
    assert data is not None  # noqa: S101 - see the feature
    make = InsertionPoint.instead_of(lowering, ref)
    make.put_instead(ref, make.passed_on(data), "Identity", entry)


CHANGES: Mapping[str, NodeChange] = MappingProxyType(
    {
        "drops_given": _pass_dropped_on,
        "unmoved": _pass_on,
        "fed_padding": _choose_padding,
        "omitted_sampling": _write_sampling,
        "row_mask": _repeat_mask,
        "open_same": _write_same_pads,
        "flattened": _turn_flattened,
        "turned_beside_recurrence": _turn_at_rank_4,
        "batch_first": _put_steps_first,
    }
)
"""How these nodes are written before splits are, by what the target can't do."""

CHANGES_AFTER_SPLITS: Mapping[str, ChangeAfterSplits] = MappingProxyType(
    {
        "grouped_in_body": (("GroupNormalization",), _normalize_instances),
    }
)
"""How they are written after splits are, and their operators, by what the target can't do."""
