"""What tensorsplit does where the standards are silent or contradict themselves (D1-D23).

Which decisions concern an operator version follows from its record, not from its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tensorsplit.core.errors import KINDS, Kind
from tensorsplit.core.rules import Rule, ceil, chunk, equal, explicit, remainder
from tensorsplit.core.schema import Operator


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision of ``docs/errata.md``, and whether it matters for an operator version."""

    id: str
    text: str
    concerns: Callable[[Operator], bool]

    @property
    def refusals(self) -> tuple[Kind, ...]:
        """What is raised where the decision is to refuse."""
        return tuple(kind for kind in KINDS.values() if self.id in kind.decisions)


def decisions_for(record: Operator) -> tuple[Decision, ...]:
    """The decisions that matter for an operator version, in order."""
    return tuple(decision for decision in DECISIONS if decision.concerns(record))


def rules_of(record: Operator) -> Iterator[Rule]:
    """Every length rule that the version can use."""
    for lengths in record.lengths:
        yield from lengths.rules.values()
    if record.absent is not None:
        yield record.absent


def _uses(*rules: Rule) -> Callable[[Operator], bool]:
    return lambda record: any(rule in rules for rule in rules_of(record))


def _data_may_be(*elements: str) -> Callable[[Operator], bool]:
    allowed = set(elements)
    return lambda record: not allowed.isdisjoint(record.types_of(record.inputs[0]).element_types)


def _always(_record: Operator) -> bool:
    return True


def _attribute_or_input(record: Operator) -> bool:
    """Whether one operand may be an attribute or an input."""
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
    Decision("D18", "Rank-0 data is refused.", _always),
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
        _always,
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
        _always,
    ),
)
"""Every decision; D7 is worded once for each of its two cases."""
