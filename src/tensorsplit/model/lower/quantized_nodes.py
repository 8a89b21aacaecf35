"""Quantised nodes that the target was measured to calculate wrongly."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import onnx_ir as ir

from tensorsplit.model.features.quantized import constants_given_back, limits_of, shared_zero_points
from tensorsplit.model.graph.held_tensors import constant
from tensorsplit.model.graph.nodes import NodeRef, change_inputs
from tensorsplit.model.graph.producers import passed_from
from tensorsplit.model.lower.state import ChangeAfterSplits, InsertionPoint, Lowering, NodeChange
from tensorsplit.model.lower.unfused_nodes import read_through, take_larger
from tensorsplit.model.profiles import Limitation


def _give_zero_point(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Give the first of two zero points, where the target does not take the second alone."""
    kind = lowering.facts.tensor(ref.input(0)).element_type or ir.DataType.UINT8
    zero = InsertionPoint.before(lowering, ref).constant(0, kind.numpy())
    change_inputs(ref.node, {2: zero})
    lowering.changed(ref, "the same, with the first zero point", entry)


def _separate_zero_points(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Give each node its own zero point, where the target would take that of others away."""
    shared = shared_zero_points(ref.node, lowering.facts)
    for node in shared:
        zero = constant(passed_from(node.inputs[2]))
        assert zero is not None  # noqa: S101 - see the feature
        make = InsertionPoint.before(lowering, lowering.refs[node])
        change_inputs(node, {2: make.constant(zero, zero.dtype)})
    if shared:  # and not changed for another sum
        lowering.changed(ref, "the same, of data with a zero point of its own", entry)


def _keep_constants(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Take the larger of a constant and itself, where the target would lose one given back."""
    take_larger(lowering, ref, constants_given_back(ref.node, lowering.facts))
    lowering.changed(ref, "the same, of the larger of a constant and itself", entry)


def _keep_rounding(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Put an Identity after a QuantizeLinear, which the target would leave out with its inverse."""
    read_through(lowering, ref, "Identity", 1)
    lowering.changed(ref, "the same, with an Identity before what gives it back", entry)


def _round_before(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Round the input of a QuantizeLinear by a scale of 1, and limit it to the type's range."""
    node, facts, data = ref.node, lowering.facts, ref.input(0)
    limits, kind = limits_of(node, facts), facts.tensor(data).element_type
    if limits is None or kind is None or data is None:
        lowering.note(entry)
        return
    make = InsertionPoint.before(lowering, ref)
    if kind in _SHORT_FLOATS:  # they do not hold the limits
        kind = ir.DataType.FLOAT
        scale = make.op("Cast", [ref.input(1)], {"to": kind})
        data = make.op("Cast", [data], {"to": kind})
        change_inputs(node, {1: scale})
    whole = data if kind.is_integer() else make.op("Round", [data])
    ends = [make.constant(end, kind.numpy()) for end in (limits.min, limits.max)]
    change_inputs(node, {0: make.op("Clip", [whole, *ends])})
    lowering.changed(ref, "the same, of numbers that are rounded and limited before", entry)


_SHORT_FLOATS = frozenset({ir.DataType.FLOAT16, ir.DataType.BFLOAT16})


def _give_back_in_float(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Give back in float, and cast that, where the target can't give back in bfloat16."""
    node = ref.node
    make = InsertionPoint.instead_of(lowering, ref)
    wide = {"to": ir.DataType.FLOAT}
    operands = [node.inputs[0], make.op("Cast", [node.inputs[1]], wide), *node.inputs[2:]]
    kept = {name: held.value for name, held in node.attributes.items() if name != "output_dtype"}
    given = make.op(node.op_type, operands, kept)
    new = make.op("Cast", [given], {"to": ir.DataType.BFLOAT16})
    make.put_instead(ref, new, "the same in float, and a Cast", entry)


def _give_back_by_product(lowering: Lowering, ref: NodeRef, entry: Limitation) -> None:
    """Give back by Cast, Sub and Mul, where the target would quantise the result again.

    The difference is exact in float, and rounded once; so is the product.
    """
    node, scale, zero = ref.node, ref.input(1), ref.input(2)
    assert scale is not None  # noqa: S101 - see the feature
    make, wide = InsertionPoint.instead_of(lowering, ref), {"to": ir.DataType.FLOAT}
    element_type = lowering.facts.tensor(node.outputs[0]).element_type
    assert element_type is not None  # noqa: S101 - the scale is a constant: see the feature

    def one(held: ir.Value) -> ir.Value:
        """Return a scalar of float; a list of one number would add an axis to a scalar."""
        is_list = lowering.facts.tensor(held).shape != ()
        scalar = make.squeeze(held, [0]) if is_list else held
        return make.op("Cast", [scalar], wide)

    given = make.op("Cast", [node.inputs[0]], wide)
    if zero is not None:
        given = make.op("Sub", [given, one(zero)])
    new = make.op("Mul", [given, one(scale)])
    if element_type != ir.DataType.FLOAT:
        new = make.op("Cast", [new], {"to": element_type})
    make.put_instead(ref, new, "Cast, Sub and Mul", entry)


CHANGES: Mapping[str, NodeChange] = MappingProxyType(
    {
        "given_back": _keep_rounding,
        "unscaled": _round_before,
        "constant_given_back": _keep_constants,
        "shared_zero_point": _separate_zero_points,
        "given_back_in_bfloat16": _give_back_in_float,
        "omitted_zero_point": _give_zero_point,
    }
)
"""How these nodes are written before splits are, by what the target can't do."""

CHANGES_AFTER_SPLITS: Mapping[str, ChangeAfterSplits] = MappingProxyType(
    {
        "moved_signed": (("DequantizeLinear",), _give_back_by_product),
        "moved_without_zero_point": (("DequantizeLinear",), _give_back_by_product),
        "rounded_once": (("DequantizeLinear",), _give_back_by_product),
        "moved_into_body": (("DequantizeLinear",), _give_back_by_product),
    }
)
"""How they are written after splits are, and their operators, by what the target can't do."""
