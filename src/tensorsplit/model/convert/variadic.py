"""Split nodes as OpenVINO's VariadicSplit, in the domain under which ONNX models hold it."""

from __future__ import annotations

import onnx_ir as ir

from tensorsplit.core.dimensions import Dim
from tensorsplit.core.emit import Computed, Runtime, emit
from tensorsplit.core.errors import CANNOT_EXPRESS, SplitError
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.core.resolve import Intent, plan
from tensorsplit.core.rules import ceil, equal
from tensorsplit.model.convert.conversion import FIRST_WITH_ANY_CONSTANT, Conversion
from tensorsplit.model.convert.family import (
    bound,
    calculation,
    computed_lengths,
)
from tensorsplit.model.graph.building import collector_paused
from tensorsplit.model.graph.calculation import FIRST_WITH_VALUE_INT, Calculation
from tensorsplit.model.graph.nodes import VENDOR_SPLIT, NodeRef, is_onnx_split, walk
from tensorsplit.model.infer.analysis import analyse


@collector_paused()
def to_variadic(model: ir.Model) -> bool:
    """Make a VariadicSplit of every node that gives one tensor for each part, in place.

    Args:
        model: The model.

    Returns:
        Whether there were any.

    Raises:
        SplitError: TS1xx to TS3xx for a node that is wrong; TS310 for one that is not expressible
            as a VariadicSplit.
    """
    found = [place for place in walk(model) if is_onnx_split(place.node)]
    if not found:
        return False
    change = Conversion(model, analyse(model), 0)
    for place in found:
        try:
            _convert(place, change)
        except SplitError as error:
            raise error.located(node=place.path) from None
        owner = model if place.function is None else place.function
        owner.opset_imports[DOMAIN] = VENDOR_SPLIT.since_version
    change.finish()
    return True


def _convert(place: NodeRef, change: Conversion) -> None:
    intent = bound(place)
    if intent.operator.is_sequence:
        raise SplitError(
            CANNOT_EXPRESS,
            f"{VENDOR_SPLIT.id} gives tensors, and the node a sequence of them",
            "lower the sequences first: tensorsplit lower --for portable",
            operator=intent.operator.id,
        )
    if place.opset < FIRST_WITH_ANY_CONSTANT:
        raise SplitError(
            CANNOT_EXPRESS,
            f"the axis and the lengths become inputs, and opset {place.opset} has no constants of"
            " integers",
            f"convert to opset {FIRST_WITH_ANY_CONSTANT} or newer at the same time",
            operator=intent.operator.id,
        )
    builder = calculation(place, change, place.opset)
    axis = _axis(place, builder)
    given = _lengths(place, change, builder, intent)
    old = list(place.node.inputs[1:])
    place.scope.insert_before(place.node, builder.nodes)
    place.node.domain, place.node.op_type = DOMAIN, VENDOR_SPLIT.name
    place.node.attributes.clear()
    place.set_inputs([place.node.inputs[0], axis, given])
    for value in old:
        if value is not given:
            change.drop_unused(value)


def _axis(place: NodeRef, builder: Calculation) -> ir.Value:
    attribute = place.node.attributes.get("axis")
    if attribute is not None and attribute.is_ref() and builder.opset >= FIRST_WITH_VALUE_INT:
        return builder.linked("value_int", attribute)
    return builder.make(builder.axis_of(place.node))


def _lengths(place: NodeRef, change: Conversion, builder: Calculation, intent: Intent) -> ir.Value:
    """The lengths as a value: a constant, what the node was given, or calculated."""
    if intent.rule in (ceil, equal) and intent.given == (1,):
        return builder.constant([-1])
    emission = emit(intent, VENDOR_SPLIT, _dimension(place, change, intent))
    source = emission.inputs[VENDOR_SPLIT.lengths[0].operand]
    if isinstance(source, Computed):
        return computed_lengths(place, builder, intent)
    given = place.input(1)
    integers = change.dtype(given) == ir.DataType.INT64
    if given is not None and (integers or isinstance(source, Runtime)):
        return given
    assert isinstance(source, tuple)  # noqa: S101 - nothing else is left
    return builder.constant(source)


def _dimension(place: NodeRef, change: Conversion, intent: Intent) -> Dim:
    """The dimension that is split, if it is known.

    Raises:
        SplitError: TS202, TS203, TS301 to TS308 if the node can't split it.
    """
    shape = change.shape(place.input(0))
    axis = place.node.attributes.get(intent.operator.axis)
    if shape is None or intent.axis is None or (axis is not None and axis.is_ref()):
        return None
    if intent.given is not None:
        plan(intent, shape)
    return shape[intent.axis]
