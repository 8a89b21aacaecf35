"""From what a version asks for to the words of another version."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tensorsplit.core.emit import AtRunTime, Emission, emit
from tensorsplit.core.operands import Operand
from tensorsplit.core.records import operators
from tensorsplit.core.resolve import Intent, bind
from tensorsplit.core.rules import equal
from tests.refusals import refused

AT_RUN_TIME = Operand(None, 1, "int64", "input")
FLOATS_AT_RUN_TIME = Operand(None, 1, "float", "input")


def constants(values: Any, spelling: str, element_type: str | None = None) -> Operand:
    items = tuple(values) if isinstance(values, list) else (values,)
    return Operand(items, int(isinstance(values, list)), element_type, spelling)


def intent(operator: str, outputs: int = 2, **operands: Operand) -> Intent:
    operands.setdefault("axis", constants(1, "attribute"))
    return bind(operators[operator], operands.items(), outputs)


def said(made: Emission) -> tuple[Any, Any]:
    return dict(made.attributes), dict(made.inputs)


def test_an_attribute_becomes_an_input_and_the_other_way_round() -> None:
    old = intent("onnx.Split-11", split=constants([2, 4], "attribute"))
    new = intent("onnx.Split-13", split=constants([2, 4], "input", "int64"))
    assert said(emit(old, operators["onnx.Split-13"])) == ({}, {"split": (2, 4)})
    assert said(emit(new, operators["onnx.Split-11"])) == ({"split": (2, 4)}, {})
    assert said(emit(new, operators["onnx.Split-1"])) == ({"split": (2, 4)}, {})


def test_equal_parts_need_no_operand_before_opset_18_and_a_count_since() -> None:
    """But where 5 may turn up, `num_outputs` would split it into 3 and 2 (D3), and onnxruntime
    takes 0 without it only (D2)."""
    old = intent("onnx.Split-13")
    assert said(emit(old, operators["onnx.Split-2"])) == ({}, {})
    assert said(emit(old, operators["onnx.Split-18"], 6)) == ({"num_outputs": 2}, {})
    assert said(emit(old, operators["onnx.Split-18"], 0)) == ({}, {"split": (0, 0)})
    assert said(emit(old, operators["onnx.Split-18"])) == ({}, {"split": AtRunTime.COMPUTED})
    even = intent("onnx.Split-18", num_outputs=constants(2, "attribute"))
    assert said(emit(even, operators["onnx.Split-13"], 6)) == ({}, {})


def test_a_count_that_is_not_known_yet_is_the_number_of_outputs() -> None:
    """D5: no other one is right; a count that is known is taken as it is."""
    counted = intent("onnx.Split-18", 3, num_outputs=constants(3, "attribute"))
    for known in (counted, replace(counted, given=None)):
        assert said(emit(known, operators["onnx.Split-18"])) == ({"num_outputs": 3}, {})
    other = replace(counted, outputs=2)
    assert said(emit(other, operators["openvino.Split-1"], 6)) == ({"num_splits": 3}, {})


def test_lengths_that_may_be_negative_are_no_remainder() -> None:
    target = operators["openvino.VariadicSplit-1"]
    lengths = intent("onnx.Split-13", split=AT_RUN_TIME)
    assert said(emit(lengths, target)) == ({}, {"split_lengths": AtRunTime.COMPUTED})
    empty = intent("onnx.Split-11", split=constants([0, 4], "attribute"))
    assert said(emit(empty, target)) == ({}, {"split_lengths": (0, 4)})
    negative = intent("onnx.Split-11", split=constants([-1, 7], "attribute"))
    assert said(emit(negative, target)) == ({}, {"split_lengths": AtRunTime.COMPUTED})
    with refused("TS301"):
        emit(negative, target, 6)


def test_uneven_parts_become_lengths_numbers_if_the_dimension_is_known() -> None:
    uneven = intent("onnx.Split-18", 3, num_outputs=constants(3, "attribute"))
    target = operators["onnx.Split-13"]
    assert said(emit(uneven, target, 7)) == ({}, {"split": (3, 3, 1)})
    assert said(emit(uneven, target)) == ({}, {"split": AtRunTime.COMPUTED})
    assert said(emit(uneven, operators["onnx.Split-11"], 7)) == ({"split": (3, 3, 1)}, {})
    with refused("TS310", "run time", operator="onnx.Split-18"):
        emit(uneven, operators["onnx.Split-11"])
    with refused("TS310"):
        emit(uneven, operators["onnx.Split-1"])
    into_four = intent("onnx.Split-18", 4, num_outputs=constants(4, "attribute"))
    with refused("TS304"):
        emit(into_four, target, 5)


def test_lengths_of_the_running_model_go_where_lengths_are_an_input_of_integers() -> None:
    lengths = intent("onnx.Split-13", split=AT_RUN_TIME)
    assert said(emit(lengths, operators["onnx.Split-18"])) == ({}, {"split": AtRunTime.GIVEN})
    for older in ("onnx.Split-11", "onnx.Split-2", "onnx.Split-1"):
        with refused("TS310", "run time", operator="onnx.Split-13", parameter="split"):
            emit(lengths, operators[older])


def test_floats_of_the_running_model_become_no_integers() -> None:
    floats = intent("onnx.Split-1", split=FLOATS_AT_RUN_TIME)
    with refused("TS310", "floats", operator="onnx.Split-1"):
        emit(floats, operators["onnx.Split-13"])
    given = intent("onnx.Split-1", split=constants([2.0, 4.0], "input", "float"))
    assert said(emit(given, operators["onnx.Split-13"])) == ({}, {"split": (2, 4)})


def test_a_remainder_is_calculated_where_a_version_has_none() -> None:
    rest = intent(
        "openvino.VariadicSplit-1",
        axis=constants(1, "input", "int64"),
        split_lengths=constants([-1, 2], "input", "int64"),
    )
    target = operators["onnx.Split-18"]
    assert said(emit(rest, target, 6)) == ({}, {"split": (4, 2)})
    assert said(emit(rest, target)) == ({}, {"split": AtRunTime.COMPUTED})


def test_parts_without_the_axis_are_a_sequence_s_own() -> None:
    dropped = intent("onnx.SplitToSequence-11", 1, keepdims=constants(0, "attribute"))
    target = operators["onnx.SplitToSequence-24"]
    assert said(emit(dropped, target)) == ({"keepdims": 0}, {})
    with refused("TS310", "drop the axis"):
        emit(dropped, operators["onnx.Split-18"], 3)


def test_lengths_that_do_not_fit_the_dimension_are_refused() -> None:
    halves = intent("onnx.Split-11", 3)
    with refused("TS303"):
        emit(halves, operators["openvino.VariadicSplit-1"], 7)


@pytest.mark.parametrize("version", ["onnx.Split-2", "onnx.Split-11", "onnx.Split-13"])
def test_a_version_says_its_own_words(version: str) -> None:
    assert said(emit(intent(version), operators[version])) == ({}, {})
    assert intent(version).rule is equal
