"""The content of an operator page, derived from the record; its examples are calculated.

With it the decisions (D1-D23): what tensorsplit does where the standards are silent or contradict
themselves. Which of them concern an operator version follows from its record, not from its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import starmap
from typing import Any

from tensorsplit.arrays.prepared import plan
from tensorsplit.core.differences import ANY_TYPE
from tensorsplit.core.dimensions import Shape
from tensorsplit.core.errors import KINDS, REMAINDER, Kind
from tensorsplit.core.records import NEWEST_OPSET, operators
from tensorsplit.core.rules import (
    MAX_PARTS,
    LengthRule,
    at_most,
    balanced,
    ceil,
    chunk,
    ends,
    equal,
    explicit,
    not_empty,
    ones,
    remainder,
    shares,
    slices,
    some_chunks,
    starts,
)
from tensorsplit.core.schema import Operator, Parameter
from tensorsplit.pages.standard_examples import Drawn, drawn_examples, layers

RULES: dict[LengthRule, str] = {
    explicit: "the lengths as given: each >= 0, summing to the dimension",
    remainder: "the lengths as given: each >= 0, summing to the dimension; one may be -1, and is"
    " what the others leave",
    equal: "n parts of one length: n must divide the dimension d",
    ceil: "n parts of ceil(d/n), the last one what is left of the dimension d, at least 0",
    chunk: "chunks of the given length > 0, of which the last may be smaller",
    ones: "parts of length 1, as many as the dimension",
    balanced: "n parts that differ by 1 at most, the longer ones first",
    at_most: "at most n chunks of ceil(d/n) of the dimension d, the last one perhaps smaller",
    some_chunks: "chunks of the given length > 0, of which the last may be smaller; at least one",
    starts: "split at the indices, which are in order, from 0 to the dimension",
    slices: "split at the indices, in order; they count from the back if negative, and are clipped",
    ends: "each part ends at its index; they are in order, and the last one is the dimension",
    not_empty: "the lengths as given: each > 0, summing to the dimension",
    shares: "the lengths as given, each > 0; each -233 is a share of what is left, rounded down",
}
"""Every length rule in words; n is what the operand gives."""

FORMULAS: dict[LengthRule, str] = {
    explicit: "s[i]",
    remainder: "s[i] if s[i] >= 0 else d - sum(s) - 1",
    equal: "d / n",
    ceil: "min(ceil(d / n), d - i * ceil(d / n))",
    chunk: "min(s, d - i * s)",
    ones: "1",
}
"""The length of part i by the rules of the family.

