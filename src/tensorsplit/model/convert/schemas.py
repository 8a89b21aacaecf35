"""ONNX's own schemas: which versions of an operator lie between two opsets, and what fits them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import onnx_ir as ir
from onnx import defs

from tensorsplit.core.errors import MALFORMED_MODEL, SplitError
from tensorsplit.model.convert.site import Site


@dataclass(frozen=True, slots=True)
class Step:
    """From one version of an operator to the next one, up or down.

    Attributes:
        op_type: The operator.
        boundary: The opset that introduced the newer one of the two.
        up: Whether it goes to the newer one.
    """

    op_type: str
    boundary: int
    up: bool

    @property
    def opset(self) -> int:
        """The opset that is reached."""
        return self.boundary if self.up else self.boundary - 1

    @property
    def before(self) -> int:
        """The opset next to it on the other side."""
        return self.boundary - 1 if self.up else self.boundary


@lru_cache(maxsize=1)
def _versions() -> Mapping[str, tuple[int, ...]]:
    found: dict[str, list[int]] = {}
    for entry in defs.get_all_schemas_with_history():
        if entry.domain == "":
            found.setdefault(entry.name, []).append(entry.since_version)
    return {name: tuple(sorted(versions)) for name, versions in found.items()}


def exists(op_type: str, opset: int) -> bool:
    """Whether ONNX's own domain has the operator at an opset."""
    versions = _versions().get(op_type)
    return versions is not None and versions[0] <= opset


@lru_cache(maxsize=4096)
def schema(op_type: str, opset: int) -> Any:
    """The schema in force; None if the operator does not exist there."""
    return defs.get_schema(op_type, opset, "") if exists(op_type, opset) else None


@lru_cache(maxsize=4096)
def next_step(op_type: str, opset: int, target: int) -> Step | None:
    """The next version on the way to the target; None if there is none in between."""
    versions = _versions()[op_type]
    if target > opset:
        ahead = [version for version in versions if opset < version <= target]
        return Step(op_type, ahead[0], True) if ahead else None
    behind = [version for version in versions if target < version <= opset]
    return Step(op_type, behind[-1], False) if behind else None


def check(site: Site) -> None:
    """Refuse a node that its own opset does not allow (TS502)."""
    own = schema(site.op_type, site.opset)
    for name, attribute in site.node.attributes.items():
        entry = own.attributes.get(name)
        if entry is None or entry.type.name != attribute.type.name:
            wanted = "no such attribute" if entry is None else f"one of type {entry.type.name}"
            raise _illegal(
                site, f"it has an attribute '{name}' of type {attribute.type.name}", wanted
            )
    for name, entry in own.attributes.items():
        if entry.required and name not in site.node.attributes:
            raise _illegal(site, f"it has no attribute '{name}'", "that one")
    reason = _misses(site, own)
    if reason:
        raise _illegal(site, reason, f"{own.min_input} to {own.max_input} inputs")
    if not own.min_output <= len(site.node.outputs) <= own.max_output:
        wanted = f"{own.min_output} to {own.max_output} outputs"
        raise _illegal(site, f"it has {len(site.node.outputs)} outputs", wanted)


def _illegal(site: Site, problem: str, wanted: str) -> SplitError:
    return SplitError(
        MALFORMED_MODEL,
        problem,
        f"at opset {site.opset} it has {wanted}",
        operator=f"ai.onnx.{site.op_type}",
        node=site.path,
    )


def fit(site: Site, step: Step) -> str | None:
    """Bring a node to the next version, where nothing but what it leaves out has changed.

    Returns:
        None if it is done; else why it can't be, and the node is as it was.
    """
    before, after = schema(step.op_type, step.before), schema(step.op_type, step.opset)
    if after is None:
        return f"there is no {step.op_type} at opset {step.opset}"
    if after.deprecated:
        return f"{step.op_type} is deprecated at opset {step.opset}"
    dropped = [name for name in site.node.attributes if name not in after.attributes]
    for name in dropped:
        reason = _not_default(site, name, before)
        if reason:
            return f"{reason}, which opset {step.opset} does not have"
    reason = _arity(site, after)
    if reason:
        return reason
    kept = _changed_defaults(site, before, after)
    missing = [
        name
        for name, entry in after.attributes.items()
        if entry.required and name not in site.node.attributes and name not in kept
    ]
    if missing:
        return f"opset {step.opset} needs the attribute '{missing[0]}'"
    for name in dropped:
        del site.node.attributes[name]
    site.node.attributes.update(kept)
    return None


def _not_default(site: Site, name: str, before: Any) -> str | None:
    """Whether an attribute says more than its absence."""
    attribute = site.node.attributes[name]
    if attribute.is_ref():
        return f"its attribute '{name}' is given by the function"
    entry = before.attributes.get(name)
    if name == "consumed_inputs":  # a hint for memory planning that results do not depend on
        return None
    if name == "dilations" and all(item == 1 for item in attribute.value):
        return None
    default = None if entry is None else _default(entry)
    if default is None or default.value != attribute.value:
        return f"its attribute '{name}' is {attribute.value!r}"
    return None


def _default(entry: Any) -> ir.Attr | None:
    proto = entry.default_value
    return ir.serde.deserialize_attribute(proto) if proto.type else None


def _changed_defaults(site: Site, before: Any, after: Any) -> dict[str, ir.Attr]:
    """Attributes that are absent, and would mean something else in the other version."""
    kept = {}
    for name, entry in before.attributes.items():
        other = after.attributes.get(name)
        if other is None or name in site.node.attributes:
            continue
        default, new = _default(entry), _default(other)
        if default is not None and (new is None or new.value != default.value):
            kept[name] = default
    return kept


def _arity(site: Site, after: Any) -> str | None:
    """Cut off inputs and outputs that are not used; why the others do not fit, if so."""
    node = site.node
    reason = _misses(site, after)
    if reason:
        return f"{reason}, and takes {after.min_input} to {after.max_input} there"
    inputs = _given(node)
    outputs = len(node.outputs)
    while outputs > after.max_output and _is_unused(node.outputs[outputs - 1]):
        outputs -= 1
    if not after.min_output <= outputs <= after.max_output:
        return f"it has {outputs} outputs, and {after.max_output} there"
    if inputs < len(node.inputs) and len(node.inputs) > after.max_input:
        node.resize_inputs(inputs)
    if len(node.outputs) > after.max_output:
        node.resize_outputs(outputs)
    return None


def _given(node: ir.Node) -> int:
    """How many inputs there are without those left out at the end."""
    inputs = len(node.inputs)
    while inputs and node.inputs[inputs - 1] is None:
        inputs -= 1
    return inputs


def _misses(site: Site, wanted: Any) -> str | None:
    """Why the inputs are not those that a schema takes, if they are not."""
    inputs = _given(site.node)
    if not wanted.min_input <= inputs <= wanted.max_input:
        return f"it has {inputs} inputs"
    for index, entry in enumerate(wanted.inputs[:inputs]):
        if entry.option.name == "Single" and site.node.inputs[index] is None:
            return f"its input '{entry.name}' is left out"
    return None


def _is_unused(value: ir.Value) -> bool:
    return not value.uses() and not value.is_graph_output()
