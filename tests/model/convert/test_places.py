"""Bodies, functions, names and everything else that has to come through a conversion."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import AttributeProto, ModelProto, helper
from onnx.parser import parse_model

import tensorsplit as ts
from tensorsplit import SplitError
from tensorsplit.model.convert import convert
from tensorsplit.model.convert.driver import open_converted
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
    outputs,
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
def test_lengths_that_a_function_is_given_as_attribute_are_those_of_the_call(target: int) -> None:
    split = linked("Split", "x", "a b", link("split", "s", INTS), axis=0)
    made = calling(function("F", "x", "a b", [split], ["s"], opset=11), 11, s=[3, 4])
    there = converted(made, target)
    check_equal(there, [X[:3], X[3:]], x=X)
    check_equal(converted(there, 11), [X[:3], X[3:]], x=X)


@pytest.mark.parametrize("target", known(9, 10, 11, 12, 13, 17, 19))
@pytest.mark.parametrize("where", [0, -1])
def test_an_axis_that_a_function_is_given_is_known_in_the_function(target: int, where: int) -> None:
    """Below opset 18 the lengths are calculated from it; 4 is split as 2 and 2, 7 as 4 and 3."""
    split = linked("Split", "x", "a b", link("axis", "where"), num_outputs=2)
    inner = function("F", "x", "a b", [split], ["where"], opset=18)
    made = calling(inner, 18, where=where)
    if target < 10 and where == 0:  # 7 is a dimension that only the running model knows
        with refused("TS310", "function custom::F"):
            convert(made, target)
    else:
        expected = [X[:4], X[4:]] if where == 0 else [X[:, :2], X[:, 2:]]
        check_equal(converted(made, target), expected, x=X)


def names_of(made: Any) -> list[str]:
    return [entry.name for entry in made.functions]


def test_a_function_is_made_once_for_each_axis_that_its_callers_give() -> None:
    split = linked("Split", "x", "a b", link("axis", "where"), num_outputs=2)
    cut = function("F", "x", "a b", [split], ["where"])
    taken = function("F_1", "x", "y", [node("Neg", "x", "y")])
    axes = enumerate((0, 1, 0, -1))
    calls = [node("F", "x", f"a{k} b{k}", domain="custom", where=axis) for k, axis in axes]
    minus = node("F_1", "x", "y", domain="custom")
    names = [*(name for call in calls for name in call.output), "y"]
    ends = [value(name, FLOAT, [None, None]) for name in names]
    inputs = [value("x", FLOAT, ["N", "M"])]
    made = model(graph([*calls, minus], inputs, ends), 18, [cut, taken], custom=1)
    there = converted(made, 11)
    assert sorted(names_of(there)) == ["F", "F_1", "F_2", "F_3"]
    assert not any(entry.attribute for entry in there.functions)
    rows, columns = [X[:4], X[4:]], [X[:, :2], X[:, 2:]]
    check_equal(there, [*rows, *columns, *rows, *columns, -X], x=X)


def test_a_function_stays_as_it_is_where_no_node_has_to_know_its_attributes() -> None:
    split = linked("Split", "x", "a b", link("axis", "where"))
    cut = function("F", "x", "a b", [split], ["where"], opset=13)
    calls = [node("F", "x", f"a{k} b{k}", domain="custom", where=k) for k in range(2)]
    ends = [value(name, FLOAT, [None, None]) for name in ("a0", "b0", "a1", "b1")]
    made = model(graph(calls, [value("x", FLOAT, ["N", "M"])], ends), 13, [cut], custom=1)
    for target in (11, 12, 17):
        there = converted(made, target)
        assert names_of(there) == ["F"]
        assert list(there.functions[0].attribute) == ["where"]
        x = X[:6]
        check_equal(there, [x[:3], x[3:], x[:, :2], x[:, 2:]], x=x)


@pytest.mark.parametrize("target", known(10, 11, 12, 28))
def test_an_axis_goes_through_calls_in_bodies_and_in_other_functions(target: int) -> None:
    """The outer function passes on its own axis, and has a default for it."""
    split = linked("Split", "x", "p q", link("axis", "dim"), num_outputs=2)
    inner = function("Inner", "x", "p q", [split], ["dim"], overload="")
    branch = graph(
        [linked("Inner", "x", "p q", link("dim", "where"), domain="custom")],
        outputs=[value("p", FLOAT)],
    )
    other = graph([node("Inner", "x", "r s", domain="custom", dim=0)], outputs=[value("s", FLOAT)])
    chosen = node("If", "c", "y", then_branch=branch, else_branch=other)
    outer = function("Outer", "x c", "y", [chosen], defaults={"where": 1})
    calls = [
        node("Outer", "x c", "y", domain="custom"),
        node("Outer", "x c", "z", domain="custom", where=0),
        node("Inner", "x", "u v", domain="custom", dim=1),
    ]
    ends = [value(name, FLOAT, [None, None]) for name in ("y", "z", "v")]
    inputs = [value("x", FLOAT, ["N", "M"]), value("c", BOOL, [])]
    made = model(graph(calls, inputs, ends), 18, [inner, outer], custom=1)
    there = converted(made, target)
    x = X[:, :3]
    check_equal(there, [x[:, :2], x[:4], x[:, 2:]], x=x, c=np.array(True))
    check_equal(there, [x[4:], x[4:], x[:, 2:]], x=x, c=np.array(False))


@pytest.mark.parametrize("target", known(11, 13, 28))
def test_overloads_of_a_function_stay_apart(target: int) -> None:
    split = linked("Split", "x", "a b", link("axis", "where"), num_outputs=2)
    swapped = linked("Split", "x", "b a", link("axis", "where"), num_outputs=2)
    functions = [
        function("F", "x", "a b", [split], ["where"], overload="one"),
        function("F", "x", "a b", [swapped], ["where"], overload="two"),
    ]
    calls = []
    for k, (overload, axis) in enumerate([("one", 0), ("two", 0), ("one", 1), ("two", 1)]):
        calls.append(node("F", "x", f"a{k} b{k}", domain="custom", where=axis))
        calls[-1].overload = overload
    ends = [value(f"a{k}", FLOAT, [None, None]) for k in range(4)]
    made = model(graph(calls, [value("x", FLOAT, ["N", "M"])], ends), 18, functions, custom=1)
    made.ir_version = 10
    there = converted(made, target)
    check_equal(there, [X[:4], X[4:], X[:, :2], X[:, 2:]], x=X)


def test_a_function_that_nobody_calls_goes_where_its_attributes_have_to_be_known() -> None:
    split = linked("Split", "x", "a b", link("axis", "where"), num_outputs=2)
    unused = function("Unused", "x", "a b", [split], ["where"])
    passing = linked("Unused", "x", "a b", link("where", "where"), domain="custom")
    also = function("Also", "x", "a b", [passing], ["where"])
    plain = function("Plain", "x", "y", [node("Neg", "x", "y")])
    inputs, ends = [value("x", FLOAT, [4, 4])], [value("y", FLOAT, [4, 4])]
    made = model(graph([node("Neg", "x", "y")], inputs, ends), 18, [unused, also, plain], custom=1)
    assert names_of(converted(made, 24)) == ["Unused", "Also", "Plain"]
    there = converted(made, 11)
    assert names_of(there) == ["Plain"]
    _, report = open_converted(made, 11)
    assert report.dropped == ["function custom::Unused", "function custom::Also"]
    check_equal(there, [-X[:4]], x=X[:4])


def test_a_call_that_does_not_fit_its_function_is_refused() -> None:
    split = linked("Split", "x", "a b", link("axis", "where"), num_outputs=2)
    made = calling(function("F", "x", "a b", [split], ["where"]), 18, where=0, there=1)
    with refused("TS502", "graph/F[0]", "no attribute 'there'"):
        convert(made, 11)
    lost = model(graph([split], [value("x", FLOAT, [4])], "ab"), 18)
    with refused("TS502", "graph/Split[0]", "the node is in none"):
        convert(lost, 11)


def test_a_body_that_a_function_is_passed_is_refused() -> None:
    branch = graph([node("Neg", "x", "n")], outputs=[value("n", FLOAT)])
    split = linked("Split", "x", "a b", link("axis", "where"), num_outputs=2)
    choice = linked("If", "c", "y", link("then_branch", "t", AttributeProto.GRAPH))
    choice.attribute.append(helper.make_attribute("else_branch", branch))
    inner = function("F", "x c", "a y", [split, choice], ["where", "t"])
    call = node("F", "x c", "a y", domain="custom", where=0, t=branch)
    inputs = [value("x", FLOAT, [4]), value("c", BOOL, [])]
    ends = [value(name, FLOAT, [None]) for name in "ay"]
    with refused("TS509", "function custom::F", "a body is passed to a function"):
        convert(model(graph([call], inputs, ends), 18, [inner], custom=1), 10)


def test_a_split_in_a_function_becomes_variadic_with_the_axis_of_each_call() -> None:
    split = linked("Split", "x", "a b", link("axis", "where"), num_outputs=2)
    cut = function("F", "x", "a b", [split], ["where"], opset=18)
    calls = [node("F", "x", f"a{k} b{k}", domain="custom", where=k) for k in range(2)]
    ends = [value(name, FLOAT, [None, None]) for name in ("a0", "b0", "a1", "b1")]
    made = model(graph(calls, [value("x", FLOAT, ["N", "M"])], ends), 18, [cut], custom=1)
    for opset in (None, 11):
        there = convert(made, opset, variadic=True)
        assert isinstance(there, ModelProto)
        check_equal(there, [X[:4], X[4:], X[:, :2], X[:, 2:]], x=X)


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


def test_a_position_that_is_wrong_but_never_runs_does_not_stop_the_rest() -> None:
    nodes = [node("SequenceConstruct", "x x", "q"), node("SequenceAt", "q five", "p")]
    wrong = graph(nodes, outputs=[value("p")])
    right = graph([node("Neg", "x", "n")], outputs=[value("n")])
    chosen = node("If", "c", "y", then_branch=wrong, else_branch=right)
    inputs = [value("x", FLOAT, [6, 4]), value("c", BOOL, [])]
    five = [tensor("five", 5)]
    made = model(graph([chosen], inputs, [value("y", FLOAT, [6, 4])], five), 11)
    convert(made, 13)
    taken = graph(nodes, inputs[:1], [value("p", FLOAT, [6, 4])], five)
    with refused("TS511", "graph/SequenceAt[1]"):
        convert(model(taken, 11), 13)


@pytest.mark.parametrize("target", [14, 17])
def test_a_wrong_split_is_refused_where_it_would_stay_as_it_is(target: int) -> None:
    cut = node("Split", "x l", "a b")
    made = graph([cut], [value("x", FLOAT, [6])], ["a", "b"], [tensor("l", [2, 3])])
    with refused("TS302", "graph/Split[0]"):
        convert(model(made, 13), target)


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
    with refused("TS101", "graph/cut", "opset 10", "without them"):
        convert(made, 10)
    without = ts.lower(made, "portable")  # as the message says
    check_equal(converted(without, 10), [np.array(7)], x=X)


def test_a_loop_carries_sequences_from_opset_13_on() -> None:
    made = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 13]> g (float[7,4] x) => (float[M,4] y)
        <int64 n = {3}, bool c = {1}> {
        s = SplitToSequence(x) t = Loop(n, c, s) <body = b (int64 i, bool d, seq(float[?,4]) u) =>
        (bool e, seq(float[?,4]) v) { e = Identity(d) w = SequenceAt(u, i)
        v = SequenceInsert(u, w) }> y = ConcatFromSequence<axis = 0>(t) }"""
    )
    with refused("TS512", "graph/Loop", "which opset 12 does not take", "without them"):
        convert(made, 12)
    check_equal(
        converted(ts.lower(made, "portable"), 12), list(ts.run(made, {"x": X}).values()), x=X
    )


