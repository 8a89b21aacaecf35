"""Operands as messages show them, and what is said of one that does not fit."""

from __future__ import annotations

import pytest

import tensorsplit as ts
from tensorsplit.core.operands import Operand, check_operand
from tensorsplit.core.records import operators

OTHER_WAYS = (
    "use num_outputs=2 for 2 parts, split_to_sequence for chunks of 2, or give a list (1-D)"
)


@pytest.mark.parametrize(
    ("operand", "shown"),
    [
        (Operand(None, 1), "known at run time"),
        (Operand((7,), 0), "7"),
        (Operand((7,), 1), "[7]"),
        (Operand(tuple(range(12)), 1), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]"),
        (Operand(tuple(range(13)), 1), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ...]"),
    ],
)
def test_how_an_operand_is_shown(operand: Operand, shown: str) -> None:
    assert str(operand) == shown


@pytest.mark.parametrize(
    ("operator", "operands", "fix"),
    [
        (
            "onnx.Split-18",
            {"split": 2},
            OTHER_WAYS,
        ),
        (
            "onnx.Split-13",
            {"split": 2},
            OTHER_WAYS,
        ),
        ("openvino.VariadicSplit-1", {"axis": 0, "split_lengths": 2}, "give a list (1-D)"),
        (
            "openvino.VariadicSplit-1",
            {"axis": [0, 1], "split_lengths": [2, 4]},
            "give a scalar or a list of one element",
        ),
        ("openvino.Split-1", {"axis": [0], "num_splits": 2}, "give a scalar"),
    ],
)
def test_an_operand_of_another_rank_is_answered_with_what_the_operator_has(
    operator: str, operands: dict[str, object], fix: str
) -> None:
    with pytest.raises(ts.SplitError) as caught:
        ts.plan(operator, (6,), **operands)  # type: ignore[call-overload]
    assert (caught.value.code, caught.value.fix) == ("TS106", fix)


@pytest.mark.parametrize("version", operators)
def test_of_another_element_type_it_is_said_which_would_do(version: str) -> None:
    """Up to four types are named; integers of no type of their own are int64."""
    record = operators[version]
    for parameter in record.inputs[1:]:
        allowed = record.types_of(parameter).element_types
        wanted = ", ".join(sorted(allowed)) if len(allowed) < 5 else "integers"
        rank = 1 if any(each.operand == parameter.name for each in record.lengths) else 0
        for element_type in ("float", "double", "int32", "int64", "uint8", "string", "bool"):
            operand = Operand((1,), rank, element_type, "input")
            if element_type in allowed:
                check_operand(record, parameter.name, "input", operand)
                continue
            with pytest.raises(ts.SplitError) as caught:
                check_operand(record, parameter.name, "input", operand)
            assert caught.value.code == "TS105"
            assert caught.value.fix == f"give {wanted}"
            assert f"of type {element_type}" in caught.value.problem
        untyped = Operand((1,), rank, None, "input")
        if "int64" in allowed:
            check_operand(record, parameter.name, "input", untyped)
        else:
            with pytest.raises(ts.SplitError, match=r"TS105.*of type integer"):
                check_operand(record, parameter.name, "input", untyped)
        check_operand(record, parameter.name, "input", Operand(None, None, None, "input"))