d is the dimension, s what gives the lengths, n the number of parts.
"""

_EXAMPLES: dict[LengthRule, tuple[tuple[int, ...], object]] = {
    explicit: ((7, 4), [2, 5]),
    remainder: ((7, 4), [-1, 2]),
    equal: ((6, 4), 3),
    ceil: ((7, 4), 3),
    chunk: ((7, 4), 3),
    ones: ((7, 4), None),
    balanced: ((7, 4), 3),
    at_most: ((7, 4), 3),
    some_chunks: ((7, 4), 3),
    starts: ((7, 4), [2, 5]),
    slices: ((7, 4), [2, -1]),
    ends: ((7, 4), [2, 7]),
    not_empty: ((7, 4), [2, 5]),
    shares: ((7, 4), [-233, -233, -233]),
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
    """A case, such as "attribute `split` is given", and the rule that holds then.

    In words, and as the length of part i, where a formula gives it.
    """

    given: str
    rule: str
    length: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """A named statement: a behaviour, or a decision with its error codes."""

    name: str
    text: str
    codes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Example:
    """A call and its answer: the lengths of the parts on the axis."""

    shape: tuple[int, ...]
    operands: dict[str, object]
    sizes: Shape

    def call(self, operator: str) -> str:
        """Return the call in Python."""
        operands = "".join(f", {name}={value!r}" for name, value in self.operands.items())
        return f'ts.plan("{operator}", {self.shape!r}{operands}).sizes'


@dataclass(frozen=True, slots=True)
class Page:
    """The contents of the page of an operator version, in the order of its sections."""

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
    drawn: tuple[Drawn, ...]
    layers: tuple[str, ...]


def page_of(record: Operator) -> Page:
    """Return the page of an operator version; ``dataclasses.asdict`` of it is fit for JSON."""
    return Page(
        id=record.id,
        summary=record.summary,
        source=record.source,
        facts=tuple(starmap(Note, _facts(record).items())),
        attributes=tuple(
            OperandRow(entry.name, entry.type, entry.need, entry.description)
            for entry in record.attributes
        ),
        inputs=_rows(record.inputs),
        outputs=_rows(record.outputs),
        types=tuple(_types(record)),
        lengths=tuple(_lengths(record)),
        behaviour=tuple(starmap(Note, record.notes.items())),
        decisions=tuple(_decisions(record)),
        examples=tuple(_examples(record)),
        drawn=tuple(drawn_examples(record)),
        layers=tuple(layers(record)),
    )


def opsets(record: Operator) -> str:
    """Return the opsets at which the version is in force."""
    if record.vendor != "onnx":
        return f"from {record.domain}"
    since = [other.since_version for other in operators.values() if other.name == record.name]
    later = [version - 1 for version in since if version > record.since_version]
    last = min(later, default=NEWEST_OPSET)
    return str(last) if last == record.since_version else f"{record.since_version} to {last}"


def _facts(record: Operator) -> dict[str, str]:
    if record.is_dialect:
        return {"dialect": f"what {record.vendor} means; not an operator of the family"}
    return {
        **({"category": record.category} if record.category else {}),
        "domain": record.domain or "ai.onnx",
        "since version": str(record.since_version),
        "in force at opset": opsets(record),
        "support level": record.support_level,
        "function": "yes" if record.is_function else "no",
        "shape inference": "yes" if record.has_shape_inference else "no",
        "axis": _axis_range(record),
        "number of inputs": _counted_inputs(record),
        "number of outputs": _counted_outputs(record),
        "output": "one sequence of the parts" if record.is_sequence else "one for each part",
        "shape of part i": _shape_of_parts(record),
        "heterogeneous": _heterogeneous(record),
    }


def _shape_of_parts(record: Operator) -> str:
    shape = "that of the data, with the length of the part on the axis"
    if record.keepdims is None:
        return shape
    return f"{shape}; without the axis if `{record.keepdims}` is 0 and no lengths are given"


def _heterogeneous(record: Operator) -> str:
    one_type = "all parts have the element type of the data"
    if record.vendor == "onnx":
        return f"ONNX's page marks each operand so; by its schema {one_type}"
    return f"no: {one_type}"


def _axis_range(record: Operator) -> str:
    if record.negative_axis:
        return "from -r to r-1 for data of rank r"
    return "from 0 to r-1 for data of rank r by the text; a negative one is taken, too (D13)"


def _counted_inputs(record: Operator) -> str:
    least = sum(entry.option == "single" for entry in record.inputs)
    most = len(record.inputs)
    return str(most) if least == most else f"{least} to {most}"


def _counted_outputs(record: Operator) -> str:
    if record.is_sequence:
        return f"1; the sequence has at most {MAX_PARTS:,} parts here"
    most = " to 2,147,483,647 by the schema" if record.vendor == "onnx" else " or more"
    return f"1{most}; at most {MAX_PARTS:,} here"


def _rows(parameters: Iterable[Parameter]) -> tuple[OperandRow, ...]:
    needs = {"single": "required"}
    return tuple(
        OperandRow(each.name, each.type_str, needs.get(each.option, each.option), each.description)
        for each in parameters
    )


def _types(record: Operator) -> Iterator[Types]:
    for constraint in record.type_constraints:
        meaning = constraint.description
        if constraint.any and ANY_TYPE not in meaning:
            meaning = f"{meaning}; {ANY_TYPE}"
        yield Types(constraint.name, meaning, constraint.types)


def _lengths(record: Operator) -> Iterator[LengthSource]:
    ranks = {0: " as a scalar", 1: " as a list"}
    for lengths in record.lengths:
        for rank, rule in lengths.rules.items():
            form = ranks[rank] if len(lengths.rules) > 1 else ""
            given = f"{lengths.kind} `{lengths.operand}` is given{form}"
            yield LengthSource(given, RULES[rule], FORMULAS.get(rule, ""))
    if record.absent is not None:
        count = "" if record.is_sequence else "; n is the number of outputs of the node"
        absent = RULES[record.absent] + count
    elif len(record.lengths) > 1:
        absent = "refused: exactly one of them is needed"
    else:
        absent = "refused: it must be given"
    formula = "" if record.absent is None else FORMULAS.get(record.absent, "")
    yield LengthSource("no lengths are given", absent, formula)


def rules_with_operands(record: Operator) -> list[tuple[LengthRule, str]]:
    """Return each length rule, with the operand that it reads."""
    cases = [(rule, each.operand) for each in record.lengths for rule in each.rules.values()]
    absent = [] if record.absent is None else [(record.absent, "num_outputs")]
    return list(dict.fromkeys((*cases, *absent)))


def _examples(record: Operator) -> Iterator[Example]:
    """Yield one example for each way of giving the lengths, and one for giving none."""
    for rule, operand in rules_with_operands(record):
        shape, given = _EXAMPLES[rule]
        operands: dict[str, Any] = {record.axis: 0}
        if given is not None:
            operands[operand] = given
        sizes = plan(record, shape, **operands).sizes
        yield Example(shape, operands, sizes)


# Decisions


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision of ``docs/errata.md``, and whether it matters for an operator version."""

    id: str
    text: str
    concerns: Callable[[Operator], bool] = lambda _: True

    @property
    def refusals(self) -> tuple[Kind, ...]:
        """The refusals that are raised where the decision is to refuse."""
        return tuple(kind for kind in KINDS.values() if self.id in kind.decisions)


