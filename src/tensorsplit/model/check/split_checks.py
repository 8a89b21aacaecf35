"""Split nodes one by one: what contradicts the model's declarations, and what is odd."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import TypeAlias

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
from tensorsplit.model.feeds import show_shape
from tensorsplit.model.graph.binding import bind
from tensorsplit.model.graph.facts import Fact, Other, Sequence, Tensor
from tensorsplit.model.graph.nodes import NodeRef, constant, record_of
from tensorsplit.model.infer.analysis import Facts, declared
from tensorsplit.model.infer.node_outputs import planned_outputs, split_outputs

Found: TypeAlias = Iterator[tuple[Check, str, str, str | None]]
"""What a rule finds: the check, what is wrong or odd, what would be right, and the parameter."""


@dataclass(frozen=True, slots=True)
class _Split:
    """A split node, and what is known of it.

    The plan is None if the rank, the axis or the lengths are not known, or are wrong.
    """

    ref: NodeRef
    operator: Operator
    intent: Intent
    plan: SplitPlan | UncountedPlan | None
    inputs: list[Fact]
    is_refused: bool

    @property
    def dim(self) -> Dim:
        """The dimension that is split; None if it is not known."""
        return None if self.plan is None else self.plan.input_shape[self.plan.axis]

    @property
    def parts(self) -> str:
        """What the version calls its outputs."""
        return self.operator.outputs[0].name

    def input(self, name: str | None) -> ir.Value | None:
        """The input of a name; None where it is absent, or an attribute."""
        pairs = zip(self.operator.inputs, self.ref.node.inputs, strict=False)
        return next((value for entry, value in pairs if entry.name == name), None)


def split_findings(ref: NodeRef, facts: Facts, *, is_refused: bool) -> Iterator[Finding]:
    """What is wrong or odd with a split node; the analysis has refused it, or has not."""
    node = ref.node
    try:
        operator = record_of(node, ref.opset)
    except SplitError:  # which the analysis has found
        return
    inputs = [facts.of(value) for value in node.inputs]
    data = inputs[0] if inputs else Other()
    intent, errors = None, list[SplitError]()
    try:
        for value in node.inputs[1:]:
            constant(value)  # the analysis takes one that can't be read for a run-time value
        intent = bind(node, ref.opset, inputs, None if ref.function else {})
    except SplitError as error:
        errors.append(error)
    errors += _data_errors(operator, intent, data)
    # Each call of a function gives such a node values of its own: the analysis checks those
    is_open = any(attribute.is_ref() for attribute in node.attributes.values())
    made = None if intent is None or is_open else _plan(intent, data, errors)
    for refusal in errors:
        yield of_error(refusal.located(operator=operator.id, node=ref.path))
    found = _dead_outputs(ref, operator)
    if intent is not None:
        split = _Split(ref, operator, intent, made, inputs, is_refused or bool(errors))
        found = (entry for rule in _RULES for entry in rule(split))
    for check, message, fix, parameter in found:
        yield of_check(check, ref.path, message, fix, operator=operator.id, parameter=parameter)


def shape_text(shape: Shape) -> str:
    """A shape for a message."""
    return show_shape([dim if dim is None else str(dim) for dim in shape])


def _data_errors(operator: Operator, intent: Intent | None, data: Fact) -> Iterator[SplitError]:
    """What is wrong with the data, whatever its shape and the lengths are."""
    parameter = operator.inputs[0]
    if isinstance(data, Sequence) or (isinstance(data, Other) and data.type is not None):
        problem = f"the data is {'a sequence' if isinstance(data, Sequence) else _fact_text(data)}"
        yield SplitError(NOT_AN_ARRAY, problem, "give a tensor", parameter=parameter.name)
    elif isinstance(data, Tensor) and data.element_type is not None:
        types = operator.types_of(parameter)
        allowed = intent.element_types if intent else None if types.any else types.element_types
        try:
            check_element_type(operator.id, data.element_type.name.lower(), allowed, parameter.name)
        except SplitError as error:
            yield error


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


def _contradictions(split: _Split) -> Found:
    """Where the declared types and shapes of the outputs contradict the split."""
    if split.is_refused:
        return
    ref, data = split.ref, split.inputs[0]
    if split.plan is not None and isinstance(data, Tensor):
        outputs = planned_outputs(split.plan, data, split.operator)
    else:
        attributes = None if ref.function else dict[str, object]()
        outputs = split_outputs(ref.node, split.inputs, ref.opset, attributes).facts
    fix = "correct the declaration, or leave it out"
    for value, fact in zip(ref.node.outputs, outputs, strict=False):
        said = declared(value)
        is_typed = isinstance(said, Tensor | Sequence)
        if (value.type is not None and not is_typed) or (is_typed and _other_type(said, fact)):
            problem = (
                f"'{value.name}' is declared as {_fact_text(said)}, but the node makes"
                f" {_fact_text(fact)}"
            )
            yield DECLARED_TYPE, problem, fix, split.parts
        elif problem := _other_shape(f"'{value.name}'", said, fact):
            yield DECLARED_SHAPE, problem, fix, split.parts


def _other_type(said: Fact, fact: Fact) -> bool:
    if type(said) is not type(fact):
        return True
    if not isinstance(said, Tensor | Sequence) or not isinstance(fact, Tensor | Sequence):
        return False
    known = (said.element_type, fact.element_type)
    return None not in known and said.element_type != fact.element_type


def _other_shape(name: str, said: Fact, fact: Fact) -> str:
    """What contradicts a declared shape; empty if nothing does."""
    made: tuple[Shape | None, ...]
    if isinstance(said, Tensor) and isinstance(fact, Tensor):
        what, shape, made = name, said.shape, (fact.shape,)
    elif isinstance(said, Sequence) and isinstance(fact, Sequence):
        what, shape, made = f"every tensor of {name}", said.part, fact.parts or (fact.part,)
    else:
        return ""
    for index, part in enumerate(made):
        if shape is not None and part is not None and _contradict(shape, part):
            of = f"tensor {index}" if isinstance(fact, Sequence) and fact.parts else "the part"
            return (
                f"{what} is declared with shape {shape_text(shape)}, but {of} has shape"
                f" {shape_text(part)}"
            )
    return ""


def _contradict(one: Shape, other: Shape) -> bool:
    """Whether two shapes can't be of one tensor: other ranks, or other numbers."""
    if len(one) != len(other):
        return True
    return any(is_known(a) and is_known(b) and a != b for a, b in zip(one, other, strict=True))


