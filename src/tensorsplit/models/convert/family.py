"""Split nodes: from one version to another by what they ask for, not by how they say it."""

from __future__ import annotations

from dataclasses import replace

import onnx_ir as ir

from tensorsplit.dims import Dim, is_known
from tensorsplit.emit import Computed, Emission, Runtime, Source, emit
from tensorsplit.errors import CANNOT_EXPRESS, SplitError
from tensorsplit.models.convert import lengths, slices
from tensorsplit.models.convert.change import Change, Site, link_of, linked_constant
from tensorsplit.models.graph.build import Builder
from tensorsplit.models.graph.places import operand
from tensorsplit.models.nodes import UNKNOWN, Known, bind_node
from tensorsplit.operators import in_force
from tensorsplit.resolve import Intent, check_element_type
from tensorsplit.rules import ceil, equal, explicit
from tensorsplit.schema import Operator


def convert_split(site: Site, change: Change) -> None:
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
    site.opset = change.target


def bind_site(site: Site) -> Intent:
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
    intent = bind_node(ir.serde.serialize_node(node), site.opset, inputs, linked)
    if intent.source == "split" and _is_linked(node, "split"):
        return replace(intent, given=None)
    return intent


def _is_linked(node: ir.Node, name: str) -> bool:
    attribute = node.attributes.get(name)
    return attribute is not None and attribute.is_ref()


def _convert(site: Site, change: Change, intent: Intent, target: Operator) -> None:
    shape = change.shape(site.input(0))
    _normalise_axis(site, change, target)
    if _same_operands(intent.operator, target):
        return
    dim: Dim = None
    if shape and intent.axis is not None and not _is_linked(site.node, "axis"):
        dim = shape[intent.axis]  # the analysis refused axes that are out of range
    if intent.rule is ceil and target.absent is equal and is_known(dim):
        ceil(dim, intent.given or ())
        if dim % len(site.node.outputs) == 0:
            intent = replace(intent, rule=equal, source=None)
    emission = _emission(site, intent, target, dim)
    if emission is None:
        slices.replace_by_slices(site, change, intent)
    else:
        _rewrite(site, change, intent, emission)


def _normalise_axis(site: Site, change: Change, target: Operator) -> None:
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


def _emission(site: Site, intent: Intent, target: Operator, dim: Dim) -> Emission | None:
    """The operands at the target; None where only other operators can say it."""
    link = link_of(site.input(1))
    if intent.given is None and target.attribute("split") is not None:
        if link is not None or _is_linked(site.node, "split"):
            return Emission(target, intent.axis or 0, {}, {"split": Runtime("split")})
    _refuse_floats(intent)
    try:
        emission = emit(intent, target, dim)
    except SplitError as error:
        if error.kind is CANNOT_EXPRESS and slices.can_replace(intent, target):
            return None
        raise
    for name, said in emission.inputs.items():
        parameter = target.input(name)
        if isinstance(said, Runtime) and parameter is not None and parameter.type_str == "T":
            raise SplitError(
                CANNOT_EXPRESS,
                f"{target.id} can't say this: the lengths are known only at run time, and here"
                " they are floats, which can't hold every length",
                "give the lengths as a constant",
                operator=intent.operator.id,
                parameter=name,
            )
    return emission


def _refuse_floats(intent: Intent) -> None:
    """Lengths that are floats at run time may turn out not to be whole, which must be refused."""
    if intent.given is not None or intent.rule is not explicit or intent.source is None:
        return
    parameter = intent.operator.input(intent.source)
    attribute = intent.operator.attribute(intent.source)
    if parameter is not None and parameter.type_str == "T" and intent.element_types is not None:
        if attribute is None or "int64" not in intent.element_types:
            raise SplitError(
                CANNOT_EXPRESS,
                "the lengths are floats known only at run time; other versions take integers, and"
                " could not refuse lengths that are not whole",
                "give the lengths as a constant",
                operator=intent.operator.id,
                parameter=intent.source,
            )


def _rewrite(site: Site, change: Change, intent: Intent, emission: Emission) -> None:
    node, target = site.node, emission.operator
    builder = change.builder(site, change.target)
    links = {name: entry for name, entry in node.attributes.items() if entry.is_ref()}
    link = link_of(site.input(1))
    if link is not None:
        links.setdefault("split", link)
    old = list(node.inputs[1:])
    given = {
        entry.name: value for entry, value in zip(intent.operator.inputs[1:], old, strict=False)
    }
    inputs: list[ir.Value | None] = [node.inputs[0]]
    kept = dict(emission.attributes)
    for entry in target.inputs[1:]:
        said = emission.inputs.get(entry.name)
        inputs.append(
            None
            if said is None or target.attribute(entry.name) is not None
            else _value(site, change, builder, said, given.get(entry.name), links)
        )
    for name in [name for name in node.attributes if name not in (target.axis, *kept)]:
        del node.attributes[name]
    for name, value in kept.items():
        if name not in links:
            site.put(name, list(value) if isinstance(value, tuple) else value)
    for name, said in emission.inputs.items():
        if isinstance(said, Runtime) and target.attribute(name) is not None and name in links:
            node.attributes[name] = ir.RefAttr(
                name, links[name].ref_attr_name or "", ir.AttributeType.INTS
            )
    if target.axis not in node.attributes and emission.axis != target.axis_default:
        site.put(target.axis, emission.axis)
    if builder.nodes:
        site.scope.insert_before(node, builder.nodes)
    site.set_inputs(inputs)
    for value in old:
        change.drop_unused(value)


def _value(
    site: Site,
    change: Change,
    builder: Builder,
    said: Source,
    given: ir.Value | None,
    links: dict[str, ir.Attr],
) -> ir.Value:
    """The input that holds the lengths."""
    if isinstance(said, Computed):
        return lengths.computed(site, change, builder, said)
    if isinstance(said, Runtime):
        if given is not None:
            return given
        return linked_constant(builder, "value_ints", links[said.operand])
    return builder.constant(said) if given is None else given
