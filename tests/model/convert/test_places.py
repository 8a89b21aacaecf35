"""Bodies, functions, names and everything else that has to come through a conversion."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import AttributeProto, ModelProto, helper

from tensorsplit.model.convert import convert
from tests.model.build import (
    BOOL,
    FLOAT,
    INT64,
    function,
    graph,
    known,
    link,
    linked,
    model,
    node,
    tensor,
    value,
)
from tests.model.convert.legal import check_equal, converted
from tests.refusals import refused

X = np.random.default_rng(3).uniform(1, 2, (7, 4)).astype(np.float32)
INTS = AttributeProto.INTS


def with_if(opset: int) -> ModelProto:
    """The lengths stand outside of the body that splits; the other body swaps halves."""
    then = graph([node("Split", "x k", "t0 t1", axis=0, name="s")], outputs=[value("t0")])
    evenly = node("Split", "x", "e0 e1", axis=-1, num_outputs=2)
    other = graph([evenly, node("Concat", "e1 e0", "e2", axis=1)], outputs=[value("e2")])
    chosen = node("If", "c", "y", then_branch=then, else_branch=other)
    inputs = [value("x", FLOAT, ["N", 4]), value("c", BOOL, [])]
    return model(
        graph([chosen], inputs, [value("y", FLOAT, [None, None])], [tensor("k", [3, 4])]), opset
    )


@pytest.mark.parametrize("target", known(1, 2, 10, 11, 12, 13, 17, 19, 24, 28))
def test_bodies_are_converted_with_the_constants_they_capture(target: int) -> None:
    made = converted(with_if(18), target)
    check_equal(made, [X[:3]], x=X, c=np.array(True))
    check_equal(made, [np.concatenate([X[:, 2:], X[:, :2]], 1)], x=X, c=np.array(False))


@pytest.mark.parametrize("target", known(1, 9, 10, 12, 13, 17, 28))
def test_a_loop_in_a_loop_is_converted(target: int) -> None:
    inner = graph(
        [
            node("Identity", "d", "d2"),
            node("Split", "t", "u v", axis=1, num_outputs=2),
            node("Concat", "v u", "t2", axis=1),
        ],
        [value("j", INT64, []), value("d", BOOL, []), value("t", FLOAT, ["N", 4])],
        [value("d2", BOOL, []), value("t2", FLOAT, ["N", 4])],
    )
    outer = graph(
        [node("Identity", "c", "c2"), node("Loop", "n c s", "s2", body=inner)],
        [value("i", INT64, []), value("c", BOOL, []), value("s", FLOAT, ["N", 4])],
        [value("c2", BOOL, []), value("s2", FLOAT, ["N", 4])],
    )
    whole = graph(
        [node("Loop", "n go x", "y", body=outer)],
        [value("x", FLOAT, ["N", 4]), value("n", INT64, []), value("go", BOOL, [])],
        [value("y", FLOAT, ["N", 4])],
    )
    made = converted(model(whole, 18), target)
    swapped = np.concatenate([X[:, 2:], X[:, :2]], 1)
    check_equal(made, [swapped], x=X, n=np.array(1), go=np.array(True))
    check_equal(made, [X], x=X, n=np.array(2), go=np.array(True))


def calling(inner: Any, opset: int, **given: Any) -> ModelProto:
    call = node("F", "x", "a b", domain="custom", **given)
    parts = [value(name, FLOAT, [None, None]) for name in "ab"]
    whole = graph([call], [value("x", FLOAT, ["N", 4])], parts)
    return model(whole, opset, [inner], custom=1)


@pytest.mark.parametrize("target", known(1, 2, 11, 12, 13, 18, 28))
def test_lengths_that_a_function_is_given_as_attribute_stay_so(target: int) -> None:
    split = linked("Split", "x", "a b", link("split", "s", INTS), axis=0)
    made = calling(function("F", "x", "a b", [split], ["s"], opset=11), 11, s=[3, 4])
    there = converted(made, target)
    check_equal(there, [X[:3], X[3:]], x=X)
    check_equal(converted(there, 11), [X[:3], X[3:]], x=X)


@pytest.mark.parametrize("target", known(12, 13, 17, 19))
def test_an_axis_that_a_function_is_given_stays_so(target: int) -> None:
    split = linked("Split", "x", "a b", link("axis", "where"), num_outputs=2)
    inner = function("F", "x", "a b", [split], ["where"], opset=18)
    made = converted(calling(inner, 18, where=0), target)
    check_equal(made, [X[:4], X[4:]], x=X)
    made = converted(calling(inner, 18, where=-1), target)
    check_equal(made, [X[:, :2], X[:, 2:]], x=X)


@pytest.mark.parametrize("target", known(9, 13, 17, 19))
def test_a_number_of_outputs_that_a_function_is_given_is_that_of_the_node(target: int) -> None:
    split = linked("Split", "x", "a b", link("num_outputs", "n"), axis=1)
    made = calling(function("F", "x", "a b", [split], ["n"], opset=18), 18, n=2)
    check_equal(converted(made, target), [X[:, :2], X[:, 2:]], x=X)


def test_a_function_at_another_opset_than_the_model_is_converted() -> None:
    split = node("Split", "x", "a b", axis=1, num_outputs=2)
    made = calling(function("F", "x", "a b", [split], opset=18), 13)
    there = convert(made, 13)
    assert isinstance(there, ModelProto)
    assert [entry.version for entry in there.functions[0].opset_import if not entry.domain] == [13]
    assert there.functions[0].node[0].attribute[0].name != "num_outputs"


def test_new_names_occur_nowhere_else() -> None:
    """Names that a tool would choose are there already, in the graph, a body and a function."""
    taken = ["split_constant", "split_constant_1", "split_Constant", "s_constant", "s_Constant"]
    passing = [node("Identity", "x", name, name=name) for name in taken]
    split = node("Split", "x", "a b", axis=0, split=[3, 4])
    named = node("Split", "x", "c d", axis=0, split=[3, 4], name="s")
    outputs = [value(name, FLOAT, [None, None]) for name in ("a", "d", *taken)]
    made = model(graph([*passing, split, named], [value("x", FLOAT, [7, 4])], outputs), 11)
    there = converted(made, 13)
    names = [name for entry in there.graph.node for name in entry.output]
    assert len(set(names)) == len(names)
    check_equal(there, [X[:3], X[3:], *[X] * len(taken)], x=X)


def test_constants_go_away_only_if_nothing_else_reads_them() -> None:
    nodes = [
        node("Constant", "", "k", value=tensor("k", [3, 4])),
        node("Constant", "", "m", value=tensor("m", [3, 4])),
        node("Split", "x k", "a b", axis=0),
        node("Split", "x m", "c d", axis=0),
        node("Split", "x i", "e f", axis=0),
        node("Split", "x j", "g h", axis=0),
        node("Identity", "j", "l"),
    ]
    outputs = [value("a", FLOAT, [None, None]), value("m", INT64, [2]), value("l", INT64, [2])]
    initializers = [tensor("i", [3, 4]), tensor("j", [3, 4])]
    made = model(graph(nodes, [value("x", FLOAT, [7, 4])], outputs, initializers), 13)
    there = converted(made, 12)
    assert [entry.output[0] for entry in there.graph.node if entry.op_type == "Constant"] == ["m"]
    assert [entry.name for entry in there.graph.initializer] == ["j"]


def test_what_is_not_touched_stays_as_it_is() -> None:
    split = node("Split", "x", "a b", axis=1, name="s", doc_string="cuts")
    odd = helper.make_node("Odd", ["a"], ["c"], domain="other", name="odd")
    parts = [value("b", FLOAT, [None, None]), value("c", FLOAT, [None, None])]
    whole = graph([split, odd], [value("x", FLOAT, ["N", 4])], parts)
    made = model(whole, 13, other=7)
    made.doc_string, made.producer_name, made.graph.doc_string = "model", "someone", "graph"
    made.metadata_props.add(key="k", value="v")
    made.graph.node[0].metadata_props.add(key="node", value="w")
    there = convert(made, 18)
    assert isinstance(there, ModelProto)
    assert {entry.domain: entry.version for entry in there.opset_import} == {"": 18, "other": 7}
    split.attribute.append(helper.make_attribute("num_outputs", 2))
    split.metadata_props.add(key="node", value="w")
    assert there.graph.node[0] == split
    there.graph.node[0].CopyFrom(made.graph.node[0])
    there.opset_import[0].CopyFrom(made.opset_import[0])
    assert there == made


def test_a_model_that_is_there_already_comes_back_unchanged(tmp_path: Any) -> None:
    made = with_if(18)
    data = made.SerializeToString()
    there = convert(made, 18)
    assert isinstance(there, ModelProto)
    assert there.SerializeToString() == data
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    read = convert(path, 18)
    assert isinstance(read, ModelProto)
    assert read.SerializeToString() == data


def test_the_kind_that_came_in_comes_out_and_is_left_as_it_is() -> None:
    made = with_if(18)
    data = made.SerializeToString()
    assert isinstance(convert(made, 13), ModelProto)
    assert made.SerializeToString() == data
    graph_of_ir = ir.serde.deserialize_model(made)
    assert isinstance(convert(graph_of_ir, 13), ir.Model)
    assert graph_of_ir.opset_imports == {"": 18}


def test_the_ir_version_is_raised_where_the_opset_needs_it_and_kept_otherwise() -> None:
    made = with_if(18)
    made.ir_version = 8
    newest = convert(made, 24)
    older = convert(made, 11)
    assert isinstance(newest, ModelProto)
    assert isinstance(older, ModelProto)
    assert newest.ir_version == helper.find_min_ir_version_for([helper.make_opsetid("", 24)])
    assert older.ir_version == 8


def test_a_split_that_is_wrong_but_never_runs_does_not_stop_the_rest() -> None:
    """Generated code has branches for other ranks; here 4 parts of 5 would be 2, 2, 2 and -1."""
    wrong = node("Split", "x", "p q r s", axis=0, num_outputs=4)
    right = node("Split", "x", "t u", axis=1, num_outputs=2)
    chosen = node(
        "If",
        "c",
        "y",
        then_branch=graph([wrong], outputs=[value("p")]),
        else_branch=graph([right], outputs=[value("t")]),
    )
    inputs = [value("x", FLOAT, [5, 4]), value("c", BOOL, [])]
    made = model(graph([chosen], inputs, [value("y", FLOAT, [None, None])]), 18)
    there = convert(made, 13)
    assert isinstance(there, ModelProto)
    check_equal(there, [X[:5, :2]], x=X[:5], c=np.array(False))


def test_an_external_tensor_is_not_read(tmp_path: Any) -> None:
    weights = tensor("w", np.ones((7, 4)), np.float32)
    nodes = [node("Add", "x w", "z"), node("Split", "z", "a b", axis=1)]
    parts = [value(name, FLOAT, [None, None]) for name in "ab"]
    made = model(graph(nodes, [value("x", FLOAT, [7, 4])], parts, [weights]), 13)
    path = tmp_path / "model.onnx"
    onnx.save(made, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    (tmp_path / "w.bin").unlink()
    there = convert(path, 18)
    assert isinstance(there, ModelProto)
    (kept,) = there.graph.initializer
    assert {entry.key: entry.value for entry in kept.external_data}["location"] == "w.bin"


@pytest.mark.parametrize("opset", [0, 29, -1, "x", None, 18.0, True, 2**70])
def test_an_opset_that_does_not_exist_is_refused(opset: Any) -> None:
    with refused("TS101", "opset", parameter="opset"):
        convert(with_if(18), opset)


@pytest.mark.parametrize(
    ("dtype", "source", "target"),
    [("bfloat16", 13, 12), ("int32", 2, 1), ("string", 11, 1), ("bfloat16", 24, 11)],
)
def test_an_element_type_that_the_target_lacks_is_refused(
    dtype: str, source: int, target: int
) -> None:
    element = int(ir.DataType[dtype.upper()])
    split = node(
        "Split", "x", "a b", axis=0, name="s", **({"num_outputs": 2} if source > 17 else {})
    )
    parts = [value(name, element, [None]) for name in "ab"]
    made = model(graph([split], [value("x", element, [4])], parts), source)
    with refused("TS201", "graph/s", dtype):
        convert(made, target)


def test_split_to_sequence_exists_from_opset_11_on() -> None:
    nodes = [
        node("SplitToSequence", "x", "s", axis=0, keepdims=0, name="cut"),
        node("SequenceLength", "s", "n"),
    ]
    made = model(graph(nodes, [value("x", FLOAT, [7, 4])], [value("n", INT64, [])]), 11)
    for target in known(12, 13, 23, 24, 28):
        check_equal(converted(made, target), [np.array(7)], x=X)
    with refused("TS101", "graph/cut", "opset 10"):
        convert(made, 10)


@pytest.mark.parametrize("break_it", ["input", "output", "attribute"])
def test_a_model_that_is_not_well_formed_is_refused(break_it: str) -> None:
    nodes = [node("Relu", "x", "z", name="r"), node("Split", "z", "a b", axis=1)]
    made = model(graph(nodes, [value("x", FLOAT, [7, 4])], [value("a", FLOAT, [None, None])]), 11)
    if break_it == "input":
        made.graph.node[0].input[0] = "nowhere"
    elif break_it == "output":
        made.graph.output[0].name = "nowhere"
    else:
        made.graph.node[0].attribute.append(helper.make_attribute("nowhere", 1))
    with refused("TS502", "nowhere"):
        convert(made, 18)
