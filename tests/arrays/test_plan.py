"""`ts.plan`: what a plan says, and what it does when it is called."""

from __future__ import annotations

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tests.oracle import assert_same, slices
from tests.refusals import refused


def test_a_plan_says_where_the_parts_lie() -> None:
    plan = ts.plan("onnx.Split-18", (7, 4), axis=0, num_outputs=3)
    assert plan.operator == "onnx.Split-18"
    assert plan.input_shape == (7, 4)
    assert plan.axis == 0
    assert plan.sizes == (3, 3, 1)
    assert plan.offsets == (0, 3, 6)
    assert plan.keepdims is True
    assert plan.output_shapes == ((3, 4), (3, 4), (1, 4))


def test_a_negative_axis_is_counted_from_the_front() -> None:
    assert ts.plan("onnx.Split-13", (7, 4), [1, 3], axis=-1).axis == 1
    assert ts.plan("onnx.Split-13", (7, 4), [3, 4], axis=-2).axis == 0


def test_a_plan_without_the_axis() -> None:
    plan = ts.plan("onnx.SplitToSequence-11", (2, 3, 4), axis=1, keepdims=0)
    assert plan.keepdims is False
    assert plan.sizes == (1, 1, 1)
    assert plan.output_shapes == ((2, 4),) * 3


def test_offsets_of_empty_parts() -> None:
    plan = ts.plan("onnx.Split-13", (6,), [0, 6, 0])
    assert plan.offsets == (0, 0, 6)


def test_offsets_of_no_parts() -> None:
    plan = ts.plan("onnx.SplitToSequence-11", (0,))
    assert (plan.sizes, plan.offsets, plan.output_shapes) == ((), (), ())


def test_offsets_of_symbolic_lengths() -> None:
    plan = ts.plan("openvino.VariadicSplit-1", ("N", 8), axis=0, split_lengths=[1, -1, 2])
    assert [str(offset) for offset in plan.offsets] == ["0", "1", "N - 2"]
    unknown = ts.plan("openvino.VariadicSplit-1", (None, 8), axis=0, split_lengths=[1, -1, 2])
    assert unknown.offsets == (0, 1, None)


def test_a_plan_is_a_value() -> None:
    plan = ts.plan("onnx.Split-18", ("N", 6), [2, 4], axis=1)
    same = ts.plan("onnx.Split-18", ("N", 6), [2, 4], axis=1)
    assert plan == same == pickle.loads(pickle.dumps(plan)) == copy.deepcopy(plan)
    assert len({plan, same, copy.deepcopy(plan)}) == 1
    assert plan != ts.plan("onnx.Split-18", ("N", 6), [4, 2], axis=1)
    x = np.arange(12).reshape(2, 6)
    assert_same(pickle.loads(pickle.dumps(plan))(x), slices(x, 1, (2, 4)))


def test_a_plan_runs_many_times(rng: np.random.Generator) -> None:
    plan = ts.plan("onnx.Split-18", (7, 4), num_outputs=3)
    for _ in range(3):
        x = rng.standard_normal((7, 4))
        want = slices(x, 0, (3, 3, 1))
        assert_same(plan(x), want)
        assert_same(plan(x, copy=True), want)
        out = [np.empty((3, 4)), np.empty((3, 4)), np.empty((1, 4))]
        got = plan(x, out=out)
        assert all(left is right for left, right in zip(got, out, strict=True))
        assert_same(got, want)


@pytest.mark.parametrize("shape", [(4, 7), (7,), (7, 4, 1), (), (7, 5)])
def test_an_array_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    plan = ts.plan("onnx.Split-18", (7, 4), num_outputs=3)
    with refused("TS206", shape, operator="onnx.Split-18", parameter="input"):
        plan(np.zeros(shape))


def test_numbers_of_a_planned_shape_are_no_names() -> None:
    plan = ts.plan("onnx.Split-18", ("B", "S", 768), axis=2, num_outputs=3)
    with refused("TS206", "shape (4, 6), the plan is for (B, S, 768)"):
        plan(np.zeros((4, 6)))


def test_an_array_of_an_element_type_the_version_lacks_is_refused() -> None:
    plan = ts.plan("onnx.Split-1", (6,), [2, 4])
    with refused("TS201", "int64", operator="onnx.Split-1", parameter="input"):
        plan(np.arange(6))


