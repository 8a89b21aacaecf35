"""What a split node asks for, with all, some or none of its inputs known."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from tensorsplit.model.graph import split_records
from tensorsplit.model.graph.binding import Known, bind, execute
from tensorsplit.model.graph.calls import attributes_of
from tensorsplit.model.graph.facts import ABSENT, UNKNOWN, Other, SequenceFact, Tensor
from tests.model.build import graph, link, linked, model, tensor, value
from tests.model.build import node as message
from tests.oracle import assert_same, slices
from tests.refusals import refused

INT = ir.DataType.INT64


def node(*words: str, **attributes: Any) -> ir.Node:
    return ir.serde.deserialize_node(message(*words, **attributes))


def with_link(name: str, of: str, **attributes: Any) -> ir.Node:
    """A Split into two with an attribute that refers to one of the function around it."""
    made = linked("Split", "x", "a b", link(name, of), **attributes)
    return ir.serde.deserialize_node(made)


def test_the_family_is_told_by_name_and_domain() -> None:
    assert split_records.is_onnx_split(node("Split", "x", "a"))
    assert split_records.is_onnx_split(node("SplitToSequence", "x", "a", domain="ai.onnx"))
    assert not split_records.is_onnx_split(node("Split", "x", "a", domain="custom"))
    assert not split_records.is_onnx_split(node("Concat", "x", "a"))
    assert split_records.is_vendor_split(
        node("VariadicSplit", "x", "a", domain="org.openvinotoolkit")
    )
    assert not split_records.is_vendor_split(node("VariadicSplit", "x", "a"))
    assert split_records.is_split(node("Split", "x", "a"))
    assert split_records.is_split(node("VariadicSplit", "x", "a", domain="org.openvinotoolkit"))
    assert not split_records.is_split(node("VariadicSplit", "x", "a"))


def test_attributes_and_inputs_are_bound_to_the_version_in_force() -> None:
    intent = bind(node("Split", "x s", "a b c", axis=-1), 17, [UNKNOWN, np.array([1, 2, 3])])
    assert intent.operator.id == "onnx.Split-13"
    assert (intent.axis, intent.given, intent.source, intent.outputs) == (-1, (1, 2, 3), "split", 3)


def test_inputs_of_which_nothing_is_known() -> None:
    made = node("Split", "x s", "a b", axis=1)
    cases: list[list[Known] | None] = [None, [UNKNOWN, UNKNOWN], [UNKNOWN, Tensor(INT, (2,))]]
    for known in cases:
        intent = bind(made, 13, known)
        assert (intent.axis, intent.given, intent.source) == (1, None, "split")
    with refused("TS105", parameter="split"):
        bind(made, 13, [UNKNOWN, Tensor(ir.DataType.INT32, (2,))])


@pytest.mark.parametrize(
    ("inputs", "known"),
    [("x", None), ("x _", None), ("x s", [UNKNOWN, None]), ("x s", [UNKNOWN, ABSENT])],
)
def test_absent_inputs_are_left_out(inputs: str, known: list[Known] | None) -> None:
    assert bind(node("Split", inputs, "a b", num_outputs=2), 18, known).source == "num_outputs"


def test_the_number_of_lengths_is_that_of_the_outputs_though_they_are_not_known() -> None:
    made = node("Split", "x s", "a b c", axis=1)
    assert bind(made, 13, [UNKNOWN, Tensor(INT, (3,))]).given is None
    assert bind(made, 13, [UNKNOWN, Tensor(INT, ("N",))]).given is None
    for count in (0, 2, 4):
        with refused("TS305", "onnx.Split-13", parameter="split"):
            bind(made, 13, [UNKNOWN, Tensor(INT, (count,))])
    sequence = node("SplitToSequence", "x s", "a")
    assert bind(sequence, 11, [UNKNOWN, Tensor(INT, (4,))]).given is None
    with refused("TS305", "onnx.SplitToSequence-11", "2 outputs", parameter="output_sequence"):
        bind(node("SplitToSequence", "x s", "a b"), 11)


def test_the_attribute_and_the_input_of_split_1_are_told_apart() -> None:
    attribute = bind(node("Split", "x", "a b", split=[1, 2]), 1)
    given = bind(node("Split", "x s", "a b"), 1, [UNKNOWN, np.array([1, 2], np.float16)])
    assert attribute.given == given.given == (1, 2)
    assert given.element_types == frozenset({"float16"})
    assert attribute.element_types == frozenset({"float16", "float", "double"})


def test_facts_and_arrays_bind_alike() -> None:
    made = node("Split", "x s", "a b", axis=1)
    lengths = np.array([1, 2])
    for known in (lengths, Tensor(INT, (2,), (1, 2))):
        intent = bind(made, 13, [UNKNOWN, known])
        assert (intent.axis, intent.given, intent.source, intent.outputs) == (1, (1, 2), "split", 2)
    for fact in (Other(), Tensor(INT), Tensor()):
        assert bind(made, 13, [Tensor(), fact]).given is None
    sequences: list[Known] = [[], SequenceFact()]
    for sequence in sequences:
        with refused("TS105", parameter="split"):
            bind(made, 13, [UNKNOWN, sequence])


def test_constants_are_read_where_nothing_is_said() -> None:
    lengths = [tensor("s", [2, 4])]
    made = model(graph([message("Split", "x s", "a b")], [value("x")], "ab", lengths), opset=13)
    (found,) = ir.from_proto(made).graph
    assert bind(found, 13).given == (2, 4)


def bound(made: ir.Node, **passed: Any) -> Any:
    """A node in a call of the function around it that passes these attributes."""
    given = {name: ir.convenience.convert_attribute(name, held) for name, held in passed.items()}
    return bind(made, 18, None, attributes_of(made, given))


def test_an_attribute_of_a_function_is_what_the_call_gives() -> None:
    made = with_link("axis", "where", num_outputs=2)
    assert bound(made, where=1).axis == 1
    for given, code in (([1], "TS106"), (1.0, "TS105"), ("1", "TS105")):
        with refused(code, parameter="axis"):
            bound(made, where=given)
    with refused("TS105", parameter="axis"):
        nothing = ir.Attr("axis", ir.AttributeType.INT, None)
        bind(made, 18, None, {**made.attributes, "axis": nothing})


def test_an_attribute_that_the_call_leaves_out_is_absent() -> None:
    assert bound(with_link("axis", "where", num_outputs=2)).axis == 0
    with refused("TS104"):
        bound(with_link("num_outputs", "n"), other=2)


def test_an_attribute_of_unknown_calls_is_known_only_at_run_time() -> None:
    assert bind(with_link("axis", "where", num_outputs=2), 18).axis is None
    intent = bind(with_link("num_outputs", "n"), 18)
    assert (intent.given, intent.source, intent.outputs) == (None, "num_outputs", 2)


def test_running_a_node() -> None:
    x = np.arange(12).reshape(3, 4)
    intent = bind(node("Split", "x", "a b", axis=1), 13, [x])
    assert_same(execute(intent, x), slices(x, 1, [2, 2]))
    lengths = np.array(2, np.int32)
    (parts,) = execute(bind(node("SplitToSequence", "x s", "q"), 13, [x, lengths]), x)
    assert_same(parts, slices(x, 0, [2, 1]))
    assert all(np.shares_memory(part, x) for part in parts)


def test_more_lengths_than_could_be_listed_are_refused() -> None:
    lengths = np.broadcast_to(np.array(1), (1 << 25,))
    with refused("TS308", parameter="split"):
        bind(node("Split", "x s", "a b"), 13, [UNKNOWN, lengths])
