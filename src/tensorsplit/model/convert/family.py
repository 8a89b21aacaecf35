"""Split nodes: from one version to another, and to OpenVINO's, by what they ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import onnx_ir as ir

from tensorsplit.core.arithmetic import Number, Numbers, dimension, fed, fitting
from tensorsplit.core.dimensions import Dim, is_known
from tensorsplit.core.emit import Computed, Emission, Runtime, Source, emit
from tensorsplit.core.errors import CANNOT_EXPRESS, SplitError
from tensorsplit.core.records import in_force
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.core.resolve import Intent, check_element_type, part_sizes, plan
from tensorsplit.core.rules import Chunks, ceil, equal
from tensorsplit.core.schema import Operator
from tensorsplit.model.convert.conversion import (
    FIRST_WITH_ANY_CONSTANT,
    Conversion,
    NodeConversion,
    link_of,
)
from tensorsplit.model.graph.binding import bind
from tensorsplit.model.graph.building import collector_paused
from tensorsplit.model.graph.calculation import FIRST_WITH_VALUE_INT
from tensorsplit.model.graph.nodes import VENDOR_SPLIT, constant, is_onnx_split, walk
from tensorsplit.model.infer.analysis import analyse


def convert_split(node: NodeConversion) -> None:
    """Bring a split node to the target.

    Raises:
        SplitError: TS101 to TS107, TS305 for a node that is wrong; TS101, TS201, TS301 to TS308,
            TS310 for one that is not expressible at the target.
    """
    intent = _bound(node)
    target = in_force(node.op_type, node.conversion.target)
    data = node.dtype()
    if data is not None:
        types = target.types_of(target.inputs[0]).element_types
        check_element_type(target.id, data.name.lower(), types, target.inputs[0].name)
    if target is intent.operator:
        return
    _normalise_axis(node, target)
    if _same_operands(intent.operator, target):
        return
    emission = _emission(node, intent, target)
    node.opset = node.conversion.target
    if emission is None:
        _replace_by_slices(node, intent)
    else:
        _rewrite(node, intent, emission)


def _bound(node: NodeConversion) -> Intent:
    """What a split node asks for; an axis that a function's caller gives stands for any."""
    intent = bind(node.node, node.opset)
    return replace(intent, axis=0) if _is_linked(node, intent.operator.axis) else intent


def _is_linked(node: NodeConversion, name: str) -> bool:
    attribute = node.node.attributes.get(name)
    return attribute is not None and attribute.is_ref()


def _normalise_axis(node: NodeConversion, target: Operator) -> None:
    """Count a negative axis from the front where the text of the version knows no other (D13)."""
    attribute, rank = node.node.attributes.get(target.axis), node.rank()
    if target.negative_axis or attribute is None or attribute.is_ref() or rank is None:
        return
    if attribute.value < 0:
        node.ref.put(target.axis, attribute.value + rank)


def _same_operands(one: Operator, other: Operator) -> bool:
    """Whether two versions differ in nothing but types."""
    return (
        one.operands == other.operands
        and one.lengths == other.lengths
        and one.absent is other.absent
        and one.axis_default == other.axis_default
    )


def _emission(node: NodeConversion, intent: Intent, target: Operator) -> Emission | None:
    """The operands at the target; None where only Slice nodes can do it."""
    is_attribute = target.attribute("split") is not None
    is_linked = link_of(node.input(1)) is not None or _is_linked(node, "split")
    if intent.given is None and is_attribute and is_linked:
        return Emission(target, intent.axis or 0, {}, {"split": Runtime("split")})
    try:
        return emit(intent, target, _dimension(node, intent))
    except SplitError as error:
        source = None if intent.source is None else intent.operator.input(intent.source)
        holds_integers = source is None or source.type_str != intent.operator.inputs[0].type_str
        can_be_sliced = intent.keepdims and is_attribute and holds_integers
        if error.kind is CANNOT_EXPRESS and can_be_sliced:
            return None
        raise


