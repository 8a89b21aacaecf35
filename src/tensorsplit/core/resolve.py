"""The one interpreter of operator records: record + operands + shape -> plan.

`bind` checks what can be known without a shape and picks the rule; `plan` applies it to a shape.
Execution, inference, checks and rewriting all start from one of the two.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache

from tensorsplit.core.dimensions import Dim, Shape, is_known, is_traced
from tensorsplit.core.errors import (
    AXIS_RANGE,
    CONFLICTING_OPERANDS,
    ELEMENT_TYPE,
    MISSING_OPERAND,
    OUTPUT_COUNT,
    SCALAR_DATA,
    UNKNOWN_COUNT,
    SplitError,
    count_of,
    show_int,
)
from tensorsplit.core.given import is_a
from tensorsplit.core.operands import (
    Known,
    Operand,
    Operands,
    check_operand,
    check_required,
    keeps_axis,
    whole_lengths,
)
from tensorsplit.core.plan import SplitPlan, UncountedPlan
from tensorsplit.core.rules import BY_COUNT, MAX_PARTS, LengthRule, Uncounted, apply
from tensorsplit.core.schema import Lengths, Operator

MANY_PARTS = 1 << 16
"""The lengths of more parts than this would take memory, and are not listed without need."""


@dataclass(frozen=True, slots=True)
class Intent:
    """The request of a node, before the shape of its data is known.

    Attributes:
        operator: The record.
        axis: The axis as given; None if known only at run time.
        source: The operand that gives the lengths; None if none was given.
        rule: The length rule; None while the rank of a run-time operand leaves it open.
        given: What the rule is given; None if known only at run time.
        outputs: How many outputs the node has; None where there is no node.
        keepdims: Whether the parts keep the axis.
        element_types: The element types that the data may have; None for any.
    """

    operator: Operator
    axis: int | None
    source: str | None
    rule: LengthRule | None
    given: tuple[int, ...] | None
    outputs: int | None
    keepdims: bool
    element_types: frozenset[str] | None


def bind(operator: Operator, operands: Operands, outputs: int | None = None) -> Intent:
    """Check the operands of an operator version and pick the length rule (TS102 to TS107, TS305).

    What is returned holds for any shape of the data. ``outputs`` is the number of outputs of
    the node; None where there is no node.
    """
    try:
        return _bind(operator, operands, outputs)
    except SplitError as error:
        raise error.located(operator=operator.id) from None


def plan(intent: Intent, shape: Shape, most: int = MAX_PARTS) -> SplitPlan | UncountedPlan:
    """Apply an intent to a shape that `as_shape` checked (TS202, TS203, TS301 to TS309).

    It is an `UncountedPlan` where even the number of parts depends on a dimension not known, and
    for more chunks than ``most``.
    """
    try:
        axis = _normal_axis(intent, len(shape))
        sizes = part_sizes(intent, shape[axis], most)
    except SplitError as error:
        raise error.located(operator=intent.operator.id) from None
    if isinstance(sizes, Uncounted):
        dim, size = shape[axis], sizes.size
        if not (size == 1 or (is_known(dim) and is_known(size) and dim % size == 0)):
            size = None  # the last part may be smaller
        return UncountedPlan(intent.operator.id, shape, axis, sizes.count, size, intent.keepdims)
    return SplitPlan(intent.operator.id, shape, axis, sizes, intent.keepdims, intent.element_types)


def part_sizes(intent: Intent, dim: Dim, most: int = MAX_PARTS) -> tuple[Dim, ...] | Uncounted:
    """Return the lengths of the parts; None stands for one not known (TS301 to TS309).

    More chunks than ``most`` are not listed.
    """
    if intent.rule is None or intent.given is None:
        raise SplitError(
            UNKNOWN_COUNT,
            "the lengths are known only at run time",
            "give them as constants",
            parameter=intent.source,
        )
    if intent.outputs is not None and intent.rule in BY_COUNT:
        (count,) = intent.given
        if MAX_PARTS >= count > MANY_PARTS > intent.outputs:
            check_count(count, intent)
    try:
        is_short = len(intent.given) <= 64 and not any(map(is_traced, (dim, *intent.given)))
        if is_short and not is_known(dim) and is_a(dim, Hashable):
            sizes = _symbolic_sizes(intent.rule, dim, intent.given)
        else:
            sizes = apply(intent.rule, dim, intent.given, most)
    except SplitError as error:
        counted = "num_outputs" if intent.outputs else intent.operator.lengths[0].operand
        error.parameter = intent.source or counted
        raise
    if not isinstance(sizes, Uncounted) and not intent.operator.is_sequence:
        check_count(len(sizes), intent)
    return sizes


@lru_cache(maxsize=1024)
def _symbolic_sizes(
    rule: LengthRule, dim: Dim, given: tuple[int, ...]
) -> tuple[Dim, ...] | Uncounted:
    """Return the lengths of expressions, which are remembered: a model repeats the same few."""
    return apply(rule, dim, given)


def check_element_type(
    operator: str, element_type: str, allowed: frozenset[str] | None, parameter: str = "input"
) -> None:
    """Refuse data of an element type that the version's type constraint does not list (TS201)."""
    if allowed is not None and element_type not in allowed:
        raise SplitError(
            ELEMENT_TYPE,
            f"the element type of the data is {element_type}",
            f"this version takes {', '.join(sorted(allowed))}",
            operator=operator,
            parameter=parameter,
        )