def _dead_outputs(ref: NodeRef, operator: Operator) -> Found:
    outputs = [value for value in ref.node.outputs if value.name]
    dead = [value for value in outputs if not value.uses() and not value.is_graph_output()]
    if not dead:
        return
    message, fix = "nobody uses what the node makes", "remove the node"
    if len(dead) < len(outputs):
        names = ", ".join(f"'{value.name}'" for value in dead[:8])
        more = ", ..." if len(dead) > 8 else ""
        message = f"nobody uses {len(dead)} of the {len(outputs)} parts: {names}{more}"
        fix = "use a Slice for the parts that are needed, if they are few"
    yield DEAD_OUTPUT, message, fix, operator.outputs[0].name


def _does_nothing(split: _Split) -> Found:
    if split.is_refused or not split.intent.keepdims:
        return
    if not split.operator.is_sequence:
        if split.intent.outputs == 1:
            fix = "use the data itself, and remove the node"
            yield DOES_NOTHING, "the one part is all of the data", fix, None
    elif isinstance(split.plan, SplitPlan) and len(split.plan.sizes) == 1:
        message = "the sequence has one tensor, which is all of the data"
        fix = "use the data, or SequenceConstruct where a sequence is needed"
        yield DOES_NOTHING, message, fix, None


def _negative_axis(split: _Split) -> Found:
    axis = split.intent.axis
    if axis is not None and axis < 0 and not split.operator.negative_axis:
        fix = f"give {split.plan.axis}" if split.plan else "count the axis from the front"
        yield NEGATIVE_AXIS, f"the axis is {axis}", fix, split.operator.axis


