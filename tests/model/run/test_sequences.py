"""Sequences and optionals in models, and D19: positions out of range are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.model.build import FLOAT, graph, model, node, outputs, run, sequence, untyped, value
from tests.oracle import assert_same, slices
from tests.refusals import refused

POSITIONS = range(-3, 3)


@pytest.fixture
def x(rng: np.random.Generator) -> Any:
    return rng.random((3, 2)).astype(np.float32)


def on_rows(op_type: str, inputs: str, opset: int = 18) -> Any:
    """A model that cuts `x` into rows `q` and applies an operator to them."""
    nodes = [node("SplitToSequence", "x", "q"), node(op_type, inputs, "r", name="at")]
    names = [name for name in inputs.split() if name not in "qx_"]
    return model(graph(nodes, map(untyped, ["x", *names]), ["r"]), opset)


def rows(x: Any) -> list[Any]:
    return slices(x, 0, [1] * len(x))


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_sequence_at_counts_negative_positions_from_the_back(
    position: int, dtype: Any, x: Any
) -> None:
    got = run(on_rows("SequenceAt", "q i"), x=x, i=np.array(position, dtype))["r"]
    assert_same([got], [rows(x)[position]])


@pytest.mark.parametrize("op_type", ["SequenceAt", "SequenceErase"])
@pytest.mark.parametrize("position", [3, -4, 2**62, -(2**63)])
def test_d19_a_position_out_of_range_is_refused(op_type: str, position: int, x: Any) -> None:
    with refused("TS511", position, "3 tensors", "[-3, 2]", "graph/at", parameter="position"):
        run(on_rows(op_type, "q i"), x=x, i=np.array(position))


@pytest.mark.parametrize(
    ("op_type", "inputs", "last"),
    [("SequenceAt", "q i", 2), ("SequenceErase", "q i", 2), ("SequenceInsert", "q x i", 3)],
)
def test_d19_a_position_that_only_the_run_knows(
    op_type: str, inputs: str, last: int, x: Any
) -> None:
    nodes = [
        node("SplitToSequence", "x", "q"),
        node("ArgMax", "y", "m", axis=0, keepdims=0),
        node("Mul", "m sign", "i"),
        node(op_type, inputs, "r", name="at"),
    ]
    made = model(graph(nodes, map(untyped, ["x", "y", "sign"]), ["r"]), 18)

    def result(place: int) -> Any:
        y = np.eye(5, dtype=np.float32)[abs(place)]
        return run(made, x=x, y=y, sign=np.array(-1 if place < 0 else 1))["r"]

    for place in (-3, last):
        if op_type == "SequenceAt":
            assert_same([result(place)], [rows(x)[place]])
        else:
            assert len(result(place)) == (2 if op_type == "SequenceErase" else 4)
    for place in (-4, last + 1):
        with refused("TS511", place, "3 tensors", "graph/at", parameter="position"):
            result(place)


def test_d19_in_an_empty_sequence_no_position_is_in_range(x: Any) -> None:
    with refused("TS511", "0 tensors"):
        run(on_rows("SequenceAt", "q i"), x=x[:0], i=np.array(0))
    with refused("TS511", "0 tensors"):
        run(on_rows("SequenceErase", "q"), x=x[:0])


@pytest.mark.parametrize("position", POSITIONS)
def test_sequence_erase(position: int, x: Any) -> None:
    expected = rows(x)
    del expected[position]
    assert_same(run(on_rows("SequenceErase", "q i"), x=x, i=np.array(position))["r"], expected)


@pytest.mark.parametrize("inputs", ["q", "q _"])
def test_sequence_erase_takes_the_last_by_default(inputs: str, x: Any) -> None:
    assert_same(run(on_rows("SequenceErase", inputs), x=x)["r"], rows(x)[:-1])


@pytest.mark.parametrize("position", [*POSITIONS, 3])
def test_sequence_insert(position: int, x: Any) -> None:
    expected = rows(x)
    expected.insert(position, x)
    got = run(on_rows("SequenceInsert", "q x i"), x=x, i=np.array(position))["r"]
    assert_same(got, expected)


def test_sequence_insert_at_the_end_by_default_and_into_nothing(x: Any) -> None:
    assert_same(run(on_rows("SequenceInsert", "q x"), x=x)["r"], [*rows(x), x])
    empty = x[:0]
    got = run(on_rows("SequenceInsert", "q x i"), x=empty, i=np.array(0))["r"]
    assert_same(got, [empty])


@pytest.mark.parametrize("position", [4, -4])
def test_sequence_insert_out_of_range_is_refused(position: int, x: Any) -> None:
    with refused("TS511", position, "[-3, 3]"):
        run(on_rows("SequenceInsert", "q x i"), x=x, i=np.array(position))


def test_sequence_insert_takes_the_sequence_s_own_element_type(x: Any) -> None:
    with refused("TS510", "double", "float", "graph/at"):
        run(on_rows("SequenceInsert", "q t"), x=x, t=x.astype(np.float64))


@pytest.mark.parametrize("position", [np.array(1.0), np.array([0, 1]), np.array(1, np.uint8)])
def test_a_position_is_one_integer(position: Any, x: Any) -> None:
    with refused("TS105", str(position.dtype), parameter="position"):
        run(on_rows("SequenceAt", "q i"), x=x, i=position)


@pytest.mark.parametrize("op_type", ["SequenceAt", "SequenceErase", "SequenceInsert"])
def test_a_tensor_is_no_sequence(op_type: str, x: Any) -> None:
    with refused("TS510", "not a sequence"):
        run(on_rows(op_type, "x i"), x=x, i=np.array(0))


def test_length_and_concatenation(x: Any) -> None:
    nodes = [
        node("SplitToSequence", "x s", "q"),
        node("SequenceLength", "q", "n"),
        node("ConcatFromSequence", "q", "y", axis=0),
    ]
    made = model(graph(nodes, map(untyped, "xs"), "ny"))
    assert_same(outputs(made, x=x, s=np.array(2)), [np.array(2), x])


def test_a_sequence_may_be_fed_and_returned(x: Any) -> None:
    made = model(
        graph(
            [node("SequenceAt", "q i", "y"), node("Split", "y", "a b", num_outputs=2)],
            [sequence("q"), untyped("i")],
            ["a", "b", sequence("q")],
        )
    )
    first, second, back = outputs(made, q=[x[:1], x], i=np.array(1))
    assert_same([first, second], slices(x, 0, [2, 1]))
    assert_same(back, [x[:1], x])


def optional_input(name: str, kind: str) -> Any:
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    inner = helper.make_sequence_type_proto(tensor) if kind == "sequence" else tensor
    return helper.make_value_info(name, helper.make_optional_type_proto(inner))


def test_an_optional_may_hold_a_tensor_or_nothing(x: Any) -> None:
    has = model(graph([node("OptionalHasElement", "o", "y")], [optional_input("o", "tensor")], "y"))
    get = model(graph([node("OptionalGetElement", "o", "y")], [optional_input("o", "tensor")], "y"))
    assert_same(outputs(has, o=x), [np.array(True)])
    assert_same(outputs(has, o=None), [np.array(False)])
    assert_same(outputs(get, o=x), [x])
    with refused("TS510", "empty"):
        run(get, o=None)


def test_an_optional_made_in_the_model(x: Any) -> None:
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    nodes = [
        node("SplitToSequence", "x", "q"),
        node("Optional", "q", "o"),
        node("OptionalGetElement", "o", "r"),
        node("OptionalHasElement", "o", "yes"),
        node("Optional", "", "e", type=kind),
        node("OptionalHasElement", "e", "no"),
    ]
    made = model(graph(nodes, [value("x")], ["r", "yes", "no", "e"]))
    held, yes, no, empty = outputs(made, x=x)
    assert_same(held, rows(x))
    assert_same([yes, no], [np.array(True), np.array(False)])
    assert empty is None


def test_optional_sequences_may_be_fed(x: Any) -> None:
    made = model(
        graph(
            [node("OptionalGetElement", "o", "q"), node("SequenceLength", "q", "y")],
            [optional_input("o", "sequence")],
            "y",
        )
    )
    assert_same(outputs(made, o=[x, x]), [np.array(2)])
    with refused("TS508", parameter="o"):
        run(made, o=x)


def test_identity_of_a_sequence(x: Any) -> None:
    made = on_rows("Identity", "q")
    assert_same(run(made, x=x)["r"], rows(x))


def test_a_sequence_of_another_element_type_is_refused(x: Any) -> None:
    made = model(graph([node("SequenceLength", "q", "n")], [sequence("q", FLOAT)], "n"))
    with refused("TS508", "element 1", "double", parameter="q"):
        run(made, q=[x, x.astype(np.float64)])
    with refused("TS508", "list", parameter="q"):
        run(made, q=x)