def _dimension(node: NodeConversion, intent: Intent) -> Dim:
    """The dimension that is split, if it is known and the node can split it.

    One that it can't split is left to the running model: a node that never runs may be so.
    """
    shape, axis = node.shape(), intent.axis
    if shape is None or axis is None or _is_linked(node, "axis"):
        return None
    if not -len(shape) <= axis < len(shape):
        return None
    try:
        if is_known(shape[axis]) and intent.given is not None:
            part_sizes(intent, shape[axis])
    except SplitError:
        return None
    return shape[axis]


def _replace_by_slices(node: NodeConversion, intent: Intent) -> None:
    """Put a Slice node in the place of each output; TS310 before opset 10."""
    make, data, outputs = node.builder, node.input(0), node.node.outputs
    assert data is not None  # noqa: S101 - `bind` looked
    axis = make.axis_of(node.node)
    dim = dimension(data, axis)
    try:
        lengths = _run_time_lengths(node, intent, dim)
        parts = make.slices(data, axis, dim, lengths, len(outputs))
    except SplitError as error:
        error.parameter = intent.source
        raise error.located(operator=intent.operator.id) from None
    node.replace(*(part if old.name else None for old, part in zip(outputs, parts, strict=True)))


def _run_time_lengths(node: NodeConversion, intent: Intent, dim: Number) -> Numbers:
    """The lengths of a dimension that only the running model knows, as the rule gives them."""
    given: Numbers | None = intent.given
    count = len(node.node.outputs)
    if given is None and intent.rule in (ceil, equal):
        given = (count,)
    elif given is None and _is_linked(node, "split"):
        held = node.builder.linked("value_ints", node.node.attributes["split"])
        given = fed(held, dim, count)
    elif given is None:
        given = fed(node.node.inputs[1], dim, count)
    assert intent.rule is not None  # noqa: S101 - the version has one rule for its lengths
    sizes = intent.rule(dim, given)
    assert not isinstance(sizes, Chunks)  # noqa: S101 - a sequence stays a sequence
    return sizes


def _computed_lengths(node: NodeConversion, intent: Intent) -> ir.Value:
    """The lengths as a value; the new node itself refuses those that do not fit.

    Raises:
        SplitError: TS310 if a function gives the axis and the opset has no constant for that.
    """
    make, count = node.builder, len(node.node.outputs)
    dim = dimension(node.node.inputs[0], make.axis_of(node.node))
    lengths = _run_time_lengths(node, intent, dim)
    made = make.make(fitting(dim, lengths, count, checks_sum=True))
    made.shape, made.type = ir.Shape([count]), ir.TensorType(ir.DataType.INT64)
    return made


def _rewrite(node: NodeConversion, intent: Intent, emission: Emission) -> None:
    """Give the node the operands of its new version; what both have stays as it is written."""
    links = {name: entry for name, entry in node.node.attributes.items() if entry.is_ref()}
    link = link_of(node.input(1))
    if link is not None:
        links["split"] = link
    inputs = _inputs(node, intent, emission, links)
    _set_attributes(node, emission, links)
    node.set_inputs(*inputs)


def _inputs(
    node: NodeConversion, intent: Intent, emission: Emission, links: Mapping[str, ir.Attr]
) -> list[ir.Value | None]:
    target = emission.operator
    formal = [entry.name for entry in intent.operator.inputs]
    given = dict(zip(formal, node.node.inputs, strict=False))
    inputs = [node.input(0)]
    for entry in target.inputs[1:]:
        source, known = emission.inputs.get(entry.name), given.get(entry.name)
        if source is None or target.attribute(entry.name) is not None:
            inputs.append(None)
        elif isinstance(source, Computed):
            inputs.append(_computed_lengths(node, intent))
        elif known is not None and intent.source == entry.name:
            inputs.append(_as_integers(node, known, source))
        elif isinstance(source, Runtime):
            inputs.append(node.builder.linked("value_ints", links[source.operand]))
        else:
            inputs.append(node.constant(source))
    return inputs


