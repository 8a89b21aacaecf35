"""Split nodes one by one: every refusal, what contradicts the model's declarations, what is odd."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import onnx_ir as ir

from tensorsplit.core.dimensions import Dim, Shape, add, combine, is_known
from tensorsplit.core.errors import NOT_AN_ARRAY, UNKNOWN_COUNT, SplitError
from tensorsplit.core.plan import SplitPlan, UncountedPlan
from tensorsplit.core.resolve import Intent, check_element_type, part_sizes, plan
from tensorsplit.core.rules import ceil, equal, explicit
from tensorsplit.core.schema import Operator
from tensorsplit.model.check.checks import (
    DEAD_OUTPUT,
    DECLARED_SHAPE,
    DECLARED_TYPE,
    DOES_NOTHING,
    EMPTY_DIMENSION,
    EMPTY_PART,
    FLOAT_LENGTHS,
    IGNORED_KEEPDIMS,
    LENGTH_OR_CHUNK,
    NEGATIVE_AXIS,
    OPEN_DIMENSION,
    OVERRIDABLE_LENGTHS,
    RUNTIME_LENGTHS,
    Check,
)
from tensorsplit.model.check.findings import Finding, of_check, of_error
from tensorsplit.model.graph.binding import bind
from tensorsplit.model.graph.facts import Fact, Other, Sequence, Tensor
from tensorsplit.model.graph.nodes import NodeRef, constant, record_of
from tensorsplit.model.graph.reading import show_shape
from tensorsplit.model.infer.analysis import Facts, declared
from tensorsplit.model.infer.node_outputs import planned_outputs, split_outputs


@dataclass(frozen=True, slots=True)
class ExaminedSplit:
    """A split node, and what is known of it.

    Attributes:
        ref: The node.
        operator: The version in force; None if there is none.
        intent: What the node asks for; None if that can't be told.
        plan: The plan; None if the rank, the axis or the lengths are not known, or are wrong.
        data: What is known of the data.
        errors: The refusals.
    """

    ref: NodeRef
    operator: Operator | None
    intent: Intent | None
    plan: SplitPlan | UncountedPlan | None
    data: Fact
    errors: tuple[SplitError, ...]

    @property
    def dim(self) -> Dim:
        """The dimension that is split; None if it is not known."""
        return None if self.plan is None else self.plan.input_shape[self.plan.axis]

    def input(self, name: str | None) -> ir.Value | None:
        """The input of a name; None where it is absent, or an attribute."""
        parameters = self.operator.inputs if self.operator else ()
        pairs = zip(parameters, self.ref.node.inputs, strict=False)
        return next((value for entry, value in pairs if entry.name == name), None)

    @property
    def parts(self) -> str | None:
        """What the version calls its outputs."""
        return self.operator.outputs[0].name if self.operator else None

    def found(
        self, check: Check, message: str, fix: str = "", parameter: str | None = None
    ) -> Finding:
        """A finding of the node."""
        operator = self.operator.id if self.operator else None
        return of_check(check, self.ref.path, message, fix, operator=operator, parameter=parameter)


def examine_split(ref: NodeRef, facts: Facts) -> ExaminedSplit:
    """Look at a split node.

    Args:
        ref: The node.
        facts: What is known of the values of the model.
    """
    node, errors = ref.node, list[SplitError]()
    inputs = [facts.of(value) for value in node.inputs]
    data = inputs[0] if inputs else Other()
    operator, intent, made = None, None, None
    try:
        operator = record_of(node, ref.opset)
        for value in node.inputs[1:]:
            constant(value)  # the analysis takes one that can't be read for a run-time value
        intent = bind(node, ref.opset, inputs, None if ref.function else {})
    except SplitError as error:
        errors.append(error)
    if operator is not None:
        errors += _data_errors(operator, intent, data)
    if intent is not None and not _has_open_attribute(ref):
        made = _plan(intent, data, errors)
    for refusal in errors:
        refusal.located(operator=operator.id if operator else None, node=ref.path)
    return ExaminedSplit(ref, operator, intent, made, data, tuple(errors))


def split_findings(split: ExaminedSplit, facts: Facts) -> Iterator[Finding]:
    """What is wrong or odd with a split node.

    Args:
        split: The node.
        facts: What is known of the values of the model.
    """
    yield from map(of_error, split.errors)
    if split.intent is not None:
        if not split.errors:
            yield from _contradictions(split, split.intent, facts)
        for rule in _RULES:
            yield from rule(split, split.intent)
    yield from _dead_outputs(split)


def shape_text(shape: Shape) -> str:
    """A shape for a message."""
    return show_shape([dim if dim is None else str(dim) for dim in shape])


def _has_open_attribute(ref: NodeRef) -> bool:
    """Whether each call of a function gives the node its own values: the analysis checks those."""
    return any(attribute.is_ref() for attribute in ref.node.attributes.values())


def _data_errors(operator: Operator, intent: Intent | None, data: Fact) -> list[SplitError]:
    """What is wrong with the data, whatever its shape and the lengths are."""
    parameter = operator.inputs[0]
    if isinstance(data, Sequence) or (isinstance(data, Other) and data.type is not None):
        problem = f"the data is {'a sequence' if isinstance(data, Sequence) else _fact_text(data)}"
        return [SplitError(NOT_AN_ARRAY, problem, "give a tensor", parameter=parameter.name)]
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


def _fact_text(fact: Fact) -> str:
    """What is known of a value, for a message."""
    match fact:
        case Tensor(element_type, shape):
            kind = "a tensor"
        case Sequence(element_type, shape):
            kind = "a sequence of tensors"
        case _:
            return f"of type {fact.type}"
    of_type = "" if element_type is None else f" of {element_type.name.lower()}"
    of_shape = "" if shape is None else f" of shape {shape_text(shape)}"
    return f"{kind}{of_type}{of_shape}"


def _contradictions(split: ExaminedSplit, intent: Intent, facts: Facts) -> Iterator[Finding]:
    """Where the declared types and shapes of the outputs contradict the split."""
    node = split.ref.node
    if split.plan is not None and isinstance(split.data, Tensor):
        outputs = planned_outputs(split.plan, split.data, intent.operator)
    else:
        inputs = [facts.of(value) for value in node.inputs]
        attributes: dict[str, Any] | None = None if split.ref.function else {}
        outputs = split_outputs(node, inputs, split.ref.opset, attributes).facts
    for value, fact in zip(node.outputs, outputs, strict=False):
        said = declared(value)
        is_typed = isinstance(said, Tensor | Sequence)
        if (value.type is not None and not is_typed) or (is_typed and _other_type(said, fact)):
            yield split.found(
                DECLARED_TYPE,
                f"'{value.name}' is declared as {_fact_text(said)}, but the node makes"
                f" {_fact_text(fact)}",
                "correct the declaration, or leave it out",
                split.parts,
            )
        elif isinstance(said, Tensor):
            yield from _other_shape(split, f"'{value.name}'", said.shape, fact)
        elif isinstance(said, Sequence):
            yield from _other_shape(split, f"every tensor of '{value.name}'", said.part, fact)


def _other_type(said: Fact, fact: Fact) -> bool:
    if type(said) is not type(fact):
        return True
    if not isinstance(said, Tensor | Sequence) or not isinstance(fact, Tensor | Sequence):
        return False
    known = (said.element_type, fact.element_type)
    return None not in known and said.element_type != fact.element_type


def _other_shape(
    split: ExaminedSplit, what: str, said: Shape | None, fact: Fact
) -> Iterator[Finding]:
    made: tuple[Shape | None, ...] = ()
    if isinstance(fact, Tensor):
        made = (fact.shape,)
    elif isinstance(fact, Sequence):
        made = fact.parts or (fact.part,)
    for index, shape in enumerate(made):
        if said is None or shape is None or not _contradict(said, shape):
            continue
        of = f"tensor {index}" if isinstance(fact, Sequence) and fact.parts else "the part"
        yield split.found(
            DECLARED_SHAPE,
            f"{what} is declared with shape {shape_text(said)}, but {of} has shape"
            f" {shape_text(shape)}",
            "correct the declaration, or leave it out",
            split.parts,
        )
        return


def _contradict(one: Shape, other: Shape) -> bool:
    """Whether two shapes can't be of one tensor: other ranks, or other numbers."""
    if len(one) != len(other):
        return True
    return any(is_known(a) and is_known(b) and a != b for a, b in zip(one, other, strict=True))


