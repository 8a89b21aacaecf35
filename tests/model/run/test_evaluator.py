"""Running only as much of a model as some of its values need."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorsplit.model.run.evaluator import evaluate
from tensorsplit.model.run.program import compile_model
from tests.model.build import graph, model, node, onnx_model, run, tensor, untyped, value
from tests.oracle import assert_same, slices
from tests.refusals import refused


@pytest.fixture
def x(rng: np.random.Generator) -> Any:
    return rng.random((6, 2)).astype(np.float32)


def test_what_is_not_needed_does_not_run(x: Any) -> None:
    body = graph([node("Add", "v h", "w")], map(untyped, "v"), "w")
    nodes = [
        node("Neg", "x", "h"),
        node("Split", "x k", "a b"),
        node("Scan", "x", "s", body=body, num_scan_inputs=1),
        node("Reshape", "x bad", "never"),
    ]
    initializers = [tensor("k", [2, 4]), tensor("bad", [5])]
    read = onnx_model(model(graph(nodes, [value("x")], ["never"], initializers)))
    values = {v.name: v for n in read.model.graph for v in n.outputs}
    got = evaluate(compile_model(read), {"x": x}, [values["b"], values["a"], values["h"]])
    assert list(got) == ["b", "a", "h"]
    assert_same([got["a"], got["b"], got["h"]], [*slices(x, 0, [2, 4]), -x])
    with refused("TS510", "graph/Reshape[3]"):
        evaluate(compile_model(read), {"x": x}, [values["never"]])


def test_what_bodies_read_is_needed(x: Any) -> None:
    branch = graph([node("Split", "h", "p q", num_outputs=2)], [], "q")
    nodes = [
        node("Neg", "x", "h"),
        node("If", "c", "y", then_branch=branch, else_branch=branch),
        node("Abs", "y", "z"),
    ]
    read = onnx_model(model(graph(nodes, [value("x"), untyped("c")], ["z"])))
    (wanted,) = read.model.graph[1].outputs
    got = evaluate(compile_model(read), {"x": x, "c": np.array(True)}, [wanted])
    assert_same([got["y"]], [-x[3:]])


def test_inputs_and_constants_may_be_asked_for(x: Any) -> None:
    nodes = [node("Split", "x k", "a b")]
    read = onnx_model(model(graph(nodes, [value("x")], ["a"], [tensor("k", [2, 4])])))
    inner = read.model.graph
    got = evaluate(compile_model(read), {"x": x}, [inner.inputs[0], inner.initializers["k"]])
    assert_same(list(got.values()), [x, np.array([2, 4])])


@pytest.mark.parametrize(("count", "shown"), [(6, "], float32[2] ("), (7, "], ... (")])
def test_a_refusal_shows_up_to_six_inputs(x: Any, count: int, shown: str) -> None:
    made = model(graph([node("Concat", "x " * (count - 1) + "v", "y", axis=0)], [], ["y"]))
    made.graph.input.extend([untyped("x"), untyped("v")])
    with refused("TS510", "graph/Concat[0]", shown):
        run(made, x=x, v=x[0])
