"""Split nodes: from one version to another by what they ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import onnx_ir as ir

from tensorsplit.core.arithmetic import Number, Numbers, dimension, fed, fitting
from tensorsplit.core.dimensions import Dim, Shape, is_known
from tensorsplit.core.emit import Computed, Emission, Runtime, Source, emit
from tensorsplit.core.errors import CANNOT_EXPRESS, SplitError
from tensorsplit.core.records import in_force
from tensorsplit.core.resolve import Intent, check_element_type, part_sizes
from tensorsplit.core.rules import Chunks, ceil, equal
from tensorsplit.core.schema import Operator
from tensorsplit.model.convert.conversion import Conversion, link_of
from tensorsplit.model.graph.binding import bind
from tensorsplit.model.graph.building import Builder
from tensorsplit.model.graph.calculation import Calculation
from tensorsplit.model.graph.nodes import NodeRef, constant


def convert_split(place: NodeRef, change: Conversion) -> None:
    """Bring a split node to the target.

    Raises:
        SplitError: TS101 to TS107, TS305 for a node that is wrong; TS101, TS201, TS301 to TS308,
            TS310 for one that is not expressible at the target.
    """
    try:
        intent = bound(place)
        target = in_force(place.op_type, change.target)
        data = change.dtype(place.input(0))
        if data is not None:
            types = target.types_of(target.inputs[0]).element_types
            check_element_type(target.id, data.name.lower(), types, target.inputs[0].name)
        if target is not intent.operator:
            _convert(place, change, intent, target)
    except SplitError as error:
        raise error.located(node=place.path) from None


def bound(place: NodeRef) -> Intent:
    """What a split node asks for; an axis that a function's caller gives stands for any.

    Raises:
        SplitError: TS101 to TS107, TS305.
    """
    intent = bind(place.node, place.opset)
    return replace(intent, axis=0) if _is_linked(place.node, intent.operator.axis) else intent


def _is_linked(node: ir.Node, name: str) -> bool:
    attribute = node.attributes.get(name)
    return attribute is not None and attribute.is_ref()


def _convert(place: NodeRef, change: Conversion, intent: Intent, target: Operator) -> None:
    shape = change.shape(place.input(0))
    _normalise_axis(place, change, target)
    if _same_operands(intent.operator, target):
        return
    dim = None if _is_linked(place.node, "axis") else _dimension(intent, shape)
    emission = _emission(place, intent, target, dim)
    if emission is None:
        _replace_by_slices(place, change, intent)
    else:
        _rewrite(place, change, intent, emission)


def _dimension(intent: Intent, shape: Shape | None) -> Dim:
    """The dimension that is split, if it is known and the node can split it.

    One that it can't split is left to the running model: a node that never runs may be so.
    """
    if shape is None or intent.axis is None or not -len(shape) <= intent.axis < len(shape):
        return None
    try:
        if is_known(shape[intent.axis]) and intent.given is not None:
            part_sizes(intent, shape[intent.axis])
    except SplitError:
        return None
    return shape[intent.axis]


def _normalise_axis(place: NodeRef, change: Conversion, target: Operator) -> None:
    """Count a negative axis from the front where the text of the version knows no other (D13)."""
    attribute = place.node.attributes.get(target.axis)
    rank = change.rank(place.input(0))
    if target.negative_axis or attribute is None or attribute.is_ref() or rank is None:
        return
    if attribute.value < 0:
        place.put(target.axis, attribute.value + rank)


def _same_operands(one: Operator, other: Operator) -> bool:
    """Whether two versions differ in nothing but types."""
    return (
        one.operands == other.operands
        and one.lengths == other.lengths
        and one.absent is other.absent
        and one.axis_default == other.axis_default
    )


def _emission(place: NodeRef, intent: Intent, target: Operator, dim: Dim) -> Emission | None:
    """The operands at the target; None where only other operators can do it."""
    is_attribute = target.attribute("split") is not None
    is_linked = link_of(place.input(1)) is not None or _is_linked(place.node, "split")
    if intent.given is None and is_attribute and is_linked:
        return Emission(target, intent.axis or 0, {}, {"split": Runtime("split")})
    try:
        return emit(intent, target, dim)
    except SplitError as error:
        if error.kind is CANNOT_EXPRESS and _can_be_sliced(intent, target):
            return None
        raise


def _can_be_sliced(intent: Intent, target: Operator) -> bool:
    """Whether Slice nodes can do what a version of Split with lengths as an attribute can't."""
    source = None if intent.source is None else intent.operator.input(intent.source)
    holds_integers = source is None or source.type_str != intent.operator.inputs[0].type_str
    return intent.keepdims and target.attribute("split") is not None and holds_integers


