"""What an ONNX engine has to refuse: lengths, counts and axes that make no cut.

Each row is a node in the words of the standard. That it makes no cut is stated, not computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tensorsplit.conformance.case import Case
from tensorsplit.conformance.cases.making import draw, onnx_case, spell_lengths
from tensorsplit.conformance.cases.sentences import rule
from tensorsplit.conformance.cases.uses import usable
from tensorsplit.conformance.cases.versions import OPSETS, SEQUENCES, SPLITS
from tensorsplit.conformance.models.onnx_model import Operand, Shape, SplitModel

ATTRIBUTE_SPLITS = ("onnx.Split-1", "onnx.Split-2", "onnx.Split-11")
INPUT_SPLITS = ("onnx.Split-13", "onnx.Split-18")
INPUTS = ("initializer", "constant", "runtime", "overridable")
_PLACES: tuple[tuple[str, ...], ...] = ((), ("if",), ("loop",), ("scan",), ("function",))
_USES = ("output", "SequenceLength", "ConcatFromSequence")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A node that is to be refused.

    Attributes:
        name: What is wrong with it, for the id.
        decision: The decision that it is about.
        keys: The sentences of the standard, by their short names.
        attributes: Its attributes.
        operand: Its second input.
        blank: Whether it has a second input without a name.
        outputs: How many outputs it has.
        shape: The shape of the data.
        element_type: The element type of the data.
        spelling: How the lengths are said, where the operand does not tell.
    """

    name: str
    keys: tuple[str, ...]
    decision: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)
    operand: Operand | None = None
    blank: bool = False
    outputs: int = 1
    shape: tuple[int, ...] = (6,)
    element_type: str = "float"
    spelling: str = ""


def refusal(
    operator: str,
    row: Refused,
    *,
    places: tuple[str, ...] = (),
    shape_class: str = "static",
    use: str = "",
    option: Any = None,
) -> Case:
    """The case of a row.

    Args:
        operator: The operator version.
        row: The node.
        places: Where it is.
        shape_class: ``static`` or ``dynamic-axis``.
        use: What is done with a sequence; drawn if it is not given.
        option: What the use is told.
    """
    key = f"{operator} {row} {places} {shape_class} {use}"
    declared: Shape = ("N", *row.shape[1:]) if shape_class == "dynamic-axis" else row.shape
    opsets = [o for o in OPSETS[operator] if "scan" not in places or o >= 9]
    opset = draw(f"opset {key}", opsets)
    if operator in SEQUENCES and not use:
        use = draw(f"use {key}", [use for use in _USES if usable(use, places, opset)])
        option = 0 if use == "ConcatFromSequence" else None
    model = SplitModel(
        operator=operator,
        opset=opset,
        element_type=row.element_type,
        shape=row.shape,
        declared=declared,
        attributes=row.attributes,
        operand=row.operand,
        blank=row.blank,
        outputs=1 if operator in SEQUENCES else row.outputs,
        axis=row.attributes.get("axis", 0),
        places=places,
        use=use,
        option=option,
    )
    said = row.spelling or ("" if row.operand or row.attributes else "absent")
    return onnx_case(
        model,
        f"refuse-{row.name}",
        rule(operator, *row.keys),
        shape_class=shape_class,
        spelling=said,
        decision=row.decision,
    )


def everywhere(operator: str, row: Refused) -> Iterator[Case]:
    """A row in the main graph, of a known and an unknown dimension, and in one other place."""
    for shape_class in ("static", "dynamic-axis")[: 1 + bool(row.shape)]:
        yield refusal(operator, row, shape_class=shape_class)
    places = [p for p in _PLACES[1:] if p != ("scan",) or OPSETS[operator][-1] >= 9]
    if row.shape:
        yield refusal(operator, row, places=draw(f"place {operator} {row}", places))


def _somewhere(operator: str, row: Refused) -> Iterator[Case]:
    """A row in the main graph, or (drawn) elsewhere; in both where engines fold constants."""
    first, *others = everywhere(operator, row)
    other = draw(f"somewhere {operator} {row}", others)
    if first.spelling in ("attribute", "initializer"):
        yield from (first, other)
    else:
        yield first if row.name.endswith("400000000") else draw(f"some {row}", (first, other))


def cases() -> Iterator[Case]:
    """The cases of this group."""
    for operator in (*SPLITS, *SEQUENCES):
        for row in _lengths(operator):
            yield from _somewhere(operator, row)
    for operator in SPLITS[:-1]:
        yield from _each(operator, _unequal())
    yield from _each("onnx.Split-18", (*_counts(), *_both_or_neither()))
    yield from _each("onnx.Split-1", _floats())
    for operator in SEQUENCES:
        for row in _chunks():
            yield from _somewhere(operator, row)


def _each(operator: str, rows: Iterable[Refused]) -> Iterator[Case]:
    for row in rows:
        yield from everywhere(operator, row)


