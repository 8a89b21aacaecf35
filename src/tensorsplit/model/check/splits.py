"""What is odd about a split node that no rule refuses: no-ops, dead parts, portability."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tensorsplit.core.dimensions import is_known
from tensorsplit.core.plan import SplitPlan
from tensorsplit.core.rules import ceil, equal, explicit
from tensorsplit.model.check.cuts import Cut
from tensorsplit.model.check.finding import Finding, of_check
from tensorsplit.model.check.table import (
    DEAD_OUTPUT,
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


def oddities(cut: Cut) -> Iterator[Finding]:
    """What is odd about a split node."""
    for rule in _RULES:
        yield from rule(cut)


def _found(
    check: Check, cut: Cut, message: str, fix: str = "", parameter: str | None = None
) -> Finding:
    operator = cut.operator.id if cut.operator else None
    return of_check(check, cut.place.path, message, fix, operator=operator, parameter=parameter)


def _does_nothing(cut: Cut) -> Iterator[Finding]:
    if cut.errors or cut.intent is None or cut.operator is None or not cut.intent.keepdims:
        return
    made = cut.plan
    parts = len(made.sizes) if isinstance(made, SplitPlan) else None
    if cut.operator.is_sequence and parts == 1:
        yield _found(
            DOES_NOTHING,
            cut,
            "the sequence has one tensor, which is all of the data",
            "use the data, or SequenceConstruct where a sequence is needed",
        )
    elif not cut.operator.is_sequence and cut.intent.outputs == 1:
        yield _found(
            DOES_NOTHING,
            cut,
            "the one part is all of the data",
            "use the data itself, and remove the node",
        )


def _dead_outputs(cut: Cut) -> Iterator[Finding]:
    outputs = [value for value in cut.place.node.outputs if value.name]
    dead = [value for value in outputs if not value.uses() and not value.is_graph_output()]
    if not dead or cut.operator is None:
        return
    parameter = cut.operator.outputs[0].name
    if len(dead) == len(outputs):
        message, fix = "nobody uses what the node makes", "remove the node"
    else:
        names = ", ".join(f"'{value.name}'" for value in dead[:8])
        more = ", ..." if len(dead) > 8 else ""
        message = f"nobody uses {len(dead)} of the {len(outputs)} parts: {names}{more}"
        fix = "use a Slice for the parts that are needed, if they are few"
    yield _found(DEAD_OUTPUT, cut, message, fix, parameter)


def _negative_axis(cut: Cut) -> Iterator[Finding]:
    intent, operator = cut.intent, cut.operator
    if intent is None or operator is None or operator.negative_axis:
        return
    if intent.axis is not None and intent.axis < 0:
        fix = f"give {cut.plan.axis}" if cut.plan else "count the axis from the front"
        yield _found(NEGATIVE_AXIS, cut, f"the axis is {intent.axis}", fix, operator.axis)


def _ignored_keepdims(cut: Cut) -> Iterator[Finding]:
    intent, operator = cut.intent, cut.operator
    if intent is None or operator is None or operator.keepdims is None or intent.source is None:
        return
    attribute = cut.place.node.attributes.get(operator.keepdims)
    if attribute is not None and attribute.value == 0:
        yield _found(
            IGNORED_KEEPDIMS,
            cut,
            f"it is 0, but '{intent.source}' is given, so that the axis stays",
            f"leave {operator.keepdims} out, or squeeze the parts if the axis is to go",
            operator.keepdims,
        )


def _lengths_that_change(cut: Cut) -> Iterator[Finding]:
    value, intent = cut.lengths, cut.intent
    if value is None or intent is None or intent.given is not None:
        return
    if value.is_graph_input() and value.is_initializer():
        yield _found(
            OVERRIDABLE_LENGTHS,
            cut,
            f"'{value.name}' is an initializer and a graph input, so that other lengths can be fed",
            "take it off the graph's inputs if it is a constant",
            intent.source,
        )
    else:
        yield _found(
            RUNTIME_LENGTHS,
            cut,
            f"'{value.name}' is known only at run time",
            "give the lengths as a constant if they are always the same",
            intent.source,
        )


def _axis_that_changes(cut: Cut) -> Iterator[Finding]:
    intent, operator = cut.intent, cut.operator
    if intent is None or operator is None or intent.axis is not None:
        return
    for parameter, value in zip(operator.inputs, cut.place.node.inputs, strict=False):
        if parameter.name == operator.axis and value is not None:
            yield _found(
                RUNTIME_LENGTHS,
                cut,
                f"'{value.name}' is known only at run time",
                "give the axis as a constant if it is always the same",
                operator.axis,
            )


def _open_dimension(cut: Cut) -> Iterator[Finding]:
    intent, made = cut.intent, cut.plan
    if intent is None or not isinstance(made, SplitPlan) or is_known(cut.dim):
        return
    count = len(made.sizes)
    name = "the dimension" if cut.dim is None else f"the dimension {cut.dim}"
    needs, fix = "", "fix the dimension in the model's inputs if it never changes"
    if intent.rule is explicit and intent.given is not None:
        needs = f"it must be {sum(intent.given)}, which the lengths sum to"
    elif intent.rule is equal and count > 1:
        needs = f"it must be a multiple of {count}"
    elif intent.rule is ceil and count > 2:
        needs = f"{count} parts do not fit every length, such as 1"
    if needs:
        yield _found(
            OPEN_DIMENSION,
            cut,
            f"{name} on axis {made.axis} is known only at run time, and {needs}",
            fix,
            intent.source,
        )


def _empty_parts(cut: Cut) -> Iterator[Finding]:
    intent, made = cut.intent, cut.plan
    if intent is None or not isinstance(made, SplitPlan) or intent.operator.is_sequence:
        return
    if cut.dim == 0 and intent.rule in (equal, ceil):
        yield _found(
            EMPTY_DIMENSION,
            cut,
            f"the dimension on axis {made.axis} is 0, so that every part is empty",
            "give the lengths, which are all 0, if it is meant",
            intent.source,
        )
    elif cut.dim != 0 and 0 in made.sizes:
        yield _found(
            EMPTY_PART,
            cut,
            f"part {made.sizes.index(0)} has no elements on axis {made.axis}",
            "leave it out if it is not meant",
            intent.source,
        )


def _length_or_chunk(cut: Cut) -> Iterator[Finding]:
    intent = cut.intent
    if cut.errors or intent is None or intent.rule is not explicit:
        return
    if not intent.operator.is_sequence:
        return
    if intent.given is not None and len(intent.given) == 1 and not is_known(cut.dim):
        yield _found(
            LENGTH_OR_CHUNK,
            cut,
            f"[{intent.given[0]}] is the length of one part, and the dimension is not known",
            f"give the scalar {intent.given[0]} for chunks of that length",
            intent.source,
        )


def _float_lengths(cut: Cut) -> Iterator[Finding]:
    intent, operator = cut.intent, cut.operator
    if intent is None or operator is None or cut.lengths is None or intent.source is None:
        return
    parameter = operator.input(intent.source)
    if parameter is not None and "int64" not in operator.types_of(parameter).element_types:
        yield _found(
            FLOAT_LENGTHS,
            cut,
            f"the lengths come from '{cut.lengths.name}', whose elements are floats",
            "give them as the attribute, or convert the model to opset 13 or newer",
            intent.source,
        )


_RULES: tuple[Callable[[Cut], Iterator[Finding]], ...] = (
    _negative_axis,
    _ignored_keepdims,
    _axis_that_changes,
    _lengths_that_change,
    _length_or_chunk,
    _float_lengths,
    _empty_parts,
    _open_dimension,
    _does_nothing,
    _dead_outputs,
)
