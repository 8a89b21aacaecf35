"""The plan of a split: its shapes, and what can be proved of lengths that are not numbers."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from tensorsplit.core import resolve
from tensorsplit.core.dimensions import Dim, combine
from tensorsplit.core.operands import Operand
from tensorsplit.core.plan import SplitPlan, UncountedPlan, prove
from tensorsplit.core.records import operators
from tests.refusals import refused

EVEN = SplitPlan("onnx.Split-18", (6, 4), 0, (2, 0, 4))


def minus(left: Dim, right: Dim) -> Dim:
    return combine(lambda a, b: a - b, left, right)


@pytest.mark.parametrize(
    ("index", "found"),
    [(0, (0, 0)), (1, (0, 1)), (2, (2, 0)), (5, (2, 3)), (-1, (2, 3)), (-4, (2, 0)), (-6, (0, 0))],
)
def test_an_index_is_in_the_part_that_has_elements(index: int, found: tuple[int, int]) -> None:
    assert EVEN.find(index) == found


@pytest.mark.parametrize("index", [6, -7, 1 << 70])
def test_an_index_beyond_the_axis_is_refused(index: int) -> None:
    with refused("TS107", "the dimension is 6", "[-6, 5]", parameter="index"):
        EVEN.find(index)


def test_there_is_nothing_to_find_in_no_parts() -> None:
    with refused("TS107", "there is no element to find"):
        SplitPlan("onnx.SplitToSequence-11", (0,), 0, ()).find(0)
    with refused("TS105", "of type float"):
        EVEN.find(1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("plan", "indices", "shapes"),
    [
        (
            EVEN,
            ((slice(0, 2),), (slice(2, 2),), (slice(2, 6),)),
            ((2, 4), (0, 4), (4, 4)),
        ),
        (
            SplitPlan("onnx.SplitToSequence-11", (3, 2, 5), 1, (1, 1), keepdims=False),
            ((slice(None), 0, ...), (slice(None), 1, ...)),
            ((3, 5), (3, 5)),
        ),
        (
            SplitPlan("onnx.SplitToSequence-11", (2,), 0, (1, 1), keepdims=False),
            ((0, ...), (1, ...)),
            ((), ()),
        ),
    ],
)
def test_what_each_part_is(plan: SplitPlan, indices: Any, shapes: Any) -> None:
    assert plan.indices == indices
    assert plan.output_shapes == shapes


def test_symbolic_lengths_have_shapes_and_no_indices() -> None:
    plan = SplitPlan("onnx.Split-18", (4, "N"), 1, (2, minus("N", 2)))
    assert [tuple(map(str, shape)) for shape in plan.output_shapes] == [("4", "2"), ("4", "N - 2")]
    for ask in (lambda: plan.indices, lambda: plan.find(0)):
        with refused("TS309", "the sizes are [2, N - 2]", parameter="shape"):
            ask()


def test_eight_sizes_are_shown() -> None:
    for count, shown in ((8, "[1, 1, 1, 1, 1, 1, 1, 1]"), (9, "[1, 1, 1, 1, 1, 1, 1, 1, ...]")):
        plan = SplitPlan("onnx.Split-18", (count,), 0, (1,) * count)
        assert repr(plan) == (
            f"<SplitPlan onnx.Split-18: ({count},) on axis 0 into {count} parts of {shown}>"
        )
    dropped = SplitPlan("onnx.SplitToSequence-11", (1,), 0, (1,), keepdims=False)
    assert repr(dropped).endswith("into 1 part of [1], axis dropped>")


def test_what_was_derived_is_not_pickled() -> None:
    plan = SplitPlan("onnx.Split-18", (6,), 0, (2, 4))
    before = pickle.dumps(plan)
    assert (plan.offsets, plan.output_shapes, plan.indices) == (
        (0, 2),
        ((2,), (4,)),
        ((slice(0, 2),), (slice(2, 6),)),
    )
    assert pickle.dumps(plan) == before


@pytest.mark.parametrize(
    ("dim", "sizes", "words"),
    [
        (6, (2, 4), None),
        ("N", ("N",), None),
        ("N", ("N", 0), None),
        ("2*N", ("N", "N"), None),
        ("N + 2", (2, "N"), None),
        (None, (2, 4), "the length of axis 1 is not known"),
        ("N", (2, minus("N", 2)), "the length N - 2 is not below 0"),
        ("N", (2, 4), "lengths which sum to 6 fit the dimension N"),
        (6, ("N", 2), "lengths which sum to N + 2 fit the dimension 6"),
        ("N", (0, 0), "lengths which sum to 0 fit the dimension N"),
        ("N", ("N", "N"), "lengths which sum to 2*N fit the dimension N"),
        ("N", (2, None), "lengths which sum to ? fit the dimension N"),
    ],
)
def test_what_is_known_of_the_lengths(dim: Any, sizes: tuple[Any, ...], words: str | None) -> None:
    plan = SplitPlan("onnx.Split-18", (3, dim), 1, sizes)
    if words is None:
        prove(plan, "give numbers")
    else:
        with refused("TS309", words, "give numbers", operator="onnx.Split-18", parameter="shape"):
            prove(plan, "give numbers")


def test_chunks_that_are_not_counted_have_a_shape() -> None:
    kept = UncountedPlan("onnx.SplitToSequence-11", (2, "N", 5), 1, "N", 1)
    assert kept.part_shape == (2, 1, 5)
    dropped = UncountedPlan("onnx.SplitToSequence-11", (2, "N", 5), 1, "N", 1, keepdims=False)
    assert dropped.part_shape == (2, 5)


def test_there_is_no_plan_for_an_axis_that_is_known_only_at_run_time() -> None:
    operands = [("axis", Operand(None, 0)), ("split_lengths", Operand((2, -1), 1))]
    intent = resolve.bind(operators["openvino.VariadicSplit-1"], operands, 2)
    with refused("TS309", "the axis is known only at run time", parameter="axis"):
        resolve.plan(intent, (6,))