def _replace_by_slices(place: NodeRef, change: Conversion, intent: Intent) -> None:
    """Put a Slice node in the place of each output of a Split node.

    Raises:
        SplitError: TS310 before opset 10, where bounds are attributes.
    """
    node, make = place.node, calculation(place, change, change.target)
    data, count = node.inputs[0], len(node.outputs)
    assert data is not None  # noqa: S101 - `bind` looked
    axis = make.axis_of(node)
    dim = dimension(data, axis)
    try:
        parts = make.slices(data, axis, dim, run_time_lengths(place, make, intent, dim), count)
    except SplitError as error:
        error.parameter = intent.source
        raise error.located(operator=intent.operator.id) from None
    change.replace(
        place,
        make,
        [part if old.name else None for old, part in zip(node.outputs, parts, strict=True)],
    )


def calculation(place: NodeRef, change: Conversion, opset: int) -> Calculation:
    """Makes the nodes that calculate with a split node's lengths."""
    return Calculation(change.names, opset, place.node.name or place.op_type.lower())


def run_time_lengths(place: NodeRef, make: Calculation, intent: Intent, dim: Number) -> Numbers:
    """The lengths of a dimension that only the running model knows, as the rule gives them."""
    given: Numbers | None = intent.given
    count = len(place.node.outputs)
    if given is None and intent.rule in (ceil, equal):
        given = (count,)
    elif given is None and _is_linked(place.node, "split"):
        held = make.linked("value_ints", place.node.attributes["split"])
        given = fed(held, dim, count)
    elif given is None:
        given = fed(place.node.inputs[1], dim, count)
    assert intent.rule is not None  # noqa: S101 - the version has one rule for its lengths
    sizes = intent.rule(dim, given)
    assert not isinstance(sizes, Chunks)  # noqa: S101 - a sequence stays a sequence
    return sizes


def _rewrite(place: NodeRef, change: Conversion, intent: Intent, emission: Emission) -> None:
    """Give the node the operands of its new version; what both have stays as it is written."""
    node = place.node
    old = list(node.inputs[1:])
    links = {name: entry for name, entry in node.attributes.items() if entry.is_ref()}
    link = link_of(place.input(1))
    if link is not None:
        links["split"] = link
    builder = calculation(place, change, change.target)
    inputs = _inputs(place, builder, intent, emission, links)
    if builder.nodes:
        place.scope.insert_before(node, builder.nodes)
    _set_attributes(place, emission, links)
    place.set_inputs(inputs)
    for value in old:
        change.drop_unused(value)


def _inputs(
    place: NodeRef,
    builder: Calculation,
    intent: Intent,
    emission: Emission,
    links: Mapping[str, ir.Attr],
) -> list[ir.Value | None]:
    node, target = place.node, emission.operator
    formal = [entry.name for entry in intent.operator.inputs]
    given = dict(zip(formal, node.inputs, strict=False))
    inputs: list[ir.Value | None] = [node.inputs[0]]
    for entry in target.inputs[1:]:
        source = emission.inputs.get(entry.name)
        known = given.get(entry.name)
        if source is None or target.attribute(entry.name) is not None:
            inputs.append(None)
        elif isinstance(source, Computed):
            inputs.append(computed_lengths(place, builder, intent))
        elif known is not None and intent.source == entry.name:
            inputs.append(_as_integers(builder, known, source))
        elif isinstance(source, Runtime):
            inputs.append(builder.linked("value_ints", links[source.operand]))
        else:
            inputs.append(builder.constant(source))
    return inputs


def computed_lengths(place: NodeRef, make: Calculation, intent: Intent) -> ir.Value:
    """The lengths as a value; the new node itself refuses those that do not fit.

    Raises:
        SplitError: TS310 if a function gives the axis and the opset has no constant for that.
    """
    data, count = place.node.inputs[0], len(place.node.outputs)
    dim = dimension(data, make.axis_of(place.node))
    fit = fitting(dim, run_time_lengths(place, make, intent, dim), count, checks_sum=True)
    made = make.make(fit)
    made.shape, made.type = ir.Shape([count]), ir.TensorType(ir.DataType.INT64)
    return made


def _as_integers(builder: Builder, known: ir.Value, source: Source) -> ir.Value:
    """The input as it is; a new one where it is a constant of floats (Split-1)."""
    value = constant(known)
    if isinstance(source, tuple) and value is not None and value.dtype.kind not in "iu":
        return builder.constant(source)
    return known


def _set_attributes(place: NodeRef, emission: Emission, links: Mapping[str, ir.Attr]) -> None:
    node, target = place.node, emission.operator
    linked = {
        name: links[name]
        for name, source in emission.inputs.items()
        if isinstance(source, Runtime) and target.attribute(name) is not None and name in links
    }
    for name in tuple(node.attributes):
        if name != target.axis and name not in emission.attributes:
            del node.attributes[name]
    for name, value in emission.attributes.items():
        if name not in links:
            place.put(name, list(value) if isinstance(value, tuple) else value)
    for name, entry in linked.items():
        reference = entry.ref_attr_name or ""
        node.attributes[name] = ir.RefAttr(name, reference, ir.AttributeType.INTS)
    if target.axis not in node.attributes and emission.axis != target.axis_default:
        place.put(target.axis, emission.axis)