def _dead_outputs(split: ExaminedSplit) -> Iterator[Finding]:
    outputs = [value for value in split.ref.node.outputs if value.name]
    dead = [value for value in outputs if not value.uses() and not value.is_graph_output()]
    if not dead or split.operator is None:
        return
    if len(dead) == len(outputs):
        message, fix = "nobody uses what the node makes", "remove the node"
    else:
        names = ", ".join(f"'{value.name}'" for value in dead[:8])
        more = ", ..." if len(dead) > 8 else ""
        message = f"nobody uses {len(dead)} of the {len(outputs)} parts: {names}{more}"
        fix = "use a Slice for the parts that are needed, if they are few"
    yield split.found(DEAD_OUTPUT, message, fix, split.parts)


def _does_nothing(split: ExaminedSplit, intent: Intent) -> Iterator[Finding]:
    if split.errors or not intent.keepdims:
        return
    if not intent.operator.is_sequence:
        if intent.outputs == 1:
            yield split.found(
                DOES_NOTHING,
                "the one part is all of the data",
                "use the data itself, and remove the node",
            )
    elif isinstance(split.plan, SplitPlan) and len(split.plan.sizes) == 1:
        yield split.found(
            DOES_NOTHING,
            "the sequence has one tensor, which is all of the data",
            "use the data, or SequenceConstruct where a sequence is needed",
        )


