"""Worked calls for the operator pages, one for each way in which a version can be told the lengths.

The operands are chosen here; what comes out is what the package answers.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorsplit.arrays.prepared import plan
from tensorsplit.core.dimensions import Shape
from tensorsplit.core.rules import Rule, ceil, chunk, equal, explicit, ones, remainder
from tensorsplit.core.schema import Operator

_SHAPE = (7, 4)
_EVEN_SHAPE = (6, 4)
_GIVEN: dict[Rule, tuple[Shape, object]] = {
    explicit: (_SHAPE, [2, 5]),
    remainder: (_SHAPE, [-1, 2]),
    equal: (_EVEN_SHAPE, 3),
    ceil: (_SHAPE, 3),
    chunk: (_SHAPE, 3),
    ones: (_SHAPE, None),
}


@dataclass(frozen=True, slots=True)
class Example:
    """A call and its answer.

    Attributes:
        shape: The shape of the data.
        operands: What is given, by name.
        sizes: The lengths of the parts on the axis.
    """

    shape: Shape
    operands: dict[str, object]
    sizes: Shape

    def call(self, operator: str) -> str:
        """The call in Python."""
        operands = "".join(f", {name}={value!r}" for name, value in self.operands.items())
        return f'ts.plan("{operator}", {self.shape!r}{operands}).sizes'


def examples_for(record: Operator) -> tuple[Example, ...]:
    """One example for each way of giving the lengths, and one for giving none."""
    cases = [
        (rule, lengths.operand) for lengths in record.lengths for rule in lengths.rules.values()
    ]
    if record.absent is not None:
        cases.append((record.absent, "num_outputs"))
    examples = [_example(record, rule, operand) for rule, operand in dict.fromkeys(cases)]
    return tuple(examples)


def _example(record: Operator, rule: Rule, operand: str) -> Example:
    shape, given = _GIVEN[rule]
    operands: dict[str, object] = {record.axis: 0}
    if given is not None:
        operands[operand] = given
    return Example(shape, operands, plan(record, shape, **operands).sizes)  # type: ignore[arg-type]
