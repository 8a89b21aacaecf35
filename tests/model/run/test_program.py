"""Graphs that can't be run as written are refused, each with its node."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, helper

from tensorsplit import SplitError
from tensorsplit.model.run.evaluator import CompiledModel
from tests.model.build import (
    FLOAT,
    check,
    function,
    graph,
    model,
    node,
    onnx_model,
    outputs,
    run,
    tensor,
    untyped,
    value,
)
from tests.oracle import assert_same
from tests.refusals import refused


@pytest.fixture
def x() -> Any:
    return np.arange(1, 7, dtype=np.float32)


def of(*nodes: NodeProto, results: str = "y") -> Any:
    return model(graph(nodes, [value("x")], results.split(), [tensor("k", [2, 4])]))


NEG = node("Neg", "x", "y")


@pytest.mark.parametrize(
    ("nodes", "word", "place"),
    [
        ([node("Neg", "z", "y")], "nothing produces its input 'z'", "graph/Neg[0]"),
        ([node("Neg", "y", "y")], "made of what the node itself makes", "graph/Neg[0]"),
        ([NEG, NEG], "'y' is produced twice", "graph/Neg[1]"),
        ([node("Split", "x k", "y y")], "'y' is produced twice", "graph/Split[0]"),
        ([node("Neg", "x", "x"), NEG], "'x' is produced twice", "graph/Neg[0]"),
        ([node("Neg", "x", "k"), NEG], "'k' is produced twice", "graph/Neg[0]"),
        ([node("Neg", "x", "z")], "nothing produces the output 'y'", "graph"),
        ([node("Neg", "x x", "y")], "2 inputs", "graph/Neg[0]"),
        ([node("Add", "x", "y")], "1 inputs", "graph/Add[0]"),
        ([node("Neg", "x", "y z")], "2 outputs", "graph/Neg[0]"),
        ([node("Relu", "x", "")], "0 outputs", "graph/Relu[0]"),
        ([node("Neg", "x", "y", alpha=1)], "'alpha'", "graph/Neg[0]"),
        ([node("Concat", "x x", "y")], "no attribute 'axis'", "graph/Concat[0]"),
        ([node("Concat", "x x", "y", axis=1.0)], "type FLOAT", "graph/Concat[0]"),
        ([node("Neg", "x", "y", domain="other")], "opset import", "graph/Neg[0]"),
        ([node("Neg", "x", "y", name="the name", alpha=1)], "'alpha'", "graph/the name"),
    ],
)
def test_nodes_that_do_not_fit_are_refused(
    nodes: list[NodeProto], word: str, place: str, x: Any
) -> None:
    made = of(*nodes)
    with refused("TS502", word, f"node '{place}'"):
        run(made, x=x)
    with refused("TS502", word, f"node '{place}'"):
        check(made)


def test_an_attribute_twice_is_refused(x: Any) -> None:
    twice = node("Concat", "x x", "y", axis=0)
    twice.attribute.append(helper.make_attribute("axis", 1))
    with refused("TS502", "'axis' more than once", "graph/Concat[0]"):
        run(of(twice), x=x)


def test_a_graph_without_outputs_is_refused(x: Any) -> None:
    with refused("TS502", "no outputs"):
        run(of(NEG, results=""), x=x)


def test_an_input_without_name_is_refused(x: Any) -> None:
    made = of(NEG)
    made.graph.input.append(untyped(""))
    with refused("TS502", "no name"):
        run(made, **{"x": x, "": x})


@pytest.mark.parametrize("version", [0, -1])
def test_an_opset_below_1_is_refused(version: int, x: Any) -> None:
    made = of(NEG)
    made.opset_import[0].version = version
    with refused("TS502", f"opset {version}", parameter="opset_import"):
        run(made, x=x)


def test_an_opset_that_nobody_knows_is_refused(x: Any) -> None:
    made = of(NEG)
    made.opset_import[0].version = 1000
    with refused("TS509", 1000, "graph/Neg[0]"):
        run(made, x=x)
    with refused("TS101", 1000, "graph/Split[0]"):
        made.graph.node[0].CopyFrom(node("Split", "x", "y", num_outputs=1))
        run(made, x=x)


def test_no_opset_import_is_refused(x: Any) -> None:
    made = of(NEG)
    del made.opset_import[:]
    with refused("TS502", "'ai.onnx'", "graph/Neg[0]"):
        run(made, x=x)


def test_imports_of_one_domain_must_agree(x: Any) -> None:
    made = of(NEG)
    made.opset_import.append(helper.make_opsetid("ai.onnx", 18))
    assert_same(outputs(made, x=x), [-x])
    made.opset_import[1].version = 13
    with refused("TS502", "18", "13", parameter="opset_import"):
        run(made, x=x)


def test_a_body_may_not_read_its_own_name_too_early(x: Any) -> None:
    branch = graph([node("Neg", "h", "z"), node("Abs", "x", "h")], [], "z")
    choice = node("If", "c", "y", then_branch=branch, else_branch=branch)
    made = of(node("Abs", "x", "h"), choice)
    made.graph.initializer.append(tensor("c", True, bool))
    with refused("TS502", "'h'", "graph/If[1].else_branch/Neg[0]"):
        run(made, x=x)


def test_outputs_may_be_inputs_or_initializers(x: Any) -> None:
    made = of(NEG, results="x k y")
    assert_same(outputs(made, x=x), [x, np.array([2, 4]), -x])


def test_results_do_not_depend_on_values_that_are_let_go(x: Any) -> None:
    """Each value is read once more after others that were last read before."""
    nodes = [node("Neg", "x", "v0")]
    nodes += [node("Sub", f"v{k} x", f"v{k + 1}") for k in range(20)]
    nodes += [node("Add", "v20 v0", "s"), node("Add", "s v10", "y")]
    made = of(*nodes, results="y v5")
    assert_same(outputs(made, x=x), [x * np.float32(-33), x * np.float32(-6)])


CHAIN = [node("Neg", f"v{k}" if k else "x", f"v{k + 1}") for k in range(12)]
UNREAD = [*(node("Neg", "x", f"d{k}") for k in range(12)), node("Abs", "x", "v12")]


@pytest.mark.parametrize("nodes", [CHAIN, UNREAD], ids=["read once", "never read"])
@pytest.mark.parametrize("place", ["graph", "branch", "function"])
def test_values_are_released_after_their_last_use(place: str, nodes: list[NodeProto]) -> None:
    """A node holds what it reads and what it gives; of 12 results no more are there at once."""
    functions, inputs = [], [value("x")]
    if place == "branch":
        body = graph(nodes, [], ["v12"])
        nodes = [node("If", "yes", "v12", then_branch=body, else_branch=body)]
    elif place == "function":
        functions = [function("F", "x", "v12", nodes)]
        nodes = [node("F", "x", "v12", domain="custom")]
    yes = tensor("yes", True, np.bool_)
    made = model(graph(nodes, inputs, ["v12"], [yes]), 18, functions, custom=1)
    compiled, x = CompiledModel(onnx_model(made)), np.ones(1 << 18, np.float32)
    compiled.run({"x": x})
    tracemalloc.start()
    try:
        compiled.run({"x": x})
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 3 * x.nbytes


def test_a_wide_and_long_graph_runs(x: Any) -> None:
    nodes = [node("Neg", "x", "v0")] + [node("Neg", f"v{k}", f"v{k + 1}") for k in range(2000)]
    assert_same(outputs(of(*nodes, results="v2000"), x=x), [-x])


def test_declared_types_of_results_are_no_conversion(x: Any) -> None:
    made = model(graph([NEG], [value("x")], [value("y", FLOAT, [6])]))
    assert_same(outputs(made, x=x), [-x])


@pytest.mark.parametrize("odd", ["two\nlines", "x" * 100_000, "\x1b[31m", "\u2028", "a\0b"])
def test_names_that_can_t_be_printed_are_escaped_and_cut_short(odd: str, x: Any) -> None:
    models = [
        of(node("Neg", "x", "y", name=odd, alpha=1)),
        of(node(odd, "x", "y")),
        of(node("Neg", "x", "y", domain=odd)),
        of(node("Neg", "x", "y", **{odd: 1})),
        of(node("Split", "x", "y", num_outputs=1, **{odd: 1})),
        of(helper.make_node("Neg", [odd], ["y"])),
        of(NEG, helper.make_node("Neg", ["x"], [odd]), helper.make_node("Abs", ["x"], [odd])),
        model(graph([NEG], [value("x")], ["y"], [tensor(odd, 1), tensor(odd, 1)])),
        model(graph([NEG], [value("x"), value(odd)], ["y"])),
    ]
    for made in models:
        with pytest.raises(SplitError) as caught:
            run(made, x=x)
        assert len(str(caught.value)) < 1000
        assert str(caught.value).isprintable()