@pytest.mark.parametrize("kind", ["float", "int64", "string"])
@pytest.mark.parametrize("target", [11, 12, 13])
def test_before_opset_14_a_sequence_is_passed_on_by_a_tensor_more_and_less(
    target: int, kind: str
) -> None:
    """A body gives what its own nodes make, so that an Identity can't just be left out."""
    loop = f"""u = Loop(n, , t) <body = b (int64 i, bool c, seq({kind}[?,2]) p)
        => (bool d, seq({kind}[?,2]) q) {{ d = Identity(c) q = Identity(p) }}>"""
    made = parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g ({kind}[N,2] x, int64 n) => ({kind}[A,2] y)
        {{ s = SplitToSequence(x) t = Identity(s) {loop if target > 12 else "u = Identity(t)"}
        y = SequenceAt(u, n) }}"""
    )
    older = converted(made, target)
    assert "SequenceErase" in {each.op_type for each in older.graph.node}
    x = np.array([["a", "b"], ["c", "d"], ["e", "f"]], object)
    if kind != "string":
        x = np.arange(6).reshape(3, 2).astype("float32" if kind == "float" else kind)
    for place in (1, 2):
        check_equal(older, [x[place : place + 1]], x=x, n=np.array(place))
    with refused("TS511", "has 3 tensors"):
        outputs(older, x=x, n=np.array(3))


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


def test_functions_are_made_once_for_each_set_of_inputs_that_calls_omit() -> None:
    """Split-18 needs `num_outputs` or lengths; Split-13 takes equal parts where none are given."""
    made = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["": 13, "local": 1]>
        g (float[N, 4] x, int64[2] l) => (float[A, 4] a, float[B, 4] b, float[C, 4] c) {
            a, r = local.Outer(x, l)
            b, s = local.Outer(x)
            c, t = local.Outer(x, "")
        }
        <opset_import: ["": 13, "local": 1], domain: "local">
        Outer (x, l) => (p, q) { p, q = local.Inner(x, l) }
        <opset_import: ["": 13], domain: "local">
        Inner (x, l) => (p, q) { p, q = Split(x, l) }""")
    feeds = {"x": X[:6], "l": np.array([1, 5])}
    for target in known(18, 21):
        newer = convert(made, target)
        assert len(newer.functions) == 4
        got = ts.run(newer, feeds)
        assert got["a"].tolist() == X[:1].tolist()
        assert got["b"].tolist() == got["c"].tolist() == X[:3].tolist()
        assert sorted(held.name for held in newer.functions)[0::2] == ["Inner", "Outer"]
        with refused("TS302", "sums to 4"):
            ts.run(newer, {"x": X[:5], "l": np.array([1, 4])})
    got = ts.run(convert(made, 13, variadic=True), feeds)
    assert (got["a"].tolist(), got["b"].tolist()) == (X[:1].tolist(), X[:3].tolist())


