"""Model-local functions: which is called, what their attributes stand for, what they import."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, FunctionProto, NodeProto

from tensorsplit.model.validity import model_errors
from tests.model.build import (
    BOOL,
    FLOAT,
    INT64,
    check,
    function,
    graph,
    link,
    linked,
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


@pytest.fixture
def x(rng: np.random.Generator) -> Any:
    return rng.random((6, 2)).astype(np.float32) + 1


def call(name: str, inputs: str, results: str, **attributes: Any) -> NodeProto:
    return node(name, inputs, results, domain="custom", **attributes)


def calling(
    calls: list[NodeProto], functions: list[FunctionProto], results: str, **held: Any
) -> Any:
    """A model that feeds `x` to its calls."""
    initializers = [tensor(name, items) for name, items in held.items()]
    made = graph(calls, [value("x")], results.split(), initializers)
    return model(made, functions=functions, custom=1)


def test_a_function_cuts_what_it_is_passed(x: Any) -> None:
    half = function("Half", "d", "p q", [node("Split", "d", "p q", num_outputs=2)])
    assert_same(
        outputs(calling([call("Half", "x", "a b")], [half], "a b"), x=x), slices(x, 0, [3, 3])
    )


def test_a_function_is_at_its_own_opset(x: Any) -> None:
    old = function("Old", "d", "p q", [node("Split", "d", "p q", split=[1, 5])], opset=11)
    new = function("New", "d", "p q", [node("Split", "d", "p q", num_outputs=2)], opset=18)
    made = calling([call("Old", "x", "a b"), call("New", "x", "c d")], [old, new], "a b c d")
    made.opset_import[0].version = 13
    assert_same(outputs(made, x=x), slices(x, 0, [1, 5]) + slices(x, 0, [3, 3]))
    made.functions[0].opset_import[0].version = 13
    with refused("TS103", "split", "function custom::Old/Split[0]", operator="onnx.Split-13"):
        run(made, x=x)


def test_functions_may_be_listed_in_any_order(x: Any) -> None:
    outer = function("Outer", "d", "p", [call("Inner", "d", "p _")])
    inner = function("Inner", "d", "p q", [node("Split", "d", "p q", num_outputs=2)])
    for functions in ([outer, inner], [inner, outer]):
        assert_same(outputs(calling([call("Outer", "x", "a")], functions, "a"), x=x), [x[:3]])


@pytest.mark.parametrize(
    "names", [["F"], ["F", "G"], ["F", "G", "H"]], ids=["itself", "by another", "by two others"]
)
def test_a_function_that_calls_itself_is_refused(names: list[str], x: Any) -> None:
    functions = [
        function(name, "d", "p", [call(callee, "d", "p")])
        for name, callee in zip(names, [*names[1:], names[0]], strict=True)
    ]
    with refused("TS502", "calls itself", "function custom::"):
        run(calling([call("F", "x", "a")], functions, "a"), x=x)
    with refused("TS502", "calls itself"):
        run(calling([node("Neg", "x", "a")], functions, "a"), x=x)


def test_a_function_that_calls_itself_in_a_body_is_refused(x: Any) -> None:
    body = graph([call("F", "d", "p")], [], "p")
    cond = node("Constant", "", "c", value=tensor("", True, bool))
    f = function("F", "d", "p", [cond, node("If", "c", "p", then_branch=body, else_branch=body)])
    with refused("TS502", "calls itself"):
        run(calling([call("F", "x", "a")], [f], "a"), x=x)


SPLIT_BY = function(
    "SplitBy",
    "d",
    "p q",
    [linked("Split", "d", "p q", link("axis", "along"), link("num_outputs", "parts"))],
    ["parts"],
    {"along": 0},
)


def test_attributes_stand_for_those_of_the_call_or_for_the_default(x: Any) -> None:
    calls = [
        call("SplitBy", "x", "a b", parts=2),
        call("SplitBy", "x", "c d", parts=2, along=1),
        call("SplitBy", "x", "e f", parts=2, along=-1),
    ]
    expected = [*slices(x, 0, [3, 3]), *slices(x, 1, [1, 1]), *slices(x, 1, [1, 1])]
    assert_same(outputs(calling(calls, [SPLIT_BY], "a b c d e f"), x=x), expected)


def test_an_attribute_without_value_is_left_out(x: Any) -> None:
    with refused("TS104", "function custom::SplitBy/Split[0]", operator="onnx.Split-18"):
        run(calling([call("SplitBy", "x", "a b")], [SPLIT_BY], "a b"), x=x)
    ones = function(
        "Ones", "d", "q", [linked("SplitToSequence", "d", "q", link("keepdims", "keep"))], ["keep"]
    )
    made = calling([call("Ones", "x", "a"), call("Ones", "x", "b", keep=0)], [ones], "a b")
    kept, dropped = outputs(made, x=x)
    assert_same(kept, slices(x, 0, [1] * 6))
    assert_same(dropped, slices(x, 0, [1] * 6, keepdims=False))


def test_lengths_may_stand_for_an_attribute(x: Any) -> None:
    by = function(
        "By",
        "d",
        "p q",
        [linked("Split", "d", "p q", link("split", "sizes", AttributeProto.INTS))],
        ["sizes"],
        opset=11,
    )
    constant = function(
        "Constantly",
        "d",
        "p q",
        [
            linked("Constant", "", "s", link("value_ints", "sizes", AttributeProto.INTS)),
            node("Split", "d s", "p q"),
        ],
        ["sizes"],
        opset=13,
    )
    calls = [
        call("By", "x", "a b", sizes=[1, 5]),
        call("Constantly", "x", "c d", sizes=[4, 2]),
    ]
    made = calling(calls, [by, constant], "a b c d")
    assert_same(outputs(made, x=x), slices(x, 0, [1, 5]) + slices(x, 0, [4, 2]))
    assert check(made, {"x": x}) == []
    made.graph.node[1].attribute[0].ints[0] = 5
    with refused("TS302", "[5, 2]", "function custom::Constantly/Split[1]"):
        run(made, x=x)


@pytest.mark.parametrize(("given", "code"), [(2.0, "TS105"), ([1, 2], "TS106"), ("a", "TS105")])
def test_the_call_s_attribute_is_checked_as_the_node_s_own(given: Any, code: str, x: Any) -> None:
    made = calling([call("SplitBy", "x", "a b", parts=given)], [SPLIT_BY], "a b")
    with refused(code, "function custom::SplitBy/Split[0]", parameter="num_outputs"):
        run(made, x=x)


def test_links_pass_through_nested_calls_and_bodies(x: Any) -> None:
    branch = graph([linked("Split", "d", "p q", link("axis", "dim"), num_outputs=2)], [], "pq")
    inner = function(
        "Inner",
        "c d",
        "p q",
        [node("If", "c", "p q", then_branch=branch, else_branch=branch)],
        ["dim"],
    )
    outer = function(
        "Outer",
        "c d",
        "p q",
        [linked("Inner", "c d", "p q", link("dim", "along"), domain="custom")],
        [],
        {"along": 1},
    )
    calls = [call("Outer", "c x", "a b"), call("Outer", "c x", "e f", along=0)]
    made = calling(calls, [outer, inner], "a b e f")
    made.graph.input.append(value("c", BOOL))
    assert_same(outputs(made, x=x, c=np.array(True)), slices(x, 1, [1, 1]) + slices(x, 0, [3, 3]))
    made.graph.node[0].attribute.append(made.graph.node[1].attribute[0])
    made.graph.node[0].attribute[0].i = 2
    with refused("TS203", 2, "function custom::Inner/If[0].then_branch/Split[0]"):
        run(made, x=x, c=np.array(True))


def test_links_in_loop_and_scan_bodies_of_a_function(x: Any) -> None:
    loop = graph(
        [
            linked("Split", "v", "p q", link("axis", "dim"), num_outputs=2),
            node("Identity", "c", "c_out"),
        ],
        map(untyped, ["i", "c", "v"]),
        ["c_out", "q"],
    )
    scan = graph(
        [linked("SplitToSequence", "v", "s", link("axis", "dim")), node("SequenceAt", "s z", "o")],
        map(untyped, "v"),
        "o",
    )
    nodes = [
        node("Loop", "n _ d", "r", body=loop),
        node("Constant", "", "z", value_int=-1),
        node("Scan", "d", "t", body=scan, num_scan_inputs=1),
    ]
    f = function("F", "n d", "r t", nodes, ["dim"])
    made = calling([call("F", "n x", "a b", dim=0)], [f], "a b", n=1)
    assert_same(outputs(made, x=x), [x[3:], x[:, 1:]])


def test_an_input_that_the_call_leaves_out_is_absent(x: Any) -> None:
    f = function("F", "d s", "p q", [node("Split", "d s", "p q")], opset=13)
    calls = [call("F", "x k", "a b"), call("F", "x", "c d"), call("F", "x _", "e f")]
    made = calling(calls, [f], "a b c d e f", k=[2, 4])
    assert_same(outputs(made, x=x), slices(x, 0, [2, 4]) + slices(x, 0, [3, 3]) * 2)
    both = function("F", "d s", "p q", [node("Split", "d s", "p q", num_outputs=2)])
    made = calling([call("F", "x", "a b")], [both], "a b", k=[2, 4])
    assert_same(outputs(made, x=x), slices(x, 0, [3, 3]))
    made.graph.node[0].input.append("k")
    with refused("TS104", "function custom::F/Split[0]"):
        run(made, x=x)


def test_an_absent_input_may_be_hidden_by_a_body_s_own_name(x: Any) -> None:
    body = graph(
        [node("Split", "d s", "p q"), node("Add", "s s", "t"), node("Identity", "c", "c_out")],
        map(untyped, ["i", "c", "s"]),
        ["c_out", "t", "p"],
    )
    loop = node("Loop", "n _ k", "last all", body=body)
    f = function("F", "d n k s", "last all", [loop])
    made = calling([call("F", "x n k", "a b")], [f], "a b", n=1, k=[2, 4])
    assert_same(outputs(made, x=x), [np.array([4, 8]), x[None, :2]])


def test_functions_of_long_names_are_told_apart(x: Any) -> None:
    names = ["F" * 300 + end for end in ("A", "B")]
    functions = [
        function(names[0], "d", "p", [node("Neg", "d", "p")]),
        function(names[1], "d", "p", [node("Identity", "d", "p")]),
    ]
    made = calling([call(names[0], "x", "a"), call(names[1], "x", "b")], functions, "a b")
    assert_same(outputs(made, x=x), [-x, x])


def test_overloads_are_told_apart(x: Any) -> None:
    functions = [
        function("F", "d", "p q", [node("Split", "d", "p q", num_outputs=2)]),
        function("F", "d", "p q", [node("Split", "d", "p q", num_outputs=2, axis=1)], overload="w"),
    ]
    calls = [call("F", "x", "a b"), call("F", "x", "c d", overload="w")]
    made = calling(calls, functions, "a b c d")
    assert_same(outputs(made, x=x), slices(x, 0, [3, 3]) + slices(x, 1, [1, 1]))
    made.graph.node[1].overload = "v"
    with refused("TS502", "'v'", "graph/F[1]"):
        run(made, x=x)


def test_a_function_sees_nothing_of_what_calls_it(x: Any) -> None:
    f = function("F", "d", "p q", [node("Split", "d k", "p q")])
    with refused("TS502", "'k'", "function custom::F/Split[0]"):
        run(calling([call("F", "x", "a b")], [f], "a b", k=[2, 4]), x=x)


def test_a_function_in_a_body_and_a_body_in_a_function(x: Any) -> None:
    half = function("Half", "d", "p q", [node("Split", "d", "p q", num_outputs=2)])
    body = graph(
        [call("Half", "v", "p q"), node("Identity", "c", "c_out")],
        map(untyped, ["i", "c", "v"]),
        ["c_out", "q"],
    )
    twice = function("Last", "d n", "r", [node("Loop", "n _ d", "r", body=body)])
    made = calling([call("Last", "x n", "a")], [twice, half], "a", n=1)
    assert_same(outputs(made, x=x), [x[3:]])


def test_sequences_pass_through_functions(x: Any) -> None:
    rows = function("Rows", "d", "q", [node("SplitToSequence", "d", "q")])
    last = function("Last", "q i", "t", [node("SequenceAt", "q i", "t")])
    made = calling([call("Rows", "x", "q"), call("Last", "q i", "t")], [rows, last], "t", i=-1)
    made.graph.output.append(sequence("q"))
    result = run(made, x=x)
    assert_same([result["t"], *result["q"]], [x[5:], *slices(x, 0, [1] * 6)])


@pytest.mark.parametrize(
    ("calls", "word"),
    [
        ([call("F", "x x", "a")], "2 inputs"),
        ([call("F", "x", "a b c")], "3 outputs"),
        ([call("F", "x", "a", size=3)], "'size'"),
        ([node("F", "x", "a", domain="other")], "opset import"),
        ([call("G", "x", "a")], "G has no implementation"),
    ],
)
def test_calls_that_do_not_fit_are_refused(calls: list[NodeProto], word: str, x: Any) -> None:
    f = function("F", "d", "p q", [node("Split", "d", "p q", num_outputs=2)])
    with refused("TS509" if "G" in word else "TS502", word, "graph/"):
        run(calling(calls, [f], "a"), x=x)


def test_two_functions_of_one_name_are_refused(x: Any) -> None:
    f = function("F", "d", "p", [node("Neg", "d", "p")])
    with refused("TS502", "function custom::F"):
        run(calling([call("F", "x", "a")], [f, f], "a"), x=x)


@pytest.mark.parametrize("name", ["Split", "SplitToSequence"])
@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_a_function_that_redefines_an_operator_of_the_family_is_refused(
    name: str, domain: str, x: Any
) -> None:
    """ONNX leaves open which of the two holds, and engines differ."""
    f = function(name, "d", "p", [node("Neg", "d", "p")], domain=domain)
    with refused("TS502", "redefines", name):
        run(calling([node("Neg", "x", "a")], [f], "a"), x=x)


def test_a_function_of_a_split_s_name_in_a_domain_of_its_own_is_a_function(x: Any) -> None:
    f = function("Split", "d", "p", [node("Neg", "d", "p")])
    assert_same(outputs(calling([call("Split", "x", "a")], [f], "a"), x=x), [-x])


def test_a_function_that_defines_another_operator_holds(x: Any) -> None:
    f = function("Abs", "d", "p", [node("Neg", "d", "p")], domain="")
    assert_same(outputs(calling([node("Abs", "x", "a")], [f], "a"), x=x), [-x])


def test_a_link_outside_of_functions_is_refused(x: Any) -> None:
    made = model(graph([linked("Split", "x", "a b", link("num_outputs", "n"))], [value("x")], "ab"))
    with refused("TS502", "'n'", "graph/Split[0]"):
        run(made, x=x)


def test_a_body_can_t_be_passed_to_a_function(x: Any) -> None:
    body = link("then_branch", "b", AttributeProto.GRAPH)
    choice = linked("If", "c", "p", body, else_branch=graph([node("Neg", "c", "r")], [], "r"))
    f = function("F", "c", "p", [choice], ["b"])
    with refused("TS509", "body", "function custom::F/If[0]"):
        run(calling([call("F", "x", "a", b=graph([], [], []))], [f], "a"), x=x)


def test_functions_called_in_ever_new_ways_are_refused(x: Any) -> None:
    """Fifteen functions pass fifteen attributes on, in two orders each."""
    names = [f"a{k}" for k in range(15)]

    def passing(callee: str, order: list[str]) -> NodeProto:
        links = [link(name, other) for name, other in zip(names, order, strict=True)]
        return linked(callee, "d", "p" if order == names else "_", *links, domain="custom")

    functions = [
        function(
            f"F{k}", "d", "p", [passing(f"F{k + 1}", names), passing(f"F{k + 1}", swapped)], names
        )
        for k, swapped in (
            (k, [*names[:k], names[k + 1], names[k], *names[k + 2 :]]) for k in range(14)
        )
    ]
    functions.append(function("F14", "d", "p", [node("Neg", "d", "p")], names))
    first = call("F0", "x", "a", **{name: k for k, name in enumerate(names)})
    with refused("TS502", "different ways"):
        run(calling([first], functions, "a"), x=x)


def test_calls_that_multiply_without_bound_are_refused(x: Any) -> None:
    """Thirty functions, each calling the next one twice, stand for 2^30 nodes."""
    functions = [
        function(f"F{k}", "d", "p", [call(f"F{k + 1}", "d", "h"), call(f"F{k + 1}", "h", "p")])
        for k in range(30)
    ]
    functions.append(function("F30", "d", "p", [node("Neg", "d", "p")]))
    with refused("TS502", "more than"):
        run(calling([call("F0", "x", "a")], functions, "a"), x=x)


def test_calls_that_multiply_are_refused_before_all_of_them_are_looked_at(
    x: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def counted(*given: Any) -> list[Any]:
        seen.append(given)
        return []

    monkeypatch.setattr(model_errors, "MAX_STEPS", 50)
    monkeypatch.setattr(model_errors, "wrong_bodies", counted)
    f = function("F", "d", "p", [node("Neg", "d", "p")] + 9 * [node("Abs", "d", "_")], ["n"])
    with refused("TS502", "more than 50", "graph/F[4]"):
        run(calling([call("F", "x", f"a{k}", n=k) for k in range(100)], [f], "a0"), x=x)
    assert len(seen) == 50


def test_long_chains_of_calls_are_refused_before_the_stack_ends(x: Any) -> None:
    def chain(length: int) -> Any:
        functions = [
            function(f"F{k}", "d", "p", [call(f"F{k + 1}", "d", "p")]) for k in range(length)
        ]
        functions.append(function(f"F{length}", "d", "p", [node("Neg", "d", "p")]))
        return calling([call("F0", "x", "a")], functions, "a")

    assert_same(outputs(chain(90), x=x), [-x])
    with refused("TS502", "deep"):
        run(chain(3000), x=x)


def test_outputs_may_be_inputs_of_the_function(x: Any) -> None:
    f = function("F", "d e", "d p", [node("Neg", "d", "p")])
    made = calling([call("F", "x x", "a b")], [f], "a b")
    assert_same(outputs(made, x=x), [x, -x])


def test_static_checks_follow_calls(x: Any) -> None:
    f = function("F", "d s", "p q", [node("Split", "d s", "p q", name="cut")])
    made = calling([call("F", "x k", "a b")], [f], "a b", k=[2, 4])
    assert check(made) == ["function custom::F/cut"]
    made.graph.input[0].CopyFrom(value("x", FLOAT, [6, 2]))
    assert check(made) == []
    made.graph.initializer[0].CopyFrom(tensor("k", [2, 5]))
    with refused("TS302", "[2, 5]", "function custom::F/cut"):
        check(made)
    made.graph.input.append(value("k", INT64, [2]))
    assert check(made) == ["function custom::F/cut"]