def test_another_element_type_is_looked_at_each_time() -> None:
    plan = ts.plan("onnx.Split-1", (6,), [2, 4])
    for _ in range(2):
        for dtype in (np.float32, np.float64, ">f4"):
            x = np.arange(6).astype(dtype)
            assert_same(plan(x), slices(x, 0, (2, 4)))
        with refused("TS201", "int64", operator="onnx.Split-1", parameter="input"):
            plan(np.arange(6))


def test_a_plan_that_has_run_checks_the_next_array() -> None:
    plan = ts.plan("onnx.Split-18", (7, 4), num_outputs=3)
    x = np.arange(28.0).reshape(7, 4)
    plan(x)
    for other in (x.T, x[:6], x.ravel(), x[None]):
        with refused("TS206", other.shape):
            plan(other)
    with refused("TS401", parameter="out"):
        plan(x, out=())
    with refused("TS105", parameter="copy"):
        plan(x, copy=None)  # type: ignore[call-overload]
    x.shape = (4, 7)
    with refused("TS206", (4, 7)):
        plan(x)


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("sizes", [[], [6], [2, 4]])
def test_a_plan_looks_at_every_array(sizes: list[int]) -> None:
    x = np.arange(2.0 * sum(sizes)).reshape(-1, 2)
    plan = ts.plan("onnx.SplitToSequence-11", x.shape, *([sizes] if sizes else []))
    wanted = np.split(x, np.cumsum(sizes)[:-1]) if sizes else []
    for _ in range(2):
        assert [part.tolist() for part in plan(x)] == [part.tolist() for part in wanted]
        for other in (x.T, np.zeros((len(x) + 1, 2)), x.ravel(), x[None]):
            with refused("TS206", other.shape):
                plan(other)


def test_a_plan_that_has_run_is_still_a_value() -> None:
    plan = ts.plan("onnx.Split-18", (6,), [1, 2, 3])
    parts = plan(np.arange(6))
    again = pickle.loads(pickle.dumps(plan))
    assert again == plan == copy.copy(plan)
    assert hash(again) == hash(plan)
    assert_same(again(np.arange(6)), parts)


def test_threads_share_a_plan() -> None:
    plan = ts.plan("onnx.Split-1", (60, 2), [10, 20, 30])

    def work(number: int) -> None:
        x = np.full((60, 2), number, [np.float16, np.float32, np.float64][number % 3])
        for _ in range(300):
            assert_same(plan(x, copy=number % 2 == 0), slices(x, 0, (10, 20, 30)))
            with refused("TS201"):
                plan(np.zeros((60, 2), int))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(work, range(6)))
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("parts", [0, 1, 2, 3, 9])
def test_any_number_of_parts(parts: int) -> None:
    x = np.arange(parts * 2).reshape(2, parts)
    plan = ts.plan("onnx.SplitToSequence-24", (2, parts), axis=1)
    for _ in range(2):
        assert_same(plan(x), slices(x, 1, (1,) * parts))
        assert_same(ts.split_to_sequence(x, axis=1), slices(x, 1, (1,) * parts))


def test_lengths_that_are_floats_fix_the_element_type_of_the_data() -> None:
    plan = ts.plan("onnx.Split-1", (6,), np.array([2, 4], np.float32))
    assert len(plan(np.zeros(6, np.float32))) == 2
    with refused("TS201", "double", operator="onnx.Split-1"):
        plan(np.zeros(6, np.float64))


@pytest.mark.parametrize("junk", [None, [1.0] * 7, 7, "seven", object()])
def test_what_is_no_array_is_refused(junk: Any) -> None:
    with refused("TS204", operator="openvino.Split-1", parameter="data"):
        ts.plan("openvino.Split-1", (6,), axis=0, num_splits=2)(junk)


class TestPlanOfASymbolicShape:
    plan = ts.plan("openvino.VariadicSplit-1", ("N", None, 2), axis=0, split_lengths=[-1, 2])

    @pytest.mark.parametrize("n", [2, 3, 9])
    def test_decides_the_lengths_for_each_array(self, n: int) -> None:
        x = np.arange(n * 6).reshape(n, 3, 2)
        assert_same(self.plan(x), slices(x, 0, (n - 2, 2)))

    def test_refuses_what_does_not_fit_then(self) -> None:
        with refused("TS306", operator="openvino.VariadicSplit-1"):
            self.plan(np.zeros((1, 3, 2)))

    def test_refuses_a_shape_that_contradicts_its_numbers(self) -> None:
        with refused("TS206", parameter="data"):
            self.plan(np.zeros((3, 3, 3)))
        with refused("TS206", parameter="data"):
            self.plan(np.zeros((3, 3)))