def _negative_axis(split: ExaminedSplit, intent: Intent) -> Iterator[Finding]:
    if intent.axis is not None and intent.axis < 0 and not intent.operator.negative_axis:
        fix = f"give {split.plan.axis}" if split.plan else "count the axis from the front"
        yield split.found(NEGATIVE_AXIS, f"the axis is {intent.axis}", fix, intent.operator.axis)


def _ignored_keepdims(split: ExaminedSplit, intent: Intent) -> Iterator[Finding]:
    keepdims = intent.operator.keepdims
    attribute = split.ref.node.attributes.get(keepdims or "")
    if attribute is not None and attribute.value == 0 and intent.source is not None:
        yield split.found(
            IGNORED_KEEPDIMS,
            f"it is 0, but '{intent.source}' is given, so that the axis stays",
            f"leave {keepdims} out, or squeeze the parts if the axis is to go",
            keepdims,
        )


def _axis_that_changes(split: ExaminedSplit, intent: Intent) -> Iterator[Finding]:
    value = split.input(intent.operator.axis)
    if value is not None and intent.axis is None:
        yield split.found(
            RUNTIME_LENGTHS,
            f"'{value.name}' is known only at run time",
            "give the axis as a constant if it is always the same",
            intent.operator.axis,
        )


def _lengths_that_change(split: ExaminedSplit, intent: Intent) -> Iterator[Finding]:
    value = split.input(intent.source)
    if value is None or intent.given is not None:
        return
    if value.is_graph_input() and value.is_initializer():
        yield split.found(
            OVERRIDABLE_LENGTHS,
            f"'{value.name}' is an initializer and a graph input, so that other lengths can be fed",
            "take it off the graph's inputs if it is a constant",
            intent.source,
        )
    else:
        yield split.found(
            RUNTIME_LENGTHS,
            f"'{value.name}' is known only at run time",
            "give the lengths as a constant if they are always the same",
            intent.source,
        )


def _open_dimension(split: ExaminedSplit, intent: Intent) -> Iterator[Finding]:
    if not isinstance(split.plan, SplitPlan) or is_known(split.dim):
        return
    count = len(split.plan.sizes)
    name = "the dimension" if split.dim is None else f"the dimension {split.dim}"
    needs = ""
    if intent.rule is explicit and intent.given is not None:
        total: Dim = reduce(add, intent.given, 0)
        if total is not None and combine(lambda a, b: a - b, total, split.dim) != 0:
            needs = f"it must be {total}, which the lengths sum to"
    elif intent.rule is equal and count > 1:
        needs = f"it must be a multiple of {count}"
    elif intent.rule is ceil and count > 2:
        needs = f"{count} parts do not fit every length, such as 1"
    if needs:
        yield split.found(
            OPEN_DIMENSION,
            f"{name} on axis {split.plan.axis} is known only at run time, and {needs}",
            "fix the dimension in the model's inputs if it never changes",
            intent.source,
        )


def _empty_parts(split: ExaminedSplit, intent: Intent) -> Iterator[Finding]:
    if not isinstance(split.plan, SplitPlan) or intent.operator.is_sequence:
        return
    axis, sizes = split.plan.axis, split.plan.sizes
    if split.dim == 0 and intent.rule in (equal, ceil):
        yield split.found(
            EMPTY_DIMENSION,
            f"the dimension on axis {axis} is 0, so that every part is empty",
            "give the lengths, which are all 0, if it is meant",
            intent.source,
        )
    elif split.dim != 0 and 0 in sizes:
        yield split.found(
            EMPTY_PART,
            f"part {sizes.index(0)} has no elements on axis {axis}",
            "leave it out if it is not meant",
            intent.source,
        )


def _length_or_chunk(split: ExaminedSplit, intent: Intent) -> Iterator[Finding]:
    if split.errors or intent.rule is not explicit or not intent.operator.is_sequence:
        return
    if intent.given is not None and len(intent.given) == 1 and not is_known(split.dim):
        (length,) = intent.given
        yield split.found(
            LENGTH_OR_CHUNK,
            f"[{length}] is the length of one part, and the dimension is not known",
            f"give the scalar {length} for chunks of that length",
            intent.source,
        )


def _float_lengths(split: ExaminedSplit, intent: Intent) -> Iterator[Finding]:
    value, parameter = split.input(intent.source), intent.operator.input(intent.source or "")
    if value is None or parameter is None:
        return
    if "int64" not in intent.operator.types_of(parameter).element_types:
        yield split.found(
            FLOAT_LENGTHS,
            f"the lengths come from '{value.name}', whose elements are floats",
            "give them as the attribute, or convert the model to opset 13 or newer",
            intent.source,
        )


_RULES: tuple[Callable[[ExaminedSplit, Intent], Iterator[Finding]], ...] = (
    _negative_axis,
    _ignored_keepdims,
    _axis_that_changes,
    _lengths_that_change,
    _length_or_chunk,
    _float_lengths,
    _empty_parts,
    _open_dimension,
    _does_nothing,
)