def decisions_for(record: Operator) -> tuple[Decision, ...]:
    """Return the decisions that matter for an operator version, in order; none for a dialect."""
    if record.is_dialect:
        return ()
    return tuple(decision for decision in DECISIONS if decision.concerns(record))


def _decisions(record: Operator) -> Iterator[Note]:
    """Yield the decisions that concern a version; D7 only where a rule has a remainder."""
    unused = () if _uses(remainder)(record) else (REMAINDER,)
    for decision in decisions_for(record):
        codes = tuple(kind.code for kind in decision.refusals if kind not in unused)
        yield Note(decision.id, decision.text, codes)


def _uses(*rules: LengthRule) -> Callable[[Operator], bool]:
    """Return whether a version can use one of the length rules."""
    return lambda record: (
        record.absent in rules
        or any(rule in rules for lengths in record.lengths for rule in lengths.rules.values())
    )


def _data_may_be(*elements: str) -> Callable[[Operator], bool]:
    allowed = set(elements)
    return lambda record: not allowed.isdisjoint(record.types_of(record.inputs[0]).element_types)


def _attribute_or_input(record: Operator) -> bool:
    """Return whether one operand may be an attribute or an input."""
    forms = {entry.kind for entry in record.lengths}
    return len(forms) > len({entry.operand for entry in record.lengths})


DECISIONS = (
    Decision(
        "D1",
        "A count n that would leave a negative last part (ceil(d/n) * (n-1) > d) is refused.",
        _uses(ceil),
    ),
    Decision("D2", "A dimension of 0 is split into n empty parts.", _uses(ceil)),
    Decision(
        "D3", "Equal parts are equal: a dimension that is not divisible is refused.", _uses(equal)
    ),
    Decision(
        "D4",
        "Giving both operands that hold the lengths, or neither, is refused.",
        lambda record: len(record.lengths) > 1 and record.absent is None,
    ),
    Decision(
        "D5",
        "A count of parts that differs from the number of outputs of the node is refused.",
        lambda record: not record.is_sequence,
    ),
    Decision(
        "D6",
        "Lengths that do not sum to the dimension are refused; no data is dropped.",
        _uses(explicit, remainder),
    ),
    Decision(
        "D7",
        "A negative length is refused; in `split_lengths` one -1 is the remainder, never below 0.",
        _uses(remainder),
    ),
    Decision("D7", "A negative length is refused.", _uses(explicit)),
    Decision(
        "D8",
        "`keepdims` is ignored when `split` is given, as the text says.",
        lambda record: record.keepdims is not None,
    ),
    Decision(
        "D9", "Zeros are allowed in a list of lengths; a scalar length must be > 0.", _uses(chunk)
    ),
    Decision("D10", "A scalar `split` of 0 is refused.", _uses(chunk)),
    Decision("D11", "A list of one element is a list of lengths, not a scalar.", _uses(chunk)),
    Decision(
        "D12",
        "Lengths as attribute and as input at once are refused; as floats they must be whole,"
        " finite and >= 0.",
        _attribute_or_input,
    ),
    Decision(
        "D13",
        "A negative axis is not in the text; it counts from the back, as in every engine.",
        lambda record: not record.negative_axis,
    ),
    Decision(
        "D14",
        "Lengths and their sum are exact integers of any size; nothing wraps around.",
        _uses(explicit, remainder),
    ),
    Decision(
        "D15",
        "An axis or length that is a float or a boolean is refused, as is an axis of another"
        " shape than the text allows.",
        lambda record: record.input(record.axis) is not None,
    ),
    Decision(
        "D16",
        "int64, uint64 and float64 data keep every bit; OpenVINO's CPU plugin computes them in"
        " 32 bits.",
        _data_may_be("int64", "uint64", "double"),
    ),
    Decision("D17", "String data is split exactly.", _data_may_be("string")),
    Decision("D18", "Rank-0 data is refused."),
    Decision(
        "D19",
        "Taking a part from the sequence with an index out of range is refused.",
        lambda record: record.is_sequence,
    ),
    Decision(
        "D20",
        "An initializer that is also a graph input is a default: lengths fed at run time are"
        " checked again.",
        lambda record: (
            record.vendor == "onnx" and any(entry.kind == "input" for entry in record.lengths)
        ),
    ),
    Decision(
        "D21",
        "What is refused at run time stays refused after `convert` and `lower`; no negative length"
        " reaches an engine.",
    ),
    Decision(
        "D22",
        "A wrong split in a branch that constants never take is a warning of `check`; the model"
        " runs.",
        lambda record: record.vendor == "onnx",
    ),
    Decision(
        "D23",
        "OpenVINO runs by `start_async()` and `wait()`: with one thread, `infer()` hides errors of"
        " the run.",
    ),
)
"""Every decision; D7 is worded once for each of its two cases."""