def test_none_stands_for_an_operand_that_is_not_given() -> None:
    assert ts.plan("onnx.Split-18", (7,), None, num_outputs=3).sizes == (3, 3, 1)


def test_a_misspelt_operand_gets_a_suggestion() -> None:
    with refused("TS103", "torch.chunk has no input 'chunk'; did you mean chunks? its operands"):
        ts.like("torch.chunk")(np.zeros(6), chunk=3)
    with refused("TS103", "onnx.Split-18 has no input 'num_output'; did you mean num_outputs?"):
        operands: dict[str, Any] = {"num_output": 3}
        ts.plan("onnx.Split-18", (6,), **operands)


def test_equal_parts_share_one_shape() -> None:
    """Of a sequence there may be millions of parts, in a model of a hundred bytes."""
    shapes = ts.plan("onnx.SplitToSequence-24", (7, 4), 3).output_shapes
    assert shapes == ((3, 4), (3, 4), (1, 4))
    assert shapes[0] is shapes[1]


def test_a_plan_made_by_hand_is_a_split() -> None:
    made = ts.PreparedSplit("mine", (2, 6), 1, (2, 4))
    data = np.random.default_rng(5).random((2, 6))
    for is_copied in (False, True):
        assert [part.tolist() for part in made(data, copy=is_copied)] == [
            data[:, :2].tolist(),
            data[:, 2:].tolist(),
        ]
    wrong: list[tuple[Any, ...]] = [
        ((2, 6), 1, (2, 3)),
        ((2, 6), 1, (2, 5)),
        ((2, 6), 1, (7, -1)),
        ((2, 6), 2, (2, 4)),
        ((2, 6), -1, (2, 4)),
        ((2, 6), 1, [2, 4]),
        ((2, 6), 1, (2.0, 4.0)),
        ((2, "N"), 1, (2, "N")),
        ((2, 6), 1, (2, 4), False),
        ((2, "N"), 1, (1, 1), False),
    ]
    for arguments in wrong:
        with refused("TS206", operator="mine", parameter="sizes"):
            ts.PreparedSplit("mine", *arguments)


def test_a_named_plan_made_by_hand_names_the_parts_of_its_plan() -> None:
    plan = ts.plan("onnx.Split-18", (2, 6), [2, 4], axis=1)
    of: tuple[Any, ...] = ("onnx.Split-18", (2, 6), 1, (2, 4), True, plan.element_types)
    x = np.random.default_rng(3).random((2, 6), dtype=np.float32)
    made = ts.NamedSplit(*of, names=("a", "b"), unnamed=plan)
    assert made(x)["b"].tolist() == x[:, 2:].tolist()
    other = ts.plan("onnx.Split-18", (2, 6), [1, 5], axis=1)
    unnamed: Any
    for unnamed in (other, None, (2, 4)):
        with refused("TS206", operator="onnx.Split-18", parameter="unnamed"):
            ts.NamedSplit(*of, names=("a", "b"), unnamed=unnamed)
    names: Any
    for names in (("a",), ("a", "b", "c"), ("a", "a"), "ab", 5):
        with refused("TS316", operator="onnx.Split-18", parameter="names"):
            ts.NamedSplit(*of, names=names, unnamed=plan)


def test_one_name_is_one_number() -> None:
    plan = ts.plan("onnx.Split-18", ("N", "N"), num_outputs=2)
    assert [part.shape for part in plan(np.ones((4, 4)))] == [(2, 4), (2, 4)]
    with refused("TS206", "(3, 5)"):
        plan(np.ones((3, 5)))
    with refused("TS206", "(6, 5)"):
        plan.join([np.ones((3, 5)), np.ones((3, 5))])
    free = ts.plan("onnx.Split-18", (None, None), num_outputs=2)
    assert len(free(np.ones((3, 5)))) == 2
    mixed = ts.plan("onnx.Split-18", ("N", "M"), num_outputs=2)
    assert len(mixed(np.ones((3, 5)))) == 2


def test_plans_of_one_axis_are_equal() -> None:
    front, back = (ts.plan("onnx.Split-18", (4, 6), [2, 4], axis=axis) for axis in (1, -1))
    assert front == back
    assert hash(front) == hash(back)
    assert front != ts.plan("onnx.Split-13", (4, 6), [2, 4], axis=1)
    assert front != ts.plan("onnx.Split-18", (4, 6), [4, 2], axis=1)