def _ignored_keepdims(split: _Split) -> Found:
    keepdims, source = split.operator.keepdims, split.intent.source
    attribute = split.ref.node.attributes.get(keepdims or "")
    if attribute is not None and attribute.value == 0 and source is not None:
        message = f"it is 0, but '{source}' is given, so that the axis stays"
        fix = f"leave {keepdims} out, or squeeze the parts if the axis is to go"
        yield IGNORED_KEEPDIMS, message, fix, keepdims


def _operands_that_change(split: _Split) -> Found:
    intent = split.intent
    value = split.input(split.operator.axis)
    if value is not None and intent.axis is None:
        message = f"'{value.name}' is known only at run time"
        fix = "give the axis as a constant if it is always the same"
        yield RUNTIME_LENGTHS, message, fix, split.operator.axis
    value = split.input(intent.source)
    if value is None or intent.given is not None:
        return
    if value.is_graph_input() and value.is_initializer():
        message = (
            f"'{value.name}' is an initializer and a graph input, so that other lengths can be fed"
        )
        fix = "take it off the graph's inputs if it is a constant"
        yield OVERRIDABLE_LENGTHS, message, fix, intent.source
    else:
        message = f"'{value.name}' is known only at run time"
        fix = "give the lengths as a constant if they are always the same"
        yield RUNTIME_LENGTHS, message, fix, intent.source


def _open_dimension(split: _Split) -> Found:
    intent = split.intent
    if not isinstance(split.plan, SplitPlan) or is_known(split.dim):
        return
    count = len(split.plan.sizes)
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
        name = "the dimension" if split.dim is None else f"the dimension {split.dim}"
        message = f"{name} on axis {split.plan.axis} is known only at run time, and {needs}"
        fix = "fix the dimension in the model's inputs if it never changes"
        yield OPEN_DIMENSION, message, fix, intent.source


def _empty_parts(split: _Split) -> Found:
    intent = split.intent
    if not isinstance(split.plan, SplitPlan) or split.operator.is_sequence:
        return
    axis, sizes = split.plan.axis, split.plan.sizes
    if split.dim == 0 and intent.rule in (equal, ceil):
        message = f"the dimension on axis {axis} is 0, so that every part is empty"
        fix = "give the lengths, which are all 0, if it is meant"
        yield EMPTY_DIMENSION, message, fix, intent.source
    elif split.dim != 0 and 0 in sizes:
        message = f"part {sizes.index(0)} has no elements on axis {axis}"
        yield EMPTY_PART, message, "leave it out if it is not meant", intent.source


def _length_or_chunk(split: _Split) -> Found:
    intent = split.intent
    if split.is_refused or intent.rule is not explicit or not split.operator.is_sequence:
        return
    if intent.given is not None and len(intent.given) == 1 and not is_known(split.dim):
        (length,) = intent.given
        message = f"[{length}] is the length of one part, and the dimension is not known"
        fix = f"give the scalar {length} for chunks of that length"
        yield LENGTH_OR_CHUNK, message, fix, intent.source


def _float_lengths(split: _Split) -> Found:
    source = split.intent.source
    value, parameter = split.input(source), split.operator.input(source or "")
    if value is None or parameter is None:
        return
    if "int64" not in split.operator.types_of(parameter).element_types:
        message = f"the lengths come from '{value.name}', whose elements are floats"
        fix = "give them as the attribute, or convert the model to opset 13 or newer"
        yield FLOAT_LENGTHS, message, fix, source


_RULES: tuple[Callable[[_Split], Found], ...] = (
    _contradictions,
    _negative_axis,
    _ignored_keepdims,
    _operands_that_change,
    _length_or_chunk,
    _float_lengths,
    _empty_parts,
    _open_dimension,
    _does_nothing,
    lambda split: _dead_outputs(split.ref, split.operator),
)
