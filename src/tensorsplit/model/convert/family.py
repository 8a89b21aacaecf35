"""Split nodes: from one version to another, and to OpenVINO's, by what they ask for."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

import onnx_ir as ir

from tensorsplit.core.arithmetic import Number, Numbers, dimension, fed, fitting, value
from tensorsplit.core.dimensions import Dim
from tensorsplit.core.emit import (
    AtRunTime,
    Emission,
    EmittedOperand,
    emit,
    takes_integers,
    written_out,
)
from tensorsplit.core.errors import CANNOT_EXPRESS, SplitError
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.core.resolve import Intent, check_count, check_element_type
from tensorsplit.core.rules import Chunks, ceil, equal
from tensorsplit.core.schema import Operator
from tensorsplit.model.convert.adapters_operands import count_from_front
from tensorsplit.model.convert.conversion import Conversion, ConversionReport, NodeConversion
from tensorsplit.model.convert.types_of_calls import separate_absent
from tensorsplit.model.features.split_features import known_lengths, split_length
from tensorsplit.model.graph.binding import bind
from tensorsplit.model.graph.calculation import FIRST_WITH_ANY_CONSTANT
from tensorsplit.model.graph.calls import specialise
from tensorsplit.model.graph.nodes import walk
from tensorsplit.model.graph.split_records import VENDOR_SPLIT, is_onnx_split, record_of
from tensorsplit.model.infer.calculated import always_fit
from tensorsplit.model.validity.model_errors import check_well_formed

_operands = attrgetter("operands", "lengths", "absent", "axis_default")
"""What two versions of an operator differ in, apart from types."""


def needs_attributes(node: ir.Node, opset: int, target: int) -> bool:
    """Return whether a split node can be converted to an opset only if its attributes are known."""
    old, new = record_of(node, opset), record_of(node, target)
    if new is old or (new.negative_axis and _operands(new) == _operands(old)):
        return False
    if any(held.is_ref() for name, held in node.attributes.items() if name != old.axis):
        return True
    emission = emit(bind(node, opset), new)
    return not new.negative_axis or AtRunTime.COMPUTED in emission.inputs.values()


def convert_split(node: NodeConversion) -> None:
    """Bring a split node to the target (TS101, TS201, TS30x, TS310 if it is not expressible)."""
    intent = requested_split(node)
    target = record_of(node.node, node.conversion.target)
    data = node.dtype()
    if data is not None:
        for version in (intent.operator, target):
            types = version.types_of(version.inputs[0]).element_types
            check_element_type(version.id, data.name.lower(), types, version.inputs[0].name)
    if target is intent.operator:
        return
    if not target.negative_axis:
        count_from_front(node)
    if _operands(intent.operator) == _operands(target):
        return
    express(node, intent, target)


def express(node: NodeConversion, intent: Intent, target: Operator) -> None:
    """Rewrite a node so that it does what an intent asks for, in an operator version (TS310)."""
    emission = _emission(node, intent, target)
    node.opset = node.conversion.target
    if emission is None:
        _replace_by_slices(node, intent)
        return
    _rewrite(node, intent, target, emission)
    if AtRunTime.COMPUTED in emission.inputs.values():
        node.declare(*node.node.outputs)


def requested_split(node: NodeConversion) -> Intent:
    """Return a split node's intent; lengths that are not all numbers count as run-time values.

    So do those that an input gives, and are surely below 0: as an attribute they are refused even
    where the node never runs (D22).
    """
    conversion = node.conversion
    if node.node in conversion.restored:
        return conversion.restored[node.node]
    intent = conversion.facts.split(node.ref).require_intent()
    given, held = known_lengths(intent), node.input(1)
    is_negative = given is not None and min(given, default=0) < 0
    if is_negative and held is not None:
        given = None
    return replace(intent, given=given)


def _emission(node: NodeConversion, intent: Intent, target: Operator) -> Emission | None:
    """Return the operands at the target; None where only Slice nodes can do it."""
    is_attribute, facts = target.attribute("split") is not None, node.conversion.facts
    is_counted = target.absent is equal and intent.rule in (ceil, equal)
    if is_counted and len(facts.counts_alike.get(node.node, ())) > 1:
        intent = written_out(intent, facts.split(node.ref).plan)
    try:
        return emit(intent, target, _dimension(node))
    except SplitError as error:
        integers = intent.source is None or takes_integers(intent.operator, intent.source)
        if error.kind is CANNOT_EXPRESS and is_attribute and integers:
            return None
        raise


def _dimension(node: NodeConversion) -> Dim:
    """Return the dimension that is split, if it is known and the node can split it.

    One that it can't split is left to the running model: a node that never runs may be so.
    """
    return split_length(node.conversion.facts.split(node.ref).plan)


def _replace_by_slices(node: NodeConversion, intent: Intent) -> None:
    """Replace each output by that of a Slice node; TS310 before opset 10."""
    make, data, outputs = node.make, node.input(0), node.node.outputs
    assert data is not None  # noqa: S101 - `bind` looked
    axis = intent.axis
    assert axis is not None  # noqa: S101 - it is an attribute
    dim = dimension(data, axis)
    held, facts = node.input(1), node.conversion.facts
    try:
        if held is not None and always_fit(held, data, axis, len(outputs), facts):
            parts = make.slices(data, axis, dim, value(held), len(outputs), are_checked=True)
        else:
            lengths = _run_time_lengths(node, intent, dim)
            parts = make.slices(data, axis, dim, lengths, len(outputs))
    except SplitError as error:
        error.parameter = intent.source
        raise error.located(operator=intent.operator.id) from None
    made = [part if old.name else None for old, part in zip(outputs, parts, strict=True)]
    node.replace(*made)
    node.declare(*made)


def _run_time_lengths(node: NodeConversion, intent: Intent, dim: Number) -> Numbers:
    """Calculate the lengths by the rule for a dimension known only at run time."""
    given: Numbers | None = intent.given
    count = len(node.node.outputs)
    if given is None and intent.rule in (ceil, equal):
        given = (count,)
    elif given is None:
        given = fed(node.node.inputs[1], dim, count)
    assert intent.rule is not None  # noqa: S101 - the version has one rule for its lengths
    sizes = intent.rule(dim, given)
    assert not isinstance(sizes, Chunks)  # noqa: S101 - a sequence stays a sequence
    if isinstance(sizes, tuple):
        check_count(len(sizes), intent)
    return sizes


def _lengths(node: NodeConversion, intent: Intent, source: EmittedOperand) -> ir.Value:
    """Return the lengths as an input: calculated, what the node was given, or a constant.

    The new node itself refuses those that are calculated and do not fit.
    """
    make, given = node.make, node.input(1)
    if source is AtRunTime.COMPUTED:
        dim, count = dimension(node.node.inputs[0], intent.axis or 0), len(node.node.outputs)
        lengths = _run_time_lengths(node, intent, dim)
        made = make.make(fitting(dim, lengths, count, checks_sum=True))
        made.shape, made.type = ir.Shape([count]), ir.TensorType(ir.DataType.INT64)
        return made
    if given is not None and (source is AtRunTime.GIVEN or node.dtype(1) == ir.DataType.INT64):
        return given
    return make.constant(source)


def _rewrite(node: NodeConversion, intent: Intent, target: Operator, emission: Emission) -> None:
    """Give the node the operands of its new version; what both have stays as it is written."""
    attributes, inputs = node.node.attributes, [node.input(0)]
    inputs += [_lengths(node, intent, source) for source in emission.inputs.values()]
    for name in attributes.keys() - {target.axis, *emission.attributes}:
        del attributes[name]
    for name, held in emission.attributes.items():
        node.ref.put(name, list(held) if isinstance(held, tuple) else held)
    if target.axis not in attributes and intent.axis != target.axis_default:
        node.ref.put(target.axis, intent.axis)
    node.set_inputs(*inputs)


def to_variadic(model: ir.Model, report: ConversionReport) -> None:
    """Make every split node a VariadicSplit (TS310 if it is not expressible)."""
    if not any(is_onnx_split(ref.node) for ref in walk(model)):
        return
    check_well_formed(model)
    report.is_changed = True
    separate_absent(model)
    specialise(model, lambda ref: is_onnx_split(ref.node))
    found = [ref for ref in walk(model) if is_onnx_split(ref.node)]
    conversion = Conversion(model, 0, report)
    for ref in found:
        with conversion.rewriting(ref) as node:
            _make_variadic(node)
        owner = model if ref.function is None else ref.function
        owner.opset_imports[DOMAIN] = VENDOR_SPLIT.since_version
    conversion.finish()


def _make_variadic(node: NodeConversion) -> None:
    intent = requested_split(node)
    if intent.operator.is_sequence:
        raise SplitError(
            CANNOT_EXPRESS,
            f"{VENDOR_SPLIT.id} gives tensors, but the node gives a sequence of them",
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
    axis = node.make.make(intent.axis or 0)
    if intent.rule in (ceil, equal) and intent.given == (1,):
        lengths = node.make.constant([-1])
    else:
        operands = emit(intent, VENDOR_SPLIT, _dimension(node)).inputs
        lengths = _lengths(node, intent, operands[VENDOR_SPLIT.lengths[0].operand])
    node.set_inputs(node.input(0), axis, lengths)
    node.node.domain, node.node.op_type = DOMAIN, VENDOR_SPLIT.name
    node.node.attributes.clear()