SPLIT, CHUNKS, VARIADIC, PARTS = (
    *("onnx.Split", "onnx.SplitToSequence"),
    *("openvino.VariadicSplit", "openvino.Split"),
)
WRONG_SHAPES: tuple[Any, ...] = (5, (-1,), (1 << 63,), (2.5,), ("",), (b"N",), (True,), ([],))
REFUSED: list[tuple[str, int, Any, dict[str, Any], str, str]] = [
    (SPLIT, 13, (7,), {}, "TS102", "num_outputs"),
    (SPLIT, 18, (7,), {}, "TS104", "split"),
    (SPLIT, 18, (7,), {"split": [7], "num_outputs": 1}, "TS104", "split"),
    *((SPLIT, 13, (7,), {"axis": a, "num_outputs": 1}, "TS203", "axis") for a in (1, -2)),
    (SPLIT, 2, (7,), {"axis": "0", "num_outputs": 1}, "TS105", "axis"),
    (SPLIT, 13, (), {"num_outputs": 1}, "TS202", "input"),
    (SPLIT, 18, (5,), {"num_outputs": 4}, "TS304", "num_outputs"),
    (SPLIT, 13, (7,), {"num_outputs": 3}, "TS303", "num_outputs"),
    (SPLIT, 13, (7,), {"split": [3, 3]}, "TS302", "split"),
    *((SPLIT, v, (7,), {"split": [-1, 8]}, "TS301", "split") for v in (2, 11, 13, 18)),
    (SPLIT, 1, (7,), {"split": [3, 4], "num_outputs": 3}, "TS305", "split"),
    (SPLIT, 18, (7,), {"split": [[3, 4]]}, "TS106", "split"),
    *((SPLIT, 18, shape, {"num_outputs": 2}, "TS205", "shape") for shape in WRONG_SHAPES),
    (CHUNKS, 11, (7,), {"split": 0}, "TS307", "split"),
    (CHUNKS, 24, (7,), {"split": -2}, "TS307", "split"),
    (CHUNKS, 24, (7,), {"split": [3, 3]}, "TS302", "split"),
    (CHUNKS, 11, (7,), {"keepdims": 2}, "TS107", "keepdims"),
    (CHUNKS, 11, (7,), {"num_outputs": 2}, "TS103", "num_outputs"),
    (SPLIT, 13, (7,), {"num_splits": 2}, "TS103", "num_splits"),
    (SPLIT, 13, (7,), {"split": [7], "keepdims": 1}, "TS103", "keepdims"),
    (SPLIT, 13, (7,), {"split": [7], "": 1}, "TS103", ""),
    (PARTS, 1, (7,), {"axis": 0, "num_splits": 1, "num_outputs": 1}, "TS103", "num_outputs"),
    (VARIADIC, 1, (7,), {"axis": 0, "split": [7]}, "TS103", "split"),
    (PARTS, 1, (7,), {"num_splits": 1}, "TS102", "axis"),
    (VARIADIC, 1, (7,), {"axis": 0, "split_lengths": [5, -1, 4]}, "TS306", "split_lengths"),
    (VARIADIC, 1, (7,), {"axis": 0, "split_lengths": [-1, -1]}, "TS306", "split_lengths"),
    (VARIADIC, 1, (7,), {"axis": 0, "split_lengths": [7.0]}, "TS105", "split_lengths"),
    (VARIADIC, 1, (7,), {"axis": 0, "split_lengths": 7}, "TS106", "split_lengths"),
    (VARIADIC, 1, (7,), {"axis": 0}, "TS102", "split_lengths"),
    (VARIADIC, 1, (7,), {"split_lengths": [7]}, "TS102", "axis"),
    (VARIADIC, 1, (7,), {"axis": [0, 0], "split_lengths": [7]}, "TS106", "axis"),
    (VARIADIC, 1, (7,), {"axis": 0.5, "split_lengths": [7]}, "TS105", "axis"),
    (PARTS, 1, (7,), {"axis": 0, "num_splits": 2}, "TS303", "num_splits"),
    (PARTS, 1, (7,), {"axis": 0}, "TS102", "num_splits"),
    (PARTS, 1, (6,), {"axis": [0], "num_splits": 2}, "TS106", "axis"),
]


@pytest.mark.parametrize(("name", "version", "shape", "operands", "code", "parameter"), REFUSED)
def test_a_refusal_names_the_version_and_the_parameter(
    name: str, version: int, shape: Any, operands: dict[str, Any], code: str, parameter: str
) -> None:
    operator = f"{name}-{version}"
    calls: tuple[Any, ...] = ts.plan, ts.infer
    for refuse in calls:
        with refused(code, operator=operator, parameter=parameter):
            refuse(operator, shape, **operands)