@pytest.mark.parametrize("target", [9, 11, 12])
def test_a_sequence_of_branches_that_nothing_reads_goes_to_any_opset(target: int) -> None:
    """An If gives no sequences before opset 13, and before 11 there are none."""
    made = parse_model(
        """<ir_version: 8, opset_import: ["": 13]> g (float[4] x, bool c) => (float[4] y) {
        s, y = If (c) <
          then_branch = t () => (seq(float[4]) p, float[4] a) {
            a = Neg(x) o = SequenceConstruct(a, x) p = SequenceInsert(o, x) },
          else_branch = e () => (seq(float[4]) q, float[4] d) {
            q = SequenceConstruct(x) d = Relu(x) }> }"""
    )
    there, data = converted(made, target), np.array([1, -2, 3, -4], np.float32)
    for flag, wanted in ((True, -data), (False, [1, 0, 3, 0])):
        (found,) = outputs(there, x=data, c=np.array(flag))
        np.testing.assert_array_equal(found, wanted)


def test_a_split_of_an_unread_sequence_is_refused_as_before() -> None:
    made = parse_model(
        """<ir_version: 8, opset_import: ["": 13]> g (float[4] x, int64 l, bool c) => (float[4] y) {
        s, y = If (c) <
          then_branch = t () => (seq(float[N]) p, float[4] a) {
            a = Neg(x) p = SplitToSequence(x, l) },
          else_branch = e () => (seq(float[N]) q, float[4] d) {
            q = SequenceConstruct(x) d = Relu(x) }> }"""
    )
    there, data = converted(made, 11), np.array([1, -2, 3, -4], np.float32)
    feeds = {"x": data, "c": np.array(True)}
    np.testing.assert_array_equal(outputs(there, **feeds, l=np.array(3))[0], -data)
    with refused("TS307"):
        outputs(there, **feeds, l=np.array(0))
    with pytest.raises(SplitError, match="SplitToSequence"):
        convert(made, 10)
