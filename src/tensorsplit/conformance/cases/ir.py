"""OpenVINO IR: every axis, every way to say axis and lengths, the remainder, and refusals."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tensorsplit.conformance.case import SHAPE_CLASSES, Case
from tensorsplit.conformance.cases.making import case_of, kinds_of_data, sampled_rank, shaped
from tensorsplit.conformance.cases.onnx_parts import TYPE_SPLITS
from tensorsplit.conformance.cases.split_encodings import (
    COMMON,
    EQUAL,
    LENGTHS,
    REMAINDERS,
    Stated,
    lengths_text,
    sample,
)
from tensorsplit.conformance.data import ALLOWED
from tensorsplit.conformance.models.onnx_model import CaseOperand, Fields, Shape

VARIADIC, SPLIT = "openvino.VariadicSplit-1", "openvino.Split-1"
_FORMS = ("constant", "runtime")
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def cases() -> Iterator[Case]:
    """Yield the cases of this group."""
    for split, form, cls in product((*LENGTHS, *REMAINDERS), _FORMS, SHAPE_CLASSES):
        yield _sampled(split, form, cls)
    for split, cls in product(EQUAL, SHAPE_CLASSES):
        yield _sampled(split, "", cls)
    lengths = [split for split in (*LENGTHS, *REMAINDERS) if split.dim]
    counts = [split for split in EQUAL if split.dim]
    for rank in range(1, 7):
        for axis in range(-rank, rank):
            key = f"axes {rank} {axis}"
            form = sample(f"s {key}", _FORMS)
            yield _sampled(sample(key, lengths), form, "static", (rank, axis))
            yield _sampled(sample(key, counts), "", "static", (rank, axis))
    for element_type, form in product(_INTEGERS, _FORMS):
        operands: Fields = {
            "axis_operand": CaseOperand(1, form, element_type),
            "operand": CaseOperand((3, 4), form, element_type),
        }
        name, rules = f"operands-{element_type}", ("axis-input", "split_lengths")
        yield case_of(VARIADIC, name, *rules, shape=(2, 7), sizes=(3, 4), axis=1, **operands)
    for element_type in ALLOWED[VARIADIC]:
        yield from _types(element_type)
    yield from _refusals()


def _types(element_type: str) -> Iterator[Case]:
    """Yield an element type, in numbers that are plain and in extreme ones."""
    rows: dict[str, tuple[str, tuple[int, ...], Fields]] = {
        name: (VARIADIC, sizes, {"operand": CaseOperand(sizes)})
        for name, sizes in TYPE_SPLITS.items()
    }
    rows["equal"] = (SPLIT, (3, 3, 3), {"attributes": {"num_splits": 3}})
    for name, (operator, sizes, given) in rows.items():
        given |= {"shape": (2, sum(sizes)), "axis": 1, "axis_operand": CaseOperand(1)}
        for kind, fields in kinds_of_data(element_type):
            yield case_of(operator, f"{name}-{kind}", "any-type", sizes=sizes, **given, **fields)


def _sampled(split: Stated, form: str, cls: str, at: tuple[int, int] | None = None) -> Case:
    """Build one split by lengths in a form, or by a count; the rest is sampled."""
    key = f"variadic {split} {form} {cls} {at}" if form else f"equal {split} {cls} {at}"
    rank = at[0] if at else sampled_rank(cls, key)
    axis = at[1] if at else sample(f"axis {key}", range(-rank, rank))
    axis_form = sample(f"axis {key}", _FORMS)
    is_list = bool(form and sample(f"list {key}", (0, 1)))
    how = f"axis{'list' * is_list}{'-runtime' if axis_form == 'runtime' else ''}"
    given: Fields = {"attributes": {"num_splits": split.requested}}
    rule, text, decision = "num_splits", f"{split.requested}", "" if split.dim else "D2"
    if form:
        unknown: Shape | None = (None,) if sample(f"count {key}", (0, 1)) else None
        declared = unknown if form == "runtime" else None
        given = {"operand": CaseOperand(split.requested, form, declared=declared)}
        has_rest = -1 in split.requested
        rule, text = "remainder" if has_rest else "split_lengths", lengths_text(split.requested)
        decision = "D7" if has_rest else ""
    group = "axes" if at else "lengths" if form else "equal"
    return case_of(
        VARIADIC if form else SPLIT,
        f"{group}-{text}of{split.dim}-{how}{f'{axis}'.replace('-', 'm')}",
        *(rule, "axis-input"),
        shape_class=cls,
        decision=decision,
        element_type=sample(f"type {key}", COMMON),
        axis_operand=CaseOperand((axis,) if is_list else axis, axis_form),
        sizes=split.sizes,
        **shaped(split.dim, rank, axis, cls, key),
        **given,
    )


_LENGTHS: tuple[tuple[str, str, tuple[tuple[int, ...], ...]], ...] = (
    ("int64", "D6", ((2, 3), (2, 5), (0, 0), (7,), (6, 6))),
    ("int64", "D7", ((-1, 7), (7, -1), (-1, 400_000_000), (-1, -1), (-1, 2, -1))),
    ("int64", "D7", ((-2, 8), (8, -2), (-6, 12), (-1, -2), (-(2**63), 6))),
    ("int64", "D14", ((2**32 + 1, 5), (2**32 + 6,), (2**63 - 1, 2**63 - 1, 8))),
    ("int64", "D14", ((2**32 + 1, -1), (2**62, 2**62, 2**62, 2**62, 6))),
    ("uint64", "D14", ((2**64 - 1, 7), (2**63, 2**63, 6), (2**32 - 1, 7))),
)
"""Lengths that make no split of 6; the last would fit if they were negative, or wrapped."""

_AXES = {
    "half": CaseOperand(0.9, "constant", "float"),
    "float": CaseOperand(0.0, "constant", "float"),
    "float16": CaseOperand(0.0, "constant", "float16"),
    "bool": CaseOperand(False, "constant", "bool"),
    "two": CaseOperand((0, 0)),
    "none": CaseOperand(()),
    "2d": CaseOperand(((0,),)),
}
"""Axes that are not one integer: none, or more than one."""

_OTHER_LENGTHS = {
    "float": CaseOperand((2.0, 4.0), "constant", "float"),
    "half": CaseOperand((2.5, 3.5), "constant", "float"),
    "bool": CaseOperand((True, False), "constant", "bool"),
    "2d": CaseOperand(((2, 4),)),
    "scalar": CaseOperand(6),
}
"""Lengths that are not a list of integers."""


def _refusals() -> Iterator[Case]:
    """Yield the cases that an engine has to refuse."""
    for kind, decision, rows in _LENGTHS:
        for lengths, form, declared in product(rows, _FORMS, ((6,), (None,))):
            yield _refused(
                VARIADIC,
                f"{kind}-{lengths_text(lengths)}",
                "remainder" if -1 in lengths else "split_lengths",
                decision,
                operand=CaseOperand(lengths, form, kind),
                outputs=len(lengths),
                declared=declared,
            )
    for (lengths, outputs), form in product((((2, 4), 3), ((2, 2, 2), 2), ((6,), 2)), _FORMS):
        given: Fields = {"operand": CaseOperand(lengths, form), "outputs": outputs}
        name = f"{len(lengths)}lengths-{outputs}outputs"
        yield _refused(VARIADIC, name, "outputs", "D5", **given)
    for count, outputs in ((4, 4), (2, 3), (3, 2), (0, 1), (-3, 3), (7, 7)):
        name = f"count{count}-{outputs}outputs".replace("-3", "m3")
        for declared in ((6,), (None,)):
            given = {"attributes": {"num_splits": count}, "outputs": outputs, "declared": declared}
            yield _refused(SPLIT, name, "num_splits", "D5", **given)
    for name, operand in _OTHER_LENGTHS.items():
        yield _refused(VARIADIC, f"lengths-{name}", "split_lengths", "D15", operand=operand)
    yield _refused(SPLIT, "axis-list", "axis-input", "D15", axis_operand=CaseOperand((0,)))
    for operator in (VARIADIC, SPLIT):
        for name, axis in _AXES.items():
            yield _refused(operator, f"axis-{name}", "axis-input", "D15", axis_operand=axis)
        for outside, form in product((1, -2, 2**32), _FORMS):
            name = f"axis{outside}".replace("-", "m")
            axis = CaseOperand(outside, form)
            yield _refused(operator, name, "axis-input", axis_operand=axis)
        yield _refused(operator, "rank0", "rank", "D18", shape=())


def _refused(operator: str, name: str, key: str, decision: str = "", **fields: object) -> Case:
    """Return a split of 6 into two parts; `fields` replace its own."""
    lengths = {"operand": CaseOperand((2, 4))} if operator == VARIADIC else {}
    given: Fields = {
        "attributes": {} if lengths else {"num_splits": 2},
        **lengths,
        "axis_operand": CaseOperand(0),
        "shape": (6,),
        "outputs": 2,
        **fields,
    }
    at_run_time = "-axis-runtime" if given["axis_operand"].form == "runtime" else ""
    return case_of(operator, f"refuse-{name}{at_run_time}", key, decision=decision, **given)
