"""The page of dialects: what other libraries and standards mean by a split."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tensorsplit.core.differences import EXAMPLES, given_a_number, number_operand
from tensorsplit.core.records import dialects, operators
from tensorsplit.core.schema import Operator
from tensorsplit.pages.content import RULES
from tensorsplit.pages.markdown import environment

DIALECTS = "seven-into-three.md"
_PLAIN = "counts from the back"


def dialects_page() -> str:
    """Return the page as Markdown."""
    template = environment(__package__).get_template("dialects.md.jinja")
    return template.render(
        counted=list(_counted()), listed=list(_listed()), remarks=list(_remarks())
    )


def _counted() -> Iterator[dict[str, Any]]:
    """Yield the versions and dialects that can be given one number, with what they answer."""
    for record in (*operators.values(), *dialects.values()):
        answers = [given_a_number(record, dim, number) for dim, number in EXAMPLES]
        if None not in answers:
            call, here = _calls(record, EXAMPLES[0][1])
            yield {"record": record, "call": call, "here": here, "answers": answers}


def _calls(record: Operator, number: int) -> tuple[str, str]:
    """Return how a record is written with a number, and the call of `ts` that does the same."""
    named = number_operand(record, number)
    if record.is_dialect and named is not None:
        given = str(named[1])
        axis = f", {record.axis}=0" if record.axis_default is None else ""
        return f"{record.id}(x, {given})", f'ts.like("{record.id}")(x, {given}{axis})'
    name, call = (named[0], f"{named[0]} = {named[1]}") if named else ("num_outputs", "")
    made = f'ts.plan("{record.id}", x.shape, {record.axis}=0, {name}={number})(x)'
    return call or f"{number} outputs", made


def _listed() -> Iterator[dict[str, object]]:
    """Yield the dialects that can be given lengths or indices, with their rule in words."""
    for record in dialects.values():
        for lengths in record.lengths:
            if 1 in lengths.rules:
                rule = RULES[lengths.rules[1]]
                yield {"record": record, "operand": lengths.operand, "rule": rule}


def _remarks() -> Iterator[dict[str, object]]:
    for record in dialects.values():
        for aspect, text in record.notes.items():
            if text != _PLAIN:
                yield {"record": record, "aspect": aspect, "text": text}
