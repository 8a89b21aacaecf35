"""If, Loop, Scan and SequenceMap: what their standard pages say, with split nodes inside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, GraphProto, ModelProto, TensorProto, helper

import tensorsplit as ts
from tests.model.build import (
    BOOL,
    FLOAT,
    INT64,
    check,
    graph,
    known,
    model,
    node,
    outputs,
    run,
    sequence,
    tensor,
    untyped,
    value,
)
from tests.oracle import assert_same, slices
from tests.refusals import refused

YES, NO = np.array(True), np.array(False)


def count(number: int) -> Any:
    return np.array(number, np.int64)


@pytest.fixture
def x(rng: np.random.Generator) -> Any:
    return rng.random((6, 2)).astype(np.float32) + 1


def branches(*then: Any, otherwise: list[Any], opset: int = 18) -> ModelProto:
    """An If on `cond` over branches that read `x` from around them and give `y` and `z`."""
    chosen = node("If", "cond", "y z", then_branch=graph(then, [], "ab"))
    chosen.attribute.append(helper.make_attribute("else_branch", graph(otherwise, [], "cd")))
    return model(graph([chosen], [value("cond", BOOL), value("x")], "yz"), opset)


@pytest.mark.parametrize("opset", known(13, 18, 21, 25, 28))
@pytest.mark.parametrize("cond", [YES, NO, np.array([True])])
def test_if_runs_the_branch_that_the_condition_selects(opset: int, cond: Any, x: Any) -> None:
    made = branches(
        node("Constant", "", "s", value=tensor("", [1, 5])),
        node("Split", "x s", "a b"),
        otherwise=[
            node("Constant", "", "s", value=tensor("", [4, 2])),
            node("Split", "x s", "c d"),
        ],
        opset=opset,
    )
    sizes = [1, 5] if cond.all() else [4, 2]
    assert_same(outputs(made, cond=cond, x=x), slices(x, 0, sizes))


@pytest.mark.parametrize("opset", [1, 7, 11, 12])
def test_if_of_older_opsets(opset: int, x: Any) -> None:
    made = branches(
        node("Split", "x", "a b", split=[1, 5], axis=0),
        otherwise=[node("Split", "x", "c d", axis=0)],
        opset=opset,
    )
    assert_same(outputs(made, cond=YES, x=x), slices(x, 0, [1, 5]))
    assert_same(outputs(made, cond=NO, x=x), slices(x, 0, [3, 3]))


@pytest.mark.parametrize("cond", [np.array(1), np.array([True, True]), np.array([], bool)])
def test_if_takes_one_boolean(cond: Any, x: Any) -> None:
    made = branches(node("Split", "x", "a b"), otherwise=[node("Split", "x", "c d")], opset=13)
    made.graph.input[0].CopyFrom(untyped("cond"))
    with refused("TS510", "condition", "graph/If[0]"):
        run(made, cond=cond, x=x)


def test_a_branch_with_fewer_outputs_than_the_node_is_refused(x: Any) -> None:
    made = branches(node("Split", "x", "a b"), otherwise=[node("Split", "x", "c d")], opset=13)
    del made.graph.node[0].attribute[1].g.output[1]
    with refused("TS502", "else_branch has 1 output", "graph/If[0]"):
        run(made, cond=NO, x=x)


def test_the_branch_that_does_not_run_may_not_fit_what_is_fed(x: Any) -> None:
    """`If` guards a cut that only fits data of another length."""
    made = branches(
        node("Split", "x", "a b", num_outputs=2),
        otherwise=[
            node("Constant", "", "s", value=tensor("", [4, 4])),
            node("Split", "x s", "c d"),
        ],
    )
    assert_same(outputs(made, cond=YES, x=x), slices(x, 0, [3, 3]))
    with refused("TS302", "[4, 4]", 6, "graph/If[0].else_branch/Split[1]"):
        run(made, cond=NO, x=x)
    assert check(made, {"cond": YES, "x": x}) == []


def test_what_is_wrong_whatever_is_fed_is_refused_in_a_branch_that_does_not_run(x: Any) -> None:
    made = branches(
        node("Split", "x", "a b", num_outputs=2),
        otherwise=[node("Split", "x", "c d", num_outputs=3)],
    )
    with refused("TS305", 3, 2, "graph/If[0].else_branch/Split[0]"):
        run(made, cond=YES, x=x)


def test_bodies_nest_and_see_all_that_is_around_them(x: Any) -> None:
    inner = graph([node("Split", "h s", "p q", name="inner")], [], ["p"])
    otherwise = graph([node("Identity", "h", "r")], [], ["r"])
    nested = node("If", "cond", "a", name="nested", then_branch=inner, else_branch=otherwise)
    made = branches(
        node("Split", "x", "h b", num_outputs=2),
        nested,
        otherwise=[node("Split", "x", "c d", num_outputs=2)],
    )
    made.graph.initializer.append(tensor("s", [1, 2]))
    assert_same(outputs(made, cond=YES, x=x), [x[:1], x[3:]])
    made.graph.initializer[0].CopyFrom(tensor("s", [1, 1]))
    with refused("TS302", "graph/If[0].then_branch/nested.then_branch/inner"):
        run(made, cond=YES, x=x)


def test_a_body_s_own_names_come_before_those_around_it(x: Any) -> None:
    made = branches(
        node("Constant", "", "y_", value=tensor("", [2.0], np.float32)),
        node("Mul", "x y_", "a"),
        node("Neg", "x", "b"),
        otherwise=[node("Neg", "x", "c"), node("Neg", "x", "d")],
    )
    made.graph.node.insert(0, node("Abs", "x", "y_"))
    made.graph.output.append(untyped("y_"))
    assert_same(outputs(made, cond=YES, x=x), [x * np.float32(2), -x, np.abs(x)])


def loop_body(*nodes: Any, carried: str = "", results: str, **types: int) -> GraphProto:
    """A body with iteration `i`, condition `c`, carried values, and results after `c_out`."""
    inputs = [value("i", INT64, []), value("c", BOOL, []), *map(untyped, carried.split())]
    given = [value(name, types[name]) if name in types else name for name in results.split()]
    return graph([*nodes, node("Identity", "c", "c_out")], inputs, ["c_out", *given])


@pytest.mark.parametrize("opset", known(11, 13, 16, 19, 21, 23, 24, 25, 28))
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
@pytest.mark.parametrize("trips", [0, 1, 3])
def test_loop_stacks_what_it_collects_on_a_new_first_axis(
    opset: int, shape: tuple[int, ...], trips: int, rng: np.random.Generator
) -> None:
    start = rng.random(shape).astype(np.float32)
    body = loop_body(
        node("Add", "v v", "w"), node("Identity", "w", "out"), carried="v", results="w out"
    )
    body.output[2].CopyFrom(value("out", FLOAT, shape))
    made = model(
        graph(
            [node("Loop", "n _ x", "last all", body=body)],
            [untyped("n"), untyped("x")],
            ["last", "all"],
        ),
        opset,
    )
    last, collected = outputs(made, n=count(trips), x=start)
    assert_same([last], [start * np.float32(2**trips)])
    expected = [start * np.float32(2 ** (k + 1)) for k in range(trips)]
    assert_same([collected], [np.array(expected, np.float32).reshape(trips, *shape)])


def test_loop_without_iterations_takes_the_declared_type_and_open_dimensions_are_0() -> None:
    body = loop_body(node("Cast", "v", "out", to=INT64), carried="v", results="v out")
    body.output[2].CopyFrom(value("out", INT64, [4, "N"]))
    made = model(
        graph([node("Loop", "n _ x", "l a", body=body)], [untyped("n"), untyped("x")], ["a"])
    )
    assert_same(outputs(made, n=count(0), x=np.float32(1)), [np.zeros((0, 4, 0), np.int64)])
    body = loop_body(node("Neg", "v", "out"), carried="v", results="v out")
    body.output[2].CopyFrom(untyped("out"))
    made.graph.node[0].attribute[0].g.CopyFrom(body)
    with refused("TS510", "element type", "graph/Loop[0]"):
        run(made, n=count(0), x=np.float32(1))


def test_loop_without_iterations_takes_what_the_nodes_of_its_body_give() -> None:
    nodes = [node("Split", "v", "a b", axis=1, num_outputs=2), node("Shape", "a", "s")]
    body = loop_body(*nodes, carried="v", results="v a s")
    for output in body.output[2:]:
        output.CopyFrom(untyped(output.name))
    loop = node("Loop", "n _ x", "last halves shapes", body=body)
    inputs, results = [value("x", FLOAT, ["N", 6, 0])], ["halves", "shapes"]
    made = model(graph([loop], inputs, results, [tensor("n", 0)]), 18)
    expected: list[Any] = [np.zeros((0, 0, 3, 0), np.float32), np.zeros((0, 3), np.int64)]
    for each in (made, ts.lower(made, target="openvino")):
        assert_same(outputs(each, x=np.ones((2, 6, 0), np.float32)), expected)


def test_loop_splits_by_what_it_carries(x: Any) -> None:
    """Each iteration cuts one row off; the lengths are computed in the body."""
    body = loop_body(
        node("Shape", "rest", "d", end=1),
        node("Sub", "d one", "more"),
        node("Concat", "one more", "s", axis=0),
        node("Split", "rest s", "head tail", name="cut"),
        carried="rest",
        results="tail head",
    )
    made = model(
        graph(
            [node("Loop", "n _ x", "rest heads", body=body, name="rows")],
            [value("n", INT64), value("x")],
            ["rest", "heads"],
            [tensor("one", [1])],
        )
    )
    rest, heads = outputs(made, n=count(4), x=x)
    assert_same([rest, heads], [x[4:], x[:4].reshape(4, 1, 2)])
    with refused("TS301", "[1, -1]", "graph/rows.body/cut", operator="onnx.Split-18"):
        run(made, n=count(7), x=x)


def counting_loop(inputs: str, condition: str, **feeds: Any) -> int:
    """How often a Loop runs whose body goes on while the count is below `limit`."""
    nodes = {
        "less": node("Less", "v limit", "c_out"),
        "false": node("Identity", "no", "c_out"),
        "same": node("Identity", "c", "c_out"),
        "true": node("Identity", "yes", "c_out"),
    }
    body = graph(
        [node("Add", "v one", "w"), nodes[condition]],
        [untyped("i"), untyped("c"), untyped("v")],
        ["c_out", "w"],
    )
    held = [
        tensor("one", 1),
        tensor("limit", 3),
        tensor("zero", 0),
        tensor("no", NO, bool),
        tensor("yes", YES, bool),
    ]
    declared = [untyped(name) for name in feeds]
    made = model(graph([node("Loop", f"{inputs} zero", "y", body=body)], declared, "y", held))
    return int(run(made, **feeds)["y"])


def test_loop_ends_as_the_page_s_table_says() -> None:
    five = count(5)
    assert counting_loop("m c", "less", m=five, c=YES) == 4
    assert counting_loop("m c", "less", m=count(2), c=YES) == 2
    assert counting_loop("m c", "less", m=five, c=NO) == 0
    assert counting_loop("m c", "false", m=five, c=YES) == 1
    assert counting_loop("m c", "same", m=five, c=YES) == 5
    assert counting_loop("_ c", "less", c=YES) == 4
    assert counting_loop("_ c", "false", c=YES) == 1
    assert counting_loop("_ c", "less", c=NO) == 0


def test_loop_without_condition_ignores_that_of_the_body() -> None:
    assert counting_loop("m _", "false", m=count(5)) == 5
    assert counting_loop("m _", "less", m=count(5)) == 5


def test_loop_takes_trip_counts_of_shape_1_and_below_0() -> None:
    assert counting_loop("m c", "same", m=np.array([3]), c=np.array([True])) == 3
    assert counting_loop("m _", "same", m=count(-3)) == 0


@pytest.mark.parametrize(
    ("inputs", "condition", "feeds"),
    [
        ("_ _", "same", {}),
        ("_ c", "same", {"c": YES}),
        ("_ c", "true", {"c": YES}),
        ("m _", "false", {"m": np.array(2**62)}),
        ("m c", "same", {"m": np.array(2**32), "c": YES}),
    ],
)
def test_a_loop_that_can_t_end_is_refused(inputs: str, condition: str, feeds: Any) -> None:
    with refused("TS510", "never ends", "graph/Loop[0]"):
        counting_loop(inputs, condition, **feeds)


def test_a_loop_that_nothing_else_ends_obeys_the_condition_of_its_body() -> None:
    """`for (int i=0; ; ++i) { cond = ...; // ignored }`: no engine does that."""
    assert counting_loop("_ _", "less") == 4


def test_a_huge_trip_count_is_fine_where_the_condition_ends_the_loop() -> None:
    assert counting_loop("m c", "less", m=count(2**63 - 1), c=YES) == 4


@pytest.mark.parametrize("trips", [np.array(2.0), np.array([1, 2]), np.array(2, np.int32)])
def test_loop_takes_one_int64_as_trip_count(trips: Any) -> None:
    with refused("TS510", "trip count", "int64"):
        counting_loop("m _", "same", m=trips)


def test_loop_passes_the_iteration_and_the_condition_as_the_body_declares_them() -> None:
    body = graph(
        [node("Identity", "c", "c_out"), node("Identity", "i", "out")],
        [value("i", INT64, [1]), value("c", BOOL, [1])],
        ["c_out", "c", "out"],
    )
    body.node.append(node("Identity", "c", "d"))
    body.output[1].name = "d"
    made = model(graph([node("Loop", "n _", "cs is", body=body)], [untyped("n")], ["cs", "is"]))
    conditions, iterations = outputs(made, n=count(2))
    assert_same([conditions, iterations], [np.ones((2, 1), bool), np.array([[0], [1]])])


def test_a_carried_value_hides_one_of_the_same_name_around_the_loop(x: Any) -> None:
    body = loop_body(node("Split", "x", "a b", num_outputs=2), carried="x", results="a")
    made = model(graph([node("Loop", "n _ y", "z", body=body)], map(untyped, "nxy"), ["z"]))
    assert_same(outputs(made, n=count(2), x=-x, y=x[:4]), [x[:1]])


def test_what_loop_collects_must_keep_its_shape(x: Any) -> None:
    body = loop_body(node("Split", "v", "a b", num_outputs=2), carried="v", results="a b")
    made = model(
        graph([node("Loop", "n _ x", "z parts", body=body)], map(untyped, "nx"), ["parts"])
    )
    with refused("TS510", "float[3, 2]", "float[1, 2]", "graph/Loop[0]"):
        run(made, n=count(3), x=x)


def test_loop_carries_sequences(x: Any) -> None:
    """SplitToSequence outside, SequenceAt and SequenceInsert inside."""
    body = loop_body(
        node("SequenceAt", "rows i", "row"),
        node("Neg", "row", "minus"),
        node("SequenceInsert", "done minus zero", "more"),
        carried="done",
        results="more",
    )
    nodes = [
        node("SplitToSequence", "x", "rows", keepdims=0),
        node("SequenceEmpty", "", "none"),
        node("Loop", "n _ none", "q", body=body),
    ]
    made = model(
        graph(nodes, [value("n", INT64), value("x")], [sequence("q")], [tensor("zero", 0)])
    )
    assert_same(run(made, n=count(3), x=x)["q"], [-x[2], -x[1], -x[0]])
    with refused("TS511", "is 6", "6 tensors", "graph/Loop[2].body/SequenceAt[0]"):
        run(made, n=count(7), x=x)


def scan(
    body: GraphProto, inputs: str, results: str, opset: int = 18, **attributes: Any
) -> ModelProto:
    made = node("Scan", inputs, results, body=body, **attributes)
    names = [name for name in inputs.split() if name != "_"]
    return model(graph([made], map(untyped, names), results.split()), opset)


@pytest.mark.parametrize("opset", known(9, 11, 16, 19, 28))
def test_scan_runs_over_an_axis_and_carries_states(opset: int, x: Any) -> None:
    body = graph([node("Add", "s v", "t"), node("Mul", "s v", "o")], map(untyped, "sv"), "to")
    made = scan(body, "s x", "t o", opset, num_scan_inputs=1)
    start = np.array([1, 2], np.float32)
    state, parts = start, []
    for row in x:
        parts.append(state * row)
        state = state + row
    assert_same(outputs(made, s=start, x=x), [state, np.array(parts)])


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("backward", [0, 1])
@pytest.mark.parametrize("out_axis", [0, 1, -1])
@pytest.mark.parametrize("prepend", [0, 1])
def test_scan_axes_and_directions(
    axis: int, backward: int, out_axis: int, prepend: int, rng: np.random.Generator
) -> None:
    x = rng.random((2, 3, 4)).astype(np.float32)
    body = graph([node("Neg", "v", "o")], map(untyped, "v"), "o")
    made = scan(
        body,
        "x",
        "y",
        num_scan_inputs=1,
        scan_input_axes=[axis],
        scan_input_directions=[backward],
        scan_output_axes=[out_axis],
        scan_output_directions=[prepend],
    )
    parts = [-np.take(x, i, axis) for i in range(x.shape[axis])]
    if backward != prepend:
        parts.reverse()
    assert_same(outputs(made, x=x), [np.stack(parts, out_axis)])


def test_scan_splits_each_element_by_what_is_around_it(x: Any) -> None:
    body = graph([node("Split", "v k", "a b", name="cut")], map(untyped, "v"), "ab")
    made = scan(body, "x", "p q", num_scan_inputs=1, scan_input_axes=[1])
    made.graph.initializer.append(tensor("k", [2, 4]))
    first, second = x[:2].T.copy(), x[2:].T.copy()
    assert_same(outputs(made, x=x), [first, second])
    made.graph.initializer[0].CopyFrom(tensor("k", [2, 3]))
    with refused("TS302", "graph/Scan[0].body/cut"):
        run(made, x=x)


def test_scan_inputs_have_one_length(x: Any) -> None:
    body = graph([node("Add", "v w", "o")], map(untyped, "vw"), "o")
    made = scan(body, "x z", "y", num_scan_inputs=2)
    with refused("TS510", "[3, 6]", "graph/Scan[0]"):
        run(made, x=x, z=x[:3])
    made = scan(body, "_ x z", "y", 8, num_scan_inputs=2)
    with refused("TS510", "(3, 2)", "(6, 2)", "graph/Scan[0]"):
        run(made, x=x, z=x[:3])


def test_scan_over_nothing_takes_the_declared_type() -> None:
    body = graph([node("Neg", "v", "o")], [value("v")], [value("o", FLOAT, [2])])
    made = scan(body, "x", "y", num_scan_inputs=1, scan_output_axes=[-1])
    assert_same(outputs(made, x=np.ones((0, 2), np.float32)), [np.zeros((2, 0), np.float32)])


@pytest.mark.parametrize(
    ("attributes", "code", "word"),
    [
        ({"num_scan_inputs": 0}, "TS502", "num_scan_inputs"),
        ({"num_scan_inputs": 2}, "TS502", "num_scan_inputs"),
        ({"num_scan_inputs": 1, "scan_input_axes": [2]}, "TS510", "axis 2"),
        ({"num_scan_inputs": 1, "scan_input_axes": [0, 0]}, "TS502", "scan_input_axes"),
        ({"num_scan_inputs": 1, "scan_input_directions": [2]}, "TS502", "scan_input_directions"),
        ({"num_scan_inputs": 1, "scan_output_axes": [3]}, "TS510", "axis 3"),
    ],
)
def test_scan_refuses_attributes_that_do_not_fit(
    attributes: Any, code: str, word: str, x: Any
) -> None:
    made = scan(graph([node("Neg", "v", "o")], map(untyped, "v"), "o"), "x", "y", **attributes)
    with refused(code, word, "graph/Scan[0]"):
        run(made, x=x)


def test_scan_8_has_a_batch_axis_and_lengths(rng: np.random.Generator) -> None:
    x = rng.random((2, 3, 4)).astype(np.float32)
    nodes = [node("Add", "s v", "t"), node("Identity", "t", "o")]
    body = graph(nodes, map(untyped, "sv"), [untyped("t"), value("o", FLOAT, [4])])
    made = scan(body, "n s x", "t o", 8, num_scan_inputs=1)
    zero = np.zeros((2, 4), np.float32)
    totals = np.cumsum(x, axis=1, dtype=np.float32)
    state, every = outputs(made, n=np.array([3, 2]), s=zero, x=x)
    assert_same([state], [np.array([totals[0, 2], totals[1, 1]])])
    assert_same([every[0], every[1, :2]], [totals[0], totals[1, :2]])
    state, every = outputs(made, n=np.array([0, 1]), s=zero, x=x)
    assert_same([state], [np.array([zero[0], totals[1, 0]])])
    assert_same([every[1, :1]], [totals[1, :1]])
    assert not every[0].any()
    for lengths in ([3, 4], [-1, 3], [3]):
        with refused("TS510", "sequence_lens", str(lengths)):
            run(made, n=np.array(lengths), s=zero, x=x)
    made = scan(body, "_ s x", "t o", 8, num_scan_inputs=1)
    assert_same(outputs(made, s=zero, x=x), [totals[:, -1], totals])


def test_sequence_map_cuts_each_sample(x: Any) -> None:
    body = graph(
        [node("Split", "v k", "a b"), node("Mul", "b f", "c")], map(untyped, ["v", "f"]), "ac"
    )
    nodes = [
        node("SplitToSequence", "x", "q"),
        node("SequenceMap", "q f", "p r", body=body),
    ]
    nodes[0].attribute.append(helper.make_attribute("axis", 1))
    made = model(
        graph(nodes, map(untyped, "xf"), [sequence("p"), sequence("r")], [tensor("k", [2, 4])])
    )
    first, second = outputs(made, x=x, f=np.float32(3))
    assert_same(first, [x[:2, :1], x[:2, 1:]])
    assert_same(second, [x[2:, :1] * np.float32(3), x[2:, 1:] * np.float32(3)])


def test_sequence_map_takes_as_many_samples_of_each_sequence(x: Any) -> None:
    body = graph([node("Add", "u v", "w")], map(untyped, "uv"), "w")
    nodes = [
        node("SplitToSequence", "x", "q"),
        node("SplitToSequence", "x k", "p"),
        node("SequenceMap", "q p", "r", body=body),
    ]
    made = model(graph(nodes, [value("x")], [sequence("r")], [tensor("k", 1)]))
    assert_same(run(made, x=x)["r"], [row + row for row in slices(x, 0, [1] * 6)])
    made.graph.initializer[0].CopyFrom(tensor("k", 2))
    with refused("TS510", "[6, 3]", "graph/SequenceMap[2]"):
        run(made, x=x)
    made.graph.node[2].input[:] = ["p", "q"]
    with refused("TS510", "[3, 6]", "graph/SequenceMap[2]"):
        run(made, x=x)


def test_initializers_of_a_body(x: Any) -> None:
    body = loop_body(node("Split", "v k", "a b"), carried="v", results="b a")
    body.initializer.append(tensor("k", [1, 5]))
    made = model(
        graph([node("Loop", "n _ x", "z parts", body=body)], map(untyped, "nx"), ["parts"])
    )
    assert_same(outputs(made, n=count(1), x=x), [x[:1].reshape(1, 1, 2)])
    with refused("TS302", "graph/Loop[0].body/Split[0]"):
        run(made, n=count(2), x=x)


def test_a_body_may_list_its_initializers_as_inputs_as_old_models_do(x: Any) -> None:
    body = loop_body(node("Split", "v k", "a b"), carried="v", results="a b")
    body.initializer.append(tensor("k", [3, 3]))
    body.input.append(value("k", TensorProto.INT64))
    made = model(graph([node("Loop", "n _ x", "z parts", body=body)], map(untyped, "nx"), ["z"]))
    assert_same(outputs(made, n=count(1), x=x), [x[:3]])


@pytest.mark.parametrize("change", ["inputs", "outputs"])
def test_a_body_that_does_not_fit_its_node_is_refused(change: str, x: Any) -> None:
    body = loop_body(node("Split", "v", "a b", num_outputs=2), carried="v", results="a b")
    if change == "inputs":
        body.input.append(untyped("extra"))
    else:
        del body.output[1:]
    made = model(
        graph([node("Loop", "n _ x", "z parts", body=body)], map(untyped, "nx"), ["parts"])
    )
    with refused("TS502", "its body has", "graph/Loop[0]"):
        run(made, n=count(1), x=x)


def test_deep_nesting_is_refused_before_the_stack_ends(x: Any) -> None:
    made = model(graph([], [value("cond", BOOL), value("x")], "y"))
    inner = made.graph
    for _ in range(2000):
        outer, inner = inner, GraphProto()
        branch = outer.node.add(op_type="If", input=["cond"], output=["y"])
        for name in ("else_branch", "then_branch"):
            branch.attribute.add(name=name, type=AttributeProto.GRAPH)
        inner = branch.attribute[1].g
        inner.output.add(name="y")
    inner.node.append(node("Neg", "x", "y"))
    with refused("TS502", "deep"):
        run(made, cond=YES, x=x)
