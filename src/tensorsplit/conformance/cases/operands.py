"""What else an ONNX engine has to refuse: operands that are of the wrong kind, place or value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tensorsplit.conformance.case import Case
from tensorsplit.conformance.cases.refusals import (
    ATTRIBUTE_SPLITS,
    INPUT_SPLITS,
    Refused,
    everywhere,
    refusal,
)
from tensorsplit.conformance.cases.versions import SEQUENCES, SPLITS
from tensorsplit.conformance.models.onnx_model import Operand

_POSITIONS = (2, -3, 100, 2**40, -(2**63))
"""Positions that a sequence of two does not have."""


def cases() -> Iterator[Case]:
    """The cases of this group."""
    for operator in (*SPLITS, *SEQUENCES):
        for row in (*_axes(operator), *_types(operator)):
            yield from everywhere(operator, row)
    for operator in INPUT_SPLITS:
        for row in _second_inputs():
            yield from everywhere(operator, row)
    for operator in SEQUENCES:
        for row in _sequence_inputs():
            yield from everywhere(operator, row)
        yield from _positions(operator)
    for operator in (*INPUT_SPLITS, *SEQUENCES):
        for row in _overridden():
            yield from everywhere(operator, row)
    yield from _of_other_versions()


def _lengths(operator: str, outputs: int = 2) -> dict[str, Any]:
    """The lengths [2, 4] in the words of a version."""
    if operator in ATTRIBUTE_SPLITS:
        return {"attributes": {"split": (2, 4)}, "outputs": outputs}
    return {"operand": Operand((2, 4), "initializer"), "outputs": outputs}


def _axes(operator: str) -> Iterator[Refused]:
    for axis, shape in ((1, (6,)), (-2, (6,)), (2, (6, 6)), (-3, (6, 6)), (2**31, (6, 6))):
        said = _lengths(operator)
        said["attributes"] = {**said.get("attributes", {}), "axis": axis}
        name = f"axis{axis}-rank{len(shape)}".replace("axis-", "axism")
        yield Refused(name=name, keys=("axis-range",), shape=shape, **said)
    yield Refused(
        name="rank0",
        decision="D18",
        keys=("rank",),
        shape=(),
        **_lengths(operator),
    )


_NOT_ALLOWED = {
    "onnx.Split-1": ("int32", "int64", "string"),
    "onnx.Split-2": ("bfloat16",),
    "onnx.Split-11": ("bfloat16",),
    "onnx.Split-13": (),
    "onnx.Split-18": (),
    "onnx.SplitToSequence-11": ("bfloat16",),
    "onnx.SplitToSequence-24": (),
}
"""Element types that the page of a version does not list, and a later version's does."""


def _types(operator: str) -> Iterator[Refused]:
    for element_type in _NOT_ALLOWED[operator]:
        yield Refused(
            name="type",
            keys=("types",),
            element_type=element_type,
            **_lengths(operator),
        )


def _second_inputs() -> Iterator[Refused]:
    """What is no 1-D list of int64, at Split."""
    for spelling in ("initializer", "runtime"):
        for name, operand in {
            "lengths-i32": Operand((2, 4), spelling, "int32"),
            "lengths-float": Operand((2.0, 4.0), spelling, "float"),
            "lengths-scalar": Operand(6, spelling),
            "lengths-2d": Operand(((2, 4),), spelling),
        }.items():
            outputs = 1 if name == "lengths-scalar" else 2
            yield Refused(name=name, keys=("lengths-type",), operand=operand, outputs=outputs)


def _sequence_inputs() -> Iterator[Refused]:
    """What is neither a number nor a list of int32 or int64, at SplitToSequence."""
    for spelling in ("initializer", "runtime"):
        for name, operand in {
            "lengths-i16": Operand((2, 4), spelling, "int16"),
            "lengths-float": Operand((2.0, 4.0), spelling, "float"),
            "chunk-float": Operand(2.0, spelling, "float"),
            "lengths-2d": Operand(((2, 4),), spelling),
        }.items():
            yield Refused(name=name, keys=("lengths-or-chunk",), operand=operand)


def _positions(operator: str) -> Iterator[Case]:
    row: dict[str, Any] = {
        "decision": "D19",
        "keys": ("position",),
        "operand": Operand((2, 4), "initializer"),
    }
    for position in _POSITIONS:
        name = f"at{position}".replace("-", "m")
        for is_runtime in (False, True):
            for shape_class in ("static", "dynamic-axis"):
                yield refusal(
                    operator,
                    Refused(name=f"{name}{'-runtime' if is_runtime else ''}", **row),
                    shape_class=shape_class,
                    use="SequenceAt",
                    option=((position,), is_runtime),
                )
        yield refusal(
            operator,
            Refused(name=f"{name}", **row),
            use="SequenceErase",
            option=((position,), position == 2),
        )
        if position != 2:  # which is where the end is
            yield refusal(
                operator,
                Refused(name=f"{name}", **row),
                use="SequenceInsert",
                option=((position,), position == 100),
            )


def _overridden() -> Iterator[Refused]:
    """A default that is right, and a value that is not; and a wrong default that is left."""
    for name, operand in {
        "fed-sum": Operand((2, 3), "overridable", default=(2, 4)),
        "fed-large": Operand((5, 4), "overridable", default=(2, 4)),
        "fed-negative": Operand((-1, 7), "overridable", default=(2, 4)),
        "default": Operand((5, 5), "overridable"),
    }.items():
        yield Refused(
            name=f"overridable-{name}",
            decision="D20",
            keys=("initializer", "sum"),
            operand=operand,
            outputs=2,
        )


def _of_other_versions() -> Iterator[Case]:
    """Operands that another version of the operator has."""
    for operator in SPLITS[:-1]:
        row = Refused(
            name="num_outputs",
            keys=("signature",),
            attributes={"num_outputs": 2},
            outputs=2,
        )
        yield refusal(operator, row)
    for operator in INPUT_SPLITS:
        row = Refused(
            name="split-attribute",
            keys=("signature",),
            attributes={"split": (2, 4)},
            outputs=2,
        )
        yield refusal(operator, row)
    for operator in ("onnx.Split-2", "onnx.Split-11"):
        row = Refused(
            name="split-input",
            keys=("signature",),
            operand=Operand((2, 4), "initializer"),
            outputs=2,
        )
        yield refusal(operator, row)