def _as_integers(node: NodeConversion, known: ir.Value, source: Source) -> ir.Value:
    """The input as it is; a new one where it is a constant of floats (Split-1)."""
    value = constant(known)
    if isinstance(source, tuple) and value is not None and value.dtype.kind not in "iu":
        return node.constant(source)
    return known


def _set_attributes(node: NodeConversion, emission: Emission, links: Mapping[str, ir.Attr]) -> None:
    attributes, target = node.node.attributes, emission.operator
    for name in tuple(attributes):
        if name != target.axis and name not in emission.attributes:
            del attributes[name]
    for name, value in emission.attributes.items():
        if name not in links:
            node.ref.put(name, list(value) if isinstance(value, tuple) else value)
    for name, source in emission.inputs.items():
        if isinstance(source, Runtime) and target.attribute(name) is not None and name in links:
            reference = links[name].ref_attr_name or ""
            attributes[name] = ir.RefAttr(name, reference, ir.AttributeType.INTS)
    if target.axis not in attributes and emission.axis != target.axis_default:
        node.ref.put(target.axis, emission.axis)


@collector_paused()
def to_variadic(model: ir.Model) -> bool:
    """Make a VariadicSplit of every node that gives one tensor for each part, in place.

    Returns:
        Whether there were any.

    Raises:
        SplitError: TS1xx to TS3xx for a node that is wrong; TS310 for one that is not expressible
            as a VariadicSplit.
    """
    found = [ref for ref in walk(model) if is_onnx_split(ref.node)]
    if not found:
        return False
    conversion = Conversion(model, analyse(model), 0)
    for ref in found:
        conversion.target = ref.opset
        try:
            _make_variadic(NodeConversion(ref, conversion))
        except SplitError as error:
            raise error.located(node=ref.path) from None
        owner = model if ref.function is None else ref.function
        owner.opset_imports[DOMAIN] = VENDOR_SPLIT.since_version
    conversion.finish()
    return True


def _make_variadic(node: NodeConversion) -> None:
    intent = _bound(node)
    if intent.operator.is_sequence:
        raise SplitError(
            CANNOT_EXPRESS,
            f"{VENDOR_SPLIT.id} gives tensors, and the node a sequence of them",
            "lower the sequences first: tensorsplit lower --for portable",
            operator=intent.operator.id,
        )
    if node.opset < FIRST_WITH_ANY_CONSTANT:
        raise SplitError(
            CANNOT_EXPRESS,
            f"the axis and the lengths become inputs, and opset {node.opset} has no constants of"
            " integers",
            f"convert to opset {FIRST_WITH_ANY_CONSTANT} or newer at the same time",
            operator=intent.operator.id,
        )
    make, axis = node.builder, node.node.attributes.get("axis")
    if axis is not None and axis.is_ref() and make.opset >= FIRST_WITH_VALUE_INT:
        axis_value = make.linked("value_int", axis)
    else:
        axis_value = make.make(make.axis_of(node.node))
    node.set_inputs(node.input(0), axis_value, _variadic_lengths(node, intent))
    node.node.domain, node.node.op_type = DOMAIN, VENDOR_SPLIT.name
    node.node.attributes.clear()


def _variadic_lengths(node: NodeConversion, intent: Intent) -> ir.Value:
    """The lengths as a value: a constant, what the node was given, or calculated."""
    if intent.rule in (ceil, equal) and intent.given == (1,):
        return node.constant([-1])
    shape, dim = node.shape(), None
    if shape is not None and intent.axis is not None and not _is_linked(node, "axis"):
        if intent.given is not None:
            plan(intent, shape)
        dim = shape[intent.axis]
    source = emit(intent, VENDOR_SPLIT, dim).inputs[VENDOR_SPLIT.lengths[0].operand]
    if isinstance(source, Computed):
        return _computed_lengths(node, intent)
    given = node.input(1)
    if given is not None and (node.dtype(1) == ir.DataType.INT64 or isinstance(source, Runtime)):
        return given
    assert isinstance(source, tuple)  # noqa: S101 - nothing else is left
    return node.constant(source)
