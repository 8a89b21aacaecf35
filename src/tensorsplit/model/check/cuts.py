"""Split nodes of an ONNX model, one by one: every refusal, and the plan if there is one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import onnx_ir as ir

from tensorsplit.core.dimensions import Dim, Shape
from tensorsplit.core.errors import NOT_AN_ARRAY, UNKNOWN_COUNT, SplitError
from tensorsplit.core.plan import SplitPlan, UncountedPlan
from tensorsplit.core.records import in_force
from tensorsplit.core.resolve import Intent, check_element_type, part_sizes, plan
from tensorsplit.core.schema import Operator
from tensorsplit.model.graph.binding import bind
from tensorsplit.model.graph.facts import Fact, Other, Sequence, Tensor
from tensorsplit.model.graph.nodes import VENDOR_SPLIT, NodeRef, constant, is_vendor_split
from tensorsplit.model.graph.reading import show_shape
from tensorsplit.model.infer.analysis import Facts


@dataclass(frozen=True, slots=True)
class Cut:
    """A split node, and what is known of it.

    Attributes:
        place: The node.
        operator: The version in force; None if there is none.
        intent: What the node asks for; None if that can't be told.
        plan: The plan; None if the rank, the axis or the lengths are not known, or are wrong.
        data: What is known of the data.
        errors: The refusals.
    """

    place: NodeRef
    operator: Operator | None
    intent: Intent | None
    plan: SplitPlan | UncountedPlan | None
    data: Fact
    errors: tuple[SplitError, ...]

    @property
    def dim(self) -> Dim:
        """The dimension that is cut; None if it is not known."""
        return None if self.plan is None else self.plan.input_shape[self.plan.axis]

    @property
    def lengths(self) -> ir.Value | None:
        """The input that gives the lengths; None where an attribute or nothing does."""
        if self.intent is None or self.operator is None or self.intent.source is None:
            return None
        for parameter, value in zip(self.operator.inputs, self.place.node.inputs, strict=False):
            if parameter.name == self.intent.source:
                return value
        return None


def look_at(place: NodeRef, facts: Facts) -> Cut:
    """Look at a split node.

    Args:
        place: The node.
        facts: What is known of the values of the model.
    """
    node = place.node
    inputs = [facts.of(value) for value in node.inputs]
    data = inputs[0] if inputs else Other()
    if any(attribute.is_ref() for attribute in node.attributes.values()):
        # each call of the function gives its own values; the analysis of the calls refuses them
        return Cut(place, _in_force(place, []), None, None, data, ())
    errors: list[SplitError] = []
    operator, intent, made = _in_force(place, errors), None, None
    if operator is not None:
        try:
            for value in node.inputs[1:]:
                constant(value)  # the analysis takes one that can't be read for a run-time value
            intent = bind(node, place.opset, inputs, {})
        except SplitError as error:
            errors.append(error)
        errors += _data_errors(operator, intent, data)
        made = None if intent is None else _plan(intent, data, errors)
    for refusal in errors:
        refusal.located(operator=operator.id if operator else None, node=place.path)
    return Cut(place, operator, intent, made, data, tuple(errors))


def _in_force(place: NodeRef, errors: list[SplitError]) -> Operator | None:
    try:
        if is_vendor_split(place.node):
            return in_force(
                place.node.op_type, VENDOR_SPLIT.since_version, vendor=VENDOR_SPLIT.vendor
            )
        return in_force(place.node.op_type, place.opset)
    except SplitError as error:
        errors.append(error)
        return None


def _data_errors(operator: Operator, intent: Intent | None, data: Fact) -> list[SplitError]:
    """What is wrong with the data, whatever its shape and the lengths are."""
    parameter = operator.inputs[0]
    if isinstance(data, Sequence) or (isinstance(data, Other) and data.type is not None):
        kind = "a sequence" if isinstance(data, Sequence) else f"of type {data.type}"
        return [
            SplitError(
                NOT_AN_ARRAY, f"the data is {kind}", "give a tensor", parameter=parameter.name
            )
        ]
    if not isinstance(data, Tensor) or data.element_type is None:
        return []
    types = operator.types_of(parameter)
    allowed = intent.element_types if intent else None if types.any else types.element_types
    try:
        check_element_type(operator.id, data.element_type.name.lower(), allowed, parameter.name)
    except SplitError as error:
        return [error]
    return []


def _plan(intent: Intent, data: Fact, errors: list[SplitError]) -> SplitPlan | UncountedPlan | None:
    """The plan, where enough is known; what can be refused without a shape is refused as well."""
    try:
        if isinstance(data, Tensor) and data.shape is not None:
            return _plan_once(intent, data.shape)
        part_sizes(intent, None)
    except SplitError as error:
        if error.kind is not UNKNOWN_COUNT:
            errors.append(error)
    return None


@lru_cache(maxsize=1024)
def _plan_once(intent: Intent, shape: Shape) -> SplitPlan | UncountedPlan:
    """As `plan`; arithmetic with names is slow, and models repeat their splits."""
    return plan(intent, shape)


def shown(fact: Fact) -> str:
    """What is known of a value, for a message."""
    match fact:
        case Tensor(element_type, shape):
            kind = "a tensor"
        case Sequence(element_type, shape):
            kind = "a sequence of tensors"
        case _:
            return f"of type {fact.type}"
    of_type = "" if element_type is None else f" of {element_type.name.lower()}"
    of_shape = "" if shape is None else f" of shape {as_text(shape)}"
    return f"{kind}{of_type}{of_shape}"


def as_text(shape: Shape) -> str:
    """A shape for a message."""
    return show_shape([dim if dim is None else str(dim) for dim in shape])
