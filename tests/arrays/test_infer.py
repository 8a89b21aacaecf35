"""`ts.infer`: the shapes of the parts of a shape whose dimensions may be symbols."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir
import pytest
import sympy

import tensorsplit as ts
from tensorsplit.core.records.names import OperatorName
from tests.refusals import refused

N = sympy.Symbol("N")


def dim(text: str) -> onnx_ir.SymbolicDim:
    return onnx_ir.SymbolicDim(text)


def shapes(
    operator: OperatorName, shape: Any, *split: Any, **operands: Any
) -> list[tuple[Any, ...]]:
    """The shapes of parts whose number is known."""
    made = ts.infer(operator, shape, *split, **operands)
    assert isinstance(made, list)
    return made


def test_the_remainder_of_a_name_is_the_name_less_the_other_lengths() -> None:
    got = shapes("openvino.VariadicSplit-1", ("N", 8), axis=0, split_lengths=[-1, 2])
    assert got == [("N - 2", 8), (2, 8)]
    assert [str(shape[0]) for shape in got] == ["N - 2", "2"]


@pytest.mark.parametrize(
    ("operator", "shape", "operands", "wanted"),
    [
        ("onnx.Split-1", (6, 4), {"split": [2, 4]}, [(2, 4), (4, 4)]),
        ("onnx.Split-1", (6, 4), {"split": np.array([2, 4], np.float32)}, [(2, 4), (4, 4)]),
        ("onnx.Split-2", (6, 4), {"axis": 1, "num_outputs": 2}, [(6, 2), (6, 2)]),
        ("onnx.Split-11", (6, 4), {"axis": -1, "split": (1, 3)}, [(6, 1), (6, 3)]),
        ("onnx.Split-13", (6, 4), {"split": np.array([6])}, [(6, 4)]),
        ("onnx.Split-18", (7, 4), {"axis": 0, "num_outputs": 3}, [(3, 4), (3, 4), (1, 4)]),
        ("onnx.SplitToSequence-11", (3,), {}, [(1,), (1,), (1,)]),
        ("onnx.SplitToSequence-11", (3, 2), {"keepdims": 0}, [(2,), (2,), (2,)]),
        ("onnx.SplitToSequence-24", (3, 2), {"split": 2, "keepdims": 0}, [(2, 2), (1, 2)]),
        ("onnx.SplitToSequence-24", (0, 2), {}, []),
        (
            "openvino.VariadicSplit-1",
            (6, 12, 10, 24),
            {"axis": [0], "split_lengths": [-1, 2]},
            [(4, 12, 10, 24), (2, 12, 10, 24)],
        ),
        ("openvino.Split-1", (6, 4), {"axis": 0, "num_splits": 2}, [(3, 4), (3, 4)]),
    ],
)
def test_numbers_give_numbers(
    operator: OperatorName,
    shape: tuple[int, ...],
    operands: dict[str, Any],
    wanted: list[tuple[int, ...]],
) -> None:
    got = ts.infer(operator, shape, **operands)
    assert got == wanted
    assert all(type(size) is int for part in got for size in part)
    assert ts.infer(ts.operators[operator], shape, **operands) == got


@pytest.mark.parametrize(
    ("operator", "operands", "sizes"),
    [
        ("onnx.Split-13", {"split": [2, 4]}, [2, 4]),
        ("onnx.Split-13", {"num_outputs": 2}, [dim("floor(N/2)"), dim("floor(N/2)")]),
        ("onnx.Split-13", {"num_outputs": 1}, [dim("N")]),
        ("onnx.Split-18", {"num_outputs": 1}, [dim("N")]),
        ("openvino.VariadicSplit-1", {"axis": 1, "split_lengths": [-1]}, [dim("N")]),
        ("openvino.VariadicSplit-1", {"axis": 1, "split_lengths": [2, 4]}, [2, 4]),
        ("openvino.VariadicSplit-1", {"axis": -1, "split_lengths": [1, -1]}, [1, dim("N - 1")]),
        ("openvino.Split-1", {"axis": 1, "num_splits": 2}, [dim("floor(N/2)")] * 2),
        ("onnx.SplitToSequence-24", {"split": [2, 4]}, [2, 4]),
    ],
)
def test_a_name_gives_expressions(
    operator: OperatorName, operands: dict[str, Any], sizes: list[object]
) -> None:
    got = shapes(operator, (8, "N"), **{"axis": 1, **operands})
    assert got == [(8, size) for size in sizes]


def test_the_last_part_of_a_name_is_what_the_others_leave() -> None:
    first, second, last = shapes("onnx.Split-18", ("N", 2), num_outputs=3)
    assert first == second
    for value, sizes in {7: (3, 3, 1), 9: (3, 3, 3), 4: (2, 2, 0)}.items():
        bound = {"N": value}
        assert (first[0].evaluate(bound), second[0].evaluate(bound)) == sizes[:2]
        assert last[0].evaluate(bound) == sizes[2]


def test_the_dimensions_that_are_not_split_stay_as_they_came() -> None:
    m = onnx_ir.SymbolicDim("M")
    got = shapes("onnx.Split-13", ("B", 6, None, m, N), [2, 4], axis=1)
    assert got == [("B", 2, None, m, N), ("B", 4, None, m, N)]
    assert got[0][0] == "B"
    assert got[0][3] is m


def test_an_unknown_dimension_gives_unknown_lengths() -> None:
    got = shapes("openvino.VariadicSplit-1", (None, 8), axis=0, split_lengths=[-1, 2])
    assert got == [(None, 8), (2, 8)]


def test_an_expression_gives_expressions_of_its_own_kind() -> None:
    operator: OperatorName = "openvino.VariadicSplit-1"
    got = shapes(operator, (2 * N + 2, 8), axis=0, split_lengths=[-1, 2])
    assert got == [(2 * N, 8), (2, 8)]
    got = shapes(operator, (dim("2*N + 2"), 8), axis=0, split_lengths=[-1, 2])
    assert got == [(dim("2*N"), 8), (2, 8)]


def test_a_shape_of_onnx_ir_is_a_shape() -> None:
    shape = onnx_ir.Shape(["N", 8, None])
    got = shapes("openvino.VariadicSplit-1", shape, axis=0, split_lengths=[-1, 2])
    assert got == [(dim("N - 2"), 8, None), (2, 8, None)]


def test_integers_of_numpy_are_dimensions() -> None:
    got = shapes("onnx.Split-18", (np.int32(7), np.uint8(4)), num_outputs=np.int64(3))
    assert got == [(3, 4), (3, 4), (1, 4)]
    assert all(type(size) is int for shape in got for size in shape)


def test_a_name_that_is_no_expression_is_still_a_dimension() -> None:
    got = shapes("openvino.VariadicSplit-1", ("/x/y_dim_0", 8), axis=0, split_lengths=[-1, 2])
    assert str(got[0][0]) == "/x/y_dim_0 - 2"


class TestSequenceOfUnknownLength:
    def test_parts_of_length_one_are_as_many_as_the_dimension(self) -> None:
        made = ts.infer("onnx.SplitToSequence-11", (8, "N"), axis=1)
        assert made == ts.SequenceShape(count=dim("N"), part=(8, 1))

    def test_without_the_axis(self) -> None:
        made = ts.infer("onnx.SplitToSequence-11", (8, "N"), axis=1, keepdims=0)
        assert made == ts.SequenceShape(count=dim("N"), part=(8,))

    def test_chunks_of_which_the_last_may_be_smaller(self) -> None:
        made = ts.infer("onnx.SplitToSequence-24", ("N", 8), 3)
        assert isinstance(made, ts.SequenceShape)
        assert made.part == (None, 8)
        assert [onnx_ir.SymbolicDim(str(made.count)).evaluate({"N": n}) for n in (6, 7, 9)] == [
            2,
            3,
            3,
        ]

    def test_of_an_unknown_dimension(self) -> None:
        made = ts.infer("onnx.SplitToSequence-24", (None, 8), 3)
        assert made == ts.SequenceShape(count=None, part=(None, 8))

    @pytest.mark.parametrize(("dimension", "shown"), [("N", "ceil(N/3)"), (None, "unknown")])
    def test_a_plan_needs_the_number(self, dimension: str | None, shown: str) -> None:
        words = f"the number of parts is {shown};"
        with refused("TS309", words, operator="onnx.SplitToSequence-24", parameter="shape"):
            ts.plan("onnx.SplitToSequence-24", (dimension, 8), 3)


@pytest.mark.parametrize("unknown", ["N", None, N, onnx_ir.SymbolicDim("N")])
@pytest.mark.parametrize(
    ("code", "operator", "operands"),
    [
        ("TS301", "onnx.Split-2", {"split": [7, -1]}),
        ("TS301", "onnx.Split-13", {"split": [-1, 7]}),
        ("TS301", "onnx.SplitToSequence-24", {"split": [-1, 7]}),
        ("TS301", "openvino.VariadicSplit-1", {"axis": 0, "split_lengths": [-2, 7]}),
        ("TS306", "openvino.VariadicSplit-1", {"axis": 0, "split_lengths": [-1, -1]}),
        ("TS305", "onnx.Split-13", {"split": [3, 3], "num_outputs": 3}),
        ("TS305", "onnx.Split-13", {"split": []}),
        ("TS305", "onnx.Split-11", {"num_outputs": 0}),
        ("TS107", "onnx.Split-18", {"num_outputs": 0}),
        ("TS107", "openvino.Split-1", {"axis": 0, "num_splits": -2}),
        ("TS307", "onnx.SplitToSequence-11", {"split": 0}),
        ("TS104", "onnx.Split-18", {"split": [3], "num_outputs": 1}),
        ("TS203", "onnx.Split-18", {"axis": 2, "num_outputs": 1}),
        ("TS106", "onnx.Split-13", {"split": 3}),
    ],
)
def test_what_is_wrong_for_any_dimension_is_refused(
    unknown: str | None, code: str, operator: OperatorName, operands: dict[str, Any]
) -> None:
    with refused(code, operator=operator):
        ts.infer(operator, (unknown, 8), **operands)


def test_an_expression_that_can_only_be_too_small_is_refused() -> None:
    with refused("TS306"):
        ts.infer("openvino.VariadicSplit-1", (N - N + 1, 8), axis=0, split_lengths=[-1, 2])


@pytest.mark.parametrize("shape", [None, 6, "N", (6, -1), (6, 1.5), {6}])
def test_what_is_no_shape_is_refused_for_the_operator(shape: Any) -> None:
    with refused("TS205", operator="onnx.Split-18", parameter="shape"):
        ts.infer("onnx.Split-18", shape, num_outputs=2)
