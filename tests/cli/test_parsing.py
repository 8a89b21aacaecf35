"""Shapes and operands as they are written on the command line."""

from __future__ import annotations

from typing import Any

import click
import numpy as np
import pytest

from tensorsplit import operators
from tensorsplit.cli.parsing import (
    is_operand,
    parse_bytes,
    parse_lengths,
    parse_operands,
    parse_shape,
)
from tensorsplit.cli.words import SECONDS
from tests.refusals import refused


@pytest.mark.parametrize(
    ("word", "shape"),
    [
        ("7,4", (7, 4)),
        ("7x4", (7, 4)),
        ("7×4", (7, 4)),
        ("7", (7,)),
        ("7,", (7,)),
        ("0,3", (0, 3)),
        ("(7, 4)", (7, 4)),
        ("[7, 4]", (7, 4)),
        ("()", ()),
        ("N,4", ("N", 4)),
        ("None,4", (None, 4)),
        ("Nx4,", ("Nx4",)),
        ("Nx4", ("N", 4)),
        ("nx4", ("n", 4)),
        ("NxCxHxW", ("N", "C", "H", "W")),
        ("Batch_1x4", ("Batch_1", 4)),
        ("?,4", (None, 4)),
        ("?x4", (None, 4)),
        ("?", (None,)),
        ("N", ("N",)),
        ("max_len", ("max_len",)),
        ("max_len,4", ("max_len", 4)),
        ("x", ("x",)),
        ("x,4", ("x", 4)),
        ("box", ("box",)),
        ("9223372036854775807", (2**63 - 1,)),
    ],
)
def test_a_shape(word: str, shape: tuple[Any, ...]) -> None:
    assert parse_shape(word) == shape


@pytest.mark.parametrize(
    "word",
    [
        *("", " ", ",", "7,,4", "-1,4", "7.5", "7,4.0", "1e3", "9223372036854775808", "7;4"),
        *("a b", "9N", "9" * 5000, "2*N,4", "7,N=3", "((7,4))", "7,\x1b[31m", "(7,4]", "7x4,"),
    ],
)
def test_what_is_no_shape(word: str) -> None:
    with refused("TS703", "is not a shape", "7,4 or 7x4 or N,4", parameter="shape"):
        parse_shape(word)


@pytest.mark.parametrize(
    ("word", "lengths"),
    [
        ("4096,1024", [4096, 1024]),
        ("7", [7]),
        ("7,", [7]),
        ("[-1, 2]", [-1, 2]),
        ("( +3 )", [3]),
        ("[]", []),
        ("9" * 40, [int("9" * 40)]),
    ],
)
def test_lengths(word: str, lengths: list[int]) -> None:
    assert parse_lengths(word) == lengths


@pytest.mark.parametrize("word", ["", ",", "1,,2", "1.0", "1e3", "a", "[1", "1;2", "9" * 41])
def test_what_are_no_lengths(word: str) -> None:
    with refused("TS703", "is not a list of lengths", "4096,1024", parameter="split"):
        parse_lengths(word)


@pytest.mark.parametrize("word", ["max_lenx4", "batchx4", "boxesx4x2", "7x", "7x4x", "?xab"])
def test_an_x_that_may_be_part_of_a_name_asks_for_commas(word: str) -> None:
    with refused("TS703", "in several ways", "commas", parameter="shape"):
        parse_shape(word)


@pytest.mark.parametrize(
    ("operator", "name", "text", "value"),
    [
        ("onnx.Split-18", "axis", "-1", -1),
        ("onnx.Split-18", "num_outputs", "3", 3),
        ("onnx.Split-18", "split", "2,5", [2, 5]),
        ("onnx.Split-18", "split", "7", [7]),
        ("onnx.Split-18", "split", "[2, 5]", [2, 5]),
        ("onnx.Split-18", "split", "[]", []),
        ("onnx.SplitToSequence-11", "split", "2", 2),
        ("onnx.SplitToSequence-11", "split", "2,", [2]),
        ("onnx.SplitToSequence-11", "split", "[2]", [2]),
        ("onnx.SplitToSequence-11", "keepdims", "0", 0),
        ("openvino.VariadicSplit-1", "split_lengths", "-1,2", [-1, 2]),
        ("openvino.VariadicSplit-1", "axis", "[0]", [0]),
        ("openvino.Split-1", "num_splits", "2", 2),
    ],
)
def test_an_operand(operator: str, name: str, text: str, value: object) -> None:
    assert parse_operands(operators[operator], [(name, text)]) == {name: value}


def test_floats_are_an_array_as_only_an_input_can_hold_them() -> None:
    values = parse_operands(operators["onnx.Split-1"], [("split", "3.0,4.0")])
    assert isinstance(values["split"], np.ndarray)
    np.testing.assert_array_equal(values["split"], [3.0, 4.0])


@pytest.mark.parametrize(
    "text", ["", " ", "a", "2,a", "2;5", "[2", "9" * 5000, "2,,5", "0x10", "9" * 400 + ",.5"]
)
def test_what_is_no_number(text: str) -> None:
    with refused("TS703", "not a number", operator="onnx.Split-13", parameter="split"):
        parse_operands(operators["onnx.Split-13"], [("split", text)])


def test_an_operand_is_given_once() -> None:
    with refused("TS703", "twice", parameter="axis"):
        parse_operands(operators["onnx.Split-13"], [("axis", "0"), ("axis", "1")])


def test_a_word_with_an_equals_sign_after_a_name_is_an_operand() -> None:
    assert all(map(is_operand, ("axis=0", "split=2,5", "split=")))
    assert not any(map(is_operand, ("7,4", "=3", "7=3", "N,4")))


@pytest.mark.parametrize(
    ("word", "size"),
    [
        *(("1", 1), ("1048576", 1 << 20), ("500M", 500_000_000), ("500MB", 500_000_000)),
        *(("2GiB", 2 << 30), ("2gi", 2 << 30), ("1.5 k", 1500), ("0.1G", 10**8), ("8B", 8)),
        *((" 3T ", 3 * 10**12), ("9007199254740993.0", 9007199254740993)),
    ],
)
def test_a_size_in_bytes(word: str, size: int) -> None:
    assert parse_bytes(word) == size


@pytest.mark.parametrize("word", ["", "M", "0", "0.1", "-5M", "5X", "5iB", "1e9", "nan", "5 M B"])
def test_what_is_no_size_in_bytes(word: str) -> None:
    with refused("TS703", "is not a size", "500M, 2GiB", parameter="memory"):
        parse_bytes(word)


def test_seconds() -> None:
    assert SECONDS.convert("0.25", None, None) == 0.25


@pytest.mark.parametrize("word", ["0", "-1", "nan", "inf", "1s", ""])
def test_seconds_are_a_number_above_0(word: str) -> None:
    with pytest.raises(click.BadParameter):
        SECONDS.convert(word, None, None)
