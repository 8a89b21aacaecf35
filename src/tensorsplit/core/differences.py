"""The changes between two operator versions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from tensorsplit.core.errors import SplitError, called, count_of
from tensorsplit.core.operands import Operand
from tensorsplit.core.plan import SplitPlan
from tensorsplit.core.records import operator_named
from tensorsplit.core.records.names import DialectName, OperatorName
from tensorsplit.core.resolve import bind, plan
from tensorsplit.core.rules import SHARE, shares
from tensorsplit.core.schema import Operator

ASPECTS = ("attribute", "input", "output", "type", "fact", "behaviour")
"""What two versions can differ in, in the order in which it is shown."""

_ASPECTS_OF_DIALECTS = ("attribute", "input", "behaviour")
"""What is compared of a dialect; its types and its output are those of its library."""

EXAMPLES = ((7, 3), (5, 4))
"""A dimension and a number, of which two versions may make different parts."""

ANY_TYPE = "any type the engine supports"


@dataclass(frozen=True, slots=True)
class Change:
    """One difference.

    Attributes:
        aspect: ``attribute``, ``input``, ``output``, ``type``, ``fact`` or ``behaviour``.
        name: What differs, such as the attribute's name. For a type it is the operand and the
            element type, such as ``data: bfloat16``; the first input is called ``data``
            whatever its name, so that operators of two vendors can be compared.
        before: How it is in the first version; None if it is not there.
        after: How it is in the second version; None if it is not there.
    """

    aspect: str
    name: str
    before: str | None
    after: str | None

    @property
    def subject(self) -> str:
        """The subject of the change: the name, without the element type of a type."""
        return self.name.partition(": ")[0]


@dataclass(frozen=True, slots=True, repr=False)
class OperatorDiff:
    """Everything that differs between two operator versions.

    Attributes:
        before: The first version.
        after: The second version.
        changes: The differences: attributes, inputs, outputs, types, facts, behaviour.
    """

    before: Operator
    after: Operator
    changes: tuple[Change, ...]

    @property
    def rows(self) -> tuple[Change, ...]:
        """The changes as rows of a table: the element types of one operand share a row."""
        rows: list[Change] = []
        for (aspect, subject), group in groupby(self.changes, attrgetter("aspect", "subject")):
            several = tuple(group)
            if aspect == "type":
                before, after = (
                    ", ".join(each.name.partition(": ")[2] for each in several if is_there(each))
                    for is_there in (attrgetter("before"), attrgetter("after"))
                )
                several = (Change(aspect, subject, _only(before), _only(after)),)
            rows += several
        return tuple(rows)

    def __repr__(self) -> str:
        changes = count_of(len(self.changes), "change")
        return f"<OperatorDiff {self.before.id} -> {self.after.id}: {changes}>"

    def __str__(self) -> str:
        lines = [f"{self.before.id} -> {self.after.id}"]
        lines += [
            f"{change.aspect} {change.name}: {change.before or '-'} -> {change.after or '-'}"
            for change in self.changes
        ]
        return "\n".join(lines)


def _only(elements: str) -> str | None:
    return f"only here: {elements}" if elements else None


def diff(
    before: OperatorName | DialectName | Operator, after: OperatorName | DialectName | Operator
) -> OperatorDiff:
    """Compare two operator versions, of one operator or of two, or dialects.

    Args:
        before: An identifier such as ``onnx.Split-13`` or ``torch.chunk``, a name such as ``Split``
            (its newest version), or a record.
        after: Another one.

    Returns:
        The differences in attributes, inputs, outputs, element types, facts and behaviour.

    Raises:
        SplitError: TS101 for an identifier that does not exist.

    Example:
        >>> [change.name for change in ts.diff("onnx.Split-2", "onnx.Split-11").changes]
        ['lengths', 'negative axis']
    """
    with called(operator="before"):
        first = operator_named(before)
    with called(operator="after"):
        second = operator_named(after)
    compared = _ASPECTS_OF_DIALECTS if first.is_dialect or second.is_dialect else ASPECTS
    left, right = _aspects(first), _aspects(second)
    keys = list(dict.fromkeys((*left, *right)))
    subjects = list(dict.fromkeys((aspect, name.partition(": ")[0]) for aspect, name in keys))
    changes = [
        Change(*key, left.get(key), right.get(key))
        for key in keys
        if left.get(key) != right.get(key) and key[0] in compared
    ]
    changes.sort(key=lambda c: (ASPECTS.index(c.aspect), subjects.index((c.aspect, c.subject))))
    return OperatorDiff(first, second, tuple(changes))


def _aspects(record: Operator) -> dict[tuple[str, str], str]:
    """Return a record as text, one entry for each thing that can differ."""
    found: dict[tuple[str, str], str] = {}
    for attribute in record.attributes:
        found["attribute", attribute.name] = f"{attribute.type}, {attribute.need}"
    for kind, parameters in (("input", record.inputs), ("output", record.outputs)):
        for parameter in parameters:
            found[kind, parameter.name] = f"{parameter.type_str}, {parameter.option}"
    for number, parameter in enumerate(record.inputs):
        constraint = record.types_of(parameter)
        elements = [ANY_TYPE] if constraint.any else sorted(constraint.element_types, key=_by_size)
        for element in elements:
            found["type", f"{parameter.name if number else 'data'}: {element}"] = "allowed"
    found["fact", "domain"] = record.domain or "ai.onnx"
    found["fact", "support level"] = record.support_level
    found["fact", "function"] = "yes" if record.is_function else "no"
    found["fact", "shape inference"] = "yes" if record.has_shape_inference else "no"
    for dim, number in EXAMPLES:
        answer = given_a_number(record, dim, number)
        if answer is not None:
            found["behaviour", f"{dim} into {number}"] = answer
    found.update({("behaviour", name): text for name, text in record.notes.items()})
    return found


def number_operand(record: Operator, number: int) -> tuple[str, Operand] | None:
    """Return the operand of a version that takes one number, with that: a count or a length.

    None for a version that takes none.
    """
    for lengths in record.lengths:
        if 0 in lengths.rules:
            return lengths.operand, Operand((number,), 0)
        if lengths.rules.get(1) is shares:
            return lengths.operand, Operand((SHARE,) * number, 1)
    return None


def given_a_number(record: Operator, dim: int, number: int) -> str | None:
    """Return the lengths that a version makes of a dimension and one number, or ``refused``.

    None for a version that takes no number.
    """
    operand = number_operand(record, number)
    if operand is None and record.absent is None:
        return None
    operands = [(record.axis, Operand((0,), record.axis_ranks[0])), *filter(None, (operand,))]
    try:
        made = plan(bind(record, operands, number if operand is None else None), (dim,))
    except SplitError:
        return "refused"
    sizes = made.sizes if isinstance(made, SplitPlan) else ()
    return ", ".join(map(str, sizes))


def _by_size(element_type: str) -> tuple[str, int]:
    """Return a key that sorts int8 before int16."""
    digits = re.search("[0-9]+", element_type)
    return re.sub("[0-9]+", "", element_type, count=1), int(digits.group()) if digits else 0
