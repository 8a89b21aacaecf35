"""What a split node gives to its operator version, with all, some or none of its inputs known."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx import NodeProto

from tensorsplit.core.operands import Operand
from tensorsplit.model.graph.binding import UNKNOWN, Known, bind, bind_node, call_of, cut, is_split
from tensorsplit.model.graph.facts import Other, Sequence, Tensor
from tests.model.build import graph, link, linked, model, node, tensor, value
from tests.oracle import assert_same, slices
from tests.refusals import refused

INT = ir.DataType.INT64


def test_the_family_is_told_by_name_and_domain() -> None:
    assert is_split(node("Split", "x", "a"))
    assert is_split(node("SplitToSequence", "x", "a", domain="ai.onnx"))
    assert not is_split(node("Split", "x", "a", domain="custom"))
    assert not is_split(node("Concat", "x", "a"))


def test_attributes_and_inputs_with_their_spelling() -> None:
    made = node("Split", "x s", "a b c", axis=-1)
    call = call_of(made, 17, [UNKNOWN, np.array([1, 2, 3])])
    assert call.operator.id == "onnx.Split-13"
    assert call.operands == [
        ("axis", Operand((-1,), 0, None, "attribute")),
        ("split", Operand((1, 2, 3), 1, "int64", "input")),
    ]
    assert call.outputs == 3


def test_inputs_of_which_nothing_is_known() -> None:
    made = node("Split", "x s", "a b", axis=1)
    assert call_of(made, 13).operands[1] == ("split", UNKNOWN)
    intent = bind_node(made, 13)
    assert (intent.axis, intent.given, intent.source) == (1, None, "split")
    intent = bind_node(made, 13, [UNKNOWN, Operand(None, 1, "int64", "input")])
    assert intent.given is None
    with refused("TS105", parameter="split"):
        bind_node(made, 13, [UNKNOWN, Operand(None, 1, "int32", "input")])


@pytest.mark.parametrize("inputs", ["x", "x _"])
def test_absent_inputs_are_left_out(inputs: str) -> None:
    made = node("Split", inputs, "a b", num_outputs=2)
    known = [UNKNOWN] * len(made.input)
    assert [name for name, _ in call_of(made, 18, known).operands] == ["num_outputs"]
    made = node("Split", "x s", "a b", num_outputs=2)
    assert [name for name, _ in call_of(made, 18, [UNKNOWN, None]).operands] == ["num_outputs"]


def test_the_attribute_and_the_input_of_split_1_are_told_apart() -> None:
    attribute = bind_node(node("Split", "x", "a b", split=[1, 2]), 1)
    given = bind_node(node("Split", "x s", "a b"), 1, [UNKNOWN, np.array([1, 2], np.float16)])
    assert attribute.given == given.given == (1, 2)
    assert given.element_types == frozenset({"float16"})
    assert attribute.element_types == frozenset({"float16", "float", "double"})


def test_attributes_that_stand_for_those_of_a_function() -> None:
    made = linked("Split", "x", "a b", link("axis", "n"), num_outputs=2)
    assert bind_node(made, 18, linked={"axis": 1}).axis == 1
    for given, code in (([1], "TS106"), (1.0, "TS105"), (None, "TS105"), (True, "TS105")):
        with refused(code, parameter="axis"):
            bind_node(made, 18, linked={"axis": given})


def test_running_a_node() -> None:
    x = np.arange(12).reshape(3, 4)
    assert_same(cut(node("Split", "x", "a b", axis=1), 13, [x]), slices(x, 1, [2, 2]))
    (parts,) = cut(node("SplitToSequence", "x s", "q"), 13, [x, np.array(2, np.int32)])
    assert_same(parts, slices(x, 0, [2, 1]))
    assert all(np.shares_memory(part, x) for part in parts)


def test_more_lengths_than_could_be_listed_are_refused() -> None:
    lengths = np.broadcast_to(np.array(1), (1 << 25,))
    with refused("TS308", parameter="split"):
        bind_node(node("Split", "x s", "a b"), 13, [UNKNOWN, lengths])


def in_ir(made: NodeProto) -> ir.Node:
    return ir.serde.deserialize_node(made)


def test_facts_arrays_and_operands_bind_alike() -> None:
    made = in_ir(node("Split", "x s", "a b", axis=1))
    lengths = np.array([1, 2])
    for known in (lengths, Operand((1, 2), 1, "int64", "input"), Tensor(INT, (2,), (1, 2))):
        intent = bind(made, 13, [UNKNOWN, known])
        assert (intent.axis, intent.given, intent.source, intent.outputs) == (1, (1, 2), "split", 2)
    for fact in (Other(), Tensor(INT), Tensor()):
        assert bind(made, 13, [Tensor(), fact]).given is None
    sequences: list[Known] = [[], Sequence()]
    for sequence in sequences:
        with refused("TS105", parameter="split"):
            bind(made, 13, [UNKNOWN, sequence])


def test_constants_are_read_where_nothing_is_said() -> None:
    made = model(
        graph([node("Split", "x s", "a b")], [value("x")], "ab", [tensor("s", [2, 4])]), opset=13
    )
    (found,) = ir.from_proto(made).graph
    assert bind(found, 13).given == (2, 4)


def test_an_attribute_of_a_function_is_what_the_call_gives() -> None:
    made = in_ir(linked("Split", "x", "a b", link("axis", "where"), num_outputs=2))
    assert bind(made, 18, attributes={"where": 1}).axis == 1
    with refused("TS106", parameter="axis"):
        bind(made, 18, attributes={"where": [1]})


def test_an_attribute_that_the_call_leaves_out_is_absent() -> None:
    made = in_ir(linked("Split", "x", "a b", link("axis", "where"), num_outputs=2))
    assert bind(made, 18, attributes={}).axis == 0
    made = in_ir(linked("Split", "x", "a b", link("num_outputs", "count")))
    with refused("TS104"):
        bind(made, 18, attributes={"other": 2})


def test_an_attribute_of_unknown_calls_is_known_only_at_run_time() -> None:
    made = in_ir(linked("Split", "x", "a b", link("axis", "where"), num_outputs=2))
    assert bind(made, 18).axis is None
    made = in_ir(linked("Split", "x", "a b", link("num_outputs", "count")))
    intent = bind(made, 18)
    assert (intent.given, intent.source, intent.outputs) == (None, "num_outputs", 2)
