"""What an engine has to refuse in an OpenVINO IR."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from tensorsplit.conformance.case import Case
from tensorsplit.conformance.cases.making import ir_case, spell_lengths
from tensorsplit.conformance.cases.openvino import EQUAL, VARIADIC
from tensorsplit.conformance.cases.sentences import rule
from tensorsplit.conformance.models.ir_model import IrModel, IrOperand

_SPELLINGS = ("constant", "runtime")
_LENGTHS: Mapping[str, tuple[tuple[int, ...], ...]] = MappingProxyType(
    {
        "D6": ((2, 3), (2, 5), (0, 0), (7,), (6, 6)),
        "D7": (
            *((-1, 7), (7, -1), (-1, 400_000_000), (-1, -1), (-1, 2, -1)),
            *((-2, 8), (8, -2), (-6, 12), (-1, -2), (-(2**63), 6)),
        ),
        "D14": (
            *((2**32 + 1, 5), (2**32 + 6,), (2**63 - 1, 2**63 - 1, 8)),
            *((2**32 + 1, -1), (2**62, 2**62, 2**62, 2**62, 6)),
        ),
    }
)
_UNSIGNED = ((2**64 - 1, 7), (2**63, 2**63, 6), (2**32 - 1, 7))
"""Lengths of an unsigned type that would fit if they were negative, or wrapped."""

_AXES: Mapping[str, IrOperand] = MappingProxyType(
    {
        "half": IrOperand(0.9, "constant", "float"),
        "float": IrOperand(0.0, "constant", "float"),
        "float16": IrOperand(0.0, "constant", "float16"),
        "bool": IrOperand(False, "constant", "bool"),
        "two": IrOperand((0, 0)),
        "none": IrOperand(()),
        "2d": IrOperand(((0,),)),
    }
)
"""Axes that are no integer, or more than one."""

_OTHER_LENGTHS: Mapping[str, IrOperand] = MappingProxyType(
    {
        "float": IrOperand((2.0, 4.0), "constant", "float"),
        "half": IrOperand((2.5, 3.5), "constant", "float"),
        "bool": IrOperand((True, False), "constant", "bool"),
        "2d": IrOperand(((2, 4),)),
        "scalar": IrOperand(6),
    }
)
"""Lengths that are no list of integers."""


def cases() -> Iterator[Case]:
    """The cases of this group."""
    for decision, rows in _LENGTHS.items():
        for lengths in rows:
            yield from _wrong(lengths, "int64", decision)
    for lengths in _UNSIGNED:
        yield from _wrong(lengths, "uint64", "D14")
    yield from _counts()
    for name, axis in _AXES.items():
        yield from _both(f"axis-{name}", "D15", "axis-input", axis=axis)
    for name, operand in _OTHER_LENGTHS.items():
        yield _variadic(f"lengths-{name}", "D15", "split_lengths", lengths=operand)
    for outside in (1, -2, 2**32):
        name = f"axis{outside}".replace("-", "m")
        for spelling in _SPELLINGS:
            yield from _both(name, "", "axis-input", axis=IrOperand(outside, spelling))
    yield _equal("axis-list", "D15", "axis-input", axis=IrOperand((0,)))
    yield from _both("rank0", "D18", "rank", shape=(), declared=())


def _wrong(lengths: tuple[int, ...], kind: str, decision: str) -> Iterator[Case]:
    for spelling in _SPELLINGS:
        for dim in (6, "?"):
            yield _variadic(
                f"{kind}-{spell_lengths(lengths)}",
                decision,
                "remainder" if -1 in lengths else "split_lengths",
                lengths=IrOperand(lengths, spelling, kind),
                outputs=len(lengths),
                declared=(dim if isinstance(dim, int) else None,),
            )


def _counts() -> Iterator[Case]:
    for lengths, outputs in (((2, 4), 3), ((2, 2, 2), 2), ((6,), 2)):
        for spelling in _SPELLINGS:
            yield _variadic(
                f"{len(lengths)}lengths-{outputs}outputs",
                "D5",
                "outputs",
                lengths=IrOperand(lengths, spelling),
                outputs=outputs,
            )
    for count, outputs in ((4, 4), (2, 3), (3, 2), (0, 1), (-3, 3), (7, 7)):
        name = f"count{count}-{outputs}outputs".replace("-3", "m3")
        for declared in ((6,), (None,)):
            yield _equal(
                name, "D5", "num_splits", num_splits=count, outputs=outputs, declared=declared
            )


def _both(name: str, decision: str, key: str, **fields: Any) -> Iterator[Case]:
    yield _variadic(name, decision, key, **fields)
    yield _equal(name, decision, key, **fields)


def _variadic(name: str, decision: str, key: str, **fields: Any) -> Case:
    """A VariadicSplit of 6 into [2, 4], but for what is told."""
    said = {"lengths": IrOperand((2, 4)), "outputs": 2, **fields}
    return _case(VARIADIC, name, decision, key, said)


def _equal(name: str, decision: str, key: str, **fields: Any) -> Case:
    """A Split of 6 into 2, but for what is told."""
    return _case(EQUAL, name, decision, key, {"num_splits": 2, "outputs": 2, **fields})


def _case(operator: str, name: str, decision: str, key: str, said: dict[str, Any]) -> Case:
    model = IrModel(
        operator=operator,
        **{"shape": (6,), "declared": (6,), "axis": IrOperand(0), **said},
    )
    axis = "-axis-runtime" if model.axis.spelling == "runtime" else ""
    return ir_case(
        model,
        f"refuse-{name}{axis}",
        rule(operator, key),
        shape_class="dynamic-axis" if None in model.declared else "static",
        decision=decision,
    )
