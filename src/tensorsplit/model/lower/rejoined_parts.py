"""Splits whose parts are all joined again, for targets that then check no lengths."""

from __future__ import annotations

from functools import cache, partial

import onnx_ir as ir

from tensorsplit.model.features.vocabulary import REJOINED
from tensorsplit.model.graph.building import inherit
from tensorsplit.model.graph.calculation import FIRST_WITH_LENGTHS_AS_INPUT
from tensorsplit.model.graph.held_tensors import constant
from tensorsplit.model.graph.nodes import NodeRef, attribute_of
from tensorsplit.model.graph.rejoined import is_rejoined
from tensorsplit.model.graph.split_records import is_onnx_split
from tensorsplit.model.graph.uses import owners_in
from tensorsplit.model.lower.state import InsertionPoint, Lowering
from tensorsplit.model.profiles import Limitation


def keep_checks(lowering: Lowering) -> None:
    """Give Splits one more part, of length 0, where the target would leave them out as joined."""
    owners = cache(partial(owners_in, lowering.model.graph))

    def may_have(node: ir.Node) -> bool:
        return is_onnx_split(node) and is_rejoined(node, owners())

    lowering.change_each(REJOINED, may_have, _add_part)


def _add_part(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Replace a Split by one with a last part of length 0; note it where it has no lengths."""
    node = ref.node
    point = InsertionPoint.before(lowering, ref)
    inputs = [ref.input(0)]
    attributes = {"axis": attribute_of(node, "axis", ir.AttributeType.INT, 0)}
    held = ref.input(1) if ref.opset >= FIRST_WITH_LENGTHS_AS_INPUT else None
    lengths = attribute_of(node, "split", ir.AttributeType.INTS)
    if lengths is not None:
        attributes["split"] = [*lengths, 0]
    elif (known := constant(held)) is not None:
        inputs.append(point.constant([*known.tolist(), 0]))
    elif held is not None:
        inputs.append(point.concat([held, point.constant([0])], 0))
    else:
        lowering.note(entry)
        return
    made = point.ops("Split", inputs, attributes, ["part"] * (len(node.outputs) + 1))
    pairs = list(zip(node.outputs, made, strict=False))
    inherit(point.nodes, node, pairs)
    lowering.stand_in(*pairs)
    lowering.changed(ref, "Split with one more part, of length 0", entry)
    lowering.edits.retire(node)