def _bind(operator: Operator, operands: Operands, outputs: int | None) -> Intent:
    known: dict[tuple[str, str], Operand] = {}
    for name, operand in operands:
        kind = operand.kind or ("attribute" if operator.attribute(name) else "input")
        check_operand(operator, name, kind, operand)
        known[name, kind] = operand
    check_required(operator, known)
    if outputs is not None and outputs < 1:
        raise SplitError(
            OUTPUT_COUNT,
            f"{count_of(outputs, 'output')} asked for",
            "name at least 1",
            parameter="num_outputs",
            wants={"count": range(1, MAX_PARTS + 1)},
        )
    lengths = _source(operator, known)
    source = None if lengths is None else known[lengths.operand, lengths.kind]
    given: tuple[int, ...] | None = None
    if lengths is None or source is None:
        rule, given = operator.absent, _counted(operator, outputs)
    else:
        rank = source.rank
        if rank is None and len(lengths.rules) == 1:
            (rank,) = lengths.rules
        rule = None if rank is None else lengths.rules[rank]
        if source.values is not None:
            given = whole_lengths(source.values, lengths.operand)
    return Intent(
        operator=operator,
        axis=_axis(operator, known),
        source=None if lengths is None else lengths.operand,
        rule=rule,
        given=given,
        outputs=outputs,
        keepdims=lengths is not None or keeps_axis(operator, known),
        element_types=_element_types(operator, lengths, source),
    )


def _source(operator: Operator, known: Known) -> Lengths | None:
    """Find the operand that gives the lengths: one at most; the record may require one."""
    given = [entry for entry in operator.lengths if (entry.operand, entry.kind) in known]
    if len(given) == 1:
        return given[0]
    if given or operator.absent is None:
        ways = " or ".join(f"{entry.kind} '{entry.operand}'" for entry in operator.lengths)
        seen = " and ".join(
            f"{entry.operand} = {known[entry.operand, entry.kind]}" for entry in given
        )
        raise SplitError(
            CONFLICTING_OPERANDS,
            f"both are given: {seen}" if given else "no lengths are given",
            f"give {ways}{', not both' if given else ''}",
            parameter=operator.lengths[0].operand,
        )
    return None


def _counted(operator: Operator, outputs: int | None) -> tuple[int, ...]:
    """Return the operand of the rule where no lengths are given: the number of outputs."""
    if operator.is_sequence:
        return ()
    if outputs is None:
        raise SplitError(
            MISSING_OPERAND,
            "neither the lengths nor the number of outputs is given",
            "give 'split' or 'num_outputs'",
            parameter="num_outputs",
        )
    return (outputs,)


def _axis(operator: Operator, known: Known) -> int | None:
    for (name, _), operand in known.items():
        if name == operator.axis:
            values = operand.values
            return int(values[0]) if values is not None and is_known(values[0]) else None
    return operator.axis_default


def _normal_axis(intent: Intent, rank: int) -> int:
    if rank == 0:
        raise SplitError(
            SCALAR_DATA,
            "the data is a scalar (rank 0)",
            "give data of rank 1 or more",
            parameter=intent.operator.inputs[0].name,
        )
    axis = intent.axis
    if axis is None:
        raise SplitError(
            UNKNOWN_COUNT,
            "the axis is known only at run time",
            "give it as a constant",
            parameter=intent.operator.axis,
        )
    least = -rank if intent.operator.axis_from_back else 0
    if not least <= axis < rank:
        raise SplitError(
            AXIS_RANGE,
            f"the axis is {show_int(axis)}, but the data has rank {rank}",
            f"give an axis in [{least}, {rank - 1}]",
            parameter=intent.operator.axis,
            wants={"axis": range(least, rank)},
        )
    return axis % rank


def check_count(parts: int, intent: Intent) -> None:
    """Refuse lengths for another number of parts than there are outputs (TS305)."""
    wanted = intent.outputs
    fit = range(1, MAX_PARTS + 1) if wanted is None else range(wanted, wanted + 1)
    if parts == 0:
        problem, fix = "no lengths are given", "give one or more"
    elif wanted is not None and parts != wanted:
        outputs = "is 1 output" if wanted == 1 else f"are {wanted} outputs"
        problem = f"it makes {count_of(parts, 'part')}, but there {outputs}"
        fix = f"make it {count_of(wanted, 'part')}, or give the node {count_of(parts, 'output')}"
    else:
        return
    raise SplitError(OUTPUT_COUNT, problem, fix, parameter=intent.source, wants={"count": fit})


def _element_types(
    operator: Operator, lengths: Lengths | None, operand: Operand | None
) -> frozenset[str] | None:
    """Return the data's element types; lengths of the same type parameter narrow them (Split-1)."""
    data = operator.inputs[0]
    types = operator.types_of(data)
    if types.any:
        return None
    if lengths is not None and operand is not None and operand.element_type is not None:
        parameter = operator.input(lengths.operand)
        if parameter is not None and parameter.type_str == data.type_str:
            return frozenset({operand.element_type})
    return types.element_types