_WRONG_SUMS = ((2, 3), (2, 5), (6, 6), (0, 0), (7,), (1, 1, 1))
_NEGATIVE = ((-1, 7), (7, -1), (8, -2), (-1, -1), (-1, 400_000_000), (2, -1, 5))
_TOO_LARGE = (
    *((2**32 + 1, 5), (2**32 + 6,), (2**63 - 1, 2**63 - 1, 8)),
    (2**62, 2**62, 2**62, 2**62, 6),
)


def _lengths(operator: str) -> Iterator[Refused]:
    """Lengths that make no cut of 6, said in every way that the version has."""
    for wrong, kind, decision, keys in (
        (_WRONG_SUMS, "sum", "D6", ("sum",)),
        (_NEGATIVE, "negative", "D7", ("not-negative",)),
        (_TOO_LARGE, "large", "D14", ("sum",)),
    ):
        for lengths in wrong:
            name = f"{kind}-{spell_lengths(lengths)}"
            yield from said(operator, lengths, name, decision=decision, keys=keys)
    if operator in SPLITS:
        for lengths, outputs in (((2, 4), 3), ((2, 2, 2), 2), ((6,), 2)):
            name = f"{len(lengths)}lengths-{outputs}outputs"
            yield from said(
                operator, lengths, name, decision="D5", keys=("outputs",), outputs=outputs
            )


def said(
    operator: str,
    lengths: tuple[int, ...],
    name: str,
    *,
    decision: str,
    keys: tuple[str, ...],
    outputs: int | None = None,
) -> Iterator[Refused]:
    """Lengths by every spelling that the version has."""
    count = len(lengths) if outputs is None else outputs
    rest: dict[str, Any] = {"name": name, "decision": decision, "keys": keys, "outputs": count}
    if operator in ATTRIBUTE_SPLITS:
        yield Refused(attributes={"split": lengths}, **rest)
        return
    for spelling in INPUTS:
        yield Refused(operand=Operand(lengths, spelling), **rest)


def _unequal() -> Iterator[Refused]:
    for dim, count in ((7, 3), (5, 2), (5, 4), (2, 3), (1, 2)):
        yield Refused(
            name=f"{dim}into{count}",
            decision="D3",
            keys=("equal",),
            outputs=count,
            shape=(dim,),
            spelling="absent",
        )


def _counts() -> Iterator[Refused]:
    for dim, count in ((5, 4), (3, 7), (4, 6), (9, 7), (1, 3)):
        yield Refused(
            name=f"{dim}into{count}",
            decision="D1",
            keys=("count",),
            attributes={"num_outputs": count},
            outputs=count,
            shape=(dim,),
        )
    for count, outputs in ((2, 3), (4, 3), (1, 2), (3, 1)):
        yield Refused(
            name=f"count{count}-{outputs}outputs",
            decision="D5",
            keys=("count", "outputs"),
            attributes={"num_outputs": count},
            outputs=outputs,
            shape=(12,),
        )
    for count in (0, -1):
        yield Refused(
            name=f"count{count}".replace("-", "m"),
            keys=("count",),
            attributes={"num_outputs": count},
            outputs=1,
        )


def _both_or_neither() -> Iterator[Refused]:
    for spelling in INPUTS:
        for lengths in ((3, 3), (2, 4)):
            yield Refused(
                name=f"both-{spell_lengths(lengths)}",
                decision="D4",
                keys=("one-of-two",),
                attributes={"num_outputs": 2},
                operand=Operand(lengths, spelling),
                outputs=2,
            )
    for blank in (False, True):
        for outputs in (1, 2, 4):
            yield Refused(
                name=f"neither-{outputs}outputs{'-blank' if blank else ''}",
                decision="D4",
                keys=("one-of-two",),
                blank=blank,
                outputs=outputs,
            )


def _floats() -> Iterator[Refused]:
    """The second input of Split-1."""
    for name, lengths in {
        "half": (1.5, 4.5),
        "nan": (float("nan"), 6.0),
        "inf": (float("inf"), 6.0),
        "negative": (-1.0, 7.0),
        "sum": (2.0, 3.0),
    }.items():
        for spelling in ("initializer", "runtime"):
            yield Refused(
                name=f"float-{name}",
                decision="D12",
                keys=("floats",),
                operand=Operand(lengths, spelling, "float"),
                outputs=2,
            )
    yield Refused(
        name="attribute-and-input",
        decision="D12",
        keys=("lengths-attribute", "floats"),
        attributes={"split": (2, 4)},
        operand=Operand((2.0, 4.0), "initializer", "float"),
        outputs=2,
    )


def _chunks() -> Iterator[Refused]:
    for spelling in INPUTS:
        for length in (0, -1, -(2**63)):
            for element_type in ("int64", "int32")[: 1 + (length >= -1)]:
                kind = "" if element_type == "int64" else "-i32"
                yield Refused(
                    name=f"chunk-{spell_lengths((length,))}{kind}",
                    decision="D10",
                    keys=("chunk-positive",),
                    operand=Operand(length, spelling, element_type),
                )
