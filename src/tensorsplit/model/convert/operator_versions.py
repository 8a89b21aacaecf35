"""ONNX's own schemas: the versions of an operator between two opsets, and what each allows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import onnx_ir as ir
from onnx import defs

from tensorsplit.core.errors import SplitError
from tensorsplit.model.graph.calls import Attributes
from tensorsplit.model.graph.nodes import is_used
from tensorsplit.model.graph.opsets import (
    existing_schema,
    is_defined,
    is_defined_by_types,
    schema_of,
)
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.validity.node_errors import not_taken, types_of, wrong_signature


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
def next_step(op_type: str, opset: int, target: int) -> VersionStep | None:
    """Return the next version on the way to the target; None if there is none in between."""
    up = target > opset
    for boundary in range(opset + 1, target + 1) if up else range(opset, target, -1):
        found = schema_of(op_type, boundary)
        if found is not None and found.since_version == boundary:
            return VersionStep(op_type, boundary, up)
    return None


def keeps_attributes(step: VersionStep, names: set[str]) -> bool:
    """Return whether a step is sure to keep the attributes of these names unchanged."""
    before, after = schema_of(step.op_type, step.before), schema_of(step.op_type, step.opset)
    if before is None or is_defined(before):
        return False  # its definition may replace it
    return after is not None and not after.deprecated and names <= after.attributes.keys()


def keeps_types(step: VersionStep) -> bool:
    """Return whether a step is sure to take operands of every type that was taken before."""
    before, after = schema_of(step.op_type, step.before), schema_of(step.op_type, step.opset)
    if before is None or after is None or is_defined_by_types(before):
        return False
    pairs = [*zip(before.inputs, after.inputs, strict=False)]
    pairs += zip(before.outputs, after.outputs, strict=False)
    return all(types_of(before, old) <= types_of(after, new) for old, new in pairs)


def fit(node: ir.Node, step: VersionStep) -> str | None:
    """Bring a node to the next version, if what changed does not concern what the node uses.

    Return None if it was; else the reason why not, and the attributes stay as they were.
    """
    before, after = schema_of(step.op_type, step.before), schema_of(step.op_type, step.opset)
    if before is None or after is None:
        return f"there is no {step.op_type} at opset {step.opset}"
    if after.deprecated:
        return f"{step.op_type} is deprecated at opset {step.opset}"
    held: dict[str, ir.Attr] = node.attributes.data
    known, defaults = after.attributes, _changed_defaults(step)
    for name in [name for name in held if name not in known]:
        reason = _not_default(node, name, before.attributes.get(name))
        if reason:
            return f"{reason}, which opset {step.opset} does not have"
    attributes = {name: attribute for name, attribute in held.items() if name in known}
    attributes |= {name: default for name, default in defaults.items() if name not in held}
    if len(node.inputs) > after.max_input:
        node.resize_inputs(_given(node))
    _drop_unused_outputs(node, after.max_output)
    error = _unfit(node, after, step.opset, attributes)
    if error is not None:
        return f"{error.problem}; {error.fix}"
    node.attributes.clear()
    node.attributes.update(attributes)
    return None


def _unfit(
    node: ir.Node, schema: defs.OpSchema, opset: int, attributes: Attributes
) -> SplitError | None:
    """Return why an opset does not allow a node, if so.

    Inputs left out at the end count only as far as the opset wants an entry for them.
    """
    inputs = node.inputs[: max(_given(node), schema.min_input)]
    outputs = [value.name for value in node.outputs]
    return next(wrong_signature(schema, opset, attributes, inputs, outputs), None)


def _not_default(node: ir.Node, name: str, before: defs.OpSchema.Attribute | None) -> str | None:
    """Return why leaving an attribute out would change the meaning, if it would."""
    attribute = node.attributes[name]
    if name == "consumed_inputs":  # a hint for memory planning that results do not depend on
        return None
    if name == "dilations" and all(item == 1 for item in attribute.value):
        return None
    default = default_of(before)
    if default is None or default.value != attribute.value:
        return f"its attribute '{name}' is {attribute.value!r}"
    return None


def default_of(entry: defs.OpSchema.Attribute | None) -> ir.Attr | None:
    """Return the default of an attribute of a schema; None if it has none."""
    if entry is None or not entry.default_value.type:
        return None
    return ir.serde.deserialize_attribute(entry.default_value)


@lru_cache(maxsize=1024)
def _changed_defaults(step: VersionStep) -> Mapping[str, ir.Attr]:
    """Return the attributes whose default changes with a step, each with the old default."""
    before, after = (existing_schema(step.op_type, each) for each in (step.before, step.opset))
    kept, others = {}, after.attributes
    for name, entry in before.attributes.items():
        if name not in others:
            continue
        default, new = default_of(entry), default_of(others[name])
        if default is not None and (new is None or new.value != default.value):
            kept[name] = default
    return kept


def _drop_unused_outputs(node: ir.Node, most: int) -> None:
    """Drop outputs at the end that a version does not have, if nothing reads them."""
    count = len(node.outputs)
    while count > most and not is_used(node.outputs[count - 1]):
        count -= 1
    if count < len(node.outputs):
        node.resize_outputs(count)


def _given(node: ir.Node) -> int:
    """Return how many inputs there are without those left out at the end."""
    inputs = len(node.inputs)
    while inputs and node.inputs[inputs - 1] is None:
        inputs -= 1
    return inputs


def wrong_type(node: ir.Node, step: VersionStep, facts: Facts) -> str | None:
    """Return why the version that was reached does not take the types of a node's operands, if so.

    What the version before did not allow either is not held against this one.
    """
    before, after = schema_of(step.op_type, step.before), existing_schema(step.op_type, step.opset)
    return next(not_taken(node, after, f"opset {step.opset}", facts.of, before), None)
