"""What each version may be given, and what it makes of that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import z3

from tensorsplit.core.operands import Operand
from tensorsplit.core.records import operators
from tensorsplit.core.resolve import Intent, bind
from tensorsplit.core.schema import Lengths, Operator
from tests.core.proofs.numbers import MOST, Whole, term_of
from tests.core.proofs.standard import STANDARD, Statement

LONGEST = (1 << 63) - 1
DIM = z3.Int("dim")
IS_DIMENSION = z3.And(DIM >= 0, DIM <= LONGEST)


class Form(NamedTuple):
    """A way in which a version is given lengths; ``lengths`` is None where nothing gives them."""

    operator: Operator
    lengths: Lengths | None
    rank: int = 1

    @property
    def name(self) -> str:
        """As the table of the standard has it."""
        if self.lengths is None:
            return "nothing"
        scalar = "scalar " if self.rank == 0 and self.lengths.kind == "input" else ""
        return f"{scalar}{self.lengths.kind} {self.lengths.operand}"

    @property
    def statement(self) -> Statement:
        """What the standard says of it."""
        return STANDARD[self.operator.id][self.name]

    @property
    def is_list(self) -> bool:
        """Whether it is given a length for each part."""
        return self.lengths is not None and self.rank == 1

    @property
    def counts(self) -> bool:
        """Whether it is given how many parts there are."""
        if self.lengths is None:
            return not self.operator.is_sequence
        return self.lengths.kind == "attribute" and self.rank == 0

    def numbers(self, count: int) -> tuple[Any, ...]:
        """What it is given for so many parts."""
        if self.is_list:
            return tuple(Whole(z3.Int(f"length {place}")) for place in range(count))
        if self.counts:
            return (count,)
        return () if self.lengths is None else (Whole(z3.Int("size")),)

    def ask(self, given: Sequence[Any] | None, outputs: int | None, **more: Operand) -> Intent:
        """The intent of a node; None stands for lengths known only at run time."""
        operands = [("axis", Operand((0,), 0)), *more.items()]
        if self.lengths is not None:
            operand, kind = self.lengths.operand, self.lengths.kind
            is_float = (self.operator.id, kind) == ("onnx.Split-1", "input")
            values = None if given is None else tuple(given)
            is_input = Operand(values, self.rank, "float" if is_float else None, kind)
            operands.append((operand, is_input))
        return bind(self.operator, operands, outputs)


def _forms() -> Iterator[Form]:
    """Every version with everything that may give its lengths."""
    for operator in operators.values():
        if operator.absent is not None:
            yield Form(operator, None)
        for lengths in operator.lengths:
            for rank in lengths.rules:
                yield Form(operator, lengths, rank)


FORMS = list(_forms())


def counts_of(form: Form) -> list[int | None]:
    """The numbers of parts to prove it for; None where the dimension decides."""
    return list(range(1, MOST + 1)) if form.is_list or form.counts else [None]


__all__ = ["DIM", "FORMS", "IS_DIMENSION", "LONGEST", "Form", "counts_of", "term_of"]
