"""Split nodes: from one version to another by what they ask for, not by how they say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import onnx_ir as ir

from tensorsplit.core.dimensions import Dim, Shape, is_known
from tensorsplit.core.emit import Computed, Emission, Runtime, Source, emit
from tensorsplit.core.errors import CANNOT_EXPRESS, SplitError
from tensorsplit.core.records import in_force
from tensorsplit.core.resolve import Intent, check_element_type, part_sizes
from tensorsplit.core.rules import ceil, equal
from tensorsplit.core.schema import Operator
from tensorsplit.model.convert import lengths, slices
from tensorsplit.model.convert.conversion import Conversion, link_of, linked_constant
from tensorsplit.model.graph.binding import UNKNOWN, Known, bind_node, operand
from tensorsplit.model.graph.building import Builder
from tensorsplit.model.graph.nodes import NodeRef, as_proto, constant


def convert_split(site: NodeRef, change: Conversion) -> None:
    """Bring a split node to the target.

    Raises:
        SplitError: TS101 to TS107, TS305 for a node that is wrong; TS101, TS201, TS301 to TS308,
            TS310 for one that the target can't say.
    """
    try:
        intent = bind_site(site)
        target = in_force(site.op_type, change.target)
        data = change.dtype(site.input(0))
        if data is not None:
            types = target.types_of(target.inputs[0]).element_types
            check_element_type(target.id, data.name.lower(), types, target.inputs[0].name)
        if target is not intent.operator:
            _convert(site, change, intent, target)
    except SplitError as error:
        raise error.located(node=site.path) from None


def bind_site(site: NodeRef) -> Intent:
    """What a split node asks for, with what a function's attributes give left open.

    Raises:
        SplitError: TS101 to TS107, TS305.
    """
    node = site.node
    inputs: list[Known] = [None if value is None else UNKNOWN for value in node.inputs[:1]]
    inputs += [None if value is None else operand(value) for value in node.inputs[1:]]
    count = len(node.outputs)
    # Whatever the call gives: a count is right only if it is the number of outputs (D5)
    linked = {"axis": 0, "keepdims": 1, "num_outputs": count, "split": [0] * count}
    intent = bind_node(as_proto(node), site.opset, inputs, linked)
    if intent.source == "split" and _is_linked(node, "split"):
        return replace(intent, given=None)
    return intent


def _is_linked(node: ir.Node, name: str) -> bool:
    attribute = node.attributes.get(name)
    return attribute is not None and attribute.is_ref()


def _convert(site: NodeRef, change: Conversion, intent: Intent, target: Operator) -> None:
    shape = change.shape(site.input(0))
    _normalise_axis(site, change, target)
    if _same_operands(intent.operator, target):
        return
    dim = None if _is_linked(site.node, "axis") else _dimension(intent, shape)
    is_ceil = intent.rule is ceil and target.absent is equal
    if is_ceil and isinstance(dim, int) and dim % len(site.node.outputs) == 0:
        intent = replace(intent, rule=equal, source=None)
    emission = _emission(site, intent, target, dim)
    if emission is None:
        slices.replace_by_slices(site, change, intent)
    else:
        _rewrite(site, change, intent, emission)


def _dimension(intent: Intent, shape: Shape | None) -> Dim:
    """The dimension that is cut, if it is known and the node can cut it.

    One that it can't cut is left to the running model: a node that never runs may be so.
    """
    if shape is None or intent.axis is None or not -len(shape) <= intent.axis < len(shape):
        return None
    try:
        if is_known(shape[intent.axis]) and intent.given is not None:
            part_sizes(intent, shape[intent.axis])
    except SplitError:
        return None
    return shape[intent.axis]


def _normalise_axis(site: NodeRef, change: Conversion, target: Operator) -> None:
    """Count a negative axis from the front where the text of the version knows no other (D13)."""
    attribute = site.node.attributes.get(target.axis)
    rank = change.rank(site.input(0))
    if target.negative_axis or attribute is None or attribute.is_ref() or rank is None:
        return
    if attribute.value < 0:
        site.put(target.axis, attribute.value + rank)


def _same_operands(one: Operator, other: Operator) -> bool:
    """Whether two versions differ in nothing but types."""
    return (
        one.operands == other.operands
        and one.lengths == other.lengths
        and one.absent is other.absent
        and one.axis_default == other.axis_default
    )


def _emission(site: NodeRef, intent: Intent, target: Operator, dim: Dim) -> Emission | None:
    """The operands at the target; None where only other operators can say it."""
    is_attribute = target.attribute("split") is not None
    is_linked = link_of(site.input(1)) is not None or _is_linked(site.node, "split")
    if intent.given is None and is_attribute and is_linked:
        return Emission(target, intent.axis or 0, {}, {"split": Runtime("split")})
    try:
        return emit(intent, target, dim)
    except SplitError as error:
        if error.kind is CANNOT_EXPRESS and slices.can_replace(intent, target):
            return None
        raise


def _rewrite(site: NodeRef, change: Conversion, intent: Intent, emission: Emission) -> None:
    """Give the node the operands of its new version; what both have stays as it is written."""
    node = site.node
    old = list(node.inputs[1:])
    links = {name: entry for name, entry in node.attributes.items() if entry.is_ref()}
    link = link_of(site.input(1))
    if link is not None:
        links["split"] = link
    builder = change.builder(site, change.target)
    inputs = _inputs(site, builder, intent, emission, links)
    if builder.nodes:
        site.scope.insert_before(node, builder.nodes)
    _set_attributes(site, emission, links)
    site.set_inputs(inputs)
    for value in old:
        change.drop_unused(value)


def _inputs(
    site: NodeRef,
    builder: Builder,
    intent: Intent,
    emission: Emission,
    links: Mapping[str, ir.Attr],
) -> list[ir.Value | None]:
    node, target = site.node, emission.operator
    formal = [entry.name for entry in intent.operator.inputs]
    given = dict(zip(formal, node.inputs, strict=False))
    inputs: list[ir.Value | None] = [node.inputs[0]]
    for entry in target.inputs[1:]:
        said = emission.inputs.get(entry.name)
        known = given.get(entry.name)
        if said is None or target.attribute(entry.name) is not None:
            inputs.append(None)
        elif isinstance(said, Computed):
            inputs.append(lengths.computed(site, builder, said))
        elif known is not None and intent.source == entry.name:
            inputs.append(_as_integers(builder, known, said))
        elif isinstance(said, Runtime):
            inputs.append(linked_constant(builder, "value_ints", links[said.operand]))
        else:
            inputs.append(builder.constant(said))
    return inputs


def _as_integers(builder: Builder, known: ir.Value, said: Source) -> ir.Value:
    """The input as it is; a new one where it is a constant of floats (Split-1)."""
    value = constant(known)
    if isinstance(said, tuple) and value is not None and value.dtype.kind not in "iu":
        return builder.constant(said)
    return known


def _set_attributes(site: NodeRef, emission: Emission, links: Mapping[str, ir.Attr]) -> None:
    node, target = site.node, emission.operator
    linked = {
        name: links[name]
        for name, said in emission.inputs.items()
        if isinstance(said, Runtime) and target.attribute(name) is not None and name in links
    }
    for name in tuple(node.attributes):
        if name != target.axis and name not in emission.attributes:
            del node.attributes[name]
    for name, value in emission.attributes.items():
        if name not in links:
            site.put(name, list(value) if isinstance(value, tuple) else value)
    for name, entry in linked.items():
        reference = entry.ref_attr_name or ""
        node.attributes[name] = ir.RefAttr(name, reference, ir.AttributeType.INTS)
    if target.axis not in node.attributes and emission.axis != target.axis_default:
        site.put(target.axis, emission.axis)
