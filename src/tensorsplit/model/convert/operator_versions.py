"""ONNX's own schemas: the versions of an operator between two opsets, and what each allows."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import onnx_ir as ir
from onnx import defs

from tensorsplit.model.graph.facts import Fact, Other, Sequence
from tensorsplit.model.graph.nodes import check_schema, malformed
from tensorsplit.model.infer.analysis import Facts


class VersionStep(NamedTuple):
    """From one version of an operator to the next one, up or down.

    Attributes:
        boundary: The opset that introduced the newer one of the two.
        up: Whether it goes to the newer one.
    """

    op_type: str
    boundary: int
    up: bool

    @property
    def opset(self) -> int:
        """The opset after the step."""
        return self.boundary if self.up else self.boundary - 1

    @property
    def before(self) -> int:
        """The last opset before the step."""
        return self.boundary - 1 if self.up else self.boundary


@lru_cache(maxsize=4096)
def schema(op_type: str, opset: int) -> Any:
    """The schema in force; None if the operator does not exist there."""
    try:
        return defs.get_schema(op_type, opset, "")
    except defs.SchemaError:
        return None


@lru_cache(maxsize=4096)
def next_step(op_type: str, opset: int, target: int) -> VersionStep | None:
    """The next version on the way to the target; None if there is none in between."""
    up = target > opset
    for boundary in range(opset + 1, target + 1) if up else range(opset, target, -1):
        found = schema(op_type, boundary)
        if found is not None and found.since_version == boundary:
            return VersionStep(op_type, boundary, up)
    return None


def keeps_attributes(step: VersionStep, names: set[str]) -> bool:
    """Whether a node surely has the attributes of these names after a step, as they are before."""
    before, after = schema(step.op_type, step.before), schema(step.op_type, step.opset)
    if before is None or before.has_function or before.has_context_dependent_function:
        return False  # its definition may replace it
    return after is not None and not after.deprecated and names <= after.attributes.keys()


def check_node(node: ir.Node, opset: int) -> None:
    """Refuse a node that its own opset does not allow (TS502)."""
    own = schema(node.op_type, opset)
    check_schema(own, opset, node.attributes, _given(node), len(node.outputs))
    reason = _wrong_inputs(node, own)
    if reason:
        fix = f"at opset {opset} it has {own.min_input} to {own.max_input} inputs"
        raise malformed(reason, fix).located(operator=f"ai.onnx.{node.op_type}")


def fit(node: ir.Node, step: VersionStep) -> str | None:
    """Bring a node to the next version, if what changed does not concern what the node uses.

    What is returned says why it can't be; the attributes are as they were then.
    """
    before, after = schema(step.op_type, step.before), schema(step.op_type, step.opset)
    if after is None:
        return f"there is no {step.op_type} at opset {step.opset}"
    if after.deprecated:
        return f"{step.op_type} is deprecated at opset {step.opset}"
    dropped = [name for name in node.attributes if name not in after.attributes]
    for name in dropped:
        reason = _not_default(node, name, before)
        if reason:
            return f"{reason}, which opset {step.opset} does not have"
    reason = _resize(node, step, after)
    if reason:
        return reason
    kept = _changed_defaults(node, before, after)
    for name, entry in after.attributes.items():
        if entry.required and name not in node.attributes and name not in kept:
            return f"opset {step.opset} needs the attribute '{name}'"
    for name in dropped:
        del node.attributes[name]
    node.attributes.update(kept)
    return None


def _not_default(node: ir.Node, name: str, before: Any) -> str | None:
    """Why leaving an attribute out would change the meaning, if it would."""
    attribute = node.attributes[name]
    if name == "consumed_inputs":  # a hint for memory planning that results do not depend on
        return None
    if name == "dilations" and all(item == 1 for item in attribute.value):
        return None
    default = _default(before.attributes.get(name))
    if default is None or default.value != attribute.value:
        return f"its attribute '{name}' is {attribute.value!r}"
    return None


def _default(entry: Any) -> ir.Attr | None:
    if entry is None or not entry.default_value.type:
        return None
    return ir.serde.deserialize_attribute(entry.default_value)


def _changed_defaults(node: ir.Node, before: Any, after: Any) -> dict[str, ir.Attr]:
    """Attributes that are absent, and would mean something else in the other version."""
    kept, others = {}, after.attributes
    for name, entry in before.attributes.items():
        if name not in others or name in node.attributes:
            continue
        default, new = _default(entry), _default(others[name])
        if default is not None and (new is None or new.value != default.value):
            kept[name] = default
    return kept


def _resize(node: ir.Node, step: VersionStep, after: Any) -> str | None:
    """Drop unused inputs and outputs at the end; why the others do not fit, if so."""
    reason = _wrong_inputs(node, after)
    if reason:
        return f"{reason}; opset {step.opset} takes {after.min_input} to {after.max_input}"
    outputs = len(node.outputs)
    while outputs > after.max_output and not is_used(node.outputs[outputs - 1]):
        outputs -= 1
    if not after.min_output <= outputs <= after.max_output:
        return f"it has {outputs} outputs; opset {step.opset} gives {after.max_output}"
    if len(node.inputs) > after.max_input:
        node.resize_inputs(_given(node))
    if len(node.outputs) > after.max_output:
        node.resize_outputs(outputs)
    return None


def _given(node: ir.Node) -> int:
    """How many inputs there are without those left out at the end."""
    inputs = len(node.inputs)
    while inputs and node.inputs[inputs - 1] is None:
        inputs -= 1
    return inputs


def _wrong_inputs(node: ir.Node, wanted: Any) -> str | None:
    """Why the inputs are not those that a schema takes, if they are not."""
    inputs = _given(node)
    if not wanted.min_input <= inputs <= wanted.max_input:
        return f"it has {inputs} inputs"
    for index, entry in enumerate(wanted.inputs[:inputs]):
        if entry.option.name == "Single" and node.inputs[index] is None:
            return f"its input '{entry.name}' is left out"
    return None


def is_used(value: ir.Value) -> bool:
    """Whether anything reads a value."""
    return bool(value.uses()) or value.is_graph_output()


def wrong_type(node: ir.Node, step: VersionStep, facts: Facts) -> str | None:
    """Why the version that was reached does not take the types of a node's operands, if so.

    What the version before did not allow either is not held against this one.
    """
    before, after = schema(step.op_type, step.before), schema(step.op_type, step.opset)
    bound: dict[str, str] = {}
    for side, values in (("inputs", node.inputs), ("outputs", node.outputs)):
        formal, was = getattr(after, side), getattr(before, side)
        for index, value in enumerate(values if formal else ()):
            seen = None if value is None else _type_name(facts.of(value))
            if seen is None:
                continue
            entry = formal[min(index, len(formal) - 1)]
            old = was[min(index, len(was) - 1)] if was else None
            is_new = old is None or seen in _allowed(before, old.type_str)
            if is_new and seen not in _allowed(after, entry.type_str):
                return f"'{entry.name}' is a {seen}, which opset {step.opset} does not take"
            if entry.is_homogeneous and bound.setdefault(entry.type_str, seen) != seen:
                return (
                    f"'{entry.name}' is a {seen}; at opset {step.opset} it has to be a"
                    f" {bound[entry.type_str]}, as the other operands are"
                )
    return None


def _allowed(schema: Any, type_str: str) -> list[str]:
    constraints = {entry.type_param_str: entry for entry in schema.type_constraints}
    return constraints[type_str].allowed_type_strs if type_str in constraints else [type_str]


def _type_name(fact: Fact) -> str | None:
    """The type as the schemas write it; None if it is not known."""
    if isinstance(fact, Other):
        return _written(fact.type)
    if fact.element_type is None:
        return None
    kind = ir.TensorType(fact.element_type)
    return _written(ir.SequenceType(kind) if isinstance(fact, Sequence) else kind)


def _written(kind: Any) -> str | None:
    if isinstance(kind, ir.TensorType):
        return f"tensor({kind.dtype.name.lower()})"
    wrapper = {ir.SequenceType: "seq", ir.OptionalType: "optional"}.get(type(kind))
    inner = _written(kind.elem_type) if wrapper else None
    return f"{wrapper}({inner})" if inner else None
