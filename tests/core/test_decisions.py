"""What the standards leave open, and what is decided: D1 to D23 of the errata page.

Those that show only in a model (D19, the run-time half of D20, and D21 to D23) are tested with the
models.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tensorsplit.core import resolve
from tensorsplit.core.operands import Operand
from tests.oracle import Array, assert_same, slices
from tests.refusals import refused

SPLITS = {1: 1, 2: 2, 10: 2, 11: 11, 13: 13, 18: 18}
WITHOUT_COUNT = [opset for opset in SPLITS if opset < 18]


def data(dim: int) -> Array:
    return np.arange(1, dim + 1, dtype=np.float32)


@pytest.mark.parametrize(
    ("dim", "count", "size", "last", "instead"),
    [
        (5, 4, 2, -1, "[2, 1, 1, 1]"),
        (3, 7, 1, -3, "[1, 1, 1, 0, 0, 0, 0]"),
        (4, 6, 1, -1, "[1, 1, 1, 1, 0, 0]"),
        (9, 7, 2, -3, "[2, 2, 1, 1, 1, 1, 1]"),
    ],
)
def test_d1_num_outputs_that_leaves_a_negative_last_part(
    dim: int, count: int, size: int, last: int, instead: str
) -> None:
    with refused(
        "TS304",
        f"ceil({dim}/{count}) = {size}",
        f"leave {last}",
        f"split = {instead}",
        operator="onnx.Split-18",
        parameter="num_outputs",
    ):
        ts.split(data(dim), num_outputs=count)


@pytest.mark.parametrize(("dim", "count", "sizes"), [(6, 4, (2, 2, 2, 0)), (1, 2, (1, 0))])
def test_d1_a_last_part_of_nothing_is_a_part(dim: int, count: int, sizes: Any) -> None:
    assert_same(ts.split(data(dim), num_outputs=count), slices(data(dim), 0, sizes))


@pytest.mark.parametrize("opset", SPLITS)
@pytest.mark.parametrize("count", [1, 2, 5])
def test_d2_nothing_is_cut_into_empty_parts(opset: int, count: int) -> None:
    x = np.zeros((0, 3), np.float32)
    parts = ts.split(x, num_outputs=count, opset=opset)
    assert [part.shape for part in parts] == [(0, 3)] * count
    assert [part.shape for part in ts.openvino.split(x, 0, count)] == [(0, 3)] * count


@pytest.mark.parametrize("opset", WITHOUT_COUNT)
def test_d3_parts_that_would_not_be_equal(opset: int) -> None:
    operator = f"onnx.Split-{SPLITS[opset]}"
    words = ("7", "3", "equal parts", "[3, 2, 2]", "num_outputs of onnx.Split-18")
    with refused("TS303", *words, operator=operator, parameter="num_outputs"):
        ts.split(data(7), num_outputs=3, opset=opset)


def test_d4_both_operands_that_give_the_lengths() -> None:
    words = ("[3, 3]", "num_outputs = 2", "not both")
    with refused("TS104", *words, operator="onnx.Split-18", parameter="split"):
        ts.split(data(6), [3, 3], num_outputs=2)


def test_d4_neither_operand_that_gives_the_lengths() -> None:
    words = ("input 'split' or attribute 'num_outputs'", "no lengths are given")
    with refused("TS104", *words, operator="onnx.Split-18", parameter="split"):
        ts.split(data(6))


@pytest.mark.parametrize("opset", WITHOUT_COUNT)
def test_d4_before_opset_18_the_number_of_outputs_stands_in_for_no_lengths(opset: int) -> None:
    operator = f"onnx.Split-{SPLITS[opset]}"
    with refused("TS102", "num_outputs", operator=operator, parameter="num_outputs"):
        ts.split(data(6), opset=opset)


@pytest.mark.parametrize(("count", "outputs"), [(2, 3), (4, 3), (1, 2)])
def test_d5_num_outputs_that_differs_from_the_outputs_of_the_node(count: int, outputs: int) -> None:
    operand = Operand((count,), 0, kind="attribute")
    record = ts.operators["onnx.Split-18"]
    intent = resolve.bind(record, [("num_outputs", operand)], outputs)
    words = (f"it makes {count} part", f"{outputs} output")
    with refused("TS305", *words, operator="onnx.Split-18", parameter="num_outputs"):
        resolve.plan(intent, (12,))


@pytest.mark.parametrize("identifier", ["onnx.Split-2", "onnx.Split-13", "onnx.Split-18"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_d5_lengths_that_differ_from_the_outputs_of_the_node(identifier: str, outputs: int) -> None:
    record = ts.operators[identifier]
    intent = resolve.bind(record, [("split", Operand((2, 4), 1))], outputs)
    for shape in ((6,), ("N",), (None,)):
        with refused("TS305", "2 parts", outputs, operator=identifier, parameter="split"):
            resolve.plan(intent, shape)


@pytest.mark.parametrize("opset", WITHOUT_COUNT)
def test_d5_lengths_that_differ_from_the_number_of_outputs_asked_for(opset: int) -> None:
    operator = f"onnx.Split-{SPLITS[opset]}"
    with refused("TS305", "2 parts", "3 outputs", operator=operator, parameter="split"):
        ts.split(data(6), [2, 4], num_outputs=3, opset=opset)


@pytest.mark.parametrize("opset", SPLITS)
@pytest.mark.parametrize(("lengths", "total"), [([2, 3], 5), ([2, 5], 7), ([6, 6], 12)])
def test_d6_lengths_that_do_not_add_up(opset: int, lengths: list[int], total: int) -> None:
    words = (lengths, f"sums to {total}", "dimension is 6")
    operator = f"onnx.Split-{SPLITS[opset]}"
    with refused("TS302", *words, operator=operator, parameter="split"):
        ts.split(data(6), lengths, opset=opset)
    with refused("TS302", *words, operator="onnx.SplitToSequence-24", parameter="split"):
        ts.split_to_sequence(data(6), lengths)
    operator = "openvino.VariadicSplit-1"
    with refused("TS302", *words, operator=operator, parameter="split_lengths"):
        ts.variadic_split(data(6), 0, lengths)


@pytest.mark.parametrize("opset", SPLITS)
@pytest.mark.parametrize("lengths", [[-1, 7], [7, -1], [-1, 400_000_000], [8, -2], [-6]])
def test_d7_negative_lengths_in_onnx(opset: int, lengths: list[int]) -> None:
    operator = f"onnx.Split-{SPLITS[opset]}"
    with refused("TS301", lengths, ">= 0", operator=operator, parameter="split"):
        ts.split(data(6), lengths, opset=opset)
    with refused("TS301", lengths, operator="onnx.SplitToSequence-24", parameter="split"):
        ts.split_to_sequence(data(6), lengths)


@pytest.mark.parametrize(
    ("lengths", "sizes"), [([-1, 2], (4, 2)), ([6, -1], (6, 0)), ([-1], (6,)), ([0, -1], (0, 6))]
)
def test_d7_one_minus_one_is_the_remainder_in_openvino(lengths: list[int], sizes: Any) -> None:
    assert_same(ts.variadic_split(data(6), 0, lengths), slices(data(6), 0, sizes))


@pytest.mark.parametrize(
    ("code", "lengths"),
    [
        ("TS306", [-1, 7]),
        ("TS306", [-1, 400_000_000]),
        ("TS306", [-1, 2, -1]),
        ("TS301", [-2, 8]),
        ("TS301", [-1, -2]),
    ],
)
def test_d7_no_other_negative_length_in_openvino(code: str, lengths: list[int]) -> None:
    operator = "openvino.VariadicSplit-1"
    with refused(code, operator=operator, parameter="split_lengths"):
        ts.variadic_split(data(6), 0, lengths)


def test_a_length_below_0_is_told_what_its_own_operator_takes() -> None:
    with refused("TS301", "variadic_split takes one -1"):
        ts.split(data(6), [-2, 8])
    with refused("TS301", "give lengths >= 0, and -1 at most once, for what the others leave"):
        ts.variadic_split(data(6), 0, [-2, 8])


@pytest.mark.parametrize("split", [1, 2, 6, [2, 4], [1] * 6, np.array(1), np.array([6])])
@pytest.mark.parametrize("opset", [11, 24])
def test_d8_keepdims_is_ignored_where_split_is_given(split: Any, opset: int) -> None:
    kept = ts.split_to_sequence(data(6), split, keepdims=1, opset=opset)
    assert_same(ts.split_to_sequence(data(6), split, keepdims=0, opset=opset), kept)
    assert all(part.ndim == 1 for part in kept)


def test_d9_zeros_are_lengths() -> None:
    assert_same(ts.split_to_sequence(data(6), [0, 6, 0]), slices(data(6), 0, (0, 6, 0)))


@pytest.mark.parametrize("split", [0, -1, np.array(0), np.int32(-6)])
def test_d10_a_chunk_length_is_positive(split: Any) -> None:
    operator = "onnx.SplitToSequence-24"
    with refused("TS307", int(split), "> 0", operator=operator, parameter="split"):
        ts.split_to_sequence(data(6), split)


@pytest.mark.parametrize("split", [[3], (3,), np.array([3]), np.array([3], np.int32)])
def test_d11_a_list_of_one_is_lengths_and_no_chunk_length(split: Any) -> None:
    assert_same(ts.split_to_sequence(data(3), split), slices(data(3), 0, (3,)))
    with refused("TS302", "[3]", "6", operator="onnx.SplitToSequence-24", parameter="split"):
        ts.split_to_sequence(data(6), split)


def test_d12_the_attribute_and_the_input_of_split_1() -> None:
    attribute = ("split", Operand((2, 4), 1, kind="attribute"))
    both = [attribute, ("split", Operand((2.0, 4.0), 1, "float", "input"))]
    with refused("TS104", "[2, 4]", "not both", operator="onnx.Split-1", parameter="split"):
        resolve.bind(ts.operators["onnx.Split-1"], both)


@pytest.mark.parametrize("length", [1.5, np.nan, np.inf, -np.inf])
def test_d12_the_floats_of_split_1_are_whole_and_finite(length: float) -> None:
    split = np.array([length, 4], np.float32)
    with refused("TS107", length, "whole", operator="onnx.Split-1", parameter="split"):
        ts.split(data(6), split, opset=1)


def test_d12_the_floats_of_split_1_are_not_negative() -> None:
    with refused("TS301", "[-1, 7]", operator="onnx.Split-1", parameter="split"):
        ts.split(data(6), np.array([-1, 7], np.float32), opset=1)
    minus_zero = np.array([-0.0, 6], np.float32)
    assert_same(ts.split(data(6), minus_zero, opset=1), slices(data(6), 0, (0, 6)))


@pytest.mark.parametrize("opset", [1, 2])
def test_d13_a_negative_axis_before_opset_11(opset: int) -> None:
    x = data(12).reshape(2, 6)
    assert_same(ts.split(x, [2, 4], axis=-1, opset=opset), slices(x, 1, (2, 4)))
    assert ts.operators[f"onnx.Split-{opset}"].negative_axis is False


HUGE = [
    [(1 << 32) + 1, 5],
    [(1 << 64) + 6],
    [1 << 63, 1 << 63, 6],
    [(1 << 63) - 1, (1 << 63) - 1, 8],
]


@pytest.mark.parametrize("lengths", HUGE)
def test_d14_lengths_that_add_up_only_if_integers_wrap(lengths: list[int]) -> None:
    with refused("TS302", sum(lengths), operator="onnx.Split-18", parameter="split"):
        ts.split(data(6), lengths)
    operator = "openvino.VariadicSplit-1"
    with refused("TS302", sum(lengths), operator=operator, parameter="split_lengths"):
        ts.variadic_split(data(6), 0, lengths)
    with refused("TS306", sum(lengths), operator=operator, parameter="split_lengths"):
        ts.variadic_split(data(6), 0, [*lengths, -1])


def test_d14_unsigned_lengths_are_not_taken_for_negative_ones() -> None:
    lengths = np.array([2**64 - 1, 7], np.uint64)
    with refused("TS302", 2**64 + 6, operator="openvino.VariadicSplit-1"):
        ts.variadic_split(data(6), 0, lengths)


def test_d14_lengths_of_a_dimension_beyond_32_bits() -> None:
    x = np.broadcast_to(np.int8(1), (1 << 40,))
    parts = ts.split(x, [(1 << 40) - 5, 5])
    assert [part.shape for part in parts] == [((1 << 40) - 5,), (5,)]


@pytest.mark.parametrize("axis", [0.0, 0.9, np.array(0.0), np.array([0.0], np.float32), True])
def test_d15_an_axis_that_is_no_integer(axis: Any) -> None:
    with refused("TS105", operator="openvino.VariadicSplit-1", parameter="axis"):
        ts.variadic_split(data(6), axis, [6])
    with refused("TS105", operator="openvino.Split-1", parameter="axis"):
        ts.openvino.split(data(6), axis, 2)


@pytest.mark.parametrize("axis", [[0, 0], [], [[0]], np.array([[0]]), np.zeros(0, int)])
def test_d15_an_axis_that_is_no_scalar_and_no_list_of_one(axis: Any) -> None:
    words = ("a scalar or a list of one element",)
    with refused("TS106", *words, operator="openvino.VariadicSplit-1", parameter="axis"):
        ts.variadic_split(data(6), axis, [6])


@pytest.mark.parametrize(
    "lengths", [[2.0, 4.0], np.array([2.0, 4.0]), [True, 5], np.array([True] * 6)]
)
def test_d15_lengths_that_are_no_integers(lengths: Any) -> None:
    operator = "openvino.VariadicSplit-1"
    with refused("TS105", operator=operator, parameter="split_lengths"):
        ts.variadic_split(data(6), 0, lengths)


@pytest.mark.parametrize(
    "values",
    [
        np.array([2**31, -(2**63), 2**63 - 1, 1]),
        np.array([2**64 - 1, 2**63, 2**31, 1], np.uint64),
        np.array([1e300, -1e300, 5e-324, np.pi]),
    ],
)
def test_d16_large_values_of_64_bits_stay_exact(values: Array) -> None:
    for copy in (False, True):
        want = slices(values, 0, (1, 3))
        assert_same(ts.split(values, [1, 3], copy=copy), want)
        assert_same(ts.variadic_split(values, 0, [1, -1], copy=copy), want)
        halves = slices(values, 0, (2, 2))
        assert_same(ts.openvino.split(values, 0, 2, copy=copy), halves)


@pytest.mark.parametrize("dtype", [object, "U9", np.dtypes.StringDType()])
@pytest.mark.parametrize("copy", [False, True])
def test_d17_strings_stay_exact(dtype: Any, copy: bool) -> None:
    words = np.array(["", "a", "split", "longer..", "é", "日本"], dtype)
    for parts in (
        ts.split(words, [1, 2, 3], copy=copy),
        ts.split_to_sequence(words, [1, 2, 3], copy=copy),
        ts.variadic_split(words, 0, [1, 2, -1], copy=copy),
    ):
        assert [part.tolist() for part in parts] == [
            *([""], ["a", "split"], ["longer..", "é", "日本"])
        ]


@pytest.mark.parametrize("scalar", [np.array(1.0), np.float64(1)])
def test_d18_a_scalar_has_no_axis(scalar: Any) -> None:
    with refused("TS202", "rank 0", operator="onnx.Split-18", parameter="input"):
        ts.split(scalar, [1])
    with refused("TS202", operator="onnx.SplitToSequence-24", parameter="input"):
        ts.split_to_sequence(scalar)
    with refused("TS202", operator="openvino.VariadicSplit-1", parameter="data"):
        ts.variadic_split(scalar, 0, [1])
    with refused("TS202", operator="openvino.Split-1", parameter="data"):
        ts.openvino.split(scalar, 0, 1)
    with refused("TS202", operator="onnx.Split-13", parameter="input"):
        ts.infer("onnx.Split-13", (), num_outputs=1)


def test_d20_lengths_known_only_at_run_time_are_never_guessed() -> None:
    operand = Operand(None, 1, "int64", "input")
    intent = resolve.bind(ts.operators["onnx.Split-13"], [("split", operand)], 2)
    assert intent.given is None
    with refused("TS309", "run time", operator="onnx.Split-13", parameter="split"):
        resolve.plan(intent, (6,))


def test_lengths_of_a_rank_that_is_not_known_leave_the_rule_open() -> None:
    """A scalar is the length of each part, a list has one for each; Split takes a list only."""
    operand = Operand(None, None, "int64")
    sequence = resolve.bind(ts.operators["onnx.SplitToSequence-24"], [("split", operand)])
    assert (sequence.rule, sequence.source) == (None, "split")
    assert resolve.bind(ts.operators["onnx.Split-18"], [("split", operand)], 2).rule is not None
