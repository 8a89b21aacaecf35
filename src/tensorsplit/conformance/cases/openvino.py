"""OpenVINO IR: every axis, every way to say axis and lengths, the remainder, and refusals."""

from __future__ import annotations

from collections.abc import Iterator

from tensorsplit.conformance.case import SHAPE_CLASSES, Case
from tensorsplit.conformance.cases import stated
from tensorsplit.conformance.cases.making import draw, ir_case, spell_lengths
from tensorsplit.conformance.cases.sentences import rule
from tensorsplit.conformance.cases.shapes import Shaped, drawn_axis, drawn_rank, shaped
from tensorsplit.conformance.cases.stated import Stated
from tensorsplit.conformance.cases.versions import COMMON
from tensorsplit.conformance.models.ir_model import IrModel, IrOperand
from tensorsplit.conformance.models.onnx_model import Shape

VARIADIC, EQUAL = "openvino.VariadicSplit-1", "openvino.Split-1"
_SPELLINGS = ("constant", "runtime")
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def cases() -> Iterator[Case]:
    """The cases of this group."""
    for cut in (*stated.LENGTHS, *stated.NO_LENGTHS, *stated.REMAINDERS):
        for spelling in _SPELLINGS:
            for shape_class in SHAPE_CLASSES:
                yield _variadic(cut, spelling, shape_class)
    for cut in (*stated.EQUAL, *stated.COUNT_OF_NOTHING):
        for shape_class in SHAPE_CLASSES:
            yield _equal(cut, shape_class)
    for rank in range(1, 7):
        for axis in range(-rank, rank):
            key = f"axes {rank} {axis}"
            cut = draw(key, (*stated.LENGTHS, *stated.REMAINDERS))
            yield _variadic(cut, draw(f"s {key}", _SPELLINGS), "static", (rank, axis))
            yield _equal(draw(key, stated.EQUAL), "static", (rank, axis))
    for element_type in _INTEGERS:
        yield from _integers(element_type)


def _around(cut: Stated, shape_class: str, key: str, at: tuple[int, int] | None) -> Shaped:
    rank, axis = at or (0, 0)
    if at is None:
        rank = drawn_rank(shape_class, key)
        axis = drawn_axis(rank, key)
    return shaped(cut.dim, rank, axis, shape_class, key)


def _variadic(
    cut: Stated, spelling: str, shape_class: str, at: tuple[int, int] | None = None
) -> Case:
    key = f"variadic {cut} {spelling} {shape_class} {at}"
    around = _around(cut, shape_class, key, at)
    is_list, axis_spelling = draw(f"list {key}", (0, 1)), draw(f"axis {key}", _SPELLINGS)
    unknown: Shape | None = (None,) if draw(f"count {key}", (0, 1)) else None
    model = IrModel(
        operator=VARIADIC,
        element_type=draw(f"type {key}", COMMON),
        shape=around.shape,
        declared=around.declared,
        axis=IrOperand((around.axis,) if is_list else around.axis, axis_spelling),
        lengths=IrOperand(cut.said, spelling, "int64", unknown if spelling == "runtime" else None),
        outputs=len(cut.sizes),
        cut_axis=around.axis,
        sizes=cut.sizes,
    )
    rest = -1 in cut.said
    how = f"axis{'list' if is_list else ''}{'-runtime' if axis_spelling == 'runtime' else ''}"
    return ir_case(
        model,
        f"{'axes' if at else 'lengths'}-{spell_lengths(cut.said)}of{cut.dim}-{how}"
        f"{str(around.axis).replace('-', 'm')}",
        rule(VARIADIC, "remainder" if rest else "split_lengths", "axis-input"),
        shape_class=shape_class,
        decision="D7" if rest else "",
    )


def _equal(cut: Stated, shape_class: str, at: tuple[int, int] | None = None) -> Case:
    key = f"equal {cut} {shape_class} {at}"
    around = _around(cut, shape_class, key, at)
    axis_spelling = draw(f"axis {key}", _SPELLINGS)
    model = IrModel(
        operator=EQUAL,
        element_type=draw(f"type {key}", COMMON),
        shape=around.shape,
        declared=around.declared,
        axis=IrOperand(around.axis, axis_spelling),
        num_splits=cut.said,
        outputs=cut.said,
        cut_axis=around.axis,
        sizes=cut.sizes,
    )
    how = f"axis{'-runtime' if axis_spelling == 'runtime' else ''}"
    return ir_case(
        model,
        f"{'axes' if at else 'equal'}-{cut.said}of{cut.dim}-{how}"
        f"{str(around.axis).replace('-', 'm')}",
        rule(EQUAL, "num_splits", "axis-input"),
        shape_class=shape_class,
        decision="" if cut.dim else "D2",
    )


def _integers(element_type: str) -> Iterator[Case]:
    """Axis and lengths of any integer type."""
    for spelling in _SPELLINGS:
        model = IrModel(
            operator=VARIADIC,
            shape=(2, 7),
            declared=(2, 7),
            axis=IrOperand(1, spelling, element_type),
            lengths=IrOperand((3, 4), spelling, element_type),
            outputs=2,
            cut_axis=1,
            sizes=(3, 4),
        )
        yield ir_case(
            model, f"operands-{element_type}", rule(VARIADIC, "axis-input", "split_lengths")
        )
