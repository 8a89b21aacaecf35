"""Split nodes before they run: their intent, their plan, and facts about their outputs."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TypeVar

import onnx_ir as ir

from tensorsplit.core.dimensions import Dim, Shape, are_known, is_known, show_shape
from tensorsplit.core.errors import NOT_AN_ARRAY, UNKNOWN_COUNT, SplitError, show
from tensorsplit.core.plan import SplitPlan, UncountedPlan
from tensorsplit.core.resolve import MANY_PARTS, Intent, check_element_type, part_sizes, plan
from tensorsplit.core.rules import explicit
from tensorsplit.core.schema import Operator
from tensorsplit.model.graph.binding import bind
from tensorsplit.model.graph.calls import Attributes
from tensorsplit.model.graph.checked_lengths import INPUTS_WITH_LENGTHS, lengths_before_check
from tensorsplit.model.graph.facts import (
    MAX_LISTED_PARTS,
    UNKNOWN,
    Fact,
    Other,
    SequenceFact,
    Tensor,
    as_tensor,
    of_parts,
)
from tensorsplit.model.graph.split_records import record_of
from tensorsplit.model.infer.node_outputs import query_of
from tensorsplit.model.openvino_ir import LAYER_VERSION

_T = TypeVar("_T")


@dataclass(slots=True)
class KnownSplit:
    """The knowledge about a split node.

    Attributes:
        operator: The version; None if there is none at the opset.
        intent: What it asks for; None if that is wrong. See `require_intent`.
        plan: None if something is wrong, or missing.
        missing: What would have to be known for a plan.
        outputs: A fact for each output; empty if something is wrong.
        errors: What is wrong (TS101 to TS309, TS502).
    """

    operator: Operator | None = None
    intent: Intent | None = None
    plan: SplitPlan | UncountedPlan | None = None
    missing: str = ""
    outputs: list[Fact] = field(default_factory=list)
    errors: list[SplitError] = field(default_factory=list)

    def attempt(self, step: Callable[[], _T]) -> _T | None:
        """Return the result of a step; None where it refuses, which is noted."""
        try:
            return step()
        except SplitError as error:
            operator = None if self.operator is None else self.operator.id
            self.errors.append(error.located(operator=operator))
            return None

    def require_intent(self) -> Intent:
        """Return the intent; if the node is wrong, raise the first error."""
        if self.intent is None:
            raise self.errors[0]
        return self.intent

    @property
    def is_decided(self) -> bool:
        """Whether it is sure not to fail."""
        if self.errors or self.plan is None:
            return False
        fact = self.outputs[0]
        is_typed = not isinstance(fact, Other) and fact.element_type is not None
        lengths = self.plan.sizes if isinstance(self.plan, SplitPlan) else (self.plan.count,)
        return is_typed and are_known((self.plan.input_shape[self.plan.axis], *lengths))


def alike_of(
    node: ir.Node, opset: int, inputs: list[Fact], attributes: Attributes
) -> Hashable | None:
    """Return a key that is equal for split nodes about which the same is known, if right.

    None where attributes are not known. The arguments are those of `split_of`.
    """
    query = query_of(node, inputs, attributes)
    return None if query is None else (query, opset, node.metadata_props.get(LAYER_VERSION))


def split_of(
    node: ir.Node, opset: int, inputs: list[Fact], attributes: Attributes | None = None
) -> KnownSplit:
    """Return what is known about a split node, with arguments as for `binding.bind`."""
    found = KnownSplit()
    operator = found.operator = found.attempt(lambda: record_of(node, opset))
    if operator is None:
        return found
    data = inputs[0] if inputs else UNKNOWN
    intent = found.intent = found.attempt(lambda: bind(node, opset, inputs, attributes))
    found.attempt(lambda: _check_data(operator, intent, data))
    if intent is None:
        return found
    tensor = as_tensor(data)
    keepdims = (node.attributes if attributes is None else attributes).get(operator.keepdims or "")
    is_open = keepdims is not None and keepdims.is_ref() and intent.source is None
    if is_open:
        found.missing = f"each call of the function gives {operator.keepdims}"
    elif tensor.shape is None and node.inputs[0] is not None:
        found.missing = f"the shape of the data {show(node.inputs[0].name)} is not known"
    found.attempt(lambda: _plan(found, intent, tensor))
    if found.errors:
        return found
    if found.plan is None:
        found.outputs = _open(intent, tensor, inputs, is_open=is_open)
    else:
        found.outputs = _planned(found.plan, tensor, intent)
    return found


def length_of_axis(intent: Intent, data: Tensor) -> Dim:
    """Return the length of the axis, where it is known, as of any axis if all are of one length."""
    shape, axis = data.shape or (), intent.axis
    if axis is None:
        return shape[0] if len(set(shape)) == 1 else None
    return None if not -len(shape) <= axis < len(shape) else shape[axis]


def before_check(
    node: ir.Node, intent: Intent | None, inputs: list[Fact], of: Callable[[ir.Value], Fact]
) -> list[Fact] | None:
    """Return the inputs of a split layer with what is known of its lengths before their check.

    A check passes on all lengths but -1 as they are, or stops the model. None if nothing is known.
    """
    if intent is None or len(inputs) < INPUTS_WITH_LENGTHS:
        return None
    data, axis, lengths = map(as_tensor, inputs)
    if lengths.values is not None:
        return None
    given = lengths_before_check(intent, node, axis.element_type, length_of_axis(intent, data))
    values = None if given is None else as_tensor(of(given)).values
    if values is None:
        return None
    kept = [entry if is_known(entry) and entry >= 0 else None for entry in values]
    kept += [0] * (len(node.outputs) - len(kept))  # a part of length 0 that keeps the check
    return [*inputs[:-1], Tensor(ir.DataType.INT64, (len(kept),), tuple(kept))]


def _check_data(operator: Operator, intent: Intent | None, data: Fact) -> None:
    """Refuse data that is wrong whatever its shape and the lengths are."""
    parameter = operator.inputs[0]
    if isinstance(data, Tensor) and data.element_type is not None:
        types = operator.types_of(parameter)
        allowed = intent.element_types if intent else None if types.any else types.element_types
        check_element_type(operator.id, data.element_type.name.lower(), allowed, parameter.name)
    elif isinstance(data, SequenceFact) or (isinstance(data, Other) and data.type is not None):
        problem = (
            f"the data is {'a sequence' if isinstance(data, SequenceFact) else fact_text(data)}"
        )
        raise SplitError(NOT_AN_ARRAY, problem, "give a tensor", parameter=parameter.name)


def _plan(found: KnownSplit, intent: Intent, data: Tensor) -> None:
    """Find the plan, or what is missing; lengths that fit no dimension are refused without one."""
    try:
        if data.shape is None or found.missing:
            part_sizes(intent, None)
        else:
            found.plan = plan(intent, data.shape, MANY_PARTS)
    except SplitError as error:
        if error.kind is not UNKNOWN_COUNT:
            raise
        found.missing = found.missing or error.problem


def _planned(made: SplitPlan | UncountedPlan, data: Tensor, intent: Intent) -> list[Fact]:
    if isinstance(made, UncountedPlan):
        return [SequenceFact(data.element_type, made.part_shape, made.count)]
    if intent.operator.is_sequence:
        before, after = made.input_shape[: made.axis], made.input_shape[made.axis + 1 :]
        length = intent.given[0] if intent.given else 1  # of each part, if there are none
        part = (*before, length, *after) if made.keepdims else before + after
        count = len(made.sizes)
        if count > MAX_LISTED_PARTS:
            made = replace(made, sizes=tuple(dict.fromkeys(made.sizes)))
        return [of_parts(data.element_type, made.output_shapes, part, count)]
    values: list[tuple[Dim, ...] | None] = [None] * len(made.sizes)
    if data.values is not None and len(made.input_shape) == 1 and are_known(made.sizes):
        pairs = zip(made.sizes, accumulate(made.sizes), strict=True)
        values = [data.values[end - size : end] for size, end in pairs]
    return [
        Tensor(data.element_type, shape, part)
        for shape, part in zip(made.output_shapes, values, strict=True)
    ]


def _open(intent: Intent, data: Tensor, inputs: list[Fact], *, is_open: bool) -> list[Fact]:
    """Return the outputs without a plan: all but the length on the axis, if the axis is known."""
    part: Shape | None = None
    if data.shape is not None and not is_open:
        rank = len(data.shape)
        part = (None,) * (rank if intent.keepdims else rank - 1)
        if intent.axis is not None:
            axis = intent.axis % rank
            part = (*data.shape[:axis], None, *data.shape[axis + 1 :])
    if not intent.operator.is_sequence:
        return [Tensor(data.element_type, part)] * (intent.outputs or 0)
    lengths = as_tensor(inputs[1] if len(inputs) > 1 else None).shape
    count: Dim = None
    if intent.rule is explicit and intent.given is not None:
        count = len(intent.given)
    elif lengths is not None and len(lengths) == 1:
        count = lengths[0]
    return [SequenceFact(data.element_type, part, count)]


def fact_text(fact: Fact) -> str:
    """Return a fact in words, for a message."""
    if isinstance(fact, Other):
        return f"of type {fact.type}"
    kind, shape = "a tensor", fact.shape if isinstance(fact, Tensor) else fact.part
    if isinstance(fact, SequenceFact):
        kind = "a sequence of tensors"
    of_type = "" if fact.element_type is None else f" of {fact.element_type.name.lower()}"
    of_shape = "" if shape is None else f" of shape {show_shape(shape)}"
    return f"{kind}{of_type}{of_shape}"
