"""The content of an operator page, derived from the record; its examples are calculated."""

from __future__ import annotations

from dataclasses import dataclass

from tensorsplit.arrays.prepared import plan
from tensorsplit.core.differences import ANY_TYPE
from tensorsplit.core.dimensions import Shape
from tensorsplit.core.errors import REMAINDER
from tensorsplit.core.records import NEWEST_OPSET, operators
from tensorsplit.core.rules import Rule, ceil, chunk, equal, explicit, ones, remainder
from tensorsplit.core.schema import Attribute, Operator, Parameter, TypeConstraint
from tensorsplit.pages.decisions import decisions_for, rules_of

RULES: dict[Rule, str] = {
    explicit: "the lengths as given: each >= 0, summing to the dimension",
    remainder: "the lengths as given: each >= 0, summing to the dimension; one may be -1, and is"
    " what the others leave",
    equal: "n parts of one length: n must divide the dimension d",
    ceil: "n parts of ceil(d/n), the last one what is left of the dimension d, at least 0",
    chunk: "chunks of the given length > 0, of which the last may be smaller",
    ones: "parts of length 1, as many as the dimension",
}
"""Every length rule in words; n is what the operand gives."""

_EXAMPLES: dict[Rule, tuple[Shape, object]] = {
    explicit: ((7, 4), [2, 5]),
    remainder: ((7, 4), [-1, 2]),
    equal: ((6, 4), 3),
    ceil: ((7, 4), 3),
    chunk: ((7, 4), 3),
    ones: ((7, 4), None),
}
"""A shape and lengths for the example of each rule."""


@dataclass(frozen=True, slots=True)
class OperandRow:
    """An attribute, input or output."""

    name: str
    type: str  # INT, INTS, the name of a type constraint, or one type
    need: str  # required, optional, variadic, or default and the value
    meaning: str


@dataclass(frozen=True, slots=True)
class Types:
    """A type constraint, with its types in the order and the words of the standard."""

    name: str
    meaning: str
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LengthSource:
    """A case, such as "attribute `split` is given", and the rule that holds then, in words."""

    given: str
    rule: str


@dataclass(frozen=True, slots=True)
class Note:
    """A named statement: a behaviour, or a decision with its error codes."""

    name: str
    text: str
    codes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Example:
    """A call and its answer: the lengths of the parts on the axis."""

    shape: Shape
    operands: dict[str, object]
    sizes: Shape

    def call(self, operator: str) -> str:
        """The call in Python."""
        operands = "".join(f", {name}={value!r}" for name, value in self.operands.items())
        return f'ts.plan("{operator}", {self.shape!r}{operands}).sizes'


@dataclass(frozen=True, slots=True)
class Page:
    """What the page of an operator version says, in the order of its sections."""

    id: str
    summary: str
    source: str
    facts: tuple[Note, ...]
    attributes: tuple[OperandRow, ...]
    inputs: tuple[OperandRow, ...]
    outputs: tuple[OperandRow, ...]
    types: tuple[Types, ...]
    lengths: tuple[LengthSource, ...]
    behaviour: tuple[Note, ...]
    decisions: tuple[Note, ...]
    examples: tuple[Example, ...]


def page_of(record: Operator) -> Page:
    """The page of an operator version; ``dataclasses.asdict`` of it can be written as JSON."""
    return Page(
        id=record.id,
        summary=record.summary,
        source=record.source,
        facts=tuple(Note(name, text) for name, text in _facts(record).items()),
        attributes=tuple(map(_attribute, record.attributes)),
        inputs=tuple(map(_parameter, record.inputs)),
        outputs=tuple(map(_parameter, record.outputs)),
        types=tuple(map(_types, record.type_constraints)),
        lengths=_lengths(record),
        behaviour=tuple(Note(name, text) for name, text in record.notes.items()),
        decisions=_decisions(record),
        examples=_examples(record),
    )


def opsets(record: Operator) -> str:
    """The opsets at which the version is in force."""
    if record.vendor != "onnx":
        return f"from {record.domain}"
    since = [other.since_version for other in operators.values() if other.name == record.name]
    later = [version - 1 for version in since if version > record.since_version]
    last = min(later, default=NEWEST_OPSET)
    return str(last) if last == record.since_version else f"{record.since_version} to {last}"


def lengths_in_short(record: Operator) -> tuple[str, str]:
    """Where the lengths come from, and what holds when they are not given, in a few words."""
    sources = " or ".join(f"{entry.kind} {entry.operand}" for entry in record.lengths)
    if record.absent is None:
        return sources, "refused"
    absent: dict[Rule, str] = {equal: "equal parts", ones: "parts of length 1"}
    return sources, absent[record.absent]


def _facts(record: Operator) -> dict[str, str]:
    return {
        "domain": record.domain or "ai.onnx",
        "since version": str(record.since_version),
        "in force at opset": opsets(record),
        "support level": record.support_level,
        "function": "yes" if record.is_function else "no",
        "shape inference": "yes" if record.has_shape_inference else "no",
        "output": "one sequence of the parts" if record.is_sequence else "one for each part",
    }


def _attribute(attribute: Attribute) -> OperandRow:
    need = "required" if attribute.required else "optional"
    if attribute.default is not None:
        need = f"default {attribute.default}"
    return OperandRow(attribute.name, attribute.type, need, attribute.description)


def _parameter(parameter: Parameter) -> OperandRow:
    need = "required" if parameter.option == "single" else parameter.option
    return OperandRow(parameter.name, parameter.type_str, need, parameter.description)


def _types(constraint: TypeConstraint) -> Types:
    meaning = constraint.description
    if constraint.any and ANY_TYPE not in meaning:
        meaning = f"{meaning}; {ANY_TYPE}"
    return Types(constraint.name, meaning, constraint.types)


def _lengths(record: Operator) -> tuple[LengthSource, ...]:
    ranks = {0: " as a scalar", 1: " as a list"}
    found = [
        LengthSource(
            f"{lengths.kind} `{lengths.operand}` is given"
            f"{ranks[rank] if len(lengths.rules) > 1 else ''}",
            RULES[rule],
        )
        for lengths in record.lengths
        for rank, rule in lengths.rules.items()
    ]
    if record.absent is None:
        absent = "refused: " + (
            "exactly one of them is needed" if len(record.lengths) > 1 else "it must be given"
        )
    else:
        absent = RULES[record.absent]
        if not record.is_sequence:
            absent += "; n is the number of outputs of the node"
    return (*found, LengthSource("no lengths are given", absent))


def _decisions(record: Operator) -> tuple[Note, ...]:
    """The decisions that concern a version; only a rule with a remainder refuses a wrong one."""
    has_remainder = remainder in rules_of(record)
    return tuple(
        Note(
            decision.id,
            decision.text,
            tuple(k.code for k in decision.refusals if has_remainder or k is not REMAINDER),
        )
        for decision in decisions_for(record)
    )


def _examples(record: Operator) -> tuple[Example, ...]:
    """One example for each way of giving the lengths, and one for giving none."""
    cases = [(rule, each.operand) for each in record.lengths for rule in each.rules.values()]
    if record.absent is not None:
        cases.append((record.absent, "num_outputs"))
    return tuple(_example(record, *case) for case in dict.fromkeys(cases))


def _example(record: Operator, rule: Rule, operand: str) -> Example:
    shape, given = _EXAMPLES[rule]
    operands: dict[str, object] = {record.axis: 0}
    if given is not None:
        operands[operand] = given
    return Example(shape, operands, plan(record, shape, **operands).sizes)  # type: ignore[arg-type]
