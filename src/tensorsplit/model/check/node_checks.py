"""Nodes one by one: what is odd with a split, and sequences whose tensors do not fit together."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import onnx_ir as ir

from tensorsplit.core.dimensions import (
    Dim,
    Shape,
    are_known,
    combine,
    is_known,
    show_dim,
    show_shape,
    sum_of,
)
from tensorsplit.core.errors import UNKNOWN_OPERATOR, Kind, SplitError
from tensorsplit.core.plan import SplitPlan, UncountedPlan
from tensorsplit.core.records import NEWEST_OPSET
from tensorsplit.core.resolve import Intent
from tensorsplit.core.rules import ceil, chunk, equal, explicit
from tensorsplit.core.schema import Operator
from tensorsplit.model.check import checks
from tensorsplit.model.check.findings import Finding, of_check, of_error
from tensorsplit.model.features.split_features import as_counted, takes_floats
from tensorsplit.model.graph.facts import (
    UNKNOWN,
    Fact,
    Other,
    SequenceFact,
    Tensor,
    as_tensor,
    declared,
)
from tensorsplit.model.graph.held_tensors import constant
from tensorsplit.model.graph.nodes import NodeRef, attribute_of
from tensorsplit.model.graph.opsets import is_unchanged
from tensorsplit.model.graph.split_records import is_onnx_split, is_split
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.infer.splits import fact_text
from tensorsplit.model.validity.node_errors import contradicting_types, wrong_operands

Found: TypeAlias = Iterator[tuple[Kind, str, str, str | None]]
"""What a rule finds: the check, what is wrong or odd, what would be right, and the parameter."""


@dataclass(frozen=True, slots=True)
class _Split:
    """A split node whose operands can be understood, and what is known of it."""

    ref: NodeRef
    operator: Operator
    intent: Intent
    plan: SplitPlan | UncountedPlan | None
    outputs: list[Fact]
    is_refused: bool

    @property
    def dim(self) -> Dim:
        """The dimension that is split; None if it is not known."""
        return None if self.plan is None else self.plan.input_shape[self.plan.axis]

    def input(self, name: str | None) -> ir.Value | None:
        """Return the input of a name; None where it is absent, or an attribute."""
        pairs = zip(self.operator.inputs, self.ref.node.inputs, strict=False)
        return next((value for entry, value in pairs if entry.name == name), None)


def findings_of(ref: NodeRef, facts: Facts, *, is_refused: bool) -> Iterator[Finding]:
    """Yield the findings on a node, other than the refusals of the analysis."""
    if is_split(ref.node):
        split = facts.split(ref)
        if split.operator is None:
            return
        operator, found = split.operator.id, _dead_outputs(ref, split.operator)
        if is_onnx_split(ref.node) and is_unchanged(ref.node.op_type, ref.opset):
            yield of_error(_newer_opset(ref, operator)).as_warning("onnx says: it did not change")
        try:
            for value in ref.node.inputs[1:]:
                constant(value)  # the analysis takes one that can't be read for a run-time value
        except SplitError as error:
            is_refused = True
            yield of_error(error.located(operator=operator, node=ref.path))
        if split.intent is not None:
            node = _Split(ref, split.operator, split.intent, split.plan, split.outputs, is_refused)
            found = (entry for rule in _RULES for entry in rule(node))
    else:
        operator, found = f"onnx.{ref.node.op_type}", _sequence_parts(ref, facts)
        if not is_refused:
            yield from _wrong_types(ref, facts)
    for check, message, fix, parameter in found:
        yield of_check(check, ref.path, message, fix, operator=operator, parameter=parameter)


def _wrong_types(ref: NodeRef, facts: Facts) -> Iterator[Finding]:
    """Yield the operands whose types the operator does not take, or else contradicting types."""
    operands = tuple(wrong_operands(ref, ref.schema, facts.of))
    for wrong in operands or contradicting_types(ref, facts.of):
        finding = of_error(wrong.located(node=ref.path))
        if operands and not ref.node.inputs:  # int64 Constants of opset 8, which PyTorch wrote
            finding = finding.as_warning("onnxruntime and OpenVINO run it")
        yield finding


def _newer_opset(ref: NodeRef, operator: str) -> SplitError:
    problem = f"opset {ref.opset} is newer than those known here, of which {NEWEST_OPSET} is last"
    fix = "update tensorsplit"
    return SplitError(UNKNOWN_OPERATOR, problem, fix, operator=operator, node=ref.path)


def _contradictions(split: _Split) -> Found:
    """Yield each declared type or shape of an output that contradicts the split."""
    if split.is_refused:
        return
    fix, parameter = "correct the declaration, or leave it out", split.operator.outputs[0].name
    for value, fact in zip(split.ref.node.outputs, split.outputs, strict=False):
        declaration = declared(value)
        if declaration == UNKNOWN:
            continue
        types = {
            known.element_type for known in (declaration, fact) if not isinstance(known, Other)
        }
        if type(declaration) is not type(fact) or len(types - {None}) > 1:
            made = f"but the node makes {fact_text(fact)}"
            problem = f"'{value.name}' is declared as {fact_text(declaration)}, {made}"
            yield checks.DECLARED_TYPE, problem, fix, parameter
        elif problem := _other_shape(f"'{value.name}'", declaration, fact):
            yield checks.DECLARED_SHAPE, problem, fix, parameter


def _other_shape(name: str, declaration: Fact, fact: Fact) -> str:
    """Describe the contradiction to a declared shape; return "" if there is none."""
    what, shape, made = name, None, tuple[Shape | None, ...]()
    if isinstance(declaration, Tensor) and isinstance(fact, Tensor):
        shape, made = declaration.shape, (fact.shape,)
    elif isinstance(declaration, SequenceFact) and isinstance(fact, SequenceFact):
        what, shape, made = f"every tensor of {name}", declaration.part, fact.parts or (fact.part,)
    for index, part in enumerate(made):
        if shape is not None and part is not None and not _fit(shape, part):
            of = f"tensor {index}" if isinstance(fact, SequenceFact) and fact.parts else "the part"
            return (
                f"{what} is declared with shape {show_shape(shape)}, but {of} has shape"
                f" {show_shape(part)}"
            )
    return ""


def _fit(one: Shape, other: Shape, but: int | None = None) -> bool:
    """Return whether two shapes have the same rank, and no different numbers but on one axis."""
    return len(one) == len(other) and all(
        axis == but or not are_known((a, b)) or a == b
        for axis, (a, b) in enumerate(zip(one, other, strict=True))
    )


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
    yield checks.DEAD_OUTPUT, message, fix, operator.outputs[0].name


def _does_nothing(split: _Split) -> Found:
    if split.is_refused or not split.intent.keepdims:
        return
    if not split.operator.is_sequence:
        if split.intent.outputs == 1:
            fix = "use the data itself, and remove the node"
            yield checks.DOES_NOTHING, "the one part is all of the data", fix, None
    elif isinstance(split.plan, SplitPlan) and len(split.plan.sizes) == 1:
        message = "the sequence has one tensor, which is all of the data"
        fix = "use the data, or SequenceConstruct where a sequence is needed"
        yield checks.DOES_NOTHING, message, fix, None


def _negative_axis(split: _Split) -> Found:
    axis = split.intent.axis
    if axis is not None and axis < 0 and not split.operator.negative_axis:
        fix = f"give {split.plan.axis}" if split.plan else "count the axis from the front"
        yield checks.NEGATIVE_AXIS, f"the axis is {axis}", fix, split.operator.axis


def _ignored_keepdims(split: _Split) -> Found:
    keepdims, source = split.operator.keepdims, split.intent.source
    attribute = split.ref.node.attributes.get(keepdims or "")
    if attribute is not None and attribute.value == 0 and source is not None:
        message = f"it is 0, but '{source}' is given, so that the axis stays"
        fix = f"leave {keepdims} out, or squeeze the parts if the axis should be dropped"
        if split.intent.rule is chunk and split.intent.given == (1,):
            fix = f"leave {keepdims} out; or '{source}', if the axis should be dropped"
        yield checks.IGNORED_KEEPDIMS, message, fix, keepdims


def _operands_that_change(split: _Split) -> Found:
    intent = split.intent
    value = split.input(split.operator.axis)
    if value is not None and intent.axis is None:
        message = f"'{value.name}' is known only at run time"
        fix = "give the axis as a constant if it is always the same"
        yield checks.RUNTIME_LENGTHS, message, fix, split.operator.axis
    value = split.input(intent.source)
    if value is None or intent.given is not None:
        return
    if value.is_graph_input() and value.is_initializer():
        message = (
            f"'{value.name}' is an initializer and a graph input, so that other lengths can be fed"
        )
        fix = "take it off the graph's inputs if it is a constant"
        yield checks.OVERRIDABLE_LENGTHS, message, fix, intent.source
    else:
        message = f"'{value.name}' is known only at run time"
        fix = "give the lengths as a constant if they are always the same"
        yield checks.RUNTIME_LENGTHS, message, fix, intent.source


def _open_dimension(split: _Split) -> Found:
    intent = split.intent
    if not isinstance(split.plan, SplitPlan) or is_known(split.dim):
        return
    count = len(split.plan.sizes)
    needs = ""
    if intent.rule is explicit and intent.given is not None:
        total = sum_of(intent.given)
        other = combine(operator.sub, total, split.dim)
        if other is None and not is_known(total):  # both may be the same, under no name
            return
        if other != 0:
            needs = f"it must be {show_dim(total)}, which the lengths sum to"
    elif intent.rule is equal and count > 1:
        needs = f"it must be a multiple of {count}"
    elif intent.rule is ceil and count > 2:
        needs = f"{count} parts do not fit every length, such as 1"
    if needs:
        name = "the dimension" if split.dim is None else f"the dimension {show_dim(split.dim)}"
        message = f"{name} on axis {split.plan.axis} is known only at run time, and {needs}"
        fix = "fix the dimension in the model's inputs if it never changes"
        if as_counted(split.ref, intent, split.plan) is not None:
            fix = (
                "fix the dimension in the model's inputs if it never changes, or check with"
                " --fix-traced if the lengths were traced at one size"
            )
        yield checks.OPEN_DIMENSION, message, fix, intent.source


def _empty_parts(split: _Split) -> Found:
    intent = split.intent
    if not isinstance(split.plan, SplitPlan) or split.operator.is_sequence:
        return
    axis, sizes = split.plan.axis, split.plan.sizes
    if split.dim == 0 and intent.rule in (equal, ceil):
        message = f"the dimension on axis {axis} is 0, so that every part is empty"
        fix = "give the lengths, which are all 0, if that is intended"
        yield checks.EMPTY_DIMENSION, message, fix, intent.source
    elif split.dim != 0 and 0 in sizes:
        message = f"part {sizes.index(0)} has no elements on axis {axis}"
        yield checks.EMPTY_PART, message, "leave it out if that is not intended", intent.source


def _length_or_chunk(split: _Split) -> Found:
    intent = split.intent
    if split.is_refused or intent.rule is not explicit or not split.operator.is_sequence:
        return
    if intent.given is None or len(intent.given) != 1 or is_known(split.dim):
        return
    (length,) = intent.given
    if is_known(length):  # others are computed, and no mistaken scalars
        message = f"[{length}] is the length of one part, and the dimension is not known"
        fix = f"give the scalar {length} for chunks of that length"
        yield checks.LENGTH_OR_CHUNK, message, fix, intent.source


def _float_lengths(split: _Split) -> Found:
    source = split.intent.source
    value = split.input(source)
    if value is not None and takes_floats(split.operator, source):
        message = f"the lengths come from '{value.name}', whose elements are floats"
        fix = "give them as the attribute, or convert the model to opset 13 or newer"
        if split.intent.given is None:  # they may not be whole: no other operator is sure to fit
            fix = "give the lengths as the attribute"
        yield checks.FLOAT_LENGTHS, message, fix, source


def has_fed_floats(ref: NodeRef, facts: Facts) -> bool:
    """Return whether the lengths of a split are floats that are known only at run time."""
    split = facts.split(ref) if is_split(ref.node) else None
    if split is None or split.operator is None or split.intent is None:
        return False
    intent = split.intent
    return intent.given is None and takes_floats(split.operator, intent.source)


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


def _sequence_parts(ref: NodeRef, facts: Facts) -> Found:
    """Yield findings on tensors of one sequence that do not fit together."""
    inputs = [facts.of(value) for value in ref.node.inputs]
    if ref.node.domain != "" or not inputs or not isinstance(inputs[0], SequenceFact):
        return
    if ref.node.op_type == "ConcatFromSequence":
        names = ("axis", "new_axis")
        axis, new_axis = (attribute_of(ref.node, name, ir.AttributeType.INT, 0) for name in names)
        if axis is not None and new_axis is not None:
            yield from _joined(inputs[0].parts or (), axis, is_new=bool(new_axis))
    elif ref.node.op_type == "SequenceInsert" and len(inputs) > 1 and inputs[0].count != 0:
        held, other = inputs[0].element_type, as_tensor(inputs[1]).element_type
        if held is not None and other is not None and held != other:
            problem = (
                f"the sequence holds tensors of {held.name.lower()}, but the tensor is of"
                f" {other.name.lower()}"
            )
            yield checks.SEQUENCE_PARTS, problem, "a sequence has one element type", None


def _joined(parts: tuple[Shape | None, ...], axis: int, *, is_new: bool) -> Found:
    """Check that tensors have one shape, except on the axis of the join unless it is a new axis."""
    known = [shape for shape in parts if shape is not None]
    if not known:
        return
    first, extent = known[0], len(known[0]) + is_new
    if all(len(shape) == len(first) for shape in known) and not -extent <= axis < extent:
        problem = f"the axis is {axis}, but the tensors have rank {len(first)}"
        fix = f"give an axis in [{-extent}, {extent - 1}]" if extent else "set new_axis to 1"
        yield checks.SEQUENCE_PARTS, problem, fix, None
        return
    joined = None if is_new else axis + extent if axis < 0 else axis
    for index, shape in enumerate(parts):
        if shape is not None and not _fit(first, shape, joined):
            problem = (
                f"tensor {index} has shape {show_shape(shape)}, another one {show_shape(first)}"
            )
            fix = f"they may differ on axis {joined} alone"
            if is_new:
                fix = "join them on the axis they were split on, with new_axis = 0"
            yield checks.SEQUENCE_PARTS, problem, fix, None
            return
