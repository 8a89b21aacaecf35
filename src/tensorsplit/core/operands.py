"""Operands: what a caller or a node gives, and whether it fits the record it is given to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias, cast

from tensorsplit.core.dimensions import Dim
from tensorsplit.core.errors import (
    MISSING_OPERAND,
    OPERAND_RANK,
    OPERAND_TYPE,
    OPERAND_VALUE,
    UNKNOWN_OPERAND,
    SplitError,
    did_you_mean,
    show,
)
from tensorsplit.core.records import operators
from tensorsplit.core.schema import Operator


class Operand(NamedTuple):
    """The value of an operand of an operator.

    Attributes:
        values: The elements in order; None if they are known only at run time.
        rank: 0 for a scalar, 1 for a list; None if not known.
        element_type: The element type of an input; None for an attribute, for integers of no
            particular type, or if not known.
        kind: ``attribute`` or ``input``; None where the caller leaves it to the record.
    """

    values: tuple[Dim | float, ...] | None
    rank: int | None
    element_type: str | None = None
    kind: str | None = None

    def __str__(self) -> str:
        if self.values is None:
            return "known at run time"
        shown = [show(value) for value in self.values[:12]]
        if self.rank == 0:
            return shown[0]
        return f"[{', '.join(shown)}{', ...' if len(self.values) > 12 else ''}]"


_MOST_TYPES = 4
"""So many types of elements are named; where there are more, integers of all types will do."""

Operands: TypeAlias = Iterable[tuple[str, Operand]]
"""Operands by the names of the standard; absent ones are left out."""

Known: TypeAlias = Mapping[tuple[str, str], Operand]
"""The operands that are given, by name and kind."""


def check_operand(operator: Operator, name: str, kind: str, operand: Operand) -> None:
    """Check that a version has such an operand (TS103), and its type and shape (TS105, TS106)."""
    attribute, parameter = operator.attribute(name), operator.input(name)
    if kind == "attribute" and attribute is not None:
        fits = operand.element_type is None
        wanted = "an integer" if _ranks(operator, name, kind) == (0,) else "integers"
    elif kind == "input" and parameter is not None:
        types = operator.types_of(parameter).element_types
        fits = _is_among(types, operand)
        wanted = ", ".join(sorted(types)) if len(types) <= _MOST_TYPES else "integers"
    else:
        raise _unknown(operator, name, kind)
    if not fits:
        problem = f"it is {_shown(operand)}of type {operand.element_type or 'integer'}"
        raise SplitError(OPERAND_TYPE, problem, f"give {wanted}", parameter=name)
    _check_rank(operator, name, kind, operand)


def _is_among(types: frozenset[str], operand: Operand) -> bool:
    """Return whether a type is allowed; untyped integers fit wherever integers do."""
    if operand.element_type is None:
        return operand.values is None or "int64" in types
    return operand.element_type in types


def _shown(operand: Operand) -> str:
    """Return the elements of an operand, where they are given."""
    return "" if operand.values is None else f"{operand} "


def _check_rank(operator: Operator, name: str, kind: str, operand: Operand) -> None:
    if operand.rank is None:
        return
    ranks, is_axis = _ranks(operator, name, kind), name == operator.axis
    is_one = operand.values is None or len(operand.values) == 1
    if operand.rank not in ranks or (is_axis and not is_one):
        words = ("a scalar", "a list of one element" if is_axis else "a list (1-D)")
        fix = f"give {' or '.join(words[rank] for rank in ranks)}"
        counts = operator.absent or operator.attribute("num_outputs")
        if operand.rank == 0 and counts and not is_axis and operand.values:
            (count,) = operand.values
            parts = f"{show(count)} part{'' if count == 1 else 's'}"
            fix = (
                f"use num_outputs={show(count)} for {parts}, split_to_sequence for chunks of"
                f" {show(count)}, or {fix}"
            )
        raise SplitError(
            OPERAND_RANK,
            f"it is {_shown(operand)}of rank {operand.rank}",
            fix,
            parameter=name,
        )


def _ranks(operator: Operator, name: str, kind: str) -> tuple[int, ...]:
    if name == operator.axis:
        return operator.axis_ranks
    for lengths in operator.lengths:
        if (lengths.operand, lengths.kind) == (name, kind):
            return tuple(lengths.rules)
    return (0,)


def _unknown(operator: Operator, name: str, kind: str) -> SplitError:
    if operator.attribute(name) or operator.input(name):
        other = "input" if kind == "attribute" else "attribute"
        problem = f"it is given as {kind}, but this version has it as {other}"
        return SplitError(UNKNOWN_OPERAND, problem, f"give it as {other}", parameter=name)
    versions = [
        f"{record.id} ({held})"
        for record in operators.values()
        if (record.vendor, record.name) == (operator.vendor, operator.name)
        for held, found in (("attribute", record.attribute(name)), ("input", record.input(name)))
        if found
    ]
    near = did_you_mean(name, operator.operands)
    fix = f"{near}its operands are {', '.join(operator.operands)}"
    if versions:
        fix = f"it is found in {', '.join(versions)}"
    problem = f"{operator.id} has no {kind} '{name}'"
    return SplitError(UNKNOWN_OPERAND, problem, fix, parameter=name)


def check_required(operator: Operator, known: Known) -> None:
    """Check that what the version can't do without is given (TS102)."""
    given = {name for name, _ in known}
    required = [a.name for a in operator.attributes if a.required]
    required += [i.name for i in operator.inputs[1:] if i.option == "single"]
    for name in required:
        if name not in given:
            raise SplitError(
                MISSING_OPERAND, "it is not given", "this version needs it", parameter=name
            )


def whole_lengths(values: tuple[Dim | float, ...], parameter: str | None) -> tuple[int, ...]:
    """Return floats as integers, where they are whole (D12)."""
    for value in values:
        if isinstance(value, float) and not value.is_integer():
            raise SplitError(
                OPERAND_VALUE,
                f"a length is {value!r}",
                "give whole, finite numbers >= 0",
                parameter=parameter,
            )
    whole = (int(value) if isinstance(value, float) else value for value in values)
    return cast("tuple[int, ...]", tuple(whole))  # or dimensions, that rules take as well


def keeps_axis(operator: Operator, known: Known) -> bool:
    """Return whether the parts keep the axis without lengths (TS107 for a value not 0 or 1)."""
    if operator.keepdims is None:
        return True
    operand = known.get((operator.keepdims, "attribute"))
    if operand is None or operand.values is None:
        return True
    if operand.values[0] not in (0, 1):
        fix = "give 0 (drop the axis) or 1 (keep it)"
        name = operator.keepdims
        wants = {"keepdims": range(2)}
        raise SplitError(OPERAND_VALUE, f"it is {operand}", fix, parameter=name, wants=wants)
    return operand.values[0] == 1
